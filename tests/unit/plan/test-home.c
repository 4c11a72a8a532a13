/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Fixed homes: which processes get one or join, which threads are left alone, and how homes end. */

#include "fixture.h"

#define FIXED0 "[Placement]\nMode=fixed\nNodes=0\n"

static void assert_home(const Fixture *f, size_t nth, pid_t pid, pid_t tid, CpuMask from, CpuMask to)
{
    const PlanAction *a = fixture_action(f, PLAN_KIND_SET_HOME, nth);

    assert_int_equal(a->subject.pid, pid);
    assert_int_equal(a->subject.tid, tid);
    assert_ptr_equal(a->from, from);
    assert_ptr_equal(a->to, to);
}

static void test_fixed(void **state)
{
    const Group *group;
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, FIXED0);
    fixture_threads(&f, 10, 2);

    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 0); /* homes are for slow ticks */
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 1); /* one action for both threads */
    assert_home(&f, 0, 10, 0, fixture_mask(&f, NULL), fixture_mask(&f, "0-7"));
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_FIXED_HOME);
    assert_ptr_equal(f.plan.actions[0].original, fixture_mask(&f, NULL));
    assert_true(hwloc_bitmap_isequal(f.plan.actions[0].home_nodes, fixture_mask(&f, "0")));

    fixture_commit(&f, NULL);
    group = &f.world->groups[0];
    assert_ptr_equal(group->home, fixture_mask(&f, "0-7"));
    assert_int_equal(group->last_home_usec, f.world->now_usec);
    assert_ptr_equal(fixture_find(&f, 10, 11)->allowed, fixture_mask(&f, "0-7"));
    assert_ptr_equal(fixture_find(&f, 10, 11)->original, fixture_mask(&f, NULL));
    assert_int_equal(fixture_find(&f, 10, 11)->last_move_usec, 0); /* no residency */
    fixture_assert_settled(&f, true);

    /* A later process joins; a thread born with our mask is recorded. */
    fixture_threads(&f, 20, 1);
    fixture_task(&f, 10, 12, 0)->allowed = fixture_mask(&f, "0-7");
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 2);
    assert_home(&f, 0, 10, 0, fixture_mask(&f, NULL), fixture_mask(&f, "0-7"));
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_NEW_MEMBER);
    assert_int_equal(f.plan.actions[1].rule, PLAN_RULE_NEW_MEMBER);
    fixture_commit(&f, NULL);
    assert_ptr_equal(fixture_find(&f, 10, 12)->original, fixture_mask(&f, NULL));
    fixture_assert_settled(&f, true);
}

/* Between slow ticks only processes first seen in this tick are sent home, also when they are the first of a group. */
static void test_met_now(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, FIXED0 "[Workload]\nMinAgeSec=0\n");
    for (pid_t pid = 10; pid <= 30; pid += 10)
        fixture_threads(&f, pid, 1);
    world_process(f.world, 20)->first_seen_usec = f.world->now_usec;
    world_process(f.world, 20)->gone = true;
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 0);

    world_process(f.world, 20)->gone = false;
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 3); /* all of them, because their group gets a home */
    assert_int_equal(f.plan.n_homes, 1);
    f.plan.n_actions = 0;
    fixture_commit(&f, NULL);
    f.world->groups[0].home = fixture_mask(&f, "0-7");
    f.world->groups[0].home_nodes = fixture_mask(&f, "0");

    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 1);
    assert_home(&f, 0, 20, 0, fixture_mask(&f, NULL), fixture_mask(&f, "0-7"));
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_NEW_MEMBER);
    f.world->now_usec++;
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 0);
}

/* The home is cut by the cpuset (I1) and by usability; the action names its nodes. */
static void test_cut(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, FIXED0);
    fixture_process(&f, 10, "a", "4-11");
    fixture_task(&f, 10, 10, 0);
    fixture_process(&f, 11, "a", "8-15");
    fixture_task(&f, 11, 11, 0);
    f.world->cpus[5].usable = false;

    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 1);
    assert_home(&f, 0, 10, 0, fixture_mask(&f, "4-11"), fixture_mask(&f, "4,6-7"));
    assert_int_equal(f.plan.n_refused[PLAN_REASON_NO_CPUS], 1);
    fixture_commit(&f, NULL);
    assert_ptr_equal(f.world->groups[0].home, fixture_mask(&f, "0-7"));

    /* The CPU becomes usable again. */
    f.world->cpus[5].usable = true;
    fixture_plan(&f, true);
    assert_home(&f, 0, 10, 0, fixture_mask(&f, "4,6-7"), fixture_mask(&f, "4-7"));
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_HOME_CHANGED); /* it joined long ago */
    fixture_commit(&f, NULL);
    assert_ptr_equal(fixture_find(&f, 10, 10)->original, fixture_mask(&f, "4-11"));
    fixture_assert_settled(&f, true);
}

