/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* First homes that prove to be too small (P15): private to this room. */

#include "plan/planner.h"

/* Its first home was given when it had only begun, and what it has started since does not fit, or what others have
 * that were met at the same time: threads wait there while CPUs elsewhere are idle. That was a guess of ours and is
 * taken back when two ticks in a row show it to be wrong, or one by far, whatever MinAgeSec= says of those who have
 * lived somewhere. The same goes for a second home, given for another reason; only as long as it is new. Threads are
 * counted last, since nothing of that helps on a full machine. */
bool outgrown_holds(const Planner *p, const Group *group);

/* Of any home, whenever it was given: its threads wait for more than a quarter of what they want, in two ticks in a
 * row, and CPUs elsewhere are idle. Where memory is, or is about to be, does not matter then. */
bool outgrown_starves(const Planner *p, const Group *group);

/* The same of one that is held after a to and fro. Once it has changed as often as is enough (PLANNER_CHANGES_MAX),
 * only if it wants a quarter more than when it got this home, or nearly twice what this has: who waits for others here
 * has tried enough. */
bool outgrown_breaks_out(const Planner *p, const Group *group);
