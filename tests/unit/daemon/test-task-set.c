/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A set of processes, which must not be confused with others of the same PID. */

#include "daemon/tables/task-set.h"
#include "unit-test.h"

static void test_members(void **state)
{
    CLEANUP(task_set_free_p) TaskSet *set = task_set_new();

    assert_non_null(set);
    assert_false(task_set_find(set, 100, 5));
    assert_int_equal(task_set_add(set, 100, 5), 0);
    assert_int_equal(task_set_add(set, 100, 5), 0);
    assert_int_equal(task_set_add(set, 200, 6), 0);
    assert_int_equal(task_set_size(set), 2);
    assert_true(task_set_find(set, 100, 5));
    assert_false(task_set_find(set, 100, 6)); /* the PID was reused */
    assert_true(task_set_remove(set, 100));
    assert_false(task_set_remove(set, 100));
    task_set_clear(set);
    assert_int_equal(task_set_size(set), 0);
}

static void test_a_reused_number_takes_the_place(void **state)
{
    CLEANUP(task_set_free_p) TaskSet *set = task_set_new();

    assert_int_equal(task_set_add(set, 100, 5), 0);
    assert_int_equal(task_set_add(set, 100, 9), 0);
    assert_int_equal(task_set_size(set), 1);
    assert_false(task_set_find(set, 100, 5));
    assert_true(task_set_find(set, 100, 9));
}

/* A process that is found stays; one that is not found is dropped after some sweeps. */
static void test_sweep(void **state)
{
    CLEANUP(task_set_free_p) TaskSet *set = task_set_new();

    assert_int_equal(task_set_add(set, 100, 5), 0);
    assert_int_equal(task_set_add(set, 200, 6), 0);
    for (int i = 0; i < 10; i++) {
        assert_true(task_set_find(set, 100, 5));
        task_set_sweep(set);
    }
    assert_int_equal(task_set_size(set), 1);
    assert_false(task_set_find(set, 200, 6));
}

TEST_MAIN(NULL, NULL, test_members, test_a_reused_number_takes_the_place, test_sweep)
