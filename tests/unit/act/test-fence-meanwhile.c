/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cpusets that change by themselves while they are confined, and a service manager that is restarted meanwhile. */

#include "base/util.h"
#include "fence-tree.h"

#include <errno.h>

/* The kernel removes offline CPUs from a cpuset of version 1. When they are online again the list still lacks them.
 * That is nobody's choice, and is put back. */
static void test_online_again(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, "sys/devices/system/cpu/online", "0-1,4-7\n");
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-1\n");
    tree_tick_to(t, ACT_WHY_UP);
    tree_write(t, "sys/devices/system/cpu/online", "0-2,4-7\n");
    tree_tick(t);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    tree_write(t, "sys/devices/system/cpu/online", "0-7\n");
    tree_tick_to(t, ACT_WHY_BORROWS);
    assert_int_equal(t->journal->n_fences, 0);
}

/* Somebody else's list that lacks others as well is theirs. */
static void test_online_again_foreign(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, "sys/devices/system/cpu/online", "0-2,4-7\n");
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-2\n");
    tree_tick_to(t, ACT_WHY_UP);
    tree_write(t, "sys/devices/system/cpu/online", "0-7\n");
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-1\n");
    tree_tick_to(t, ACT_WHY_FOREIGN);
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "0-1");
}

static const char cgroup_list[] = "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus";

/* A manager that is restarted may have done what it was asked for, or somebody else may have changed it again, although
 * its answer is lost. */
static void test_answer_lost(void **state)
{
    static const int errors[] = {-ETIMEDOUT, -ECONNRESET, -ENOTCONN, -EPIPE};
    Tree *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        tree_restart(t);
        t->obeys = false;
        t->asked[0] = '\0';
        tree_tick(t);
        tree_write(t, cgroup_list, "0-3\n");
        t->result[false] = errors[i];
        t->obeys = true;
        tree_tick(t);
        assert_string_equal(t->asked, "x.service=0-3;x.service=0-7;");
        tree_tick_to(t, ACT_WHY_REFUSED);
        assert_int_equal(fences_means(t->fences, t->world->groups[0].id).error, -errors[i]);
        assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
        tree_restore(t, ACT_FENCE_CGROUP2, TREE_UNIT, "");
        tree_write(t, cgroup_list, "0-7\n");
    }
}

static void test_answer_lost_lowered(void **state)
{
    Tree *t = *state;

    t->obeys = true;
    tree_tick(t);
    tree_tick_to(t, ACT_WHY_UP);
    t->obeys = false;
    (void)fences_admit(t->fences, 100, tree_mask(t, "0-4"));
    tree_write(t, cgroup_list, "0-7\n");
    t->result[false] = -ETIMEDOUT;
    t->obeys = true;
    tree_tick(t);
    tree_tick_to(t, ACT_WHY_REFUSED);
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
}

static void test_answer_lost_crossed(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, cgroup_list, "2-5\n");
    t->result[false] = -ETIMEDOUT;
    t->obeys = true;
    tree_tick(t);
    assert_string_equal(t->asked, "x.service=0-3;x.service=2-5;");
    tree_tick_to(t, ACT_WHY_FOREIGN);
}

/* The daemon stops while the manager is restarted. */
static void test_answer_lost_at_the_end(void **state)
{
    Tree *t = *state;

    t->obeys = true;
    tree_tick(t);
    tree_tick_to(t, ACT_WHY_UP);
    t->n_lost = 2;
    tree_restore(t, ACT_FENCE_CGROUP2, TREE_UNIT, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_online_again, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_online_again_foreign, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_answer_lost, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_answer_lost_lowered, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_answer_lost_crossed, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_answer_lost_at_the_end, tree_setup_unit, tree_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
