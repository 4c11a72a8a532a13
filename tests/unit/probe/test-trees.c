/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Captured trees: what is found in them, and that an unreadable file affects no other task. */

#include "probe-test.h"

static void test_features(void **state)
{
    static const struct {
        const char *tree;
        ProbeFeatures features;
    } rows[] = {
        {"debian12", {true, 15, true, true, false, true, PROBE_CGROUP_V2, false}},
        {"linux-6.12", {true, 16, true, true, false, true, PROBE_CGROUP_V2, false}},
        {"linux-6.17", {true, 17, true, true, false, true, PROBE_CGROUP_V2, false}},
        {"linux-v14", {true, 14, true, false, false, true, PROBE_CGROUP_V1, true}},
        {"hybrid", {false, 0, true, true, false, false, PROBE_CGROUP_HYBRID, true}},
        {"bare", {false, 0, false, false, false, false, PROBE_CGROUP_NONE, false}},
        {"no-accounting", {false, 0, false, true, false, false, PROBE_CGROUP_V2, false}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(bench_close) Bench b = {.root_fd = -1};
        const ProbeFeatures *f;

        bench_open(&b, rows[i].tree, NULL);
        f = probe_features(b.probe);
        assert_int_equal(f->schedstat, rows[i].features.schedstat);
        assert_int_equal(f->schedstat_version, rows[i].features.schedstat_version);
        assert_int_equal(f->task_schedstat, rows[i].features.task_schedstat);
        assert_int_equal(f->psi, rows[i].features.psi);
        assert_false(f->psi_trigger); /* never tried in a captured tree */
        assert_int_equal(f->numa, rows[i].features.numa);
        assert_int_equal(f->cgroup, rows[i].features.cgroup);
        assert_int_equal(f->cpuset_v1, rows[i].features.cpuset_v1);
    }
}

static void test_processes(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    const Process *p;

    bench_open(&b, "debian12", NULL);
    b.except = 900;
    b.except_decision = PROBE_DECISION_TAKE;
    bench_discover(&b);

    /* The policy is never asked about kernel threads (2, 14). */
    assert_int_equal(b.n_asked, 4);
    assert_int_equal(b.world->n_processes, 4);
    assert_int_equal(b.world->processes[0].pid, 1);
    assert_int_equal(b.world->processes[1].pid, 812);
    assert_int_equal(b.world->processes[2].pid, 900);
    assert_int_equal(b.world->processes[3].pid, 950);

    p = bench_process(&b, 812);
    assert_string_equal(p->comm, "postgres");
    assert_string_equal(p->unit, "postgresql@15-main.service");
    assert_string_equal(p->slice, "system-postgresql.slice");
    assert_int_equal(p->uid, 107);
    assert_int_equal(p->parent, 1);
    assert_int_equal(p->start_ticks, 2100);
    assert_list(p->cpuset, "0-3");

    p = bench_process(&b, 950);
    assert_string_equal(p->cgroup, "/system.slice/confined.service/worker");
    assert_string_equal(p->unit, "confined.service");
    assert_list(p->cpuset, "0-1");
    assert_int_equal(bench_task(&b, 950, 950)->hands, TASK_HANDS_FREE); /* all of its cpuset */

    assert_string_equal(b.last.unit, "app-java.service");
    assert_string_equal(b.last.slice, "app.slice");
    assert_int_equal(b.last.uid, 1000);
    assert_int_equal(b.last.n_threads, 8);
    assert_int_equal(b.last.rss_bytes, 250000 * (uint64_t)sysconf(_SC_PAGESIZE));
    assert_null(b.last.exe);
    assert_null(b.last.command_line);
    assert_null(b.last.environment);
}

static void test_threads(void **state)
{
    static const struct {
        pid_t tid;
        const char *comm;
        TaskClass class;
        TaskHands hands;
        const char *mask;
        int cpu;
    } rows[] = {
        {900, "java", TASK_CLASS_NORMAL, TASK_HANDS_FREE, "0-3", 1},
        {901, "GC Thread#0", TASK_CLASS_NORMAL, TASK_HANDS_FREE, "0-3", 2},
        {902, "pinned", TASK_CLASS_NORMAL, TASK_HANDS_FOREIGN, "1", 1},
        {903, "deadline", TASK_CLASS_DEADLINE, TASK_HANDS_CLASS, "0-3", 3},
        {904, "iou-sqp-900", TASK_CLASS_NORMAL, TASK_HANDS_PER_CPU, "2", 2},
        {905, "rt", TASK_CLASS_REALTIME, TASK_HANDS_FREE, "0-3", 0},
        {906, "batch", TASK_CLASS_NORMAL, TASK_HANDS_FREE, "0-3", 0},
        {907, "idle", TASK_CLASS_IDLE, TASK_HANDS_FREE, "0-3", 0},
    };
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    bench_open(&b, "debian12", NULL);
    bench_discover(&b);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const Task *t = bench_task(&b, 900, rows[i].tid);

        assert_string_equal(t->comm, rows[i].comm);
        assert_int_equal(t->task_class, rows[i].class);
        assert_int_equal(t->hands, rows[i].hands);
        assert_list(t->allowed, rows[i].mask);
        assert_int_equal(t->last_cpu.i, rows[i].cpu);
        assert_int_equal(t->start_ticks, 5000 + (rows[i].tid - 900));
        assert_true(t->fresh);
        assert_null(t->original);
        assert_int_equal(t->lease, -1);
    }

    bench_sample(&b); /* the first reading only */
    assert_true(bench_task(&b, 900, 900)->fresh);
    bench_sample(&b);
    assert_false(bench_task(&b, 900, 900)->fresh);
    assert_int_equal(bench_task(&b, 900, 900)->run_permille, 0);
}

