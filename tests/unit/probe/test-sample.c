/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Loads over several ticks, in synthetic trees. */

#include "base/time.h"
#include "probe-test.h"

#include <sched.h>
#include <time.h>

static void make(Bench *b, const ProbeOptions *options)
{
    *b = bench_make();
    put_process(b, &(FakeTask){.pid = 100, .n_threads = 2});
    put_thread(b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2, .cpu = 1});
    bench_start(b, options);
    bench_discover(b);
}

static void test_task_loads(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    const Task *t;

    make(&b, NULL);
    put_schedstat(&b, 100, 100, 5000, 300);
    bench_sample(&b); /* a single reading tells nothing */
    assert_true(bench_task(&b, 100, 100)->fresh);
    assert_int_equal(bench_task(&b, 100, 100)->run_permille, 0);
    assert_int_equal(b.world->tick, 1);
    assert_int_equal(b.world->interval_usec, 0);

    put_schedstat(&b, 100, 100, 5070, 325);
    bench_sample(&b);
    t = bench_task(&b, 100, 100);
    assert_false(t->fresh);
    assert_int_equal(t->run_permille, 700);
    assert_int_equal(t->wait_permille, 250);
    assert_int_equal(b.world->tick, 2);
    assert_int_equal(b.world->interval_usec, TICK);
    assert_int_equal(b.world->now_usec, b.now);

    put_schedstat(&b, 100, 100, 5080, 325);
    bench_sample(&b);
    t = bench_task(&b, 100, 100);
    assert_int_equal(t->run_permille, 100);
    assert_int_equal(t->run_before_permille, 700);
    assert_int_equal(t->wait_permille, 0);
    assert_int_equal(t->wait_before_permille, 250);
    assert_int_equal(b.world->groups[0].run_permille, 100);
}

/* A suspended machine: counters may have continued while the clock did not, or the other way round in a virtual
 * machine that was stopped. One tick shows no more than a CPU can do, and the next one is right again. */
static void test_suspended(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    const Task *t;

    make(&b, NULL);
    put_schedstat(&b, 100, 100, 5000, 300);
    bench_sample(&b);
    put_schedstat(&b, 100, 100, 25070, 20325); /* twenty seconds in a tick of 100 ms */
    put_cpus(&b, 1010, 1000, 1010, 1010);
    bench_sample(&b);
    t = bench_task(&b, 100, 100);
    assert_int_equal(t->run_permille, 1000);
    assert_int_equal(t->wait_permille, 1000);
    assert_int_equal(b.world->cpus[0].busy_permille, 0);

    b.now += 3600 * USEC_PER_SEC;
    put_schedstat(&b, 100, 100, 25140, 20350);
    put_cpus(&b, 1010, 1000, 1010, 1010);
    bench_sample(&b);
    t = bench_task(&b, 100, 100);
    assert_int_equal(t->run_permille, 0);
    assert_int_equal(t->wait_permille, 0);

    put_schedstat(&b, 100, 100, 25210, 20375);
    bench_sample(&b);
    t = bench_task(&b, 100, 100);
    assert_int_equal(t->run_permille, 700);
    assert_int_equal(t->wait_permille, 250);
}

/* While readings fail, the thread is not eligible. What returns afterwards is what was there before (I10). */
static void test_failed_reading(void **state)
{
    static const char *const bad[] = {"garbage\n", "", "123", "1 2\n"};
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, NULL);
    bench_sample(&b);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        put(&b, "proc/100/task/101/schedstat", "%s", bad[i]);
        bench_sample(&b);
        bench_sample(&b);
        assert_int_equal(bench_task(&b, 100, 101)->hands, TASK_HANDS_UNKNOWN);
        assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
        put_schedstat(&b, 100, 101, 10, 10);
        bench_sample(&b);
        assert_int_equal(bench_task(&b, 100, 101)->hands, TASK_HANDS_FREE);
    }

    /* Counters that go back belong to another thread: this is not a load, and the thread is not eligible
     * until they make sense. */
    put_schedstat(&b, 100, 101, 5, 5);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 101)->hands, TASK_HANDS_UNKNOWN);
    assert_int_equal(bench_task(&b, 100, 101)->run_permille, 0);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 101)->hands, TASK_HANDS_FREE);
}

