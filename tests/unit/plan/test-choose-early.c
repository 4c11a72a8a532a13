/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When homes are looked at: before a slow tick, and when another look can wait. */

#include "choose-test.h"

/* A program that was given a node while it read its input has four threads now: from MinAgeSec= on it need not wait
 * for a slow tick, nor for MinResidencySec=, but only this once. */
static void test_outgrown(void **state)
{
    Fixture f;

    fixture_init(&f, SMALL);
    fixture_policy(&f, "a", AUTO "MinResidencySec=10s\n");
    add_job(&f, 100, 1, 0, 1);
    f.world->processes[0].first_seen_usec = f.world->groups[0].first_seen_usec = f.world->now_usec;
    set_memory(&f, 100, (uint64_t[]){1000, 0});
    fixture_home(&f);
    assert_nodes(&f, 100, "0");
    for (pid_t tid = 101; tid < 104; tid++) {
        Task *task = fixture_task(&f, 100, tid, 500);

        task->allowed = fixture_mask(&f, "0-1");
        task->original = fixture_mask(&f, NULL);
    }
    set_demand(&f, 100, 500, 500);
    fixture_cpus(&f, 0, 1, 1000, 2000);
    world_sum(f.world);
    f.world->groups[0].demand_permille = 4000;
    f.world->now_usec += 800000;
    f.world->tick += 8;
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_homes, 0); /* MinAgeSec= */
    f.world->now_usec += 100000;
    f.world->tick++;
    fixture_plan(&f, false);
    fixture_commit(&f, NULL);
    assert_true(group_of(&f, 100)->roams);
    assert_int_equal(group_of(&f, 100)->last_home_usec, f.world->now_usec);
    fixture_assert_settled(&f, false);
    fixture_done(&f);
}

/* A plan that decides nothing says so, but not while something is about to change by itself. */
static void test_settled(void **state)
{
    Fixture f;

    fixture_init(&f, SMALL);
    fixture_policy(&f, "a", AUTO);
    add_job(&f, 100, 2, 0, 1);
    fixture_plan(&f, true);
    assert_false(f.plan.settled); /* its first home */
    fixture_commit(&f, NULL);
    seconds(&f, 1);
    fixture_plan(&f, false);
    assert_false(f.plan.settled); /* not looked at */
    fixture_plan(&f, true);
    assert_false(f.plan.settled); /* where its memory is is not known */
    set_memory(&f, 100, (uint64_t[]){1000, 0});
    fixture_plan(&f, true);
    fixture_commit(&f, NULL);
    seconds(&f, 1);
    set_memory(&f, 100, (uint64_t[]){1000, 0});
    fixture_plan(&f, true);
    assert_true(f.plan.settled);
    set_demand(&f, 100, 800, 200);
    world_sum(f.world);
    fixture_plan(&f, true);
    assert_false(f.plan.settled); /* an idle CPU could be lent at any time */
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outgrown),
        cmocka_unit_test(test_settled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
