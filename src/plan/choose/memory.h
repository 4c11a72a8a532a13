/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where the memory of the packed groups lies: private to this room.
 *
 * `memory` has bytes, `ran` permille of a CPU, both by group and node: [group * n_nodes + node]. */

#include "plan/planner.h"

/* Less than this part of the memory of a group on its way keeps nobody from deciding. A choice of ours. */
#define CHOOSE_MEMORY_MOVING_PART 4U

/* Adds to `memory` what is known of all processes, and says in PlannerGroup.memory_known whether that is anything,
 * in .moves whether any of it is under way, in .awaits_memory whether more is soon known, and in .awaits_use whether
 * of some it is to be seen first who uses it. */
void choose_memory_gather(Planner *p, uint64_t *memory);

/* Guesses what is not known of the groups in PlanScratch.order, and lets those without a home lean on the nodes where
 * they ran. After choose_memory_gather(). */
void choose_memory_complete(const Planner *p, const uint64_t *ran, uint64_t *memory);

/* How much less it counts for a group to be near its memory, `memory` of n_nodes nodes, than for one with much of it;
 * permille. It decides between equal nodes at least. After choose_memory_gather(); what is
 * guessed of it is too little to count. */
uint32_t choose_memory_discount(const Group *group, const PlannerGroup *g, const uint64_t *memory,
                                uint32_t n_nodes);

/* How much less it counts for it because it hardly waits for memory, PackGroup.stall_discount_permille. */
uint32_t choose_memory_stall_discount(const Planner *p, const PlannerGroup *g);

/* What it wants of memory when it runs so much, PackGroup.traffic_mb; 0 as well if its memory does not follow it. */
uint64_t choose_memory_traffic(const PlannerGroup *g, const Policy *policy, uint32_t demand_permille);

/* What is moved between the memory of each node and caches, as it was counted, [n_nodes] MB/s: of all processes, or of
 * those whose groups take no part in the packing. */
void choose_memory_traffic_on(const Planner *p, bool all, uint64_t *ret);

/* Whether it is seen which memory most of its work uses. */
bool choose_memory_seen(const PlannerGroup *g);

/* Of what its threads use, what each uses alone, in permille; 0 when it is not seen of most of its work. A single
 * thread uses all of it alone, which need not be seen; unless it has so little that caches may hold it. After
 * PlannerGroup.discount_permille. */
uint32_t choose_memory_alone(const Planner *p, const Group *group);

/* And what few of them share, PackGroup.few_permille. */
uint32_t choose_memory_few(const PlannerGroup *g);

/* And what each uses alone that lies on one node for each, PackGroup.sorted_permille. */
uint32_t choose_memory_sorted(const Planner *p, const PlannerGroup *g);

/* Whether it runs where three quarters of its memory are, or where that is is not known. `memory` and `ran` are of this
 * group. */
bool choose_memory_beside(const Planner *p, size_t index, const uint64_t *memory, const uint64_t *ran);
