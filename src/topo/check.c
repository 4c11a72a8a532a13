/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The invariants of every Topology, whatever it was read from. */

#include "topo/build.h"

#define CHECK(condition)     \
    do {                     \
        if (!(condition))    \
            return -EUCLEAN; \
    } while (0)

/* Cores are numbered in the order of their lowest CPU, without gaps. */
static int check_cpus(const Topology *topology)
{
    uint32_t n = 0, n_cores = 0;

    CHECK(topology->cpu_limit > 0 && topology->cpus[topology->cpu_limit - 1].present);
    CHECK(hwloc_bitmap_last(topology->all_cpus) == (int)topology->cpu_limit - 1);
    for (uint32_t i = 0; i < topology->cpu_limit; i++) {
        const TopologyCpu *cpu = &topology->cpus[i];

        CHECK(cpu->present == hwloc_bitmap_isset(topology->all_cpus, i));
        if (!cpu->present)
            continue;
        n++;
        CHECK(cpu->node.i >= 0 && (uint32_t)cpu->node.i < topology->n_nodes);
        CHECK(cpu->llc.i >= 0 && (uint32_t)cpu->llc.i < topology->n_llcs);
        CHECK(cpu->core.i >= 0 && (uint32_t)cpu->core.i <= n_cores);
        n_cores += (uint32_t)cpu->core.i == n_cores;
        CHECK(hwloc_bitmap_isset(topology->nodes[cpu->node.i].cpus, i));
        CHECK(hwloc_bitmap_isset(topology->llcs[cpu->llc.i].cpus, i));
        CHECK(hwloc_bitmap_isset(topology->llcs[cpu->llc.i].nodes, (unsigned)cpu->node.i));
    }
    CHECK(n == topology->n_cpus && n_cores == topology->n_cores);
    return 0;
}

/* With check_cpus() this proves that the nodes partition the CPUs: each CPU is in its node, and the sum matches. */
static int check_nodes(const Topology *topology)
{
    uint32_t n = 0;

    CHECK(topology->n_nodes > 0);
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        const TopologyNode *node = &topology->nodes[i];

        CHECK(i == 0 || node->os_index > topology->nodes[i - 1].os_index);
        CHECK(hwloc_bitmap_weight(node->cpus) == (int)node->n_cpus);
        CHECK(node->bandwidth_mb <= TOPOLOGY_BANDWIDTH_MAX);
        n += node->n_cpus;
        for (uint32_t j = 0; j < topology->n_nodes; j++) {
            uint32_t d = topology->distances[(size_t)i * topology->n_nodes + j];

            CHECK(i == j ? d == DISTANCE_LOCAL : d >= DISTANCE_LOCAL && d <= DISTANCE_MAX);
        }
    }
    CHECK(n == topology->n_cpus);
    return 0;
}

static int check_llcs(const Topology *topology)
{
    uint32_t n = 0;
    int last = -1;

    for (uint32_t i = 0; i < topology->n_llcs; i++) {
        int first = hwloc_bitmap_first(topology->llcs[i].cpus);

        CHECK(first > last);
        last = first;
        n += (uint32_t)hwloc_bitmap_weight(topology->llcs[i].cpus);
        CHECK(hwloc_bitmap_last(topology->llcs[i].nodes) < (int)topology->n_nodes);
    }
    CHECK(n == topology->n_cpus);
    return 0;
}

static int check_domains(const Topology *topology)
{
    CHECK(topology->n_domains > 0 && !topology->domains[0].numa);
    for (uint32_t i = 0; i < topology->n_domains; i++) {
        const TopologyDomain *d = &topology->domains[i];

        CHECK(d->imb_numa_nr > 0 && d->span > 0 && d->span <= topology->n_cpus);
        CHECK(d->numa == (d->distance > DISTANCE_LOCAL));
        CHECK(i == 0 || (d->span >= d[-1].span && d->distance >= d[-1].distance));
    }
    return 0;
}

int topology_check(const Topology *topology)
{
    CHECK(topology->n_ref > 0);
    CHECK(topology->origin >= 0 && topology->origin < TOPOLOGY_ORIGIN_MAX);
    CHECK((topology->origin == TOPOLOGY_ORIGIN_REHEARSAL) == (topology->rehearsal > 0));
    CHECK(topology->rehearsal == 0 || topology->rehearsal == topology->n_nodes);
    CHECK(check_nodes(topology) == 0);
    CHECK(check_cpus(topology) == 0);
    CHECK(check_llcs(topology) == 0);
    return check_domains(topology);
}
