/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where the memory of the packed groups lies: private to this room.
 *
 * `memory` has bytes, `ran` permille of a CPU, both by group and node: [group * n_nodes + node]. */

#include "plan/planner.h"

/* If less than this part of a group's memory is on its way, that delays no decision. A choice of ours. */
#define CHOOSE_MEMORY_MOVING_PART 4U

/* Adds to `memory` what is known of all processes. Sets in PlannerGroup: .memory_known if that is anything,
 * .moves if much of it is on its way, .awaits_memory if more is soon known, and .awaits_use if it must first
 * be seen who uses some of it. */
void choose_memory_gather(Planner *p, uint64_t *memory);

/* Guesses the unknown memory of the groups in PlanScratch.order, and lets groups without a home lean on the
 * nodes where they ran. After choose_memory_gather(). */
void choose_memory_complete(const Planner *p, const uint64_t *ran, uint64_t *memory);

/* PackGroup.memory_discount_permille: how much less it counts for a group to be near its memory, `memory` of
 * n_nodes nodes, than for one with much of it. It decides between equal nodes at least. After
 * choose_memory_gather(); guessed memory is too little to count. */
uint32_t choose_memory_discount(const PlannerGroup *g, const uint64_t *memory, uint32_t n_nodes);

/* PackGroup.stall_discount_permille: how much less it counts because the group hardly waits for memory. */
uint32_t choose_memory_stall_discount(const Planner *p, const PlannerGroup *g);

/* PackGroup.traffic_mb: the bandwidth that a group wants when it runs this much; 0 as well if its memory does
 * not follow it. */
uint64_t choose_memory_traffic(const PlannerGroup *g, const Policy *policy, uint32_t demand_permille);

/* Traffic between the memory of each node and caches, as it was counted, [n_nodes] MB/s: of all processes, or
 * of those whose groups take no part in the packing. */
void choose_memory_traffic_on(const Planner *p, bool all, uint64_t *ret);

/* Whether it is known which memory most of its work uses. */
bool choose_memory_seen(const PlannerGroup *g);

/* PackGroup.private_permille; 0 if it is not known for most of its work. All memory of a single thread is private,
 * which need not be seen, unless there is so little that caches may hold it. After PlannerGroup.discount_permille. */
uint32_t choose_memory_alone(const Planner *p, const Group *group);

/* PackGroup.few_permille, and 0 likewise. */
uint32_t choose_memory_few(const PlannerGroup *g);

/* PackGroup.sorted_permille, and 0 likewise. */
uint32_t choose_memory_sorted(const Planner *p, const PlannerGroup *g);

/* Whether the group runs where three quarters of its memory are, or the place of its memory is not known.
 * `memory` and `ran` are of this group. */
bool choose_memory_beside(const Planner *p, size_t index, const uint64_t *memory, const uint64_t *ran);
