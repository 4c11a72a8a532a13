/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P2, P3: which CPUs are lent to which threads, and why not. */

#include "fixture.h"

#define FIXED0 "[Placement]\nMode=fixed\nNodes=0\n"
#define EAGER  FIXED0 "[Limits]\nNiceTries=0\n"

/* Sets up process 10 with `n` threads, confined to node 0, which is full; all other CPUs are idle. */
static Policy *make_crowd(Fixture *f, const char *synthetic, const char *policy, unsigned n, uint16_t wait)
{
    Policy *p;

    fixture_init(f, synthetic);
    p = fixture_policy(f, "a", policy);
    fixture_process(f, 10, "a", NULL);
    for (unsigned i = 0; i < n; i++)
        fixture_task(f, 10, 10 + (pid_t)i, wait);
    for (int cpu = 0; cpu < (int)f->world->topology->cpu_limit; cpu++)
        if (f->world->topology->cpus[cpu].node.i == 0)
            fixture_cpu(f, cpu, 1000, wait);
    fixture_home(f);
    return p;
}

/* Asserts that nothing is lent, because of `reason`. */
static void assert_refused(Fixture *f, PlanReason reason)
{
    fixture_plan(f, false);
    if (fixture_count(f, PLAN_KIND_LEND) > 0 || f->plan.n_refused[reason] == 0) {
        CLEANUP_FREE char *text = plan_format(f->world, &f->plan);

        fail_msg("expected %s\n%s", plan_reason_name(reason), text);
    }
}

/* S-STEAL2: 12 spinning threads confined to 8 CPUs, 8 others idle. */
static void steal2(const char *policy, unsigned ticks)
{
    uint16_t demand[12];
    unsigned lends = 0;
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, policy);
    fixture_process(&f, 10, "a", NULL);
    for (unsigned i = 0; i < 12; i++) {
        fixture_task(&f, 10, 10 + (pid_t)i, 0);
        demand[i] = 1000;
    }
    fixture_home(&f);
    fixture_model(&f, demand);
    assert_int_equal(fixture_run(&f, 10), 8000);

    for (unsigned tick = 1; tick < 600; tick++) {
        fixture_plan(&f, false);
        assert_int_equal(fixture_count(&f, PLAN_KIND_RECALL), 0);
        lends += (unsigned)fixture_count(&f, PLAN_KIND_LEND);
        fixture_commit(&f, NULL);
        fixture_assert_settled(&f, false);
        fixture_model(&f, demand);
        if (tick >= ticks) {
            assert_int_equal(lends, 4);
            assert_int_equal(fixture_run(&f, 10), 12000);
        }
        if (tick == 200)
            break; /* before LeaseSec= is over */
    }
    assert_int_equal(f.world->workloads[0].n_lends, 4);
}

static void test_s_steal2(void **state)
{
    steal2(EAGER, 3);
    /* Two vetoed passes come on top of the two ticks that detection takes. */
    steal2(FIXED0, 4);
}

/* S-VETO: locality vetoes exactly NiceTries= passes, the next one moves. */
static void test_s_veto(void **state)
{
    for (uint32_t tries = 0; tries < 5; tries++) {
        CLEANUP(fixture_done) Fixture f;
        Policy *p = make_crowd(&f, TWO_SHARDS, FIXED0, 9, 300);

        p->nice_tries = tries;
        for (uint32_t i = 0; i < tries; i++) {
            assert_refused(&f, PLAN_REASON_LOCALITY);
            fixture_commit(&f, NULL);
            assert_int_equal(f.world->groups[0].n_vetoes, i + 1);
            assert_refused(&f, PLAN_REASON_BACKOFF); /* the same tick again is no further attempt */
            fixture_tick(&f);
        }
        fixture_plan(&f, false);
        assert_true(fixture_count(&f, PLAN_KIND_LEND) > 0);
        fixture_commit(&f, NULL);
        assert_int_equal(f.world->groups[0].n_vetoes, 0);
    }
}

