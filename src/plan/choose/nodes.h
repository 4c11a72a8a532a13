/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the nodes offer to the packed groups, and to which of them: private to this room. */

#include "plan/planner.h"

/* Fills in the problem's nodes, as many as the machine has: their usable CPUs and cores less what others leave of
 * them, and their free memory. `ran` [n_groups * n_nodes] is what ran where, in permille of a CPU. Writes
 * PlanScratch.set. Returns 0 or -ENOMEM. */
int choose_nodes_offer(Planner *p, const uint64_t *ran, PackNode *nodes);

/* Adds to PlannerGroup.allowed the nodes where any process of the group may use a CPU. Writes PlanScratch.set.
 * Returns 0 or -ENOMEM. */
int choose_nodes_allowed(Planner *p);

/* Those that Nodes= of a policy names; all when it names none. */
PackNodes choose_nodes_of_policy(const Topology *topology, const Policy *policy);

/* What is left of a node's `permille` by others and by who is bound (bound.h). The others count by whole CPUs, to the
 * nearest: to wait for a CPU now and then costs less than to be away from memory. A node full of them keeps a little,
 * or nobody could be there at all. */
uint32_t choose_nodes_left(const Planner *p, uint32_t node, uint32_t permille);

/* What may press on one node's memory before it counts, in permille of a CPU. One for all groups that are packed: what
 * the first domain across nodes allows (P5), unless a policy says less. */
uint32_t choose_nodes_imbalance(const Planner *p);
