/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/thread.h"

#include "base/time.h"

#include <signal.h>

int thread_start(pthread_t *ret, void *(*run)(void *), void *userdata)
{
    sigset_t all, before;
    int r;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(ret, NULL, run, userdata);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

void thread_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

int thread_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_usec)
{
    const struct timespec until = time_spec(until_usec);

    return pthread_cond_timedwait(cond, lock, &until);
}