/* The count starts anew if the overload ends in between. */
static void test_veto_resets(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_crowd(&f, TWO_SHARDS, FIXED0, 9, 300);
    assert_refused(&f, PLAN_REASON_LOCALITY);
    fixture_commit(&f, NULL);
    fixture_tick(&f);
    for (size_t i = 0; i < f.world->n_tasks; i++)
        f.world->tasks[i].wait_permille = 0;
    assert_refused(&f, PLAN_REASON_NOT_OVERLOADED);
    fixture_commit(&f, NULL);
    assert_int_equal(f.world->groups[0].n_vetoes, 0);
}

/* The number of lends: the sum of waiting, in CPUs. */
static void test_wish(void **state)
{
    static const struct {
        unsigned n;
        uint16_t wait;
        unsigned lends;
    } cases[] = {
        {12, 333, 4}, {8, 249, 0}, {1, 250, 1},  {4, 300, 1},
        {4, 312, 1},  {4, 313, 2}, {16, 500, 8}, {30, 900, 8},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        make_crowd(&f, TWO_SHARDS, EAGER, cases[i].n, cases[i].wait);
        fixture_plan(&f, false);
        assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), cases[i].lends);
        fixture_commit(&f, NULL);
        fixture_assert_settled(&f, false);
    }
}

static void test_action(void **state)
{
    const PlanAction *a;
    const Lease *lease;
    CLEANUP(fixture_done) Fixture f;
    Task *task;

    make_crowd(&f, TWO_SHARDS, EAGER, 3, 260);
    fixture_find(&f, 10, 11)->wait_permille = 400; /* waits most */
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 1);
    a = fixture_action(&f, PLAN_KIND_LEND, 0);
    assert_int_equal(a->subject.tid, 11);
    assert_int_equal(a->subject.start_ticks, 110);
    assert_int_equal(a->cpu.i, 8);
    assert_true(a->cross_node);
    assert_int_equal(a->distance, 20);
    assert_int_equal(a->value, 400);
    assert_int_equal(a->limit, 250);
    assert_ptr_equal(a->from, fixture_mask(&f, "0-7"));
    assert_ptr_equal(a->to, fixture_mask(&f, "0-8"));
    assert_true(f.plan.pressed);
    assert_true(f.plan.may_borrow);

    fixture_commit(&f, NULL);
    task = fixture_find(&f, 10, 11);
    assert_ptr_equal(task->allowed, fixture_mask(&f, "0-8"));
    assert_int_equal(task->last_move_usec, f.world->now_usec);
    assert_int_equal(f.world->n_leases, 1);
    lease = &f.world->leases[task->lease];
    assert_int_equal(lease->cpu.i, 8);
    assert_int_equal(lease->until_usec, f.world->now_usec + 30000000);
    assert_int_equal(lease->since_tick, f.world->tick);
}

/* Nearest first: with a home smaller than a node every level occurs. The home is one hardware thread of each
 * of two cores, in different LLCs of node 0; the threads ran on CPU 0. */
static void test_nearest(void **state)
{
    /* Node 0: LLCs {0-3}, {4-7}; node 1: {8-11}, {12-15}; nodes 2 and 3 likewise. Cores are pairs of CPUs. */
    static const char machine[] = "numa:4 l3:2 core:2 pu:2 distances="
                                  "10,22,16,28,22,10,28,16,16,28,10,22,28,16,22,10";
    static const int order[] = {1, 2, 3, 5, 6, 7, 16, 17}; /* SMT, LLC, node, then node 2, at distance 16 */
    CLEANUP(fixture_done) Fixture f;
    Policy *p;

    fixture_init(&f, machine);
    p = fixture_policy(&f, "a", EAGER);
    p->node_limit = 4;
    fixture_process(&f, 10, "a", NULL);
    for (pid_t tid = 10; tid < 18; tid++) {
        Task *task = fixture_task(&f, 10, tid, 999);

        task->original = task->allowed;
        task->allowed = fixture_mask(&f, "0,4");
        task->last_cpu = (CpuIx){0};
    }
    f.world->groups[0].home = fixture_mask(&f, "0,4");
    f.world->groups[0].home_nodes = fixture_mask(&f, "0");
    fixture_cpu(&f, 0, 1000, 1000);
    fixture_cpu(&f, 4, 1000, 1000);

    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), 8);
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        const PlanAction *a = fixture_action(&f, PLAN_KIND_LEND, i);

        assert_int_equal(a->subject.tid, 10 + (pid_t)i);
        assert_int_equal(a->cpu.i, order[i]);
        assert_int_equal(a->cross_node, order[i] >= 8);
        assert_int_equal(a->distance, order[i] >= 8 ? 16 : 10);
    }

    /* The same within each Scope=. */
    for (int scope = 0; scope < POLICY_SCOPE_MAX; scope++) {
        static const unsigned lends[POLICY_SCOPE_MAX] = {1, 3, 6, 8};

        p->scope = scope;
        fixture_plan(&f, false);
        assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), lends[scope]);
        if (scope < POLICY_SCOPE_MACHINE)
            assert_true(f.plan.n_refused[PLAN_REASON_SCOPE] > 0);
    }

    /* The last CPU is not known: distances are from the home as a whole, and node 0 still comes before node 2. */
    for (size_t i = 0; i < f.world->n_tasks; i++)
        f.world->tasks[i].last_cpu = CPU_NONE;
    fixture_plan(&f, false);
    for (size_t i = 0; i < ARRAY_SIZE(order); i++)
        assert_int_equal(fixture_action(&f, PLAN_KIND_LEND, i)->cpu.i, order[i]);
}

