/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P4: where new groups get their first homes (S-PUSH): idle core, idle CPU, least loaded, where they run; and
 * which threads are pushed to an idle core later. */

#include "choose-test.h"
#include "plan/ablation.h"

/* Two nodes of four cores, each core of two CPUs. */
#define CORES "numa:2 l3:1 core:4 pu:2 distances=10,20,20,10"

static unsigned count_on(Fixture *f, pid_t first, unsigned n, const char *nodes)
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++)
        count += group_of(f, first + (pid_t)i)->home_nodes == fixture_mask(f, nodes);
    return count;
}

/* S-PUSH: eight arrivals in one tick, all born on node 0, get eight cores; a ninth shares a core on the node
 * where it runs. */
static void test_s_push(void **state)
{
    for (unsigned n = 8; n <= 9; n++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, CORES, AUTO);
        for (unsigned i = 0; i < n; i++) {
            add_job(&f, (pid_t)(100 + i), 1, (int)(i % 8), 1);
            set_memory(&f, (pid_t)(100 + i), (uint64_t[]){1, 0});
        }
        fixture_plan(&f, true);
        assert_int_equal(fixture_count(&f, PLAN_KIND_SET_HOME), n);
        fixture_commit(&f, NULL);
        assert_int_equal(count_on(&f, 100, n, "0"), n == 8 ? 4 : 5);
        assert_int_equal(count_on(&f, 100, n, "1"), 4);
        fixture_assert_settled(&f, true);
    }
}

/* Cores that unplaced tasks use all the time are not idle. */
static void test_busy_cores(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, CORES, AUTO);
    f.world->nodes[0].others_permille = 3000;
    for (pid_t pid = 100; pid < 105; pid++)
        add_job(&f, pid, 1, 0, 1);
    fixture_home(&f);
    assert_int_equal(count_on(&f, 100, 5, "0"), 1);
    assert_int_equal(count_on(&f, 100, 5, "1"), 4);
}

/* Idle CPUs come before waiting: when no core is left, the siblings of both nodes are used before two threads
 * share a CPU. */
static void test_idle_cpus(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, CORES, AUTO);
    for (pid_t pid = 100; pid < 116; pid++)
        add_job(&f, pid, 1, 0, 1);
    fixture_home(&f);
    assert_int_equal(count_on(&f, 100, 16, "0"), 8);
    assert_int_equal(count_on(&f, 100, 16, "1"), 8);
}

/* Sets up a process with a home of two nodes of three, CPUs 0-15. Its `n` busy threads run on siblings of
 * node 0, which is full. */
static void begin_packed(Fixture *f, unsigned n)
{
    fixture_init_with(f, "numa:3 l3:1 core:4 pu:2", EACH "[Placement]\nMode=fixed\nNodes=0-1\n");
    add_job(f, 100, n, 0, 1);
    fixture_home(f);
    set_demand(f, 100, 1000, 0);
    fixture_cpus(f, 0, 7, 1000, 0);
    fixture_cpus(f, 8, 15, 0, 0);
    fixture_tick(f);
}

/* Of four threads on two cores two are pushed to cores of the other node, one to each, and no more. Their
 * masks stay. */
static void test_idle_core(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    begin_packed(&f, 4);
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 2);
    for (size_t i = 0; i < 2; i++) {
        const PlanAction *a = fixture_action(&f, PLAN_KIND_PUSH, i);

        assert_int_equal(a->rule, PLAN_RULE_IDLE_CORE);
        assert_ptr_equal(a->from, a->to);
        assert_ptr_equal(a->to, fixture_mask(&f, "0-15"));
        assert_int_equal(a->cpu.i, i == 0 ? 8 : 10);
        assert_true(a->cross_node);
        assert_int_equal(a->distance, 20);
    }
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, false);
}

/* Five threads on the four CPUs of a node: two that may not leave share a CPU, and the fifth, which has a CPU of its
 * own, is pushed to an idle CPU of its home. Not if the waiting threads may go to an idle CPU themselves. */
