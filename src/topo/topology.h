/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The machine as placement sees it. Immutable once made. */

#include "base/ids.h"
#include "base/util.h"

#include <hwloc/bitmap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum TopologyOrigin {
    TOPOLOGY_ORIGIN_LIVE,
    TOPOLOGY_ORIGIN_XML,
    TOPOLOGY_ORIGIN_SYNTHETIC,
    TOPOLOGY_ORIGIN_REHEARSAL, /* the CPUs of another origin, split into emulated nodes */
    TOPOLOGY_ORIGIN_MAX,
    TOPOLOGY_ORIGIN_INVALID = -EINVAL,
} TopologyOrigin;

/* Indexed by TopologyOrigin; ends with NULL. */
extern const char *const topology_origin_names[];

typedef enum TopologyLevel {
    TOPOLOGY_LEVEL_SAME, /* the same CPU */
    TOPOLOGY_LEVEL_SMT,  /* another hardware thread of the same core */
    TOPOLOGY_LEVEL_LLC,  /* same last-level cache, and same node */
    TOPOLOGY_LEVEL_NODE, /* same NUMA node */
    TOPOLOGY_LEVEL_MACHINE,
    TOPOLOGY_LEVEL_MAX,
    TOPOLOGY_LEVEL_INVALID = -EINVAL,
} TopologyLevel;

typedef struct TopologyCpu {
    bool present; /* in this Topology; false marks a hole in the numbering */
    NodeIx node;
    LlcIx llc;
    CoreIx core;
} TopologyCpu;

#define TOPOLOGY_BANDWIDTH_MAX (1U << 24) /* MB/s; no node has more */

typedef struct TopologyNode {
    uint32_t os_index;   /* as in /sys/devices/system/node/nodeN */
    hwloc_bitmap_t cpus; /* empty for a memory-only node */
    uint32_t n_cpus;
    uint64_t memory_bytes; /* 0 for a memoryless node */
    uint32_t bandwidth_mb; /* MB/s to the nearest CPUs, from firmware; 0: unknown */
} TopologyNode;

typedef struct TopologyLlc {
    hwloc_bitmap_t cpus;
    hwloc_bitmap_t nodes; /* NodeIx of the nodes of its CPUs; several with sub-NUMA clustering */
} TopologyLlc;

/* A scheduling domain above the LLC, and the imbalance P5 allows in it. The innermost domain comes first. */
typedef struct TopologyDomain {
    bool numa;            /* an SD_NUMA domain: spans several nodes */
    uint32_t distance;    /* the largest distance it spans; 10 inside a node */
    uint32_t span;        /* CPUs in the largest such domain */
    uint32_t imb_numa_nr; /* CPUs of imbalance allowed in it (P5) */
} TopologyDomain;

typedef struct Topology {
    unsigned n_ref;
    TopologyOrigin origin;
    char *source;         /* "live", a file name, a synthetic description */
    uint32_t rehearsal;   /* number of emulated nodes, 0 when the nodes are real */
    bool restricted;      /* only CPUs and memory that this process may use are included */
    bool distances_known; /* false: 10 on the diagonal and 20 elsewhere were assumed */

    TopologyCpu *cpus;  /* [cpu_limit], indexed by CpuIx */
    uint32_t cpu_limit; /* highest CPU number + 1 */
    uint32_t n_cpus;
    hwloc_bitmap_t all_cpus;

    TopologyNode *nodes; /* ascending os_index */
    uint32_t n_nodes;
    uint32_t *distances; /* [n_nodes * n_nodes], row-major, 10 = local (ACPI SLIT) */

    TopologyLlc *llcs; /* ascending lowest CPU */
    uint32_t n_llcs;
    uint32_t n_cores;

    TopologyDomain *domains;
    uint32_t n_domains;
} Topology;

/* How to read a machine. All zero: the live machine, restricted to what this process may use. */
typedef struct TopologyOptions {
    const char *xml;       /* hwloc XML file, or NULL */
    const char *synthetic; /* hwloc synthetic description, or NULL; extended by " distances=10,21,21,10" */
    bool whole_machine;    /* live only: include CPUs and nodes outside this process's cpuset */
    uint32_t rehearse;     /* split the CPUs into this many emulated nodes; 0: do not */
} TopologyOptions;

/* Reads a machine. On failure returns -errno and stores a malloc'd sentence in *ret_error that says what was
 * expected. -EINVAL: the XML file or description does not parse, or the rehearsal asks for one node, for more
 * nodes than cores (SMT siblings stay together), or for a machine that already has several nodes. An XML file
 * that cannot be read gives the -errno of reading it. */
int topology_load(const TopologyOptions *options, Topology **ret, char **ret_error);

Topology *topology_ref(Topology *topology);
Topology *topology_unref(Topology *topology);
DEFINE_CLEANUP(Topology *, topology_unref)

/* Checks the invariants of the type. Returns 0 or -EUCLEAN. Called by tests and debug builds. */
int topology_check(const Topology *topology);

/* Distance as in the SLIT, 10 = local. */
static inline uint32_t topology_distance(const Topology *topology, NodeIx a, NodeIx b)
{
    return topology->distances[(size_t)a.i * topology->n_nodes + (size_t)b.i];
}

/* The CPU's entry, or NULL if the number is out of range or a hole. */
static inline const TopologyCpu *topology_cpu(const Topology *topology, CpuIx cpu)
{
    if (cpu.i < 0 || (uint32_t)cpu.i >= topology->cpu_limit || !topology->cpus[cpu.i].present)
        return NULL;
    return &topology->cpus[cpu.i];
}

/* Returns the closest level that two CPUs share (the search order of P2). For MACHINE, the distance tells
 * more. Levels nest: CPUs of different nodes never share the level LLC, even if a cache spans nodes (sub-NUMA
 * clustering, rehearsal). INVALID when one of them is not in this Topology. */
TopologyLevel topology_level(const Topology *topology, CpuIx a, CpuIx b);

/* The node with this operating-system number, or NODE_NONE. */
NodeIx topology_node_by_os(const Topology *topology, uint32_t os_index);

/* Fills `ret` with the CPUs of the nodes in `nodes` (a bitmap of NodeIx). */
int topology_nodes_to_cpus(const Topology *topology, hwloc_const_bitmap_t nodes, hwloc_bitmap_t ret);

/* Fills `ret` with the NodeIx of every node that has a CPU in `cpus`. */
int topology_cpus_to_nodes(const Topology *topology, hwloc_const_bitmap_t cpus, hwloc_bitmap_t ret);

/* Adds the operating-system numbers of the nodes in `nodes` (a bitmap of NodeIx; NULL: none) to `ret`.
 * Returns 0 or -ENOMEM. */
int topology_add_node_numbers(const Topology *topology, hwloc_const_bitmap_t nodes, hwloc_bitmap_t ret);

/* The stable text form used by the goldens and `numaplacectl topology`: one line per fact. Malloc'd; NULL
 * when out of memory. */
char *topology_format(const Topology *topology);
