/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Groups that have converged keep their homes (P16): private to this room. */

#include "plan/planner.h"

/* Fixes the homes of groups whose memory has come together there, in the problem that is about to be solved
 * (PlanScratch.pack_groups). Records in the plan which groups have been frozen or thawed by that. */
void freeze_groups(Planner *p, const PackNode *nodes);
