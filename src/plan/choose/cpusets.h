/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "plan/planner.h"

/* Groups that cpusets keep on a part of the machine: private to this room. */

/* Finds PlannerGroup.cpuset and .cut_permille. Before whatever asks what a group is given. */
void choose_cpusets(Planner *p);
