/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Queries of a Topology, its invariants, and this machine. */

#include "../cpu-list.h"
#include "topo/topology.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static Topology *load(const char *synthetic, uint32_t rehearse)
{
    TopologyOptions options = {.synthetic = synthetic, .rehearse = rehearse};
    Topology *topology = NULL;
    char *error = NULL;

    if (topology_load(&options, &topology, &error) < 0)
        fail_msg("%s", error);
    return topology;
}

static TopologyLevel level(const Topology *topology, int a, int b)
{
    TopologyLevel forth = topology_level(topology, (CpuIx){a}, (CpuIx){b});

    assert_int_equal(topology_level(topology, (CpuIx){b}, (CpuIx){a}), forth);
    return forth;
}

static void test_level(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = load("numa:2 l3:2 core:2 pu:2", 0);

    assert_int_equal(level(topology, 0, 0), TOPOLOGY_LEVEL_SAME);
    assert_int_equal(level(topology, 0, 1), TOPOLOGY_LEVEL_SMT);
    assert_int_equal(level(topology, 1, 2), TOPOLOGY_LEVEL_LLC);
    assert_int_equal(level(topology, 3, 4), TOPOLOGY_LEVEL_NODE);
    assert_int_equal(level(topology, 7, 8), TOPOLOGY_LEVEL_MACHINE);
    assert_int_equal(level(topology, 15, 16), TOPOLOGY_LEVEL_INVALID);
    assert_int_equal(level(topology, -1, 0), TOPOLOGY_LEVEL_INVALID);
}

/* A cache shared by two nodes brings their CPUs no nearer than the machine level. */
static void test_level_cache_over_nodes(void **state)
{
    CLEANUP(topology_unref_p) Topology *snc = load("pack:1 l3:1 numa:2 core:2 pu:1", 0);
    CLEANUP(topology_unref_p) Topology *rehearsal = load("pack:1 l3:1 core:4 pu:1", 2);

    assert_int_equal(level(snc, 0, 1), TOPOLOGY_LEVEL_LLC);
    assert_int_equal(level(snc, 1, 2), TOPOLOGY_LEVEL_MACHINE);
    assert_int_equal(level(rehearsal, 0, 1), TOPOLOGY_LEVEL_LLC);
    assert_int_equal(level(rehearsal, 1, 2), TOPOLOGY_LEVEL_MACHINE);
}

static void test_nodes(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = load("numa:3(indexes=0,8,252) core:2 pu:1", 0);
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(topology_node_by_os(topology, 0).i, 0);
    assert_int_equal(topology_node_by_os(topology, 252).i, 2);
    assert_int_equal(topology_node_by_os(topology, 1).i, -1);

    /* In place, and with an index that is no node: the set is a bitmap of NodeIx and may be full. */
    assert_int_equal(hwloc_bitmap_set(set, 1), 0);
    assert_int_equal(hwloc_bitmap_set_range(set, 2, -1), 0);
    assert_int_equal(topology_nodes_to_cpus(topology, set, set), 0);
    assert_list(set, "2-5");

    assert_int_equal(hwloc_bitmap_only(set, 5), 0);
    assert_int_equal(hwloc_bitmap_set(set, 0), 0);
    assert_int_equal(hwloc_bitmap_set(set, 99), 0);
    assert_int_equal(topology_cpus_to_nodes(topology, set, set), 0);
    assert_list(set, "0,2");
}

static void test_cpu(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = load("numa:2 core:1 pu:2(indexes=0,2,5,9)", 0);

    assert_int_equal(topology->cpu_limit, 10);
    assert_int_equal(topology->n_cpus, 4);
    assert_non_null(topology_cpu(topology, (CpuIx){9}));
    assert_null(topology_cpu(topology, (CpuIx){1}));
    assert_null(topology_cpu(topology, (CpuIx){10}));
    assert_null(topology_cpu(topology, CPU_NONE));
    assert_int_equal(topology_cpu(topology, (CpuIx){5})->node.i, 1);
}

static void test_distance(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = load("numa:2 pu:1 distances=10,21,22,10", 0);

    assert_int_equal(topology_distance(topology, (NodeIx){0}, (NodeIx){1}), 21);
    assert_int_equal(topology_distance(topology, (NodeIx){1}, (NodeIx){0}), 22);
    assert_int_equal(topology_distance(topology, (NodeIx){1}, (NodeIx){1}), 10);
}

static void test_ref(void **state)
{
    Topology *topology = load("pu:1", 0);

    assert_ptr_equal(topology_ref(topology), topology);
    assert_null(topology_unref(topology));
    assert_int_equal(topology->n_ref, 1);
    assert_null(topology_unref(topology));
    assert_null(topology_unref(NULL));
}

/* Siblings stay together, LLCs are distributed one after the other, and no memory is lost. */
static void test_rehearsal(void **state)
{
    CLEANUP(topology_unref_p)
    Topology *topology = load("[numa(memory=1001)] l3:2 core:3 pu:2(indexes=core:pu)", 4);
    uint64_t memory = 0;

    assert_int_equal(topology->origin, TOPOLOGY_ORIGIN_REHEARSAL);
    assert_int_equal(topology->rehearsal, 4);
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        memory += topology->nodes[i].memory_bytes;
    assert_int_equal(memory, 1001);
    for (uint32_t i = 0; i < topology->cpu_limit; i++)
        for (uint32_t j = 0; j < topology->cpu_limit; j++)
            if (topology->cpus[i].core.i == topology->cpus[j].core.i)
                assert_int_equal(topology->cpus[i].node.i, topology->cpus[j].node.i);
    assert_int_equal(hwloc_bitmap_weight(topology->llcs[0].nodes), 2);
    assert_int_equal(hwloc_bitmap_weight(topology->llcs[1].nodes), 2);
}

