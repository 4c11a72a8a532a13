/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Eligibility of a thread by its mask. */

#include "probe-test.h"

/* Every mask of a process is read in these small worlds. */
static void put_mask(Bench *b, pid_t pid, const char *mask)
{
    put_thread(b, &(FakeTask){.pid = pid, .tid = pid, .mask = mask});
}

static CpuMask mask(Bench *b, const char *list)
{
    return test_mask(b->world->pool, list);
}

/* As if the daemon had confined the process to node 0. */
static void confine(Bench *b, pid_t pid, const char *home)
{
    Group *group = &b->world->groups[bench_process(b, pid)->group.i];
    Task *task = bench_task(b, pid, pid);

    group->home = mask(b, home);
    group->home_nodes = mask(b, "0");
    task->original = task->allowed;
    task->allowed = mask(b, home);
    put_mask(b, pid, home);
}

static void make(Bench *b)
{
    *b = bench_make();
    put_process(b, &(FakeTask){.pid = 100});
    bench_start(b, NULL);
    bench_discover(b);
    assert_int_equal(bench_task(b, 100, 100)->hands, TASK_HANDS_FREE);
}

static void test_foreign(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    put_mask(&b, 100, "1-2");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FOREIGN);
    assert_list(bench_task(&b, 100, 100)->allowed, "1-2");
    assert_false(bench_process(&b, 100)->yielded);
    put_mask(&b, 100, "0-3");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
}

/* Only masks of newcomers. */
static void test_newcomers(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    put_mask(&b, 100, "1-2");
    put_process(&b, &(FakeTask){.pid = 200});
    put_mask(&b, 200, "1-2");
    b.now += SEC;
    assert_int_equal(probe_find_newcomers(b.probe, b.world, b.now), 0);
    assert_int_equal(bench_process(&b, 200)->first_seen_usec, b.now);
    assert_int_equal(bench_task(&b, 200, 200)->hands, TASK_HANDS_FOREIGN);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
    assert_int_equal(probe_statistics(b.probe)->n_taken, 2);
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FOREIGN);
}

static void test_repinned(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    confine(&b, 100, "0-1");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
    assert_false(bench_process(&b, 100)->yielded);

    put_mask(&b, 100, "1");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_REPINNED);
    assert_list(bench_task(&b, 100, 100)->allowed, "1");
    assert_list(bench_task(&b, 100, 100)->original, "0-3");
    assert_true(bench_process(&b, 100)->yielded);

    /* For good, whatever happens. */
    put_mask(&b, 100, "0-1");
    bench_discover(&b);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_REPINNED);
    assert_true(bench_process(&b, 100)->yielded);
}

/* Nobody has pinned a thread whose TID another one has by now. */
static void test_tid_is_reused(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    const pid_t n = 18, tid = 110; /* not one of those whose start times are reread next */
    Task *task;

    put_process(&b, &(FakeTask){.pid = 100, .n_threads = (unsigned)n});
    for (pid_t i = 1; i < n; i++)
        put_thread(&b, &(FakeTask){.pid = 100, .tid = 100 + i, .n_threads = (unsigned)n});
    bench_start(&b, NULL);
    bench_discover(&b);
    b.world->groups[bench_process(&b, 100)->group.i].home = mask(&b, "0-1");
    b.world->groups[bench_process(&b, 100)->group.i].home_nodes = mask(&b, "0");
    task = bench_task(&b, 100, tid);
    task->original = task->allowed;
    task->allowed = mask(&b, "0-1");
    put_thread(&b, &(FakeTask){.pid = 100, .tid = tid, .n_threads = (unsigned)n, .start = 7, .mask = "3"});
    bench_discover(&b);
    assert_false(bench_process(&b, 100)->yielded);
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, tid)->start_ticks, 7);
    assert_int_equal(bench_task(&b, 100, tid)->hands, TASK_HANDS_FOREIGN);
    assert_null(bench_task(&b, 100, tid)->original);
}

/* Widening the mask by hand to the whole cpuset is a foreign pin as well. */
static void test_repinned_wide(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    confine(&b, 100, "0-1");
    put_mask(&b, 100, "0-3");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_REPINNED);
}

/* Before Linux 6.2 the kernel itself does that, even when no cpuset has changed its CPUs. */
static void test_reset_by_old_kernel(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    put(&b, "proc/sys/kernel/osrelease", "6.1.0-52-cloud-amd64\n");
    confine(&b, 100, "0-1");
    put_mask(&b, 100, "0-3");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
    assert_list(bench_task(&b, 100, 100)->allowed, "0-3");
    assert_false(bench_process(&b, 100)->yielded);
    put_mask(&b, 100, "0-2");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_REPINNED);
}

