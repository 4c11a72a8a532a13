/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The last day in steps of a minute, for `numaplacectl report`: where each workload ran, how much it waited, how much
 * of its memory was local to it, and what was done for that and cost. A step is the mean of the looks taken in it. */

#include "base/util.h"
#include "world/world.h"

#include <stddef.h>
#include <stdint.h>

/* At least: a step ends with the first look behind that. */
#define HISTORY_STEP_USEC 60000000U
#define HISTORY_STEPS     1440U
/* Of each look the workloads that ran most; a step holds not more of them than HISTORY_ROWS. */
#define HISTORY_WORKLOADS 12U
#define HISTORY_ROWS      24U

/* Of the daemon, since its start. */
typedef struct HistoryTotals {
    uint64_t cpu_usec;
    uint64_t n_homes, n_lends, moved_bytes;
} HistoryTotals;

/* Permille of one CPU, on one node. */
typedef struct HistoryRun {
    uint32_t node; /* the operating system's number */
    uint64_t run;
} HistoryRun;

typedef struct HistoryRow {
    char *workload;
    uint64_t run, wait; /* permille of one CPU; in a step that is not over, the sum over its looks */
    uint64_t local_sum,
        local_of; /* permille times weight, and weight: the mean is local_sum / local_of; 0: not known */
    HistoryRun *runs;
    size_t n_runs, runs_capacity;
} HistoryRow;

typedef struct HistoryStep {
    uint64_t sequence;                 /* from 1, without gaps */
    uint64_t realtime_usec, span_usec; /* its end, and how long it was */
    uint32_t n_looks;
    HistoryTotals totals; /* in this step */
    HistoryRow *rows;
    size_t n_rows;
} HistoryStep;

typedef struct History History;

/* NULL when memory is out. The first step begins at `now_usec`. */
History *history_new(uint64_t now_usec);
History *history_free(History *history);

/* Takes a look at all workloads, at world->now_usec. The World is not changed. Returns 0 or -ENOMEM. */
int history_look(History *history, World *world, const HistoryTotals *totals, uint64_t realtime_usec);

/* The oldest step kept whose sequence is above `after`, the one under way included; NULL when there is none. */
const HistoryStep *history_next(const History *history, uint64_t after);
