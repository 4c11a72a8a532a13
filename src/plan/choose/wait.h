/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When a group gets its first home (P4, P15): at once, or later. Private to this room. */

#include "plan/planner.h"

/* Decisions between slow ticks. choose_early(): whether a new group is to get its first home now, or a group
 * that has outgrown its home another one. choose_waits(): whether a new group is to be looked at again as
 * soon as there are loads. */
bool choose_early(const Planner *p);
bool choose_waits(const Planner *p);

/* Demand of all managed groups, in permille of all CPUs; 0 while a CPU is idle. */
uint64_t choose_wanted_permille(const Planner *p);

/* Sets PlannerGroup.put_off and .put_off_for. `memory` and `ran` [n_nodes] are as in memory.h, of this group. `share`
 * is of all groups, and `wanted_permille` comes from choose_wanted_permille(). After choose_memory_gather(). */
void choose_wait(Planner *p, size_t index, const uint64_t *memory, const uint64_t *ran,
                 const DemandShare *share, uint64_t wanted_permille);