/* Nor do these kernels give back a CPU that was offline when a mask was set, even by the daemon. Later kernels do. */
static void test_cpu_was_away(void **state)
{
    static const struct {
        const char *release;
        TaskHands hands;
    } cases[] = {{"6.1.0-52-cloud-amd64\n", TASK_HANDS_FREE}, {"6.12.0-1-amd64\n", TASK_HANDS_FOREIGN}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(bench_close) Bench b = {.root_fd = -1};

        make(&b);
        put(&b, "proc/sys/kernel/osrelease", "%s", cases[i].release);
        put_mask(&b, 100, "0-1,3");
        bench_discover(&b);
        assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FOREIGN); /* CPU 3 was not offline */
        put(&b, "sys/devices/system/cpu/online", "0-1,3\n");
        assert_true(probe_topology_changed(b.probe));
        bench_discover(&b);
        put(&b, "sys/devices/system/cpu/online", "0-3\n");
        assert_true(probe_topology_changed(b.probe));
        put_mask(&b, 100, "1,3");
        bench_discover(&b);
        assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FOREIGN);
        put_mask(&b, 100, "0-1,3");
        bench_discover(&b);
        assert_int_equal(bench_task(&b, 100, 100)->hands, cases[i].hands);
    }
}

/* The first thread of a virtual machine is in a threaded cgroup of its own, which says nothing of the others. */
static void test_threaded_cgroup(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put(&b, "sys/fs/cgroup/vm.scope/libvirt/cgroup.type", "domain threaded\n");
    put(&b, "sys/fs/cgroup/vm.scope/libvirt/cpuset.cpus.effective", "0,2-3\n");
    put(&b, "sys/fs/cgroup/vm.scope/libvirt/emulator/cgroup.type", "threaded\n");
    put(&b, "sys/fs/cgroup/vm.scope/libvirt/emulator/cpuset.cpus.effective", "0\n");
    put_process(&b,
                &(FakeTask){.pid = 100, .n_threads = 2, .cgroup = "/vm.scope/libvirt/emulator", .mask = "0"});
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2, .mask = "0,2-3"});
    bench_start(&b, NULL);
    bench_discover(&b);
    assert_list(bench_process(&b, 100)->cpuset, "0,2-3");
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FOREIGN);
    assert_int_equal(bench_task(&b, 100, 101)->hands, TASK_HANDS_FREE);
}

/* What the kernel makes of a mask when the cpuset or the online CPUs change is nobody's wish. */
static void test_cpuset_changes(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    confine(&b, 100, "0-1");
    put(&b, "sys/fs/cgroup/app.slice/cpuset.cpus.effective", "1-3\n");
    put_mask(&b, 100, "1-3"); /* before Linux 6.2: the whole cpuset */
    bench_discover(&b);
    assert_list(bench_process(&b, 100)->cpuset, "1-3");
    assert_list(bench_task(&b, 100, 100)->allowed, "1-3");
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
    assert_false(bench_process(&b, 100)->yielded);
}

/* The kernel reports the CPUs of a cpuset before it has cut masks, which may be seen one pass later, but no
 * more than that. */
static void test_mask_after_cpuset(void **state)
{
    for (int later = 0; later < 2; later++) {
        CLEANUP(bench_close) Bench b = {.root_fd = -1};

        make(&b);
        confine(&b, 100, "0-1");
        put(&b, "sys/fs/cgroup/app.slice/cpuset.cpus.effective", "1-3\n");
        bench_discover(&b);
        assert_list(bench_task(&b, 100, 100)->allowed, "0-1");
        if (later)
            bench_discover(&b);
        put_mask(&b, 100, "1");
        bench_discover(&b);
        assert_int_equal(bench_task(&b, 100, 100)->hands, later ? TASK_HANDS_REPINNED : TASK_HANDS_FREE);
    }
}

