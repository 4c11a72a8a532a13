/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The choice of homes: where groups go, when they stay, and that the order of arrival does not matter. */

#include "choose-test.h"
#include "plan/choose/choose.h"

/* Asserts that the last plan refused the group for this reason, with these numbers. */
static void assert_refused(const Fixture *f, PlanReason reason, uint64_t value, uint64_t limit)
{
    assert_int_equal(f->plan.n_refused[reason], 1);
    for (size_t i = 0; i < f->plan.n_refusals; i++)
        if (f->plan.refusals[i].reason == reason) {
            assert_int_equal(f->plan.refusals[i].value, value);
            assert_int_equal(f->plan.refusals[i].limit, limit);
        }
}

/* A group that fits a node gets it at first sight: the one with most of its memory, as measured or guessed
 * from where it ran. */
static void test_first_home(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, SMALL, AUTO);
    add_job(&f, 100, 2, 0, 1);
    add_job(&f, 200, 2, 0, 1);
    set_memory(&f, 100, (uint64_t[]){1, 30});
    set_memory(&f, 200, (uint64_t[]){30, 1});

    for (size_t i = 0; i < f.world->n_groups; i++)
        f.world->groups[i].first_seen_usec -= 10000000;
    fixture_plan(&f, false); /* groups that are not new wait for slow ticks */
    assert_int_equal(f.plan.n_actions, 0);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 2);
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_FIRST_HOME);
    assert_int_equal(f.plan.actions[0].mechanism, 15);
    fixture_commit(&f, NULL);
    assert_nodes(&f, 100, "1");
    assert_nodes(&f, 200, "0");
    assert_ptr_equal(fixture_find(&f, 100, 101)->allowed, fixture_mask(&f, "2-3"));
    fixture_assert_settled(&f, true);

    fixture_done(&f);
    fixture_init_with(&f, SMALL, AUTO);
    add_job(&f, 100, 2, 2, 1);
    world_process(f.world, 100)->memory_awaited = true;
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0); /* new, and the place of its memory will soon be known */
    set_memory(&f, 100, (uint64_t[]){1, 30});
    world_process(f.world, 100)->memory_awaited = false;
    fixture_plan(&f, false);
    fixture_commit(&f, NULL);
    assert_nodes(&f, 100, "1");
    fixture_assert_settled(&f, true);
    fixture_done(&f);

    /* A single thread's memory is most likely where it runs. */
    fixture_init_with(&f, SMALL, AUTO);
    add_job(&f, 100, 1, 2, 1);
    world_process(f.world, 100)->memory_awaited = true;
    fixture_place(&f);
    assert_nodes(&f, 100, "1");
    fixture_done(&f);

    /* If it does not become known in time, where the group ran decides. */
    fixture_init_with(&f, SMALL, AUTO);
    add_job(&f, 100, 2, 2, 1);
    world_process(f.world, 100)->memory_awaited = true;
    seconds(&f, 3);
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 0);
    fixture_place(&f);
    assert_nodes(&f, 100, "1");
}

/* A group too wide for a node roams when it would take the whole machine, and is brought together when it shrinks. */
static void test_wide_and_back(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, SMALL, "[Placement]\nMode=auto\n[Workload]\nMinAgeSec=0\n");
    add_job(&f, 100, 4, 0, 1);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_NO_HOME], 1);
    fixture_commit(&f, NULL);
    assert_nodes(&f, 100, NULL);
    assert_true(group_of(&f, 100)->roams);

    set_demand(&f, 100, 400, 0);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0); /* MinResidencySec= */
    seconds(&f, 2);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0); /* no thread waits: not before SettleSec= */
    seconds(&f, 9);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 1);
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_COMPRESS);
    fixture_commit(&f, NULL);
    assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100)->home_nodes), 1);
    fixture_assert_settled(&f, true);

    /* It starves: it runs no more than before, but waits more. */
    set_demand(&f, 100, 500, 500);
    fixture_assert_settled(&f, true);
    seconds(&f, 2);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 1);
    assert_int_equal(f.plan.actions[0].kind, PLAN_KIND_RELEASE);
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_ROAMS);
    fixture_commit(&f, NULL);
    assert_true(group_of(&f, 100)->roams);
    assert_ptr_equal(fixture_find(&f, 100, 102)->allowed, fixture_mask(&f, NULL));
    fixture_assert_settled(&f, true);
}

