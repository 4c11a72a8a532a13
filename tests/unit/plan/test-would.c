/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What acting would do for processes that are only observed. */

#include "choose-test.h"

#include "plan/would.h"
#include "random-world.h"

#define OBSERVE EACH "Act=observe\n[Placement]\nMode=auto\n"
#define N_SEEDS 2000U

/* Looks once, which must leave the World as it is. */
static void look(Fixture *f, Would *would)
{
    CLEANUP_FREE char *before = NULL;
    CLEANUP_FREE char *after = NULL;
    CLEANUP_FREE char *what = NULL;

    world_sum(f->world);
    before = world_dump(f->world);
    f->limits.slow_tick = true;
    assert_int_equal(would_compute(would, f->world, f->policies, &f->limits), 0);
    after = world_dump(f->world);
    assert_string_equal(before, after);
    if (would->world && world_check(would->world, &what) < 0)
        fail_msg("%s", what);
}

static size_t count(const Would *would, PlanKind kind, PlanOutcome outcome)
{
    size_t n = 0;

    for (size_t i = 0; i < would->plan.n_actions; i++)
        n += would->plan.actions[i].kind == kind && would->outcomes[i] == outcome;
    return n;
}

static void assert_would(Fixture *f, const Would *would, pid_t pid, const char *nodes)
{
    const Group *group = world_group_by_id(would->world, group_of(f, pid)->id);

    assert_non_null(group->home_nodes);
    assert_true(hwloc_bitmap_isequal(group->home_nodes, fixture_mask(f, nodes)));
}

/* The first home, once; then what follows from the memory, although nothing has really changed. */
static void test_goes_on(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    CLEANUP(would_done) Would would = {0};

    fixture_init_with(&f, TWO_SHARDS, OBSERVE);
    add_job(&f, 100, 2, 0, 1);
    set_memory(&f, 100, (uint64_t[]){0, 1024});
    look(&f, &would);
    assert_would(&f, &would, 100, "1");
    assert_int_equal(count(&would, PLAN_KIND_SET_HOME, PLAN_OUTCOME_DONE), 1);
    seconds(&f, 2);
    look(&f, &would);
    assert_would(&f, &would, 100, "1");
    assert_int_equal(count(&would, PLAN_KIND_SET_HOME, PLAN_OUTCOME_DONE), 0);
    assert_null(group_of(&f, 100)->home);

    seconds(&f, 1000);
    set_memory(&f, 100, (uint64_t[]){1024, 0});
    look(&f, &would);
    assert_would(&f, &would, 100, "0");
    assert_int_equal(count(&would, PLAN_KIND_SET_HOME, PLAN_OUTCOME_DONE), 1);
}

/* A mask that somebody else set meanwhile is the one that counts. */
static void test_repinned(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    CLEANUP(would_done) Would would = {0};
    const Task *task;

    fixture_init_with(&f, TWO_SHARDS, OBSERVE);
    add_job(&f, 100, 1, 0, 1);
    set_memory(&f, 100, (uint64_t[]){0, 1024});
    look(&f, &would);
    fixture_find(&f, 100, 100)->allowed = fixture_mask(&f, "0-11");
    fixture_find(&f, 100, 100)->hands = TASK_HANDS_FOREIGN;
    seconds(&f, 2);
    look(&f, &would);
    task = world_task_by_tid(would.world, 100, 100);
    assert_true(hwloc_bitmap_isequal(task->allowed, fixture_mask(&f, "0-11")));
    assert_null(task->original);
}

/* Two similar groups that one node has no room for: the one that was reported to move moves, although by now
 * the other would be chosen, and by more than keeps homes in place. */
static void test_comes_true(void **state)
{
    for (int wish = 0; wish <= 1; wish++) {
        CLEANUP(fixture_done) Fixture f;
        CLEANUP(would_done) Would would = {0};

        fixture_init_with(&f, TWO_SHARDS, OBSERVE);
        add_job(&f, 100, 6, 0, 1);
        add_job(&f, 200, 6, 0, 1);
        set_memory(&f, 100, (uint64_t[]){1024, 0});
        set_memory(&f, 200, (uint64_t[]){1000, 24});
        look(&f, &would);
        assert_would(&f, &would, 100, "0");
        assert_would(&f, &would, 200, "1");
        if (wish)
            assert_int_equal(would_wish(&would, f.world, f.policies, &f.limits), 0);

        set_memory(&f, 100, (uint64_t[]){850, 174});
        set_memory(&f, 200, (uint64_t[]){1024, 0});
        f.policies->policies[0]->act = POLICY_ACT_AUTO;
        seconds(&f, 2);
        fixture_home(&f);
        assert_nodes(&f, 100, wish ? "0" : "1");
        assert_nodes(&f, 200, wish ? "1" : "0");
        assert_null(group_of(&f, 100)->wish_nodes);
    }
}

