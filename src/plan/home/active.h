/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* On which nodes a group works (P12).
 * Source: numa_group_count_active_nodes() and the locality rule of task_numa_fault() of Linux, restated. */

#include "world/faults.h"

#include <hwloc/bitmap.h>
#include <stdbool.h>
#include <stdint.h>

/* A node is active when it has more than one part in so many of the busiest node's (ACTIVE_NODE_FRACTION). */
#define ACTIVE_FRACTION 3U

/* Fills `ret` with the NodeIx of the active nodes. `used` is the CPU time of the group per node, or its averages, in
 * any unit, below 2^62. Of a group that uses nothing no node is active. Returns 0 or -ENOMEM. */
int active_nodes(const uint64_t *used, uint32_t n_nodes, hwloc_bitmap_t ret);

/* Whether an access from `cpu_node` to `memory_node` counts as local when scans are paced (P10): also a shared one
 * between two active nodes of a group that is at work on several, because moving the page would not make it more
 * local. */
bool active_is_local(hwloc_const_bitmap_t active, FaultsKind kind, NodeIx cpu_node, NodeIx memory_node);