/* It gets as many nodes as it needs, near ones; fewer again later. */
static void test_spread_and_compress(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, "numa:4 l3:1 core:2 pu:1 distances=10,16,32,32,16,10,32,32,32,32,10,16,32,32,16,10",
                      "[Placement]\nMode=compress\n");
    add_job(&f, 100, 4, 4, 1);
    set_memory(&f, 100, (uint64_t[]){0, 0, 0, 50});
    set_demand(&f, 100, 400, 0);
    fixture_home(&f);
    assert_nodes(&f, 100, "3");

    set_demand(&f, 100, 500, 400);
    seconds(&f, 2);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_SPREAD);
    fixture_commit(&f, NULL);
    assert_nodes(&f, 100, "2-3");
    fixture_assert_settled(&f, true);

    set_demand(&f, 100, 300, 0);
    seconds(&f, 11);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_COMPRESS);
    fixture_commit(&f, NULL);
    assert_nodes(&f, 100, "3");
}

/* Helpers that sleep at the start count if the policy says how wide the group will be. Idle groups are left alone. */
static void test_expected_and_idle(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, "[Placement]\nMode=auto\n[Workload]\nMinAgeSec=0\nExpectWidth=14\n");
    add_job(&f, 100, 14, 8, 1);
    set_demand(&f, 100, 10, 0);
    fixture_place(&f);
    assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100)->home_nodes), 2);
    fixture_done(&f);

    fixture_init_with(&f, FOUR, AUTO);
    add_job(&f, 100, 4, 8, 1);
    set_demand(&f, 100, 10, 0);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
    assert_refused(&f, PLAN_REASON_IDLE, 40, CHOOSE_IDLE_PERMILLE);

    /* With a home, it keeps that when idle, even if other nodes have more room. */
    set_demand(&f, 100, 900, 0);
    fixture_home(&f);
    assert_nodes(&f, 100, "1");
    set_demand(&f, 100, 1, 0);
    seconds(&f, 60);
    fixture_assert_settled(&f, true);
    assert_nodes(&f, 100, "1");
}

/* A group that is to be spread waits for MinAgeSec=, and is called young, not idle. */
static void test_young_spread(void **state)
{
    static const char *const modes[] = {"spread", "interleave"};

    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        CLEANUP(fixture_done) Fixture f;
        char text[128];

        fixture_init(&f, FOUR);
        (void)snprintf(text, sizeof(text), "[Placement]\nMode=%s\n[Workload]\nMinAgeSec=5s\n", modes[i]);
        fixture_policy(&f, "a", text);
        add_job(&f, 100, 4, 8, 1);
        f.world->groups[0].first_seen_usec = f.world->now_usec - 2000000;
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_actions, 0);
        assert_int_equal(f.plan.n_refused[PLAN_REASON_IDLE], 0);
        assert_refused(&f, PLAN_REASON_TOO_YOUNG, 2000000, 5000000);
        assert_false(f.plan.settled); /* time alone prevents it */

        seconds(&f, 3);
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_refused[PLAN_REASON_TOO_YOUNG], 0);
        assert_int_equal(f.plan.n_homes, 1);
    }
}

/* S-SHELL: a young group may get a home, and is not spread if it fits but for some waiting. */
static void test_young(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, "[Placement]\nMode=auto\n[Workload]\nMinAgeSec=5s\n");
    add_job(&f, 100, 4, 16, 1);
    fixture_home(&f);
    assert_nodes(&f, 100, "2");
    for (pid_t tid = 104; tid < 116; tid++)
        fixture_task(&f, 100, tid, 0)->allowed = fixture_mask(&f, "16-23");
    set_demand(&f, 100, 500, 150);
    seconds(&f, 2);
    fixture_place(&f);
    assert_nodes(&f, 100, "2");
    seconds(&f, 5);
    fixture_place(&f);
    assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100)->home_nodes), 2);
}

