/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Threads outside the event loop, and waits with a deadline. */

#include <pthread.h>
#include <stdint.h>

/* Starts a thread with all signals blocked, since signals belong to the event loop. 0 or -errno. */
int thread_start(pthread_t *ret, void *(*run)(void *), void *userdata);

/* Initializes a condition variable that uses the clock of time_now_usec(). Allocates nothing, and does not
 * fail with glibc. */
void thread_cond_init(pthread_cond_t *cond);

/* Like pthread_cond_timedwait(3), with a deadline on the clock of time_now_usec(). */
int thread_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_usec);
