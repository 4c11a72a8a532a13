/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* migrate_pages(2) and a write to cpuset.mems: both move the memory of a whole process, and have finished
 * when they return. They are for moving a whole group at once. */

#include "groups.h"
#include "memory.h"

#include <sys/mman.h>
#include <sys/wait.h>

#define N 64U

static unsigned here, there;

static int setup(void **state)
{
    if (memory_nodes() != 0) {
        here = bit_first(memory_nodes());
        there = bit_last(memory_nodes());
    }
    return 0;
}

/* A sleeping child with N private pages at `*ret`, on `here`. */
static pid_t child_with_pages(char **ret)
{
    char *p = pages_on(here, N);
    pid_t pid = child_sleep(mask_get(0));

    pages_unmap(p, (size_t)N * PAGE);
    *ret = p;
    return pid;
}

static void test_migrate(void **state)
{
    pid_t pid;
    char *p;

    need_nodes(2);
    pid = child_with_pages(&p);
    /* The result is the number of pages that could not be moved: those of the program, shared with the parent. */
    assert_true(migrate(pid, BIT(here), BIT(there)) >= 0);
    assert_int_equal(pages_count(pid, p, N, (int)there), N);
    /* Pages on nodes outside `from` stay. */
    assert_true(migrate(pid, BIT(here), BIT(here)) >= 0);
    assert_int_equal(pages_count(pid, p, N, (int)there), N);
}

static void test_errors(void **state)
{
    pid_t pid;
    char *p;

    need_nodes(2);
    pid = child_with_pages(&p);
    assert_int_equal(migrate(pid, BIT(here), BIT(63)), -EINVAL);
    assert_int_equal(migrate(pid, BIT(here), 0), -EINVAL);
    assert_int_equal(pages_count(pid, p, N, (int)here), N);
    child_end(pid);
    assert_int_equal(migrate(pid, BIT(here), BIT(there)), -ESRCH);
}

typedef struct Caller {
    pid_t target;
    uint64_t from, to;
    volatile bool go, done;
    volatile long result;
} Caller;

static void caller_main(void *userdata)
{
    Caller *caller = userdata;

    while (!caller->go)
        nap();
    caller->result = migrate(caller->target, caller->from, caller->to);
    caller->done = true;
}

static bool caller_done(void *userdata)
{
    return ((Caller *)userdata)->done;
}

/* The caller's cpuset limits the target nodes. For root, the target's cpuset does not. */
static void test_cpuset_of_the_caller(void **state)
{
    Caller *caller = shared_alloc(sizeof(*caller));
    pid_t pid, target;
    char *p;

    need_nodes(2);
    groups_begin();
    group_make("mems");
    assert_int_equal(group_write_list("mems", "cpuset.mems", BIT(here)), 0);
    target = child_with_pages(&p);
    *caller = (Caller){.target = target, .from = BIT(here), .to = BIT(there)};
    pid = child_start(caller_main, caller);
    assert_int_equal(group_join("mems", pid), 0);
    caller->go = true;
    assert_true(eventually(caller_done, caller));
    assert_int_equal(caller->result, -EINVAL);
    assert_int_equal(pages_count(target, p, N, (int)here), N);

    assert_int_equal(group_join("mems", target), 0);
    assert_true(migrate(target, BIT(here), BIT(there)) >= 0);
    contract_note("out of the target's cpuset: %zu of %u pages", pages_count(target, p, N, (int)there), N);
    assert_int_equal(pages_count(target, p, N, (int)there), N);
}

/*
 * cpuset.mems
 */

static pid_t begin_mems(char **ret)
{
    pid_t pid;

    need_nodes(2);
    groups_begin();
    group_make("a");
    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(here)), 0);
    pid = child_with_pages(ret);
    assert_int_equal(group_join("a", pid), 0);
    assert_int_equal(pages_count(pid, *ret, N, (int)here), N);
    return pid;
}

static void test_write_moves(void **state)
{
    char *p;
    pid_t pid = begin_mems(&p);

    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(there)), 0);
    assert_int_equal(pages_count(pid, p, N, (int)there), N);
    assert_int_equal(group_list("a", "cpuset.mems.effective"), BIT(there));
}

/* A wider set moves nothing. */
static void test_wider_moves_nothing(void **state)
{
    char *p;
    pid_t pid = begin_mems(&p);

    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(here) | BIT(there)), 0);
    assert_int_equal(pages_count(pid, p, N, (int)here), N);
    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(here)), 0);
    assert_int_equal(pages_count(pid, p, N, (int)here), N);
}

/* The pages of a process that joins from another group with a list of its own move as well. */
static void test_joining_moves(void **state)
{
    char *p;
    pid_t pid = begin_mems(&p);

    group_make("b");
    assert_int_equal(group_write_list("b", "cpuset.mems", BIT(there)), 0);
    assert_int_equal(group_join("b", pid), 0);
    assert_int_equal(pages_count(pid, p, N, (int)there), N);
}

