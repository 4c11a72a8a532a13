/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The texts name sockets, cores, threads and nodes, but rarely caches and distances. What they omit comes
 * from the processors they name. If they name none, it is the simplest that fits: one last-level cache per
 * node; distance 21 between two Intel sockets, 20 (Linux's own default) where nothing is known. Memory sizes
 * are round numbers; no measurement in the texts depends on them.
 *
 * CPUs are numbered as Linux does on x86: first one thread of every core, node by node, then the others. */

#include "sim/scenario/preset.h"

#include "base/parse.h"

#include <stdio.h>
#include <string.h>

#define NUMA "[numa(memory=64GiB)]"
#define SMT  "pu:2(indexes=core:pack)"

static const SimPreset presets[] = {
    /* 21 to the three linked sockets and 31 to the others: the series prints domains of 1, 4 and 8 sockets. */
    {"x5-8", "8 sockets, 288 CPUs: steal node limit, Steve Sistare, 2018",
     "pack:8 " NUMA " l3:1 core:18 " SMT, 8, .ring = true, .near = 21, .far = 31},
    {"xeon-1x56", "1 node, 28 cores, 56 CPUs: idle masks and stealing, Steve Sistare, June 2018",
     "pack:1 " NUMA " l3:1 core:28 " SMT, 1},
    {"xeon-1x20", "1 socket, 10 cores, 20 CPUs: steal series v4", "pack:1 " NUMA " l3:1 core:10 " SMT, 1},
    {"xeon-2x20", "2 sockets of 10 cores, 40 CPUs: steal series v4", "pack:2 " NUMA " l3:1 core:10 " SMT, 2,
     .far = 21},
    {"xeon-2x44", "2 sockets of 22 cores, 88 CPUs: steal series v4", "pack:2 " NUMA " l3:1 core:22 " SMT, 2,
     .far = 21},
    {"xeon-2x40", "2 sockets of 20 cores, 80 CPUs: adjust imb_numa_nr, Mel Gorman, 2022",
     "pack:2 " NUMA " l3:1 core:20 " SMT, 2, .far = 21},
    /* The patch says only "2-socket Cascade Lake"; the test robot that confirmed it had 96 threads. */
    {"cascade-lake", "2 sockets of 24 cores, 96 CPUs: complete scanning of inactive VMAs, Mel Gorman, 2023",
     "pack:2 " NUMA " l3:1 core:24 " SMT, 2, .far = 21},
    /* Zen 3 has eight cores per L3; NPS splits the socket into nodes. 12 and 32 are AMD's distances. */
    {"zen3-nps1", "2 sockets of 64 cores, 2 nodes, 256 CPUs: replies to Mel Gorman's series of 2022",
     "pack:2 " NUMA " l3:8 core:8 " SMT, 2, .far = 32},
    {"zen3-nps2", "The same with 4 nodes", "pack:2 group:2 " NUMA " l3:4 core:8 " SMT, 4, .block = 2,
     .near = 12, .far = 32},
    {"zen3-nps4", "The same with 8 nodes", "pack:2 group:4 " NUMA " l3:2 core:8 " SMT, 8, .block = 4,
     .near = 12, .far = 32},
    {"numa-core-4x8", "4 nodes of 8 CPUs: numa/core v18, Ingo Molnar, 2012",
     "pack:4 " NUMA " l3:1 core:8 pu:1", 4, .far = 20},
    {"large-16x64", "16 nodes of 64 CPUs, 1,024 CPUs: from no text; for questions of scale",
     "pack:16 " NUMA " l3:4 core:8 " SMT, 16, .block = 4, .near = 20, .far = 30},
    /* From tests/vm/machines; a QEMU socket is one last-level cache. */
    {"lab-2x2", "The lab's guest 2x2: 2 nodes of 2 CPUs", "pack:2 [numa(memory=1GiB)] l3:1 core:2 pu:1", 2,
     .far = 20},
    {"lab-4x1", "The lab's guest 4x1: 4 nodes of 1 CPU", "pack:4 [numa(memory=1GiB)] l3:1 core:1 pu:1", 4,
     .far = 20},
    {"lab-4x2", "The lab's guest 4x2: 4 nodes of 2 CPUs", "pack:4 [numa(memory=1GiB)] l3:1 core:2 pu:1", 4,
     .far = 20},
    {"lab-8x1", "The lab's guest 8x1: 8 nodes of 1 CPU, all equally far",
     "pack:8 [numa(memory=1GiB)] l3:1 core:1 pu:1", 8, .far = 20},
    {"lab-8x1-two-level",
     "The lab's guest 8x1-two-level: 8 nodes of 1 CPU, near on a board and far between the two",
     "pack:8 [numa(memory=1GiB)] l3:1 core:1 pu:1", 8, .block = 4, .near = 16, .far = 32},
};

const SimPreset *preset_list(size_t *ret_n)
{
    *ret_n = ARRAY_SIZE(presets);
    return presets;
}

const SimPreset *preset_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(presets); i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

static uint32_t distance(const SimPreset *preset, uint32_t a, uint32_t b)
{
    uint32_t steps = a > b ? a - b : b - a, n = preset->n_nodes;
    bool linked = preset->ring ? steps == 1 || steps == n - 1 || steps == n / 2
                               : preset->block > 0 && a / preset->block == b / preset->block;

    if (a == b)
        return 10;
    return linked ? preset->near : preset->far;
}

static int print_machine(FILE *f, const void *object)
{
    const SimPreset *preset = object;
    uint32_t n = preset->n_nodes;

    (void)fprintf(f, "%s distances=", preset->hwloc);
    for (uint32_t i = 0; i < n * n; i++)
        (void)fprintf(f, "%s%u", i > 0 ? "," : "", distance(preset, i / n, i % n));
    return 0;
}

char *preset_describe(const SimPreset *preset)
{
    return format_printed(print_machine, preset, NULL);
}

int preset_load(const SimPreset *preset, Topology **ret, char **ret_error)
{
    CLEANUP_FREE char *synthetic = preset_describe(preset);

    if (!synthetic) {
        *ret_error = strdup("Out of memory.");
        return -ENOMEM;
    }
    return topology_load(&(TopologyOptions){.synthetic = synthetic}, ret, ret_error);
}