/* I8 */
static void test_node_limit(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Policy *p = make_crowd(&f, "numa:8 l3:1 core:4 pu:1", EAGER, 32, 800);

    for (p->node_limit = 1; p->node_limit < 8; p->node_limit++) {
        assert_refused(&f, PLAN_REASON_NODE_LIMIT);
        assert_int_equal(f.plan.refusals[0].value, 8);
        assert_int_equal(f.plan.refusals[0].limit, p->node_limit);
    }
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), 26);
}

static void test_max_distance(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_crowd(&f, "numa:2 l3:1 core:4 pu:1 distances=10,31,31,10", EAGER, 8, 500);
    assert_refused(&f, PLAN_REASON_MAX_DISTANCE);
    f.policies->policies[0]->max_distance = 31;
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), 4);
}

static void test_cpuset(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, EAGER);
    fixture_process(&f, 10, "a", "0-8"); /* one CPU outside its home */
    for (pid_t tid = 10; tid < 26; tid++)
        fixture_task(&f, 10, tid, 500);
    fixture_cpus(&f, 0, 7, 1000, 500);
    fixture_home(&f);
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), 1);
    assert_int_equal(fixture_action(&f, PLAN_KIND_LEND, 0)->cpu.i, 8);
    assert_true(f.plan.n_refused[PLAN_REASON_CPUSET] > 0);
}

static void test_not_considered(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Policy *p = make_crowd(&f, TWO_SHARDS, EAGER, 12, 400);

    p->steal = false;
    assert_refused(&f, PLAN_REASON_STEAL_OFF);
    p->steal = true;
    f.world->partial = true;
    assert_refused(&f, PLAN_REASON_UNREADABLE);
    f.world->partial = false;
    f.world->workloads[0].paused = true;
    assert_refused(&f, PLAN_REASON_PAUSED);
    f.world->workloads[0].paused = false;

    fixture_cpu(&f, 3, 0, 0);
    assert_refused(&f, PLAN_REASON_HOME_HAS_IDLE);
    fixture_cpu(&f, 3, 1000, 400);

    fixture_cpus(&f, 8, 15, 60, 0);
    assert_refused(&f, PLAN_REASON_NO_IDLE_CPU);
    assert_int_equal(f.plan.n_passes, 0); /* without an idle CPU there is no pass */
    fixture_cpus(&f, 8, 15, 0, 0);

    for (int cpu = 8; cpu < 16; cpu++)
        f.world->cpus[cpu].usable = false;
    assert_refused(&f, PLAN_REASON_NO_IDLE_CPU);
    for (int cpu = 8; cpu < 16; cpu++)
        f.world->cpus[cpu].usable = true;

    for (int cpu = 8; cpu < 16; cpu++)
        f.world->cpus[cpu].cooldown_until_usec = f.world->now_usec + 1;
    assert_refused(&f, PLAN_REASON_COOLDOWN);
    for (int cpu = 8; cpu < 16; cpu++)
        f.world->cpus[cpu].cooldown_until_usec = f.world->now_usec;
    fixture_plan(&f, false);
    assert_true(fixture_count(&f, PLAN_KIND_LEND) > 0);

    for (size_t i = 0; i < f.world->n_tasks; i++)
        f.world->tasks[i].fresh = true;
    assert_refused(&f, PLAN_REASON_NOT_OVERLOADED);
    for (size_t i = 0; i < f.world->n_tasks; i++) {
        f.world->tasks[i].fresh = false;
        f.world->tasks[i].wait_before_permille = 249;
    }
    assert_refused(&f, PLAN_REASON_NOT_OVERLOADED);
    /* The refusal shows the value that fell short: a long wait in one tick only is not enough. */
    for (size_t i = 0; i < f.plan.n_refusals; i++)
        if (f.plan.refusals[i].reason == PLAN_REASON_NOT_OVERLOADED)
            assert_true(f.plan.refusals[i].value == 249 && f.plan.refusals[i].limit == 250);
}

