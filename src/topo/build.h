/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the parts of topology_load() hand to each other; private to this room.
 *
 *     source (live, XML, synthetic) --> import_hwloc() --> distances --> rehearsal_split() --> domains_compute() */

#include "topo/topology.h"

#include <hwloc.h>
#include <stddef.h>
#include <stdint.h>

#define DISTANCE_LOCAL  10U  /* ACPI SLIT: a node to itself */
#define DISTANCE_REMOTE 20U  /* what Linux assumes when the firmware has no SLIT (REMOTE_DISTANCE) */
#define DISTANCE_MAX    255U /* a SLIT entry is one byte; 255 is "unreachable" */

#define NODES_MAX \
    1024U /* the kernel's own limit, CONFIG_NODES_SHIFT = 10; the distances grow with its square */

/* A synthetic description taken apart: what hwloc understands, and our " distances=" matrix. */
typedef struct Synthetic {
    char *description;
    uint32_t *distances; /* NULL when none were given */
    size_t n_distances;
} Synthetic;

/* Takes `text` apart and checks what hwloc does not: the matrix, and how much is asked for. Whether the matrix fits the
 * number of nodes can only be said after hwloc has read the description. 0, -EINVAL or -ENOMEM. */
int synthetic_parse(const char *text, Synthetic *ret, char **ret_error);
void synthetic_done(Synthetic *synthetic);

/* Whether hwloc may be given this description (without distances): it is one, and what it asks for is bounded in
 * CPUs, nodes, levels, indexes and the time it takes. 0 or -EINVAL. */
int synthetic_check(const char *text, char **ret_error);

/* Fills CPUs, cores, LLCs, nodes and distances of the empty `topology` from a loaded hwloc topology. With `restrict`,
 * CPUs hwloc calls disallowed are left out, and so is the memory of disallowed nodes. 0, -EINVAL or -ENOMEM. */
int import_hwloc(Topology *topology, hwloc_topology_t hwloc, bool restrict_to_allowed, char **ret_error);

/* What is told of a node's bandwidth, MB/s, or 0: it is less than half of what the slowest channel of DDR4 gives. On
 * virtual machines it may be any number. */
uint32_t topology_bandwidth(uint64_t mb);

/* Where hwloc knows of no bandwidth: what all modules of memory can transfer together, divided by where memory is (of
 * so many bytes on the whole machine), less a fifth that nobody gets. Not where some node has no CPUs that are ours:
 * what is there may be memory of another kind. */
void build_bandwidth(Topology *topology, uint64_t modules_mb, uint64_t all_bytes);

/* Replaces the one node by `n` pretend ones. 0, -EINVAL or -ENOMEM. */
int rehearsal_split(Topology *topology, uint32_t n, char **ret_error);

/* Sets each LLC's nodes from the nodes of its CPUs. 0 or -ENOMEM. */
int build_llc_nodes(Topology *topology);

/* Fills topology->domains from nodes, LLCs and distances (P5). 0 or -ENOMEM. */
int domains_compute(Topology *topology);
