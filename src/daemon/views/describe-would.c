/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What acting would do for workloads that are only observed (plan/would.h). For others the sets are empty. */

#include "daemon/views/describe.h"

#include "base/parse.h"
#include "daemon/views/objects.h"
#include "plan/group.h"
#include "plan/memory/follow.h"
#include "plan/would.h"

/* Of a CPU; a thread that runs less does not press on memory. */
#define RUNS_PERMILLE 100U

/* The group in the World of what acting would do; NULL: it is placed, or was not planned for yet. */
static const Group *would_group(const Manager *manager, const Group *group)
{
    return group && manager->would.world && manager_observes(manager, group->workload)
               ? world_group_by_id(manager->would.world, group->id)
               : NULL;
}

static void put_home(Dict *dict, const Manager *manager, CpuMask home, CpuMask nodes)
{
    dict_cpus(dict, "would_home", home);
    dict_nodes(dict, "would_home_nodes", manager->world->topology, nodes);
}

void describe_would_of_group(Dict *dict, const Manager *manager, const Group *group)
{
    const Group *would = would_group(manager, group);

    dict_bool(dict, "observed", manager_observes(manager, group->workload));
    put_home(dict, manager, would ? would->home : NULL, would ? would->home_nodes : NULL);
}

void describe_would_of_workload(Dict *dict, const Manager *manager, WorkloadIx workload)
{
    CLEANUP_BITMAP hwloc_bitmap_t home = manager_object_homes(manager, workload, would_group, false);
    CLEANUP_BITMAP hwloc_bitmap_t nodes = manager_object_homes(manager, workload, would_group, true);

    dict_check(dict, home && nodes ? 0 : -ENOMEM);
    dict_bool(dict, "observed", manager_observes(manager, workload));
    dict_cpus(dict, "would_home", home);
    dict_cpus(dict, "would_home_nodes", nodes);
}

static void put_local(Dict *dict, const char *key, uint32_t permille)
{
    if (permille != WOULD_UNKNOWN)
        dict_u32(dict, key, permille);
}

/* Whether it might be better to spread the threads. That depends on which thread uses which memory, for which
 * observed processes are not sampled. */
static bool may_spread(const Manager *manager, const Process *process)
{
    const Policy *policy = group_policy(manager->world, manager->policies, process->workload);
    size_t n, first = world_process_tasks(manager->world, process, &n), n_running = 0;

    for (size_t i = first; i < first + n; i++)
        n_running +=
            !manager->world->tasks[i].gone && manager->world->tasks[i].run_ewma_permille >= RUNS_PERMILLE;
    return policy && policy->mode == POLICY_MODE_AUTO && n_running > 1 &&
           manager->world->topology->n_nodes > 1;
}

static void put_gain(Dict *dict, const Manager *manager, const Process *process, const Group *would,
                     bool follows)
{
    bool spreads = may_spread(manager, process);
    GainSide side;
    WouldGain gain;

    uint32_t local = would_local_now(manager->world, process);

    if (local == WOULD_UNKNOWN || !gains_now(manager->gains, would->id, &side) || !side.local.known ||
        !side.waits.known ||
        !would_gain(
            manager->world, process, would, follows, spreads,
            &(WouldNow){.local = local, .local_noise = side.local.noise, .waits = side.waits.permille},
            &gain))
        return;
    dict_i32(dict, "would_gain_permille", gain.expected);
    dict_i32(dict, "would_gain_least_permille", gain.least);
    dict_i32(dict, "would_gain_most_permille", gain.most);
}

void describe_would_of_process(Dict *dict, const Manager *manager, const Process *process)
{
    const World *world = manager->world;
    const Group *group = process->group.i >= 0 ? &world->groups[process->group.i] : NULL;
    const Group *would = would_group(manager, group);
    const Policy *policy = group_policy(world, manager->policies, process->workload);
    bool follows;

    dict_bool(dict, "observed", manager_observes(manager, process->workload));
    put_home(dict, manager, would ? would->home : NULL, would ? would->home_nodes : NULL);
    put_local(dict, "local_permille", would_local_now(world, process));
    if (!would)
        return;
    dict_bool(dict, "would_spread_if_private", may_spread(manager, process));
    /* Memory that does not follow is left to the kernel. */
    follows = policy->follow && !follow_is_kernels(world, policy, process, would->home_nodes);
    put_local(dict, "would_local_permille", would_local_then(world, process, would, follows));
    put_gain(dict, manager, process, would, follows);
}
