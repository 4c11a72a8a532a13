/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which policy and which group a process belongs to. */

#include "policy/policy.h"
#include "world/world.h"

/* Makes World.workloads mirror the policy set: one workload per policy of Mode other than none, in the same order;
 * workloads that lost their policy lose their processes (their groups go, which plan_compute() answers with releases).
 * State of a workload whose policy keeps its name is kept. Returns 0 or -ENOMEM. */
int group_sync_workloads(World *world, const PolicySet *policies);

/* Puts a process into the group its policy says (GroupBy=), making it when needed. Returns 0 or -ENOMEM. */
int group_assign(World *world, const PolicySet *policies, Process *process, size_t policy_index);

/* What names the group of a process: its cgroup, its pid, written to `buf`, or "" where the policy is one group. */
#define GROUP_KEY_SIZE 16U
const char *group_key(const Policy *policy, const Process *process, char buf[GROUP_KEY_SIZE]);

/* The policy a workload, group or process is under; NULL: none. */
const Policy *group_policy(const World *world, const PolicySet *policies, WorkloadIx workload);
