/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Large machines: the work of one plan stays bounded (counted, not timed), and nothing depends on the order
 * in which a World was filled. */

#include "fixture.h"

#include "plan/planner.h"
#include "sim/scenario/preset.h"

/* Searches in vain */

#define N_GROUPS  300
#define N_THREADS 4 /* of each group: a tick has searches for STEAL_SEARCHES_MAX / N_THREADS groups */

/* Small groups that share a home of 8 CPUs, and all wait; those with larger PIDs wait less. The idle CPUs are
 * cooling down, and a group skips one pass after each one in vain. */
static void make_small_groups(Fixture *f)
{
    fixture_init_with(f, TWO_SHARDS,
                      "[Workload]\nGroupBy=process\n[Placement]\nMode=fixed\nNodes=0\n[Limits]\nNiceTries=0\n"
                      "BackoffMax=1\n");
    fixture_cpus(f, 0, 7, 1000, 500);
    for (int cpu = 8; cpu < 16; cpu++)
        f->world->cpus[cpu].cooldown_until_usec = UINT64_MAX;
    for (pid_t pid = 10; pid < 10 * (N_GROUPS + 1); pid += 10) {
        fixture_process(f, pid, "a", pid == 10 * N_GROUPS ? NULL : "0-14");
        for (pid_t tid = pid; tid < pid + N_THREADS; tid++)
            fixture_task(f, pid, tid, (uint16_t)(900 - pid / 10));
    }
    do {
        fixture_home(f);
        fixture_plan(f, true);
    } while (fixture_count(f, PLAN_KIND_SET_HOME) > 0);
    for (size_t i = 0; i < f->world->n_groups; i++)
        f->world->groups[i].backoff_ticks = f->world->groups[i].backoff_until_tick = 0;
}

static void next_tick(Fixture *f)
{
    fixture_commit(f, NULL);
    fixture_tick(f);
    fixture_plan(f, false);
}

static void test_searches_bounded(void **state)
{
    const size_t n_tried = STEAL_SEARCHES_MAX / N_THREADS;
    CLEANUP(fixture_done) Fixture f;

    make_small_groups(&f);
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_COOLDOWN], STEAL_SEARCHES_MAX);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_BUDGET], N_GROUPS - n_tried);
    fixture_commit(&f, NULL);
    for (size_t i = 0; i < N_GROUPS; i++) /* the groups that lack most tried, and only they back off */
        assert_int_equal(f.world->groups[i].backoff_ticks, i < n_tried);
}

/* The group that waits least is the only one that may use CPU 15. It gets the CPU, although the passes of the
 * others are due every other tick and could use up all searches. */
static void test_searches_go_round(void **state)
{
    const unsigned round = (N_GROUPS * N_THREADS + STEAL_SEARCHES_MAX - 1) / STEAL_SEARCHES_MAX;
    unsigned ticks = 0;
    CLEANUP(fixture_done) Fixture f;

    make_small_groups(&f);
    fixture_plan(&f, false);
    for (unsigned i = 0; i < 3 * round; i++)
        next_tick(&f);
    f.world->cpus[15].cooldown_until_usec = 0;
    for (next_tick(&f); fixture_count(&f, PLAN_KIND_LEND) == 0; next_tick(&f))
        assert_true(++ticks <= round + 1);
    assert_int_equal(fixture_action(&f, PLAN_KIND_LEND, 0)->subject.pid, 10 * N_GROUPS);
}

/* The order of filling (I12) */

#define N_PROCESSES         200
#define THREADS_PER_PROCESS 50
#define N_TICKS             16U

static const char *const policies[] = {
    "[Workload]\nGroupBy=process\n[Placement]\nMode=fixed\nNodes=0-1\n",
    "[Workload]\nGroupBy=workload\n[Placement]\nMode=fixed\nNodes=4-5\n",
    "[Workload]\nGroupBy=process\n[Placement]\nMode=fixed\nNodes=8-9\n",
    "[Workload]\nGroupBy=workload\n[Placement]\nMode=fixed\nNodes=12-13\n",
};

static void shuffle(uint32_t *numbers, uint32_t n, uint64_t *state)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = fixture_random(state, i), t = numbers[k];

        numbers[k] = numbers[i - 1];
        numbers[i - 1] = t;
    }
}

