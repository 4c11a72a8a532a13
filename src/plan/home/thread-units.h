/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The threads of one group as units that belong together (P14), to be assigned to the nodes of its home: private to
 * this room. */

#include "plan/home/thread-known.h"
#include "plan/planner.h"

/* Accesses are in permille of a CPU times 2^16, so that nodes are told apart also by threads that hardly run. Pages
 * are below 2^33, and demands below 2^12. */
#define THREAD_USE_SHIFT 16U

#define DISTANCE_HERE 10U /* ACPI SLIT: a node to itself */

typedef struct ThreadHomes {
    Planner *p;
    size_t group;
    const Policy *policy;
    PlannerUnit *units;
    size_t n;
    uint64_t *use; /* [n * n_nodes], which part of its demand accesses memory there */
    uint32_t n_nodes;
    /* permille; capacity 0: not of the home; cores: of the capacity, with a CPU each */
    uint64_t capacity[PACK_NODES_MAX], cores[PACK_NODES_MAX], load[PACK_NODES_MAX];
    uint64_t demand, capacity_sum, cores_sum, use_sum;
    uint32_t pausing; /* what its threads that pause want on average, permille, while it waits much; else 0 */
    uint64_t largest, largest_kept; /* what a unit may want of a node; and one that has it */
    uint64_t *taken; /* [n_nodes], permille, of all groups: by the packing, and by threads that have a node */
} ThreadHomes;

/* Finds the units of the group, and what each uses. `p`, `group`, `policy`, `n_nodes` and `largest` are told. Returns 0
 * or -ENOMEM. */
int thread_units_gather(ThreadHomes *h);

/* The largest distance of two nodes; above DISTANCE_HERE. */
uint64_t thread_units_farthest(const Topology *topology);
