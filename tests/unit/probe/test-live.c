/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* This machine's own /proc, with only children of this test taken. */

#include "base/time.h"
#include "kernel/procstat.h"

#include "../lone-thread.h"
#include "probe-test.h"

#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* A child that waits for its socket to be closed. */
typedef struct Child {
    pid_t pid;
    int fd;
} Child;

static Child child_start(void)
{
    int fds[2];
    char byte = 0;
    Child child;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    child = (Child){.pid = fork(), .fd = fds[1]};
    if (child.pid == 0) {
        (void)close(fds[1]);
        lone_thread();
        _exit(write(fds[0], &byte, 1) == 1 && read(fds[0], &byte, 1) == 0 ? 0 : 1);
    }
    assert_true(child.pid > 0);
    (void)close(fds[0]);
    assert_int_equal(read(child.fd, &byte, 1), 1); /* the child is ready */
    return child;
}

static void child_stop(Child *child)
{
    if (child->pid <= 0)
        return;
    (void)close(child->fd);
    (void)kill(child->pid, SIGKILL);
    (void)waitpid(child->pid, NULL, 0);
    child->pid = 0;
}

static void open_live(Bench *b, const Child *child)
{
    *b = (Bench){.root_fd = root_open("/")};
    bench_start(b, &(ProbeOptions){.live = true, .self = getpid()});
    b->decision = PROBE_DECISION_IGNORE;
    b->except = child->pid;
    b->except_decision = PROBE_DECISION_TAKE;
    b->now = time_now_usec();
}

static void test_exit(void **state)
{
    CLEANUP(child_stop) Child child = child_start();
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    open_live(&b, &child);
    bench_discover(&b);
    assert_int_equal(b.world->n_processes, 1);
    assert_int_equal(b.world->n_tasks, 1);
    assert_int_equal(b.last.parent, getpid());
    assert_int_equal(b.last.uid, getuid());
    bench_sample(&b);
    bench_sample(&b);
    assert_int_not_equal(bench_task(&b, child.pid, child.pid)->hands, TASK_HANDS_UNKNOWN);
    assert_false(bench_task(&b, child.pid, child.pid)->gone);

    {
        pid_t pid = child.pid;

        child_stop(&child);
        bench_sample(&b);
        assert_true(bench_task(&b, pid, pid)->gone);
    }
    assert_int_equal(probe_statistics(b.probe)->n_kept_open, 0);
    bench_discover(&b);
    assert_int_equal(b.world->n_processes, 0);
    assert_int_equal(b.world->n_tasks, 0);
}

/* The mask read equals the kernel's, and a change by hand is seen. */
static void test_repinned(void **state)
{
    CLEANUP(child_stop) Child child = {0};
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    hwloc_bitmap_t own = hwloc_bitmap_alloc();
    cpu_set_t set, one;
    Task *task;
    int first = -1;

    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set)) {
            first = first < 0 ? i : first;
            hwloc_bitmap_set(own, (unsigned)i);
        }
    if (CPU_COUNT(&set) < 2) {
        print_message("one CPU only\n");
        hwloc_bitmap_free(own);
        skip();
    }

    child = child_start();
    open_live(&b, &child);
    bench_discover(&b);
    task = bench_task(&b, child.pid, child.pid);
    assert_true(hwloc_bitmap_isequal(task->allowed, own));
    hwloc_bitmap_free(own);

    task->original = task->allowed; /* as if the daemon had set it */
    task->hands = TASK_HANDS_FREE;
    bench_discover(&b);
    assert_int_equal(bench_task(&b, child.pid, child.pid)->hands, TASK_HANDS_FREE);

    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(child.pid, sizeof(one), &one), 0);
    bench_discover(&b);
    assert_int_equal(bench_task(&b, child.pid, child.pid)->hands, TASK_HANDS_REPINNED);
    assert_true(bench_process(&b, child.pid)->yielded);
    assert_int_equal(hwloc_bitmap_weight(bench_task(&b, child.pid, child.pid)->allowed), 1);
}

/* A policy that takes all processes still gets neither kernel threads nor the daemon itself. */
static void test_never_taken(void **state)
{
    CLEANUP(child_stop) Child child = child_start();
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    open_live(&b, &child);
    b.decision = PROBE_DECISION_TAKE;
    bench_discover(&b);
    assert_non_null(world_process(b.world, child.pid));
    assert_null(world_process(b.world, getpid()));
    for (size_t i = 0; i < b.world->n_processes; i++) {
        ProcStat stat;

        if (procstat_read_task(b.root_fd, b.world->processes[i].pid, 0, &stat) == 0)
            assert_int_equal(stat.flags & PROCSTAT_FLAG_KTHREAD, 0);
    }
    assert_false(probe_topology_changed(b.probe));
}

static void test_children_leave_nothing(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    Child none = {0};
    size_t pool = 0;

    open_live(&b, &none);
    for (int i = 0; i < 100; i++) {
        CLEANUP(child_stop) Child child = child_start();

        b.except = child.pid;
        bench_discover(&b);
        bench_sample(&b);
        assert_int_equal(b.world->n_processes, 1);
        assert_int_equal(probe_statistics(b.probe)->n_kept_open, 1);
        if (i == 0)
            pool = intern_pool_size(b.world->pool);
        assert_int_equal(intern_pool_size(b.world->pool), pool);
    }
}

TEST_MAIN(NULL, NULL, test_exit, test_repinned, test_never_taken, test_children_leave_nothing)
