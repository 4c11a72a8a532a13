/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The drop-in that the service manager writes for a fence goes with the fence; an administrator's drop-in stays. */

#include "act/fence/dropin.h"
#include "base/parse.h"
#include "fence-tree.h"

#include <fcntl.h>

#define CPUS_DROPIN TREE_DROPIN "AllowedCPUs.conf"

static bool exists(const Tree *t, const char *path)
{
    return faccessat(t->root_fd, path, F_OK, 0) == 0;
}

static void assert_dropin(const Tree *t, const char *expected)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(fence_dropin_read(t->root_fd, "x.service", "AllowedCPUs", set), expected ? 0 : -ENOENT);
    if (expected)
        assert_list(set, expected);
}

/* Raises the fence of the unit, with this cpuset before and, unless NULL, this drop-in. */
static void up(Tree *t, const char *before, const char *dropin)
{
    t->obeys = true;
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus", before);
    if (dropin)
        tree_write(t, CPUS_DROPIN, dropin);
    tree_tick_to(t, ACT_WHY_UP);
    assert_dropin(t, "0-3");
}

static void test_read(void **state)
{
    Tree *t = *state;

    assert_dropin(t, NULL);
    tree_write(t, "run/systemd/transient/x.service.d/50-AllowedCPUs.conf",
               "[Service]\nAllowedCPUs=0-1 4 6-7\n");
    assert_dropin(t, "0-1,4,6-7");
    tree_write(t, CPUS_DROPIN, "[Service]\nAllowedCPUs=5\nAllowedCPUs=");
    assert_dropin(t, "");
    tree_write(t, CPUS_DROPIN, "[Service]\nAllowedCPUsAndMore=5\n");
    assert_dropin(t, NULL);
    /* The directory stays if it contains other drop-ins. */
    tree_write(t, TREE_DROPIN "CPUWeight.conf", "[Service]\nCPUWeight=5\n");
    fence_dropin_remove(t->root_fd, "x.service", "AllowedCPUs");
    assert_dropin(t, NULL);
    assert_true(exists(t, TREE_DROPIN "CPUWeight.conf"));
    assert_false(exists(t, "run/systemd/transient/x.service.d"));
}

static void test_crash(void **state)
{
    Tree *t = *state;

    up(t, "\n", NULL);
    tree_restart(t);
    tree_restore(t, ACT_FENCE_UNIT, TREE_UNIT, "");
    assert_dropin(t, NULL);
    assert_false(exists(t, "run/systemd/system.control/x.service.d"));
}

/* The unit file's setting is in force again, without a copy in a drop-in that would override later changes of it. */
static void test_bound_in_unit_file(void **state)
{
    Tree *t = *state;

    up(t, "0-6\n", NULL);
    tree_restore(t, ACT_FENCE_UNIT, TREE_UNIT, "0-6");
    assert_dropin(t, NULL);
}

static void test_bound_in_dropin(void **state)
{
    Tree *t = *state;

    up(t, "0-6\n", "[Service]\nAllowedCPUs=\nAllowedCPUs=0-6\n");
    tree_restart(t);
    tree_restore(t, ACT_FENCE_UNIT, TREE_UNIT, "0-6");
    assert_dropin(t, "0-6");
}

/* Somebody else sets the property, while the daemon runs or does not. */
static void test_foreign(void **state)
{
    Tree *t = *state;

    up(t, "\n", NULL);
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus", "2-5\n");
    tree_write(t, CPUS_DROPIN, "[Service]\nAllowedCPUs=2-5\n");
    tree_tick_to(t, ACT_WHY_FOREIGN);
    tree_restore(t, ACT_FENCE_UNIT, TREE_UNIT, "2-5");
    assert_dropin(t, "2-5");
}

static void test_foreign_unseen(void **state)
{
    Tree *t = *state;

    up(t, "\n", NULL);
    tree_crash(t);
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus", "2-5\n");
    tree_write(t, CPUS_DROPIN, "[Service]\nAllowedCPUs=2-5\n");
    tree_start(t);
    tree_restore(t, ACT_FENCE_UNIT, TREE_UNIT, "2-5");
    assert_dropin(t, "2-5");
}

/* A lend keeps the drop-in, because the fence will come up again. After a crash then, or when the fence is
 * given up, none is left. */
static void test_down(void **state)
{
    Tree *t = *state;

    up(t, "\n", NULL);
    (void)fences_admit(t->fences, 100, tree_mask(t, "0-4"));
    t->world->groups[0].n_leases = 1;
    tree_tick(t);
    assert_dropin(t, "");
    tree_restart(t);
    tree_restore(t, ACT_FENCE_UNIT, TREE_UNIT, "");
    assert_dropin(t, NULL);

    t->world->groups[0].n_leases = 0;
    tree_tick_to(t, ACT_WHY_UP);
    t->world->workloads[0].paused = true;
    tree_tick(t);
    assert_int_equal(t->journal->n_fences, 0);
    assert_dropin(t, NULL);
}

/* A crash after the manager was asked for all possible CPUs, and before it was asked for no limit. */
static void test_killed_on_the_way_down(void **state)
{
    Tree *t = *state;

    up(t, "\n", NULL);
    tree_crash(t);
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus", "0-7\n");
    tree_write(t, CPUS_DROPIN, "[Service]\nAllowedCPUs=0-7\n");
    tree_start(t);
    tree_restore(t, ACT_FENCE_UNIT, TREE_UNIT, "");
    assert_dropin(t, NULL);
}

TEST_MAIN(tree_setup_unit, tree_teardown, test_read, test_crash, test_bound_in_unit_file,
          test_bound_in_dropin, test_foreign, test_foreign_unseen, test_down, test_killed_on_the_way_down)
