/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The plugin's arguments: the shape of the guest and the prices of its memory. README.md lists them for users. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than any guest of ours; the line directory keeps a CPU's number in 8 bits (model.c). */
#define COST_CPUS_MAX  64U
#define COST_NODES_MAX 16U
/* SLIT: the distance of a node to itself, and the largest that means anything. */
#define COST_DISTANCE_LOCAL 10U
#define COST_DISTANCE_MAX   254U

typedef struct Config {
    unsigned n_nodes;
    unsigned n_cpus;
    unsigned n_distances; /* rows of the table: as many as nodes */
    uint64_t node_mib[COST_NODES_MAX];
    unsigned cpu_node[COST_CPUS_MAX];
    uint32_t distance[COST_NODES_MAX][COST_NODES_MAX];
    uint32_t local_nsec;
    uint32_t remote_nsec; /* at distance 20 */
    uint32_t llc_nsec;
    uint32_t walk_nsec;         /* of a translation that the TLB does not have; 0: no TLB */
    uint32_t wake_nsec;         /* from an interrupt to the first instruction of a halted CPU */
    uint32_t pause_nsec;        /* of a PAUSE */
    uint32_t insn_psec;         /* of an instruction */
    uint32_t scale_permille;    /* multiplies all of the above: a machine so many times slower */
    uint32_t bandwidth_mbs;     /* MB/s of each node before scaling; 0: unlimited */
    uint32_t sequence_permille; /* of its price: a line that follows one of the CPU's last, as prefetched */
    uint32_t cache_kib;         /* of each CPU */
    uint32_t llc_kib;           /* of each last-level cache; 0: none */
    uint32_t n_llcs;            /* of each node: its CPUs in order are dealt out to them in equal runs */
    uint32_t slice_nsec;        /* what CPUs may be apart (clock.h) */
    bool start;                 /* charge from power-on */
    const char *out;            /* borrowed from the arguments; NULL: no report */
} Config;

/* Reads "key=value" words. Returns 0, or -EINVAL with a line in `error` that names the word and what was expected.
 * `ret` borrows `arguments`, which must stay. */
int config_parse(int count, char **arguments, Config *ret, char *error, size_t error_size);

/* The price of a line of memory at `distance`: local at 10, remote at 20, on a straight line through both, scaled. With
 * local=90 remote=180 this is what the distance table promises: distance 17 costs 1.7 times local. */
uint64_t config_latency_nsec(const Config *c, uint32_t distance);

/* `nsec` of a machine of full speed, as picoseconds of this one. */
int64_t config_scaled_psec(const Config *c, uint64_t nsec);
