/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Traffic of nodes between two snapshots, from a tree like that of resctrl. */

#include "../probe/probe-test.h"

#include "ctl-test.h"
#include "ctl/top/traffic.h"

#include <stdlib.h>

static void put_counter(Bench *b, const char *group, unsigned cache, const char *total)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "sys/fs/resctrl/%s/mon_data/mon_L3_%02u/mbm_total_bytes", group,
                   cache);
    put(b, path, "%s\n", total);
}

/* Two nodes of two caches of two CPUs; the operating system's number of the second node is 3. */
static Topology *make_machine(Bench *b)
{
    Topology *topology = test_machine("pack:2 [numa] l3:2 core:2 pu:1");

    topology->nodes[1].os_index = 3;
    for (unsigned cpu = 0; cpu < 8; cpu++) {
        char path[128];

        (void)snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cache/index0/level", cpu);
        put(b, path, "3\n");
        (void)snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cache/index0/id", cpu);
        put(b, path, "%u\n", cpu / 2);
    }
    for (unsigned cache = 0; cache < 4; cache++)
        put_counter(b, ".", cache, "1000");
    return topology;
}

static TopSnapshot *look(TopTraffic *traffic)
{
    TopSnapshot *snapshot = calloc(1, sizeof(*snapshot));

    assert_non_null(snapshot);
    snapshot->n_nodes = 2;
    snapshot->nodes = calloc(2, sizeof(*snapshot->nodes));
    assert_non_null(snapshot->nodes);
    snapshot->nodes[1].number = 3;
    assert_int_equal(traffic_look(traffic, snapshot), 0);
    return snapshot;
}

static void test_by_node(void **state)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *first = NULL, *second = NULL, *third = NULL;
    CLEANUP(traffic_done) TopTraffic traffic = {0};
    Bench b = bench_make();

    traffic = (TopTraffic){.root_fd = b.root_fd, .topology = make_machine(&b)};
    first = look(&traffic);
    assert_false(first->nodes[0].bandwidth_known || first->nodes[1].bandwidth_known);

    put_counter(&b, ".", 0, "5000");
    put_counter(&b, ".", 3, "7000");
    second = look(&traffic);
    assert_true(second->nodes[0].bandwidth_known && second->nodes[1].bandwidth_known);
    assert_in_range(second->nodes[0].bandwidth_bytes * 3, second->nodes[1].bandwidth_bytes * 2 - 3,
                    second->nodes[1].bandwidth_bytes * 2 + 3);
    assert_true(second->nodes[0].bandwidth_bytes > 0);

    put_counter(&b, ".", 1, "Unavailable");
    put_counter(&b, ".", 3, "7001");
    third = look(&traffic);
    assert_false(third->nodes[0].bandwidth_known);
    assert_true(third->nodes[1].bandwidth_known);
    bench_close(&b);
}

static void test_nothing_to_count(void **state)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *first = NULL, *second = NULL, *third = NULL;
    CLEANUP(traffic_done) TopTraffic traffic = {0}, none = {0};
    Bench b = bench_make();

    none.root_fd = b.root_fd;
    first = look(&none); /* not mounted: not even the topology is loaded */
    assert_null(none.topology);
    traffic = (TopTraffic){.root_fd = b.root_fd, .topology = make_machine(&b)};

    /* More groups than are read each second: from now on nothing is read. */
    for (unsigned i = 0; i < 16; i++) {
        char group[16];

        (void)snprintf(group, sizeof(group), "job%u", i);
        put_counter(&b, group, 0, "1");
    }
    second = look(&traffic);
    assert_int_equal(traffic.after.n, 0);
    third = look(&traffic);
    assert_false(third->nodes[1].bandwidth_known);
    bench_close(&b);
}

TEST_MAIN(NULL, NULL, test_by_node, test_nothing_to_count)
