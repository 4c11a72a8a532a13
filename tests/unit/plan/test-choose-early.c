/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When homes are chosen: before a slow tick, and when the next choice can wait. */

#include "choose-test.h"

#include "base/parse.h"
#include "plan/ablation.h"
#include "plan/planner.h"

static void next_tick(Fixture *f)
{
    for (size_t i = 0; i < f->world->n_tasks; i++) {
        f->world->tasks[i].run_before_permille = f->world->tasks[i].run_permille;
        f->world->tasks[i].wait_before_permille = f->world->tasks[i].wait_permille;
    }
    fixture_wait(f, 100000);
}

/* A program that got a node while it read its input has four threads now. When that was seen twice, or once
 * if they want nearly twice what the home has, it need not wait for a slow tick, nor for MinAgeSec= and
 * MinResidencySec=; but only in its first home and in the one after that. */
static void outgrow(uint32_t n_changes, bool by_far)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, SMALL, AUTO "MinResidencySec=10s\n");
    add_job(&f, 100, 1, 2, 1);
    f.world->processes[0].started_usec = f.world->processes[0].first_seen_usec = f.world->now_usec;
    f.world->groups[0].first_seen_usec = f.world->now_usec;
    set_memory(&f, 100, (uint64_t[]){1000, 0});
    fixture_home(&f);
    assert_nodes(&f, 100, "0");
    for (pid_t tid = 101; tid < 104; tid++) {
        Task *task = fixture_task(&f, 100, tid, 500);

        task->allowed = fixture_mask(&f, "0-1");
        task->original = fixture_mask(&f, NULL);
    }
    set_demand(&f, 100, by_far ? 500 : 450, by_far ? 500 : 400);
    for (size_t i = 0; i < f.world->n_tasks; i++)
        f.world->tasks[i].run_before_permille = f.world->tasks[i].wait_before_permille = 0;
    fixture_cpus(&f, 0, 1, 1000, 2000);
    for (int cpu = 0; cpu < 2; cpu++)
        f.world->cpus[cpu].busy_before_permille = f.world->cpus[cpu].wait_before_permille = 0;
    world_sum(f.world);
    f.world->groups[0].demand_permille = 4000;
    f.world->groups[0].n_changes = n_changes;
    fixture_wait(&f, 100000);
    fixture_plan(&f, false);
    if (!by_far) {
        assert_int_equal(f.plan.n_homes, 0); /* they had not begun in the tick before */
        next_tick(&f);
        fixture_plan(&f, false);
    }
    fixture_commit(&f, NULL);
    assert_int_equal(group_of(&f, 100)->roams, n_changes < 2);
    if (n_changes < 2)
        assert_int_equal(group_of(&f, 100)->last_home_usec, f.world->now_usec);
    if (n_changes == 0) /* it has not gone back: it did not roam before */
        assert_int_equal(group_of(&f, 100)->frozen_until_usec, 0);
    fixture_assert_settled(&f, false);
}

static void test_outgrown(void **state)
{
    for (uint32_t n_changes = 0; n_changes < 3; n_changes++) {
        outgrow(n_changes, false);
        outgrow(n_changes, true);
    }
}

/* A process with one running thread, beside all of its memory, gets a home only after ten times MinAgeSec=:
 * other threads may be about to begin. Not so when the thread waits there; and after MinAgeSec= if the home
 * is to be elsewhere. */
