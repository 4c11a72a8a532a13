/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When a group gets its first home (P4, P15): at once, or later. Private to this room. */

#include "plan/planner.h"

/* A group need not wait for a slow tick: whether a new one is to be given its first home now, or one that has
 * outgrown that another; and whether one is to be looked at again as soon as there are loads. */
bool choose_early(const Planner *p);
bool choose_waits(const Planner *p);

/* How much of all CPUs is wanted by who is managed, in permille; 0 while a CPU is idle. */
uint64_t choose_wanted_permille(const Planner *p);

/* Sets PlannerGroup.put_off and .put_off_for. `memory` and `ran` [n_nodes] are as in memory.h, of this group, `share`
 * is of all, and `wanted_permille` what choose_wanted_permille() says. After choose_memory_gather(). */
void choose_wait(Planner *p, size_t index, const uint64_t *memory, const uint64_t *ran,
                 const DemandShare *share, uint64_t wanted_permille);
