/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Other programs that decide about CPUs and memory, in synthetic trees. */

#include "probe-test.h"

#include "probe/neighbours.h"

#include <sys/resource.h>

static Neighbours read_all(Bench *b)
{
    Neighbours found;

    assert_int_equal(neighbours_read(b->root_fd, &found), 0);
    return found;
}

static void test_none(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    Neighbours found;

    /* What the kernel writes when nothing is set. */
    put(&b, "proc/sys/kernel/numa_balancing", "0\n");
    put(&b, "sys/devices/system/cpu/isolated", "\n");
    put(&b, "sys/devices/system/cpu/nohz_full", "(null)\n");
    put(&b, "sys/kernel/sched_ext/state", "disabled\n");
    put(&b, "var/lib/kubelet/cpu_manager_state", "{\"policyName\":\"none\",\"defaultCpuSet\":\"\"}");
    found = read_all(&b);
    for (int i = 0; i < NEIGHBOUR_MAX; i++) {
        assert_false(found.of[i].present);
        assert_true(*neighbour_name((NeighbourKind)i) && *neighbour_text((NeighbourKind)i));
    }
}

static void test_files(void **state)
{
    static const struct {
        NeighbourKind kind;
        const char *path, *text, *detail;
    } rows[] = {
        {NEIGHBOUR_NUMA_BALANCING, "proc/sys/kernel/numa_balancing", "1\n", "1"},
        {NEIGHBOUR_NUMA_BALANCING, "proc/sys/kernel/numa_balancing", "2\n", "2"},
        {NEIGHBOUR_ISOLATED, "sys/devices/system/cpu/isolated", "2-3\n", "2-3"},
        {NEIGHBOUR_NOHZ_FULL, "sys/devices/system/cpu/nohz_full", "1,3\n", "1,3"},
        {NEIGHBOUR_SCHED_EXT, "sys/kernel/sched_ext/state", "enabled\n", ""},
        {NEIGHBOUR_SCHED_CACHE, "sys/kernel/debug/sched/llc_balancing/enabled", "1\n", ""},
        {NEIGHBOUR_PARTITION, "sys/fs/cgroup/cpuset.cpus.effective", "0,2\n", "1,3"},
        {NEIGHBOUR_CPU_MANAGER, "var/lib/kubelet/cpu_manager_state",
         "{\"policyName\":\"static\",\"defaultCpuSet\":\"0-3\"}", "static"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(bench_close) Bench b = bench_make();
        Neighbours found;

        put(&b, rows[i].path, "%s", rows[i].text);
        found = read_all(&b);
        for (int k = 0; k < NEIGHBOUR_MAX; k++)
            assert_int_equal(found.of[k].present, k == (int)rows[i].kind);
        assert_string_equal(found.of[rows[i].kind].detail, rows[i].detail);
    }
}

static void test_name_of_the_scheduler(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put(&b, "sys/kernel/sched_ext/state", "enabled\n");
    put(&b, "sys/kernel/sched_ext/root/ops", "rusty\n");
    assert_string_equal(read_all(&b).of[NEIGHBOUR_SCHED_EXT].detail, "rusty");
}

/* The kernel gathers no processes if no working set is ever small enough. */
static void test_caches(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put(&b, "sys/kernel/debug/sched/llc_balancing/enabled", "1\n");
    put(&b, "sys/kernel/debug/sched/llc_balancing/aggr_tolerance", "1\n");
    assert_string_equal(read_all(&b).of[NEIGHBOUR_SCHED_CACHE].detail, "tolerance 1");
    put(&b, "sys/kernel/debug/sched/llc_balancing/aggr_tolerance", "0\n");
    assert_false(read_all(&b).of[NEIGHBOUR_SCHED_CACHE].present);
    put(&b, "sys/kernel/debug/sched/llc_balancing/aggr_tolerance", "1\n");
    put(&b, "sys/kernel/debug/sched/llc_balancing/enabled", "0\n");
    assert_false(read_all(&b).of[NEIGHBOUR_SCHED_CACHE].present);
}

static void test_daemons(void **state)
{
    static const struct {
        NeighbourKind kind;
        const char *path, *text, *comm;
    } rows[] = {
        {NEIGHBOUR_NUMAD, "run/numad.pid", "812\n", "numad"},
        {NEIGHBOUR_TUNED, "run/tuned/tuned.pid", "812", "tuned"},
        {NEIGHBOUR_IRQBALANCE, "run/irqbalance/irqbalance812.sock", "", "irqbalance"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(bench_close) Bench b = bench_make();

        put(&b, rows[i].path, "%s", rows[i].text);
        /* The PID file outlived the program, and then the PID was reused. */
        assert_false(read_all(&b).of[rows[i].kind].present);
        put(&b, "proc/812/comm", "other\n");
        assert_false(read_all(&b).of[rows[i].kind].present);
        put(&b, "proc/812/comm", "%s\n", rows[i].comm);
        assert_true(read_all(&b).of[rows[i].kind].present);
        assert_string_equal(read_all(&b).of[rows[i].kind].detail, "pid 812");
        /* Any user may have a process with that name and PID. */
        if (geteuid() != 0)
            continue;
        assert_int_equal(fchownat(b.root_fd, "proc/812/comm", 65534, 65534, 0), 0);
        assert_false(read_all(&b).of[rows[i].kind].present);
    }
}

static void test_bad(void **state)
{
    static const char *const pids[] = {"", "\n", "x", "-1", "99999999999999999999", "812 813"};
    CLEANUP(bench_close) Bench b = bench_make();

    put(&b, "proc/812/comm", "numad\n");
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
        put(&b, "run/numad.pid", "%s", pids[i]);
        assert_false(read_all(&b).of[NEIGHBOUR_NUMAD].present);
    }
    put(&b, "run/irqbalance/irqbalance812.sock.old", "%s", "");
    put(&b, "run/irqbalance/irqbalance.sock", "%s", "");
    assert_false(read_all(&b).of[NEIGHBOUR_IRQBALANCE].present);
    put(&b, "sys/fs/cgroup/cpuset.cpus.effective", "banana\n");
    assert_false(read_all(&b).of[NEIGHBOUR_PARTITION].present);
}

static void test_long_list(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    char list[1024] = "1";
    Neighbours found;

    for (int i = 3; i < 400; i += 2)
        (void)snprintf(list + strlen(list), sizeof(list) - strlen(list), ",%d", i);
    put(&b, "sys/devices/system/cpu/isolated", "%s\n", list);
    found = read_all(&b);
    assert_int_equal(strlen(found.of[NEIGHBOUR_ISOLATED].detail), NEIGHBOUR_DETAIL_SIZE - 1);
    assert_string_equal(found.of[NEIGHBOUR_ISOLATED].detail + NEIGHBOUR_DETAIL_SIZE - 4, "...");
    assert_int_equal(strncmp(found.of[NEIGHBOUR_ISOLATED].detail, list, NEIGHBOUR_DETAIL_SIZE - 4), 0);
}

/* A daemon is not gone because there is no descriptor to read its PID file. */
static void test_no_descriptors(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    struct rlimit limit, none;
    Neighbours found;
    int r;

    put(&b, "run/numad.pid", "100\n");
    put(&b, "proc/100/comm", "numad\n");
    assert_true(read_all(&b).of[NEIGHBOUR_NUMAD].present);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    r = neighbours_read(b.root_fd, &found);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(r, -EMFILE);
}

TEST_MAIN(NULL, NULL, test_none, test_files, test_name_of_the_scheduler, test_caches, test_daemons, test_bad,
          test_long_list, test_no_descriptors)
