/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* resctrl's counters, from trees as machines have them: two caches on a node, groups, missing numbers. */

#include "probe-test.h"

#include "probe/memory/bandwidth.h"

static void put_group(Bench *b, const char *group, unsigned cache, const char *total, const char *local)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "sys/fs/resctrl/%s/mon_data/mon_L3_%02u/mbm_total_bytes", group,
                   cache);
    put(b, path, "%s\n", total);
    (void)snprintf(path, sizeof(path), "sys/fs/resctrl/%s/mon_data/mon_L3_%02u/mbm_local_bytes", group,
                   cache);
    put(b, path, "%s\n", local);
}

static void put_cache(Bench *b, unsigned cpu, unsigned index, unsigned level, unsigned id)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cache/index%u/level", cpu, index);
    put(b, path, "%u\n", level);
    (void)snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cache/index%u/id", cpu, index);
    put(b, path, "%u\n", id);
}

/* Two nodes of two caches of two CPUs: caches 0, 1 and 16, 17. */
static Topology *make_machine(Bench *b)
{
    Topology *topology = test_machine("pack:2 [numa] l3:2 core:2 pu:1");

    for (unsigned cpu = 0; cpu < 8; cpu++) {
        put_cache(b, cpu, 0, 1, 99);
        put_cache(b, cpu, 2, 4, 98);
        put_cache(b, cpu, 1, 3, cpu / 4 * 16 + cpu / 2 % 2);
    }
    return topology;
}

/* Finds the counters anew and reads them. */
static int look(const Bench *b, const Topology *topology, Bandwidth *ret)
{
    int r;

    bandwidth_done(ret);
    r = bandwidth_find(b->root_fd, topology, ret);
    return r < 0 ? r : bandwidth_count(b->root_fd, ret, 4);
}

static void test_domains(void **state)
{
    static const char *const files[] = {"cpus", "cpus_list", "mode", "schemata", "size", "tasks"};
    CLEANUP(bandwidth_done) Bandwidth before = {0}, after = {0}, rate = {0};
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    Bench b = bench_make();

    topology = make_machine(&b);

    /* Not mounted; then mounted, but on a processor that counts something else. */
    assert_int_equal(look(&b, topology, &before), -ENOENT);
    put(&b, "sys/fs/resctrl/mon_data/mon_L3_00/llc_occupancy", "4096\n");
    assert_int_equal(look(&b, topology, &before), -ENOENT);

    put_group(&b, ".", 0, "1000", "800");
    put_group(&b, ".", 1, "Unavailable", "Unavailable");
    put_group(&b, ".", 16, "5000", "5000");
    put_group(&b, ".", 17, "7", "Error");
    /* A control group counts what its monitoring groups count. The root's monitoring groups are not among the
     * control groups. */
    put_group(&b, "jobs", 0, "100", "50");
    put_group(&b, "jobs", 1, "1", "1");
    put_group(&b, "jobs/mon_groups/one", 0, "60", "50");
    put_group(&b, "mon_groups/two", 0, "400", "50");
    put_group(&b, "info", 0, "1", "1");
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "sys/fs/resctrl/%s", files[i]);
        put(&b, path, "0\n");
    }
    assert_int_equal(look(&b, topology, &before), 0);
    assert_int_equal(before.n, 4);
    assert_int_equal(before.domains[0].cache, 0);
    assert_int_equal(before.domains[0].total_bytes, 1100);
    assert_int_equal(before.domains[0].local_bytes, 850);
    assert_int_equal(before.domains[1].n_groups, 0);
    assert_int_equal(before.domains[2].cache, 16);
    assert_true(hwloc_bitmap_isset(topology->llcs[before.domains[2].llc].nodes, 1));
    assert_int_equal(before.domains[3].total_bytes, 7);
    assert_true(bandwidth_local_known(&before.domains[0]) && !bandwidth_local_known(&before.domains[3]) &&
                !bandwidth_local_known(&before.domains[1]));

    /* Half a second later: one domain more, and one with a new group. */
    put_group(&b, ".", 0, "3000", "1800");
    put_group(&b, ".", 1, "9", "9");
    put_group(&b, ".", 16, "9000", "9000");
    put_group(&b, "more", 16, "1", "1");
    put_group(&b, ".", 17, "17", "Error");
    assert_int_equal(look(&b, topology, &after), 0);
    assert_int_equal(bandwidth_rate(&before, &after, 500000, &rate), 0);
    assert_int_equal(rate.n, 2);
    assert_int_equal(rate.domains[0].total_bytes, 4000);
    assert_int_equal(rate.domains[0].local_bytes, 2000);
    assert_int_equal(rate.domains[1].cache, 17);
    assert_int_equal(rate.domains[1].total_bytes, 20);

    /* A counter that restarted; read again where it was found before. */
    assert_int_equal(look(&b, topology, &before), 0);
    put_group(&b, ".", 0, "1", "1");
    assert_int_equal(bandwidth_count(b.root_fd, &after, 4), 0);
    assert_int_equal(bandwidth_rate(&before, &after, 500000, &rate), 0);
    assert_int_equal(rate.n, 3);
    assert_int_equal(rate.domains[0].cache, 1);

    /* More groups than the limit allows. */
    assert_int_equal(bandwidth_count(b.root_fd, &after, 3), 0);
    assert_int_equal(bandwidth_count(b.root_fd, &after, 2), -E2BIG);
    bench_close(&b);
}

/* The sum over all caches of a node, if each belongs to this node alone. */
static void test_of_node(void **state)
{
    BandwidthDomain domains[] = {
        {.cache = 0, .llc = 0, .total_bytes = 5},
        {.cache = 1, .llc = 1, .total_bytes = 6},
        {.cache = 16, .llc = 2, .total_bytes = 70},
    };
    const Bandwidth rate = {.domains = domains, .n = ARRAY_SIZE(domains)};
    CLEANUP(topology_unref_p) Topology *topology = NULL, *shared = NULL;
    uint64_t bytes = 0;
    Bench b = bench_make();

    topology = make_machine(&b);
    assert_true(bandwidth_of_node(&rate, topology, 0, &bytes));
    assert_int_equal(bytes, 11);
    assert_false(bandwidth_of_node(&rate, topology, 1, &bytes)); /* one of its two caches is not known */
    shared = test_machine("pack:1 l3:1 group:2 [numa] core:2 pu:1");
    assert_int_equal(shared->n_llcs, 1);
    assert_int_equal(shared->n_nodes, 2);
    assert_false(bandwidth_of_node(&rate, shared, 0, &bytes));
    bench_close(&b);
}

TEST_MAIN(NULL, NULL, test_domains, test_of_node)
