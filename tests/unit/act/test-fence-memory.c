/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Fences of memory: up only beside one of CPUs and with all memory at home, within what the administrator
 * allows, and restored. */

#include "act/fence/place.h"
#include "fence-tree.h"

#include <fcntl.h>

static void assert_means(const Tree *t, bool memory)
{
    assert_int_equal(fences_means(t->fences, t->world->groups[0].id).memory, memory);
}

static void assert_v1(const Tree *t, const char *cpus, const char *nodes)
{
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", cpus);
    tree_assert_memory(t, ACT_FENCE_CGROUP1, "/a", nodes);
}

static int setup_v1(void **state)
{
    Tree *t;

    assert_int_equal(tree_setup_v1(state), 0);
    t = *state;
    tree_write(t, TREE_V1 "cpuset.mems", "0-1\n");
    tree_write(t, TREE_V1 "a/cpuset.mems", "0-1\n");
    t->wish_memory = true;
    tree_set_memory(t, 100, 0);
    return 0;
}

static void test_up(void **state)
{
    ActHost host;
    Tree *t = *state;

    tree_tick_to(t, ACT_WHY_UP);
    assert_v1(t, "0-3", "0");
    assert_means(t, true);
    fences_host(t->fences, &host);
    assert_int_equal(host.n_up, 1);
    assert_int_equal(host.n_memory, 1);
    assert_int_equal(fences_restore(t->fences), 0);
    assert_v1(t, "0-7", "0-1");
    assert_int_equal(t->journal->n_fences, 0);
}

static void test_crash(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    assert_v1(t, "0-3", "0");
    tree_restart(t);
    assert_int_equal(t->journal->n_fences, 2);
    assert_int_equal(fences_restore(t->fences), 0);
    assert_v1(t, "0-7", "0-1");
    assert_int_equal(t->journal->n_fences, 0);
}

static void test_not_asked_for(void **state)
{
    Tree *t = *state;

    t->wish_memory = false;
    tree_tick(t);
    assert_v1(t, "0-3", "0-1");
    assert_means(t, false);
    /* Another policy, then the first one again. */
    t->wish_memory = true;
    tree_tick(t);
    assert_v1(t, "0-3", "0");
    t->wish_memory = false;
    tree_tick(t);
    assert_v1(t, "0-3", "0-1");
    assert_int_equal(t->journal->n_fences, 1);
}

/* Raising it must move no memory: it waits while memory of a process is elsewhere, or its place is unknown. */
static void test_scattered(void **state)
{
    Tree *t = *state;

    tree_set_memory(t, 100, 50);
    tree_tick(t);
    assert_v1(t, "0-3", "0-1");
    assert_int_equal(world_set_process_memory(t->world, &t->world->processes[0], NULL, 0), 0);
    tree_tick(t);
    assert_v1(t, "0-3", "0-1");
    tree_set_memory(t, 100, 2);
    tree_tick(t);
    assert_v1(t, "0-3", "0");
    /* Once up, it stays up and keeps memory from going elsewhere. */
    tree_set_memory(t, 100, 50);
    tree_tick(t);
    assert_v1(t, "0-3", "0");
}

static void test_lend(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    t->world->groups[0].n_leases = 1;
    tree_tick_to(t, ACT_WHY_BORROWS);
    assert_v1(t, "0-7", "0");
    assert_means(t, true);
    /* A thread pinned by its user. */
    t->world->groups[0].n_leases = 0;
    t->world->tasks[0].hands = TASK_HANDS_REPINNED;
    tree_tick(t);
    assert_v1(t, "0-7", "0-1");
}

static void test_home_moves(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    t->world->groups[0].home = tree_mask(t, "4-7");
    t->world->groups[0].home_nodes = tree_mask(t, "1");
    tree_tick(t);
    assert_v1(t, "0-7", "0-1");
}

static void test_released(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    t->world->workloads[0].paused = true;
    tree_tick(t);
    assert_v1(t, "0-7", "0-1");
    assert_int_equal(t->journal->n_fences, 0);
}

/* The fence has what the administrator allows of the home's nodes. If that is all that is allowed, none is needed. */
static void test_bound(void **state)
{
    Tree *t = *state;

    t->world->groups[0].home_nodes = tree_mask(t, "0-1");
    tree_write(t, TREE_V1 "a/cpuset.mems", "1\n");
    tree_tick(t);
    assert_v1(t, "0-3", "1");
    assert_means(t, false);
    tree_write(t, TREE_V1 "a/cpuset.mems", "0-1\n");
    t->world->groups[0].home_nodes = tree_mask(t, "1");
    tree_set_memory(t, 0, 100);
    tree_tick(t);
    assert_v1(t, "0-3", "1");
    assert_means(t, true);
    assert_int_equal(fences_restore(t->fences), 0);
    assert_v1(t, "0-7", "0-1");
}

static void test_foreign(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, TREE_V1 "a/cpuset.mems", "1\n");
    tree_tick_to(t, ACT_WHY_UP); /* the fence of CPUs stays up: nobody else changed it */
    assert_v1(t, "0-3", "1");
    assert_means(t, false);
    assert_int_equal(fences_restore(t->fences), 0);
    assert_v1(t, "0-7", "1");
}

static int setup_unit(void **state)
{
    Tree *t;

    assert_int_equal(tree_setup_unit(state), 0);
    t = *state;
    tree_write(t, "sys/devices/system/node/possible", "0-1\n");
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.mems.effective", "0-1\n");
    t->wish_memory = t->obeys = true;
    t->wish = ACT_WISH_UNIT;
    tree_set_memory(t, 100, 0);
    return 0;
}

static void test_unit(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    assert_string_equal(t->asked, "x.service=0-3;x.service memory=0;");
    tree_assert_memory(t, ACT_FENCE_UNIT, TREE_UNIT, "0");
    assert_means(t, true);
    tree_restart(t);
    assert_int_equal(fences_restore(t->fences), 0);
    /* As with CPUs: all possible nodes first, because processes run in the unit. */
    assert_non_null(strstr(t->asked, "x.service memory=0-1;"));
    assert_non_null(strstr(t->asked, "x.service memory=;"));
    tree_assert_memory(t, ACT_FENCE_UNIT, TREE_UNIT, "");
    assert_int_equal(faccessat(t->root_fd, "run/systemd/system.control/x.service.d", F_OK, 0), -1);
}

/* A list that has its old effect, if not its old text, counts as restored, also when that is known only later. */
static void test_keeps_some(void **state)
{
    Tree *t = *state;

    t->keeps_some = true;
    tree_tick(t);
    tree_assert_memory(t, ACT_FENCE_UNIT, TREE_UNIT, "0");
    tree_restart(t);
    tree_restore(t, ACT_FENCE_UNIT, TREE_UNIT, "0-7");
    tree_assert_memory(t, ACT_FENCE_UNIT, TREE_UNIT, "0-1");
    assert_int_equal(t->journal->n_fences, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_up, setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_crash, setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_not_asked_for, setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_scattered, setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_lend, setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_home_moves, setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_released, setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_bound, setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_foreign, setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit, setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_keeps_some, setup_unit, tree_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