/* Not confined by us: the kernel can spread the threads. */
static void test_no_home(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, "[Placement]\nMode=auto\n");
    fixture_process(&f, 10, "a", NULL);
    for (pid_t tid = 10; tid < 30; tid++)
        fixture_task(&f, 10, tid, 900);
    fixture_home(&f);
    assert_refused(&f, PLAN_REASON_NO_HOME);
    assert_false(f.plan.pressed);
}

/* The home leaves out no CPU, or the policy does not steal: nothing can be lent, so no fast ticks are needed. */
static void test_nothing_to_borrow(void **state)
{
    static const char *const policies[] = {
        "[Placement]\nMode=fixed\nNodes=0,1\n",
        "[Placement]\nMode=fixed\nNodes=0\n[Steal]\nSteal=no\n",
        "[Placement]\nMode=fixed\nNodes=0\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, TWO_SHARDS, policies[i]);
        fixture_process(&f, 10, "a", NULL);
        for (pid_t tid = 10; tid < 30; tid++)
            fixture_task(&f, 10, tid, 900);
        fixture_cpus(&f, 0, 15, 1000, 1000);
        fixture_home(&f);
        fixture_tick(&f);
        fixture_plan(&f, false);
        assert_int_equal(f.plan.pressed, i == 2);
        assert_int_equal(f.plan.may_borrow, i == 2);
        assert_int_equal(f.plan.full, i == 2); /* all CPUs are busy */
        fixture_cpus(&f, 15, 15, 0, 0);
        fixture_tick(&f);
        fixture_cpus(&f, 15, 15, 0, 0);
        fixture_plan(&f, false);
        assert_int_equal(f.plan.pressed, i == 2);
        assert_false(f.plan.full);
    }
}

/* The gate: expected idle time compared with the cost of a move. */
static void test_idle_too_short(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_crowd(&f, TWO_SHARDS, EAGER, 12, 400);
    f.world->action_cost_usec = 30;
    for (int cpu = 8; cpu < 16; cpu++) {
        f.world->cpus[cpu].idle_since_usec = f.world->now_usec - 299;
        f.world->cpus[cpu].idle_ewma_usec = 200;
    }
    assert_refused(&f, PLAN_REASON_IDLE_TOO_SHORT);
    assert_int_equal(f.plan.refusals[0].value, 299);
    assert_int_equal(f.plan.refusals[0].limit, 300);
    f.world->cpus[12].idle_ewma_usec = 300;
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), 1);
    assert_int_equal(fixture_action(&f, PLAN_KIND_LEND, 0)->cpu.i, 12);
}

/* I7 */
static void test_residency(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_crowd(&f, TWO_SHARDS, EAGER, 2, 500);
    for (size_t i = 0; i < f.world->n_tasks; i++)
        f.world->tasks[i].last_move_usec = f.world->now_usec - 999999;
    assert_refused(&f, PLAN_REASON_RESIDENCY);
    f.world->now_usec++;
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), 1);
}

