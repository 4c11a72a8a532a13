/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Records the picture while the model runs, and computes the results at its end. */

#include "sim/model/engine.h"

#include <string.h>

/* Limits of a picture: rows, and numbers in it. In a long run each row covers several ticks. */
#define ROWS_MAX    2048U
#define NUMBERS_MAX (16U << 20)

int picture_start(Engine *e)
{
    CLEANUP(sim_result_free_p) SimResult *result = calloc(1, sizeof(*result));
    size_t n = e->spec->n_workloads;

    if (!result)
        return -ENOMEM;
    result->n_nodes = e->n_nodes;
    result->n_workloads = n;
    result->workloads = calloc(MAX(n, (size_t)1), sizeof(*result->workloads));
    result->values = calloc((n + 1) * SIM_METRIC_MAX, sizeof(*result->values));
    if (!result->workloads || !result->values)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        result->workloads[i] = strdup(e->spec->workloads[i].name);
        if (!result->workloads[i])
            return -ENOMEM;
    }
    e->result = TAKE_PTR(result);
    return 0;
}

int picture_tick(Engine *e, SimTick *tick)
{
    SimResult *result = e->result;
    size_t n = e->n_nodes * result->n_workloads;
    uint64_t rows = CLAMP(NUMBERS_MAX / MAX(n, (size_t)1), (size_t)1, (size_t)ROWS_MAX);
    uint64_t row_nsec = MAX(e->end_nsec / rows, (uint64_t)1), length = e->now_nsec - e->row_nsec;

    e->row_plan_nsec += tick->plan_nsec;
    e->row_actions += tick->n_actions;
    if (length < row_nsec && e->now_nsec < e->end_nsec)
        return 0;
    tick->plan_nsec = e->row_plan_nsec;
    tick->n_actions = e->row_actions;
    tick->usec = e->now_nsec / NSEC_PER_USEC;
    tick->n_crowded = e->n_crowded;
    if (!GROW(result->ticks, result->ticks_capacity, result->n_ticks + 1) ||
        !GROW(result->used, result->used_capacity, (result->n_ticks + 1) * n))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        result->used[result->n_ticks * n + i] = (uint32_t)(e->used[i] * 1000 / MAX(length, (uint64_t)1));
    result->ticks[result->n_ticks++] = *tick;

    memset(e->used, 0, n * sizeof(*e->used));
    e->row_actions = 0;
    e->row_plan_nsec = 0;
    e->row_nsec = e->now_nsec;
    return 0;
}

static int64_t permille(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (int64_t)(part / whole * 1000 + part % whole * 1000 / whole);
}

/* Sums of the run and wait times of all threads of a workload. */
static void sum_threads(const Engine *e, uint32_t workload, uint64_t *ret_run, uint64_t *ret_wait)
{
    *ret_run = *ret_wait = 0;
    for (uint32_t i = 0; i < e->n_threads; i++) {
        const Thread *thread = &e->threads[i];

        if (thread->workload != workload)
            continue;
        *ret_run += thread->run_nsec;
        *ret_wait += thread->wait_nsec;
        if (thread->state == THREAD_STATE_QUEUED)
            *ret_wait += e->now_nsec - thread->queued_nsec;
    }
}

static void finish_forked(const Engine *e, const uint32_t *forked, int64_t *values)
{
    int64_t most = 0, least = INT64_MAX;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        if (e->nodes[i].n_cpus == 0)
            continue;
        most = MAX(most, (int64_t)forked[i]);
        least = MIN(least, (int64_t)forked[i]);
    }
    values[SIM_METRIC_FORKED_MAX] = most;
    values[SIM_METRIC_FORKED_MIN] = least == INT64_MAX ? 0 : least;
}

/* Counts threads born, and those that last ran on the node where most of their process did. */
static int count_together(Engine *e)
{
    CLEANUP_FREE uint64_t *nodes = calloc(e->n_nodes, sizeof(*nodes));

    if (!nodes)
        return -ENOMEM;
    for (uint32_t i = 0; i < e->n_families; i++) {
        const Family *family = &e->families[i];
        Tally *tally = &e->tallies[family->workload];
        uint64_t most = 0;

        memset(nodes, 0, e->n_nodes * sizeof(*nodes));
        for (uint32_t k = family->first; k < family->first + family->n_forked; k++) {
            uint64_t n = ++nodes[e->cpus[e->threads[k].cpu].node];

            most = MAX(most, n);
        }
        tally->n_born += family->n_forked;
        tally->n_together += most;
    }
    return 0;
}

