/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Groups of processes that share memory, GroupBy=auto and =shared-memory (P12). */

#include "policy/policy.h"
#include "world/world.h"

/* Brings the groups of workloads under such policies up to date with Process.shared: processes of one workload that map
 * the same memory or have threads in one group of the kernel's balancing, directly or through others, are one group; a
 * process of which nothing like that is known is a group of its own.
 *
 * A group stays the same while its members come and go. Where sharers were of several groups, the oldest goes on;
 * where a group falls apart, the most numerous part is what it was, among equals that with the lowest pid. Groups
 * that are left empty vanish in the next world_compact(). Call after each discovery. Returns 0 or -ENOMEM. */
int sharing_group(World *world, const PolicySet *policies);

/* Whether a process is in a group for the memory that it shares, which is to move although others map it. */
bool sharing_concerns(const Policy *policy, const Process *process);
