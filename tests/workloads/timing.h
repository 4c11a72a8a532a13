/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* For programs that time a machine: the clock, and binding to a CPU. C files that include this define _GNU_SOURCE. */

#include <sched.h>
#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC. */
static inline uint64_t timing_now_nsec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Binds the calling thread to one CPU. Returns 0, or -1 with errno. */
static inline int timing_run_on(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set);
}
