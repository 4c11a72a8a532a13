/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The steps of the last day (daemon/tables/history.h). */

#include "daemon/views/describe.h"

/* A reply ends with the step in which it comes to so many workloads and nodes of them: some milliseconds. */
#define ROWS_MAX 1000U

static uint32_t mean(uint64_t sum, uint32_t n)
{
    return n > 0 ? (uint32_t)(sum / n) : 0;
}

static void put_row(Dict *dict, const HistoryStep *step, const HistoryRow *row)
{
    dict_begin(dict);
    dict_string(dict, "workload", row->workload);
    dict_u32(dict, "run_permille", mean(row->run, step->n_looks));
    dict_u32(dict, "wait_permille", mean(row->wait, step->n_looks));
    if (row->local_of > 0)
        dict_u32(dict, "local_permille", (uint32_t)(row->local_sum / row->local_of));
    dict_list_begin(dict, "runs");
    for (size_t i = 0; i < row->n_runs; i++) {
        dict_begin(dict);
        dict_u32(dict, "node", row->runs[i].node);
        dict_u32(dict, "run_permille", mean(row->runs[i].run, step->n_looks));
        dict_end(dict);
    }
    dict_list_end(dict, "runs");
    dict_end(dict);
}

static void put_step(Dict *dict, const HistoryStep *step)
{
    dict_begin(dict);
    dict_u64(dict, "sequence", step->sequence);
    dict_u64(dict, "realtime_usec", step->realtime_usec);
    dict_u64(dict, "span_usec", step->span_usec);
    dict_u32(dict, "looks", step->n_looks);
    dict_u64(dict, "cpu_usec", step->totals.cpu_usec);
    dict_u64(dict, "homes", step->totals.n_homes);
    dict_u64(dict, "lends", step->totals.n_lends);
    dict_u64(dict, "memory_moved_bytes", step->totals.moved_bytes);
    dict_list_begin(dict, "workloads");
    for (size_t i = 0; i < step->n_rows; i++)
        put_row(dict, step, &step->rows[i]);
    dict_list_end(dict, "workloads");
    dict_end(dict);
}

static size_t count_rows(const HistoryStep *step)
{
    size_t n = step->n_rows;

    for (size_t i = 0; i < step->n_rows; i++)
        n += step->rows[i].n_runs;
    return n;
}

void describe_history(Dict *dict, const Manager *manager, uint64_t after, uint32_t max)
{
    const HistoryStep *step = history_next(manager->history, after);

    dict_list_begin(dict, NULL);
    for (size_t n = 0, n_rows = 0; step && n < max && n_rows < ROWS_MAX; n++) {
        put_step(dict, step);
        n_rows += 1 + count_rows(step);
        step = history_next(manager->history, step->sequence);
    }
    dict_list_end(dict, NULL);
}
