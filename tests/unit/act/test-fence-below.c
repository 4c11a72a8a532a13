/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cgroups that are created, created again, renamed or given a list by somebody else while a fence is up. */

#include "act/fence/internal.h"
#include "act/fence/place.h"
#include "base/parse.h"
#include "fence-tree.h"

#include <fcntl.h>
#include <sys/resource.h>

/* A cgroup created inside a fence begins with its parent's list, which is ours. Whichever way the fence comes
 * down, that cgroup has its parent's list afterwards; one with a list of its own keeps it. */
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

/* A process of no policy, in a cgroup whose name begins with a dot. */
static void test_not_alone(void **state)
{
    Tree *t = *state;

    tree_write(t, TREE_V1 "a/.b/cgroup.procs", "102\n");
    tree_tick_to(t, ACT_WHY_SHARED);
}

static void test_below_foreign(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, TREE_V1 "a/b/cpuset.cpus", "0-3\n");
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-5\n");
    tree_tick_to(t, ACT_WHY_FOREIGN);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/b", "0-5");
}

/* A cgroup below that somebody gave exactly the home's CPUs could not be told from one that has them from the
 * fence. */
static void test_below_chosen(void **state)
{
    Tree *t = *state;

    tree_write(t, TREE_V1 "a/b/cpuset.cpus", "0-3\n");
    tree_write(t, TREE_V1 "a/b/cgroup.procs", "");
    tree_tick_to(t, ACT_WHY_SHARED);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    tree_restore(t, ACT_FENCE_CGROUP1, "/a/b", "0-3");
}

/* Removes /a, and creates another one with the same list. */
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
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "0-3");
}

/* The same while the daemon runs. */
static void test_made_again_meanwhile(void **state)
{
    Tree *t = *state;

    tree_tick_to(t, ACT_WHY_UP);
    make_again(t);
    tree_tick(t);
    tree_assert_bound(t, "/a", NULL);
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-3");
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "0-3");
}

/* The cgroup is renamed: it is restored where it is now. */
static void rename_it(const Tree *t)
{
    assert_int_equal(renameat(t->root_fd, TREE_V1 "a", t->root_fd, TREE_V1 "b"), 0);
    for (pid_t pid = 100; pid <= 101; pid++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "proc/%d/cgroup", pid);
        tree_write(t, path, "4:cpuset:/b\n0::/\n");
    }
}

static void test_renamed(void **state)
{
    Tree *t = *state;

    tree_tick_to(t, ACT_WHY_UP);
    tree_write(t, TREE_V1 "a/below/cpuset.cpus", "0-3\n");
    rename_it(t);
    tree_tick(t);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/b/below", "0-7");
    tree_restore(t, ACT_FENCE_CGROUP1, "/b", "0-7");
}

/* The list found then is not taken for the one before the fence, under the new name either. */
static void test_renamed_and_met(void **state)
{
    Tree *t = *state;
    Fence *fence = NULL;

    tree_tick(t);
    tree_assert_why(t, ACT_WHY_UP);
    rename_it(t);
    assert_int_equal(fence_add(t->fences, ACT_FENCE_CGROUP1, "/b", "/b", false, &fence), -EBUSY);
    tree_restore(t, ACT_FENCE_CGROUP1, "/b", "0-7");
    assert_int_equal(fence_add(t->fences, ACT_FENCE_CGROUP1, "/b", "/b", false, &fence), 0);
}

/* The rename comes after fences were sensed, and before their processes are listed. */
static void test_renamed_meanwhile(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    fences_sense(t->fences);
    rename_it(t);
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/b", "0-7");
}

/* The renamed cgroup also gets other CPUs. */
static void test_renamed_and_changed(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    rename_it(t);
    tree_write(t, TREE_V1 "b/cpuset.cpus", "1-5\n");
    tree_tick(t);
    tree_restore(t, ACT_FENCE_CGROUP1, "/b", "1-5");
}

static void test_renamed_and_crash(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_crash(t);
    assert_int_equal(renameat(t->root_fd, TREE_V1 "a", t->root_fd, TREE_V1 "old"), 0);
    /* Another cgroup has taken its name. */
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-3\n");
    tree_start(t);
    tree_restore(t, ACT_FENCE_CGROUP1, "/old", "0-7");
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-3");
}