/* Beside a placed process: neither it nor what is done to it is part of the report. */
static void test_beside(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    CLEANUP(would_done) Would would = {0};

    fixture_init_with(&f, TWO_SHARDS, AUTO);
    fixture_policy(&f, "b", OBSERVE);
    add_job(&f, 100, 2, 0, 1);
    set_memory(&f, 100, (uint64_t[]){1024, 0});
    fixture_process(&f, 200, "b", NULL);
    fixture_task(&f, 200, 200, 0);
    look(&f, &would);
    assert_int_equal(count(&would, PLAN_KIND_SET_HOME, PLAN_OUTCOME_RETRY), 1);
    assert_null(world_group_by_id(would.world, group_of(&f, 100)->id)->home);
    assert_int_equal(count(&would, PLAN_KIND_SET_HOME, PLAN_OUTCOME_DONE), 1);

    fixture_home(&f);
    assert_nodes(&f, 100, "0");
    assert_nodes(&f, 200, NULL);
    seconds(&f, 2);
    look(&f, &would);
    assert_int_equal(would.plan.n_actions, 0);
}

static void test_nobody(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    CLEANUP(would_done) Would would = {0};

    fixture_init_with(&f, TWO_SHARDS, AUTO);
    fixture_policy(&f, "b", OBSERVE);
    add_job(&f, 100, 2, 0, 1);
    look(&f, &would);
    assert_null(would.world);
    /* A daemon without the right to act. */
    f.limits.observe = true;
    look(&f, &would);
    assert_non_null(would.world);
    assert_int_equal(count(&would, PLAN_KIND_SET_HOME, PLAN_OUTCOME_DONE), 1);
}

/* Four fifths of the memory on node 1; three threads of one CPU each on node 0, and one on node 1. */
static void test_local(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    CLEANUP(would_done) Would would = {0};
    const Process *process;
    const Group *group;

    fixture_init_with(&f, TWO_SHARDS, OBSERVE);
    add_job(&f, 100, 4, 0, 1);
    fixture_find(&f, 100, 103)->last_cpu = (CpuIx){8};
    process = world_process(f.world, 100);
    assert_int_equal(would_local_now(f.world, process), WOULD_UNKNOWN);
    set_memory(&f, 100, (uint64_t[]){200, 800});
    look(&f, &would);
    assert_int_equal(would_local_now(f.world, process), (3 * 200 + 800) / 4);
    group = world_group_by_id(would.world, group_of(&f, 100)->id);
    assert_would(&f, &would, 100, "1");
    assert_int_equal(would_local_then(f.world, process, group, false), 800);
    assert_int_equal(would_local_then(f.world, process, group, true), 1000);
}

typedef struct GainCase {
    uint64_t mib[2];
    const char *home;
    bool follows, spreads;
    WouldNow now;
    WouldGain expected;
    uint16_t apart_permille; /* CPU time of a thread on the other node; 0: both are on one */
} GainCase;

/* Distances are 10 and 20: an access takes twice as long, or 2.5 times at most. */
static const GainCase gain_cases[] = {
    /* All is near. */
    {{1000, 0}, "0", true, false, {1000, 0, 0}, {-20, 0, 20}},
    /* All is far: half a unit of 1 + 1 is saved; at most, 2.5 to 1. */
    {{1000, 0}, "0", true, false, {0, 0, 0}, {-20, 333, 1520}},
    /* A process that is sometimes near gains less, and may be far all the time. */
    {{1000, 0}, "0", true, false, {500, 500, 0}, {-20, 200, 1520}},
    /* It would be moved away from its memory. */
    {{1000, 0}, "1", false, false, {1000, 0, 0}, {-620, -333, 20}},
    /* Two threads are brought together: memory they share may be far from both now. */
    {{1000, 0}, "0", true, false, {500, 0, 0}, {-20, 200, 1520}, 1000},
    {{1000, 0}, "0-1", true, false, {500, 0, 0}, {-20, 91, 770}, 1000},
    /* A second thread that only waits for the others gives no hope of gain. */
    {{1000, 0}, "0", true, false, {1000, 0, 0}, {-20, 0, 20}, 50},
    /* It waits for half of what it wants. */
    {{1000, 0}, "0", true, false, {1000, 0, 500}, {-20, 333, 1020}},
    /* It has the bandwidth of both nodes, and would have that of one. */
    {{500, 500}, "0", true, false, {500, 0, 0}, {-520, 200, 770}},
    /* On both nodes it has enough bandwidth; each thread has its own memory beside it, or all threads use all
     * of it. */
    {{500, 500}, "0-1", true, false, {500, 0, 0}, {-20, 91, 770}},
    /* It would not be moved, except for threads that turn out to share little. */
    {{1000, 0}, NULL, true, false, {500, 0, 0}, {-20, 0, 20}},
    {{1000, 0}, NULL, true, true, {500, 0, 0}, {-20, 91, 770}},
};

