/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes of single-threaded processes: those that pause share near nodes; and memory whose place is not known (P15). */

#include "choose-test.h"

#include "plan/ablation.h"

/* Counts the homes of several nodes for six single threads that each want 450 permille of a CPU, on four near
 * nodes of one CPU. */
static size_t count_pools(const char *settings, uint64_t age_sec, bool rule)
{
    size_t n = 0;
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, "numa:4 l3:1 core:1 pu:1 distances=10,12,12,12,12,10,12,12,12,12,10,12,12,12,12,10",
                      settings);
    f.world->ablated = rule ? 0 : (uint64_t)1 << ABLATION_PAUSES;
    for (pid_t i = 1; i <= 6; i++) {
        uint64_t mib[4] = {0};

        mib[i % 4] = 64;
        add_job(&f, 100 * i, 1, i % 4, 1);
        set_memory(&f, 100 * i, mib);
        set_demand(&f, 100 * i, 450, 0);
        world_process(f.world, 100 * i)->first_seen_usec = f.world->now_usec;
    }
    seconds(&f, age_sec);
    fixture_home(&f);
    for (pid_t i = 1; i <= 6; i++)
        n += group_of(&f, 100 * i)->home_nodes && hwloc_bitmap_weight(group_of(&f, 100 * i)->home_nodes) > 1;
    fixture_assert_settled(&f, true);
    return n;
}

/* Two threads on a node of one CPU often wait for each other, so they share near nodes, once their average
 * demand is known. */
static void test_pool_of_ones(void **state)
{
    assert_in_range(count_pools(AUTO, 6, true), 3, 6);
    assert_int_equal(count_pools(AUTO, 3, true), 0);
    assert_int_equal(count_pools(AUTO, 6, false), 0);
    assert_int_equal(count_pools(AUTO "MaxNodes=1\n", 6, true), 0);
    assert_int_equal(count_pools(EACH "[Placement]\nMode=compress\n", 6, true), 0);
}

/* Memory is taken to be where the process runs if its place is not known: eight threads on four CPUs, five of
 * them on the first node. */
static void test_unknown_stays(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, SMALL, AUTO);
    f.world->ablated = 1ULL << ABLATION_IN_VAIN;
    for (pid_t pid = 100; pid <= 800; pid += 100) {
        add_job(&f, pid, 1, pid <= 500 ? 0 : 2, 0);
        world_process(f.world, pid)->rss_bytes = 16 * MIB;
    }
    seconds(&f, 3);
    fixture_home(&f);
    for (pid_t pid = 100; pid <= 800; pid += 100)
        assert_nodes(&f, pid, pid <= 500 ? "0" : "1");
    seconds(&f, 20);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
}

/* When every CPU is wanted by two threads, threads beside their memory, or whose memory's place is not known,
 * get no home, and the refusal says why. Homes go to threads away from their memory, that share memory or
 * whose policy names nodes; and to all when a CPU is idle or no more is wanted than there is. */
static void test_in_vain(void **state)
{
    static const struct {
        unsigned n_jobs, n_threads;
        bool known, away, idle, placed;
        const char *policy;
    } cases[] = {
        {8, 1, true, false, false, false, AUTO},
        {8, 1, false, false, false, false, AUTO},
        {8, 1, true, true, false, true, AUTO},
        {4, 2, true, false, false, true, AUTO},
        {5, 1, true, false, false, true, AUTO},
        {8, 1, true, false, true, true, AUTO},
        {8, 1, true, false, false, true, AUTO "Nodes=0-1\n"},
        {8, 1, true, false, false, true, AUTO "MaxNodes=1\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;
        size_t n_placed = 0;

        fixture_init_with(&f, SMALL, cases[i].policy);
        for (unsigned k = 0; k < cases[i].n_jobs; k++) {
            pid_t pid = 100 + 100 * (pid_t)k;
            bool first = (k % 2 == 0) != cases[i].away;

            add_job(&f, pid, cases[i].n_threads, k % 2 == 0 ? 0 : 2, 0);
            if (cases[i].known)
                set_memory(&f, pid, (uint64_t[]){first ? 100 : 0, first ? 0 : 100});
        }
        fixture_cpus(&f, 0, cases[i].idle ? 2 : 3, 1000, 0);
        seconds(&f, 3);
        fixture_home(&f);
        for (unsigned k = 0; k < cases[i].n_jobs; k++)
            n_placed += group_of(&f, 100 + 100 * (pid_t)k)->home != NULL;
        assert_int_equal(n_placed, cases[i].placed ? cases[i].n_jobs : 0);
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_refused[PLAN_REASON_ALL_BUSY], cases[i].placed ? 0 : cases[i].n_jobs);
        fixture_assert_settled(&f, true);
    }
}

/* When more is wanted than there is, but not by a quarter, a thread that waits beside its memory gets a home
 * MinAgeSec= after it was first seen, and before that only if a CPU is idle. */
static void test_young_in_vain(void **state)
{
    static const struct {
        bool young, idle, placed;
    } cases[] = {{true, false, false}, {false, false, true}, {true, true, true}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, SMALL, AUTO);
        for (pid_t pid = 100; pid <= 500; pid += 100) {
            add_job(&f, pid, 1, pid % 200 == 0 ? 2 : 0, 0);
            set_memory(&f, pid, (uint64_t[]){pid % 200 == 0 ? 0 : 100, pid % 200 == 0 ? 100 : 0});
            set_demand(&f, pid, 600, 400);
        }
        fixture_cpus(&f, 0, cases[i].idle ? 2 : 3, 1000, 0);
        seconds(&f, 1);
        for (pid_t pid = 100; pid <= 500; pid += 100)
            f.world->groups[world_process(f.world, pid)->group.i].first_seen_usec =
                f.world->now_usec - (cases[i].young ? 900000 : 1000000);
        fixture_home(&f);
        for (pid_t pid = 100; pid <= 500; pid += 100)
            assert_int_equal(group_of(&f, pid)->home != NULL, cases[i].placed);
    }
}

/* Two single-threaded programs in one group share nothing, which need not be seen: they may not press on one
 * node. If others map their memory, or they have little, that is not known. */
static void test_single_programs(void **state)
{
    static const struct {
        uint64_t mib;
        const char *shared, *nodes;
    } cases[] = {{64, NULL, "0-1"}, {8, NULL, "0"}, {64, "0:1:77+", "0"}, {64, "0:1:77", "0-1"}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, "numa:3 l3:1 core:4 pu:1",
                          "[Workload]\nGroupBy=workload\n[Placement]\nMode=auto\n");
        for (pid_t pid = 100; pid <= 200; pid += 100) {
            add_job(&f, pid, 1, 0, 1);
            set_memory(&f, pid,
                       pid == 100 ? (uint64_t[]){cases[i].mib, 0, 0} : (uint64_t[]){0, cases[i].mib, 0});
            world_process(f.world, pid)->rss_bytes = cases[i].mib * MIB;
            if (cases[i].shared)
                world_process(f.world, pid)->shared = intern_string(f.world->pool, cases[i].shared);
        }
        seconds(&f, 3);
        fixture_home(&f);
        if (group_of(&f, 100)->home_nodes != fixture_mask(&f, cases[i].nodes))
            fail_msg("case %zu", i);
        fixture_assert_settled(&f, true);
    }
}

TEST_MAIN(NULL, NULL, test_pool_of_ones, test_unknown_stays, test_in_vain, test_young_in_vain,
          test_single_programs)
