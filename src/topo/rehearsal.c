/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A rehearsal splits a one-node host into several emulated nodes over its real CPUs, so that placement can be
 * tried, tested and shown anywhere. Cores are assigned in the order of their LLC and lowest CPU, so SMT siblings
 * stay together and an LLC is split only where the numbers require it. Six cores in four nodes: 1, 2, 1, 2. */

#include "topo/build.h"

#include "base/parse.h"

static int compare_cpus(const void *a, const void *b, void *userdata)
{
    const Topology *topology = userdata;
    const int *x = a, *y = b;
    const TopologyCpu *s = &topology->cpus[*x], *t = &topology->cpus[*y];

    if (s->llc.i != t->llc.i)
        return s->llc.i < t->llc.i ? -1 : 1;
    if (s->core.i != t->core.i)
        return s->core.i < t->core.i ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

/* All CPUs in the order they are assigned. NULL when out of memory. */
static int *ordered_cpus(Topology *topology)
{
    int *order = calloc(topology->n_cpus, sizeof(*order));
    uint32_t n = 0;
    int cpu;

    if (!order)
        return NULL;
    hwloc_bitmap_foreach_begin (cpu, topology->all_cpus)
        order[n++] = cpu;
hwloc_bitmap_foreach_end
();
assert(n == topology->n_cpus);
qsort_r(order, n, sizeof(*order), compare_cpus, topology);
return order;
}

static int make_nodes(Topology *topology, uint32_t n)
{
    uint64_t memory = topology->nodes[0].memory_bytes;
    CLEANUP_FREE TopologyNode *nodes = calloc(n, sizeof(*nodes));
    CLEANUP_FREE uint32_t *distances = calloc((size_t)n * n, sizeof(*distances));

    if (!nodes || !distances)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++)
            distances[(size_t)i * n + j] = i == j ? DISTANCE_LOCAL : DISTANCE_REMOTE;
        nodes[i].os_index = i;
        nodes[i].memory_bytes = memory / n + (i < memory % n);
    }

    hwloc_bitmap_free(topology->nodes[0].cpus);
    free(topology->nodes);
    free(topology->distances);
    topology->nodes = TAKE_PTR(nodes);
    topology->distances = TAKE_PTR(distances);
    topology->n_nodes = n;
    for (uint32_t i = 0; i < n; i++) {
        topology->nodes[i].cpus = hwloc_bitmap_alloc();
        if (!topology->nodes[i].cpus)
            return -ENOMEM;
    }
    return 0;
}

int rehearsal_split(Topology *topology, uint32_t n, char **ret_error)
{
    CLEANUP_FREE int *order = NULL;
    uint32_t core = 0, node = 0;
    int r;

    if (n < 2)
        return format_error(ret_error, -EINVAL, "A rehearsal needs at least 2 emulated nodes.");
    if (topology->n_nodes != 1)
        return format_error(ret_error, -EINVAL,
                            "This machine has %u NUMA nodes; a rehearsal is for machines with one.",
                            topology->n_nodes);
    if (n > topology->n_cores)
        return format_error(ret_error, -EINVAL, "A rehearsal of %u nodes needs as many cores; there are %u.",
                            n, topology->n_cores);

    order = ordered_cpus(topology);
    if (!order)
        return -ENOMEM;
    r = make_nodes(topology, n);
    if (r < 0)
        return r;

    for (uint32_t i = 0; i < topology->n_cpus; i++) {
        TopologyCpu *cpu = &topology->cpus[order[i]];

        if (i > 0 && cpu->core.i != topology->cpus[order[i - 1]].core.i)
            core++;
        /* Node k takes the cores from k * n_cores / n on. */
        while (core >= (uint64_t)(node + 1) * topology->n_cores / n)
            node++;
        cpu->node = (NodeIx){(int32_t)node};
        if (hwloc_bitmap_set(topology->nodes[node].cpus, (unsigned)order[i]) < 0)
            return -ENOMEM;
        topology->nodes[node].n_cpus++;
    }
    topology->origin = TOPOLOGY_ORIGIN_REHEARSAL;
    topology->rehearsal = n;
    topology->distances_known = true;
    return 0;
}
