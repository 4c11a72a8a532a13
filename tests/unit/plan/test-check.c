/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* plan_check() finds each violation, and every enum value has a name and a text. */

#include "fixture.h"

#define EAGER "[Placement]\nMode=fixed\nNodes=0\n[Limits]\nNiceTries=0\n"

/* A plan with two lends, and a World in which they are possible. */
static void make_lends(Fixture *f)
{
    fixture_init_with(f, TWO_SHARDS, EAGER);
    fixture_process(f, 10, "a", NULL);
    for (pid_t tid = 10; tid < 14; tid++)
        fixture_task(f, 10, tid, 400);
    fixture_cpus(f, 0, 7, 1000, 400);
    fixture_home(f);
    fixture_plan(f, false);
    assert_int_equal(fixture_count(f, PLAN_KIND_LEND), 2);
}

/* A plan with one push; node 2 belongs to no home. */
static void make_push(Fixture *f)
{
    fixture_init_with(f, "numa:3 l3:1 core:4 pu:2", "[Placement]\nMode=fixed\nNodes=0-1\n");
    fixture_process(f, 10, "a", NULL);
    for (pid_t tid = 10; tid < 12; tid++)
        fixture_task(f, 10, tid, 0)->last_cpu.i = tid - 10;
    fixture_cpus(f, 0, 7, 1000, 0);
    fixture_cpus(f, 8, 23, 0, 0);
    fixture_home(f);
    fixture_tick(f);
    for (pid_t tid = 10; tid < 12; tid++) {
        Task *task = fixture_find(f, 10, tid);

        task->run_permille = task->run_before_permille = 1000;
    }
    fixture_cpus(f, 0, 7, 1000, 0);
    fixture_cpus(f, 8, 23, 0, 0);
    fixture_plan(f, false);
    assert_int_equal(fixture_count(f, PLAN_KIND_PUSH), 1);
}

/* A plan with two homes. */
static void make_homes(Fixture *f)
{
    fixture_init_with(f, TWO_SHARDS, EAGER);
    for (pid_t pid = 10; pid < 12; pid++)
        fixture_threads(f, pid, 1);
    fixture_plan(f, true);
    assert_int_equal(fixture_count(f, PLAN_KIND_SET_HOME), 2);
}

/* A plan with one recall. */
static void make_recall(Fixture *f)
{
    make_lends(f);
    fixture_commit(f, NULL);
    fixture_tick(f);
    f->world->leases[0].until_usec = f->world->now_usec;
    for (size_t i = 0; i < f->world->n_tasks; i++)
        f->world->tasks[i].wait_permille = 0;
    fixture_plan(f, false);
    assert_int_equal(f->plan.n_actions, 1);
    assert_int_equal(f->plan.actions[0].kind, PLAN_KIND_RECALL);
}

static void assert_found(Fixture *f, const char *words)
{
    CLEANUP_FREE char *what = NULL;

    assert_int_equal(plan_check(f->world, f->policies, &f->limits, &f->plan, &what), -EUCLEAN);
    assert_non_null(what);
    if (!strstr(what, words))
        fail_msg("expected \"%s\" in \"%s\"", words, what);
    assert_int_equal(plan_check(f->world, f->policies, &f->limits, &f->plan, NULL), -EUCLEAN);
}

#define BREAKS(make, words, ...) \
    do {                         \
        Fixture f;               \
                                 \
        make(&f);                \
        __VA_ARGS__;             \
        assert_found(&f, words); \
        fixture_done(&f);        \
    } while (0)

static void test_shape(void **state)
{
    BREAKS(make_lends, "another time", f.plan.tick++);
    BREAKS(make_lends, "another time", f.plan.now_usec++);
    BREAKS(make_lends, "kind of action 1 is out of range", f.plan.actions[1].kind = PLAN_KIND_MAX);
    BREAKS(make_lends, "out of order", f.plan.actions[1].kind = PLAN_KIND_RELEASE);
    BREAKS(make_lends, "does not fit", f.plan.actions[0].rule = PLAN_RULE_LEASE_ENDED);
    BREAKS(make_lends, "no mechanism", f.plan.actions[0].mechanism = 0);
    BREAKS(make_lends, "missing or empty", f.plan.actions[0].to = NULL);
    BREAKS(make_lends, "missing or empty", f.plan.actions[0].to = fixture_mask(&f, ""));
    BREAKS(make_lends, "needs a thread and a CPU", f.plan.actions[0].cpu = (CpuIx){99});
    BREAKS(make_lends, "needs a thread and a CPU", f.plan.actions[0].subject.tid = 0);
    BREAKS(make_lends, "its process does not exist", f.plan.actions[0].subject.pid = 99);
    BREAKS(make_lends, "its thread does not exist", f.plan.actions[0].subject.start_ticks++);
    BREAKS(make_homes, "its PID now belongs to another process", f.plan.actions[0].subject.start_ticks++);
    BREAKS(make_lends, "I11", f.limits.observe = true);
    BREAKS(make_lends, "paused", f.world->workloads[0].paused = true);
}