static void test_in_place(void **state)
{
    enum {
        IN_PLACE,
        ONE_SLEEPS,
        TWO_THREADS,
        ELSEWHERE,
        MEMORY_ELSEWHERE,
        WAITS,
        HOME_ELSEWHERE,
        CASES
    };

    for (int i = 0; i < CASES; i++) {
        bool stays = i == IN_PLACE || i == ONE_SLEEPS || i == HOME_ELSEWHERE;
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, SMALL, AUTO);
        if (i == HOME_ELSEWHERE) { /* others fill the node it runs on */
            add_job(&f, 200, 2, 0, 1);
            set_memory(&f, 200, (uint64_t[]){1000, 0});
            set_demand(&f, 200, 1000, 0);
            fixture_home(&f);
            assert_nodes(&f, 200, "0");
        }
        add_job(&f, 100, i == ONE_SLEEPS || i == TWO_THREADS ? 2 : 1, i == ELSEWHERE ? 2 : 0, 1);
        if (i == ONE_SLEEPS)
            fixture_find(&f, 100, 101)->run_permille = 0;
        world_process(f.world, 100)->started_usec = world_process(f.world, 100)->first_seen_usec =
            f.world->now_usec;
        f.world->groups[world_process(f.world, 100)->group.i].first_seen_usec = f.world->now_usec;
        set_memory(&f, 100, (uint64_t[]){1000, i == MEMORY_ELSEWHERE ? 3 : 0});
        if (i == WAITS)
            set_demand(&f, 100, 600, 400);
        fixture_home(&f);
        assert_nodes(&f, 100, stays ? NULL : "0");
        assert_int_equal(f.plan.n_refused[PLAN_REASON_TOO_YOUNG], stays);
        seconds(&f, 1);
        fixture_home(&f);
        assert_nodes(&f, 100, i == HOME_ELSEWHERE ? "1" : stays ? NULL : "0");
        seconds(&f, 8);
        fixture_home(&f);
        assert_nodes(&f, 100, i == HOME_ELSEWHERE ? "1" : stays ? NULL : "0");
        seconds(&f, 1);
        fixture_home(&f);
        assert_nodes(&f, 100, i == HOME_ELSEWHERE ? "1" : "0");
    }
}

/* A program without a home, most of whose threads have just begun, gets one when their load is known. */
static void test_fresh(void **state)
{
    for (unsigned n_fresh = 1; n_fresh < 4; n_fresh++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, SMALL, AUTO);
        add_job(&f, 100, 4, 0, 1);
        for (pid_t tid = 100; tid < 104; tid++) {
            Task *task = fixture_find(&f, 100, tid);

            task->fresh = tid >= 104 - (pid_t)n_fresh;
            task->run_permille = task->run_ewma_permille = task->fresh ? 0 : 1000;
        }
        set_memory(&f, 100, (uint64_t[]){500, 500});
        fixture_home(&f);
        assert_int_equal(group_of(&f, 100)->home || group_of(&f, 100)->roams, n_fresh <= 2);
        set_demand(&f, 100, 1000, 0);
        for (size_t i = 0; i < f.world->n_tasks; i++)
            f.world->tasks[i].fresh = false;
        fixture_home(&f);
        assert_true(group_of(&f, 100)->home || group_of(&f, 100)->roams);
    }
}

/* Two programs that had one thread each got the node of their memory, and have two threads now. Each alone
 * would fit the node. One of them goes to the other node, if that is idle. */
static void crowd(uint16_t busy_permille)
{
    CLEANUP(fixture_done) Fixture f;
    unsigned n_moved = 0;

    fixture_init_with(&f, SMALL, AUTO "MinResidencySec=10s\n");
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        add_job(&f, pid, 1, 0, 1);
        set_memory(&f, pid, (uint64_t[]){10, 0}); /* too little to press on the node */
    }
    fixture_home(&f);
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        Task *task = fixture_task(&f, pid, pid + 1, 500);

        assert_nodes(&f, pid, "0");
        task->allowed = fixture_mask(&f, "0-1");
        task->original = fixture_mask(&f, NULL);
    }
    for (pid_t pid = 100; pid <= 200; pid += 100)
        set_demand(&f, pid, 500, 500);
    fixture_cpus(&f, 0, 1, 1000, 2000);
    fixture_cpus(&f, 2, 3, busy_permille, 0);
    world_sum(f.world);
    next_tick(&f);
    next_tick(&f);
    fixture_plan(&f, false);
    fixture_commit(&f, NULL);
    for (pid_t pid = 100; pid <= 200; pid += 100)
        n_moved += group_of(&f, pid)->home_nodes == fixture_mask(&f, "1");
    assert_int_equal(n_moved, busy_permille == 0);
}

