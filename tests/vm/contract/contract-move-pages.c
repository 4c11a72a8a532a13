/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* move_pages(2): what it reports for a page, which calls fail as a whole, and what it leaves undone. It is
 * used to ask where memory is, and to move it page by page.
 *
 *     the call fails                                   a page's status
 *     ENODEV   no such node, or one without memory     node     it is there (or was there already)
 *     EACCES   a node outside the target's cpuset      ENOENT   nothing there yet
 *     EPERM    MOVE_ALL without CAP_SYS_NICE           EFAULT   no mapping, or the zero page; before Linux 6.12
 *     EINVAL   unknown flags; a kernel thread                   also private memory that was never touched
 *     ESRCH    no such process                         EACCES   mapped by several, without MOVE_ALL */

#include "groups.h"
#include "memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
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

/* The status of private memory that was never touched. */
static int untouched(void)
{
    return kernel_since(6, 12) ? -ENOENT : -EFAULT;
}

static void assert_all(const int *status, size_t n, int expected)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(status[i], expected);
}

/*
 * Asking
 */

static void test_query(void **state)
{
    char *p = pages_map(3);
    volatile char sink = p[2 * PAGE]; /* read, never written: the zero page */
    int status[3] = {99, 99, 99};

    (void)sink;
    p[0] = 1;
    assert_int_equal(pages_move(0, p, 3, -1, 0, status), 0);
    assert_true(status[0] >= 0 && (memory_nodes() & BIT(status[0])));
    assert_int_equal(status[1], untouched());
    assert_int_equal(status[2], -EFAULT);
    pages_unmap(p, (size_t)3 * PAGE);
    assert_int_equal(pages_move(0, p, 1, -1, 0, status), 0);
    assert_int_equal(status[0], -EFAULT);
}

/* The number of pages is not limited: 256 MB in one call. */
static void test_query_many(void **state)
{
    const size_t n = (size_t)256 << 8;
    char *p = pages_map(n);
    int *status = malloc(n * sizeof(*status));

    assert_non_null(status);
    memset(status, 0x55, n * sizeof(*status));
    p[(n - 1) * PAGE] = 1;
    assert_int_equal(pages_move(0, p, n, -1, 0, status), 0);
    assert_all(status, n - 1, untouched());
    assert_true(status[n - 1] >= 0);
    free(status);
    pages_unmap(p, n * PAGE);
}

static void test_query_of_nothing(void **state)
{
    assert_int_equal(pages_move(0, NULL, 0, -1, 0, NULL), 0);
}

static void test_query_of_another(void **state)
{
    char *p = pages_map(4);
    pid_t pid;

    pages_touch(p, 2);
    pid = child_sleep(mask_get(0)); /* has the same pages at the same address */
    assert_int_equal(pages_count(pid, p, 4, untouched()), 2);
    child_end(pid);
    pages_unmap(p, (size_t)4 * PAGE);
}

static pid_t kernel_thread(void)
{
    for (pid_t pid = 2; pid < 1000; pid++) {
        TaskStat stat;

        if (task_stat(pid, &stat) && (stat.flags & 0x00200000U))
            return pid;
    }
    contract_skip("no kernel threads to be seen");
    return -1;
}

static void test_refused_targets(void **state)
{
    char *p = pages_on(here, 1);
    int status;
    pid_t pid = child_sleep(mask_get(0));

    child_end(pid);
    assert_int_equal(pages_move(pid, p, 1, -1, 0, &status), -ESRCH);
    assert_int_equal(pages_move(kernel_thread(), p, 1, -1, 0, &status), -EINVAL);
    assert_int_equal(pages_move(0, p, 1, -1, 0x100, &status), -EINVAL);
    pages_unmap(p, PAGE);
}

typedef struct Poor {
    volatile long all, other, own;
    const void *page;
    unsigned node;
} Poor;

static void poor_main(void *userdata)
{
    Poor *poor = userdata;
    int status;

    if (setuid(65534) < 0)
        return;
    poor->all = pages_move(0, poor->page, 1, (int)poor->node, MPOL_MF_MOVE_ALL, &status);
    poor->other = pages_move(1, poor->page, 1, -1, 0, &status);
    poor->own = pages_move(0, poor->page, 1, -1, 0, &status);
}

