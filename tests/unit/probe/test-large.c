/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A process with more threads than a pass reads: here sixteen at a time, and two of the new ones. */

#include "probe-test.h"

#include <pthread.h>
#include <semaphore.h>

#define BATCH     16U
#define N_THREADS 50U

static const ProbeOptions options = {.batch = BATCH};

static void make(Bench *b, const ProbeOptions *how)
{
    *b = bench_make();
    put_process(b, &(FakeTask){.pid = 50});
    put_process(b, &(FakeTask){.pid = 100, .n_threads = N_THREADS});
    for (pid_t tid = 101; tid < 100 + (pid_t)N_THREADS; tid++)
        put_thread(b, &(FakeTask){.pid = 100, .tid = tid, .n_threads = N_THREADS});
    bench_start(b, how);
}

/* Reads all that is left. Returns the number of steps. */
static size_t go_on(Bench *b)
{
    size_t n = 0;

    while (probe_unfinished(b->probe)) {
        size_t before = b->world->n_tasks;

        assert_int_equal(probe_go_on(b->probe, b->world), 0);
        assert_in_range(b->world->n_tasks - before, 0, BATCH / 8);
        bench_check(b);
        assert_true(++n < 1000);
    }
    return n;
}

static void discover(Bench *b)
{
    bench_discover(b);
    (void)go_on(b);
}

static void test_discovery(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, &options);
    bench_discover(&b);
    assert_int_equal(b.world->n_processes, 2);
    assert_int_equal(b.world->n_tasks, 1); /* that of the other process */
    assert_true(go_on(&b) >= N_THREADS / BATCH + N_THREADS / (BATCH / 8));
    assert_int_equal(b.world->n_tasks, N_THREADS + 1);
    for (pid_t tid = 100; tid < 100 + (pid_t)N_THREADS; tid++)
        (void)bench_task(&b, 100, tid);

    /* Nothing has changed, and nothing is listed. */
    bench_discover(&b);
    assert_false(probe_unfinished(b.probe));
}

/* Threads end and begin between two steps: the next discovery has the right number again. */
static void test_change_between(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, &options);
    bench_discover(&b);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(probe_go_on(b.probe, b.world), 0);
    assert_true(probe_unfinished(b.probe));
    take_away(&b, "proc/100/task/149");
    take_away(&b, "proc/100/task/101");
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 151, .n_threads = N_THREADS - 1});
    put_stat(&b, "proc/100/stat", 100, &(FakeTask){.pid = 100, .n_threads = N_THREADS - 1});
    put_stat(&b, "proc/100/task/100/stat", 100, &(FakeTask){.pid = 100, .n_threads = N_THREADS - 1});
    (void)go_on(&b);
    for (unsigned i = 0; i < 10; i++)
        discover(&b);
    assert_int_equal(b.world->n_tasks, N_THREADS);
    assert_null(world_task_by_tid(b.world, 100, 149));
    assert_null(world_task_by_tid(b.world, 100, 101));
    (void)bench_task(&b, 100, 151);
}

/* The process ends halfway. */
static void test_end_between(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, &options);
    bench_discover(&b);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(probe_go_on(b.probe, b.world), 0);
    take_away(&b, "proc/100");
    bench_discover(&b);
    (void)go_on(&b);
    assert_int_equal(b.world->n_processes, 1);
    assert_int_equal(b.world->n_tasks, 1);
}

/* Two such processes, one after the other. */
static void test_two(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, &options);
    put_process(&b, &(FakeTask){.pid = 200, .n_threads = 10});
    for (pid_t tid = 201; tid < 210; tid++)
        put_thread(&b, &(FakeTask){.pid = 200, .tid = tid, .n_threads = 10});
    for (unsigned i = 0; i < 20; i++)
        discover(&b);
    assert_int_equal(b.world->n_tasks, N_THREADS + 11);
}

/* Exceeding MaxTasks= is reported, and the directory is not read again and again. */
static void test_limit(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    ProbeOptions few = options;

    few.max_tasks = 20;
    make(&b, &few);
    discover(&b);
    assert_int_equal(b.world->n_tasks, 1 + 10); /* half: leaves room for others */
    bench_discover(&b);
    assert_false(probe_unfinished(b.probe));
    assert_int_equal(probe_statistics(b.probe)->n_over_limit, N_THREADS + 1 - 11);
}

static uint64_t reads_of_sample(Bench *b)
{
    uint64_t before = probe_statistics(b->probe)->n_reads;

    bench_sample(b);
    return probe_statistics(b->probe)->n_reads - before;
}

