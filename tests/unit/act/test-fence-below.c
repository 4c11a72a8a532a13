/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cgroups that are made, or made anew, while a fence is up. */

#include "fence-tree.h"

#include <fcntl.h>

/* A cgroup that begins with its parent's list, made while that was ours: when it is down, whichever way, it has what
 * its parent has; one with a list of its own keeps it. */
static void test_below(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, TREE_V1 "a/b/cpuset.cpus", "0-3\n");
    tree_write(t, TREE_V1 "a/b/c/cpuset.cpus", "0-3\n");
    tree_write(t, TREE_V1 "a/.b/cpuset.cpus", "0-3\n");
    tree_write(t, TREE_V1 "a/own/cpuset.cpus", "1-2\n");
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/b", "0-7");
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/b/c", "0-7");
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/.b", "0-7");
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/own", "1-2");
}

/* Somebody of no policy, in a cgroup with a name that others would call hidden. */
static void test_not_alone(void **state)
{
    Tree *t = *state;

    tree_write(t, TREE_V1 "a/.b/cgroup.procs", "102\n");
    tree_tick(t);
    tree_assert_why(t, ACT_WHY_SHARED);
}

static void test_below_foreign(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, TREE_V1 "a/b/cpuset.cpus", "0-3\n");
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-5\n");
    tree_tick(t);
    tree_assert_why(t, ACT_WHY_FOREIGN);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/b", "0-5");
}

/* One below that has the home's CPUs by somebody's choice could not be told from one that has them from us. */
static void test_below_chosen(void **state)
{
    Tree *t = *state;

    tree_write(t, TREE_V1 "a/b/cpuset.cpus", "0-3\n");
    tree_write(t, TREE_V1 "a/b/cgroup.procs", "");
    tree_tick(t);
    tree_assert_why(t, ACT_WHY_SHARED);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    assert_int_equal(fences_restore(t->fences), 0);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/b", "0-3");
}

/* Removes /a, and makes another one that has the same list. */
static void make_again(const Tree *t)
{
    assert_int_equal(renameat(t->root_fd, TREE_V1 "a", t->root_fd, TREE_V1 "old"), 0);
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-3\n");
    tree_write(t, TREE_V1 "a/cgroup.procs", "");
}

static void test_made_again(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_crash(t);
    make_again(t);
    tree_start(t);
    assert_int_equal(t->journal->n_fences, 1);
    assert_int_equal(fences_restore(t->fences), 0);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-3");
    assert_int_equal(t->journal->n_fences, 0);
}

/* The same under our eyes. */
static void test_made_again_meanwhile(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_assert_why(t, ACT_WHY_UP);
    make_again(t);
    tree_tick(t);
    tree_assert_bound(t, "/a", NULL);
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-3");
    assert_int_equal(fences_restore(t->fences), 0);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_below, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_not_alone, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_below_foreign, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_below_chosen, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_made_again, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_made_again_meanwhile, tree_setup_v1, tree_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
