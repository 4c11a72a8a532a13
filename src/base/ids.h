/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Distinct index types, so that a node number cannot be passed where a CPU number is meant. */

#include <stdint.h>

/* An operating-system CPU number, as in /sys/devices/system/cpu/cpuN and in CPU masks. -1 means none. */
typedef struct CpuIx {
    int32_t i;
} CpuIx;

/* A dense index into Topology.nodes, ordered by operating-system node number. -1 means none. Node masks
 * (hwloc bitmaps called `..._nodes`) hold these indices, never operating-system node numbers. */
typedef struct NodeIx {
    int32_t i;
} NodeIx;

/* A dense index into Topology.llcs. -1 means none. */
typedef struct LlcIx {
    int32_t i;
} LlcIx;

/* A dense index into Topology's cores; CPUs with the same index are SMT siblings. -1 means none. */
typedef struct CoreIx {
    int32_t i;
} CoreIx;

/* Dense indices into World.workloads, World.groups, World.processes and World.tasks. They are valid until the
 * next world_compact(); across ticks use TaskKey, Group.id or the workload's name. -1 means none. */
typedef struct WorkloadIx {
    int32_t i;
} WorkloadIx;

typedef struct GroupIx {
    int32_t i;
} GroupIx;

typedef struct ProcessIx {
    int32_t i;
} ProcessIx;

typedef struct TaskIx {
    int32_t i;
} TaskIx;

#define CPU_NONE      ((CpuIx){-1})
#define NODE_NONE     ((NodeIx){-1})
#define LLC_NONE      ((LlcIx){-1})
#define CORE_NONE     ((CoreIx){-1})
#define WORKLOAD_NONE ((WorkloadIx){-1})
#define GROUP_NONE    ((GroupIx){-1})