static void test_cpu_busy_from_stat(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, NULL);
    bench_sample(&b);
    put_cpus(&b, 1010, 1000, 1005, 1010); /* idle, busy, half, idle */
    bench_sample(&b);
    put_cpus(&b, 1020, 1000, 1010, 1020);
    bench_sample(&b);
    assert_int_equal(b.world->cpus[0].busy_permille, 0);
    assert_int_equal(b.world->cpus[1].busy_permille, 1000);
    assert_int_equal(b.world->cpus[2].busy_permille, 500);
    assert_int_equal(b.world->cpus[0].idle_since_usec, b.now - 2 * TICK);
    assert_int_equal(b.world->cpus[1].idle_since_usec, 0);
}

/* CPU time of this thread. */
static uint64_t own_usec(void)
{
    struct timespec ran;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran), 0);
    return (uint64_t)ran.tv_sec * USEC_PER_SEC + (uint64_t)ran.tv_nsec / NSEC_PER_USEC;
}

/* What the daemon itself runs does not make a CPU busy. */
static void test_own_time_is_not_busy(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    cpu_set_t before, one;
    int cpu = 0;

    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    while (cpu < 4 && !CPU_ISSET(cpu, &before))
        cpu++;
    if (cpu == 4)
        skip(); /* the CPUs this test may use are not those of the captured machine */
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);

    make(&b, &(ProbeOptions){.live = true});
    bench_sample(&b);
    for (uint64_t until = own_usec() + TICK; own_usec() < until;)
        ;
    put_cpus(&b, 1000, 1000, 1000, 1000); /* all busy */
    bench_sample(&b);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    for (int i = 0; i < 4; i++)
        assert_in_range(b.world->cpus[i].busy_permille, i == cpu ? 0 : 800, i == cpu ? 0 : 1000);
}

static void put_cpu_schedstat(Bench *b, uint64_t run_msec, uint64_t wait_msec)
{
    put(b, "proc/schedstat", "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 %llu000000 %llu000000 1\n",
        (unsigned long long)run_msec, (unsigned long long)wait_msec);
}

/* Nanoseconds where they are right. A lone spinner, which never leaves its CPU, is not taken for idle. */
static void test_cpu_busy_from_both(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_cpu_schedstat(&b, 1000, 50);
    bench_start(&b, NULL);
    bench_discover(&b);
    bench_sample(&b);

    put_cpus(&b, 1006, 1010, 1010, 1010);
    put_cpu_schedstat(&b, 1037, 80);
    bench_sample(&b);
    assert_int_equal(b.world->cpus[0].busy_permille, 370);
    assert_int_equal(b.world->cpus[0].wait_permille, 300);
    assert_true(b.world->cpus[0].wait_known);
    assert_false(b.world->cpus[1].wait_known);

    put_cpu_schedstat(&b, 1037, 80); /* nothing was added, but it was never idle */
    bench_sample(&b);
    bench_sample(&b);
    assert_in_range(b.world->cpus[0].busy_permille, 900, 1000);
    assert_int_equal(b.world->cpus[0].wait_permille, 0);

    put_cpus(&b, 1016, 1010, 1010, 1010);
    put_cpu_schedstat(&b, 1337, 80); /* its time is added all at once, when the CPU is idle again */
    bench_sample(&b);
    assert_in_range(b.world->cpus[0].busy_permille, 0, 200);
}

static void test_cpu_times_unreadable(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, NULL);
    bench_sample(&b);
    put(&b, "proc/stat", "nothing here\n");
    b.now += TICK;
    assert_int_equal(probe_sample(b.probe, b.world, b.now), -EINVAL);
    assert_true(b.world->partial);
    put_cpus(&b, 1020, 1020, 1020, 1020);
    bench_sample(&b);
    assert_false(b.world->partial);
}

