/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/stat: how long each CPU has been idle, and from that how busy it was. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CpuTime {
    uint32_t cpu;
    uint64_t
        idle_ticks; /* idle and iowait, in units of USER_HZ. All else is busy, time stolen by a hypervisor too */
} CpuTime;

typedef struct CpuTimes {
    CpuTime *cpus; /* online ones, ascending */
    size_t n_cpus, capacity;
} CpuTimes;

/* Parses the cpu lines at the start of the file; the first other line ends them, so the text may be cut behind it.
 * *ret must be zeroed or hold an earlier result. Returns 0, -ENOMEM, or -EINVAL when the text is not of this form. */
int cpu_times_parse(const char *text, CpuTimes *ret);

void cpu_times_done(CpuTimes *times);

/* Follows the busy time of one CPU through a counter of idle time that moves in coarse steps. Start zeroed. */
typedef struct CpuBusy {
    bool valid;
    int64_t busy_nsec;
} CpuBusy;

/* Takes the idle counter as read at `now_nsec` (any clock that moves with it) and returns the time this CPU was busy
 * since the call before, in nanoseconds; 0 at the first call. `tick_nsec` is the step of the counter. The result is
 * exactly 0 for a CPU that stayed idle, and late by less than two steps for any other. */
uint64_t cpu_busy_update(CpuBusy *busy, uint64_t now_nsec, uint64_t idle_ticks, uint64_t tick_nsec);
