/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* First homes that prove to be too small (P15): private to this room. */

#include "plan/planner.h"

/* Whether a first home, given when the group had only begun, has proved too small: its threads wait while
 * CPUs elsewhere are idle, because it, or groups first seen at the same time, have started more since. Such a
 * guess is taken back when two ticks in a row show it to be wrong, or one by far, whatever MinAgeSec= says of
 * groups with a home. So is a second home, given for another reason, while the group is new. Threads are
 * walked last, since on a full machine none of this helps. */
bool outgrown_holds(const Planner *p, const Group *group);

/* Whether threads of a group wait for more than a quarter of what they want, on two ticks in a row, while CPUs
 * elsewhere are idle; in any home, whenever it was given. Where memory is, or is about to be, does not matter then. */
bool outgrown_starves(const Planner *p, const Group *group);

/* The same for a group that is held after a to and fro. Once its home has changed often enough
 * (PLANNER_CHANGES_MAX), only if it wants a quarter more than when it got this home, or nearly twice what
 * this has: a group that waits because of others here has tried enough. */
bool outgrown_breaks_out(const Planner *p, const Group *group);