/* If the process comes from a group without a list, its pages may or may not move: that depends on what was
 * done with the groups before. They move for certain if it joins a group whose list has all nodes, and the
 * list is narrowed afterwards. */
static void test_joining_from_the_root(void **state)
{
    pid_t pid;
    char *p;

    need_nodes(2);
    groups_begin();
    group_make("a");
    group_make("b");
    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(there)), 0);
    pid = child_with_pages(&p);
    assert_int_equal(group_join("a", pid), 0);
    contract_note("straight in: %zu of %u pages moved", pages_count(pid, p, N, (int)there), N);

    assert_int_equal(group_write_list("b", "cpuset.mems", memory_nodes()), 0);
    pid = child_with_pages(&p);
    assert_int_equal(group_join("b", pid), 0);
    assert_int_equal(pages_count(pid, p, N, (int)here), N);
    assert_int_equal(group_write_list("b", "cpuset.mems", BIT(there)), 0);
    assert_int_equal(pages_count(pid, p, N, (int)there), N);
}

/* The first list of a group moves memory that is there, if the group had the controller when its tasks joined. */
static void test_first_list(void **state)
{
    pid_t pid;
    char *p;

    need_nodes(2);
    groups_begin();
    group_make("a");
    pid = child_with_pages(&p);
    assert_int_equal(group_join("a", pid), 0);
    assert_int_equal(pages_count(pid, p, N, (int)here), N);
    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(there)), 0);
    assert_int_equal(pages_count(pid, p, N, (int)there), N);
}

/* If the controller was enabled while tasks were there, the first list moves memory only in the first of the
 * groups it was enabled for. In the others it moves nothing, and every later list does. Newer kernels move
 * memory in all of them. */
static void test_first_list_after_switching_on(void **state)
{
    static const char *const names[2] = {"a/b", "a/c"};
    pid_t pids[2];
    char *p[2];

    need_nodes(2);
    groups_begin();
    group_make("a");
    for (unsigned i = 0; i < 2; i++) {
        group_make(names[i]);
        pids[i] = child_with_pages(&p[i]);
        assert_int_equal(group_join(names[i], pids[i]), 0);
    }
    assert_int_equal(group_write("a", "cgroup.subtree_control", "+cpuset"), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(group_write_list(names[i], "cpuset.mems", BIT(there)), 0);
        assert_int_equal(pages_count(pids[i], p[i], N, (int)(i == 0 || CPUSETS_NEWER ? there : here)), N);
    }
    /* New memory obeys the list. The next list does not find memory that was left behind, unless the list
     * before it has that memory's node. */
    assert_int_equal(group_write_list("a/c", "cpuset.mems", BIT(here)), 0);
    assert_int_equal(group_write_list("a/c", "cpuset.mems", BIT(there)), 0);
    assert_int_equal(pages_count(pids[1], p[1], N, (int)there), N);
}

static void test_huge_moves_whole(void **state)
{
    uint64_t splits;
    pid_t pid;
    char *p;

    need_nodes(2);
    p = huge_on(here, 1);
    groups_begin();
    group_make("a");
    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(here)), 0);
    pid = child_sleep(mask_get(0));
    pages_unmap(p, HUGE);
    assert_int_equal(group_join("a", pid), 0);
    splits = vmstat("thp_split_page");
    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(there)), 0);
    assert_int_equal(pages_count(pid, p, HUGE / PAGE, (int)there), HUGE / PAGE);
    assert_int_equal(vmstat("thp_split_page"), splits);
}

/* As with CPUs, nodes that do not exist are an error, and so is emptying the list while the group has tasks,
 * except on newer kernels. */
static void test_mems_errors(void **state)
{
    bool may = CPUSETS_NEWER;
    char *p;
    pid_t pid = begin_mems(&p);

    assert_int_equal(group_write("a", "cpuset.mems", "63"), -EINVAL);
    assert_int_equal(group_write("a", "cpuset.mems", ""), may ? 0 : -ENOSPC);
    assert_int_equal(group_list("a", "cpuset.mems"), may ? 0 : BIT(here));
    assert_int_equal(pages_count(pid, p, N, (int)here), N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_migrate, children_teardown),
        cmocka_unit_test_teardown(test_errors, children_teardown),
        cmocka_unit_test_teardown(test_cpuset_of_the_caller, groups_teardown),
        cmocka_unit_test_teardown(test_write_moves, groups_teardown),
        cmocka_unit_test_teardown(test_wider_moves_nothing, groups_teardown),
        cmocka_unit_test_teardown(test_joining_moves, groups_teardown),
        cmocka_unit_test_teardown(test_joining_from_the_root, groups_teardown),
        cmocka_unit_test_teardown(test_first_list, groups_teardown),
        cmocka_unit_test_teardown(test_first_list_after_switching_on, groups_teardown),
        cmocka_unit_test_teardown(test_huge_moves_whole, groups_teardown),
        cmocka_unit_test_teardown(test_mems_errors, groups_teardown),
    };

    return cmocka_run_group_tests_name("contract-migrate-pages", tests, setup, NULL);
}