static void test_crowded(void **state)
{
    crowd(0);
    crowd(1000);
}

/* Two programs of four threads got their homes when one or two had begun, and share one of four nodes. No
 * thread waits for more than a quarter of its time, and the fourth node is idle. */
static void crowd_one_node(uint16_t busy_permille, uint16_t wait_permille)
{
    CLEANUP_BITMAP hwloc_bitmap_t both = hwloc_bitmap_alloc();
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, "numa:4 l3:1 core:2 pu:1 distances=10,20,20,20,20,10,20,20,20,20,10,20,20,20,20,10",
                      AUTO "MinResidencySec=10s\n");
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        add_job(&f, pid, 1, 0, 1);
        set_memory(&f, pid, (uint64_t[]){10, 0, 0, 0});
    }
    fixture_home(&f);
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        Group *group = &f.world->groups[world_process(f.world, pid)->group.i];

        for (pid_t tid = pid + 1; tid < pid + 4; tid++)
            fixture_task(&f, pid, tid, 250)->original = fixture_mask(&f, NULL);
        group->home = fixture_mask(&f, pid == 100 ? "0-3" : "0-1,4-5");
        group->home_nodes = fixture_mask(&f, pid == 100 ? "0-1" : "0,2");
        set_demand(&f, pid, 750, 250);
    }
    for (size_t i = 0; i < f.world->n_tasks; i++)
        f.world->tasks[i].allowed = group_of(&f, f.world->tasks[i].tid < 200 ? 100 : 200)->home;
    fixture_cpus(&f, 0, 1, 1000, wait_permille);
    fixture_cpus(&f, 2, 5, 1000, 0);
    fixture_cpus(&f, 6, 7, busy_permille, 0);
    world_sum(f.world);
    next_tick(&f);
    next_tick(&f);
    fixture_plan(&f, false);
    fixture_commit(&f, NULL);
    for (size_t i = 0; i < f.world->n_groups; i++)
        assert_true(hwloc_bitmap_or(both, both, f.world->groups[i].home_nodes) == 0);
    assert_int_equal(hwloc_bitmap_weight(both), busy_permille == 0 && wait_permille >= 1000 ? 4 : 3);
}

static void test_crowded_in_part(void **state)
{
    crowd_one_node(0, 1000);
    crowd_one_node(1000, 1000);
    crowd_one_node(0, 500); /* three threads on two CPUs: lends suffice */
}

/* Two programs of four threads that began to work in the middle of the tick, with all memory on one of four
 * nodes. Three nodes suffice for the load seen, but not for what the threads want. */
static void begin(uint16_t before_permille, bool rule, int n_nodes)
{
    CLEANUP_BITMAP hwloc_bitmap_t both = hwloc_bitmap_alloc();
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, "numa:4 l3:1 core:2 pu:1 distances=10,20,20,20,20,10,20,20,20,20,10,20,20,20,20,10",
                      AUTO);
    f.world->ablated = rule ? 0 : (uint64_t)1 << ABLATION_BEGUN;
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        add_job(&f, pid, 4, pid == 100 ? 0 : 4, 1);
        set_memory(&f, pid, (uint64_t[]){64, 0, 0, 0});
        set_demand(&f, pid, 780, 0);
        f.world->groups[world_process(f.world, pid)->group.i].first_seen_usec = f.world->now_usec - 100000;
    }
    for (size_t i = 0; i < f.world->n_tasks; i++)
        f.world->tasks[i].run_before_permille = before_permille;
    fixture_cpus(&f, 0, 7, 780, 0);
    world_sum(f.world);
    fixture_home(&f);
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        assert_int_equal(hwloc_bitmap_weight(group_of(&f, pid)->home_nodes), 2);
        assert_true(hwloc_bitmap_or(both, both, group_of(&f, pid)->home_nodes) == 0);
    }
    assert_int_equal(hwloc_bitmap_weight(both), n_nodes);
}

