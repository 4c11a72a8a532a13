/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads of one process that pause, or wait for CPUs, on different nodes (P11, P15; plan/home/pool.h). */

#include "plan/ablation.h"
#include "thread-homes-test.h"

/* The threads have most memory on one node, two of them run on each. Those that pause much get the node where they run,
 * others, and all if memory does not follow, that of their memory as far as there is room. */
static void test_stays_where_it_pauses(void **state)
{
    static const struct {
        uint16_t permille; /* CPU time of each thread */
        bool known, ablated, no_follow;
        bool stays;
    } cases[] = {
        {600, true, false, false, true}, {650, true, false, false, true},   {750, true, false, false, false},
        {600, true, true, false, false}, {600, false, false, false, false}, {1000, true, false, false, false},
        {600, true, false, true, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        init_with(&f, cases[i].no_follow ? AUTO "[Memory]\nFollow=no\n" : AUTO);
        f.world->ablated = cases[i].ablated ? 1ULL << ABLATION_HERE : 0;
        for (pid_t tid = 10; tid < 14; tid++) {
            Task *task = fixture_find(&f, 10, tid);

            task->run_permille = task->run_before_permille = task->run_ewma_permille = cases[i].permille;
            task->last_cpu.i = cases[i].known ? (tid % 2 ? 2 : 0) : -1;
            use(&f, tid, 1000 + (uint64_t)(tid % 2) * 1000, 0, 1000, 0);
        }
        place(&f);
        assert_nodes(&f, cases[i].stays ? (int[]){0, 1, 0, 1} : (int[]){1, 0, 1, 0});
    }
}

static void set_pausing(Fixture *f, pid_t tid, int cpu)
{
    Task *task = fixture_find(f, 10, tid);

    task->run_permille = task->run_before_permille = task->run_ewma_permille = 600;
    task->last_cpu.i = cpu;
}

/* Eight threads that pause run on two nodes of two CPUs, by fours. Of two nothing is known yet. The others all stay,
 * too: the node of these two has no more room than the other one. */
static void test_stays_beside_unknown(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    for (pid_t tid = 14; tid < 18; tid++)
        fixture_task(&f, 10, tid, 0);
    for (pid_t tid = 10; tid < 18; tid++) {
        set_pausing(&f, tid, tid < 14 ? 0 : 2);
        fixture_find(&f, 10, tid)->run_ewma_permille = 500;
        if (tid < 16)
            use(&f, tid, 1000, 0, 1000, 0);
    }
    place(&f);
    for (pid_t tid = 10; tid < 16; tid++)
        assert_int_equal(fixture_find(&f, 10, tid)->home_node.i, tid >= 14);
}

/* Threads that pause much are exchanged like others once they have a node. */
static void test_flip_of_pausing(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    start_apart(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        set_pausing(&f, tid, tid < 12 ? 0 : 2);
    use(&f, 11, 0, 1000, 1000, 0);
    use(&f, 12, 1000, 0, 1000, 0);
    place(&f);
    assert_nodes(&f, (int[]){0, 1, 0, 1});
}

/* A set stays beside its memory wherever its first thread pauses. */
static void test_sets_of_pausing(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, 0, tid ^ 1);
    set_pausing(&f, 10, 2);
    set_pausing(&f, 12, 0);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
}

/* Eight threads that pause, on two nodes of two CPUs, each beside its memory. Threads on the node where they wait want
 * more, but stay, because they would wait as much on the other one. If they never paused, two of them would go. */
static void test_pausing(void **state)
{
    for (unsigned steady = 0; steady < 2; steady++) {
        unsigned n_moved = 0;
        CLEANUP(fixture_done) Fixture f;

        init(&f);
        for (pid_t tid = 14; tid < 18; tid++)
            fixture_task(&f, 10, tid, 0);
        for (pid_t tid = 10; tid < 18; tid++)
            use(&f, tid, tid < 14 ? 1000 : 0, tid < 14 ? 0 : 1000, 1000, 0);
        place(&f);
        for (pid_t tid = 10; tid < 18; tid++) {
            Task *task = fixture_find(&f, 10, tid);
            bool waits = tid < 14;

            assert_int_equal(task->home_node.i, !waits);
            task->run_permille = task->run_before_permille = task->run_ewma_permille = waits ? 500 : 150;
            task->wait_permille = task->wait_before_permille = task->wait_ewma_permille =
                waits ? (steady ? 500 : 400) : 50;
        }
        f.world->now_usec += 20000000;
        fixture_plan(&f, true);
        fixture_commit(&f, NULL);
        for (pid_t tid = 10; tid < 18; tid++)
            n_moved += fixture_find(&f, 10, tid)->home_node.i != (tid >= 14);
        assert_int_equal(n_moved > 0, steady);
    }
}

static void set_load(Fixture *f, uint16_t run, uint16_t wait, uint16_t idle)
{
    Group *group = &f->world->groups[0];

    for (pid_t tid = 10; tid < 14; tid++) {
        Task *task = fixture_find(f, 10, tid);

        task->run_permille = task->run_before_permille = task->run_ewma_permille = run;
        task->wait_permille = task->wait_before_permille = task->wait_ewma_permille = wait;
    }
    group->run_permille = 4 * (uint32_t)run;
    group->wait_permille = 4 * (uint32_t)wait;
    group->want_permille = group->demand_permille = 4 * (uint32_t)(run + wait);
    for (size_t i = 0; i < 4; i++)
        f->world->cpus[i].busy_permille = f->world->cpus[i].busy_before_permille = 1000 - idle;
}

/* Four threads, two on each node, wait a quarter of what they want, while CPUs are idle for as long: they
 * share all CPUs for two seconds. They go on sharing if they wait less then. Otherwise, or if nothing is
 * measured in time, they get their nodes back. If no CPU is idle it is not tried. */
static void test_pool(void **state)
{
    enum {
        HELPS,
        IN_VAIN,
        LATE,
        FULL,
        N_CASES
    };

    for (int i = 0; i < N_CASES; i++) {
        CLEANUP(fixture_done) Fixture f;

        start_apart(&f);
        fixture_wait(&f, 20000000);
        set_load(&f, 450, 150, i == FULL ? 0 : 400);
        place(&f);
        assert_nodes(&f, i == FULL ? (int[]){0, 0, 1, 1} : (int[]){-1, -1, -1, -1});
        assert_int_equal(f.world->groups[0].pool_before_permille, i == FULL ? 0 : 250);
        if (i == FULL)
            continue;
        fixture_wait(&f, 1900000);
        place(&f);
        assert_nodes(&f, (int[]){-1, -1, -1, -1});
        assert_int_equal(f.plan.n_refused[PLAN_REASON_POOLED], 1);
        fixture_wait(&f, i == LATE ? 10100001 : 100000);
        set_load(&f, i == IN_VAIN ? 450 : 590, i == IN_VAIN ? 150 : 10, 400);
        place(&f);
        assert_nodes(&f, i == HELPS ? (int[]){-1, -1, -1, -1} : (int[]){0, 0, 1, 1});
        assert_int_equal(f.world->groups[0].pool_before_permille, 0);

        /* For ten minutes. */
        set_load(&f, 450, 150, 400);
        fixture_wait(&f, 599000000);
        place(&f);
        assert_nodes(&f, i == HELPS ? (int[]){-1, -1, -1, -1} : (int[]){0, 0, 1, 1});
        fixture_wait(&f, 1000000);
        place(&f);
        assert_nodes(&f, i == HELPS ? (int[]){0, 0, 1, 1} : (int[]){-1, -1, -1, -1});
    }
}

/* Sets the progress of the threads, as counted just now. */
static void set_progress(Fixture *f, uint16_t ipc)
{
    Process *process = &f->world->processes[0];

    process->stall_permille = 500;
    process->ipc_permille = ipc;
    process->stall_usec = f->world->now_usec;
    process->cpu_permille = 1800;
}

/* If progress is counted, waiting for a twentieth is enough for a trial. It lasts until progress is counted
 * again, ten seconds at most, and that decides: even against waiting, but not if the threads only have more
 * to do. A count from before the threads had their nodes, or from before the trial, is ignored. */
static void test_pool_by_progress(void **state)
{
    static const struct {
        uint16_t ipc_before, ipc_then; /* 0: not counted */
        bool waits_less, tried, kept;
    } cases[] = {
        {1000, 1400, true, true, true}, {1000, 1400, false, true, false}, {1000, 1000, true, true, false},
        {1000, 700, true, true, false}, {1000, 0, true, true, false},     {0, 0, false, false, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;
        const uint16_t waits = 40;

        start_apart(&f);
        fixture_wait(&f, 10000000);
        set_progress(&f, 2000);
        fixture_wait(&f, 10000000);
        if (cases[i].ipc_before > 0)
            set_progress(&f, cases[i].ipc_before);
        else
            f.world->groups[0].apart_usec = f.world->processes[0].stall_usec;
        set_load(&f, 560, waits, 400);
        place(&f);
        assert_nodes(&f, cases[i].tried ? (int[]){-1, -1, -1, -1} : (int[]){0, 0, 1, 1});
        if (!cases[i].tried)
            continue;
        assert_int_equal(f.world->groups[0].pool_progress, 4 * 560 * cases[i].ipc_before / 1000);
        assert_int_equal(f.world->processes[0].stall_due_usec, f.world->now_usec + 1000000);
        f.world->processes[0].ipc_permille = 4000; /* from before the trial */
        fixture_wait(&f, 2000000);
        if (cases[i].ipc_then > 0)
            set_progress(&f, cases[i].ipc_then);
        set_load(&f, cases[i].waits_less ? 590 : 560, cases[i].waits_less ? 10 : waits, 400);
        place(&f);
        assert_nodes(&f,
                     cases[i].kept || cases[i].ipc_then == 0 ? (int[]){-1, -1, -1, -1} : (int[]){0, 0, 1, 1});
        fixture_wait(&f, 10100000);
        place(&f);
        assert_nodes(&f, cases[i].kept ? (int[]){-1, -1, -1, -1} : (int[]){0, 0, 1, 1});
    }
}

TEST_MAIN(NULL, NULL, test_stays_where_it_pauses, test_stays_beside_unknown, test_flip_of_pausing,
          test_sets_of_pausing, test_pausing, test_pool, test_pool_by_progress)