/* However often newcomers were looked for in between: masks are not read then. */
static void test_mask_after_cpuset_and_newcomers(void **state)
{
    for (unsigned n = 1; n < 5; n++) {
        CLEANUP(bench_close) Bench b = {.root_fd = -1};

        make(&b);
        confine(&b, 100, "0-1");
        put(&b, "sys/fs/cgroup/app.slice/cpuset.cpus.effective", "1-3\n");
        put_mask(&b, 100, "1");
        for (unsigned i = 0; i < n; i++) {
            b.now += SEC;
            assert_int_equal(probe_find_newcomers(b.probe, b.world, b.now), 0);
        }
        bench_discover(&b);
        assert_list(bench_task(&b, 100, 100)->allowed, "1");
        assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
        assert_false(bench_process(&b, 100)->yielded);
    }
}

/* A mask that follows a new cpuset may be read before the cpuset is. */
static void test_mask_before_cpuset(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    put_mask(&b, 100, "1-3");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FOREIGN);
    put(&b, "sys/fs/cgroup/app.slice/cpuset.cpus.effective", "1-3\n");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
    /* A thread that somebody pinned stays pinned. */
    put_mask(&b, 100, "2");
    bench_discover(&b);
    put(&b, "sys/fs/cgroup/app.slice/cpuset.cpus.effective", "2-3\n");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FOREIGN);
}

/* The daemon may also have been refused a mask of CPUs that the cpuset no longer had. */
static void test_denied_until_cpuset_changes(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    for (int ours = 0; ours < 2; ours++) {
        if (ours)
            confine(&b, 100, "0-1");
        bench_task(&b, 100, 100)->hands = TASK_HANDS_DENIED;
        bench_discover(&b);
        assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_DENIED);
        put(&b, "sys/fs/cgroup/app.slice/cpuset.cpus.effective", ours ? "0-3\n" : "0-2\n");
        bench_discover(&b);
        assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
    }
}

/* A cpuset that was narrowed and widened again between two discoveries has not changed. Another refusal doubles the
 * pause, up to an hour; one that comes late is a new one. */
static void test_denied_for_a_while(void **state)
{
    static const unsigned pauses[] = {10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600};

    for (int ours = 0; ours < 2; ours++) {
        CLEANUP(bench_close) Bench b = {.root_fd = -1};

        make(&b);
        if (ours)
            confine(&b, 100, "0-1");
        for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
            bench_task(&b, 100, 100)->hands = TASK_HANDS_DENIED;
            for (unsigned second = 0; second < pauses[i]; second++) {
                bench_discover(&b);
                assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_DENIED);
            }
            bench_discover(&b);
            assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
        }
        b.now += 2 * 3600 * SEC;
        bench_task(&b, 100, 100)->hands = TASK_HANDS_DENIED;
        bench_discover(&b);
        b.now += 9 * SEC;
        bench_discover(&b);
        assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
    }
}

/* What is denied only for a pause is pinned by somebody else all the same. */
static void test_denied_and_foreign(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    put_mask(&b, 100, "1-2");
    bench_discover(&b);
    bench_task(&b, 100, 100)->hands = TASK_HANDS_DENIED; /* by ForeignAffinity=override */
    bench_discover(&b);
    b.now += 9 * SEC;
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FOREIGN);
}

/* The same when it was moved to another cgroup, which is not checked in every pass. */
static void test_cgroup_changes(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    put(&b, "sys/fs/cgroup/small.slice/cpuset.cpus.effective", "1\n");
    for (int i = 0; i < 8; i++) { /* at every place in the rolling check */
        confine(&b, 100, "0-1");
        bench_task(&b, 100, 100)->original = mask(&b, "0-3");
        put(&b, "proc/100/cgroup", "0::/app.slice/app.service\n");
        bench_discover(&b);
        bench_process(&b, 100)->cpuset = mask(&b, "0-3");

        put(&b, "proc/100/cgroup", "0::/small.slice/x.service\n");
        put_mask(&b, 100, "1");
        bench_discover(&b);
        assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
        assert_false(bench_process(&b, 100)->yielded);
        assert_list(bench_process(&b, 100)->cpuset, "1");
        assert_list(bench_task(&b, 100, 100)->allowed, "1");
    }
}

static void test_cpus_change(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    confine(&b, 100, "0-1");
    put(&b, "sys/devices/system/cpu/online", "0,2-3\n");
    bench_discover(&b); /* the mask still is 0-1, cut to the online CPUs */
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
    assert_list(bench_task(&b, 100, 100)->allowed, "0");
    put(&b, "sys/devices/system/cpu/online", "0-3\n");
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
    assert_list(bench_task(&b, 100, 100)->allowed, "0-1");
    assert_false(bench_process(&b, 100)->yielded);
}

/* Threads created under one of the daemon's masks are free, also under one with a lent CPU. Other narrow
 * masks are somebody's wish. */
