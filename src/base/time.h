/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Time as unsigned microseconds. Only probe, act, daemon and ctl may read the clocks; the other rooms get the
 * time as a parameter. */

#include <stdint.h>
#include <time.h>

#define USEC_PER_MSEC 1000ULL
#define USEC_PER_SEC  1000000ULL
#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_SEC  1000000000ULL

/* Units of time spans in printed text, largest first. */
#define TIME_UNITS 6U

typedef struct TimeUnit {
    const char *name;
    uint64_t usec;
} TimeUnit;

extern const TimeUnit time_units[TIME_UNITS];

/* The instant `usec` after another; UINT64_MAX at most. */
static inline uint64_t time_after(uint64_t then_usec, uint64_t usec)
{
    return usec < UINT64_MAX - then_usec ? then_usec + usec : UINT64_MAX;
}

/* CLOCK_MONOTONIC in microseconds, the clock of World.now_usec and of every `..._usec` instant. */
uint64_t time_now_usec(void);

/* Wall-clock time (CLOCK_REALTIME) in microseconds. */
uint64_t time_realtime_usec(void);

/* Converts an instant or a span to the form that system calls take. */
struct timespec time_spec(uint64_t usec);

/* CLOCK_BOOTTIME in nanoseconds, which includes time suspended. It is the clock of starttime in proc_pid_stat(5). */
uint64_t time_boot_nsec(void);

/* CPU time used by the calling thread so far, in nanoseconds (CLOCK_THREAD_CPUTIME_ID). */
uint64_t time_thread_cpu_nsec(void);

/* CPU time used by all threads of the process, including exited ones, in nanoseconds (CLOCK_PROCESS_CPUTIME_ID). */
uint64_t time_process_cpu_nsec(void);
