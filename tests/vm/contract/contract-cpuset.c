/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Affinity masks and cpuset.cpus of control groups, version 2. Relied on by act/masks/cut.c, act/masks/ops-affinity.c
 * (CUT), act/undo/restore.c (what "all CPUs" means) and probe/tasks/masks.c (who changed a mask).
 *
 *                                        before Linux 6.2              since
 *     the mask a thread asked for        cut by the cpuset then        remembered, and cut anew by every cpuset
 *     the cpuset changes                 every thread gets all of it   the mask asked for, cut; all of the cpuset
 *                                                                      when nothing is left
 *     the thread goes to another group   all of its cpuset             the same */

#include "groups.h"

#include <sys/wait.h>

static uint64_t all;
static bool remembers;

static int setup(void **state)
{
    all = mask_get(0);
    remembers = kernel_since(6, 2);
    return 0;
}

/* A group with four CPUs, 0-3, and a thread in it. */
static pid_t begin(const char *name)
{
    pid_t pid;

    if ((all & 0xf) != 0xf)
        contract_skip("CPUs 0-3 are needed");
    groups_begin();
    group_make(name);
    assert_int_equal(group_write(name, "cpuset.cpus", "0-3"), 0);
    pid = child_sleep(all);
    assert_int_equal(group_join(name, pid), 0);
    assert_int_equal(mask_get(pid), 0xf);
    return pid;
}

static void set_cpus(const char *name, const char *list)
{
    assert_int_equal(group_write(name, "cpuset.cpus", list), 0);
    assert_int_equal(group_list(name, "cpuset.cpus.effective"), list_parse(list));
}

/* The masks have changed when the write returns. */
static void test_thread_without_wish(void **state)
{
    pid_t pid = begin("a");

    set_cpus("a", "1-2");
    assert_int_equal(mask_get(pid), 0x6);
    set_cpus("a", "0,3");
    assert_int_equal(mask_get(pid), 0x9);
    set_cpus("a", "0-3");
    assert_int_equal(mask_get(pid), 0xf);
}

static void test_narrowed_and_widened(void **state)
{
    pid_t pid = begin("a");

    assert_int_equal(mask_set(pid, 0x3), 0);
    set_cpus("a", "1-3");
    assert_int_equal(mask_get(pid), remembers ? 0x2 : 0xe);
    set_cpus("a", "2-3");
    assert_int_equal(mask_get(pid), 0xc);
    set_cpus("a", "0-3");
    assert_int_equal(mask_get(pid), remembers ? 0x3 : 0xf);
}

/* On older kernels, even a change of the cpuset that does not affect the mask makes the kernel forget it. */
static void test_unrelated_change(void **state)
{
    pid_t pid = begin("a");

    assert_int_equal(mask_set(pid, 0x3), 0);
    set_cpus("a", "0-2");
    assert_int_equal(mask_get(pid), remembers ? 0x3 : 0x7);
}

/* Asking for more than the cpuset has is no error. Newer kernels give the rest when the cpuset allows it. */
static void test_wish_beyond(void **state)
{
    pid_t pid = begin("a");

    set_cpus("a", "1-3");
    assert_int_equal(mask_set(pid, 0x3), 0);
    assert_int_equal(mask_get(pid), 0x2);
    set_cpus("a", "0-3");
    assert_int_equal(mask_get(pid), remembers ? 0x3 : 0xf);
}

/* Asking for CPUs that are all outside the cpuset is an error. It changes nothing, not even the remembered mask. */
static void test_wish_outside(void **state)
{
    pid_t pid = begin("a");

    assert_int_equal(mask_set(pid, 0x6), 0);
    set_cpus("a", "1-3");
    assert_int_equal(mask_get(pid), remembers ? 0x6 : 0xe);
    assert_int_equal(mask_set(pid, 0x1), -EINVAL);
    assert_int_equal(mask_get(pid), remembers ? 0x6 : 0xe);
    set_cpus("a", "0-3");
    assert_int_equal(mask_get(pid), remembers ? 0x6 : 0xf);
}

/* A thread that asks for all CPUs that exist is treated as one that never asked. */
static void test_wish_for_all(void **state)
{
    pid_t pid = begin("a");

    assert_int_equal(mask_set(pid, 0x3), 0);
    assert_int_equal(mask_set(pid, ~UINT64_C(0)), 0);
    set_cpus("a", "1-2");
    assert_int_equal(mask_get(pid), 0x6);
    set_cpus("a", "0-3");
    assert_int_equal(mask_get(pid), 0xf);
}

