/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P16: groups that have converged keep their homes; and which group is evicted for which other. */

#include "choose-test.h"

#define NEAR_AND_FAR "distances=10,12,31,31,12,10,31,31,31,31,10,12,31,31,12,10"

/* Adds two threads on node 0, with this much of their memory there and on node 1, MiB. */
static void add_small(Fixture *f, pid_t pid, uint64_t here, uint64_t there)
{
    add_job(f, pid, 2, 0, 1);
    set_memory(f, pid, (uint64_t[]){here, there});
}

/* Adds eight threads that gain more from having all of node 0 than two threads lose by leaving it. */
static void add_large(Fixture *f, pid_t pid)
{
    add_job(f, pid, 8, 8, 1);
    set_memory(f, pid, (uint64_t[]){900, 300});
}

static const PlanFreeze *freeze_of(const Fixture *f, pid_t pid)
{
    uint64_t id = f->world->groups[world_process(f->world, pid)->group.i].id;

    for (size_t i = 0; i < f->plan.n_freezes; i++)
        if (f->plan.freezes[i].group_id == id)
            return &f->plan.freezes[i];
    return NULL;
}

static void plan_homes(Fixture *f)
{
    seconds(f, 11);
    fixture_place(f);
}

/* Frozen at 0.90 in a home of its own, thawed below 0.75; no change in between. */
static void test_freeze_and_thaw(void **state)
{
    static const struct {
        uint64_t here; /* of 1024 MiB */
        bool converged, changes;
    } steps[] = {
        {920, false, false}, {921, true, true},   {1024, true, false}, {768, true, false},
        {767, false, true},  {900, false, false}, {1000, true, true},
    };
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, AUTO);
    add_small(&f, 100, 920, 104);
    fixture_home(&f);
    assert_nodes(&f, 100, "0");
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        set_memory(&f, 100, (uint64_t[]){steps[i].here, 1024 - steps[i].here});
        seconds(&f, 11);
        fixture_plan(&f, true);
        assert_int_equal(freeze_of(&f, 100) != NULL, steps[i].changes);
        if (steps[i].changes)
            assert_int_equal(freeze_of(&f, 100)->strength, steps[i].here);
        fixture_commit(&f, NULL);
        assert_int_equal(group_of(&f, 100)->converged, steps[i].converged);
        fixture_assert_settled(&f, true);
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_freezes, 0);
    }
}

/* Not frozen: a home away from its memory, memory that fits the caches, a home of two nodes, Mode=spread. */
static void test_not_frozen(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, AUTO "AllowedImbalance=3\n"); /* all of them */
    fixture_policy(&f, "b",
                   EACH "MinAgeSec=0\n[Placement]\nMode=spread\nMaxNodes=1\n"
                        "AllowedImbalance=3\n");
    fixture_process(&f, 100, "a", "0-7"); /* it may not run where its memory is */
    fixture_task(&f, 100, 100, 0)->last_cpu.i = 0;
    set_memory(&f, 100, (uint64_t[]){0, 1024});
    add_small(&f, 200, 31, 0);
    fixture_process(&f, 300, "b", NULL);
    fixture_task(&f, 300, 300, 0)->last_cpu.i = 0;
    set_memory(&f, 300, (uint64_t[]){1024, 0});
    fixture_home(&f);
    assert_nodes(&f, 100, "0");
    assert_nodes(&f, 200, "0");
    assert_nodes(&f, 300, "0");
    plan_homes(&f);
    for (pid_t pid = 100; pid <= 300; pid += 100)
        assert_false(group_of(&f, pid)->converged);
    set_memory(&f, 200, (uint64_t[]){32, 0});
    plan_homes(&f);
    assert_true(group_of(&f, 200)->converged);
}

/* A group that has not converged does not evict a converged one that has the node; one without nine tenths of
 * its memory there is evicted. */
static void test_no_eviction(void **state)
{
    for (int converged = 0; converged < 2; converged++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, TWO_SHARDS, AUTO);
        add_small(&f, 100, converged ? 1000 : 850, converged ? 24 : 174);
        fixture_home(&f);
        plan_homes(&f);
        assert_nodes(&f, 100, "0");
        assert_int_equal(group_of(&f, 100)->converged, converged);
        add_large(&f, 200);
        plan_homes(&f);
        assert_nodes(&f, 100, converged ? "0" : "1");
        assert_nodes(&f, 200, converged ? "1" : "0");
        fixture_assert_settled(&f, true);
    }
}

