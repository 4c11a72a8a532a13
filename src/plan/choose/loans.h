/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which nodes are lent to a group CPU by CPU instead of becoming part of its home: private to this room. */

#include "plan/planner.h"

/* After pack_solve(): whether there is a group that was given a node too many. Then PackGroup.max_nodes is such that
 * it gets fewer when the problem is solved again. */
bool choose_loans(const Planner *p, const PackNode *nodes);
