/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which policy and which group a process belongs to. */

#include "policy/policy.h"
#include "world/world.h"

/* Makes World.workloads mirror the policy set: one workload per policy with a Mode other than none, in the
 * same order. Workloads that lost their policy lose their processes and groups; plan_compute() then releases
 * these processes. A workload whose policy keeps its name keeps its state. Returns 0 or -ENOMEM. */
int group_sync_workloads(World *world, const PolicySet *policies);

/* Puts a process into the group that its policy says (GroupBy=), which is made if needed; a process without a
 * workload leaves its group. Returns 0 or -ENOMEM. */
int group_assign(World *world, const PolicySet *policies, Process *process, size_t policy_index);

/* The name of a process's group: its cgroup, its pid, written to `buf`, or "" where the policy is one group. */
#define GROUP_KEY_SIZE 16U
const char *group_key(const Policy *policy, const Process *process, char buf[GROUP_KEY_SIZE]);

/* The policy of a workload; NULL: none. */
const Policy *group_policy(const World *world, const PolicySet *policies, WorkloadIx workload);
