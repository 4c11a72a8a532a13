/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tables/history.h"

#include "plan/would.h"

#include <string.h>

struct History {
    HistoryStep steps[HISTORY_STEPS]; /* a ring, indexed by the sequence modulo its size */
    uint64_t last;                    /* sequence of the step in progress; 0: no look yet */
    uint64_t begin_usec;              /* of that step */
    HistoryTotals last_totals;        /* at the last look */
};

/* One workload in this look. */
typedef struct Look {
    WorkloadIx workload;
    uint64_t *run; /* per NodeIx */
    uint64_t local_sum, local_of;
} Look;

static void clear(HistoryStep *step)
{
    for (size_t i = 0; i < step->n_rows; i++) {
        free(step->rows[i].workload);
        free(step->rows[i].runs);
    }
    free(step->rows);
    *step = (HistoryStep){0};
}

History *history_new(uint64_t now_usec)
{
    History *history = calloc(1, sizeof(*history));

    if (history)
        history->begin_usec = now_usec;
    return history;
}

History *history_free(History *history)
{
    if (!history)
        return NULL;
    for (size_t i = 0; i < HISTORY_STEPS; i++)
        clear(&history->steps[i]);
    free(history);
    return NULL;
}

static HistoryStep *step_of(History *history, uint64_t sequence)
{
    return &history->steps[sequence % HISTORY_STEPS];
}

/* The step that a look now belongs to. */
static HistoryStep *step_now(History *history)
{
    HistoryStep *step = step_of(history, history->last);

    if (history->last > 0 && step->span_usec < HISTORY_STEP_USEC)
        return step;
    /* The time between two steps belongs to the later one. */
    if (history->last > 0)
        history->begin_usec += step->span_usec;
    history->last++;
    step = step_of(history, history->last);
    clear(step);
    step->sequence = history->last;
    return step;
}

/* Finds or adds a row. Sets *ret to NULL if there is no room. Returns 0 or -ENOMEM. */
static int row_of(HistoryStep *step, const char *workload, HistoryRow **ret)
{
    HistoryRow *rows, *row;

    *ret = NULL;
    for (size_t i = 0; i < step->n_rows; i++)
        if (strcmp(step->rows[i].workload, workload) == 0) {
            *ret = &step->rows[i];
            return 0;
        }
    if (step->n_rows == HISTORY_ROWS)
        return 0;
    rows = realloc(step->rows, (step->n_rows + 1) * sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    step->rows = rows;
    row = &rows[step->n_rows];
    *row = (HistoryRow){.workload = strdup(workload)};
    if (!row->workload)
        return -ENOMEM;
    step->n_rows++;
    *ret = row;
    return 0;
}

static int add_run(HistoryRow *row, uint32_t node, uint64_t run)
{
    for (size_t i = 0; i < row->n_runs; i++)
        if (row->runs[i].node == node) {
            row->runs[i].run += run;
            return 0;
        }
    return APPEND(row->runs, row->runs_capacity, row->n_runs, (HistoryRun){.node = node, .run = run});
}

/* Chooses the workloads that run most, in descending order. */
static size_t choose(const World *world, Look *looks)
{
    size_t n = 0;

    for (size_t i = 0; i < world->n_workloads; i++) {
        uint64_t run = world->workloads[i].run_permille;
        size_t at = n;

        if (world->workloads[i].n_tasks == 0)
            continue;
        while (at > 0 && world->workloads[looks[at - 1].workload.i].run_permille < run)
            at--;
        if (at == HISTORY_WORKLOADS)
            continue;
        n = MIN(n + 1, HISTORY_WORKLOADS);
        memmove(&looks[at + 1], &looks[at], (n - at - 1) * sizeof(*looks));
        looks[at] = (Look){.workload = {(int32_t)i}};
    }
    return n;
}

static Look *look_of(Look *looks, size_t n, WorkloadIx workload)
{
    for (size_t i = 0; i < n; i++)
        if (looks[i].workload.i == workload.i)
            return &looks[i];
    return NULL;
}

/* Adds those chosen earlier in this step: its means are of all looks. */
static size_t add_known(World *world, const HistoryStep *step, Look *looks, size_t n)
{
    for (size_t i = 0; i < step->n_rows; i++) {
        const Workload *workload = world_workload_by_name(world, step->rows[i].workload);
        WorkloadIx ix = world_workload_index(world, workload);

        if (workload && !look_of(looks, n, ix))
            looks[n++] = (Look){.workload = ix};
    }
    return n;
}

static void sum_up(const World *world, Look *looks, size_t n)
{
    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *process = &world->processes[i];
        Look *look = process->gone ? NULL : look_of(looks, n, process->workload);
        size_t n_tasks, first = world_process_tasks(world, process, &n_tasks);
        uint32_t local;

        if (!look)
            continue;
        for (size_t k = first; k < first + n_tasks; k++) {
            const Task *task = &world->tasks[k];
            const TopologyCpu *cpu = task->gone ? NULL : topology_cpu(world->topology, task->last_cpu);

            if (cpu)
                look->run[cpu->node.i] += task->run_permille;
        }
        local = would_local_now(world, process);
        if (local == WOULD_UNKNOWN)
            continue;
        look->local_sum += (uint64_t)local * (process->cpu_permille + 1);
        look->local_of += process->cpu_permille + 1;
    }
}

static int add(HistoryStep *step, const World *world, const Look *look)
{
    const Workload *workload = &world->workloads[look->workload.i];
    HistoryRow *row;
    int r = row_of(step, workload->name, &row);

    if (r < 0 || !row)
        return r;
    row->run += workload->run_permille;
    row->wait += workload->wait_permille;
    row->local_sum += look->local_sum;
    row->local_of += look->local_of;
    for (uint32_t i = 0; r == 0 && i < world->topology->n_nodes; i++)
        if (look->run[i] > 0)
            r = add_run(row, world->topology->nodes[i].os_index, look->run[i]);
    return r;
}

/* A counter that went back began again from 0: a new mover has its own. */
static uint64_t since(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : now;
}

static void add_totals(HistoryTotals *sum, const HistoryTotals *before, const HistoryTotals *now)
{
    sum->cpu_usec += since(before->cpu_usec, now->cpu_usec);
    sum->n_homes += since(before->n_homes, now->n_homes);
    sum->n_lends += since(before->n_lends, now->n_lends);
    sum->moved_bytes += since(before->moved_bytes, now->moved_bytes);
}

int history_look(History *history, World *world, const HistoryTotals *totals, uint64_t realtime_usec)
{
    HistoryStep *step = step_now(history);
    Look looks[HISTORY_WORKLOADS + HISTORY_ROWS];
    size_t n = add_known(world, step, looks, choose(world, looks)), n_nodes = world->topology->n_nodes;
    CLEANUP_FREE uint64_t *runs = calloc(n * n_nodes + 1, sizeof(*runs));
    int r = 0;

    if (!runs)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        looks[i].run = &runs[i * n_nodes];
    sum_up(world, looks, n);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add(step, world, &looks[i]);
    step->n_looks++;
    step->realtime_usec = realtime_usec;
    step->span_usec = world->now_usec - history->begin_usec;
    add_totals(&step->totals, &history->last_totals, totals);
    history->last_totals = *totals;
    return r;
}

const HistoryStep *history_next(const History *history, uint64_t after)
{
    uint64_t oldest = history->last > HISTORY_STEPS ? history->last - HISTORY_STEPS + 1 : 1;
    uint64_t sequence = MAX(after + 1, oldest);

    return after < history->last && history->last > 0 ? &history->steps[sequence % HISTORY_STEPS] : NULL;
}
