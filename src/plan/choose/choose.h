/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Homes by packing (P15): private to this room. */

#include "plan/planner.h"

/* So many groups are packed, those that want most; the others keep the homes they have. Packing 200 on 16 nodes
 * takes 5 ms at most. */
#define CHOOSE_GROUPS_MAX 256U

/* Wanting less than this, a group gets no home, and keeps the one it has: the bound that makes a CPU idle. */
#define CHOOSE_IDLE_PERMILLE 50U

/* Who waits so much of the time is better off elsewhere. A choice of ours. */
#define CHOOSE_WAITS_PERMILLE 250U

/* Whether the daemon met it less than MinAgeSec= ago. */
bool choose_is_young(const Planner *p, const Group *group, const Policy *policy);

/* Finds the nodes of every group of such a policy, into PlannerGroup: in ticks in which homes are looked at, when
 * the World is complete. Groups of Mode=fixed with a home take part as what they are, a load. Returns 0 or
 * -ENOMEM. */
int choose_homes(Planner *p);
