/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Groups of processes that share memory, for GroupBy=auto and =shared-memory, and the parts of a cgroup that
 * does not fit on one node, for GroupBy=cgroup (P12). */

#include "policy/policy.h"
#include "world/world.h"

/* Updates the groups of workloads under such policies from Process.shared. Processes of one workload are one group if
 * they map the same memory or have threads in one group of the kernel's balancing, directly or through others. A
 * process without such links is a group of its own. A cgroup whose policy satisfies policy_parts_groups() is one group
 * while it fits on a node; each of its new threads counts as wanting a CPU.
 *
 * A group stays the same while its members come and go. Where groups join, the oldest goes on. Where a group falls
 * apart, its most numerous part keeps it; among equals, the part with the lowest PID. Empty groups vanish in the next
 * world_compact(). Call after each discovery. Returns 0 or -ENOMEM. */
int sharing_group(World *world, const PolicySet *policies);

/* Whether memory of a process that others map as well is to move with it: they are in its group for that
 * reason, or the policy says that all processes that share memory belong together. */
bool sharing_moves(const World *world, const Policy *policy, const Process *process);