/* Bounds of the choice: Nodes=, MaxNodes=, the cpuset, a pause, an incomplete World (I1, I10). */
static void test_bounds(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR,
                      "[Placement]\nMode=compress\nNodes=1-2\n[Workload]\nMinAgeSec=0\nGroupBy=process\n");
    add_job(&f, 100, 2, 0, 1);
    fixture_process(&f, 200, "a", "16-31");
    fixture_task(&f, 200, 200, 0)->last_cpu.i = 16;
    set_memory(&f, 200, (uint64_t[]){0, 0, 0, 50});
    fixture_process(&f, 300, "a", "0-7");
    fixture_task(&f, 300, 300, 0)->last_cpu.i = 0;
    f.world->partial = true;
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
    f.world->partial = false;
    f.world->workloads[0].paused = true;
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
    f.world->workloads[0].paused = false;
    fixture_place(&f);
    assert_nodes(&f, 200, "2");
    assert_nodes(&f, 300, NULL); /* its cpuset has none of Nodes= */
    assert_int_equal(f.plan.n_refused[PLAN_REASON_NO_CPUS], 1);
    assert_true(hwloc_bitmap_isincluded(group_of(&f, 100)->home_nodes, fixture_mask(&f, "1-2")));
    fixture_done(&f);

    fixture_init_with(&f, FOUR, "[Placement]\nMode=auto\nMaxNodes=1\n[Workload]\nMinAgeSec=0\n");
    add_job(&f, 100, 20, 0, 1);
    fixture_place(&f);
    assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100)->home_nodes), 1);
}

/* Sets up two groups of the size of a node, each at home on one. */
static void make_pair(Fixture *f)
{
    fixture_init_with(f, SMALL, AUTO);
    add_job(f, 100, 2, 0, 1);
    add_job(f, 200, 2, 2, 1);
    fixture_home(f);
    assert_nodes(f, 100, "0");
    assert_nodes(f, 200, "1");
}

/* In MB: each group has `first` at home, and `second` on the other's node. */
static void set_pair_memory(Fixture *f, uint64_t first, uint64_t second)
{
    set_memory(f, 100, (uint64_t[]){first, second});
    set_memory(f, 200, (uint64_t[]){second, first});
}

/* S-SWAP: two groups, each on the node of the other's memory, are exchanged in one plan when both gain. With
 * less than MinGainPermille= they stay, and also where their memory is at home. */
static void test_exchange(void **state)
{
    static const struct {
        uint64_t mib[2];
        bool swapped;
    } cases[] = {{{0, 1000}, true}, {{490, 510}, false}, {{1000, 0}, false}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const uint64_t *mib = cases[i].mib;
        CLEANUP(fixture_done) Fixture f;

        make_pair(&f);
        set_pair_memory(&f, mib[0], mib[1]);
        seconds(&f, 2);
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_actions, cases[i].swapped ? 2 : 0);
        if (cases[i].swapped) {
            assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_REHOME);
            fixture_commit(&f, NULL);
            assert_nodes(&f, 100, "1");
            assert_nodes(&f, 200, "0");
            fixture_assert_settled(&f, true);
        }
    }
}

/* Memory that has just been moved is measured before a group goes back to where it was. */
static void test_just_come(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_pair(&f);
    set_pair_memory(&f, 0, 1000);
    for (pid_t pid = 100; pid <= 200; pid += 100)
        world_process(f.world, pid)->memory.over_usec = f.world->now_usec;
    seconds(&f, 2);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);

    set_pair_memory(&f, 0, 1000); /* the memory did not move */
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 2);
}

