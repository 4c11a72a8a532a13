/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What of a process's memory to look at next (P9).
 * Source: task_numa_work() and vma_is_accessed() of Linux, and "sched/numa: Complete scanning of partial and inactive
 * VMAs" (f169c62ff7, Mel Gorman, 2023), restated.
 *
 * A scan visits the regions in turn, a window at a time. One pass over all is a sequence. Looking at a range means
 * finding out where its pages are and which threads use them, by any evidence. The caller does that, and says
 * afterwards which threads were seen (scan_note_access()). */

#include "world/regions.h"

/* scan_delay_ms of the kernel: memory younger than that is not worth a look. */
#define SCAN_DELAY_USEC 1000000U

/* Filters of who uses a region age each time so many delays have passed (VMA_PID_RESET_PERIOD). */
#define SCAN_FORGET_DELAYS 4U

/* A window covers at most so many times its size of addresses, most of which hold nothing. */
#define SCAN_VIRTUAL_FACTOR 8U

/* Ends of ranges are multiples of this, or ends of regions: a huge page is looked at as a whole. */
#define SCAN_ALIGN_BYTES (UINT64_C(2) << 20)

/* What became of a region when its turn came, in the order of the tests. All but the last two were left out. */
typedef enum ScanReason {
    SCAN_REASON_UNSUITABLE, /* its pages do not move, or a memory policy chose their nodes */
    SCAN_REASON_SHARED_RO, /* a file, or shared memory, that is only read: whose it is does not show by who reads it */
    SCAN_REASON_INACCESSIBLE,  /* a guard, or a reservation */
    SCAN_REASON_SCAN_DELAY,    /* it is too young */
    SCAN_REASON_SEQ_COMPLETED, /* it was looked at to its end in this sequence */
    SCAN_REASON_PID_INACTIVE,  /* nobody for whom the scan is has been seen there */
    SCAN_REASON_IGNORE_PID,    /* looked at all the same, since it had been begun with */
    SCAN_REASON_FORCED,        /* looked at all the same, since nothing else was left (ForceComplete) */
    SCAN_REASON_MAX,
    SCAN_REASON_INVALID = -EINVAL,
} ScanReason;

typedef struct ScanRules {
    uint64_t window_bytes; /* present memory to be looked at in one step; ScanSize, or P16 */
    bool force_complete;   /* ForceComplete */
    pid_t tid; /* the scan is for this thread, as the kernel's is for the one it interrupts; 0: for all */
} ScanRules;

/* The scan of one process. All zero: none yet. */
typedef struct Scan {
    uint64_t sequence; /* completed ones */
    uint64_t offset;   /* address where the next window begins */
    uint64_t n[SCAN_REASON_MAX];
    uint64_t n_windows;
    uint64_t scanned_bytes; /* addresses */

    /* Of the last complete sequence: regions that could be looked at, and those that were. */
    uint32_t n_eligible, n_covered;
} Scan;

typedef struct ScanRange {
    uint64_t start, end; /* within one region */
} ScanRange;

/* What one step chose; to be used again for the next one. All zero at first. */
typedef struct ScanWindow {
    ScanRange *ranges; /* ascending, but for what is forced at the end */
    size_t n_ranges, capacity;
    uint64_t present_bytes, virtual_bytes;
    uint32_t n[SCAN_REASON_MAX]; /* in this step */
    bool ended;                  /* it ended a sequence */
} ScanWindow;

void scan_window_done(ScanWindow *window);

/* Chooses the next window, and notes in the regions what is looked at. A region counts once per step; a forced one
 * that is too large goes on in the next step. The kernel forces what lies behind where the step began; here it is
 * the first region that has been left out since the sequence began, so that with `force_complete` a sequence ends
 * only when each region that could be looked at was. One step forces one region. 0 or -ENOMEM. */
int scan_step(Scan *scan, MemoryRegions *regions, const ScanRules *rules, uint64_t now_usec,
              ScanWindow *window);

/* A thread was seen to use memory at an address. The filter is the kernel's, 64 bits for all threads: of 32 threads one
 * that was not there is taken for another that was in 40 % of the cases. */
void scan_note_access(MemoryRegions *regions, uint64_t address, pid_t tid);

/* Permille of the regions that could be looked at in the last complete sequence; 0 before the first ended. */
uint32_t scan_coverage_permille(const Scan *scan);

/* "unsuitable" ... "pid_inactive", as the kernel's tracepoint sched_skip_vma_numa has them, "ignore_pid_inactive" and
 * "forced"; NULL-terminated. Part of the interface: never changed. */
extern const char *const scan_reason_names[];