static void test_gain(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(gain_cases); i++) {
        const GainCase *c = &gain_cases[i];
        Group home = {0};
        WouldGain gain;
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, TWO_SHARDS, OBSERVE);
        add_job(&f, 100, 2, 0, 1);
        if (c->apart_permille > 0) {
            fixture_find(&f, 100, 101)->last_cpu = (CpuIx){8};
            fixture_find(&f, 100, 101)->run_ewma_permille = c->apart_permille;
        }
        assert_false(would_gain(f.world, world_process(f.world, 100), &home, true, false, &c->now, &gain));
        set_memory(&f, 100, c->mib);
        if (c->home)
            home.home = home.home_nodes = fixture_mask(&f, c->home);
        assert_true(
            would_gain(f.world, world_process(f.world, 100), &home, c->follows, c->spreads, &c->now, &gain));
        assert_int_equal(gain.least, c->expected.least);
        assert_int_equal(gain.expected, c->expected.expected);
        assert_int_equal(gain.most, c->expected.most);
    }
}

static void assert_same(const PlanAction *a, const PlanAction *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->rule, b->rule);
    assert_int_equal(a->subject.pid, b->subject.pid);
    assert_int_equal(a->subject.tid, b->subject.tid);
    assert_int_equal(a->cpu.i, b->cpu.i);
    assert_int_equal(a->group_id, b->group_id);
    assert_int_equal(a->to != NULL, b->to != NULL);
    if (a->to)
        assert_true(hwloc_bitmap_isequal(a->to, b->to));
}

/* In a World where nothing was done yet, what would be done equals what is done. */
static void test_as_acting(void **state)
{
    size_t n_actions = 0;

    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        CLEANUP(fixture_done) Fixture f;
        CLEANUP(would_done) Would would = {0};

        random_world(&f, seed, &random_no_renaming);
        for (size_t i = 0; i < f.policies->n_policies; i++)
            f.policies->policies[i]->act = POLICY_ACT_AUTO;
        f.limits.observe = true;
        look(&f, &would);
        if (seed % 2)
            assert_int_equal(would_wish(&would, f.world, f.policies, &f.limits), 0);
        f.limits.observe = false;
        f.limits.slow_tick = true;
        assert_int_equal(plan_compute(f.world, f.policies, &f.limits, &f.plan), 0);
        if (would.world) {
            CLEANUP_FREE char *what = NULL;
            bool cut = f.plan.n_refused[PLAN_REASON_BUDGET] > 0;
            size_t n = 0;

            for (size_t i = 0; i < f.plan.n_actions; i++)
                if (f.plan.actions[i].kind != PLAN_KIND_PUSH) { /* pushes are not reported */
                    assert_true(n < would.plan.n_actions);
                    assert_same(&would.plan.actions[n++], &f.plan.actions[i]);
                }
            assert_int_equal(would.plan.n_actions, n);
            n_actions += f.plan.n_actions;
            /* Once that is done, nothing more follows (I9). */
            fixture_commit(&f, NULL);
            if (world_check(f.world, &what) < 0)
                fail_msg("%s", what);
            fixture_plan(&f, true);
            assert_true(cut || f.plan.n_actions + f.plan.n_homes == 0);
        }
    }
    assert_true(n_actions > N_SEEDS);
}

TEST_MAIN(NULL, NULL, test_goes_on, test_repinned, test_comes_true, test_beside, test_nobody, test_local,
          test_gain, test_as_acting)