/* A thread that asks for exactly the CPUs of its cpuset is not: on newer kernels it gets no more when the
 * cpuset grows. */
static void test_wish_for_this_cpuset(void **state)
{
    pid_t pid = begin("a");

    set_cpus("a", "1-2");
    assert_int_equal(mask_set(pid, 0x6), 0);
    set_cpus("a", "0-3");
    assert_int_equal(mask_get(pid), remembers ? 0x6 : 0xf);
}

static void test_another_group(void **state)
{
    pid_t pid = begin("a");

    group_make("b");
    set_cpus("b", "1-3");
    assert_int_equal(mask_set(pid, 0x3), 0);
    assert_int_equal(group_join("b", pid), 0);
    assert_int_equal(mask_get(pid), remembers ? 0x2 : 0xe);
    assert_int_equal(group_join("a", pid), 0);
    assert_int_equal(mask_get(pid), remembers ? 0x3 : 0xf);
}

typedef struct Nest {
    volatile pid_t child;
    volatile bool go;
} Nest;

static void nest_main(void *userdata)
{
    Nest *nest = userdata;
    pid_t pid;

    while (!nest->go)
        nap();
    pid = fork();
    if (pid == 0)
        for (;;)
            nap();
    nest->child = pid;
    (void)waitpid(pid, NULL, 0);
}

static bool has_child(void *userdata)
{
    return ((Nest *)userdata)->child > 0;
}

/* The remembered mask is inherited, too. */
static void test_inherited_wish(void **state)
{
    Nest *nest = shared_alloc(sizeof(*nest));
    pid_t pid;

    (void)begin("a");
    pid = child_start(nest_main, nest);
    assert_int_equal(group_join("a", pid), 0);
    assert_int_equal(mask_set(pid, 0x3), 0);
    nest->go = true;
    assert_true(eventually(has_child, nest));
    assert_int_equal(mask_get(nest->child), 0x3);
    set_cpus("a", "1-3");
    assert_int_equal(mask_get(nest->child), remembers ? 0x2 : 0xe);
    set_cpus("a", "0-3");
    assert_int_equal(mask_get(nest->child), remembers ? 0x3 : 0xf);
    assert_int_equal(group_write("a", "cgroup.kill", "1"), 0);
}

/* A group without a list of its own has the list of its parent, now and later. Its own file is empty then. */
static void test_effective(void **state)
{
    pid_t pid = begin("a");

    group_make("b");
    assert_int_equal(group_list("b", "cpuset.cpus"), 0);
    assert_int_equal(group_list("b", "cpuset.cpus.effective"), all);
    assert_int_equal(group_join("b", pid), 0);
    assert_int_equal(mask_get(pid), all);
    assert_int_equal(file_write("1-2", GROUPS_ROOT "/cpuset.cpus"), 0);
    assert_int_equal(group_list("b", "cpuset.cpus"), 0);
    assert_int_equal(group_list("b", "cpuset.cpus.effective"), 0x6);
    assert_int_equal(mask_get(pid), 0x6);
    /* CPUs in the list of a group that its parent does not have are no error. */
    assert_int_equal(group_write("b", "cpuset.cpus", "2-3"), 0);
    assert_int_equal(group_list("b", "cpuset.cpus"), 0xc);
    assert_int_equal(group_list("b", "cpuset.cpus.effective"), 0x4);
    assert_int_equal(mask_get(pid), 0x4);
    assert_int_equal(file_write("0-3", GROUPS_ROOT "/cpuset.cpus"), 0);
    assert_int_equal(mask_get(pid), 0xc);
}

/* A list cannot be emptied while there are tasks in the group, except on newer kernels. */
static void test_unsaying(void **state)
{
    bool may = CPUSETS_NEWER;
    pid_t pid = begin("a");

    set_cpus("a", "1-2");
    assert_int_equal(group_write("a", "cpuset.cpus", ""), may ? 0 : -ENOSPC);
    assert_int_equal(group_list("a", "cpuset.cpus"), may ? 0 : 0x6);
    assert_int_equal(mask_get(pid), may ? 0xf : 0x6);
    group_make("b");
    assert_int_equal(group_join("b", pid), 0);
    assert_int_equal(group_write("a", "cpuset.cpus", ""), 0);
    assert_int_equal(group_list("a", "cpuset.cpus.effective"), all);
}

