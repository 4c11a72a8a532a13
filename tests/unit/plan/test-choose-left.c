/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Groups that are left to the kernel, and homes that are given up although memory is moving to them (P15). */

#include "choose-test.h"

/* A group for which several nodes would be chosen, without and beside the kernel's balancing. If the use of
 * its memory cannot be seen it is left to the kernel, unless the policy says more than Mode=auto. A group
 * that fits on a node is placed. */
static void test_beside(void **state)
{
    static const struct {
        const char *policy;
        bool hidden;
        unsigned n_threads;
        const char *without, *beside; /* nodes; NULL: none */
    } cases[] = {
        {AUTO, false, 12, "0-1", "0-1"},
        {AUTO "[Memory]\nEvidence=residency\n", false, 12, "0-1", NULL},
        {AUTO, true, 12, "0-1", NULL},
        {AUTO "Nodes=0,1\n", true, 12, "0-1", "0-1"},
        {AUTO "MaxNodes=2\n", true, 12, "0-1", "0-1"},
        {EACH "[Placement]\nMode=compress\n", true, 12, "0-1", "0-1"},
        {AUTO, true, 6, "0", "0"},
    };

    /* Each twice, without and beside balancing; then the same when only this process's use cannot be seen. */
    for (size_t i = 0; i < 4 * ARRAY_SIZE(cases); i++) {
        size_t k = i / 2 % ARRAY_SIZE(cases);
        bool alone = i >= 2 * ARRAY_SIZE(cases);
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, FOUR, cases[k].policy);
        add_job(&f, 100, cases[k].n_threads, 0, 1);
        set_memory(&f, 100, (uint64_t[]){100, cases[k].n_threads > 8 ? 100 : 0, 0, 0});
        f.world->kernel_balances = i % 2;
        *(alone ? &world_process(f.world, 100)->use_hidden : &f.world->use_hidden) = cases[k].hidden;
        fixture_home(&f);
        assert_nodes(&f, 100, i % 2 ? cases[k].beside : cases[k].without);
    }
}

/* When the kernel begins to balance, a group that is left to it is released; when the kernel stops, the group
 * gets a home again. */
static void test_switched(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, AUTO);
    add_job(&f, 100, 12, 0, 1);
    set_memory(&f, 100, (uint64_t[]){100, 100, 0, 0});
    f.world->use_hidden = true;
    for (unsigned i = 0; i < 3; i++) {
        f.world->kernel_balances = i % 2;
        for (unsigned k = 0; k < 70; k++) {
            seconds(&f, 1);
            fixture_place(&f);
        }
        assert_nodes(&f, 100, i % 2 ? NULL : "0-1");
        assert_int_equal(group_of(&f, 100)->roams, i % 2);
    }
}

/* A home is kept while much of the group's memory is moving there, or after moves to and fro; not when its
 * threads wait for more than a quarter of what they want, and CPUs elsewhere are idle. That exception ends
 * with the fourth change, unless they want a quarter more than when the group got this home. */
static void test_starves(void **state)
{
    for (unsigned i = 0; i < 8; i++) {
        bool starves = i % 2, frozen = i >= 2, often = i >= 4, much = i >= 6;
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, FOUR, AUTO);
        add_job(&f, 100, 16, 0, 1);
        for (pid_t tid = 100; tid < 116; tid++)
            fixture_find(&f, 100, tid)->last_cpu.i %= 8;
        set_memory(&f, 100, (uint64_t[]){100, 0, 0, 0});
        set_demand(&f, 100, 400, 50);
        fixture_home(&f);
        assert_nodes(&f, 100, "0");
        seconds(&f, 70);
        world_process(f.world, 100)->memory.to = fixture_mask(&f, "0");
        world_process(f.world, 100)->memory.last = fixture_mask(&f, "0");
        world_process(f.world, 100)->memory.todo_bytes = frozen ? 0 : 50 * MIB;
        f.world->groups[0].frozen_until_usec = frozen ? f.world->now_usec + 5000000 : 0;
        f.world->groups[0].n_changes = often ? 4 : 1;
        f.world->groups[0].before_demand_permille = 10000;
        set_demand(&f, 100, much ? 700 : 500, starves ? (much ? 250 : 180) : 160);
        fixture_cpus(&f, 0, 7, 1000, 0);
        fixture_place(&f);
        assert_int_equal(group_of(&f, 100)->home_nodes == fixture_mask(&f, "0"),
                         !starves || (often && !much));
    }
}

/* A refusal says what keeps a home, and with which numbers. */
static void test_says_why(void **state)
{
    static const PlanReason reasons[] = {PLAN_REASON_SETTLING, PLAN_REASON_TO_AND_FRO,
                                         PLAN_REASON_MEMORY_MOVING, PLAN_REASON_CONVERGED};
    static const uint64_t values[] = {3100000, 5000000, 100 * MIB, 1000},
                          limits[] = {10000000, 0, 25 * MIB, 750};

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        const PlanRefusal *refusal = NULL;
        Process *process;
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, FOUR, AUTO);
        add_job(&f, 100, 6, 0, 1);
        set_memory(&f, 100, (uint64_t[]){100, 0, 0, 0});
        fixture_home(&f);
        assert_nodes(&f, 100, "0");
        process = world_process(f.world, 100);
        seconds(&f, i == 0 ? 3 : 70);
        if (i == 1)
            f.world->groups[0].frozen_until_usec = f.world->now_usec + 5000000;
        if (i == 2) {
            process->memory.to = process->memory.last = fixture_mask(&f, "0");
            process->memory.todo_bytes = 50 * MIB;
        }
        fixture_plan(&f, true);
        for (size_t k = 0; k < ARRAY_SIZE(reasons); k++)
            assert_int_equal(f.plan.n_refused[reasons[k]], k == i);
        for (size_t k = 0; k < f.plan.n_refusals; k++)
            if (f.plan.refusals[k].reason == reasons[i])
                refusal = &f.plan.refusals[k];
        assert_non_null(refusal);
        assert_int_equal(refusal->group_id, f.world->groups[0].id);
        assert_int_equal(refusal->value, values[i]);
        assert_int_equal(refusal->limit, limits[i]);
    }
}

/* No refusal for a group that must stay for a while, and goes back to where it waited less. */
static void test_says_nothing(void **state)
{
    Group *group;
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, AUTO);
    add_job(&f, 100, 6, 0, 1);
    fixture_home(&f);
    assert_nodes(&f, 100, "0");
    seconds(&f, 20);
    group = &f.world->groups[0];
    group->before_nodes = fixture_mask(&f, "1");
    group->before_demand_permille = group->demand_permille;
    group->judge_usec = f.world->now_usec;
    group->frozen_until_usec = f.world->now_usec + 5000000;
    set_demand(&f, 100, 500, 500);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_REVERT);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_TO_AND_FRO], 0);
}

TEST_MAIN(NULL, NULL, test_beside, test_switched, test_starves, test_says_why, test_says_nothing)
