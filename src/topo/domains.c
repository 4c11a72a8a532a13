/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The scheduling domains above the last-level cache, as Linux builds them: one that spans a node, then one for each
 * distinct distance between nodes, which spans every node at most that far away. Nodes without CPUs are ignored.
 *
 * The kernel keeps a chain of domains per CPU; here there is one chain for the machine. Each level has the span of its
 * largest domain, and the base is computed from the node with the most CPUs. On a symmetric machine this is exact. On
 * an asymmetric one the smaller nodes get the larger nodes' allowance.
 *
 * Only the part of an LLC inside the node counts. With sub-NUMA clustering a cache spans several nodes, and the kernel
 * cuts its LLC domain at the node's border. */

#include "base/parse.h"
#include "topo/build.h"
#include "topo/imbalance.h"

static uint32_t node_span(const Topology *topology, uint32_t node, uint32_t distance)
{
    uint32_t span = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->distances[(size_t)node * topology->n_nodes + i] <= distance)
            span += topology->nodes[i].n_cpus;
    return span;
}

static uint32_t largest_span(const Topology *topology, uint32_t distance)
{
    uint32_t span = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].n_cpus > 0)
            span = MAX(span, node_span(topology, i, distance));
    return span;
}

/* CPUs of the largest LLC of `node`, cut at the node's border. */
static int llc_span(const Topology *topology, const TopologyNode *node, uint32_t *ret)
{
    CLEANUP_BITMAP hwloc_bitmap_t cut = hwloc_bitmap_alloc();
    uint32_t span = 0;

    if (!cut)
        return -ENOMEM;
    for (uint32_t i = 0; i < topology->n_llcs; i++) {
        if (hwloc_bitmap_and(cut, topology->llcs[i].cpus, node->cpus) < 0)
            return -ENOMEM;
        span = MAX(span, (uint32_t)hwloc_bitmap_weight(cut));
    }
    *ret = span;
    return 0;
}

/* Marks the distances between different nodes with CPUs. Returns their number. */
static uint32_t mark_levels(const Topology *topology, bool level[DISTANCE_MAX + 1])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        for (uint32_t j = 0; j < topology->n_nodes; j++) {
            uint32_t d = topology->distances[(size_t)i * topology->n_nodes + j];

            if (i == j || topology->nodes[i].n_cpus == 0 || topology->nodes[j].n_cpus == 0 || level[d])
                continue;
            level[d] = true;
            n++;
        }
    return n;
}

int domains_compute(Topology *topology)
{
    bool level[DISTANCE_MAX + 1] = {false};
    const TopologyNode *largest = &topology->nodes[0];
    uint32_t n_levels = mark_levels(topology, level);
    uint32_t base, span, first_numa_span = 0;
    TopologyDomain *d;
    int r;

    for (uint32_t i = 1; i < topology->n_nodes; i++)
        if (topology->nodes[i].n_cpus > largest->n_cpus)
            largest = &topology->nodes[i];
    r = llc_span(topology, largest, &span);
    if (r < 0)
        return r;
    base = imbalance_base(largest->n_cpus, span);

    d = calloc(n_levels + 1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    topology->domains = d;
    *d++ = (TopologyDomain){.distance = DISTANCE_LOCAL, .span = largest->n_cpus, .imb_numa_nr = base};
    for (uint32_t distance = DISTANCE_LOCAL; distance <= DISTANCE_MAX; distance++) {
        if (!level[distance])
            continue;
        span = largest_span(topology, distance);
        /* Nodes at distance 10 from each other (numa=fake) form a domain that is not NUMA. */
        if (distance > DISTANCE_LOCAL && !first_numa_span)
            first_numa_span = span;
        *d++ = (TopologyDomain){
            .numa = distance > DISTANCE_LOCAL,
            .distance = distance,
            .span = span,
            .imb_numa_nr = imbalance_scaled(base, span, first_numa_span),
        };
    }
    topology->n_domains = n_levels + 1;
    return 0;
}
