/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When residency is measured, of which processes, and with what result. */

#include "probe-test.h"

#include "probe/memory/residency.h"

#include <math.h>

#define KB 1024ULL

static unsigned wants_all(void *userdata, const World *world, const Process *process)
{
    return PROBE_MEMORY_NODES;
}

static unsigned wants_shared(void *userdata, const World *world, const Process *process)
{
    return PROBE_MEMORY_SHARED;
}

static unsigned wants_except(void *userdata, const World *world, const Process *process)
{
    const Bench *b = userdata;

    return process->pid != b->except ? PROBE_MEMORY_NODES : 0;
}

typedef unsigned (*Wants)(void *userdata, const World *world, const Process *process);

static void start(Bench *b, Wants wants, bool aside)
{
    const ProbeOptions options = {.root_fd = b->root_fd, .max_tasks = 1000, .aside = aside};
    const ProbeCallbacks callbacks = {
        .decide = bench_decide, .assign = bench_assign, .wants_memory = wants, .userdata = b};

    b->world = bench_world();
    b->now = 10 * SEC;
    b->decision = PROBE_DECISION_TAKE;
    assert_int_equal(probe_new(&options, &callbacks, &b->probe), 0);
}

static void put_maps(Bench *b, pid_t pid, unsigned n0, unsigned n1)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%d/numa_maps", (int)pid);
    put(b, path, "7f00 default anon=%u N0=%u N1=%u kernelpagesize_kB=4\n", n0 + n1, n0, n1);
}

static void put_node(Bench *b, unsigned node, unsigned free_kb)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "sys/devices/system/node/node%u/meminfo", node);
    put(b, path,
        "Node %u MemTotal: 4194304 kB\nNode %u MemFree: %u kB\nNode %u Inactive(file): 10 kB\n"
        "Node %u Dirty: 4 kB\nNode %u Writeback: 0 kB\n",
        node, node, free_kb, node, node, node);
}

static Bench make(void)
{
    Bench bench = bench_make(), *b = &bench;

    put_process(b, &(FakeTask){.pid = 100});
    put_process(b, &(FakeTask){.pid = 101});
    put_maps(b, 100, 1, 2);
    put_maps(b, 101, 3, 0);
    put_node(b, 0, 100);
    put_node(b, 1, 200);
    return bench;
}

static void test_known_at_once(void **state)
{
    CLEANUP(bench_close) Bench b = make();
    const Process *process;

    start(&b, wants_all, false);
    bench_discover(&b);
    process = bench_process(&b, 100);
    assert_non_null(process->node_bytes);
    assert_int_equal(process->node_bytes[0], 4 * KB);
    assert_int_equal(process->node_bytes[1], 8 * KB);
    assert_int_equal(process->node_bytes_usec, b.now);
    assert_int_equal(bench_process(&b, 101)->node_bytes[0], 12 * KB);
    assert_true(b.world->nodes[1].free_known);
    assert_int_equal(b.world->nodes[0].free_bytes, 106 * KB);
    assert_int_equal(b.world->nodes[1].free_bytes, 206 * KB);
    assert_int_equal(probe_statistics(b.probe)->n_memory_reads, 2);
    assert_true(probe_statistics(b.probe)->memory_cpu_nsec > 0);
}

/* The files of a process whose first thread has ended show no memory; those of another thread do. */
static void test_first_thread_has_ended(void **state)
{
    CLEANUP(bench_close) Bench b = make();

    put(&b, "proc/100/stat",
        "100 (worker) Z 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 1000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n");
    put(&b, "proc/100/numa_maps", "%s", "");
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2});
    put(&b, "proc/100/task/101/cgroup", "0::/app.slice/app.service\n");
    put(&b, "proc/100/task/101/numa_maps", "7f00 default anon=3 N0=1 N1=2 kernelpagesize_kB=4\n");
    take_away(&b, "proc/100/task/100");
    start(&b, wants_all, false);
    bench_discover(&b);
    assert_non_null(bench_process(&b, 100)->node_bytes);
    assert_int_equal(bench_process(&b, 100)->node_bytes[1], 8 * KB);
}