/* One half of an exchange fails: the other is undone, although it has only just been made. */
static void test_half_exchange(void **state)
{
    PlanOutcome outcomes[] = {PLAN_OUTCOME_DONE, PLAN_OUTCOME_REFUSED};
    CLEANUP(fixture_done) Fixture f;

    make_pair(&f);
    set_pair_memory(&f, 0, 1000);
    seconds(&f, 2);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 2);
    fixture_commit(&f, outcomes);
    assert_nodes(&f, 100, "1");
    assert_nodes(&f, 200, "1"); /* the kernel refused */
    fixture_tick(&f);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 1);
    assert_int_equal(f.plan.actions[0].subject.pid, 100);
    fixture_commit(&f, NULL);
    assert_ptr_not_equal(group_of(&f, 100)->home_nodes, fixture_mask(&f, "1"));
}

/* Measure and revert: SettleSec= after the group was sent to its memory, it waits there for pinned threads,
 * more than all others do. It goes back, and stays for PingPongSec=. */
static void test_revert(void **state)
{
    /* 0: it waits less; 1: more; 2: the same share of next to nothing. */
    for (int worse = 0; worse < 3; worse++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, SMALL, AUTO);
        add_job(&f, 100, 2, 0, 1);
        fixture_home(&f);
        set_memory(&f, 100, (uint64_t[]){0, 1000});
        seconds(&f, 2);
        fixture_home(&f);
        assert_nodes(&f, 100, "1");
        assert_int_equal(group_of(&f, 100)->judge_usec, group_of(&f, 100)->last_home_usec + 10000000);
        set_demand(&f, 100, (uint16_t[]){950, 500, 10}[worse], (uint16_t[]){50, 500, 10}[worse]);
        seconds(&f, 8);
        fixture_assert_settled(&f, true);
        seconds(&f, 3);
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_actions, worse == 1);
        fixture_commit(&f, NULL);
        assert_int_equal(group_of(&f, 100)->judge_usec, 0);
        if (worse == 1) {
            assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_REVERT);
            assert_nodes(&f, 100, "0");
            seconds(&f, 50);
            fixture_assert_settled(&f, true);
            seconds(&f, 15);
            fixture_plan(&f, true);
            assert_int_equal(f.plan.n_actions, 1);
        }
    }
}

/* PingPongSec=: a group does not for ever follow memory that is reported here and there. */
static void test_restless(void **state)
{
    unsigned n_moves = 0;
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, EACH "[Placement]\nMode=auto\nSettleSec=1s\nPingPongSec=10min\n");
    add_job(&f, 100, 2, 0, 1);
    fixture_home(&f);
    for (unsigned i = 1; i < 100; i++) {
        uint64_t mib[4] = {0};

        mib[i % 4] = 1000;
        set_memory(&f, 100, mib);
        seconds(&f, 5);
        fixture_plan(&f, true);
        n_moves += (unsigned)fixture_count(&f, PLAN_KIND_SET_HOME);
        fixture_commit(&f, NULL);
    }
    assert_int_equal(n_moves, 4);
}

/* S-JVM: four groups of eight threads, shuffled with their memory over four nodes of eight CPUs. Each is
 * brought together on a node of its own, in one plan of four actions, and nothing moves for 100 ticks. */
static void test_jvm(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, AUTO);
    for (pid_t i = 0; i < 4; i++) {
        add_job(&f, 100 * (i + 1), 8, (int)i, 4);
        set_memory(&f, 100 * (i + 1), (uint64_t[]){250, 250, 250, 250});
    }
    fixture_cpus(&f, 0, 31, 1000, 0);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 4);
    fixture_commit(&f, NULL);
    for (pid_t i = 0; i < 4; i++) {
        assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100 * (i + 1))->home_nodes), 1);
        for (pid_t k = 0; k < i; k++)
            assert_ptr_not_equal(group_of(&f, 100 * (i + 1))->home, group_of(&f, 100 * (k + 1))->home);
    }
    for (unsigned i = 0; i < 100; i++) {
        fixture_tick(&f);
        fixture_plan(&f, i % 10 == 0);
        assert_int_equal(f.plan.n_actions, 0);
    }
}