/* In a mount namespace without the hierarchy nothing is concluded to be gone. */
static void test_out_of_sight(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_crash(t);
    assert_int_equal(renameat(t->root_fd, TREE_V1, t->root_fd, "sys/fs/cgroup/hidden"), 0);
    tree_start(t);
    assert_int_equal(fences_restore(t->fences), -EAGAIN);
    assert_int_equal(t->journal->n_fences, 1);
    assert_int_equal(renameat(t->root_fd, "sys/fs/cgroup/hidden", t->root_fd, TREE_V1), 0);
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "0-7");
}

/* Nor is it without file descriptors to look with, however often that is tried. */
static void test_no_descriptors(void **state)
{
    Tree *t = *state;
    const FenceOps ops = {.set = fence_write};
    FenceList list = {t->root_fd, ACT_FENCE_CGROUP1, false};
    struct rlimit before, none;

    tree_tick(t);
    fences_set_ops(t->fences, ACT_FENCE_CGROUP1, false, &ops, &list);
    tree_write(t, TREE_V1 "a/below/cpuset.cpus", "0-3\n");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (unsigned i = 0; i < 2; i++) {
        int r = fences_restore(t->fences);

        if (i > 0)
            assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(r, -EAGAIN);
    }
    assert_int_equal(t->journal->n_fences, 1);
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/below", "0-7");
}

/* While the fence is down, somebody gives the home's CPUs to the cgroup, or to one below: that is a choice to keep. */
static void test_chosen_while_down(void **state)
{
    Tree *t = *state;

    tree_tick_to(t, ACT_WHY_UP);
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    tree_write(t, TREE_V1 "a/b/cpuset.cpus", "0-3\n");
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-3\n");
    tree_tick(t);
    tree_restore(t, ACT_FENCE_CGROUP1, "/a/b", "0-3");
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-3");
}

/* A writer that writes lists only in wait(), as may happen with lists of nodes. */
typedef struct Late {
    Tree *tree;
    char path[2][64];
    char list[2][64];
    size_t n;
} Late;

static int late_set(void *context, const char *path, hwloc_const_bitmap_t set)
{
    Late *late = context;
    CLEANUP_FREE char *list = format_list(set, PARSE_CPU_MAX);

    assert_non_null(list);
    assert_true(late->n < ARRAY_SIZE(late->path));
    (void)snprintf(late->path[late->n], sizeof(late->path[0]), TREE_V1 "%s/cpuset.cpus", path + 1);
    (void)snprintf(late->list[late->n++], sizeof(late->list[0]), "%s\n", list);
    return 0;
}

static int late_result(void *context, const char *name)
{
    return ((Late *)context)->n > 0 ? -EINPROGRESS : 0;
}

static void late_wait(void *context, uint64_t usec)
{
    Late *late = context;

    for (size_t i = 0; i < late->n; i++)
        tree_write(late->tree, late->path[i], late->list[i]);
    late->n = 0;
}

static const FenceOps ops_late = {.set = late_set, .result = late_result, .wait = late_wait};

/* Raises a fence with two nested cgroups below that have its CPUs; lists are late from then on. */
static void begin_late(Tree *t, Late *late)
{
    tree_tick(t);
    tree_write(t, TREE_V1 "a/b/cpuset.cpus", "0-3\n");
    tree_write(t, TREE_V1 "a/b/c/cpuset.cpus", "0-3\n");
    fences_set_ops(t->fences, ACT_FENCE_CGROUP1, false, &ops_late, late);
}

/* A nested cgroup waits for the one above it. */
static void test_below_late(void **state)
{
    Tree *t = *state;
    Late late = {.tree = t};

    begin_late(t, &late);
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/b", "0-7");
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/b/c", "0-7");
}

/* The same while the daemon runs. */
static void test_below_late_meanwhile(void **state)
{
    Tree *t = *state;
    Late late = {.tree = t};

    begin_late(t, &late);
    t->world->workloads[0].paused = true;
    for (unsigned i = 0; i < 4; i++) {
        tree_tick(t);
        assert_int_equal(t->journal->n_fences, i < 3);
        late_wait(&late, 0);
    }
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a/b/c", "0-7");
}

TEST_MAIN(tree_setup_v1, tree_teardown, test_below, test_not_alone, test_below_foreign, test_below_chosen,
          test_made_again, test_made_again_meanwhile, test_renamed, test_renamed_and_met,
          test_renamed_meanwhile, test_renamed_and_changed, test_renamed_and_crash, test_out_of_sight,
          test_no_descriptors, test_chosen_while_down, test_below_late, test_below_late_meanwhile)
