/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Groups of processes that share memory, GroupBy=auto and =shared-memory, and what a cgroup that does not fit on a node
 * falls apart into, GroupBy=cgroup (P12). */

#include "policy/policy.h"
#include "world/world.h"

/* Brings the groups of workloads under such policies up to date with Process.shared: processes of one workload that map
 * the same memory or have threads in one group of the kernel's balancing, directly or through others, are one group; a
 * process of which nothing like that is known is a group of its own. A cgroup of a policy that policy_parts_groups() is
 * one group while it fits on a node; its threads that are new want a CPU each.
 *
 * A group stays the same while its members come and go. Where sharers were of several groups, the oldest goes on;
 * where a group falls apart, the most numerous part is what it was, among equals that with the lowest pid. Groups
 * that are left empty vanish in the next world_compact(). Call after each discovery. Returns 0 or -ENOMEM. */
int sharing_group(World *world, const PolicySet *policies);

/* Whether memory of a process that others map as well is to move with it: others are in its group for that, or somebody
 * has said that whoever shares memory belongs together. */
bool sharing_moves(const World *world, const Policy *policy, const Process *process);
