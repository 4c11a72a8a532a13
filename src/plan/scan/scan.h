/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Chooses which memory of a process to look at next (P9).
 * Source: task_numa_work() and vma_is_accessed() of Linux, and "sched/numa: Complete scanning of partial and
 * inactive VMAs" (f169c62ff7, Mel Gorman, 2023), restated.
 *
 * A scan visits the regions in turn, a window at a time. One pass over all is a sequence. Looking at a range
 * means finding out where its pages are and which threads use them, by any evidence. The caller does that,
 * and reports the threads it saw (scan_note_access()). */

#include "world/regions.h"

/* scan_delay_ms of the kernel: younger memory is not worth a look. */
#define SCAN_DELAY_USEC 1000000U

/* Delays after which the filters of a region's users age (VMA_PID_RESET_PERIOD). */
#define SCAN_FORGET_DELAYS 4U

/* Addresses a window covers at most, in multiples of its size; most may hold nothing. */
#define SCAN_VIRTUAL_FACTOR 8U

/* Ends of ranges are multiples of this, or ends of regions: a huge page is looked at as a whole. */
#define SCAN_ALIGN_BYTES (UINT64_C(2) << 20)

/* What became of a region in its turn, in the order of the tests. All but the last two were left out. */
typedef enum ScanReason {
    SCAN_REASON_UNSUITABLE,   /* its pages do not move, or a memory policy chose their nodes */
    SCAN_REASON_SHARED_RO,    /* a file or shared memory that is only read: readers do not show whose it is */
    SCAN_REASON_INACCESSIBLE, /* a guard, or a reservation */
    SCAN_REASON_SCAN_DELAY,   /* it is too young */
    SCAN_REASON_SEQ_COMPLETED, /* it was looked at to its end in this sequence */
    SCAN_REASON_PID_INACTIVE,  /* no thread the scan is for was seen there */
    SCAN_REASON_IGNORE_PID,    /* looked at nevertheless: the last window ended in it */
    SCAN_REASON_FORCED,        /* looked at nevertheless: nothing else was left (ForceComplete) */
    SCAN_REASON_MAX,
    SCAN_REASON_INVALID = -EINVAL,
} ScanReason;

typedef struct ScanRules {
    uint64_t window_bytes; /* present memory to look at in one step; ScanSize, or P16 */
    bool force_complete;   /* ForceComplete */
    pid_t tid; /* scan for this thread, as the kernel does for the one it interrupts; 0: for all */
} ScanRules;

/* The scan of one process, zeroed at first. */
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

/* What one step chose; reused by the next, zeroed at first. */
typedef struct ScanWindow {
    ScanRange *ranges; /* ascending, except for a forced one at the end */
    size_t n_ranges, capacity;
    uint64_t present_bytes, virtual_bytes;
    uint32_t n[SCAN_REASON_MAX]; /* in this step */
    bool ended;                  /* it ended a sequence */
} ScanWindow;

void scan_window_done(ScanWindow *window);

/* Chooses the next window, and notes in the regions what is looked at. A region counts once per step; a
 * forced one that is too large continues in the next. The kernel forces a region behind the start of the
 * step, this code the first one left out in the sequence. So with `force_complete` a sequence ends only when
 * every eligible region was looked at. A step forces one region at most. Returns 0 or -ENOMEM. */
int scan_step(Scan *scan, MemoryRegions *regions, const ScanRules *rules, uint64_t now_usec,
              ScanWindow *window);

/* Notes that a thread uses memory at an address. The filter is the kernel's, 64 bits for all threads: with 32
 * threads in it, 40 % of the others are mistaken for one of these. */
void scan_note_access(MemoryRegions *regions, uint64_t address, pid_t tid);

/* Permille of the eligible regions looked at in the last complete sequence; 0 before the first ended. */
uint32_t scan_coverage_permille(const Scan *scan);

/* "unsuitable" ... "pid_inactive" as in the kernel's tracepoint sched_skip_vma_numa, "ignore_pid_inactive"
 * and "forced"; NULL-terminated. Part of the interface: never changed. */
extern const char *const scan_reason_names[];