static void test_homes(void **state)
{
    BREAKS(make_homes, "I1:", f.world->processes[0].cpuset = fixture_mask(&f, "1-7"));
    BREAKS(make_homes, "I2, I10", f.world->tasks[0].hands = TASK_HANDS_UNKNOWN);
    BREAKS(make_homes, "I2, I10", f.world->tasks[0].task_class = TASK_CLASS_DEADLINE);
    BREAKS(make_homes, "I2, I10", f.world->processes[0].yielded = true);
    BREAKS(make_homes, "no thread has the mask", f.plan.actions[0].from = fixture_mask(&f, "9"));
    BREAKS(make_homes, "inside the home's nodes", f.plan.actions[0].to = fixture_mask(&f, "0-8"));
    BREAKS(make_homes, "no policy", f.policies->policies[0]->mode = POLICY_MODE_NONE);
    BREAKS(make_homes, "the mask to put back is missing", f.plan.actions[0].original = NULL);
    BREAKS(make_homes, "I6: its home is not that of its group",
           f.plan.actions[0].home_nodes = fixture_mask(&f, "1"));
    BREAKS(make_homes, "I6: its home is not that of its group", f.plan.n_homes = 0);
    BREAKS(make_homes, "I6: two homes", f.plan.homes[f.plan.n_homes++] = f.plan.homes[0]);
    BREAKS(make_homes, "does not exist", f.plan.homes[0].group_id += 7, f.plan.n_actions = 0);
}

static void test_lends(void **state)
{
    BREAKS(make_lends, "has no home", f.world->groups[0].home = f.world->groups[0].home_nodes = NULL);
    BREAKS(make_lends, "Steal=no", f.policies->policies[0]->steal = false);
    BREAKS(make_lends, "the mask that we set", f.world->tasks[0].original = NULL);
    BREAKS(make_lends, "add exactly", f.plan.actions[0].to = fixture_mask(&f, "0-9"));
    BREAKS(make_lends, "add exactly", f.plan.actions[0].to = fixture_mask(&f, "0-6,8-9"));
    BREAKS(make_lends, "I7: moved", f.world->tasks[0].last_move_usec = f.world->now_usec - 999999);
    BREAKS(make_lends, "I7: the thread is in this plan twice", f.plan.actions[1] = f.plan.actions[0];
           f.plan.actions[1].cpu.i = 9; f.plan.actions[1].to = fixture_mask(&f, "0-7,9"));
    BREAKS(make_lends, "does not wait", f.world->tasks[0].wait_before_permille = 249);
    BREAKS(make_lends, "of its home is idle", fixture_cpu(&f, 4, 0, 0));
    BREAKS(make_lends, "not usable", f.world->cpus[8].usable = false);
    BREAKS(make_lends, "is not idle", f.world->cpus[8].busy_before_permille = 50);
    BREAKS(make_lends, "I7: CPU 8 is cooling", f.world->cpus[8].cooldown_until_usec = UINT64_MAX);
    BREAKS(make_lends, "lent twice", f.plan.actions[1].cpu = (CpuIx){8};
           f.plan.actions[1].to = f.plan.actions[0].to);
    BREAKS(make_lends, "lent already", fixture_task(&f, 10, 20, 0)->original = fixture_mask(&f, NULL);
           assert_int_equal(world_add_lease(f.world, &(Lease){.task = {10, 20, 200}, .cpu = {8}}), 0));
    BREAKS(make_lends, "I8: 2 nodes", f.policies->policies[0]->node_limit = 1);
    BREAKS(make_lends, "I8: distance 20", f.policies->policies[0]->max_distance = 19);
    BREAKS(make_lends, "beyond Scope", f.policies->policies[0]->scope = POLICY_SCOPE_NODE);
    BREAKS(make_lends, "cross_node is wrong", f.plan.actions[0].cross_node = false);
    BREAKS(make_lends, "at distance 21", f.plan.actions[0].distance = 21);
    BREAKS(make_lends, "I4: 2 moves across nodes by a", f.policies->policies[0]->cross_node_burst = 1);
    BREAKS(make_lends, "I4: 2 moves across nodes", f.limits.cross_node_burst = 1);
}

static void test_pushes(void **state)
{
    BREAKS(make_push, "has no home", f.world->groups[0].home = f.world->groups[0].home_nodes = NULL);
    BREAKS(make_push, "Steal=no", f.policies->policies[0]->steal = false);
    BREAKS(make_push, "mask of its home", f.plan.actions[0].to = fixture_mask(&f, "0-14"));
    BREAKS(make_push, "not in its home", f.plan.actions[0].cpu.i = 16);
    BREAKS(make_push, "runs on another CPU", f.world->tasks[0].last_cpu.i = 2);
    BREAKS(make_push, "not a push to another node", f.plan.actions[0].cross_node = false);
    BREAKS(make_push, "I10: the World is partial", f.world->partial = true);
    BREAKS(make_push, "I7: moved", f.world->tasks[0].last_move_usec = f.world->now_usec - 999999);
    BREAKS(make_push, "CPU 9 of the core is not idle", fixture_cpu(&f, 9, 500, 0));
    BREAKS(make_push, "not run steadily", f.world->tasks[0].run_before_permille = 899);
    BREAKS(make_push, "I4: 1 moves across nodes by a", f.policies->policies[0]->cross_node_burst = 0);
}

