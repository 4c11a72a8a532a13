/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes that are chosen beside what is not placed. */

#include "choose-test.h"

#include "plan/ablation.h"
#include "plan/planner.h"
#include "world/load.h"

/* A CPU that somebody else uses all the time is not there; less than half of one does not count. */
static void test_others(void **state)
{
    for (unsigned others = 300; others <= 1000; others += 700) {
        Fixture f;

        fixture_init(&f, FOUR);
        fixture_policy(&f, "a", "[Placement]\nMode=auto\n[Workload]\nMinAgeSec=0\n");
        add_job(&f, 100, 8, 8, 1);
        for (uint32_t i = 0; i < 4; i++)
            f.world->nodes[i].others_permille = others;
        fixture_home(&f);
        assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100)->home_nodes), others < 500 ? 1 : 2);
        fixture_done(&f);
    }
}

/* A job that has just come runs on the CPU of the one before it, beside its memory. That one counted among the others,
 * and so does it. As many others as ran beside it do count, and all where it is not known how many that were. */
static void test_newcomers(void **state)
{
    static const struct Case {
        uint32_t left, others, run, mean;
        bool without, stays;
    } cases[] = {
        {2000, 2000, 1000, 1000, false, true},  /* one ran beside it */
        {1000, 2000, 1000, 1000, false, true},  /* nobody did */
        {1000, 2000, 1000, 1000, true, false},  /* the rule is off */
        {0, 2000, 1000, 1000, false, false},    /* not known */
        {300, 2000, 300, 300, false, false},    /* it did not run as much as the others always do */
        {1000, 2000, 0, 1000, false, false},    /* somebody else did, and not it */
        {3000, 2000, 1000, 1000, false, false}, /* as many as always ran beside it */
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture f;

        fixture_init(&f, SMALL);
        fixture_policy(&f, "a", AUTO);
        add_job(&f, 100, 1, 2, 1);
        set_memory(&f, 100, (uint64_t[]){0, 100});
        fixture_cpus(&f, 0, 3, 500, 0);
        fixture_find(&f, 100, 100)->run_permille = cases[i].run;
        fixture_find(&f, 100, 100)->run_ewma_permille = cases[i].mean;
        f.world->nodes[1].others_permille = cases[i].others;
        f.world->nodes[1].left_permille = cases[i].left;
        f.world->ablated = cases[i].without ? 1ULL << ABLATION_NEWCOMERS : 0;
        fixture_plan(&f, true);
        fixture_commit(&f, NULL);
        assert_nodes(&f, 100, cases[i].stays ? "1" : "0");
        fixture_done(&f);
    }
}

/* How much is no others' in a plan at that time. */
static uint64_t not_others(Fixture *f)
{
    fixture_plan(f, true);
    return f->plan.scratch->not_others[1];
}

/* What it ran is in the average for some time yet, as it was when the tick was measured in which it got its home. */
static void test_newcomers_fade(void **state)
{
    Fixture f;

    fixture_init(&f, SMALL);
    fixture_policy(&f, "a", AUTO);
    add_job(&f, 100, 1, 2, 1);
    set_memory(&f, 100, (uint64_t[]){0, 100});
    fixture_cpus(&f, 0, 3, 500, 0);
    f.world->nodes[1].others_permille = 2000;
    f.world->nodes[1].left_permille = 1400; /* 400 of others */
    assert_int_equal(not_others(&f), 1000);
    fixture_commit(&f, NULL);
    assert_nodes(&f, 100, "1");
    assert_int_equal(not_others(&f), 1000);

    /* What has a home is not among what is left. */
    f.world->now_usec += LOAD_HOLD_USEC / 2;
    f.world->nodes[1].left_permille = 400;
    assert_int_equal(not_others(&f), 500);
    f.world->nodes[1].left_permille = 1800;
    assert_int_equal(not_others(&f), 200);

    /* Another home makes nobody new. */
    f.world->nodes[1].left_permille = 400;
    f.world->groups[0].last_home_usec = f.world->now_usec;
    f.world->groups[0].before_nodes = fixture_mask(&f, "0");
    f.world->groups[0].n_changes = 1;
    assert_int_equal(not_others(&f), 500);
    f.world->now_usec += LOAD_HOLD_USEC;
    assert_int_equal(not_others(&f), 0);
    fixture_done(&f);
}

/* Who cannot get a home is one of the others. */
static void test_never_placed(void **state)
{
    static const char *const policies[] = {AUTO "Nodes=0\n", AUTO "[Workload]\nAct=observe\n"};

    for (size_t k = 0; k < ARRAY_SIZE(policies); k++) {
        Fixture f;

        fixture_init(&f, SMALL);
        fixture_policy(&f, "a", policies[k]);
        fixture_policy(&f, "b", AUTO);
        fixture_process(&f, 100, "a", k == 0 ? "2-3" : NULL);
        for (int i = 0; i < 2; i++)
            fixture_task(&f, 100, 100 + i, 0)->last_cpu.i = 2 + i;
        fixture_process(&f, 200, "b", NULL);
        fixture_task(&f, 200, 200, 0)->last_cpu.i = 2;
        set_memory(&f, 200, (uint64_t[]){0, 100});
        /* Three on two CPUs. */
        fixture_cpus(&f, 0, 1, 0, 0);
        fixture_cpus(&f, 2, 3, 1000, 500);
        for (size_t i = 0; i < f.world->n_tasks; i++) {
            Task *task = &f.world->tasks[i];

            task->run_permille = task->run_ewma_permille = 667;
            task->wait_permille = task->wait_ewma_permille = 333;
        }
        f.world->nodes[1].others_permille = f.world->nodes[1].left_permille = 2000;
        fixture_plan(&f, true);
        fixture_commit(&f, NULL);
        assert_nodes(&f, 200, "0");
        fixture_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_newcomers),
        cmocka_unit_test(test_newcomers_fade),
        cmocka_unit_test(test_never_placed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
