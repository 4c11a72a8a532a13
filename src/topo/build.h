/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Functions and data shared by the parts of topology_load(); private to this room.
 *
 *     source (live, XML, synthetic) --> import_hwloc() --> distances --> rehearsal_split() --> domains_compute() */

#include "topo/topology.h"

#include <hwloc.h>
#include <stddef.h>
#include <stdint.h>

#define DISTANCE_LOCAL  10U  /* ACPI SLIT: from a node to itself */
#define DISTANCE_REMOTE 20U  /* what Linux assumes when the firmware has no SLIT (REMOTE_DISTANCE) */
#define DISTANCE_MAX    255U /* a SLIT entry is one byte; 255 is "unreachable" */

#define NODES_MAX \
    1024U /* the kernel's own limit, CONFIG_NODES_SHIFT = 10; the distances grow with its square */

/* A synthetic description split in two: the part for hwloc, and our " distances=" matrix. */
typedef struct Synthetic {
    char *description;
    uint32_t *distances; /* NULL when none were given */
    size_t n_distances;
} Synthetic;

/* Splits `text` and checks what hwloc does not: the matrix, and the size of the machine. The caller compares
 * the matrix with the number of nodes, which is known only after hwloc has read the description. Returns 0,
 * -EINVAL or -ENOMEM. */
int synthetic_parse(const char *text, Synthetic *ret, char **ret_error);
void synthetic_done(Synthetic *synthetic);

/* Checks that hwloc can be given this description (without distances): that its syntax is right, and that
 * CPUs, nodes, levels, indexes and the time to load it are bounded. Returns 0 or -EINVAL. */
int synthetic_check(const char *text, char **ret_error);

/* Fills CPUs, cores, LLCs, nodes and distances of the empty `topology` from a loaded hwloc topology. With
 * `restrict_to_allowed`, CPUs that hwloc calls disallowed are left out, and so is the memory of disallowed
 * nodes. Returns 0, -EINVAL or -ENOMEM. */
int import_hwloc(Topology *topology, hwloc_topology_t hwloc, bool restrict_to_allowed, char **ret_error);

/* Returns a reported bandwidth of a node, MB/s, at most TOPOLOGY_BANDWIDTH_MAX, or 0 if it is less than half
 * of that of the slowest DDR4 channel. A virtual machine may report any number. */
uint32_t topology_bandwidth(uint64_t mb);

/* Estimates the bandwidth of nodes if hwloc knows none. The transfer rates of all memory modules are added up
 * (`modules_mb`), reduced by a fifth that is never reached in practice, and divided among the nodes by their
 * memory; `all_bytes` is the memory of the whole machine. Does nothing if some node has none of our CPUs,
 * because its memory may be of another kind. */
void build_bandwidth(Topology *topology, uint64_t modules_mb, uint64_t all_bytes);

/* Replaces the one node by `n` emulated ones. Returns 0, -EINVAL or -ENOMEM. */
int rehearsal_split(Topology *topology, uint32_t n, char **ret_error);

/* Sets each LLC's nodes from its CPUs. Returns 0 or -ENOMEM. */
int build_llc_nodes(Topology *topology);

/* Fills topology->domains from nodes, LLCs and distances (P5). Returns 0 or -ENOMEM. */
int domains_compute(Topology *topology);
