/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Homes by packing (P15): private to this room. */

#include "plan/planner.h"

/* At most this many groups are packed, those that want most; the others keep their homes. Packing 200 on up to
 * 16 nodes took 6.4 ms at worst (BENCHMARKS.md). */
#define CHOOSE_GROUPS_MAX 256U

/* A group that wants less gets no home, and keeps one that it has: the bound below which a CPU is idle. */
#define CHOOSE_IDLE_PERMILLE 50U

/* Threads that wait for this part of the time are better off elsewhere. A choice of ours. */
#define CHOOSE_WAITS_PERMILLE 250U

/* Whether the daemon first saw the group less than MinAgeSec= ago, however old its processes are. */
bool choose_is_young(const Planner *p, const Group *group, const Policy *policy);

/* Finds the nodes of every group for which policy_chooses_nodes(), into PlannerGroup. Call on ticks that look at
 * homes, when the World is complete. Groups of Mode=fixed with a home take part as a load. Returns 0 or -ENOMEM. */
int choose_homes(Planner *p);