static void test_weird_names(void **state)
{
    static const struct {
        pid_t pid;
        const char *comm;
    } rows[] = {
        {100, "a b"},    {101, "a) R 1 1"},     {102, "new\nline"}, {103, "((())"},
        {104, "grün ☃"}, {105, "cut \xe2\x98"}, {106, ""},          {107, ") S 1 ("},
    };
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    bench_open(&b, "weird", NULL);
    b.except = 102;
    b.except_decision = PROBE_DECISION_TAKE;
    bench_discover(&b);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_string_equal(bench_process(&b, rows[i].pid)->comm, rows[i].comm);
        assert_string_equal(bench_task(&b, rows[i].pid, rows[i].pid)->comm, rows[i].comm);
        assert_int_equal(bench_process(&b, rows[i].pid)->uid, 1000);
    }
    assert_string_equal(b.last.comm, "new\nline");
}

static void test_cut_and_vanished(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    bench_open(&b, "weird", NULL);
    bench_discover(&b);
    assert_null(world_process(b.world, 110)); /* stat is cut */
    assert_null(world_process(b.world, 111)); /* status is cut */
    assert_null(world_process(b.world, 112)); /* cgroup is cut */
    assert_null(world_process(b.world, 120)); /* stat is gone */
    assert_null(world_process(b.world, 121)); /* its threads are gone */
    assert_null(world_process(b.world, 130)); /* a zombie */
    assert_int_equal(probe_statistics(b.probe)->n_unparsable, 3);

    /* Only its first thread has ended. */
    assert_non_null(bench_task(&b, 131, 132));
    /* One of its threads can be read. */
    assert_non_null(bench_task(&b, 122, 122));
    assert_null(world_task_by_tid(b.world, 122, 123));
    assert_null(world_task_by_tid(b.world, 122, 124));

    /* Threads with unreadable times are left alone (I10); the others are as usual. */
    bench_sample(&b);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 113, 113)->hands, TASK_HANDS_UNKNOWN);
    assert_int_equal(bench_task(&b, 113, 114)->hands, TASK_HANDS_UNKNOWN);
    assert_int_equal(bench_task(&b, 113, 115)->hands, TASK_HANDS_UNKNOWN);
    assert_int_equal(bench_task(&b, 113, 116)->hands, TASK_HANDS_FREE);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
}

static void test_hybrid(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    bench_open(&b, "hybrid", NULL);
    bench_discover(&b);
    assert_string_equal(bench_process(&b, 400)->cgroup, "/worker");
    assert_null(bench_process(&b, 400)->unit);
    assert_null(bench_process(&b, 400)->slice);
    assert_list(bench_process(&b, 400)->cpuset, "0-1");
    assert_int_equal(bench_task(&b, 400, 400)->hands, TASK_HANDS_FREE);
    /* A mask with more CPUs than exist. */
    assert_list(bench_task(&b, 401, 401)->allowed, "0-3");
    assert_int_equal(bench_task(&b, 401, 401)->hands, TASK_HANDS_FREE);
}

static void test_v1(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    bench_open(&b, "linux-v14", NULL);
    bench_discover(&b);
    assert_string_equal(bench_process(&b, 300)->cgroup, "/system.slice/batch.service/run");
    assert_string_equal(bench_process(&b, 300)->unit, "batch.service");
    assert_list(bench_process(&b, 300)->cpuset, "2-3");
    assert_int_equal(bench_task(&b, 300, 300)->hands, TASK_HANDS_FREE);
}

/* No control groups, no schedstat, no list of online CPUs: stat is enough. */
static void test_bare(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    bench_open(&b, "bare", NULL);
    bench_discover(&b);
    assert_string_equal(bench_process(&b, 1)->cgroup, "/");
    assert_list(bench_process(&b, 1)->cpuset, "0-3");
    bench_sample(&b);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 1, 1)->hands, TASK_HANDS_FREE);
    assert_false(bench_task(&b, 1, 1)->fresh);
    assert_true(b.world->cpus[0].online);
    assert_false(b.world->partial);
}