/* At once, then whenever the age has doubled, then every ten seconds. */
static void test_pace(void **state)
{
    static const unsigned at[] = {0, 1, 2, 4, 8, 16, 26, 36, 46};
    CLEANUP(bench_close) Bench b = make();
    size_t n = 0;

    take_away(&b, "proc/101");
    start(&b, wants_all, false);
    for (unsigned second = 0; second < 50; second++) {
        put_maps(&b, 100, second, 0);
        bench_discover(&b);
        if (n < ARRAY_SIZE(at) && second == at[n])
            n++;
        assert_int_equal(probe_statistics(b.probe)->n_memory_reads, n);
        assert_int_equal(bench_process(&b, 100)->node_bytes[0], at[n - 1] * 4 * KB);
    }
    assert_int_equal(n, ARRAY_SIZE(at));
}

/* If no policy wants residency, nothing is read and nothing is known. */
static void test_not_wanted(void **state)
{
    CLEANUP(bench_close) Bench b = make();

    start(&b, NULL, false);
    bench_discover(&b);
    assert_null(bench_process(&b, 100)->node_bytes);
    assert_false(b.world->nodes[0].free_known);
    assert_int_equal(probe_statistics(b.probe)->n_memory_reads, 0);
}

static void test_wanted_no_more(void **state)
{
    CLEANUP(bench_close) Bench b = make();

    start(&b, wants_except, false);
    bench_discover(&b);
    b.except = 100;
    b.except_decision = PROBE_DECISION_TAKE;
    bench_discover(&b);
    assert_null(bench_process(&b, 100)->node_bytes);
    assert_non_null(bench_process(&b, 101)->node_bytes);
    assert_true(b.world->nodes[0].free_known);

    take_away(&b, "proc/101");
    bench_discover(&b);
    assert_false(b.world->nodes[0].free_known);
}

/* Memory that cannot be read is not known, and costs no more than a try every ten seconds. */
static void test_unreadable(void **state)
{
    CLEANUP(bench_close) Bench b = make();
    uint64_t n_reads;

    take_away(&b, "proc/101/numa_maps");
    put(&b, "sys/devices/system/node/node1/meminfo", "Node 1 MemFree: much\n");
    start(&b, wants_all, false);
    bench_discover(&b);
    assert_null(bench_process(&b, 101)->node_bytes);
    assert_true(b.world->nodes[0].free_known);
    assert_false(b.world->nodes[1].free_known);

    put_maps(&b, 101, 1, 1);
    n_reads = probe_statistics(b.probe)->n_memory_reads;
    for (int i = 0; i < 9; i++)
        bench_discover(&b);
    assert_null(bench_process(&b, 101)->node_bytes);
    assert_true(probe_statistics(b.probe)->n_memory_reads > n_reads);
    bench_discover(&b);
    assert_non_null(bench_process(&b, 101)->node_bytes);

    /* Known residency is dropped when it can no longer be read, or makes no sense. */
    put(&b, "proc/100/numa_maps", "nonsense\n");
    for (int i = 0; i < 10; i++)
        bench_discover(&b);
    assert_null(bench_process(&b, 100)->node_bytes);
    assert_true(probe_statistics(b.probe)->n_unparsable > 0);
}

static unsigned wants_again(void *userdata, const World *world, const Process *process)
{
    const Bench *b = userdata;

    return PROBE_MEMORY_NODES | (process->pid == b->except ? PROBE_MEMORY_AGAIN : 0);
}

/* Outdated residency is measured again, due or not. */
static void test_again(void **state)
{
    CLEANUP(bench_close) Bench b = make();

    start(&b, wants_again, false);
    for (int i = 0; i < 20; i++)
        bench_discover(&b);
    put_maps(&b, 100, 7, 0);
    put_maps(&b, 101, 7, 0);
    b.except = 100;
    b.except_decision = PROBE_DECISION_TAKE;
    bench_discover(&b);
    assert_int_equal(bench_process(&b, 100)->node_bytes[0], 28 * KB);
    assert_int_equal(bench_process(&b, 100)->grown_bytes, 16 * KB);
    assert_int_equal(bench_process(&b, 101)->node_bytes[0], 12 * KB);
}