static void test_inherited(void **state)
{
    static const struct {
        pid_t tid;
        const char *mask;
        TaskHands hands;
    } rows[] = {
        {101, "0-1", TASK_HANDS_FREE},    {102, "0-1,3", TASK_HANDS_FREE},  {103, "1", TASK_HANDS_FOREIGN},
        {104, "1-2", TASK_HANDS_FOREIGN}, {105, "2-3", TASK_HANDS_FOREIGN},
    };
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    confine(&b, 100, "0-1");
    put_process(&b, &(FakeTask){.pid = 100, .n_threads = 6, .mask = "0-1"});
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        put_thread(&b, &(FakeTask){.pid = 100, .tid = rows[i].tid, .mask = rows[i].mask});
    bench_discover(&b);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(bench_task(&b, 100, rows[i].tid)->hands, rows[i].hands);
        assert_list(bench_task(&b, 100, rows[i].tid)->allowed, rows[i].mask);
        assert_null(bench_task(&b, 100, rows[i].tid)->original);
    }
}

/* One lent CPU is accepted, two are not. */
static void test_inherited_with_lent_cpu(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    confine(&b, 100, "0");
    put_process(&b, &(FakeTask){.pid = 100, .n_threads = 3, .mask = "0"});
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .mask = "0,2"});
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 102, .mask = "0,2-3"});
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 101)->hands, TASK_HANDS_FREE);
    assert_int_equal(bench_task(&b, 100, 102)->hands, TASK_HANDS_FOREIGN);
}

/* Where threads are confined to one node each, new threads begin with the mask of their creator. */
static void test_inherited_from_a_node(void **state)
{
    static const struct {
        pid_t tid;
        const char *mask;
        TaskHands hands[2]; /* before any thread has a node, and after */
    } rows[] = {
        {101, "2-3", {TASK_HANDS_FOREIGN, TASK_HANDS_FREE}},
        {102, "0,2-3", {TASK_HANDS_FOREIGN, TASK_HANDS_FREE}}, /* with a lent CPU */
        {103, "1-2", {TASK_HANDS_FOREIGN, TASK_HANDS_FOREIGN}},
    };

    for (int apart = 0; apart < 2; apart++) {
        CLEANUP(bench_close) Bench b = {.root_fd = -1};

        make(&b);
        confine(&b, 100, "0-3");
        b.world->groups[bench_process(&b, 100)->group.i].home_nodes = mask(&b, "0-1");
        bench_task(&b, 100, 100)->home_node.i = apart ? 1 : -1;
        put_process(&b, &(FakeTask){.pid = 100, .n_threads = 4, .mask = "0-3"});
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
            put_thread(&b, &(FakeTask){.pid = 100, .tid = rows[i].tid, .mask = rows[i].mask});
        bench_discover(&b);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
            assert_int_equal(bench_task(&b, 100, rows[i].tid)->hands, rows[i].hands[apart]);
    }
}

/* A child process inherits the mask of its parent's group. */
static void test_inherited_by_child(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    confine(&b, 100, "0-1");
    put_process(&b, &(FakeTask){.pid = 200, .parent = 100, .mask = "0-1"});
    put_process(&b, &(FakeTask){.pid = 201, .parent = 1, .mask = "0-1"});
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 200, 200)->hands, TASK_HANDS_FREE);
    assert_int_equal(bench_task(&b, 201, 201)->hands, TASK_HANDS_FOREIGN);
}

/* A mask that cannot be read means no action, even if all else can be read (I10). */
static void test_unreadable(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b);
    put(&b, "proc/100/task/100/status", "Cpus_allowed_list:\t0-3\n");
    bench_discover(&b);
    bench_sample(&b);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_UNKNOWN);
    put_mask(&b, 100, "0-3");
    bench_discover(&b);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
}

TEST_MAIN(NULL, NULL, test_foreign, test_newcomers, test_mask_after_cpuset_and_newcomers, test_repinned,
          test_tid_is_reused, test_repinned_wide, test_reset_by_old_kernel, test_cpu_was_away,
          test_threaded_cgroup, test_cpuset_changes, test_mask_after_cpuset, test_mask_before_cpuset,
          test_denied_until_cpuset_changes, test_denied_for_a_while, test_denied_and_foreign,
          test_cgroup_changes, test_cpus_change, test_inherited, test_inherited_by_child,
          test_inherited_with_lent_cpu, test_inherited_from_a_node, test_unreadable)