/* S-FLIP with the groups of the text. Node 0 runs G1's T1 to T3, G2's T4 and T5, G4's T11; node 1 runs G1's
 * T6 to T8, G3's T9 and T10, G5's T12. The exchange is the text's: T6, T7 and T8 with T11, T4 and T5. */
static void test_flip(void **state)
{
    static const struct {
        pid_t pid;
        int cpus[6];
        unsigned n;
        const char *nodes;
    } groups[] = {
        {100, {0, 1, 2, 6, 7, 8}, 6, "0"},
        {200, {3, 4}, 2, "1"},
        {300, {9, 10}, 2, "1"},
        {400, {5}, 1, "1"},
        {500, {11}, 1, "1"},
    };
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, "numa:2 l3:1 core:6 pu:1 distances=10,20,20,10", AUTO);
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        add_job(&f, groups[i].pid, groups[i].n, 0, 1);
        for (unsigned k = 0; k < groups[i].n; k++)
            fixture_find(&f, groups[i].pid, groups[i].pid + (pid_t)k)->last_cpu.i = groups[i].cpus[k];
    }
    fixture_cpus(&f, 0, 11, 1000, 0);
    fixture_place(&f);
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
        assert_nodes(&f, groups[i].pid, groups[i].nodes);
    fixture_assert_settled(&f, true);
}

/* S-RETRY: a hundred processes that start at once are all placed in the first passes, and alike whatever
 * their order. */
static void test_retry(void **state)
{
    static const unsigned strides[] = {1, 37, 99};
    CLEANUP_FREE char *first = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(strides); i++) {
        char nodes[101] = "";
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, "numa:8 l3:1 core:16 pu:1", AUTO);
        for (unsigned k = 0; k < 100; k++) {
            pid_t pid = (pid_t)(1000 + k * strides[i] % 100);

            add_job(&f, pid, 1, 0, 1);
        }
        for (unsigned tick = 0; tick < 2; tick++) /* 64 actions each */
            fixture_home(&f);
        for (unsigned k = 0; k < 100; k++) {
            assert_non_null(group_of(&f, (pid_t)(1000 + k))->home_nodes);
            assert_int_equal(hwloc_bitmap_weight(group_of(&f, (pid_t)(1000 + k))->home_nodes), 1);
            nodes[hwloc_bitmap_first(group_of(&f, (pid_t)(1000 + k))->home_nodes)]++;
        }
        for (unsigned k = 0; k < 8; k++) {
            assert_in_range(nodes[k], 12, 13);
            nodes[k] = (char)('0' + nodes[k]);
        }
        if (!first)
            first = strdup(nodes);
        assert_string_equal(nodes, first);
    }
}

/* S-HYST: two equal nodes and one task more or less on each, for 600 ticks. */
static void test_hysteresis(void **state)
{
    unsigned n_moves = 0;
    uint64_t seed = 7;
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, AUTO);
    for (pid_t i = 0; i < 14; i++)
        add_job(&f, 100 + i, 1, (int)i, 1);
    fixture_home(&f);
    for (unsigned tick = 0; tick < 600; tick++) {
        uint16_t demand[14];

        for (size_t i = 0; i < ARRAY_SIZE(demand); i++)
            demand[i] = i < 12 ? 1000 : (uint16_t)(1000 * fixture_random(&seed, 2));
        fixture_model(&f, demand);
        fixture_plan(&f, tick % 10 == 0);
        n_moves += (unsigned)fixture_count(&f, PLAN_KIND_SET_HOME);
        fixture_commit(&f, NULL);
    }
    assert_in_range(n_moves, 0, 1);
}

TEST_MAIN(NULL, NULL, test_first_home, test_wide_and_back, test_spread_and_compress, test_expected_and_idle,
          test_young, test_bounds, test_exchange, test_just_come, test_half_exchange, test_revert,
          test_restless, test_jvm, test_flip, test_retry, test_hysteresis, test_young_spread)
