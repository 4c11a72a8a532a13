/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "plan/planner.h"

/* Groups that cpusets keep on a part of the machine: private to this room. */

/* More of them at a time are packed as if they had whole nodes, those whose groups want least. */
#define CHOOSE_CPUSETS_MAX 64U

/* Finds PlannerGroup.cpuset and .cut_permille. Before whatever asks what a group is given. */
void choose_cpusets(Planner *p);

/* Of groups that take part, PlannerGroup.slice, with PlanScratch.slices and .n_cpusets. Returns 0 or -ENOMEM. */
int choose_cpusets_slices(Planner *p);