static void test_begun(void **state)
{
    begin(0, true, 4);
    begin(0, false, 3);
    begin(780, true, 3);
}

/* A plan that decides nothing says so, except while something is about to change by itself. */
static void test_settled(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, SMALL, AUTO);
    add_job(&f, 100, 2, 0, 1);
    fixture_plan(&f, true);
    assert_false(f.plan.settled); /* its first home is due */
    fixture_commit(&f, NULL);
    seconds(&f, 1);
    fixture_plan(&f, false);
    assert_false(f.plan.settled); /* a fast tick chooses no homes */
    fixture_plan(&f, true);
    assert_false(f.plan.settled); /* the place of its memory is not known */
    set_memory(&f, 100, (uint64_t[]){1000, 0});
    fixture_place(&f);
    seconds(&f, 1);
    set_memory(&f, 100, (uint64_t[]){1000, 0});
    fixture_plan(&f, true);
    assert_true(f.plan.settled);
    set_demand(&f, 100, 800, 200);
    world_sum(f.world);
    fixture_plan(&f, true);
    assert_false(f.plan.settled); /* an idle CPU could be lent at any time */
    fixture_cpus(&f, 0, 3, 1000, 0);
    fixture_tick(&f);
    fixture_cpus(&f, 0, 3, 1000, 0);
    fixture_plan(&f, true);
    assert_true(f.plan.full);
    assert_true(f.plan.settled); /* no CPU is idle, and fast ticks tell which thread waits */
}

/* Notes what the threads are seen to use, `private_permille` of it alone: the first on node 0, the others on
 * node 1. */
static void see_use(Fixture *f, pid_t pid, uint16_t private_permille)
{
    size_t n, first = world_process_tasks(f->world, world_process(f->world, pid), &n);

    for (size_t i = first; i < first + n; i++)
        assert_int_equal(world_set_task_use(f->world, &f->world->tasks[i],
                                            (uint64_t[]){1000 * (i == first), 1000 * (i > first)},
                                            private_permille, (TaskKey){0}, f->world->now_usec),
                         0);
}

/* Adds a new job with its memory as given; how its threads use that is still to be seen. */
static void add_apart_on(Fixture *f, const char *machine, const char *policy, unsigned n_threads,
                         const uint64_t *mib)
{
    fixture_init_with(f, machine, policy);
    add_job(f, 100, n_threads, 0, 2);
    set_memory(f, 100, mib);
    world_process(f->world, 100)->use_awaited = true;
    world_sum(f->world);
}

static void add_apart(Fixture *f, const char *policy, unsigned n_threads, const uint64_t *mib)
{
    add_apart_on(f, SMALL, policy, n_threads, mib);
}

/* Three nodes would do for twenty threads, although one of the four has more of their memory than any other:
 * the rest may belong to single threads. Memory as small as stacks does not count. */
static void test_uneven(void **state)
{
    static const struct {
        uint64_t mib[4];
        unsigned n_threads;
        bool awaited;
    } cases[] = {
        {{30, 30, 30, 60}, 20, true},  {{30, 30, 30, 60}, 30, false}, {{10, 10, 10, 70}, 20, true},
        {{10, 10, 10, 70}, 30, false}, {{3, 3, 30, 70}, 20, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        add_apart_on(&f, FOUR, AUTO, cases[i].n_threads, cases[i].mib);
        fixture_plan(&f, false);
        assert_int_equal(f.plan.scratch->groups[0].put_off, cases[i].awaited);
    }
}

/* A process that needs both nodes is not brought together, so there is nothing to wait for; but on a full
 * machine it may have to do with less. */
static void test_needs_both(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        CLEANUP(fixture_done) Fixture f;

        add_apart(&f, AUTO, 3, (uint64_t[]){40, 60});
        if (i > 0)
            add_job(&f, 200, 6, 0, 1);
        fixture_plan(&f, false);
        assert_int_equal(f.plan.n_refused[PLAN_REASON_USE_AWAITED], i);
    }
}

