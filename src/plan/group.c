/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Workloads follow the policies, groups follow GroupBy=. A workload is known by the name of its policy, so a reload
 * that keeps a name keeps its groups, homes, leases, buckets and counters.
 *
 * When a policy disappears, its processes lose their group. The next plan releases every process that has masks of ours
 * and no group. */

#include "plan/group.h"

#include <stdio.h>
#include <string.h>

const Policy *group_policy(const World *world, const PolicySet *policies, WorkloadIx workload)
{
    uint32_t index;

    if (workload.i < 0 || (size_t)workload.i >= world->n_workloads)
        return NULL;
    index = world->workloads[workload.i].policy;
    return index < policies->n_policies ? policies->policies[index] : NULL;
}

/* Makes the workloads that the policies want; `map` says where each present one goes, -1: nowhere. */
static int make_workloads(World *world, const PolicySet *policies, Workload *workloads, size_t *ret_n,
                          WorkloadIx *map)
{
    size_t n = 0;

    for (size_t i = 0; i < policies->n_policies; i++) {
        const Policy *policy = policies->policies[i];
        const Workload *old;

        if (policy->mode == POLICY_MODE_NONE)
            continue;
        old = world_workload_by_name(world, policy->name);
        if (old) {
            map[old - world->workloads].i = (int32_t)n;
            workloads[n] = *old;
        } else {
            workloads[n] = (Workload){.name = intern_string(world->pool, policy->name)};
            if (!workloads[n].name)
                return -ENOMEM;
        }
        workloads[n++].policy = (uint32_t)i;
    }
    *ret_n = n;
    return 0;
}

static void drop_leases_of(World *world, uint64_t group_id)
{
    for (size_t i = world->n_leases; i > 0; i--)
        if (world->leases[i - 1].group_id == group_id)
            world_remove_lease(world, i - 1);
}

/* Groups move down in place; `groups` says where each went, -1: nowhere. */
static void renumber_groups(World *world, const WorkloadIx *workloads, GroupIx *groups)
{
    size_t n = 0;

    for (size_t i = 0; i < world->n_groups; i++) {
        Group group = world->groups[i];

        group.workload = workloads[group.workload.i];
        groups[i] = GROUP_NONE;
        if (group.workload.i < 0) {
            drop_leases_of(world, group.id);
            continue;
        }
        groups[i].i = (int32_t)n;
        world->groups[n++] = group;
    }
    world->n_groups = n;
}

static void renumber_processes(World *world, const WorkloadIx *workloads, const GroupIx *groups)
{
    for (size_t i = 0; i < world->n_processes; i++) {
        Process *process = &world->processes[i];

        if (process->group.i >= 0)
            process->group = groups[process->group.i];
        if (process->workload.i >= 0)
            process->workload = workloads[process->workload.i];
    }
}

int group_sync_workloads(World *world, const PolicySet *policies)
{
    CLEANUP_FREE Workload *workloads = calloc(MAX(policies->n_policies, (size_t)1), sizeof(*workloads));
    CLEANUP_FREE WorkloadIx *map = calloc(MAX(world->n_workloads, (size_t)1), sizeof(*map));
    CLEANUP_FREE GroupIx *groups = calloc(MAX(world->n_groups, (size_t)1), sizeof(*groups));
    size_t n;
    int r;

    if (!workloads || !map || !groups)
        return -ENOMEM;
    for (size_t i = 0; i < world->n_workloads; i++)
        map[i] = WORKLOAD_NONE;
    r = make_workloads(world, policies, workloads, &n, map);
    if (r < 0)
        return r;

    renumber_groups(world, map, groups);
    renumber_processes(world, map, groups);
    free(world->workloads);
    world->workloads = TAKE_PTR(workloads);
    world->n_workloads = n;
    world->workloads_capacity = MAX(policies->n_policies, (size_t)1);
    world_sum(world);
    return 0;
}

const char *group_key(const Policy *policy, const Process *process, char buf[GROUP_KEY_SIZE])
{
    switch (policy_group_by(policy)) {
    case POLICY_GROUP_BY_CGROUP:
        return process->cgroup ? process->cgroup : "/";
    case POLICY_GROUP_BY_AUTO:
    case POLICY_GROUP_BY_PROCESS:
    case POLICY_GROUP_BY_SHARED_MEMORY:
        (void)snprintf(buf, GROUP_KEY_SIZE, "%d", (int)process->pid);
        return buf;
    default:
        return "";
    }
}

/* Interned keys are compared by address, so no string is read, however many groups there are. */
static int find_group(World *world, WorkloadIx workload, const char *key)
{
    const char *interned = intern_string(world->pool, key);

    if (!interned)
        return -ENOMEM;
    for (size_t i = 0; i < world->n_groups; i++)
        if (world->groups[i].key == interned && world->groups[i].workload.i == workload.i &&
            !world->groups[i].gone)
            return (int)i;
    return world_add_group(world, workload, interned);
}

/* Which processes share memory is found out later (plan/home/sharing.h). Until then a process is alone in a
 * group made for it. An existing group with its pid as key may belong to others, which shared memory with an
 * earlier process of that pid. */
static int find_own_group(World *world, WorkloadIx workload, const Process *process, const char *key)
{
    GroupIx group = process->group;

    if (group.i >= 0 && process->workload.i == workload.i && !world->groups[group.i].gone)
        return group.i;
    return world_add_group(world, workload, key);
}

int group_assign(World *world, const PolicySet *policies, Process *process, size_t policy_index)
{
    WorkloadIx workload = WORKLOAD_NONE;
    const Policy *policy;
    const char *key;
    char buf[GROUP_KEY_SIZE];
    int group;

    for (size_t i = 0; i < world->n_workloads; i++)
        if (world->workloads[i].policy == policy_index)
            workload.i = (int32_t)i;
    if (workload.i < 0 || policy_index >= policies->n_policies) {
        process->workload = WORKLOAD_NONE;
        process->group = GROUP_NONE;
        return 0;
    }

    policy = policies->policies[policy_index];
    key = group_key(policy, process, buf);
    group = policy_groups_sharers(policy) ? find_own_group(world, workload, process, key)
                                          : find_group(world, workload, key);
    if (group < 0)
        return group;
    process->workload = workload;
    process->group = (GroupIx){group};
    return 0;
}
