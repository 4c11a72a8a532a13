/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lifetime of a Topology, and the queries that planning makes. load.c makes one. */

#include "topo/topology.h"

#include "base/parse.h"

Topology *topology_ref(Topology *topology)
{
    assert(topology->n_ref > 0);
    topology->n_ref++;
    return topology;
}

Topology *topology_unref(Topology *topology)
{
    if (!topology)
        return NULL;
    assert(topology->n_ref > 0);
    if (--topology->n_ref > 0)
        return NULL;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        hwloc_bitmap_free(topology->nodes[i].cpus);
    for (uint32_t i = 0; i < topology->n_llcs; i++) {
        hwloc_bitmap_free(topology->llcs[i].cpus);
        hwloc_bitmap_free(topology->llcs[i].nodes);
    }
    hwloc_bitmap_free(topology->all_cpus);
    free(topology->source);
    free(topology->cpus);
    free(topology->nodes);
    free(topology->distances);
    free(topology->llcs);
    free(topology->domains);
    free(topology);
    return NULL;
}

TopologyLevel topology_level(const Topology *topology, CpuIx a, CpuIx b)
{
    const TopologyCpu *x = topology_cpu(topology, a), *y = topology_cpu(topology, b);

    if (!x || !y)
        return TOPOLOGY_LEVEL_INVALID;
    if (a.i == b.i)
        return TOPOLOGY_LEVEL_SAME;
    if (x->core.i == y->core.i)
        return TOPOLOGY_LEVEL_SMT;
    if (x->node.i != y->node.i)
        return TOPOLOGY_LEVEL_MACHINE;
    return x->llc.i == y->llc.i ? TOPOLOGY_LEVEL_LLC : TOPOLOGY_LEVEL_NODE;
}

NodeIx topology_node_by_os(const Topology *topology, uint32_t os_index)
{
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].os_index == os_index)
            return (NodeIx){(int32_t)i};
    return NODE_NONE;
}

int topology_nodes_to_cpus(const Topology *topology, hwloc_const_bitmap_t nodes, hwloc_bitmap_t ret)
{
    CLEANUP_BITMAP hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    int r = cpus ? 0 : -ENOMEM;

    for (uint32_t i = 0; r == 0 && i < topology->n_nodes; i++)
        if (hwloc_bitmap_isset(nodes, i) && hwloc_bitmap_or(cpus, cpus, topology->nodes[i].cpus) < 0)
            r = -ENOMEM;
    if (r == 0 && hwloc_bitmap_copy(ret, cpus) < 0)
        r = -ENOMEM;
    return r;
}

int topology_cpus_to_nodes(const Topology *topology, hwloc_const_bitmap_t cpus, hwloc_bitmap_t ret)
{
    CLEANUP_BITMAP hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    int r = nodes ? 0 : -ENOMEM;

    for (uint32_t i = 0; r == 0 && i < topology->n_nodes; i++)
        if (hwloc_bitmap_intersects(cpus, topology->nodes[i].cpus) && hwloc_bitmap_set(nodes, i) < 0)
            r = -ENOMEM;
    if (r == 0 && hwloc_bitmap_copy(ret, nodes) < 0)
        r = -ENOMEM;
    return r;
}

int topology_add_node_numbers(const Topology *topology, hwloc_const_bitmap_t nodes, hwloc_bitmap_t ret)
{
    for (uint32_t i = 0; nodes && i < topology->n_nodes; i++)
        /* A record read from a file may contain any number. */
        if (hwloc_bitmap_isset(nodes, i) && topology->nodes[i].os_index < PARSE_CPU_MAX &&
            hwloc_bitmap_set(ret, topology->nodes[i].os_index) < 0)
            return -ENOMEM;
    return 0;
}
