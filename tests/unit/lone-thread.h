/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* For children of tests that count threads: after a fork(2), the thread sanitizer has a thread of its own. */

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#if defined(__SANITIZE_THREAD__)
#define LONE_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LONE_THREAD_SANITIZED 1
#endif
#endif

#ifdef LONE_THREAD_SANITIZED

#include <sanitizer/common_interface_defs.h>

static inline void *lone_thread_end(void *userdata)
{
    return userdata;
}

/* Ends the sanitizer's thread, and waits until /proc no longer shows it: a directory of tasks has a link for
 * each, and two of its own. The runtime can be told to do so only after it has seen another thread created.
 * Called by the only other thread of the process. */
static inline void lone_thread(void)
{
    struct stat st;
    pthread_t thread;

    if (pthread_create(&thread, NULL, lone_thread_end, NULL) == 0)
        (void)pthread_join(thread, NULL);
    __sanitizer_sandbox_on_notify(NULL);
    while (stat("/proc/self/task", &st) == 0 && st.st_nlink > 2 + 1)
        (void)sched_yield();
}

#else

static inline void lone_thread(void)
{
}

#endif