/* Breaks one field, expects topology_check() to notice, and restores it. */
#define CHECK_NOTICES(topology, field, value)                 \
    do {                                                      \
        __typeof__(field) _saved = (field);                   \
        (field) = (value);                                    \
        assert_int_equal(topology_check(topology), -EUCLEAN); \
        (field) = _saved;                                     \
        assert_int_equal(topology_check(topology), 0);        \
    } while (0)

static void test_check(void **state)
{
    CLEANUP(topology_unref_p) Topology *t = load("numa:2 l3:1 core:2 pu:2", 0);

    assert_int_equal(topology_check(t), 0);
    CHECK_NOTICES(t, t->n_ref, 0);
    CHECK_NOTICES(t, t->origin, TOPOLOGY_ORIGIN_MAX);
    CHECK_NOTICES(t, t->origin, TOPOLOGY_ORIGIN_REHEARSAL);
    CHECK_NOTICES(t, t->rehearsal, 2);
    CHECK_NOTICES(t, t->n_cpus, 7);
    CHECK_NOTICES(t, t->n_cores, 5);
    CHECK_NOTICES(t, t->cpu_limit, 7);
    CHECK_NOTICES(t, t->cpus[3].present, false);
    CHECK_NOTICES(t, t->cpus[3].node.i, 1);
    CHECK_NOTICES(t, t->cpus[3].node.i, 2);
    CHECK_NOTICES(t, t->cpus[3].llc.i, 1);
    CHECK_NOTICES(t, t->cpus[3].llc.i, -1);
    CHECK_NOTICES(t, t->cpus[2].core.i, 3);
    CHECK_NOTICES(t, t->nodes[0].os_index, 1);
    CHECK_NOTICES(t, t->nodes[0].n_cpus, 3);
    CHECK_NOTICES(t, t->distances[0], 11);
    CHECK_NOTICES(t, t->distances[1], 9);
    CHECK_NOTICES(t, t->distances[1], 256);
    CHECK_NOTICES(t, t->domains[0].numa, true);
    CHECK_NOTICES(t, t->domains[1].span, 9);
    CHECK_NOTICES(t, t->domains[1].imb_numa_nr, 0);
    CHECK_NOTICES(t, t->n_domains, 0);
}

/* This machine: the usable part is a subset of the whole, and looking leaves the test's own affinity alone (I11). */
static void test_live(void **state)
{
    CLEANUP(topology_unref_p) Topology *mine = NULL, *whole = NULL;
    cpu_set_t before, after;
    char *error = NULL;

    if (getenv("HWLOC_XMLFILE") || getenv("HWLOC_SYNTHETIC") || getenv("HWLOC_FSROOT"))
        skip();
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    if (topology_load(&(TopologyOptions){0}, &mine, &error) < 0)
        fail_msg("%s", error);
    if (topology_load(&(TopologyOptions){.whole_machine = true}, &whole, &error) < 0)
        fail_msg("%s", error);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&before, &after));

    assert_int_equal(topology_check(mine), 0);
    assert_int_equal(topology_check(whole), 0);
    assert_int_equal(mine->origin, TOPOLOGY_ORIGIN_LIVE);
    assert_string_equal(mine->source, "live");
    assert_true(mine->restricted);
    assert_false(whole->restricted);
    assert_true(hwloc_bitmap_isincluded(mine->all_cpus, whole->all_cpus));
}

/* Without descriptors hwloc makes up a flat machine. That is an error, however many descriptors are left. */
static void test_no_descriptors(void **state)
{
    const TopologyOptions options = {0};
    CLEANUP(topology_unref_p) Topology *whole = NULL;
    CLEANUP_FREE char *expected = NULL;
    struct rlimit limit, few;
    char *error = NULL;
    int r = -1, next;

    if (getenv("HWLOC_XMLFILE") || getenv("HWLOC_SYNTHETIC") || getenv("HWLOC_FSROOT"))
        skip();
    if (topology_load(&options, &whole, &error) < 0)
        fail_msg("%s", error);
    expected = topology_format(whole);
    assert_non_null(expected);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    assert_true(next >= 0);
    (void)close(next);
    few = limit;
    for (few.rlim_cur = (rlim_t)next; r < 0; few.rlim_cur++) {
        CLEANUP(topology_unref_p) Topology *topology = NULL;
        CLEANUP_FREE char *text = NULL;

        assert_true(few.rlim_cur < limit.rlim_cur);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        r = topology_load(&options, &topology, &error);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        if (r < 0) {
            assert_non_null(strstr(error, "descriptor"));
            free(error);
            continue;
        }
        text = topology_format(topology);
        assert_non_null(text);
        assert_string_equal(text, expected);
    }
}

TEST_MAIN(NULL, NULL, test_level, test_level_cache_over_nodes, test_nodes, test_cpu, test_distance, test_ref,
          test_rehearsal, test_check, test_live, test_no_descriptors)