static void test_in_the_way(void **state)
{
    for (unsigned free = 0; free < 2; free++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, "numa:3 l3:1 core:4 pu:1", EACH "[Placement]\nMode=fixed\nNodes=0-1\n");
        fixture_policy(&f, "b", EACH "[Placement]\nMode=fixed\nNodes=0\n");
        add_job(&f, 100, 1, 0, 1);
        fixture_process(&f, 200, free ? "a" : "b", NULL);
        for (pid_t tid = 200; tid < 204; tid++)
            fixture_task(&f, 200, tid, 0)->last_cpu.i = MIN(tid - 199, 3);
        fixture_home(&f);
        set_demand(&f, 100, 1000, 0);
        set_demand(&f, 200, 1000, 0);
        for (pid_t tid = 202; tid < 204; tid++) {
            Task *task = fixture_find(&f, 200, tid);

            task->run_permille = task->run_before_permille = 500;
            task->wait_permille = task->wait_before_permille = 500;
        }
        fixture_cpus(&f, 0, 3, 1000, 0);
        fixture_cpus(&f, 4, 11, 0, 0);
        fixture_tick(&f);
        fixture_plan(&f, false);
        assert_int_equal(fixture_count(&f, PLAN_KIND_PUSH), !free);
        if (!free) {
            assert_int_equal(fixture_action(&f, PLAN_KIND_PUSH, 0)->subject.tid, 100);
            assert_int_equal(fixture_action(&f, PLAN_KIND_PUSH, 0)->cpu.i, 4);
        }
    }
}

/* A push that failed is not tried again at once. */
static void test_push_fails(void **state)
{
    PlanOutcome outcomes[2] = {PLAN_OUTCOME_RETRY, PLAN_OUTCOME_UNJOURNALLED};
    CLEANUP(fixture_done) Fixture f;

    begin_packed(&f, 4);
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 2);
    fixture_commit(&f, outcomes);
    fixture_tick(&f);
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_PUSH), 2); /* of the other threads */
    assert_int_not_equal(fixture_action(&f, PLAN_KIND_PUSH, 0)->subject.tid, 100);
}

/* Not pushed: a thread that pauses, was moved a moment ago, has no core idle as a whole, has an idle core on
 * its node, runs outside its home, or whose policy has Steal=no; if loads are not known; or if others share
 * the target core. No more threads than may cross nodes. */
static void test_not_pushed(void **state)
{
    for (int which = 0; which < 10; which++) {
        size_t n = which == 4 ? 1 : 0;
        CLEANUP(fixture_done) Fixture f;

        begin_packed(&f, 4);
        for (pid_t tid = 100; tid < 104; tid++) {
            Task *task = fixture_find(&f, 100, tid);

            if (which == 0)
                task->run_before_permille = 800;
            if (which == 1)
                task->last_move_usec = f.world->now_usec - 1;
            if (which == 7)
                task->last_cpu.i += 16;
        }
        for (int cpu = 8; cpu < 16 && which == 2; cpu += 2)
            fixture_cpu(&f, cpu, 400, 0);
        f.policies->policies[0]->steal = which != 3;
        f.policies->policies[0]->cross_node_burst = which == 4 ? 1 : 400;
        if (which == 5)
            f.world->ablated = 1ULL << ABLATION_PUSH;
        if (which == 6)
            fixture_cpus(&f, 6, 7, 0, 0);
        if (which == 9)
            fixture_cpus(&f, 8, 9, 1000, 0);
        fixture_cpus(&f, 16, 23, which == 7 ? 1000 : 0, 0);
        f.world->partial = which == 8;
        fixture_plan(&f, false);
        assert_int_equal(fixture_count(&f, PLAN_KIND_PUSH), n);
    }
}

/* In a tie a group stays where it runs: neither its number nor that of a node moves it. */
static void test_stays(void **state)
{
    for (int left = 0; left < 2; left++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, TWO_SHARDS, AUTO);
        add_job(&f, 100, 8, left ? 0 : 8, 1);
        add_job(&f, 200, 8, left ? 8 : 0, 1);
        set_memory(&f, 100, (uint64_t[]){512, 512});
        set_memory(&f, 200, (uint64_t[]){512, 512});
        fixture_home(&f);
        assert_nodes(&f, 100, left ? "0" : "1");
        assert_nodes(&f, 200, left ? "1" : "0");
    }
}

TEST_MAIN(NULL, NULL, test_s_push, test_busy_cores, test_idle_cpus, test_stays, test_idle_core,
          test_push_fails, test_not_pushed, test_in_the_way)