static void test_privilege(void **state)
{
    Poor *poor = shared_alloc(sizeof(*poor));
    pid_t pid;

    if (getuid() != 0)
        contract_skip("not root");
    poor->page = pages_on(here, 1);
    poor->node = here;
    poor->all = poor->other = poor->own = 99;
    pid = child_start(poor_main, poor);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(poor->all, -EPERM);
    assert_int_equal(poor->other, -EPERM);
    assert_int_equal(poor->own, 0);
}

/*
 * Moving
 */

static void test_move(void **state)
{
    int status[N];
    char *p;

    need_nodes(2);
    p = pages_on(here, N);
    for (unsigned i = 0; i < N; i++)
        p[i * PAGE + 1] = (char)i;
    assert_int_equal(pages_move(0, p, N, (int)there, MPOL_MF_MOVE, status), 0);
    assert_all(status, N, (int)there);
    assert_int_equal(pages_count(0, p, N, (int)there), N);
    /* A second move reports the same and does nothing. */
    assert_int_equal(pages_move(0, p, N, (int)there, MPOL_MF_MOVE, status), 0);
    assert_all(status, N, (int)there);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(p[i * PAGE + 1], (char)i);
    pages_unmap(p, (size_t)N * PAGE);
}

/* Holes are reported page by page and do not stop the move. */
static void test_move_with_holes(void **state)
{
    int status[4];
    char *p;

    need_nodes(2);
    p = pages_map(4);
    policy_node(here);
    p[0] = p[3 * PAGE] = 1;
    policy_default();
    assert_int_equal(munmap(p + (size_t)2 * PAGE, PAGE), 0);
    assert_int_equal(pages_move(0, p, 4, (int)there, MPOL_MF_MOVE, status), 0);
    assert_int_equal(status[0], there);
    assert_int_equal(status[1], untouched());
    assert_int_equal(status[2], -EFAULT);
    assert_int_equal(status[3], there);
    pages_unmap(p, (size_t)4 * PAGE);
}

/* A node that does not exist fails the whole call. */
static void test_bad_nodes(void **state)
{
    int status[2] = {99, 99};
    char *p = pages_on(here, 2);

    assert_int_equal(pages_move(0, p, 2, 63, MPOL_MF_MOVE, status), -ENODEV);
    assert_int_equal(pages_move(0, p, 2, 100000, MPOL_MF_MOVE, status), -ENODEV);
    assert_all(status, 2, 99);
    assert_int_equal(pages_count(0, p, 2, (int)here), 2);
    pages_unmap(p, (size_t)2 * PAGE);
}

/* Pages before the one with the bad node have been moved when the call fails, and their status may be missing. */
static void test_bad_node_late(void **state)
{
    int status[3] = {99, 99, 99}, nodes[3];
    const void *pages[3];
    char *p;

    need_nodes(2);
    p = pages_on(here, 3);
    for (unsigned i = 0; i < 3; i++)
        pages[i] = p + i * PAGE;
    nodes[0] = nodes[2] = (int)there;
    nodes[1] = 63;
    assert_int_equal(syscall(SYS_move_pages, 0, 3UL, pages, nodes, status, MPOL_MF_MOVE), -1);
    assert_int_equal(errno, ENODEV);
    assert_int_equal(pages_count(0, p, 1, (int)there), 1);
    assert_int_equal(pages_count(0, p + PAGE, 2, (int)here), 2);
    contract_note("status of the page that was moved: %d", status[0]);
    pages_unmap(p, (size_t)3 * PAGE);
}

/* The cpuset of the target limits where its memory may be, also when another process moves it. */
static void test_outside_cpuset(void **state)
{
    int status[N];
    pid_t pid;
    char *p;

    need_nodes(2);
    groups_begin();
    group_make("mems");
    assert_int_equal(group_write_list("mems", "cpuset.mems", BIT(here)), 0);
    p = pages_on(here, N);
    pid = child_sleep(mask_get(0));
    assert_int_equal(group_join("mems", pid), 0);
    pages_unmap(p, (size_t)N * PAGE); /* otherwise they are shared with the child */
    assert_int_equal(pages_move(pid, p, N, (int)there, MPOL_MF_MOVE, status), -EACCES);
    assert_int_equal(pages_count(pid, p, N, (int)here), N);
    assert_int_equal(group_write_list("mems", "cpuset.mems", BIT(here) | BIT(there)), 0);
    assert_int_equal(pages_move(pid, p, N, (int)there, MPOL_MF_MOVE, status), 0);
    assert_int_equal(pages_count(pid, p, N, (int)there), N);
}

