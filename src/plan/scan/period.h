/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How often to look at the memory of a task: range (P8) and adaptation (P10) of the period between two
 * windows.
 * Source: task_scan_min(), task_scan_start(), task_scan_max(), task_numa_work() and update_task_scan_period()
 * of Linux, restated. */

#include "base/ids.h"

#include <stdbool.h>
#include <stdint.h>

/* Settings of a policy: ScanMinSec, ScanMaxSec, ScanSize. */
typedef struct ScanPeriodLimits {
    uint64_t min_usec;     /* for all memory of a task, below 2^40; 1 s in the kernel */
    uint64_t max_usec;     /* the same; 60 s */
    uint64_t window_bytes; /* looked at in one window, at least 1; 256 MB */
} ScanPeriodLimits;

typedef struct ScanPeriodRange {
    uint64_t n_windows; /* to see all memory once, at least 1 */
    uint64_t min_usec;  /* between two windows; also at first */
    uint64_t max_usec;
} ScanPeriodRange;

/* The range for a process with this much resident memory. */
ScanPeriodRange scan_period_range(const ScanPeriodLimits *limits, uint64_t rss_bytes);

/* Accesses seen since the period was last adapted, each below 2^60. */
typedef struct ScanPeriodSeen {
    uint64_t local, remote;
    uint64_t private_faults, shared_faults;
    uint64_t n_failed; /* migration requests that moved nothing */
} ScanPeriodSeen;

/* Returns the next period. It doubles if nothing was seen or moves failed. Otherwise tenths are added if 70 %
 * or more of the accesses are private, or else local, and subtracted if fewer are. The kernel tests local and
 * shared accesses, and so takes all remote and private ones for nothing seen. */
uint64_t scan_period_adapt(const ScanPeriodRange *range, uint64_t period_usec, const ScanPeriodSeen *seen);
