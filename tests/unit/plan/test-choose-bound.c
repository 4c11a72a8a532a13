/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes beside threads that somebody else has bound (P15). */

#include "choose-test.h"

/* Somebody else has bound two threads to the node on which the memory of a new group is: that goes to the other one, at
 * once, though what runs where on average does not show them yet. */
static void test_bound(void **state)
{
    for (unsigned bound = 0; bound < 2; bound++) {
        Fixture f;

        fixture_init(&f, SMALL);
        fixture_policy(&f, "a", AUTO);
        add_job(&f, 100, 2, 0, 1);
        add_job(&f, 200, 2, 2, 1);
        set_memory(&f, 100, (uint64_t[]){100, 0});
        set_memory(&f, 200, (uint64_t[]){100, 0});
        for (pid_t tid = 100; tid < 102 && bound; tid++) {
            fixture_find(&f, 100, tid)->hands = TASK_HANDS_FOREIGN;
            fixture_find(&f, 100, tid)->allowed = fixture_mask(&f, "0-1");
        }
        if (!bound)
            world_process(f.world, 100)->yielded = true; /* to be left alone, and it may be anywhere */
        fixture_plan(&f, true);
        fixture_commit(&f, NULL);
        assert_nodes(&f, 100, NULL);
        assert_nodes(&f, 200, bound ? "1" : "0");
        fixture_assert_settled(&f, true);
        fixture_done(&f);
    }
}

/* What is counted where it is bound is not among the others as well. */
static void test_bound_once(void **state)
{
    Fixture f;

    fixture_init(&f, FOUR);
    fixture_policy(&f, "a", AUTO);
    add_job(&f, 100, 4, 0, 1);
    add_job(&f, 200, 4, 8, 1);
    set_memory(&f, 200, (uint64_t[]){100, 0, 0, 0});
    for (pid_t tid = 100; tid < 104; tid++) {
        fixture_find(&f, 100, tid)->hands = TASK_HANDS_FOREIGN;
        fixture_find(&f, 100, tid)->allowed = fixture_mask(&f, "0-7");
    }
    f.world->nodes[0].others_permille = 4000;
    for (size_t i = 0; i < f.world->n_groups; i++)
        f.world->groups[i].first_seen_usec -= 15000000; /* so long it takes to be all of the average */
    fixture_home(&f);
    assert_nodes(&f, 200, "0");
    fixture_done(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_bound_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
