/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Invariants over thousands of random Worlds. The seeds are fixed: a failure can be repeated. */

#include "random-world.h"

#define N_WORLDS    12000U
#define N_RENAMED   3000U
#define N_SEQUENCES 60U
#define N_TICKS     200U

/* plan_check(), I9, I12 (the same bytes), I11. */
static void test_worlds(void **state)
{
    uint64_t n_kind[PLAN_KIND_MAX] = {0}, n_rule[PLAN_RULE_MAX] = {0}, n_refused[PLAN_REASON_MAX] = {0};

    for (uint64_t seed = 1; seed <= N_WORLDS; seed++) {
        CLEANUP_FREE char *once = NULL, *twice = NULL;
        Plan again = {0};
        bool cut;
        CLEANUP(fixture_done) Fixture f;

        (seed % 16 == 5 ? random_full_world : random_world)(&f, seed, &random_no_renaming);
        fixture_plan(&f, f.limits.slow_tick);
        for (size_t i = 0; i < f.plan.n_actions; i++) {
            n_kind[f.plan.actions[i].kind]++;
            n_rule[f.plan.actions[i].rule]++;
        }
        for (size_t i = 0; i < PLAN_REASON_MAX; i++)
            n_refused[i] += f.plan.n_refused[i];

        once = plan_format(f.world, &f.plan);
        assert_int_equal(plan_compute(f.world, f.policies, &f.limits, &again), 0);
        twice = plan_format(f.world, &again);
        assert_string_equal(once, twice);
        plan_done(&again);

        cut = f.plan.n_refused[PLAN_REASON_BUDGET] > 0;
        fixture_commit(&f, NULL);
        /* With homes, too, if the first plan chose them early for a new group. */
        fixture_plan(&f, f.limits.slow_tick || f.plan.n_homes > 0);
        if (!cut && f.plan.n_actions + f.plan.n_homes + f.plan.n_pools > 0) {
            CLEANUP_FREE char *text = plan_format(f.world, &f.plan);

            (void)fprintf(stderr, "# again:\n%s# after:\n%s", text, once); /* too long for cmocka to print */
            fail_msg("I9: world %u is not settled", (unsigned)seed);
        }

        f.limits.observe = true;
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_actions, 0);
    }

    /* The Worlds are varied enough: nearly everything happens in them. */
    for (int i = 0; i < PLAN_KIND_MAX; i++)
        assert_in_range(n_kind[i], 100, UINT64_MAX);
    for (int i = 0; i <= PLAN_RULE_HOME_GONE; i++) /* later ones are for plan_release() */
        assert_in_range(n_rule[i], 10, UINT64_MAX);
    for (int i = PLAN_RULE_FOLLOW_HOME; i < PLAN_RULE_FOLLOW_USE; i++) /* that one is for plan_follow_use() */
        assert_in_range(n_rule[i], 10, UINT64_MAX);
    for (int i = 0; i < PLAN_REASON_MAX; i++)
        if (n_refused[i] == 0 && i != PLAN_REASON_REHEARSAL && i != PLAN_REASON_NO_POLICY &&
            i != PLAN_REASON_MODE_NONE && i != PLAN_REASON_NO_HOME && i != PLAN_REASON_BUDGET)
            fail_msg("no world in which something is refused for %s", plan_reason_name((PlanReason)i));
}

static void assert_same_nodes(const Topology *t, const Renaming *renaming, CpuMask a, CpuMask b)
{
    assert_int_equal(!a, !b);
    for (uint32_t i = 0; a && i < t->n_nodes; i++)
        assert_int_equal(hwloc_bitmap_isset(a, i), hwloc_bitmap_isset(b, renaming->to[i]));
}

/* I12: renaming nodes renames the plan and changes nothing else. */
static void assert_same_action(const Topology *t, const Renaming *renaming, const PlanAction *a,
                               const PlanAction *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->rule, b->rule);
    assert_int_equal(a->subject.pid, b->subject.pid);
    assert_int_equal(a->subject.tid, b->subject.tid);
    assert_int_equal(!a->from, !b->from);
    assert_int_equal(!a->to, !b->to);
    assert_true(!a->from || hwloc_bitmap_isequal(a->from, b->from));
    assert_true(!a->to || hwloc_bitmap_isequal(a->to, b->to));
    assert_int_equal(a->cpu.i, b->cpu.i);
    assert_int_equal(a->cross_node, b->cross_node);
    assert_int_equal(a->distance, b->distance);
    assert_int_equal(a->value, b->value);
    assert_same_nodes(t, renaming, a->home_nodes, b->home_nodes);
    assert_same_nodes(t, renaming, a->memory.from, b->memory.from);
    assert_same_nodes(t, renaming, a->memory.to, b->memory.to);
    assert_int_equal(a->memory.bytes, b->memory.bytes);
    assert_int_equal(a->memory.reserve_bytes, b->memory.reserve_bytes);
}

