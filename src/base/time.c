/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/time.h"

#include <time.h>

static uint64_t clock_nsec(clockid_t clock)
{
    struct timespec ts = {0};

    (void)clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t time_now_usec(void)
{
    return clock_nsec(CLOCK_MONOTONIC) / NSEC_PER_USEC;
}

uint64_t time_thread_cpu_nsec(void)
{
    return clock_nsec(CLOCK_THREAD_CPUTIME_ID);
}
