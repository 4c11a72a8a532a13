/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Homes by packing (P15): private to this room. */

#include "plan/planner.h"

/* So many groups are packed, those that want most; the others keep the homes they have. Packing 200 on 16 nodes takes 5 ms
 * at most. */
#define CHOOSE_GROUPS_MAX 256U

/* Whether a policy leaves the choice of nodes to us. */
bool choose_mode(const Policy *policy);

/* Of the CPU time its threads want, what they wait; permille. */
uint32_t choose_wait_permille(const PlannerGroup *g);

/* Finds the nodes of every group of such a policy, into PlannerGroup: on slow ticks, when the World is complete. Groups of
 * Mode=fixed with a home take part as what they are, a load. Returns 0 or -ENOMEM. */
int choose_homes(Planner *p);