static void test_refused(void **state)
{
    static const struct {
        const char *policy;
        PlanReason reason;
    } cases[] = {
        {FIXED0 "[Workload]\nAct=observe\n", PLAN_REASON_OBSERVE},
        {"[Placement]\nMode=fixed\nNodes=7\n", PLAN_REASON_NO_CPUS},
        {FIXED0 "[Workload]\nMinAgeSec=1min\n", PLAN_REASON_TOO_YOUNG},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, TWO_SHARDS, cases[i].policy);
        fixture_process(&f, 10, "a", NULL);
        fixture_task(&f, 10, 10, 500);
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_actions, 0);
        assert_int_equal(f.plan.n_refused[cases[i].reason], 1);
    }
}

static void test_observe_and_pause(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, FIXED0);
    fixture_threads(&f, 10, 1);
    f.limits.observe = true;
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_OBSERVE], 1);

    f.limits.observe = false;
    f.world->workloads[0].paused = true;
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_PAUSED], 1);

    f.world->workloads[0].paused = false;
    f.world->partial = true; /* I10 */
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
}

/* I2, I10: threads that must not be touched keep their masks, and the rest of the process is placed around them. */
static void test_hands(void **state)
{
    static const struct {
        TaskHands hands;
        PlanReason reason;
        bool apart; /* the mask does not distinguish it */
    } cases[] = {
        {TASK_HANDS_FOREIGN, PLAN_REASON_FOREIGN_AFFINITY, false},
        {TASK_HANDS_PER_CPU, PLAN_REASON_PER_CPU, false},
        {TASK_HANDS_CLASS, PLAN_REASON_CLASS, true},
        {TASK_HANDS_DENIED, PLAN_REASON_DENIED, true},
        {TASK_HANDS_UNKNOWN, PLAN_REASON_UNREADABLE, true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;
        Task *task;

        fixture_init_with(&f, TWO_SHARDS, FIXED0);
        fixture_threads(&f, 10, 2);
        task = fixture_task(&f, 10, 12, 0);
        task->hands = (uint8_t)cases[i].hands;
        if (!cases[i].apart)
            task->allowed = fixture_mask(&f, "3");
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_actions, cases[i].apart ? 2 : 1);
        assert_int_equal(f.plan.actions[0].subject.tid, cases[i].apart ? 10 : 0);
        assert_int_equal(f.plan.n_refused[cases[i].reason], 1);
        fixture_commit(&f, NULL);
        assert_null(fixture_find(&f, 10, 12)->original);
        fixture_assert_settled(&f, true);
    }
}

/* Pinned by its user to what happens to be the home: still not ours to undo later. */
static void test_foreign_at_home(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Task *task;

    fixture_init_with(&f, TWO_SHARDS, FIXED0);
    fixture_threads(&f, 10, 1);
    task = fixture_task(&f, 10, 11, 0);
    task->hands = TASK_HANDS_FOREIGN;
    task->allowed = fixture_mask(&f, "0-7");
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 1);
    assert_int_equal(f.plan.actions[0].subject.tid, 10);
}

static void test_override(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Task *task;

    fixture_init_with(&f, TWO_SHARDS, FIXED0 "[Workload]\nForeignAffinity=override\n");
    fixture_threads(&f, 10, 1);
    task = fixture_task(&f, 10, 11, 0);
    task->hands = TASK_HANDS_FOREIGN;
    task->allowed = fixture_mask(&f, "12");
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 2);
    fixture_commit(&f, NULL);
    task = fixture_find(&f, 10, 11);
    assert_ptr_equal(task->allowed, fixture_mask(&f, "0-7"));
    assert_ptr_equal(task->original, fixture_mask(&f, "12"));
    fixture_assert_settled(&f, true);

    /* Restored to its original mask. */
    f.world->workloads[0].paused = true;
    assert_int_equal(plan_release(f.world, WORKLOAD_NONE, PLAN_RULE_PAUSED, &f.plan), 0);
    assert_int_equal(f.plan.n_actions, 1);
    fixture_commit(&f, NULL);
    task = fixture_find(&f, 10, 11);
    assert_ptr_equal(task->allowed, fixture_mask(&f, "12"));
    assert_null(task->original);
    assert_null(f.world->groups[0].home);
    fixture_assert_settled(&f, true);
}

