/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory that follows: requests that hold or no longer do, memory that somebody else has pinned or bound, and
 * groups with some memory in flight. */

#include "follow-test.h"

/* In a group of many processes some memory is always in flight. That is no reason to stay where most of it is not. */
static void test_few_of_many(void **state)
{
    for (int more = 0; more < 2; more++) {
        CLEANUP(fixture_done) Fixture f;

        setup(&f, "[Workload]\nGroupBy=workload\n" AUTO);
        add_process(&f, 20);
        set_memory(&f, 10, 1024 * MIB, 0);
        set_memory(&f, 20, 1024 * MIB, 0);
        fixture_home(&f);
        assert_int_equal(f.world->n_groups, 1);
        assert_ptr_equal(f.world->groups[0].home_nodes, fixture_mask(&f, "0"));
        fixture_wait(&f, 60 * SEC);
        f.world->groups[0].demand_permille = f.world->groups[0].want_permille = 2000;
        set_memory(&f, 10, 0, 1024 * MIB);
        set_memory(&f, 20, 0, (more ? 4096 : 2048) * MIB);
        move_of(&f, 10)->to = move_of(&f, 10)->last = fixture_mask(&f, "0");
        fixture_plan(&f, true);
        assert_int_equal(fixture_count(&f, PLAN_KIND_SET_HOME), more ? 2 : 0);
    }
}

static void test_holds(void **state)
{
    Process *p;
    Group *g;
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    p = world_process(f.world, 10);
    assert_false(follow_holds(f.world, f.policies, p));
    fixture_place(&f);
    p = world_process(f.world, 10);
    g = &f.world->groups[0];
    assert_true(follow_holds(f.world, f.policies, p));

    g->home_nodes = fixture_mask(&f, "0-1");
    assert_false(follow_holds(f.world, f.policies, p));
    f.world->topology->nodes[1].memory_bytes = 0;
    assert_true(follow_holds(f.world, f.policies, p));
    f.world->workloads[0].paused = true;
    assert_false(follow_holds(f.world, f.policies, p));
    f.world->workloads[0].paused = false;
    f.world->memory_pressure_permille = 101;
    assert_false(follow_holds(f.world, f.policies, p));
    f.world->memory_pressure_permille = 0;
    f.policies->policies[0]->follow = false;
    assert_false(follow_holds(f.world, f.policies, p));
}

/* Somebody else has pinned all of the process to node 0: it gets no home, and its memory comes to it. */
static void test_pinned(void **state)
{
    const PlanAction *a;
    Process *p;
    CLEANUP(fixture_done) Fixture f;

    setup(&f, AUTO);
    for (pid_t tid = 10; tid <= 11; tid++) {
        fixture_find(&f, 10, tid)->hands = TASK_HANDS_FOREIGN;
        fixture_find(&f, 10, tid)->allowed = fixture_mask(&f, tid == 10 ? "0-1" : "1-2");
    }
    f.policies->policies[0]->act = POLICY_ACT_OBSERVE;
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
    f.policies->policies[0]->act = POLICY_ACT_AUTO;
    /* Its use is never sampled, so nothing waits for that. */
    world_process(f.world, 10)->use_awaited = true;
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_SET_HOME), 0);
    a = fixture_action(&f, PLAN_KIND_MOVE_PAGES, 0);
    assert_false(a->memory.shared);
    assert_int_equal(a->rule, PLAN_RULE_FOLLOW_PIN);
    assert_ptr_equal(a->memory.from, fixture_mask(&f, "1"));
    assert_ptr_equal(a->memory.to, fixture_mask(&f, "0"));
    fixture_commit(&f, NULL);
    p = world_process(f.world, 10);
    assert_true(follow_holds(f.world, f.policies, p));

    /* Only while all of it is pinned there. */
    fixture_find(&f, 10, 11)->allowed = fixture_mask(&f, "2,8");
    assert_false(follow_holds(f.world, f.policies, p));
    fixture_find(&f, 10, 11)->allowed = fixture_mask(&f, "2");
    fixture_find(&f, 10, 11)->hands = TASK_HANDS_FREE;
    assert_false(follow_holds(f.world, f.policies, p));
    fixture_find(&f, 10, 11)->hands = TASK_HANDS_FOREIGN;
    assert_true(follow_holds(f.world, f.policies, p));
    end_order(&f, 10, FOLLOW_END_CANCELLED, 0, 0);
    fixture_wait(&f, 60 * SEC);
    set_memory(&f, 10, 0, 64 * MIB);

    /* One thread may run on both nodes; then its policy overrides foreign pinning. */
    fixture_find(&f, 10, 11)->allowed = fixture_mask(&f, "2,8");
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 0);
    fixture_find(&f, 10, 11)->allowed = fixture_mask(&f, "2");
    f.policies->policies[0]->foreign_affinity = POLICY_FOREIGN_OVERRIDE;
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_SET_HOME), 2); /* one for each old mask */
}

/* Its memory is bound by somebody else, or too little of it is to matter. */
static void test_bound(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    world_process(f.world, 10)->bound_bytes = 2 * MIB + 1;
    assert_refused(&f, PLAN_REASON_MEMORY_BOUND);
    world_process(f.world, 10)->bound_bytes = 2 * MIB;
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    world_process(f.world, 10)->bound_bytes = 64 * MIB;
    f.policies->policies[0]->foreign_affinity = POLICY_FOREIGN_OVERRIDE;
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
}

/* Pinned to two nodes of four: its use is never sampled, and all its memory goes to these nodes. */
static void test_pinned_to_two(void **state)
{
    const uint64_t bytes[] = {0, 32 * MIB, 0, 32 * MIB};
    const PlanAction *a;
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, "numa:4 l3:1 core:2 pu:1 distances=10,20,20,20,20,10,20,20,20,20,10,20,20,20,20,10");
    fixture_memory(&f);
    fixture_policy(&f, "a", AUTO);
    add_process(&f, 10);
    fixture_bytes(&f, 10, bytes);
    for (pid_t tid = 10; tid <= 11; tid++) {
        fixture_find(&f, 10, tid)->hands = TASK_HANDS_FOREIGN;
        fixture_find(&f, 10, tid)->allowed = fixture_mask(&f, "0-3");
    }
    world_process(f.world, 10)->use_awaited = true;
    fixture_plan(&f, true);
    a = fixture_action(&f, PLAN_KIND_MOVE_PAGES, 0);
    assert_int_equal(a->rule, PLAN_RULE_FOLLOW_PIN);
    assert_ptr_equal(a->memory.from, fixture_mask(&f, "3"));
    assert_ptr_equal(a->memory.to, fixture_mask(&f, "0-1"));
    assert_int_equal(a->memory.bytes, 32 * MIB);
    fixture_commit(&f, NULL);
    assert_true(follow_holds(f.world, f.policies, world_process(f.world, 10)));
}

TEST_MAIN(NULL, NULL, test_few_of_many, test_holds, test_pinned, test_pinned_to_two, test_bound)
