/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Groups that somebody else has bound to CPUs: private to this room. */

#include "plan/planner.h"

/* Finds PlannerGroup.bound, groups of which nobody can be placed nor be anywhere, and what they take of each node:
 * PlanScratch.bound_permille. However many wait for the CPUs to which they are bound, that is no more than these, and
 * where others wait as well, the part of them that is theirs. Also sets .want_level and .bound_given. After
 * PlannerGroup.n_placeable. */
void choose_bound(Planner *p);
