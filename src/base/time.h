/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Time as unsigned microseconds. Only probe, act, daemon and ctl may ask for it; the other rooms are given it. */

#include <stdint.h>
#include <time.h>

#define USEC_PER_MSEC 1000ULL
#define USEC_PER_SEC  1000000ULL
#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_SEC  1000000000ULL

/* Units of spans as they are printed, the largest first. */
#define TIME_UNITS 6U

typedef struct TimeUnit {
    const char *name;
    uint64_t usec;
} TimeUnit;

extern const TimeUnit time_units[TIME_UNITS];

/* CLOCK_MONOTONIC in microseconds: what World.now_usec and every `..._usec` instant is in. */
uint64_t time_now_usec(void);

/* The same of the calendar, CLOCK_REALTIME. */
uint64_t time_realtime_usec(void);

/* An instant or a span as system calls take it. */
struct timespec time_spec(uint64_t usec);

/* CLOCK_BOOTTIME in nanoseconds: what starttime in proc_pid_stat(5) is in, which goes on while the machine sleeps. */
uint64_t time_boot_nsec(void);

/* CPU time used by the calling thread so far, in nanoseconds (CLOCK_THREAD_CPUTIME_ID). */
uint64_t time_thread_cpu_nsec(void);

/* The same of all threads of the process, also of those that have ended (CLOCK_PROCESS_CPUTIME_ID). */
uint64_t time_process_cpu_nsec(void);
