/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the nodes offer to the packed groups, and to which of them: private to this room. */

#include "plan/planner.h"

/* Fills in the problem's nodes, as many as the machine has: their usable CPUs and cores minus what others
 * take of them, and their free memory. `ran` [n_groups * n_nodes] is CPU time by node, in permille of a CPU.
 * Writes PlanScratch.set. Returns 0 or -ENOMEM. */
int choose_nodes_offer(Planner *p, const uint64_t *ran, PackNode *nodes);

/* Adds to PlannerGroup.allowed the nodes where any process of the group may use a CPU. Writes
 * PlanScratch.set. Returns 0 or -ENOMEM. */
int choose_nodes_allowed(Planner *p);

/* The nodes that Nodes= of a policy names; all if it names none. */
PackNodes choose_nodes_of_policy(const Topology *topology, const Policy *policy);

/* What others and bound groups (bound.h) leave of a node's `permille`. The others count by whole CPUs, to the
 * nearest: to wait for a CPU now and then costs less than to be away from memory. A node full of them keeps a
 * little, or no group could be there at all. */
uint32_t choose_nodes_left(const Planner *p, uint32_t node, uint32_t permille);

/* The load that may press on one node's memory before it counts, in permille of a CPU. The same for all
 * packed groups: what the first domain across nodes allows (P5), unless a policy says less. */
uint32_t choose_nodes_imbalance(const Planner *p);