static void add_process(Fixture *f, uint32_t number, uint64_t *order)
{
    uint32_t tids[THREADS_PER_PROCESS];
    pid_t pid = (pid_t)(1000 + 100 * number);
    char name[16], cpuset[16];

    (void)snprintf(name, sizeof(name), "w%u", number % (unsigned)ARRAY_SIZE(policies));
    /* Masks are interned in the order in which they are added. */
    (void)snprintf(cpuset, sizeof(cpuset), "0-%u", 1023 - number % 7);
    fixture_process(f, pid, name, cpuset);
    for (uint32_t i = 0; i < THREADS_PER_PROCESS; i++)
        tids[i] = i;
    if (order)
        shuffle(tids, THREADS_PER_PROCESS, order);
    for (uint32_t i = 0; i < THREADS_PER_PROCESS; i++)
        fixture_task(f, pid, pid + (pid_t)tids[i], 0);
}

/* Makes the same World whatever `order` is: NULL, or the seed of the order in which processes and threads are
 * added. Groups are added first, because they are numbered in order of arrival. */
static void make_large(Fixture *f, uint64_t *order)
{
    CLEANUP_FREE char *machine = preset_describe(preset_find("large-16x64"));
    uint32_t numbers[N_PROCESSES];

    assert_non_null(machine);
    fixture_init(f, machine);
    for (unsigned i = 0; i < ARRAY_SIZE(policies); i++) {
        char name[16], text[256];

        (void)snprintf(name, sizeof(name), "w%u", i);
        (void)snprintf(
            text, sizeof(text),
            "%s[Steal]\nNodeLimit=16\nLeaseSec=1s\n[Limits]\nNiceTries=0\nCrossNodeMovesPerSec=1000\n"
            "CrossNodeBurst=1000\n",
            policies[i]);
        fixture_policy(f, name, text);
    }
    for (uint32_t i = 0; i < N_PROCESSES; i++) {
        char key[16] = "";

        numbers[i] = i;
        if (f->policies->policies[i % ARRAY_SIZE(policies)]->group_by == POLICY_GROUP_BY_PROCESS)
            (void)snprintf(key, sizeof(key), "%u", 1000 + 100 * i);
        if (*key || i < ARRAY_SIZE(policies))
            assert_true(world_add_group(f->world, (WorkloadIx){(int32_t)(i % ARRAY_SIZE(policies))}, key) >=
                        0);
    }
    if (order)
        shuffle(numbers, N_PROCESSES, order);
    for (uint32_t i = 0; i < N_PROCESSES; i++)
        add_process(f, numbers[i], order);
}

/* 10,000 threads on 1,024 CPUs in 16 nodes, through homes, lends and recalls. */
static void test_order_of_filling(void **state)
{
    static uint16_t demand[N_PROCESSES * THREADS_PER_PROCESS];
    size_t n_kind[PLAN_KIND_MAX] = {0};
    uint64_t order = 7, demands = 11;
    Fixture f, g;

    make_large(&f, NULL);
    make_large(&g, &order);
    for (unsigned tick = 0; tick < N_TICKS; tick++) {
        /* One in ten wants a CPU; in each tick one in twenty is drawn again. */
        for (size_t i = 0; i < ARRAY_SIZE(demand); i++)
            if (tick == 0 || fixture_random(&demands, 20) == 0)
                demand[i] = (uint16_t)(fixture_random(&demands, 10) == 0 ? 1000 : 0);
        fixture_model(&f, demand);
        fixture_model(&g, demand);
        fixture_plan(&f, tick < 5);
        fixture_plan(&g, tick < 5);
        {
            CLEANUP_FREE char *once = plan_format(f.world, &f.plan), *twice = plan_format(g.world, &g.plan);

            assert_string_equal(once, twice);
        }
        for (size_t i = 0; i < f.plan.n_actions; i++)
            n_kind[f.plan.actions[i].kind]++;
        fixture_commit(&f, NULL);
        fixture_commit(&g, NULL);
    }
    assert_int_equal(n_kind[PLAN_KIND_SET_HOME], N_PROCESSES);
    assert_true(n_kind[PLAN_KIND_LEND] >= PLAN_ACTIONS_PER_TICK);
    assert_true(n_kind[PLAN_KIND_RECALL] > 0);
    {
        CLEANUP_FREE char *once = world_dump(f.world), *twice = world_dump(g.world);

        assert_string_equal(once, twice);
    }
    fixture_done(&f);
    fixture_done(&g);
}

TEST_MAIN(NULL, NULL, test_searches_bounded, test_searches_go_round, test_order_of_filling)
