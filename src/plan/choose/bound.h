/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Groups that somebody else has bound to CPUs: private to this room. */

#include "plan/pack/pack.h"
#include "plan/planner.h"

/* Finds PlannerGroup.bound: nobody of these can be placed, and somebody else has bound all their threads to CPUs. Sums
 * what they take of each node, PlanScratch.bound_permille: however many wait for these CPUs, no more than them, and
 * where others wait as well, the part of them that is theirs. And what they want of all, .bound_given, but for what is
 * wanted of a CPU beyond the mean. After PlannerGroup.n_placeable, and choose_cpusets(). */
void choose_bound(Planner *p);

/* Adds to the nodes what these groups use alone of memory, as far as it runs there now. `ran` and `memory` [n_groups *
 * n_nodes] are as in memory.h. After choose_memory_gather(). */
void choose_bound_press(Planner *p, const uint64_t *ran, const uint64_t *memory, PackNode *nodes);
