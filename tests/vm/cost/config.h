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

/* How the addresses QEMU hands out are to be read (address.h). */
typedef enum ConfigAddress {
    CONFIG_ADDRESS_AUTO, /* by the version of the plugin interface */
    CONFIG_ADDRESS_OFFSET,
    CONFIG_ADDRESS_GUEST,
    CONFIG_ADDRESS_MAX,
} ConfigAddress;

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
    uint32_t overlap_nsec;   /* of each access, hidden behind what emulating takes (account.h) */
    uint32_t scale_permille; /* multiplies all of the above */
    uint32_t bandwidth_mbs;  /* MB/s of each node before scaling; 0: unlimited */
    uint32_t cache_kib;      /* of each CPU */
    uint32_t llc_kib;        /* of each node; 0: none */
    uint32_t quantum_usec;   /* what a CPU may owe before it has to wait */
    uint32_t tick_msec;      /* between two reports; 0: none but at marks */
    uint32_t below_4g_mib;   /* guest memory below 4 GiB; 0: as QEMU's q35 has it */
    bool spin;               /* wait by spinning instead of sleeping */
    bool start;              /* charge from power-on */
    ConfigAddress address;
    const char *out; /* borrowed from the arguments; NULL: no report */
} Config;

/* Reads "key=value" words. Returns 0, or -EINVAL with a line in `error` that names the word and what was expected.
 * `ret` borrows `arguments`, which must stay. */
int config_parse(int count, char **arguments, Config *ret, char *error, size_t error_size);

/* The price of a line of memory at `distance`: local at 10, remote at 20, on a straight line through both, scaled. With
 * local=90 remote=180 this is what the distance table promises: distance 17 costs 1.7 times local. */
uint64_t config_latency_nsec(const Config *c, uint32_t distance);