static void test_renaming(void **state)
{
    Random r = {.state = 99};

    for (uint64_t seed = 1; seed <= N_RENAMED; seed++) {
        Renaming renaming = random_no_renaming;
        Fixture f, g;
        uint32_t n;

        (seed % 16 == 5 ? random_full_world : random_world)(&f, seed, &random_no_renaming);
        n = f.world->topology->n_nodes;
        for (uint32_t i = n; i > 1; i--) {
            uint32_t k = random_roll(&r, i), t = renaming.to[k];

            renaming.to[k] = renaming.to[i - 1];
            renaming.to[i - 1] = t;
        }
        (seed % 16 == 5 ? random_full_world : random_world)(&g, seed, &renaming);
        fixture_plan(&f, f.limits.slow_tick);
        fixture_plan(&g, g.limits.slow_tick);
        assert_int_equal(f.plan.n_actions, g.plan.n_actions);
        for (size_t i = 0; i < f.plan.n_actions; i++)
            assert_same_action(f.world->topology, &renaming, &f.plan.actions[i], &g.plan.actions[i]);
        for (size_t i = 0; i < PLAN_REASON_MAX; i++)
            assert_int_equal(f.plan.n_refused[i], g.plan.n_refused[i]);
        fixture_done(&f);
        fixture_done(&g);
    }
}

/* Sequences: a random World goes on for a while, with random demands, outcomes and accidents. */

typedef struct History {
    uint64_t lends[4][PLAN_ACTIONS_PER_TICK * N_TICKS]; /* times, by workload */
    size_t n_lends[4];
} History;

static void accidents(Fixture *f, Random *r)
{
    World *w = f->world;
    Task *task = &w->tasks[random_roll(r, (uint32_t)w->n_tasks)];
    CpuLoad *cpu = &w->cpus[random_roll(r, w->topology->cpu_limit)];

    if (random_chance(r, 2))
        cpu->online = cpu->usable = !cpu->online;
    if (random_chance(r, 1))
        w->workloads[random_roll(r, (uint32_t)w->n_workloads)].paused ^= true;
    if (random_roll(r, 1000) == 0) {
        task->hands = TASK_HANDS_REPINNED;
        w->processes[task->process.i].yielded = true;
    }
    /* The mask is readable again. */
    for (size_t i = 0; i < w->n_tasks; i++)
        if (w->tasks[i].hands == TASK_HANDS_UNKNOWN && random_chance(r, 20))
            w->tasks[i].hands = TASK_HANDS_FREE;
    if (random_roll(r, 1000) < 3 && w->n_tasks > 3) {
        task->gone = true;
        assert_int_equal(world_compact(w), 0);
    }
}

static void random_outcomes(const Plan *plan, Random *r, PlanOutcome *outcomes)
{
    static const PlanOutcome odd[] = {PLAN_OUTCOME_FOREIGN, PLAN_OUTCOME_RETRY, PLAN_OUTCOME_REFUSED,
                                      PLAN_OUTCOME_UNJOURNALLED, PLAN_OUTCOME_SKIPPED};

    for (size_t i = 0; i < plan->n_actions; i++)
        outcomes[i] = random_chance(r, 90) ? PLAN_OUTCOME_DONE : odd[random_roll(r, ARRAY_SIZE(odd))];
}

static void remember(const Fixture *f, const PlanOutcome *outcomes, History *h)
{
    for (size_t i = 0; i < f->plan.n_actions; i++) {
        const PlanAction *a = &f->plan.actions[i];

        if ((a->kind == PLAN_KIND_LEND || a->kind == PLAN_KIND_PUSH) && a->cross_node &&
            outcomes[i] == PLAN_OUTCOME_DONE)
            h->lends[a->workload.i][h->n_lends[a->workload.i]++] = f->world->now_usec;
    }
}

/* I4 */
static void assert_capped(const Fixture *f, const History *h)
{
    for (size_t w = 0; w < f->world->n_workloads; w++) {
        const Policy *p = group_policy(f->world, f->policies, (WorkloadIx){(int32_t)w});

        for (size_t i = 0; i < h->n_lends[w]; i++)
            for (size_t k = i; k < h->n_lends[w]; k++)
                assert_true((k - i + 1) * 1000000 <=
                            p->cross_node_burst * 1000000ULL +
                                p->cross_node_moves_per_sec * (h->lends[w][k] - h->lends[w][i]));
    }
}

static void test_sequences(void **state)
{
    static History history;
    size_t n_lends = 0;

    for (uint64_t seed = 1; seed <= N_SEQUENCES; seed++) {
        Random r = {.state = seed * 77 + 5};
        PlanOutcome outcomes[1024];
        uint16_t demand[256];
        CLEANUP(fixture_done) Fixture f;

        history = (History){0};
        random_world(&f, seed, &random_no_renaming);
        f.world->partial = false;
        for (size_t i = 0; i < ARRAY_SIZE(demand); i++)
            demand[i] = (uint16_t)(random_chance(&r, 40) ? 1000 : 0);
        for (unsigned tick = 0; tick < N_TICKS; tick++) {
            demand[random_roll(&r, ARRAY_SIZE(demand))] =
                (uint16_t)(random_chance(&r, 30) ? 1000 : random_roll(&r, 300));
            for (size_t i = 0; i < f.world->n_tasks; i++)
                f.world->tasks[i].fresh = false;
            fixture_plan(&f, tick % 10 == 0);
            assert_true(f.plan.n_actions <= ARRAY_SIZE(outcomes));
            random_outcomes(&f.plan, &r, outcomes);
            remember(&f, outcomes, &history);
            fixture_commit(&f, outcomes);
            accidents(&f, &r);
            fixture_model(&f, demand);
        }
        assert_capped(&f, &history);
        for (size_t i = 0; i < 4; i++)
            n_lends += history.n_lends[i];
    }
    assert_in_range(n_lends, 100, UINT64_MAX);
}

TEST_MAIN(NULL, NULL, test_worlds, test_renaming, test_sequences)