/* P7: 1, 2, 4 ... passes are skipped, and any change starts anew. */
static void test_backoff(void **state)
{
    static const uint32_t skipped[] = {1, 2, 4, 8, 16, 32, 32};
    CLEANUP(fixture_done) Fixture f;

    make_crowd(&f, TWO_SHARDS, EAGER, 12, 400);
    for (int cpu = 8; cpu < 16; cpu++)
        f.world->cpus[cpu].cooldown_until_usec = UINT64_MAX;
    for (size_t i = 0; i < ARRAY_SIZE(skipped); i++) {
        assert_refused(&f, PLAN_REASON_COOLDOWN);
        fixture_commit(&f, NULL);
        assert_int_equal(f.world->groups[0].backoff_ticks, skipped[i]);
        fixture_tick(&f);
        for (uint32_t k = 0; k < skipped[i]; k++) {
            assert_refused(&f, PLAN_REASON_BACKOFF);
            assert_int_equal(f.plan.n_refused[PLAN_REASON_COOLDOWN], 0);
            fixture_commit(&f, NULL);
            fixture_tick(&f);
        }
    }
    f.world->cpus[9].cooldown_until_usec = 0;
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), 1);
    fixture_commit(&f, NULL);
    assert_int_equal(f.world->groups[0].backoff_ticks, 0);
}

/* An idle CPU in another group's home may be lent, unless that group's own threads wait. */
static void test_owners_who_wait(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_crowd(&f, TWO_SHARDS, EAGER, 12, 400);
    fixture_policy(&f, "b", "[Placement]\nMode=fixed\nNodes=1\n");
    fixture_process(&f, 20, "b", NULL);
    fixture_task(&f, 20, 20, 0);
    fixture_place(&f);
    fixture_tick(&f);
    f.world->groups[0].backoff_until_tick = 0;
    for (size_t i = 0; i < f.world->n_tasks; i++)
        f.world->tasks[i].wait_before_permille = f.world->tasks[i].wait_permille;

    fixture_find(&f, 20, 20)->wait_permille = 250;
    assert_refused(&f, PLAN_REASON_NO_IDLE_CPU);
    fixture_find(&f, 20, 20)->wait_permille = 249;
    fixture_plan(&f, false);
    assert_true(fixture_count(&f, PLAN_KIND_LEND) > 0);
}

/* Lends that failed are not repeated in every tick, and cost no token. */
static void test_outcomes(void **state)
{
    static const struct {
        PlanOutcome outcome;
        TaskHands hands;
        bool gone;
    } cases[] = {
        {PLAN_OUTCOME_GONE, TASK_HANDS_FREE, true},
        {PLAN_OUTCOME_FOREIGN, TASK_HANDS_UNKNOWN, false},
        {PLAN_OUTCOME_RETRY, TASK_HANDS_FREE, false},
        {PLAN_OUTCOME_REFUSED, TASK_HANDS_DENIED, false},
        {PLAN_OUTCOME_UNJOURNALLED, TASK_HANDS_FREE, false},
        {PLAN_OUTCOME_SKIPPED, TASK_HANDS_FREE, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        make_crowd(&f, TWO_SHARDS, EAGER, 1, 400);
        fixture_plan(&f, false);
        assert_int_equal(f.plan.n_actions, 1);
        fixture_commit(&f, &cases[i].outcome);
        assert_int_equal(f.world->n_leases, 0);
        assert_int_equal(f.world->cross_node.updated_usec, 0);
        assert_int_equal(f.world->workloads[0].n_lends, 0);
        assert_int_equal(f.world->groups[0].backoff_ticks, 1);
        assert_int_equal(f.world->tasks[0].hands, cases[i].hands);
        assert_int_equal(f.world->tasks[0].gone, cases[i].gone);
        assert_ptr_equal(f.world->tasks[0].allowed, fixture_mask(&f, "0-7"));
        fixture_assert_settled(&f, false);
    }
}

TEST_MAIN(NULL, NULL, test_s_steal2, test_s_veto, test_veto_resets, test_wish, test_action, test_nearest,
          test_node_limit, test_max_distance, test_cpuset, test_not_considered, test_no_home,
          test_nothing_to_borrow, test_idle_too_short, test_residency, test_backoff, test_owners_who_wait,
          test_outcomes)
