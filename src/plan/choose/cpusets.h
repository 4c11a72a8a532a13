/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "plan/planner.h"

/* Groups that cpusets keep on a part of the machine: private to this room. */

/* If there are more cpusets, those whose groups want least are packed as if they had whole nodes. */
#define CHOOSE_CPUSETS_MAX 64U

/* Finds PlannerGroup.cpuset and .cut_permille. Call before anything asks what a group is given. */
void choose_cpusets(Planner *p);

/* Finds PlannerGroup.slice of the groups that take part, with PlanScratch.slices and .n_cpusets. Returns 0 or
 * -ENOMEM. */
int choose_cpusets_slices(Planner *p);
