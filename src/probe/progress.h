/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How fast threads progress: instructions per cycle in user mode, and misses of the last-level cache, by
 * perf_event_open(2), where the processor has counters and we may use them. A thread that waits for memory
 * has few instructions per cycle. That is no measure of work: a thread that spins on a lock has many.
 *
 * Counting slows each context switch of these threads, starts with an interrupt to all CPUs, and takes
 * counters from their other users. So count on request, and briefly. */

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Most threads that are counted, each with three descriptors. */
#define PROGRESS_THREADS_MAX 64U

/* What is counted, as perf_event_open(2) defines it. */
typedef struct ProgressEvents {
    uint32_t type;
    uint64_t instructions, cycles, misses;
} ProgressEvents;

typedef struct ProgressCounts {
    uint64_t instructions, cycles;
    uint64_t misses;
    uint64_t run_usec; /* how long they ran meanwhile */
    bool misses_known; /* of all of them; some processors count only the rest */
    uint32_t n_threads;
} ProgressCounts;

typedef struct Progress Progress;

/* Begins to count the first PROGRESS_THREADS_MAX threads, as far as possible. `events` NULL: the processor's.
 * Returns 0; -ENOMEM; or why none can be counted: -ENOENT, -ENODEV, -EOPNOTSUPP: there are no counters;
 * -EACCES, -EPERM: not permitted; -ESRCH: all are gone; -errno. */
int progress_begin(const ProgressEvents *events, const pid_t *tids, size_t n_tids, Progress **ret);

/* Counts since progress_begin(), including threads that have ended. May be called again. */
ProgressCounts progress_read(const Progress *progress);

/* What such an errno means for counting, in words. */
const char *progress_explain(int error);

Progress *progress_free(Progress *progress);
DEFINE_CLEANUP(Progress *, progress_free)
