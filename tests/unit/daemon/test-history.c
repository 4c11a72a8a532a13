/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The last day: what a step sums up, when a step begins, and which steps are kept. */

#include "../machine.h"
#include "daemon/tables/history.h"
#include "world/load.h"

#define SEC         1000000ULL
#define GIB         (1ULL << 30)
#define N_WORKLOADS 30U

typedef struct Fixture {
    Topology *topology;
    World *world;
    History *history;
    HistoryTotals totals;
} Fixture;

/* Workloads of one process with one thread each, on two nodes of two CPUs. The last ones run most. */
static int setup(void **state)
{
    Fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->topology = test_machine("numa:2 core:2 pu:1");
    assert_int_equal(world_new(f->topology, &f->world), 0);
    f->world->now_usec = 1000 * SEC;
    for (int i = 0; i < (int)N_WORKLOADS; i++) {
        Process process = {.pid = 100 + i, .start_ticks = 7, .workload = {i}, .group = {i}};
        Task task = {.tid = 100 + i,
                     .process = {i},
                     .start_ticks = 7,
                     .last_cpu = {i % 4},
                     .lease = -1,
                     .home_node = NODE_NONE};
        char name[16];

        (void)snprintf(name, sizeof(name), "w%d", i);
        assert_int_equal(world_add_workload(f->world, name, 0), i);
        assert_int_equal(world_add_group(f->world, process.workload, ""), i);
        process.comm = intern_string(f->world->pool, name);
        process.cgroup = intern_string(f->world->pool, "/");
        process.cpuset = intern_mask(f->world->pool, f->topology->all_cpus);
        assert_int_equal(world_add_process(f->world, &process), i);
        task.allowed = process.cpuset;
        task.run_permille = task.run_ewma_permille = (uint16_t)(10 * i);
        assert_true(world_add_task(f->world, &task) >= 0);
    }
    world_sum(f->world);
    f->history = history_new(f->world->now_usec);
    assert_non_null(f->history);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Fixture *f = *state;

    history_free(f->history);
    world_free(f->world);
    topology_unref(f->topology);
    return 0;
}

static void look(Fixture *f, uint64_t after_usec)
{
    f->world->now_usec += after_usec;
    assert_int_equal(history_look(f->history, f->world, &f->totals, f->world->now_usec + 5000 * SEC), 0);
}

static const HistoryRow *find(const HistoryStep *step, const char *workload)
{
    for (size_t i = 0; i < step->n_rows; i++)
        if (strcmp(step->rows[i].workload, workload) == 0)
            return &step->rows[i];
    return NULL;
}

/* The dozen workloads that run most, where they run, and how much of their memory is there. */
static void test_look(void **state)
{
    const uint64_t bytes[2] = {3 * GIB, GIB};
    Fixture *f = *state;
    const HistoryStep *step;
    const HistoryRow *row;

    assert_null(history_next(f->history, 0));
    assert_int_equal(
        world_set_process_memory(f->world, &f->world->processes[N_WORKLOADS - 1], bytes, f->world->now_usec),
        0);
    look(f, 0);
    look(f, SEC);
    step = history_next(f->history, 0);
    assert_non_null(step);
    assert_null(history_next(f->history, step->sequence));
    assert_int_equal(step->sequence, 1);
    assert_int_equal(step->n_looks, 2);
    assert_int_equal(step->span_usec, SEC);
    assert_int_equal(step->realtime_usec, 6001 * SEC);
    assert_int_equal(step->n_rows, HISTORY_WORKLOADS);
    assert_null(find(step, "w17"));
    assert_string_equal(step->rows[0].workload, "w29");

    row = find(step, "w29"); /* on CPU 1, of node 0 */
    assert_int_equal(row->run, 2 * 290);
    assert_int_equal(row->n_runs, 1);
    assert_int_equal(row->runs[0].node, 0);
    assert_int_equal(row->runs[0].run, 2 * 290);
    assert_int_equal(row->local_sum / row->local_of, 750);
    row = find(step, "w18"); /* on CPU 2, of node 1; its memory is not known */
    assert_int_equal(row->runs[0].node, 1);
    assert_int_equal(row->local_of, 0);
}

/* A later workload gets a row as long as there is room, and one that moves is on both nodes. */
static void test_changes(void **state)
{
    Fixture *f = *state;
    const HistoryStep *step;
    const HistoryRow *row;

    look(f, 0);
    for (size_t i = 0; i < N_WORKLOADS; i++) {
        f->world->tasks[i].run_permille = f->world->tasks[i].run_ewma_permille = (uint16_t)(300 - 10 * i);
        f->world->tasks[i].last_cpu = (CpuIx){3 - (int)(i % 4)};
    }
    world_sum(f->world);
    look(f, SEC);
    step = history_next(f->history, 0);
    assert_int_equal(step->n_rows, HISTORY_ROWS);
    assert_int_equal(find(step, "w0")->run, 300);
    f->world->tasks[5].run_permille = f->world->tasks[5].run_ewma_permille = 900;
    f->world->tasks[5].last_cpu = (CpuIx){0};
    world_sum(f->world);
    look(f, SEC);
    assert_int_equal(find(step, "w29")->run, 290 + 10 + 10); /* it is no longer among those that run most */
    row = find(step, "w5");
    assert_int_equal(row->n_runs, 2);
    assert_int_equal(row->runs[0].run + row->runs[1].run, row->run);
}

/* A minute ends with the first sample after it. What was done between two samples belongs to the later one. A
 * counter that restarts loses nothing. */
static void test_steps(void **state)
{
    Fixture *f = *state;
    const HistoryStep *step;

    f->totals = (HistoryTotals){.cpu_usec = 1000, .n_homes = 5};
    look(f, 0);
    f->totals = (HistoryTotals){.cpu_usec = 1700, .n_homes = 6, .n_lends = 2};
    look(f, 59 * SEC);
    step = history_next(f->history, 0);
    assert_int_equal(step->totals.cpu_usec, 1700);
    assert_int_equal(step->totals.n_homes, 6);
    f->totals.moved_bytes = GIB;
    f->totals.cpu_usec = 1900;
    look(f, 2 * SEC);
    assert_null(history_next(f->history, 1));
    step = history_next(f->history, 0);
    assert_int_equal(step->span_usec, 61 * SEC);
    assert_int_equal(step->totals.cpu_usec, 1900);
    f->totals.moved_bytes = 7;
    f->totals.cpu_usec = 2100;
    look(f, 2 * SEC);
    step = history_next(f->history, 1);
    assert_int_equal(step->sequence, 2);
    assert_int_equal(step->span_usec, 2 * SEC);
    assert_int_equal(step->totals.cpu_usec, 200);
    assert_int_equal(step->totals.n_homes, 0);
    assert_int_equal(step->totals.moved_bytes, 7);
    assert_int_equal(history_next(f->history, 0)->n_looks, 3);
    assert_int_equal(history_next(f->history, 0)->totals.moved_bytes, GIB);
}

/* Steps are kept for a day; older ones are gone. */
static void test_day(void **state)
{
    Fixture *f = *state;
    uint64_t after = 0;
    size_t n = 0;

    for (size_t i = 0; i < HISTORY_STEPS + 100; i++)
        look(f, HISTORY_STEP_USEC);
    for (const HistoryStep *step; (step = history_next(f->history, after)); after = step->sequence, n++)
        assert_int_equal(step->sequence, n + 101);
    assert_int_equal(n, HISTORY_STEPS);
    assert_null(history_next(f->history, UINT64_MAX));
}

TEST_MAIN(setup, teardown, test_look, test_changes, test_steps, test_day)
