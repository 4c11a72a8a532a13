/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The text form of a Topology. Nodes have their operating-system numbers, as in all output for users. The
 * source (a path) is left out, so that the same machine always gives the same bytes.
 *
 * Two thousand cores would take two thousand lines, so consecutive cores with a regular pattern share one.
 * For example, "cores 0-39: first CPU 0, next +1, threads +0 +40" means that core 7 has CPUs 7 and 47. */

#include "topo/topology.h"

#include "base/human.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>

const char *const topology_origin_names[] = {
    [TOPOLOGY_ORIGIN_LIVE] = "live",
    [TOPOLOGY_ORIGIN_XML] = "xml",
    [TOPOLOGY_ORIGIN_SYNTHETIC] = "synthetic",
    [TOPOLOGY_ORIGIN_REHEARSAL] = "rehearsal",
    [TOPOLOGY_ORIGIN_MAX] = NULL,
};
_Static_assert(ARRAY_SIZE(topology_origin_names) == TOPOLOGY_ORIGIN_MAX + 1, "name every origin");

static int print_list(FILE *f, hwloc_const_bitmap_t set)
{
    CLEANUP_FREE char *list = format_list(set, PARSE_CPU_MAX);

    if (!list)
        return -ENOMEM;
    (void)fprintf(f, "%s", *list ? list : "none");
    return 0;
}

static int print_nodes(FILE *f, const Topology *topology)
{
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        const TopologyNode *node = &topology->nodes[i];

        (void)fprintf(f, "node %u: %u %s, memory %" PRIu64 " MiB, CPUs ", node->os_index, node->n_cpus,
                      human_noun(node->n_cpus, "CPU", "CPUs"), node->memory_bytes >> 20);
        if (print_list(f, node->cpus) < 0)
            return -ENOMEM;
        if (node->bandwidth_mb > 0)
            (void)fprintf(f, ", bandwidth %u MB/s", node->bandwidth_mb);
        (void)fprintf(f, "\n");
    }
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        (void)fprintf(f, "distance %u:", topology->nodes[i].os_index);
        for (uint32_t j = 0; j < topology->n_nodes; j++)
            (void)fprintf(f, " %u", topology->distances[(size_t)i * topology->n_nodes + j]);
        (void)fprintf(f, "\n");
    }
    return 0;
}

static int print_llcs(FILE *f, const Topology *topology)
{
    for (uint32_t i = 0; i < topology->n_llcs; i++) {
        const TopologyLlc *llc = &topology->llcs[i];
        int n_cpus = hwloc_bitmap_weight(llc->cpus);
        unsigned node;

        (void)fprintf(f, "llc %u: %d %s, nodes", i, n_cpus, human_noun((uint64_t)n_cpus, "CPU", "CPUs"));
        hwloc_bitmap_foreach_begin (node, llc->nodes)
            (void)fprintf(f, " %u", topology->nodes[node].os_index);
hwloc_bitmap_foreach_end
();
(void)fprintf(f, ", CPUs ");
if (print_list(f, llc->cpus) < 0)
    return -ENOMEM;
(void)fprintf(f, "\n");
}
return 0;
}

/* CPUs sorted by core, and the position of each core's first CPU. */
typedef struct CoreTable {
    uint32_t *cpus;
    uint32_t *start; /* [n_cores + 1] */
} CoreTable;

static int core_table_init(CoreTable *table, const Topology *topology)
{
    uint32_t *next;

    table->cpus = calloc(topology->n_cpus, sizeof(*table->cpus));
    table->start = calloc((size_t)topology->n_cores + 1, sizeof(*table->start));
    if (!table->cpus || !table->start)
        return -ENOMEM;

    /* Counting sort. next[c] is where core c's next CPU goes; once all CPUs are placed, it is the start of
     * core c + 1. */
    next = table->start + 1;
    for (uint32_t i = 0; i < topology->cpu_limit; i++)
        if (topology->cpus[i].present && topology->cpus[i].core.i + 1 < (int32_t)topology->n_cores)
            next[topology->cpus[i].core.i + 1]++;
    for (uint32_t i = 1; i < topology->n_cores; i++)
        next[i] += next[i - 1];
    for (uint32_t i = 0; i < topology->cpu_limit; i++)
        if (topology->cpus[i].present)
            table->cpus[next[topology->cpus[i].core.i]++] = i;
    return 0;
}

static bool same_threads(const CoreTable *table, uint32_t a, uint32_t b)
{
    const uint32_t *x = table->cpus + table->start[a], *y = table->cpus + table->start[b];
    uint32_t n = table->start[a + 1] - table->start[a];

    if (table->start[b + 1] - table->start[b] != n)
        return false;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] - x[0] != y[i] - y[0])
            return false;
    return true;
}

static void print_cores(FILE *f, const CoreTable *table, uint32_t n_cores)
{
    const uint32_t *cpus = table->cpus, *start = table->start;
    uint32_t end;

    for (uint32_t first = 0; first < n_cores; first = end) {
        uint32_t step = first + 1 < n_cores ? cpus[start[first + 1]] - cpus[start[first]] : 0;

        for (end = first + 1; end < n_cores && same_threads(table, first, end) &&
                              cpus[start[end]] - cpus[start[end - 1]] == step;)
            end++;
        if (end == first + 1)
            (void)fprintf(f, "core %u: first CPU %u, threads", first, cpus[start[first]]);
        else
            (void)fprintf(f, "cores %u-%u: first CPU %u, next +%u, threads", first, end - 1,
                          cpus[start[first]], step);
        for (uint32_t i = start[first]; i < start[first + 1]; i++)
            (void)fprintf(f, " +%u", cpus[i] - cpus[start[first]]);
        (void)fprintf(f, "\n");
    }
}

static int print_all(FILE *f, const void *object)
{
    const Topology *topology = object;
    CoreTable table = {NULL};
    int r;

    (void)fprintf(f, "origin: %s\n", topology_origin_names[topology->origin]);
    if (topology->rehearsal)
        (void)fprintf(f, "rehearsal: %u emulated nodes\n", topology->rehearsal);
    (void)fprintf(f, "machine: %u %s, %u %s, %u %s, %u %s\n", topology->n_cpus,
                  human_noun(topology->n_cpus, "CPU", "CPUs"), topology->n_cores,
                  human_noun(topology->n_cores, "core", "cores"), topology->n_llcs,
                  human_noun(topology->n_llcs, "LLC", "LLCs"), topology->n_nodes,
                  human_noun(topology->n_nodes, "node", "nodes"));
    (void)fprintf(f, "restricted: %s\n", topology->restricted ? "yes" : "no");
    (void)fprintf(f, "distances: %s\n", topology->distances_known ? "known" : "assumed");

    r = core_table_init(&table, topology);
    if (r == 0)
        r = print_nodes(f, topology);
    if (r == 0)
        r = print_llcs(f, topology);
    if (r == 0)
        print_cores(f, &table, topology->n_cores);
    free(table.cpus);
    free(table.start);

    for (uint32_t i = 0; r == 0 && i < topology->n_domains; i++) {
        const TopologyDomain *d = &topology->domains[i];

        (void)fprintf(f, "domain %u: %s, distance %u, span %u, allowed imbalance %u\n", i,
                      d->numa ? "numa" : "node", d->distance, d->span, d->imb_numa_nr);
    }
    return r;
}

char *topology_format(const Topology *topology)
{
    return format_printed(print_all, topology, NULL);
}
