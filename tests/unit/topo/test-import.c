/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What remains of a machine when this process may use only a part of it. hwloc's own "allow" stands in for a
 * cpuset. */

#include "../cpu-list.h"
#include "topo/build.h"

/* Imports `description` with only `cpus` and `nodes` (lists) allowed. */
static Topology *import_allowed(const char *description, const char *cpus, const char *nodes,
                                bool restrict_to_allowed)
{
    Topology *topology = calloc(1, sizeof(*topology));
    CLEANUP_BITMAP hwloc_bitmap_t cpuset = hwloc_bitmap_alloc(), nodeset = hwloc_bitmap_alloc();
    char *error = NULL;
    hwloc_topology_t hwloc;

    assert_non_null(topology);
    topology->n_ref = 1;
    assert_int_equal(parse_list(cpus, PARSE_CPU_MAX, cpuset), 0);
    assert_int_equal(parse_list(nodes, PARSE_CPU_MAX, nodeset), 0);
    assert_int_equal(hwloc_topology_init(&hwloc), 0);
    assert_int_equal(hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED), 0);
    assert_int_equal(hwloc_topology_set_synthetic(hwloc, description), 0);
    assert_int_equal(hwloc_topology_load(hwloc), 0);
    assert_int_equal(hwloc_topology_allow(hwloc, cpuset, nodeset, HWLOC_ALLOW_FLAG_CUSTOM), 0);
    assert_int_equal(import_hwloc(topology, hwloc, restrict_to_allowed, &error), 0);
    assert_int_equal(build_llc_nodes(topology), 0);
    assert_int_equal(domains_compute(topology), 0);
    assert_int_equal(topology_check(topology), 0);
    hwloc_topology_destroy(hwloc);
    return topology;
}

#define MACHINE "pack:2 [numa(memory=4GiB)] l3:1 core:2 pu:2"

/* CPUs of both nodes, memory of one: the other node has no memory, but its CPUs keep their locality. */
static void test_cpus_without_their_memory(void **state)
{
    CLEANUP(topology_unref_p) Topology *t = import_allowed(MACHINE, "1-5", "0", true);

    assert_true(t->restricted);
    assert_list(t->all_cpus, "1-5");
    assert_int_equal(t->n_nodes, 2);
    assert_list(t->nodes[0].cpus, "1-3");
    assert_list(t->nodes[1].cpus, "4-5");
    assert_int_equal(t->nodes[0].memory_bytes, 4ULL << 30);
    assert_int_equal(t->nodes[1].memory_bytes, 0);
    assert_int_equal(t->n_cores, 3);
    assert_list(t->llcs[0].cpus, "1-3");
}

/* CPUs of one node, memory of both: the other is a node without CPUs. */
static void test_memory_without_its_cpus(void **state)
{
    CLEANUP(topology_unref_p) Topology *t = import_allowed(MACHINE, "4-7", "0-1", true);

    assert_int_equal(t->n_nodes, 2);
    assert_int_equal(t->nodes[0].n_cpus, 0);
    assert_int_equal(t->nodes[0].memory_bytes, 4ULL << 30);
    assert_list(t->nodes[1].cpus, "4-7");
    assert_int_equal(t->n_llcs, 1);
    assert_int_equal(t->n_domains, 1); /* one node with CPUs: nothing to balance between */
}

/* A node of which nothing may be used is missing. The others keep their operating-system numbers. */
static void test_one_node(void **state)
{
    CLEANUP(topology_unref_p) Topology *t = import_allowed(MACHINE, "6", "1", true);

    assert_int_equal(t->n_nodes, 1);
    assert_int_equal(t->nodes[0].os_index, 1);
    assert_list(t->all_cpus, "6");
    assert_true(t->distances_known);
}

static void test_whole_machine(void **state)
{
    CLEANUP(topology_unref_p) Topology *t = import_allowed(MACHINE, "6", "1", false);

    assert_false(t->restricted);
    assert_int_equal(t->n_nodes, 2);
    assert_list(t->all_cpus, "0-7");
    assert_int_equal(t->nodes[0].memory_bytes, 4ULL << 30);
}

/* Without caches a core is its own LLC, even when its first thread may not be used. */
static void test_no_cache(void **state)
{
    CLEANUP(topology_unref_p) Topology *t = import_allowed("numa:1 core:2 pu:3", "1-2,4", "0", true);

    assert_int_equal(t->n_llcs, 2);
    assert_list(t->llcs[0].cpus, "1-2");
    assert_list(t->llcs[1].cpus, "4");
    assert_int_equal(t->cpus[2].core.i, 0);
    assert_int_equal(t->cpus[4].core.i, 1);
}

TEST_MAIN(NULL, NULL, test_cpus_without_their_memory, test_memory_without_its_cpus, test_one_node,
          test_whole_machine, test_no_cache)