/* A converged group may be evicted for another converged one: of two that no longer fit, the larger is held. */
static void test_eviction_by_frozen(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, AUTO);
    add_job(&f, 100, 5, 0, 1);
    add_job(&f, 200, 6, 0, 1);
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        set_memory(&f, pid, (uint64_t[]){1024, 0});
        set_demand(&f, pid, 600, 0);
    }
    fixture_home(&f);
    plan_homes(&f);
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        assert_nodes(&f, pid, "0");
        assert_true(group_of(&f, pid)->converged);
        set_demand(&f, pid, 500, 500);
    }
    plan_homes(&f);
    assert_nodes(&f, 200, "0");
    assert_nodes(&f, 100, "1");
    plan_homes(&f); /* it stays where it was evicted to */
    assert_nodes(&f, 100, "1");
    assert_false(group_of(&f, 100)->converged);
    assert_true(group_of(&f, 200)->converged);
}

/* A group that has outgrown its node leaves it, however converged. */
static void test_outgrown(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, AUTO);
    add_job(&f, 100, 12, 0, 1);
    set_memory(&f, 100, (uint64_t[]){1024, 0, 0, 0});
    set_demand(&f, 100, 500, 0);
    fixture_home(&f);
    plan_homes(&f);
    assert_nodes(&f, 100, "0");
    assert_true(group_of(&f, 100)->converged);
    set_demand(&f, 100, 600, 400);
    plan_homes(&f);
    assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100)->home_nodes), 2);
    plan_homes(&f);
    assert_false(group_of(&f, 100)->converged);
}

/* So does one whose cpuset has too few CPUs of the node, for it alone or with others that are held there. */
static void test_cpuset_parts(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, AUTO);
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        add_job(&f, pid, 2, 6, 1);
        set_memory(&f, pid, (uint64_t[]){1024, 0, 0, 0});
        world_process(f.world, pid)->cpuset = fixture_mask(&f, "5-9");
        set_demand(&f, pid, 100, 0);
    }
    fixture_home(&f);
    plan_homes(&f);
    set_demand(&f, 100, 1000, 0);
    plan_homes(&f);
    assert_nodes(&f, 100, "0");
    assert_nodes(&f, 200, "0");
    assert_true(group_of(&f, 100)->converged);
    set_demand(&f, 200, 900, 0);
    plan_homes(&f);
    assert_nodes(&f, 100, "0");
    assert_nodes(&f, 200, "1");
    fixture_assert_settled(&f, true);
}

/* So does one whose threads pause, but want more than the node's cores: they would share cores with each other. */
static void test_shares_cores(void **state)
{
    for (unsigned siblings = 1; siblings <= 2; siblings++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f,
                          siblings == 2 ? "numa:4 l3:1 core:1 pu:2 " NEAR_AND_FAR
                                        : "numa:4 l3:1 core:2 pu:1 " NEAR_AND_FAR,
                          AUTO);
        add_job(&f, 100, 2, 0, 1);
        set_memory(&f, 100, (uint64_t[]){1024, 0, 0, 0});
        set_demand(&f, 100, 100, 0);
        fixture_home(&f);
        plan_homes(&f);
        assert_nodes(&f, 100, "0");
        assert_true(group_of(&f, 100)->converged);
        set_demand(&f, 100, 600, 0);
        plan_homes(&f);
        assert_nodes(&f, 100, siblings == 2 ? "0-1" : "0");
        fixture_assert_settled(&f, true);
    }
}

/* A group that can be nowhere else takes its room first, even before it has been given its home. */
static void test_bound(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, AUTO);
    add_job(&f, 100, 6, 0, 1);
    set_memory(&f, 100, (uint64_t[]){1024, 0});
    fixture_home(&f);
    plan_homes(&f);
    assert_nodes(&f, 100, "0");
    assert_true(group_of(&f, 100)->converged);
    fixture_process(&f, 200, "a", "0-7");
    for (pid_t tid = 200; tid < 206; tid++)
        fixture_task(&f, 200, tid, 0);
    plan_homes(&f);
    assert_nodes(&f, 200, "0");
    assert_nodes(&f, 100, "1");
    fixture_assert_settled(&f, true);
}

TEST_MAIN(NULL, NULL, test_freeze_and_thaw, test_not_frozen, test_shares_cores, test_cpuset_parts,
          test_no_eviction, test_eviction_by_frozen, test_outgrown, test_bound)