/* Memory lies on two nodes: the first home waits until it is seen whether the threads share it. If not, each
 * stays with its own; so do those of a young process, which otherwise gets as small a home as fits. */
static void test_lies_apart(void **state)
{
    for (uint16_t private_permille = 0; private_permille <= 1000; private_permille += 1000) {
        CLEANUP(fixture_done) Fixture f;
        Task *task;

        add_apart(&f, AUTO, 2, (uint64_t[]){40, 60});
        task = fixture_task(&f, 100, 102, 0); /* runs a little, too */
        task->run_permille = task->run_before_permille = task->run_ewma_permille = 20;
        fixture_plan(&f, false);
        assert_int_equal(f.plan.n_homes, 0);
        assert_int_equal(f.plan.n_refused[PLAN_REASON_USE_AWAITED], 1);
        next_tick(&f);
        see_use(&f, 100, private_permille);
        fixture_plan(&f, false);
        fixture_commit(&f, NULL);
        assert_nodes(&f, 100, private_permille > 0 ? "0-1" : "1");
        for (int i = 0; i < 2 && private_permille > 0; i++)
            assert_int_equal(fixture_find(&f, 100, 100 + i)->home_node.i, i);
    }
}

/* The home does not wait when use cannot be seen, is not seen in time, or decides nothing. */
static void test_need_not_wait(void **state)
{
    enum {
        UNSEEN,
        LATE,
        LITTLE,
        MOSTLY_ON_ONE,
        ONE_THREAD,
        IDLE,
        PINNED,
        COMPRESS,
        ONE_NODE,
        N_CASES
    };
    static const char *const policies[N_CASES] = {
        [COMPRESS] = EACH "[Placement]\nMode=compress\n",
        [ONE_NODE] = AUTO "MaxNodes=1\n",
    };

    for (unsigned i = 0; i < N_CASES; i++) {
        CLEANUP(fixture_done) Fixture f;

        add_apart(&f, policies[i] ? policies[i] : AUTO, i == ONE_THREAD ? 1 : 2,
                  i == LITTLE          ? (uint64_t[]){10, 15}
                  : i == MOSTLY_ON_ONE ? (uint64_t[]){20, 60}
                                       : (uint64_t[]){40, 60});
        if (i == UNSEEN)
            world_process(f.world, 100)->use_awaited = false;
        if (i == LATE)
            f.world->now_usec += 1500000;
        if (i == IDLE)
            set_demand(&f, 100, 400, 0);
        if (i == PINNED)
            fixture_find(&f, 100, 101)->hands = TASK_HANDS_FOREIGN;
        world_sum(f.world);
        fixture_plan(&f, false);
        assert_int_equal(f.plan.n_refused[PLAN_REASON_USE_AWAITED], 0);
        fixture_commit(&f, NULL);
        assert_nodes(&f, 100, "1");
    }
}

/* Memory is guessed to be where the process ran. With much memory it stays there, even if another node has
 * more room; with little it need not. */
static void test_guessed_memory(void **state)
{
    for (uint64_t mb = 0; mb <= 64; mb += 64) {
        unsigned here = 0;
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, "numa:2 l3:1 core:6 pu:1 distances=10,20,20,10", AUTO);
        for (int i = 0; i < 3; i++) {
            add_job(&f, 100 + 100 * i, 2, 2 * i, 1);
            world_process(f.world, 100 + 100 * i)->rss_bytes = mb * MIB;
        }
        seconds(&f, 3);
        fixture_place(&f);
        for (int i = 0; i < 3; i++)
            here += hwloc_bitmap_isset(group_of(&f, 100 + 100 * i)->home_nodes, 0) != 0;
        assert_true(mb > 0 ? here == 3 : here < 3);
        fixture_assert_settled(&f, true);
    }
}

TEST_MAIN(NULL, NULL, test_guessed_memory, test_outgrown, test_in_place, test_crowded, test_crowded_in_part,
          test_begun, test_settled, test_lies_apart, test_need_not_wait, test_needs_both, test_uneven,
          test_fresh)
