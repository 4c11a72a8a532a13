/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The last day in steps of a minute, for `numaplacectl report`: where each workload ran, how much it waited,
 * how much of its memory was local, what was done, and what that cost. A step is the mean of its looks. */

#include "base/util.h"
#include "world/world.h"

#include <stddef.h>
#include <stdint.h>

/* At least: a step ends with the first look after this. */
#define HISTORY_STEP_USEC 60000000U
#define HISTORY_STEPS     1440U
/* Each look takes the workloads that run most; a step holds at most HISTORY_ROWS of them. */
#define HISTORY_WORKLOADS 12U
#define HISTORY_ROWS      24U

/* Of the daemon, since its start. */
typedef struct HistoryTotals {
    uint64_t cpu_usec;
    uint64_t n_homes, n_lends, moved_bytes;
} HistoryTotals;

/* Permille of one CPU on one node, summed over the looks. */
typedef struct HistoryRun {
    uint32_t node; /* operating-system number */
    uint64_t run;
} HistoryRun;

typedef struct HistoryRow {
    char *workload;
    uint64_t run, wait; /* permille of one CPU, summed over the looks */
    uint64_t local_sum,
        local_of; /* permille times weight, and weight; the mean is local_sum / local_of; 0: not known */
    HistoryRun *runs;
    size_t n_runs, runs_capacity;
} HistoryRow;

typedef struct HistoryStep {
    uint64_t sequence;                 /* from 1, without gaps */
    uint64_t realtime_usec, span_usec; /* end and length */
    uint32_t n_looks;
    HistoryTotals totals; /* in this step */
    HistoryRow *rows;
    size_t n_rows;
} HistoryStep;

typedef struct History History;

/* NULL: out of memory. The first step begins at `now_usec`. */
History *history_new(uint64_t now_usec);
History *history_free(History *history);

/* Takes a look at all workloads, at world->now_usec. The World is not changed. Returns 0 or -ENOMEM. */
int history_look(History *history, World *world, const HistoryTotals *totals, uint64_t realtime_usec);

/* The oldest kept step whose sequence is above `after`, also the one in progress; NULL: none. */
const HistoryStep *history_next(const History *history, uint64_t after);
