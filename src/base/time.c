/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/time.h"

const TimeUnit time_units[TIME_UNITS] = {
    {"d", 86400 * USEC_PER_SEC}, {"h", 3600 * USEC_PER_SEC}, {"min", 60 * USEC_PER_SEC},
    {"s", USEC_PER_SEC},         {"ms", USEC_PER_MSEC},      {"us", 1},
};

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

uint64_t time_realtime_usec(void)
{
    return clock_nsec(CLOCK_REALTIME) / NSEC_PER_USEC;
}

struct timespec time_spec(uint64_t usec)
{
    return (struct timespec){.tv_sec = (time_t)(usec / USEC_PER_SEC),
                             .tv_nsec = (long)(usec % USEC_PER_SEC * NSEC_PER_USEC)};
}

uint64_t time_boot_nsec(void)
{
    return clock_nsec(CLOCK_BOOTTIME);
}

uint64_t time_thread_cpu_nsec(void)
{
    return clock_nsec(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t time_process_cpu_nsec(void)
{
    return clock_nsec(CLOCK_PROCESS_CPUTIME_ID);
}
