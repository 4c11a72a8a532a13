/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which nodes are lent to a group CPU by CPU instead of becoming part of its home: private to this room. */

#include "plan/planner.h"

/* After pack_solve(): whether some group was given a node too many. Lowers its PackGroup.max_nodes, so that
 * solving again gives it fewer. */
bool choose_loans(const Planner *p, const PackNode *nodes);
