/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Groups that somebody else has bound: private to this room. */

#include "plan/planner.h"

/* Finds PlannerGroup.bound: the nodes to which somebody else has bound all threads of a group. It takes part in the
 * packing there. After PlannerGroup.n_placeable. */
void choose_bound(Planner *p);

/* Fills PlannerGroup.given of groups of which nobody can be placed, and PlanScratch.want_level. However many wait for
 * the CPUs to which they are bound, they want no more than these of their nodes: where others wait as well, as much of
 * each as is wanted of a CPU on average. Who is bound to the same CPUs shares them by what each wants. After
 * PlannerGroup.n_placeable. */
void choose_bound_divide(Planner *p);
