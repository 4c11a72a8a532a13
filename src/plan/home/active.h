/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* On which nodes a group works (P12).
 * Source: numa_group_count_active_nodes() and the locality rule of task_numa_fault() of Linux, restated. */

#include "world/faults.h"

#include <hwloc/bitmap.h>
#include <stdbool.h>
#include <stdint.h>

/* A node is active if its use is more than this fraction of the busiest node's (ACTIVE_NODE_FRACTION). */
#define ACTIVE_FRACTION 3U

/* Fills `ret` with the NodeIx of the active nodes. `used` is the CPU time of the group per node, or its
 * averages, in any unit, below 2^62. If a group uses nothing, no node is active. Returns 0 or -ENOMEM. */
int active_nodes(const uint64_t *used, uint32_t n_nodes, hwloc_bitmap_t ret);

/* Whether an access from `cpu_node` to `memory_node` counts as local when scans are paced (P10). A shared
 * access between two active nodes also does, because moving the page would not make it more local. */
bool active_is_local(hwloc_const_bitmap_t active, FaultsKind kind, NodeIx cpu_node, NodeIx memory_node);
