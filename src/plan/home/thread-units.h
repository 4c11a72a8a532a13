/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The threads of one group as units that belong together (P14), to be assigned to the nodes of its home.
 * Private to this room. */

#include "plan/home/thread-known.h"
#include "plan/planner.h"

/* Accesses are in permille of a CPU times 2^16, so that even threads that hardly run tell nodes apart. Pages
 * are below 2^33, and demands below 2^12. */
#define THREAD_USE_SHIFT 16U

#define DISTANCE_HERE 10U /* ACPI SLIT: a node to itself */

typedef struct ThreadHomes {
    Planner *p;
    size_t group;
    const Policy *policy;
    PlannerUnit *units;
    size_t n;
    uint64_t *use; /* [n * n_nodes]: the part of its demand that accesses memory there */
    uint32_t n_nodes;
    /* permille; capacity 0: not in the home. cores: the same, with one CPU per core */
    uint64_t capacity[PACK_NODES_MAX], cores[PACK_NODES_MAX], load[PACK_NODES_MAX];
    uint64_t demand, capacity_sum, cores_sum, use_sum;
    uint32_t pausing; /* mean demand of its threads that pause, permille, while it waits much; else 0 */
    uint64_t largest, largest_kept; /* the most a unit may want of a node; the same if it has that node */
    bool presses; /* thread_units_press_memory() */
    uint64_t *taken; /* [n_nodes]: permille of all groups, by the packing and by threads that have a node */
} ThreadHomes;

/* Finds the units of the group, and what each uses. The caller sets `p`, `group`, `policy`, `n_nodes` and
 * `largest`. Returns 0 or -ENOMEM. */
int thread_units_gather(ThreadHomes *h);

/* The node where a thread runs that pauses much and has no node yet; -1: none, or not known. */
int32_t thread_units_here(const ThreadHomes *h, const PlannerUnit *unit);

/* Whether the threads of the group are known to wait for memory that they use alone, and have cores to spare
 * (ThreadHomes.cores_sum): then each gets more where fewer others use the same memory controllers (P5). */
bool thread_units_press_memory(const ThreadHomes *h);

/* The largest distance between two nodes; above DISTANCE_HERE. */
uint64_t thread_units_farthest(const Topology *topology);
