/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Fences on a fake tree of cgroups: when they go up and come down, which value is restored, and where none is
 * possible. */

#include "act/fence/internal.h"
#include "act/fence/libcpuset.h"
#include "act/fence/place.h"
#include "base/parse.h"
#include "fence-tree.h"

#include <fcntl.h>

static void test_up(void **state)
{
    Tree *t = *state;

    tree_tick_to(t, ACT_WHY_UP);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-3");
    /* The rest of the program sees the cpuset as it is without the fence. */
    tree_assert_bound(t, "/a", "0-7");
    tree_assert_bound(t, "/a/b", "0-7");
    tree_assert_bound(t, "/ab", NULL);
    assert_true(fences_hold(t->fences, 101));
    assert_false(fences_hold(t->fences, 102));
    tree_tick_to(t, ACT_WHY_UP);
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "0-7");
}

/* Somebody else writes another list after fences were sensed, and before masks are read. Then the list from
 * before the fence must not hide what this one leaves. */
static void test_another_meanwhile(void **state)
{
    Tree *t = *state;

    tree_tick_to(t, ACT_WHY_UP);
    tree_write(t, TREE_V1 "a/cpuset.cpus", "2-5\n");
    tree_assert_bound(t, "/a", NULL);
    tree_assert_bound(t, "/a/b", NULL);
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-3\n");
    tree_assert_bound(t, "/a", "0-7");
}

static void test_lend(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-3")));
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-3");
    /* A lend: the old list is back before the mask is set. */
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    assert_false(fences_hold(t->fences, 100));
    t->world->groups[0].n_leases = 1;
    tree_tick_to(t, ACT_WHY_BORROWS);
    /* It does not come up again at once. */
    t->world->groups[0].n_leases = 0;
    tree_tick_to(t, ACT_WHY_BORROWS);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    /* A process in no fence is always admitted. */
    assert_true(fences_admit(t->fences, 999, NULL));
}

static void test_release(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    assert_true(fences_admit(t->fences, 101, NULL));
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
}

static void test_goes(void **state)
{
    Tree *t = *state;

    tree_tick_to(t, ACT_WHY_UP);
    t->world->workloads[0].paused = true;
    tree_tick_to(t, ACT_WHY_PAUSED);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    assert_int_equal(t->journal->n_fences, 0);
    /* Another policy. */
    t->world->workloads[0].paused = false;
    tree_tick_to(t, ACT_WHY_UP);
    t->wish = ACT_WISH_AFFINITY;
    tree_tick_to(t, ACT_WHY_POLICY);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
}

static void test_not_up(void **state)
{
    Tree *t = *state;

    /* A thread that may not be touched, then one that is not at home yet. */
    t->world->tasks[1].hands = TASK_HANDS_FOREIGN;
    tree_tick_to(t, ACT_WHY_HANDS);
    t->world->tasks[1].hands = TASK_HANDS_FREE;
    t->world->tasks[1].allowed = tree_mask(t, "0-7");
    tree_tick_to(t, ACT_WHY_SETTLING);
    t->world->tasks[1].allowed = tree_mask(t, "0-3");
    /* A process of no policy, in a cgroup below. */
    tree_write(t, TREE_V1 "a/b/cgroup.procs", "102\n");
    tree_tick_to(t, ACT_WHY_SHARED);
    tree_write(t, TREE_V1 "a/b/cgroup.procs", "");
    tree_tick_to(t, ACT_WHY_UP);
    /* A thread was narrowed by its user. */
    t->world->tasks[0].hands = TASK_HANDS_REPINNED;
    tree_tick_to(t, ACT_WHY_HANDS);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
}

static void test_wide(void **state)
{
    Tree *t = *state;

    t->world->groups[0].home = tree_mask(t, "0-7");
    tree_tick_to(t, ACT_WHY_WIDE);
    assert_int_equal(t->journal->n_fences, 0);
}

static void test_reserved(void **state)
{
    Tree *t = *state;

    t->world->cpus[0].usable = false;
    t->world->tasks[0].allowed = t->world->tasks[1].allowed = tree_mask(t, "1-3");
    tree_tick_to(t, ACT_WHY_UP);
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "1-3");
}