/* Without /proc/schedstat, waiting for a CPU is computed from the threads last seen on it. */
static void test_wait_of_threads(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, NULL);
    bench_sample(&b);
    /* Both wait, and one has moved to CPU 2 since it was discovered on CPU 1. */
    put_schedstat(&b, 100, 100, 50, 50);
    put_schedstat(&b, 100, 101, 30, 30);
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2, .cpu = 2});
    put_schedstat(&b, 100, 101, 30, 30);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 100)->last_cpu.i, 0);
    assert_int_equal(bench_task(&b, 100, 101)->last_cpu.i, 2);
    assert_true(b.world->cpus[0].wait_known);
    assert_int_equal(b.world->cpus[0].wait_permille, 500);
    assert_false(b.world->cpus[1].wait_known);
    assert_true(b.world->cpus[2].wait_known);
    assert_int_equal(b.world->cpus[2].wait_permille, 300);
    assert_false(b.world->cpus[3].wait_known);
}

/* A thread that does not wait keeps the CPU it was last seen on. */
static void test_last_cpu_is_not_read_for_nothing(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    uint64_t n_reads;

    make(&b, NULL);
    bench_sample(&b);
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2, .cpu = 3});
    put_schedstat(&b, 100, 100, 50, 0);
    put_schedstat(&b, 100, 101, 50, 4); /* 40 permille */
    n_reads = probe_statistics(b.probe)->n_reads;
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 101)->last_cpu.i, 1);
    assert_int_equal(probe_statistics(b.probe)->n_reads - n_reads, 2);
}

/* Once after a full discovery, the CPU of a running thread is read: how much of its memory is local depends on it. */
static void test_last_cpu_of_runners(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, NULL);
    bench_sample(&b);
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2, .cpu = 3});
    put_schedstat(&b, 100, 101, 50, 0);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 101)->last_cpu.i, 1);
    bench_discover(&b);
    put_schedstat(&b, 100, 101, 200, 0);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 101)->last_cpu.i, 3);

    /* Not for a sleeping thread. */
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2, .cpu = 2});
    put_schedstat(&b, 100, 101, 202, 0);
    bench_discover(&b);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 101)->last_cpu.i, 3);
}

/* Nor for a waiting thread when all CPUs are busy: nothing can be lent. */
static void test_last_cpu_is_not_read_on_a_full_machine(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    uint64_t n_reads;

    put_cpu_schedstat(&b, 1000, 0);
    put_process(&b, &(FakeTask){.pid = 100, .n_threads = 2});
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2, .cpu = 1});
    bench_start(&b, NULL);
    bench_discover(&b);
    bench_sample(&b);
    put_schedstat(&b, 100, 100, 50, 50);
    put_schedstat(&b, 100, 101, 50, 50);
    n_reads = probe_statistics(b.probe)->n_reads;
    bench_sample(&b); /* no CPU has been idle since */
    assert_int_equal(probe_statistics(b.probe)->n_reads - n_reads, 2);

    put_cpus(&b, 1008, 1000, 1000, 1000);
    put_schedstat(&b, 100, 100, 100, 100);
    put_schedstat(&b, 100, 101, 100, 100);
    n_reads = probe_statistics(b.probe)->n_reads;
    bench_sample(&b); /* one was, for four fifths of the tick */
    assert_int_equal(probe_statistics(b.probe)->n_reads - n_reads, 4);
}

/* Reading stat for this shows that the TID belongs to another thread now. */
static void test_tid_is_reused(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, NULL);
    bench_sample(&b);
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2, .cpu = 3, .start = 7});
    put_schedstat(&b, 100, 101, 50, 50);
    bench_sample(&b);
    assert_true(bench_task(&b, 100, 101)->gone);
    assert_int_equal(bench_task(&b, 100, 101)->last_cpu.i, 1);
    assert_false(bench_task(&b, 100, 100)->gone);
}

static void sleep_ticks(Bench *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        bench_sample(b);
}

