/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The plugin's arguments: the shape of the guest and the prices of its memory. README.md describes them for users. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than any guest of the lab has. The line directory keeps a CPU's number in 8 bits (model.c). */
#define COST_CPUS_MAX  64U
#define COST_NODES_MAX 16U
/* SLIT: the distance of a node to itself, and the largest valid distance. */
#define COST_DISTANCE_LOCAL 10U
#define COST_DISTANCE_MAX   254U

typedef struct Config {
    unsigned n_nodes;
    unsigned n_cpus;
    unsigned n_distances; /* rows of the table, equal to n_nodes */
    uint64_t node_mib[COST_NODES_MAX];
    unsigned cpu_node[COST_CPUS_MAX];
    uint32_t distance[COST_NODES_MAX][COST_NODES_MAX];
    uint32_t local_nsec;
    uint32_t remote_nsec; /* at distance 20 */
    uint32_t llc_nsec;
    uint32_t walk_nsec;         /* of a translation that the TLB misses; 0: no TLB */
    uint32_t wake_nsec;         /* from an interrupt to the first instruction of a halted CPU */
    uint32_t pause_nsec;        /* of a PAUSE */
    uint32_t insn_psec;         /* of an instruction */
    uint32_t scale_permille;    /* multiplies all of the above: the factor of a slower machine */
    uint32_t bandwidth_mbs;     /* MB/s of each node before scaling; 0: unlimited */
    uint32_t sequence_permille; /* of its price: a line that follows one of the CPU's last, as if prefetched */
    uint32_t cache_kib;         /* of each CPU */
    uint32_t llc_kib;           /* of each last-level cache; 0: none */
    uint32_t n_llcs;            /* of each node; each gets an equal run of its CPUs, in order */
    uint32_t slice_nsec;        /* the most that CPUs may be apart (clock.h) */
    bool start;                 /* charge from power-on */
    const char *out;            /* borrowed from the arguments; NULL: no report */
} Config;

/* Reads "key=value" words. Returns 0, or -EINVAL with a line in `error` that names the word and what was
 * expected. `ret` borrows `arguments`, which must stay valid. */
int config_parse(int count, char **arguments, Config *ret, char *error, size_t error_size);

/* The price of a line of memory at `distance`, scaled: linear through local at 10 and remote at 20. With
 * local=90 remote=180 the prices follow the distance table: distance 17 costs 1.7 times local. */
uint64_t config_latency_nsec(const Config *c, uint32_t distance);

/* Converts `nsec` of a machine at full speed to picoseconds of this one. */
int64_t config_scaled_psec(const Config *c, uint64_t nsec);