static void test_nodes_change(void **state)
{
    Policy *policy;
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    policy = fixture_policy(&f, "a", FIXED0);
    fixture_threads(&f, 10, 1);
    fixture_home(&f);

    assert_int_equal(hwloc_bitmap_only(policy->nodes, 1), 0);
    fixture_assert_settled(&f, false);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 1);
    assert_home(&f, 0, 10, 0, fixture_mask(&f, "0-7"), fixture_mask(&f, "8-15"));
    fixture_commit(&f, NULL);
    assert_ptr_equal(fixture_find(&f, 10, 10)->original, fixture_mask(&f, NULL));
    assert_ptr_equal(f.world->groups[0].home, fixture_mask(&f, "8-15"));
    fixture_assert_settled(&f, true);
}

/* Asserts that the whole process is released in one action, and that nothing follows. */
static void assert_release(Fixture *f, PlanRule rule)
{
    fixture_plan(f, true);
    assert_int_equal(f->plan.n_actions, 1);
    assert_int_equal(f->plan.actions[0].kind, PLAN_KIND_RELEASE);
    assert_int_equal(f->plan.actions[0].rule, rule);
    assert_ptr_equal(f->plan.actions[0].from, fixture_mask(f, "0-7"));
    assert_ptr_equal(f->plan.actions[0].to, fixture_mask(f, NULL));
    fixture_commit(f, NULL);
    assert_ptr_equal(fixture_find(f, 10, 10)->allowed, fixture_mask(f, NULL));
    assert_null(fixture_find(f, 10, 10)->original);
    fixture_assert_settled(f, true);
}

static void make_homed(Fixture *f)
{
    fixture_init_with(f, TWO_SHARDS, FIXED0);
    fixture_threads(f, 10, 2);
    fixture_home(f);
}

static void test_release_policy_gone(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_homed(&f);
    f.policies->policies[0]->mode = POLICY_MODE_NONE;
    assert_int_equal(group_sync_workloads(f.world, f.policies), 0);
    assert_int_equal(f.world->n_groups, 0);
    assert_release(&f, PLAN_RULE_WORKLOAD_GONE);
}

static void test_release_mode_changed(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_homed(&f);
    f.policies->policies[0]->mode = POLICY_MODE_NONE;
    assert_release(&f, PLAN_RULE_WORKLOAD_GONE);
    assert_null(f.world->groups[0].home);
}

static void test_release_home_gone(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_homed(&f);
    for (int cpu = 0; cpu < 8; cpu++)
        f.world->cpus[cpu].online = f.world->cpus[cpu].usable = false;
    assert_release(&f, PLAN_RULE_HOME_GONE);
}

static void test_release_repinned(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Task *task;

    make_homed(&f);
    task = fixture_find(&f, 10, 11);
    task->hands = TASK_HANDS_REPINNED;
    task->allowed = fixture_mask(&f, "3");
    f.world->processes[0].yielded = true;
    assert_release(&f, PLAN_RULE_REPINNED);
    task = fixture_find(&f, 10, 11);
    assert_ptr_equal(task->allowed, fixture_mask(&f, "3"));
    assert_null(task->original);
}

/* More processes than one tick's budget: the others follow. */
static void test_budget(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, FIXED0);
    for (pid_t pid = 1; pid <= 100; pid++)
        fixture_threads(&f, pid, 1);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, PLAN_ACTIONS_PER_TICK);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_BUDGET], 100 - PLAN_ACTIONS_PER_TICK);
    fixture_commit(&f, NULL);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 100 - PLAN_ACTIONS_PER_TICK);
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, true);
}

TEST_MAIN(NULL, NULL, test_fixed, test_met_now, test_cut, test_refused, test_observe_and_pause, test_hands,
          test_foreign_at_home, test_override, test_nodes_change, test_release_policy_gone,
          test_release_mode_changed, test_release_home_gone, test_release_repinned, test_budget)