/* A group without the controller has no such files. The list of the nearest group above applies. */
static void test_without_controller(void **state)
{
    pid_t pid = begin("a");

    set_cpus("a", "1-2");
    group_make("a/b");
    assert_int_equal(group_join("a/b", pid), 0);
    assert_false(file_exists(GROUPS_ROOT "/a/b/cpuset.cpus.effective"));
    assert_int_equal(mask_get(pid), 0x6);
}

/* Enabling the controller for a group without a list makes older kernels forget the masks that its tasks asked for. */
static void test_controller_on(void **state)
{
    pid_t pid = begin("a");

    group_make("a/b");
    assert_int_equal(group_join("a/b", pid), 0);
    assert_int_equal(mask_set(pid, 0x5), 0);
    assert_int_equal(group_write("a", "cgroup.subtree_control", "+cpuset"), 0);
    assert_int_equal(group_list("a/b", "cpuset.cpus.effective"), 0xf);
    assert_int_equal(mask_get(pid), remembers ? 0x5 : 0xf);
}

/* Disabling the controller removes the list, and the tasks of the group get the list of the group above. From
 * 6.2 to some version after 6.12 they do not if another group was there first whose tasks gain nothing: then
 * all tasks keep what they have. */
static void test_controller_off(void **state)
{
    pid_t pid = begin("a"), bystander = child_sleep(all);

    group_make("a/b");
    group_make("a/c");
    assert_int_equal(group_join("a/b", bystander), 0);
    assert_int_equal(group_join("a/c", pid), 0);
    assert_int_equal(group_write("a", "cgroup.subtree_control", "+cpuset"), 0);
    set_cpus("a/c", "1-2");
    assert_int_equal(mask_get(pid), 0x6);
    assert_int_equal(group_write("a", "cgroup.subtree_control", "-cpuset"), 0);
    assert_false(file_exists(GROUPS_ROOT "/a/c/cpuset.cpus"));
    assert_int_equal(mask_get(pid), remembers && !CPUSETS_NEWER ? 0x6 : 0xf);
    assert_int_equal(mask_get(bystander), 0xf);

    /* Asking for all CPUs, like asking for any other mask, helps. */
    assert_int_equal(mask_set(pid, ~UINT64_C(0)), 0);
    assert_int_equal(mask_get(pid), 0xf);
}

/* Without such a group they do get it. */
static void test_controller_off_alone(void **state)
{
    pid_t pid = begin("a");

    group_make("a/b");
    assert_int_equal(group_join("a/b", pid), 0);
    assert_int_equal(group_write("a", "cgroup.subtree_control", "+cpuset"), 0);
    set_cpus("a/b", "1-2");
    assert_int_equal(group_write("a", "cgroup.subtree_control", "-cpuset"), 0);
    assert_int_equal(mask_get(pid), 0xf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_thread_without_wish, groups_teardown),
        cmocka_unit_test_teardown(test_narrowed_and_widened, groups_teardown),
        cmocka_unit_test_teardown(test_unrelated_change, groups_teardown),
        cmocka_unit_test_teardown(test_wish_beyond, groups_teardown),
        cmocka_unit_test_teardown(test_wish_outside, groups_teardown),
        cmocka_unit_test_teardown(test_wish_for_all, groups_teardown),
        cmocka_unit_test_teardown(test_wish_for_this_cpuset, groups_teardown),
        cmocka_unit_test_teardown(test_another_group, groups_teardown),
        cmocka_unit_test_teardown(test_inherited_wish, groups_teardown),
        cmocka_unit_test_teardown(test_effective, groups_teardown),
        cmocka_unit_test_teardown(test_unsaying, groups_teardown),
        cmocka_unit_test_teardown(test_without_controller, groups_teardown),
        cmocka_unit_test_teardown(test_controller_on, groups_teardown),
        cmocka_unit_test_teardown(test_controller_off, groups_teardown),
        cmocka_unit_test_teardown(test_controller_off_alone, groups_teardown),
    };

    return cmocka_run_group_tests_name("contract-cpuset", tests, setup, NULL);
}
