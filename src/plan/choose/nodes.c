/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What others leave of each node to the groups to be packed. Load that nobody manages is an average over some
 * time, since a share that changes from tick to tick must not move a group. A group that is about to get a
 * home is none of the others, wherever it runs now. */

#include "plan/choose/nodes.h"
#include "plan/choose/memory.h"

#include <string.h>

/* Unknown free memory is taken as all of it, and where not even sizes are told (descriptions of machines) as
 * enough. A packing that is too hopeful does no harm, because pages that find no room stay where they are. */
static uint64_t free_memory(const World *world, uint32_t node)
{
    uint64_t size = world->topology->nodes[node].memory_bytes;

    for (uint32_t i = 0; i < world->topology->n_nodes && size == 0; i++)
        if (world->topology->nodes[i].memory_bytes > 0)
            return 0;
    return world->nodes[node].free_known ? world->nodes[node].free_bytes : size > 0 ? size : WORLD_MEMORY_MAX;
}

uint32_t choose_nodes_left(const Planner *p, uint32_t node, uint32_t permille)
{
    uint64_t others = p->world->nodes[node].others_permille + p->s->unpacked_permille[node];

    others = rule_holds(p->world, ABLATION_OTHERS) ? (others + 500) / 1000 * 1000 : 0;
    others += p->s->bound_permille[node];
    return MAX(permille - (uint32_t)MIN(others, permille), permille / 10);
}

/* Whether the group has no home when this plan is carried out, and will get none, so that it runs where it likes. */
static bool is_unpacked(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    const PlannerGroup *g = &p->s->groups[index];
    const PlannerWorkload *w = &p->s->workloads[group->workload.i];

    if (group->gone || g->bound || g->n_placeable == 0)
        return false;
    if (w->blocked != PLAN_REASON_INVALID)
        return true;
    if (p->world->workloads[group->workload.i].paused)
        return !group->home && !group->roams;
    return policy_chooses_nodes(w->policy)
               ? (g->allowed & choose_nodes_of_policy(p->world->topology, w->policy)) == 0
               : !w->home_nodes;
}

/* Adds what the group wants, in the proportions in which it runs on the nodes. */
static void add_unpacked(Planner *p, size_t index, const uint64_t *ran)
{
    uint32_t n_nodes = p->world->topology->n_nodes;
    uint64_t sum = world_sum_nodes(p->world, ran);

    for (uint32_t n = 0; n < n_nodes && sum > 0; n++)
        p->s->unpacked_permille[n] += ran[n] * MAX(demand_given(p, index), sum) / sum;
}

static void sum_unpacked(Planner *p, const uint64_t *ran)
{
    memset(p->s->unpacked_permille, 0, sizeof(p->s->unpacked_permille));
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (is_unpacked(p, i))
            add_unpacked(p, i, ran + i * p->world->topology->n_nodes);
}

/* The bandwidth that others leave on each node, at least a hundredth of it. A node without memory, or of
 * which it is not known, would seem to be the best of all; if there is one, no node states its bandwidth. */
static void offer_bandwidth(const Planner *p, PackNode *nodes)
{
    const Topology *topology = p->world->topology;
    uint64_t others[PACK_NODES_MAX];

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (nodes[i].capacity_permille > 0 && topology->nodes[i].bandwidth_mb == 0)
            return;
    choose_memory_traffic_on(p, false, others);
    for (uint32_t i = 0; i < topology->n_nodes && rule_holds(p->world, ABLATION_TRAFFIC); i++) {
        uint64_t all = topology->nodes[i].bandwidth_mb;

        nodes[i].traffic_mb = MAX(all - MIN(others[i], all), all / 100);
    }
}

int choose_nodes_offer(Planner *p, const uint64_t *ran, PackNode *nodes)
{
    const Topology *topology = p->world->topology;
    hwloc_bitmap_t cores = p->s->set;

    sum_unpacked(p, ran);
    hwloc_bitmap_zero(cores);
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        nodes[i] = (PackNode){.key = UINT32_MAX - i, .free_bytes = free_memory(p->world, i)};
    for (uint32_t i = topology->cpu_limit; i > 0; i--) {
        const TopologyCpu *cpu = topology_cpu(topology, (CpuIx){(int32_t)i - 1});

        if (!cpu || !hwloc_bitmap_isset(p->s->usable, i - 1))
            continue;
        nodes[cpu->node.i].capacity_permille += 1000;
        nodes[cpu->node.i].cores_permille += hwloc_bitmap_isset(cores, (unsigned)cpu->core.i) ? 0 : 1000;
        nodes[cpu->node.i].key = i - 1;
        if (hwloc_bitmap_set(cores, (unsigned)cpu->core.i) < 0)
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        nodes[i].size_permille = nodes[i].capacity_permille;
        nodes[i].capacity_permille = choose_nodes_left(p, i, nodes[i].capacity_permille);
        nodes[i].cores_permille =
            rule_holds(p->world, ABLATION_SIBLINGS) ? choose_nodes_left(p, i, nodes[i].cores_permille) : 0;
    }
    offer_bandwidth(p, nodes);
    return 0;
}

/* Processes mostly have the cpuset of the one before, so the last answer is kept. */
int choose_nodes_allowed(Planner *p)
{
    CpuMask last = NULL;
    PackNodes nodes = 0;

    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];

        if (process->gone || process->group.i < 0 || !process->cpuset)
            continue;
        if (process->cpuset != last) {
            last = process->cpuset;
            nodes = 0;
            for (uint32_t n = 0; n < p->world->topology->n_nodes; n++) {
                if (hwloc_bitmap_and(p->s->set, last, p->world->topology->nodes[n].cpus) < 0)
                    return -ENOMEM;
                if (hwloc_bitmap_intersects(p->s->set, p->s->usable))
                    nodes |= (PackNodes)1 << n;
            }
        }
        p->s->groups[process->group.i].allowed |= nodes;
    }
    return 0;
}

PackNodes choose_nodes_of_policy(const Topology *topology, const Policy *policy)
{
    PackNodes nodes = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (!policy->nodes || hwloc_bitmap_isset(policy->nodes, topology->nodes[i].os_index))
            nodes |= (PackNodes)1 << i;
    return nodes;
}

uint32_t choose_nodes_imbalance(const Planner *p)
{
    const Topology *topology = p->world->topology;
    uint32_t allowed = rule_holds(p->world, ABLATION_IMBALANCE) ? CONF_AUTO : 0;

    for (size_t i = 0; i < p->s->n_order; i++) {
        const Group *group = &p->world->groups[p->s->order[i].index];

        allowed = MIN(allowed, p->s->workloads[group->workload.i].policy->allowed_imbalance);
    }
    if (allowed == CONF_AUTO)
        allowed = planner_allowed_imbalance(topology);
    return MIN(allowed, PACK_DEMAND_MAX / 1000) * 1000;
}
