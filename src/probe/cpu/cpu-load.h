/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How busy each CPU was, and how long tasks waited for it, between two readings of /proc/stat and /proc/schedstat. */

#include "kernel/cpu-times.h"
#include "kernel/schedstat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CpuTrack {
    CpuBusy busy;
    uint64_t run_nsec, wait_nsec; /* counters of /proc/schedstat at the last reading */
    uint64_t stat_nsec;           /* when it was last in /proc/stat; 0: never */
    uint64_t schedstat_nsec;      /* when it was last in /proc/schedstat; 0: never */

    /* Results of the last reading. */
    bool measured; /* busy_delta_nsec is valid */
    bool wait_measured;
    uint64_t busy_delta_nsec;
    uint64_t wait_delta_nsec;
} CpuTrack;

typedef struct CpuLoads {
    int stat_fd;        /* kept open; -1: not there */
    int schedstat_fd;   /* the same */
    uint64_t tick_nsec; /* step of the counters of /proc/stat */
    char *text;
    size_t text_capacity;
    CpuTimes times;
    Schedstat schedstat;
    CpuTrack *tracks; /* indexed by CPU number */
    size_t n_tracks, tracks_capacity;
} CpuLoads;

/* Opens the files below the root; either may be missing. -errno of /proc/stat when both are. */
int cpu_loads_init(CpuLoads *loads, int root_fd);
void cpu_loads_done(CpuLoads *loads);

/* Reads both files at `now_nsec` and updates the tracks. Returns 0, -ENOMEM, or -errno when neither can be
 * read; -EINVAL: not parsed. */
int cpu_loads_read(CpuLoads *loads, uint64_t now_nsec);
