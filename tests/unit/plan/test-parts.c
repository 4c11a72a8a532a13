/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Actions carried out over several ticks: the World learns the outcome of each thread, and the next plan asks
 * for the rest. */

#include "fixture.h"

#define FIXED0 "[Placement]\nMode=fixed\nNodes=0\n"

static void start(Fixture *f)
{
    fixture_init_with(f, TWO_SHARDS, FIXED0);
    fixture_threads(f, 10, 5);
    fixture_plan(f, true);
    assert_int_equal(f->plan.n_actions, 1);
}

static void commit_parts(Fixture *f, PlanOutcome outcome, const PlanPart *parts, size_t n)
{
    assert_int_equal(plan_commit_parts(f->world, f->policies, &f->limits, &f->plan, &outcome, parts, n), 0);
    assert_int_equal(world_check(f->world, NULL), 0);
}

static PlanPart part_of(Fixture *f, pid_t tid, PlanOutcome outcome)
{
    return (PlanPart){.task = world_task_key(f->world, fixture_find(f, 10, tid)), .outcome = outcome};
}

static void test_home(void **state)
{
    CpuMask home;
    PlanPart parts[5];
    CLEANUP(fixture_done) Fixture f;

    start(&f);
    home = fixture_mask(&f, "0-7");
    parts[0] = part_of(&f, 10, PLAN_OUTCOME_DONE);
    parts[1] = part_of(&f, 11, PLAN_OUTCOME_GONE);
    parts[2] = part_of(&f, 12, PLAN_OUTCOME_FOREIGN);
    parts[3] = part_of(&f, 13, PLAN_OUTCOME_DONE);
    commit_parts(&f, PLAN_OUTCOME_PARTLY, parts, 4);
    assert_ptr_equal(f.world->groups[0].home, home);
    assert_ptr_equal(fixture_find(&f, 10, 10)->allowed, home);
    assert_ptr_equal(fixture_find(&f, 10, 10)->original, fixture_mask(&f, NULL));
    assert_true(fixture_find(&f, 10, 11)->gone);
    assert_false(world_process(f.world, 10)->gone);
    assert_int_equal(fixture_find(&f, 10, 12)->hands, TASK_HANDS_UNKNOWN);
    assert_null(fixture_find(&f, 10, 14)->original);
    assert_ptr_equal(fixture_find(&f, 10, 14)->allowed, fixture_mask(&f, NULL));

    /* The rest: the thread without an outcome yet. */
    fixture_find(&f, 10, 12)->hands = TASK_HANDS_FOREIGN;
    fixture_find(&f, 10, 12)->allowed = fixture_mask(&f, "5");
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 1);
    assert_int_equal(f.plan.actions[0].subject.tid, 0);
    parts[0] = part_of(&f, 14, PLAN_OUTCOME_DONE);
    commit_parts(&f, PLAN_OUTCOME_DONE, parts, 1);
    assert_ptr_equal(fixture_find(&f, 10, 14)->allowed, home);
    assert_null(fixture_find(&f, 10, 12)->original);
    fixture_assert_settled(&f, true);
}

/* An action that failed for some threads: the others are known to have the mask, and are not taken for pinned. */
static void test_failed_in_part(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    PlanPart part;

    start(&f);
    part = part_of(&f, 12, PLAN_OUTCOME_DONE);
    commit_parts(&f, PLAN_OUTCOME_RETRY, &part, 1);
    assert_null(f.world->groups[0].home);
    assert_ptr_equal(fixture_find(&f, 10, 12)->allowed, fixture_mask(&f, "0-7"));
    assert_ptr_equal(fixture_find(&f, 10, 12)->original, fixture_mask(&f, NULL));
    assert_null(fixture_find(&f, 10, 10)->original);
    fixture_place(&f);
    fixture_assert_settled(&f, true);
}

/* An action that was not begun is no reason to give the group another home, nor to assume that it has this one. */
static void test_not_begun(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    start(&f);
    commit_parts(&f, PLAN_OUTCOME_RETRY, NULL, 0);
    assert_null(f.world->groups[0].home);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 1);
    commit_parts(&f, PLAN_OUTCOME_PARTLY, NULL, 0);
    assert_null(fixture_find(&f, 10, 10)->original);
}

static void test_release(void **state)
{
    PlanPart parts[2];
    CLEANUP(fixture_done) Fixture f;

    start(&f);
    fixture_commit(&f, NULL);
    assert_int_equal(plan_release(f.world, WORKLOAD_NONE, PLAN_RULE_PAUSED, &f.plan), 0);
    assert_int_equal(f.plan.n_actions, 1);
    parts[0] = part_of(&f, 10, PLAN_OUTCOME_DONE);
    parts[1] = part_of(&f, 11, PLAN_OUTCOME_FOREIGN);
    commit_parts(&f, PLAN_OUTCOME_PARTLY, parts, 2);
    assert_null(fixture_find(&f, 10, 10)->original);
    assert_ptr_equal(fixture_find(&f, 10, 10)->allowed, fixture_mask(&f, NULL));
    assert_null(fixture_find(&f, 10, 11)->original);
    assert_non_null(fixture_find(&f, 10, 12)->original);
    /* The group has its home as long as one thread has its mask. */
    assert_non_null(f.world->groups[0].home);
    assert_int_equal(plan_release(f.world, WORKLOAD_NONE, PLAN_RULE_PAUSED, &f.plan), 0);
    assert_int_equal(f.plan.n_actions, 1);
    fixture_commit(&f, NULL);
    assert_null(f.world->groups[0].home);
}

TEST_MAIN(NULL, NULL, test_home, test_failed_in_part, test_not_begun, test_release)
