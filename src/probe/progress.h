/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How fast threads get on: instructions by cycle in user mode, and misses of the last-level cache, by
 * perf_event_open(2), where the processor has counters and lets us have them. Who waits for memory does few of the
 * former. It is no measure of work: a thread that spins for a lock does many.
 *
 * Counting costs something at each context switch of these threads, begins with an interrupt to all CPUs, and takes
 * counters from who else uses them. So it is for when somebody asks, and for moments. */

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Threads that are counted, each with three descriptors. */
#define PROGRESS_THREADS_MAX 64U

/* What is counted, by the definitions of perf_event_open(2). */
typedef struct ProgressEvents {
    uint32_t type;
    uint64_t instructions, cycles, misses;
} ProgressEvents;

typedef struct ProgressCounts {
    uint64_t instructions, cycles;
    uint64_t misses;
    uint64_t run_usec; /* for how long they ran meanwhile */
    bool misses_known; /* of all of them; there are processors that count only the others */
    uint32_t n_threads;
} ProgressCounts;

typedef struct Progress Progress;

/* Begins to count the first of these threads, those that can be. `events` NULL: those of the processor. Returns 0;
 * -ENOMEM; or why none of them can be counted: -ENOENT, -ENODEV, -EOPNOTSUPP: there are no counters; -EACCES, -EPERM:
 * not for us; -ESRCH: all are gone; -errno. */
int progress_begin(const ProgressEvents *events, const pid_t *tids, size_t n_tids, Progress **ret);

/* What they did since then, those that have ended as well. May be called again. */
ProgressCounts progress_read(const Progress *progress);

/* What such an errno means for counting, in words. */
const char *progress_explain(int error);

Progress *progress_free(Progress *progress);
DEFINE_CLEANUP(Progress *, progress_free)