static void test_recalls(void **state)
{
    BREAKS(make_recall, "no CPU to take back", world_remove_lease(f.world, 0));
    BREAKS(make_recall, "was lent CPU", f.plan.actions[0].cpu.i++);
    BREAKS(make_recall, "another mask", f.plan.actions[0].from = fixture_mask(&f, "0-7"));
    BREAKS(make_recall, "keep the CPU", f.plan.actions[0].to = f.plan.actions[0].from);
    BREAKS(make_recall, "has not ended", f.world->leases[0].until_usec++);
    BREAKS(make_recall, "I7", f.plan.actions[0].rule = PLAN_RULE_DEMAND_FELL);
}

static void test_budget(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, EAGER);
    for (pid_t pid = 1; pid <= 65; pid++)
        fixture_threads(&f, pid, 1);
    fixture_plan(&f, true);
    assert_true(GROW(f.plan.actions, f.plan.actions_capacity, 65));
    f.plan.actions[64] = f.plan.actions[0];
    f.plan.actions[64].subject = (TaskKey){.pid = 65, .start_ticks = 650};
    f.plan.n_actions = 65;
    assert_found(&f, "P7: 65 actions");
}

/* Asserts that a name is lower-case and unlike those before it. */
static void check_name(const char *name, const char *const *before, size_t n)
{
    assert_non_null(name);
    assert_true(strlen(name) > 2 && strspn(name, "abcdefghijklmnopqrstuvwxyz-") == strlen(name));
    for (size_t i = 0; i < n; i++)
        assert_string_not_equal(name, before[i]);
}

static void check_text(const char *text)
{
    assert_non_null(text);
    assert_int_equal(text[strlen(text) - 1], '.');
}

/* A kind that takes a CPU names one, and changes or keeps a mask; one that puts masks back is for any thread. */
static void test_kinds(void **state)
{
    for (int i = 0; i < PLAN_KIND_MAX; i++) {
        const PlanKindTraits *kind = plan_kind_traits((PlanKind)i);

        assert_true(!kind->takes_cpu || kind->names_cpu);
        assert_true(!kind->names_cpu || kind->masks);
        assert_true(!kind->puts_back || (kind->masks && !kind->names_cpu && !kind->spends));
    }
    assert_true(plan_rule_decides(PLAN_RULE_PAUSED, PLAN_KIND_RELEASE));
    assert_true(plan_rule_decides(PLAN_RULE_PAUSED, PLAN_KIND_RECALL));
    assert_false(plan_rule_decides(PLAN_RULE_PAUSED, PLAN_KIND_LEND));
    assert_false(plan_rule_decides(PLAN_RULE_INVALID, PLAN_KIND_RELEASE));
    assert_false(plan_rule_decides(PLAN_RULE_PAUSED, PLAN_KIND_MAX));
}

static void test_names(void **state)
{
    const char *names[PLAN_REASON_MAX];

    for (int i = 0; i < PLAN_KIND_MAX; i++)
        check_name(names[i] = plan_kind_name((PlanKind)i), names, (size_t)i);
    for (int i = 0; i < PLAN_RULE_MAX; i++) {
        bool decides = false;

        for (int kind = 0; kind < PLAN_KIND_MAX; kind++)
            decides |= plan_rule_decides((PlanRule)i, (PlanKind)kind);
        assert_true(decides);
        check_name(names[i] = plan_rule_name((PlanRule)i), names, (size_t)i);
        check_text(plan_rule_text((PlanRule)i));
    }
    for (int i = 0; i < PLAN_REASON_MAX; i++) {
        check_name(names[i] = plan_reason_name((PlanReason)i), names, (size_t)i);
        check_text(plan_reason_text((PlanReason)i));
    }
    for (int i = 0; i < PLAN_OUTCOME_MAX; i++)
        check_name(names[i] = plan_outcome_name((PlanOutcome)i), names, (size_t)i);
    assert_string_equal(plan_kind_name(PLAN_KIND_INVALID), "invalid");
    assert_string_equal(plan_rule_name(PLAN_RULE_MAX), "invalid");
    assert_string_equal(plan_reason_name(PLAN_REASON_MAX), "invalid");
    assert_string_equal(plan_outcome_name(PLAN_OUTCOME_INVALID), "invalid");
}

TEST_MAIN(NULL, NULL, test_shape, test_homes, test_lends, test_recalls, test_pushes, test_budget, test_kinds,
          test_names)