/* Whether the kernel moves memory, and how long tasks wait for memory. */
static void test_memory_of_the_machine(void **state)
{
    CLEANUP(bench_close) Bench b = make();

    start(&b, wants_all, false);
    bench_discover(&b);
    assert_false(b.world->kernel_balances);
    assert_int_equal(b.world->memory_pressure_permille, 0);
    put(&b, "proc/sys/kernel/numa_balancing", "1\n");
    put(&b, "proc/pressure/memory",
        "some avg10=12.34 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    bench_discover(&b);
    assert_true(b.world->kernel_balances);
    assert_int_equal(b.world->memory_pressure_permille, 123);
    put(&b, "proc/sys/kernel/numa_balancing", "2\n"); /* tiering */
    bench_discover(&b);
    assert_false(b.world->kernel_balances);
}

/* The kernel's groups are part of what is shared, as long as it forms any. */
static void test_kernel_groups(void **state)
{
    CLEANUP(bench_close) Bench b = make();
    static const char status[] = "Name:\tx\nNgid:\t%d\nUid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-3\n";

    put(&b, "proc/100/maps", "1000-2000 rw-p 00000000 00:00 0 \n");
    put(&b, "proc/101/maps", "1000-2000 rw-s 00000000 00:01 1024 /memfd:x (deleted)\n");
    put_process(&b, &(FakeTask){.pid = 101, .n_threads = 2});
    put_thread(&b, &(FakeTask){.pid = 101, .tid = 102});
    put(&b, "proc/100/task/100/status", status, 711);
    put(&b, "proc/101/task/101/status", status, 711);
    put(&b, "proc/101/task/102/status", status, 102);
    start(&b, wants_shared, false);
    bench_discover(&b);
    assert_null(bench_process(&b, 100)->shared);
    assert_string_equal(bench_process(&b, 101)->shared, "0:1:1024+");

    put(&b, "proc/sys/kernel/numa_balancing", "1\n");
    for (unsigned i = 0; i < 3; i++)
        bench_discover(&b);
    assert_string_equal(bench_process(&b, 100)->shared, "ngid:711");
    assert_string_equal(bench_process(&b, 101)->shared, "0:1:1024+ ngid:102 ngid:711");

    put(&b, "proc/100/task/100/status", status, 0);
    for (unsigned i = 0; i < 10; i++)
        bench_discover(&b);
    assert_null(bench_process(&b, 100)->shared);
}

/* exec(2): another program has other memory, and waits for it differently. */
static void test_other_program(void **state)
{
    CLEANUP(bench_close) Bench b = make();

    start(&b, wants_all, false);
    for (int i = 0; i < 20; i++)
        bench_discover(&b);
    bench_process(&b, 100)->stall_usec = b.now;
    bench_process(&b, 100)->stall_due_usec = b.now + 10000000;
    bench_process(&b, 100)->stall_permille = bench_process(&b, 100)->ipc_permille = 10;
    bench_process(&b, 100)->traffic_mb = 10;
    bench_discover(&b);
    assert_int_equal(bench_process(&b, 100)->stall_permille, 10);
    put_process(&b, &(FakeTask){.pid = 100, .comm = "other"});
    put_maps(&b, 100, 9, 9);
    bench_discover(&b);
    assert_int_equal(bench_process(&b, 100)->node_bytes[0], 36 * KB);
    assert_int_equal(bench_process(&b, 100)->stall_usec + bench_process(&b, 100)->stall_due_usec, 0);
    assert_int_equal(bench_process(&b, 100)->stall_permille + bench_process(&b, 100)->ipc_permille, 0);
    assert_int_equal(bench_process(&b, 100)->traffic_mb, 0);
}

/* Blocks readers of the residency of process 100 until there is an answer: five pages on node 1. */
static void hang(Bench *b)
{
    take_away(b, "proc/100/numa_maps");
    assert_int_equal(mkfifoat(b->root_fd, "proc/100/numa_maps", 0600), 0);
}

/* Answers. Later reads do not block. */
static void answer(Bench *b)
{
    static const char maps[] = "7f00 default anon=5 N1=5 kernelpagesize_kB=4\n";
    CLEANUP_CLOSE int fifo = openat(b->root_fd, "proc/100/numa_maps", O_WRONLY | O_CLOEXEC);

    assert_int_equal(write(fifo, maps, strlen(maps)), strlen(maps));
    take_away(b, "proc/100/numa_maps");
    put(b, "proc/100/numa_maps", "%s", maps);
}

/* The residency of a blocked process is not known. Others are, and the discovery continues. A late answer is
 * used then. */
static void test_hangs(void **state)
{
    CLEANUP(bench_close) Bench b = make();

    hang(&b);
    start(&b, wants_all, true);
    do {
        (void)usleep(1000);
        bench_discover(&b);
    } while (!bench_process(&b, 101)->node_bytes);
    assert_null(bench_process(&b, 100)->node_bytes);
    assert_true(probe_statistics(b.probe)->n_put_off >= 1);

    answer(&b);
    do {
        (void)usleep(1000);
        bench_discover(&b);
    } while (!bench_process(&b, 100)->node_bytes);
    assert_int_equal(bench_process(&b, 100)->node_bytes[1], 20 * KB);
}

/* A late answer counts from when it was asked for. Until then what was known is kept, but not for long, however long it
 * is from one discovery to the next. */
static void test_late(void **state)
{
    CLEANUP(bench_close) Bench b = make();
    uint64_t asked;

    start(&b, wants_all, true);
    do {
        (void)usleep(1000);
        bench_discover(&b);
    } while (!bench_process(&b, 100)->node_bytes);
    hang(&b);
    b.now += 59 * SEC;
    bench_discover(&b);
    asked = b.now;
    assert_non_null(bench_process(&b, 100)->node_bytes);
    assert_true(bench_process(&b, 100)->node_bytes_usec < asked);
    answer(&b);
    do {
        (void)usleep(1000);
        b.now -= SEC - 1;
        bench_discover(&b);
        assert_non_null(bench_process(&b, 100)->node_bytes);
    } while (bench_process(&b, 100)->node_bytes[1] != 20 * KB);
    assert_int_equal(bench_process(&b, 100)->node_bytes_usec, asked);

    hang(&b);
    b.now += 59 * SEC;
    bench_discover(&b);
    assert_non_null(bench_process(&b, 100)->node_bytes);
    b.now += 59 * SEC;
    bench_discover(&b);
    assert_null(bench_process(&b, 100)->node_bytes);
    answer(&b);
}

/* A new process need not wait for the next discovery; a known one must. */
static void test_catch_up(void **state)
{
    CLEANUP(bench_close) Bench b = make();
    uint64_t n_reads;

    hang(&b);
    start(&b, wants_all, true);
    bench_discover(&b);
    assert_true(bench_process(&b, 100)->memory_awaited);
    answer(&b);
    bench_sample(&b); /* the discovery's own sample */
    assert_true(bench_process(&b, 100)->memory_awaited);
    do {
        (void)usleep(1000);
        bench_sample(&b);
    } while (bench_process(&b, 100)->memory_awaited || bench_process(&b, 101)->memory_awaited);
    assert_int_equal(bench_process(&b, 100)->node_bytes[1], 20 * KB);

    n_reads = probe_statistics(b.probe)->n_memory_reads;
    for (int i = 0; i < 100; i++)
        bench_sample(&b);
    assert_int_equal(probe_statistics(b.probe)->n_memory_reads, n_reads);
}

/* Waits */

static void test_waits(void **state)
{
    double roots = sqrt(1200000) + 100 * sqrt(50);

    assert_int_equal(residency_wait_usec(0, 50, roots), RESIDENCY_YOUNG_USEC);
    assert_int_equal(residency_wait_usec(3 * SEC, 50, roots), 3 * SEC);
    assert_int_equal(residency_wait_usec(3 * SEC, 1200000, roots), 120 * SEC);
    assert_int_equal(residency_wait_usec(60 * SEC, 50, sqrt(50)), RESIDENCY_OLD_USEC);
    /* The example of the header. */
    assert_int_equal(residency_wait_usec(60 * SEC, 1200000, roots) / (60 * SEC), 32);
    assert_int_equal(residency_wait_usec(60 * SEC, 50, roots) / SEC, 12);
    assert_int_equal(residency_wait_usec(60 * SEC, UINT64_MAX, 1e9), 86400 * SEC);
}

/* Whatever the reads cost, all together keep to their share. */
static void test_share(void **state)
{
    uint64_t costs[200], seed = 1;
    double roots = 0, share = 0;

    for (size_t i = 0; i < ARRAY_SIZE(costs); i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        costs[i] = 1 + (seed >> 33) % (1ULL << (seed >> 60));
        roots += sqrt((double)costs[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(costs); i++)
        share += (double)costs[i] / (double)residency_wait_usec(60 * SEC, costs[i], roots);
    assert_true(share < 1.001 / RESIDENCY_SHARE);
}

TEST_MAIN(NULL, NULL, test_known_at_once, test_first_thread_has_ended, test_pace, test_not_wanted,
          test_wanted_no_more, test_unreadable, test_other_program, test_hangs, test_catch_up, test_waits,
          test_share, test_again, test_memory_of_the_machine, test_kernel_groups, test_late)
