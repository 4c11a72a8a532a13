/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/stat: how long each CPU has been idle, from which its busy time follows. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CpuTime {
    uint32_t cpu;
    uint64_t idle_ticks; /* idle and iowait, in USER_HZ; the rest is busy, including hypervisor steal time */
} CpuTime;

typedef struct CpuTimes {
    CpuTime *cpus; /* online CPUs, ascending */
    size_t n_cpus, capacity;
} CpuTimes;

/* Parses the cpu lines at the start of the file, up to the first other line; the text may be cut after that.
 * *ret must be zeroed or hold an earlier result. Returns 0, -ENOMEM, or -EINVAL if malformed. */
int cpu_times_parse(const char *text, CpuTimes *ret);

void cpu_times_done(CpuTimes *times);

/* Tracks the busy time of one CPU through an idle counter that moves in coarse steps. Must start zeroed. */
typedef struct CpuBusy {
    bool valid;
    int64_t busy_nsec;
} CpuBusy;

/* Takes the idle counter as read at `now_nsec` (any clock that advances with it) and returns how long the CPU
 * was busy since the previous call, in nanoseconds; 0 on the first call. `tick_nsec` is the step of the
 * counter. The result is exactly 0 for a CPU that stayed idle, and lags by less than two steps otherwise. */
uint64_t cpu_busy_update(CpuBusy *busy, uint64_t now_nsec, uint64_t idle_ticks, uint64_t tick_nsec);