static void test_self_is_not_taken(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    bench_open(&b, "debian12", &(ProbeOptions){.self = 812});
    bench_discover(&b);
    assert_int_equal(b.n_asked, 3);
    assert_null(world_process(b.world, 812));
    assert_non_null(world_process(b.world, 900));
}

static void test_max_tasks(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    /* 1, 812 and 950, and three of the eight threads of 900: half of what is left after 1 and 812. */
    bench_open(&b, "debian12", &(ProbeOptions){.max_tasks = 7});
    for (int i = 0; i < 10; i++) {
        bench_discover(&b);
        assert_int_equal(b.world->n_tasks, 6);
        assert_int_equal(probe_statistics(b.probe)->n_over_limit, 5);
    }
}

/* Nothing is concluded from what the files of a process whose first thread has ended no longer show. */
static void test_first_thread_ends(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100, .n_threads = 2});
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2});
    put(&b, "proc/100/cmdline", "prog");
    bench_start(&b, &(ProbeOptions){.wants = PROBE_WANTS_COMMAND_LINE});
    bench_discover(&b);
    put(&b, "proc/100/stat",
        "100 (worker) Z 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 1000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n");
    put(&b, "proc/100/cgroup", "0::/\n");
    put(&b, "proc/100/cmdline", "%s", "");
    for (int i = 0; i < 8; i++)
        bench_discover(&b);
    probe_set_wants(b.probe, PROBE_WANTS_COMMAND_LINE);
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 102});
    take_away(&b, "proc/100/task/101");
    bench_task(&b, 100, 101)->gone = true;
    for (int i = 0; i < 8; i++)
        bench_discover(&b);
    assert_int_equal(b.n_asked, 1);
    assert_string_equal(bench_process(&b, 100)->unit, "app.service");
    assert_int_equal(bench_process(&b, 100)->workload.i, 0);
    (void)bench_task(&b, 100, 102);
}

/* It may have ended before the daemon started. Another thread shows what the process is. */
static void test_first_thread_has_ended(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put(&b, "proc/100/stat",
        "100 (worker) Z 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 1000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n");
    put_status(&b, "proc/100/status", &(FakeTask){0});
    put(&b, "proc/100/cgroup", "0::/\n");
    put(&b, "proc/100/cmdline", "%s", "");
    put(&b, "proc/100/environ", "%s", "");
    put(&b, "proc/100/task/100/stat",
        "100 (worker) Z 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 1000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n");
    put_status(&b, "proc/100/task/100/status", &(FakeTask){0});
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 3});
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 102, .n_threads = 3});
    for (int tid = 101; tid <= 102; tid++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "proc/100/task/%d/cgroup", tid);
        put(&b, path, "0::/app.slice/app.service\n");
        (void)snprintf(path, sizeof(path), "proc/100/task/%d/cmdline", tid);
        put(&b, path, "prog");
        (void)snprintf(path, sizeof(path), "proc/100/task/%d/environ", tid);
        put(&b, path, "A=b");
        (void)snprintf(path, sizeof(path), "proc/100/task/%d/exe", tid);
        assert_int_equal(symlink("/usr/bin/prog", test_path(b.path, path)), 0);
    }
    bench_start(
        &b, &(ProbeOptions){.wants = PROBE_WANTS_EXE | PROBE_WANTS_COMMAND_LINE | PROBE_WANTS_ENVIRONMENT});
    b.except = 100;
    b.except_decision = PROBE_DECISION_TAKE;
    for (int i = 0; i < 9; i++) {
        bench_discover(&b);
        assert_int_equal(b.n_asked_except, 1);
        assert_string_equal(b.last.unit, "app.service");
        assert_string_equal(b.last.exe, "/usr/bin/prog");
        assert_string_equal(b.last.command_line, "prog");
        assert_memory_equal(b.last.environment, "A=b", 3);
        assert_int_not_equal(b.last.rss_bytes, 0);
        assert_string_equal(bench_process(&b, 100)->unit, "app.service");
        assert_int_equal(bench_process(&b, 100)->rss_bytes, b.last.rss_bytes);
        (void)bench_task(&b, 100, 102);
    }
}

static void test_missing_proc(void **state)
{
    CLEANUP_CLOSE int fd = root_open("/dev");
    const ProbeOptions options = {.root_fd = fd, .max_tasks = 10};
    Probe *probe = NULL;

    assert_int_equal(probe_new(&options, &(ProbeCallbacks){0}, &probe), -ENOENT);
    assert_null(probe);
}

TEST_MAIN(NULL, NULL, test_features, test_processes, test_threads, test_weird_names, test_cut_and_vanished,
          test_hybrid, test_v1, test_bare, test_self_is_not_taken, test_max_tasks, test_first_thread_ends,
          test_first_thread_has_ended, test_missing_proc)