/* A batch in each tick, all in turn; after a discovery also quiet ones. In addition, stat of those that wait. */
static void test_sampling(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    size_t n = (N_THREADS + BATCH) / BATCH;

    make(&b, &options);
    discover(&b);
    for (unsigned i = 0; i < 10 * n; i++)
        assert_in_range(reads_of_sample(&b), 0, BATCH);
    assert_int_equal(probe_statistics(b.probe)->n_quiet, N_THREADS + 1);
    assert_int_equal(reads_of_sample(&b), 0);
    for (size_t i = 0; i < b.world->n_tasks; i++)
        assert_false(b.world->tasks[i].fresh);

    bench_discover(&b);
    put_schedstat(&b, 100, 149, 1000, 0);
    for (size_t i = 0; i < n; i++)
        assert_in_range(reads_of_sample(&b), 0, BATCH);
    assert_true(bench_task(&b, 100, 149)->run_permille > 0);
}

/* Without open descriptors each thread costs more. */
static void test_sampling_unkept(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    ProbeOptions few = options;

    few.max_kept_open = 1;
    make(&b, &few);
    discover(&b);
    for (unsigned i = 0; i < N_THREADS; i++)
        assert_in_range(reads_of_sample(&b), 1, BATCH / 4 + 1);
    for (size_t i = 0; i < b.world->n_tasks; i++)
        assert_false(b.world->tasks[i].fresh);
}

/* The daemon's masks are read in turn. A foreign mask is seen within that many discoveries. */
static void test_masks(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    CpuMask full;

    make(&b, &options);
    discover(&b);
    full = test_mask(b.world->pool, "0-3");
    for (size_t i = 0; i < b.world->n_tasks; i++)
        b.world->tasks[i].original = full;
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 148, .n_threads = N_THREADS, .mask = "1"});
    for (unsigned i = 0; i < (N_THREADS + BATCH) / BATCH; i++)
        bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 148)->hands, TASK_HANDS_REPINNED);
}

/*
 * Threads of this process
 */

#define N_LIVE 1500U /* more than the C library lists at a time */
#define N_STAY 100U
#define SLOWLY 256U
#define STACK  ((size_t)256 << 10)

typedef struct Live {
    pthread_t thread;
    pid_t tid;
    sem_t begun, end;
} Live;

static void *live_main(void *userdata)
{
    Live *live = userdata;

    live->tid = gettid();
    (void)sem_post(&live->begun);
    while (sem_wait(&live->end) < 0)
        ;
    return NULL;
}

/* Returns how many could be started. */
static size_t live_start(Live *live)
{
    pthread_attr_t attr;
    size_t n = 0;

    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
    for (; n < N_LIVE; n++) {
        assert_int_equal(sem_init(&live[n].begun, 0, 0), 0);
        assert_int_equal(sem_init(&live[n].end, 0, 0), 0);
        if (pthread_create(&live[n].thread, &attr, live_main, &live[n]) != 0)
            break;
        while (sem_wait(&live[n].begun) < 0)
            ;
    }
    (void)pthread_attr_destroy(&attr);
    return n;
}

static void live_end(Live *live, size_t first, size_t n)
{
    for (size_t i = first; i < n; i++)
        (void)sem_post(&live[i].end);
    for (size_t i = first; i < n; i++)
        (void)pthread_join(live[i].thread, NULL);
}

static void finish(Bench *b)
{
    while (probe_unfinished(b->probe))
        assert_int_equal(probe_go_on(b->probe, b->world), 0);
}

/* While threads are listed most end, among them the one where the listing was to go on. The others stay. */
static void test_end_while_listed(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = root_open("/")};
    CLEANUP_FREE Live *live = calloc(N_LIVE, sizeof(*live));
    const pid_t self = getpid();
    size_t n;

    assert_non_null(live);
    n = live_start(live);
    if (n < N_LIVE) {
        live_end(live, 0, n);
        skip();
    }
    bench_start(&b, &(ProbeOptions){.live = true, .batch = SLOWLY});
    b.decision = PROBE_DECISION_IGNORE;
    b.except = self;
    b.except_decision = PROBE_DECISION_TAKE;
    bench_discover(&b);
    finish(&b);
    for (size_t i = N_LIVE - N_STAY; i < N_LIVE; i++)
        bench_task(&b, self, live[i].tid)->original = bench_task(&b, self, live[i].tid)->allowed;

    live_end(live, 0, 1);
    for (unsigned i = 0; i < 8 && !probe_unfinished(b.probe); i++)
        bench_discover(&b);
    assert_true(probe_unfinished(b.probe));
    assert_int_equal(probe_go_on(b.probe, b.world), 0);
    live_end(live, 1, N_LIVE - N_STAY);
    finish(&b);
    for (size_t i = N_LIVE - N_STAY; i < N_LIVE; i++) {
        assert_false(bench_task(&b, self, live[i].tid)->gone);
        assert_non_null(bench_task(&b, self, live[i].tid)->original);
    }
    live_end(live, N_LIVE - N_STAY, N_LIVE);
}

TEST_MAIN(NULL, NULL, test_discovery, test_change_between, test_end_between, test_two, test_limit,
          test_sampling, test_sampling_unkept, test_masks, test_end_while_listed)
