/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Groups that somebody else has bound to CPUs: private to this room. */

#include "plan/pack/pack.h"
#include "plan/planner.h"

/* Finds PlannerGroup.bound: groups of which no thread can be placed, and all of whose threads somebody else
 * has bound to CPUs. Sums what they take of each node into PlanScratch.bound_permille: however many threads
 * wait for these CPUs, no more than the CPUs, and only their part where others wait as well. Sums what they
 * want of all CPUs into .bound_given, excluding what is wanted of a CPU beyond the mean. After
 * PlannerGroup.n_placeable and choose_cpusets(). */
void choose_bound(Planner *p);

/* Adds to the nodes the load of these groups on memory that they use alone, as far as it runs there now.
 * `ran` and `memory` [n_groups * n_nodes] are as in memory.h. After choose_memory_gather(). */
void choose_bound_press(Planner *p, const uint64_t *ran, const uint64_t *memory, PackNode *nodes);