/* Pages that several processes map are moved only with MOVE_ALL. */
static void move_shared(char *p, pid_t pid)
{
    int status[N];

    assert_int_equal(pages_move(pid, p, N, (int)there, MPOL_MF_MOVE, status), 0);
    assert_all(status, N, -EACCES);
    assert_int_equal(pages_count(pid, p, N, (int)here), N);
    assert_int_equal(pages_move(pid, p, N, (int)there, MPOL_MF_MOVE_ALL, status), 0);
    assert_all(status, N, (int)there);
    assert_int_equal(pages_count(0, p, N, (int)there), N);
}

static void test_shared_after_fork(void **state)
{
    char *p;

    need_nodes(2);
    p = pages_on(here, N);
    move_shared(p, child_sleep(mask_get(0)));
    pages_unmap(p, (size_t)N * PAGE);
}

static void shared_main(void *userdata)
{
    pages_touch(userdata, N);
    for (;;)
        (void)pause();
}

static bool is_mapped(void *userdata)
{
    void **pair = userdata;

    return pages_count((pid_t)(intptr_t)pair[0], pair[1], N, (int)here) == N;
}

static void test_shared_memory(void **state)
{
    void *pair[2];
    char *p;
    pid_t pid;

    need_nodes(2);
    p = shared_alloc((size_t)N * PAGE);
    policy_node(here);
    pages_touch(p, N);
    policy_default();
    pid = child_start(shared_main, p);
    pair[0] = (void *)(intptr_t)pid;
    pair[1] = p;
    assert_true(eventually(is_mapped, pair));
    move_shared(p, pid);
    pages_unmap(p, (size_t)N * PAGE);
}

/* A huge page moves as a whole, whichever of its addresses is given, and stays huge. */
static void test_huge(void **state)
{
    uint64_t splits;
    int status;
    char *p;

    need_nodes(2);
    p = huge_on(here, 1);
    splits = vmstat("thp_split_page");
    assert_int_equal(pages_move(0, p + 5 * PAGE, 1, (int)there, MPOL_MF_MOVE, &status), 0);
    assert_int_equal(status, there);
    assert_int_equal(pages_count(0, p, HUGE / PAGE, (int)there), HUGE / PAGE);
    assert_int_equal(vmstat("thp_split_page"), splits);
    pages_unmap(p, HUGE);
}

/* Giving each of its 512 addresses is no error. */
static void test_huge_by_all_names(void **state)
{
    int status[HUGE / PAGE];
    char *p;

    need_nodes(2);
    p = huge_on(here, 1);
    assert_int_equal(pages_move(0, p, HUGE / PAGE, (int)there, MPOL_MF_MOVE, status), 0);
    assert_int_equal(status[0], there);
    assert_int_equal(pages_count(0, p, HUGE / PAGE, (int)there), HUGE / PAGE);
    pages_unmap(p, HUGE);
}

static void test_locked(void **state)
{
    int status[N];
    char *p;

    need_nodes(2);
    p = pages_on(here, N);
    assert_int_equal(mlock(p, (size_t)N * PAGE), 0);
    assert_int_equal(pages_move(0, p, N, (int)there, MPOL_MF_MOVE, status), 0);
    assert_all(status, N, (int)there);
    pages_unmap(p, (size_t)N * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_query_many),
        cmocka_unit_test(test_query_of_nothing),
        cmocka_unit_test_teardown(test_query_of_another, children_teardown),
        cmocka_unit_test_teardown(test_refused_targets, children_teardown),
        cmocka_unit_test_teardown(test_privilege, children_teardown),
        cmocka_unit_test(test_move),
        cmocka_unit_test(test_move_with_holes),
        cmocka_unit_test(test_bad_nodes),
        cmocka_unit_test(test_bad_node_late),
        cmocka_unit_test_teardown(test_outside_cpuset, groups_teardown),
        cmocka_unit_test_teardown(test_shared_after_fork, children_teardown),
        cmocka_unit_test_teardown(test_shared_memory, children_teardown),
        cmocka_unit_test(test_huge),
        cmocka_unit_test(test_huge_by_all_names),
        cmocka_unit_test(test_locked),
    };

    return cmocka_run_group_tests_name("contract-move-pages", tests, setup, NULL);
}