static void test_quiet(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};
    uint64_t n_reads;

    make(&b, NULL);
    put_schedstat(&b, 100, 100, 10, 0);
    bench_sample(&b);
    put_schedstat(&b, 100, 100, 90, 0);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 100)->run_permille, 800);
    sleep_ticks(&b, 8);
    assert_int_equal(probe_statistics(b.probe)->n_quiet, 1); /* 101 never ran at all */

    n_reads = probe_statistics(b.probe)->n_reads;
    put_schedstat(&b, 100, 100, 190, 0);
    bench_sample(&b);
    assert_int_equal(probe_statistics(b.probe)->n_quiet, 2);
    assert_int_equal(probe_statistics(b.probe)->n_reads, n_reads);
    assert_int_equal(bench_task(&b, 100, 100)->run_permille, 0);
    assert_int_equal(bench_task(&b, 100, 100)->run_ewma_permille, 0);

    /* A discovery makes it due. Its load is over the whole time since its last reading, 1.2 s. */
    bench_discover(&b);
    bench_sample(&b);
    assert_int_equal(probe_statistics(b.probe)->n_quiet, 0);
    assert_int_equal(bench_task(&b, 100, 100)->run_permille, 100 * 1000 / 1200);
    bench_sample(&b);
    assert_int_equal(probe_statistics(b.probe)->n_quiet, 1);
}

/* A sleeping thread is watched in every tick while a CPU of its home is lent. */
static void test_quiet_owner_is_watched(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    Group *owner;

    put_process(&b, &(FakeTask){.pid = 100});
    put_process(&b, &(FakeTask){.pid = 200});
    bench_start(&b, NULL);
    bench_discover(&b);
    sleep_ticks(&b, 10);
    assert_int_equal(probe_statistics(b.probe)->n_quiet, 2);

    owner = &b.world->groups[bench_process(&b, 200)->group.i];
    owner->home = test_mask(b.world->pool, "2-3");
    owner->home_nodes = test_mask(b.world->pool, "1");
    assert_int_equal(
        world_add_lease(b.world, &(Lease){.task = {.pid = 100, .tid = 100, .start_ticks = 1000},
                                          .group_id = b.world->groups[bench_process(&b, 100)->group.i].id,
                                          .cpu = {2},
                                          .until_usec = UINT64_MAX}),
        0);
    bench_task(&b, 100, 100)->original = bench_task(&b, 100, 100)->allowed;

    put_schedstat(&b, 200, 200, 40, 40);
    bench_sample(&b);
    bench_sample(&b);
    assert_int_equal(probe_statistics(b.probe)->n_quiet, 1);
    put_schedstat(&b, 200, 200, 80, 90);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 200, 200)->run_permille, 400);
    assert_int_equal(bench_task(&b, 200, 200)->wait_permille, 500);
}

static void test_descriptor_limit(void **state)
{
    CLEANUP(bench_close) Bench b = {.root_fd = -1};

    make(&b, &(ProbeOptions){.max_kept_open = 1});
    bench_sample(&b);
    assert_int_equal(probe_statistics(b.probe)->n_kept_open, 1);
    put_schedstat(&b, 100, 100, 50, 0);
    put_schedstat(&b, 100, 101, 60, 0);
    bench_sample(&b);
    assert_int_equal(bench_task(&b, 100, 100)->run_permille, 500);
    assert_int_equal(bench_task(&b, 100, 101)->run_permille, 600);

    /* A thread whose file is opened each time is seen to be gone. */
    take_away(&b, "proc/100/task/101");
    bench_sample(&b);
    assert_true(bench_task(&b, 100, 101)->gone);
    assert_false(bench_task(&b, 100, 100)->gone);
    assert_int_equal(probe_statistics(b.probe)->n_gone, 1);

    /* A place that becomes free is used. */
    put_process(&b, &(FakeTask){.pid = 300});
    take_away(&b, "proc/100");
    bench_discover(&b);
    assert_int_equal(b.world->n_tasks, 1);
    bench_sample(&b);
    assert_int_equal(probe_statistics(b.probe)->n_kept_open, 1);
}

TEST_MAIN(NULL, NULL, test_task_loads, test_suspended, test_failed_reading, test_cpu_busy_from_stat,
          test_own_time_is_not_busy, test_cpu_busy_from_both, test_cpu_times_unreadable, test_wait_of_threads,
          test_last_cpu_is_not_read_for_nothing, test_last_cpu_of_runners,
          test_last_cpu_is_not_read_on_a_full_machine, test_tid_is_reused, test_quiet,
          test_quiet_owner_is_watched, test_descriptor_limit)
