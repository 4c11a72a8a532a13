/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How the daemon counts waiting for memory: this thread, with the real perf_event_open(2), by events that every kernel
 * has. Its CPU time in nanoseconds stands in for cycles and for instructions, by the same clock so that they are alike,
 * and page faults for misses. */

#include "../plan/fixture.h"
#include "base/time.h"
#include "daemon/stall.h"
#include "plan/scan/stall.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static const ProgressEvents software = {
    .type = PERF_TYPE_SOFTWARE,
    .instructions = PERF_COUNT_SW_TASK_CLOCK,
    .cycles = PERF_COUNT_SW_TASK_CLOCK,
    .misses = PERF_COUNT_SW_PAGE_FAULTS,
};

typedef struct Bench {
    Fixture f;
    Manager manager;
} Bench;

static void bench_init(Bench *b, const ProgressEvents *events)
{
    fixture_init(&b->f, TWO_SHARDS);
    fixture_policy(&b->f, "a", "[Placement]\nMode=auto\n");
    fixture_process(&b->f, getpid(), "a", NULL);
    fixture_task(&b->f, getpid(), getpid(), 0);
    world_process(b->f.world, getpid())->cpu_permille = 1000;
    b->manager = (Manager){
        .options = {.root = "/", .counters = events}, .world = b->f.world, .policies = b->f.policies};
    assert_true(sd_event_new(&b->manager.event) >= 0);
    manager_stall_start(&b->manager);
}

static void bench_done(Bench *b)
{
    manager_stall_free(&b->manager);
    (void)sd_event_unref(b->manager.event);
    fixture_done(&b->f);
}

/* Works for that much CPU time, and touches a page now and then. */
static void work(uint64_t nsec)
{
    uint64_t end = time_thread_cpu_nsec() + nsec;

    while (time_thread_cpu_nsec() < end) {
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        assert_true(page != MAP_FAILED);
        *(volatile char *)page = 1;
        assert_int_equal(munmap(page, 4096), 0);
        for (volatile int i = 0; i < 100000; i++)
            ;
    }
}

static void test_counts(void **state)
{
    CLEANUP(bench_done) Bench b;
    const Process *process;

    bench_init(&b, &software);
    process = world_process(b.f.world, getpid());
    if (!b.manager.stall->counting) {
        assert_true(!strcmp(b.manager.stall->why, progress_explain(EACCES)) ||
                    !strcmp(b.manager.stall->why, progress_explain(ENOSYS)));
        skip(); /* a sandbox that forbids it to all */
    }
    manager_stall_begin(&b.manager);
    assert_int_equal(b.manager.stall->n_counted, 1);
    assert_int_equal(counting_n_threads(b.manager.stall->counting), 1);

    /* Not enough yet. Counting does not begin twice. */
    fixture_tick(&b.f);
    manager_stall_take_in(&b.manager);
    manager_stall_begin(&b.manager);
    assert_int_equal(process->stall_usec, 0);
    assert_int_equal(counting_n_threads(b.manager.stall->counting), 1);

    work(STALL_CYCLES + STALL_CYCLES / 4);
    fixture_tick(&b.f);
    manager_stall_take_in(&b.manager);
    assert_int_equal(process->stall_usec, b.f.world->now_usec - 2 * FIXTURE_TICK_USEC);
    assert_in_range(process->stall_permille, 0, 999);
    assert_int_equal(counting_n_threads(b.manager.stall->counting), 0);
    assert_true(b.manager.stall->cpu_nsec > 0);

    /* The PID belongs to another process now. */
    world_process(b.f.world, getpid())->stall_due_usec = 0;
    manager_stall_begin(&b.manager);
    assert_int_equal(b.manager.stall->n_counted, 2);
    world_process(b.f.world, getpid())->start_ticks++;
    fixture_tick(&b.f);
    manager_stall_take_in(&b.manager);
    assert_int_equal(counting_n_threads(b.manager.stall->counting), 0);
}

/* A temporary failure is reported, and counting is tried again in the next turn. */
static void test_no_descriptors(void **state)
{
    CLEANUP(bench_done) Bench b;
    struct rlimit limit, none;

    bench_init(&b, &software);
    if (!b.manager.stall->counting)
        skip();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    manager_stall_begin(&b.manager);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_string_equal(b.manager.stall->why, progress_explain(EMFILE));
    assert_int_equal(b.manager.stall->n_counted, 0);
    fixture_wait(&b.f, 10000000);
    manager_stall_begin(&b.manager);
    assert_null(b.manager.stall->why);
    assert_int_equal(b.manager.stall->n_counted, 1);
}

/* Counting that is impossible or not permitted is reported, and not tried again until the daemon restarts it. */
static void test_not_there(void **state)
{
    static const ProgressEvents none = {.type = PERF_TYPE_SOFTWARE, .instructions = 9999, .cycles = 9999};
    CLEANUP(bench_done) Bench b;

    bench_init(&b, &none);
    assert_null(b.manager.stall->counting);
    if (!strcmp(b.manager.stall->why, progress_explain(EACCES)))
        skip();
    assert_string_equal(b.manager.stall->why, "no hardware counters are available");
    manager_stall_begin(&b.manager);
    manager_stall_take_in(&b.manager);
    assert_int_equal(b.manager.stall->n_counted, 0);
    b.manager.options.counters = &software;
    manager_stall_start(&b.manager);
    if (!b.manager.stall->counting)
        skip();
    assert_null(b.manager.stall->why);
}

TEST_MAIN(NULL, NULL, test_counts, test_no_descriptors, test_not_there)