static int64_t node_most(const Engine *e, const uint64_t *nsec)
{
    uint64_t most = 0, all = 0;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        most = MAX(most, nsec[i]);
        all += nsec[i];
    }
    return permille(most, all);
}

/* Metrics computed from the sums of a tally. */
static void finish_row(const Engine *e, const Tally *tally, uint64_t run, uint64_t wait, int64_t *values)
{
    uint64_t now = MAX(e->now_nsec, (uint64_t)1);

    for (int i = 0; i < SIM_METRIC_MAX; i++)
        values[i] += tally->count[i];
    values[SIM_METRIC_THROUGHPUT] = permille(tally->work_nsec, now);
    values[SIM_METRIC_RUN] = permille(run, now);
    values[SIM_METRIC_WAIT] = permille(wait, now);
    values[SIM_METRIC_MAKESPAN_USEC] = tally->n_alive > 0 ? 0 : (int64_t)(tally->ended_nsec / NSEC_PER_USEC);
    values[SIM_METRIC_LOCAL] =
        tally->access_work > 0 ? permille(tally->access_local, tally->access_work) : 1000;
    values[SIM_METRIC_NODE_MOST] = node_most(e, tally->late_nsec);
    values[SIM_METRIC_TOGETHER] = tally->n_born > 0 ? permille(tally->n_together, tally->n_born) : 1000;
    values[SIM_METRIC_COVERAGE] = tally->n_passes > 0 ? (int64_t)(tally->coverage_sum / tally->n_passes) : 0;
    finish_forked(e, tally->forked, values);
}

/* The largest, of each workload and of the machine. */
static void find_windows(const Engine *e, int64_t *values)
{
    for (uint32_t i = 0; i < e->n_families; i++) {
        int64_t *most =
            &values[(e->families[i].workload + 1) * (size_t)SIM_METRIC_MAX + SIM_METRIC_SCAN_WINDOW];

        *most = MAX(*most, (int64_t)(e->families[i].window_bytes >> 20));
        values[SIM_METRIC_SCAN_WINDOW] = MAX(values[SIM_METRIC_SCAN_WINDOW], *most);
    }
}

static void add_tally(const Engine *e, Tally *sum, const Tally *tally)
{
    for (int i = 0; i < SIM_METRIC_MAX; i++)
        sum->count[i] += tally->count[i];
    sum->work_nsec += tally->work_nsec;
    sum->access_work += tally->access_work;
    sum->access_local += tally->access_local;
    sum->n_passes += tally->n_passes;
    sum->coverage_sum += tally->coverage_sum;
    sum->n_born += tally->n_born;
    sum->n_together += tally->n_together;
    sum->n_alive += tally->n_alive;
    sum->ended_nsec = MAX(sum->ended_nsec, tally->ended_nsec);
    for (uint32_t i = 0; i < e->n_nodes; i++) {
        sum->forked[i] += tally->forked[i];
        sum->late_nsec[i] += tally->late_nsec[i];
    }
}

int picture_finish(Engine *e)
{
    SimResult *result = e->result;
    CLEANUP_FREE uint32_t *forked = calloc(e->n_nodes, sizeof(*forked));
    CLEANUP_FREE uint64_t *late_nsec = calloc(e->n_nodes, sizeof(*late_nsec));
    Tally sum = {.forked = forked, .late_nsec = late_nsec};
    uint64_t run_sum = 0, wait_sum = 0;
    int r = count_together(e);

    if (r < 0 || !forked || !late_nsec)
        return -ENOMEM;
    for (uint32_t i = 0; i < result->n_workloads; i++) {
        uint64_t run, wait;

        sum_threads(e, i, &run, &wait);
        finish_row(e, &e->tallies[i], run, wait, result->values + (i + 1) * (size_t)SIM_METRIC_MAX);
        add_tally(e, &sum, &e->tallies[i]);
        run_sum += run;
        wait_sum += wait;
    }
    finish_row(e, &sum, run_sum, wait_sum, result->values);
    find_windows(e, result->values);
    if (e->agent)
        agent_report(e->agent, result->values);
    result->values[SIM_METRIC_BUSY] = permille(run_sum, MAX(e->now_nsec, (uint64_t)1)) / e->topology->n_cpus;
    result->values[SIM_METRIC_EVENTS] = (int64_t)e->n_events;
    result->duration_usec = e->now_nsec / NSEC_PER_USEC;
    return 0;
}