static void test_foreign(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, TREE_V1 "a/cpuset.cpus", "2-5\n");
    tree_tick_to(t, ACT_WHY_FOREIGN);
    tree_assert_bound(t, "/a", NULL);
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "2-5");
}

/* The kernel removes offline CPUs from a cpuset of version 1, from our list and from the old one alike. */
static void test_offline(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, "sys/devices/system/cpu/online", "0-2,4-7\n");
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-2\n");
    tree_tick_to(t, ACT_WHY_UP);
    tree_restart(t);
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "0-7"); /* the test's files accept any list */
}

static void test_crash(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_restart(t);
    assert_int_equal(t->journal->n_fences, 1);
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "0-7");

    /* A list that somebody else set since then stays. */
    tree_tick_to(t, ACT_WHY_UP);
    tree_crash(t);
    tree_write(t, TREE_V1 "a/cpuset.cpus", "3\n");
    tree_start(t);
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "3");
}

/* A restore that failed leaves our list in the cpuset, which is not taken for anybody's wish. */
static void test_left_over(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_restart(t);
    tree_tick_to(t, ACT_WHY_UP);
    tree_assert_bound(t, "/a", "0-7");
    tree_restore(t, ACT_FENCE_CGROUP1, "/a", "0-7");
}

static void test_forgets(void **state)
{
    Tree *t = *state;

    tree_crash(t);
    tree_write(t, "proc/sys/kernel/osrelease", "6.1.0-40-amd64\n");
    tree_start(t);
    t->wish = ACT_WISH_AUTO;
    tree_tick_to(t, ACT_WHY_FORGETS);
    t->wish = ACT_WISH_CPUSET;
    tree_tick_to(t, ACT_WHY_UP);
    /* Masks may have changed since the World was read. */
    assert_false(fences_admit(t->fences, 100, tree_mask(t, "0-3")));
    fences_sense(t->fences);
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-3")));
    assert_false(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    tree_assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    assert_false(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    fences_sense(t->fences);
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
}

static void test_unit(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    assert_string_equal(t->asked, "x.service=0-3;");
    tree_assert_why(t, ACT_WHY_CHANGING);
    assert_int_equal(t->journal->n_fences, 1);
    /* The manager has said yes, but has not written yet. */
    t->result[false] = 0;
    tree_tick_to(t, ACT_WHY_CHANGING);
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus", "0-3\n");
    tree_tick_to(t, ACT_WHY_UP);
    tree_assert_bound(t, TREE_UNIT, "0-7");

    /* While the fence comes down, no CPU outside it is given. */
    assert_false(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    assert_string_equal(t->asked, "x.service=0-3;x.service=0-7;");
    assert_false(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-3")));
    t->result[false] = 0;
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus", "0-7\n");
    assert_false(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    t->result[false] = 0;
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    assert_string_equal(t->asked, "x.service=0-3;x.service=0-7;x.service=;");
}

/* The daemon stops before the manager has written what it was asked for. The manager must be told again, or
 * it would write that afterwards. */
static void test_unit_rising(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    assert_string_equal(t->asked, "x.service=0-3;");
    t->obeys = true;
    assert_int_equal(fences_restore(t->fences), 0);
    assert_string_equal(t->asked, "x.service=0-3;x.service=0-7;x.service=;");
    assert_int_equal(t->journal->n_fences, 0);
}

/* Somebody else sets the property after the fence has looked, and before the manager does as it was asked. */
static void test_unit_crossed(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    assert_string_equal(t->asked, "x.service=0-3;");
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus", "2-5\n");
    t->obeys = true;
    tree_tick(t);
    assert_string_equal(t->asked, "x.service=0-3;x.service=2-5;");
    tree_tick_to(t, ACT_WHY_FOREIGN);
    tree_assert_cpus(t, ACT_FENCE_CGROUP2, TREE_UNIT, "2-5");
    tree_restore(t, ACT_FENCE_CGROUP2, TREE_UNIT, "2-5");
}

static const char cgroup_list[] = "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus";

/* The same while the fence comes down, for a lend and at the end. */
static void test_unit_crossed_lowered(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, cgroup_list, "2-5\n");
    t->obeys = true;
    (void)fences_admit(t->fences, 100, tree_mask(t, "0-4"));
    assert_string_equal(t->asked, "x.service=0-3;x.service=2-5;");
    tree_write(t, cgroup_list, "2-6\n");
    tree_tick(t);
    tree_assert_cpus(t, ACT_FENCE_CGROUP2, TREE_UNIT, "2-6");
    tree_restore(t, ACT_FENCE_CGROUP2, TREE_UNIT, "2-6");
}

static void test_unit_crossed_at_the_end(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    tree_write(t, cgroup_list, "2-5\n");
    t->obeys = true;
    assert_int_equal(fences_restore(t->fences), 0);
    assert_non_null(strstr(t->asked, "x.service=0-3;x.service=2-5;"));
    tree_assert_cpus(t, ACT_FENCE_CGROUP2, TREE_UNIT, "2-5");
    assert_int_equal(t->journal->n_fences, 0);
}

/* A unit that was restarted has no property of its own yet. */
static void test_unit_started_again(void **state)
{
    Tree *t = *state;

    tree_write(t, cgroup_list, "0-5\n");
    tree_tick(t);
    tree_write(t, cgroup_list, "\n");
    tree_tick(t);
    assert_string_equal(t->asked, "x.service=0-3;");
    tree_assert_why(t, ACT_WHY_CHANGING);
}

static void test_unit_refused(void **state)
{
    Tree *t = *state;

    tree_tick(t);
    t->result[false] = -EACCES;
    tree_tick_to(t, ACT_WHY_REFUSED);
    assert_int_equal(fences_means(t->fences, t->world->groups[0].id).error, EACCES);
    assert_true(fences_admit(t->fences, 100, tree_mask(t, "0-4")));
    /* It is not asked again in every tick. */
    tree_tick(t);
    assert_string_equal(t->asked, "x.service=0-3;");
}

static void stop_unit(Tree *t, const char *before, const char *asked)
{
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus", before);
    tree_tick(t);
    t->result[false] = 0;
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus", "0-3\n");
    tree_tick_to(t, ACT_WHY_UP);

    t->world->processes[0].gone = t->world->tasks[0].gone = true;
    assert_int_equal(unlinkat(t->root_fd, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus", 0), 0);
    assert_int_equal(unlinkat(t->root_fd, "sys/fs/cgroup" TREE_UNIT "/cgroup.procs", 0), 0);
    assert_int_equal(unlinkat(t->root_fd, "sys/fs/cgroup" TREE_UNIT, AT_REMOVEDIR), 0);
    for (unsigned i = 0; i < 3; i++) {
        tree_tick(t);
        t->result[false] = 0;
    }
    tree_tick(t);
    assert_string_equal(t->asked, asked);
    assert_int_equal(t->journal->n_fences, 0);
}

/* The manager keeps the property of a unit that does not run. */
static void test_unit_stopped(void **state)
{
    stop_unit(*state, "0-6\n", "x.service=0-3;x.service=0-6;");
}

static void test_unit_stopped_unbound(void **state)
{
    stop_unit(*state, "\n", "x.service=0-3;x.service=;");
}

/* A list of all CPUs is left over from an earlier fence, where another property keeps the controller enabled:
 * the kernel refuses an empty list while processes run there. */
static void test_unit_stopped_with_everything(void **state)
{
    stop_unit(*state, "0-7\n", "x.service=0-3;x.service=;");
}

static void test_place(void **state)
{
    static const struct {
        const char *cgroup, *unit;
        ActWish wish;
        ActWhy why;
        const char *name;
    } cases[] = {
        {"/system.slice/x.service", "x.service", ACT_WISH_UNIT, ACT_WHY_UP, "x.service"},
        {"/system.slice/x.service/workers", "x.service", ACT_WISH_AUTO, ACT_WHY_UP, "x.service"},
        {"/a.slice/a-b.slice/x.scope", "x.scope", ACT_WISH_AUTO, ACT_WHY_UP, "x.scope"},
        {"/user.slice/user-1.slice/user@1.service/app.slice/y.service", "y.service", ACT_WISH_UNIT,
         ACT_WHY_NESTED, NULL},
        {"/user.slice/user-1.slice/user@1.service/init.scope", "init.scope", ACT_WISH_AUTO, ACT_WHY_NESTED,
         NULL},
        {"/system.slice", NULL, ACT_WISH_UNIT, ACT_WHY_NO_UNIT, NULL},
        {"/mine/x.service", "x.service", ACT_WISH_UNIT, ACT_WHY_NO_UNIT, NULL},
        {"/", NULL, ACT_WISH_AUTO, ACT_WHY_NO_UNIT, NULL},
        {"/system.slice/docker-1f.scope", "docker-1f.scope", ACT_WISH_AUTO, ACT_WHY_CONTAINER, NULL},
        {"/system.slice/docker-1f.scope", "docker-1f.scope", ACT_WISH_UNIT, ACT_WHY_UP, "docker-1f.scope"},
        {"/system.slice/x.service", "x.service", ACT_WISH_CPUSET, ACT_WHY_MANAGED, NULL},
        {"/system.slice/x.service", "x.service", ACT_WISH_AFFINITY, ACT_WHY_POLICY, NULL},
    };
    const Tree *t = *state;
    ActHost host;

    fences_host(t->fences, &host);
    assert_true(host.systemd && host.cpuset2 && !host.cpuset1 && !host.forgets);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Process process = {.pid = 100, .cgroup = cases[i].cgroup, .unit = cases[i].unit};
        FencePlace place;

        assert_string_equal(act_why_name(fence_place(t->root_fd, &host, &process, cases[i].wish, &place)),
                            act_why_name(cases[i].why));
        if (cases[i].name)
            assert_string_equal(place.name, cases[i].name);
    }
    /* Without systemd, cgroups belong to whoever created them. */
    host.systemd = false;
    for (int wish = ACT_WISH_AUTO; wish <= ACT_WISH_CPUSET; wish += 2) {
        Process process = {.pid = 100, .cgroup = "/mine/x"};
        FencePlace place;

        assert_int_equal(fence_place(t->root_fd, &host, &process, (ActWish)wish, &place), ACT_WHY_UP);
        assert_int_equal(place.kind, ACT_FENCE_CGROUP2);
        assert_string_equal(place.path, "/mine/x");
        process.cgroup = "/";
        assert_int_equal(fence_place(t->root_fd, &host, &process, (ActWish)wish, &place), ACT_WHY_ROOT);
    }
}

static void assert_cpuset(const Tree *t, pid_t pid, const char *expected)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(fence_cpuset(t->root_fd, pid, set), expected ? 0 : -ENOENT);
    if (expected)
        assert_list(set, expected);
}

/* What a cpuset leaves, even if no fence narrows it; nothing for a process that is gone, or whose cgroup is
 * out of sight. */
static void test_cpuset_v1(void **state)
{
    Tree *t = *state;

    assert_cpuset(t, 100, NULL);
    tree_write(t, TREE_V1 "a/cpuset.effective_cpus", "0-5\n");
    assert_cpuset(t, 100, "0-5");
    tree_write(t, "proc/100/cgroup", "4:cpuset:/../b\n");
    assert_cpuset(t, 100, NULL);
    assert_cpuset(t, 999, NULL);
}

static void test_cpuset_v2(void **state)
{
    Tree *t = *state;

    tree_write(t, "proc/100/cgroup", "0::" TREE_UNIT "\n");
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus.effective", "0-2,4-7\n");
    assert_cpuset(t, 100, "0-2,4-7");
    /* The controller is enabled above, but not here. */
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/below/it/cgroup.procs", "100\n");
    tree_write(t, "proc/100/cgroup", "0::" TREE_UNIT "/below/it\n");
    assert_cpuset(t, 100, "0-2,4-7");
    tree_write(t, "proc/100/cgroup", "0::/\n");
    assert_cpuset(t, 100, "0-7");
    /* The kernel names the cpuset itself. */
    tree_write(t, "proc/100/cpuset", TREE_UNIT "\n");
    assert_cpuset(t, 100, "0-2,4-7");
}

/* libcpuset takes no root directory, so it cannot change a fake /dev/cpuset.
 * tests/integration/test-daemon-cpusetfs.py tests what it does. */
static void test_libcpuset(void **state)
{
    Tree *t = *state;
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();
    ActHost host;

    fences_host(t->fences, &host);
    assert_false(host.cpusetfs || host.cpuset1 || host.cpuset2);
    assert_int_equal(host.libcpuset, libcpuset_is_built());
    tree_tick_to(t, ACT_WHY_HOST);

    assert_int_equal(libcpuset_set("/a", set, false), libcpuset_is_built() ? -ENOSPC : -ENOSYS);
    assert_int_equal(hwloc_bitmap_set(set, PARSE_CPU_MAX), 0);
    assert_int_equal(libcpuset_set("/a", set, false), libcpuset_is_built() ? -EINVAL : -ENOSYS);
    assert_int_equal(libcpuset_set("/a", set, true), libcpuset_is_built() ? -EINVAL : -ENOSYS);
    tree_assert_cpus(t, ACT_FENCE_CPUSETFS, "/a", "0-7");
}

/* As with a cpuset of version 1, with other file names. */
static void test_cpusetfs(void **state)
{
    Tree *t = *state;

    assert_cpuset(t, 100, "0-7");
    t->fences->host.cpusetfs = true; /* as if it were the real one */
    t->wish_memory = true;
    tree_set_memory(t, 100, 0);
    tree_tick_to(t, ACT_WHY_UP);
    assert_int_equal(fences_means(t->fences, t->world->groups[0].id).kind, ACT_FENCE_CPUSETFS);
    tree_assert_cpus(t, ACT_FENCE_CPUSETFS, "/a", "0-3");
    tree_assert_memory(t, ACT_FENCE_CPUSETFS, "/a", "0");
    tree_assert_bound(t, "/a", "0-7");
    tree_restart(t);
    assert_int_equal(t->journal->n_fences, 2);
    tree_restore(t, ACT_FENCE_CPUSETFS, "/a", "0-7");
    tree_assert_memory(t, ACT_FENCE_CPUSETFS, "/a", "0-1");
    assert_int_equal(t->journal->n_fences, 0);
    /* There is no fence at the root. */
    t->fences->host.cpusetfs = true;
    for (pid_t pid = 100; pid <= 101; pid++)
        tree_write(t, pid == 100 ? "proc/100/cgroup" : "proc/101/cgroup", "4:cpuset:/\n");
    tree_tick_to(t, ACT_WHY_ROOT);
}

/* Who changes nothing has no fences, and says so. */
static void test_none(void **state)
{
    assert_string_equal(act_why_name(fences_means(NULL, 1).why), "observe");
    assert_int_equal(fences_means(NULL, 1).kind, ACT_FENCE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),
        cmocka_unit_test_setup_teardown(test_up, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_another_meanwhile, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_lend, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_release, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_goes, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_not_up, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_wide, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_reserved, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_foreign, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_offline, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_crash, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_left_over, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_forgets, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit_rising, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit_crossed, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit_crossed_lowered, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit_crossed_at_the_end, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit_started_again, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit_refused, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit_stopped, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit_stopped_unbound, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_unit_stopped_with_everything, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_place, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_cpuset_v1, tree_setup_v1, tree_teardown),
        cmocka_unit_test_setup_teardown(test_cpuset_v2, tree_setup_unit, tree_teardown),
        cmocka_unit_test_setup_teardown(test_libcpuset, tree_setup_cpusetfs, tree_teardown),
        cmocka_unit_test_setup_teardown(test_cpusetfs, tree_setup_cpusetfs, tree_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
