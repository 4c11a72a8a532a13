/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The load of unplaced tasks is subtracted from the nodes where they run, as an average over some time: a share that
 * changes from tick to tick must not move a group. But groups that begin just now are not sent away by an average of
 * what was there before them. */

#include "plan/choose/nodes.h"

#include "world/load.h"

/* What is not known is taken as if nothing were used, and where not even sizes are told (descriptions of machines) as
 * enough: a packing that is too hopeful does no harm, because pages that find no room stay where they are. */
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
    uint32_t others = rule_holds(p->world, ABLATION_OTHERS) ? p->world->nodes[node].others_permille : 0;

    others = (others - (uint32_t)MIN(p->s->not_others[node], others) + 500) / 1000 * 1000;
    others += (uint32_t)MIN(p->s->bound_permille[node], permille);
    return MAX(permille - MIN(others, permille), permille / 10);
}

/* How much of what bound groups run is in the average of the others by now: all of it after LOAD_HOLD_USEC. What runs
 * in its home is not (load_nodes()). */
static void sum_bound(Planner *p, const uint64_t *ran)
{
    uint32_t n_nodes = p->world->topology->n_nodes;

    for (size_t i = 0; i < p->world->n_groups; i++) {
        const Group *group = &p->world->groups[i];
        uint64_t age = p->world->now_usec - MIN(group->first_seen_usec, p->world->now_usec);

        for (uint32_t n = 0; p->s->groups[i].bound && !group->roams && n < n_nodes; n++)
            if (!group->home_nodes || !hwloc_bitmap_isset(group->home_nodes, n))
                p->s->not_others[n] += ran[i * n_nodes + n] * MIN(age, LOAD_HOLD_USEC) / LOAD_HOLD_USEC;
    }
}

/* Whether it may get a home in this plan, if it has none. */
static bool may_get_home(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    const PlannerGroup *g = &p->s->groups[index];
    const PlannerWorkload *w;

    if (group->gone || group->workload.i < 0 || g->bound || g->put_off || g->idle || g->n_placeable == 0)
        return false;
    w = &p->s->workloads[group->workload.i];
    return w->blocked == PLAN_REASON_INVALID && !p->world->workloads[group->workload.i].paused &&
           policy_chooses_nodes(w->policy) &&
           (g->allowed & choose_nodes_of_policy(p->world->topology, w->policy)) != 0;
}

static bool is_placed(const Group *group)
{
    return group->home || group->roams;
}

/* How much it is one of those that ran among the others until now, in permille: wholly until it is placed, and less
 * and less from then on, as the average of the others forgets it. */
static uint64_t newness(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    uint64_t now = p->world->now_usec, age = MIN(now - MIN(group->placed_usec, now), LOAD_HOLD_USEC);

    if (!may_get_home(p, index))
        return 0;
    return is_placed(group) ? (LOAD_HOLD_USEC - age) * 1000 / LOAD_HOLD_USEC : 1000;
}

/* What is wanted of the CPUs of each node by those that load_nodes() takes for others, and what placed ones wait for
 * there. 0: not known, as where the kernel does not tell how long threads wait. */
static void sum_left(const Planner *p, uint64_t *left)
{
    for (uint32_t n = 0; n < p->world->topology->n_nodes; n++)
        left[n] = p->world->nodes[n].left_permille;
    for (int i = hwloc_bitmap_first(p->s->usable); i >= 0; i = hwloc_bitmap_next(p->s->usable, i)) {
        int32_t n = topology_cpu(p->world->topology, (CpuIx){i})->node.i;

        left[n] = left[n] > 0 && p->world->cpus[i].wait_known ? left[n] + p->world->cpus[i].wait_permille : 0;
    }
}

/* What of that is of groups which the packing counts, in this tick; and how much new ones ran. */
static void sum_known(const Planner *p, uint64_t *known, uint64_t *most)
{
    int32_t last = -1;
    uint64_t new = 0;

    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        int32_t index = p->world->processes[task->process.i].group.i;
        const TopologyCpu *cpu = topology_cpu(p->world->topology, task->last_cpu);
        const Group *group;
        bool packed;

        if (task->gone || index < 0 || !cpu || !p->world->cpus[task->last_cpu.i].usable)
            continue;
        group = &p->world->groups[index];
        new = index == last ? new : newness(p, (size_t)index);
        last = index;
        most[cpu->node.i] += MIN(task->run_permille, task->run_ewma_permille) * new / 1000;
        packed = new > 0 || p->s->groups[index].bound || is_placed(group);
        /* What is placed since this tick was still left when the tick was measured. */
        if (packed && (!is_placed(group) || group->placed_usec == p->world->now_usec))
            known[cpu->node.i] += task->run_permille;
        known[cpu->node.i] += packed ? task->wait_permille : 0;
    }
}

/* Groups that have no home yet ran among the others until now, and so did those before them whose CPUs they have: where
 * jobs come and go, the average of a node is of such jobs. There are no more others than want its CPUs beside them in
 * this tick, if that is less than the average; but by no more than they ran themselves is that lowered. */
static void sum_newcomers(Planner *p)
{
    uint64_t left[PACK_NODES_MAX], known[PACK_NODES_MAX] = {0}, most[PACK_NODES_MAX] = {0};

    if (!rule_holds(p->world, ABLATION_NEWCOMERS))
        return;
    sum_left(p, left);
    sum_known(p, known, most);
    for (uint32_t n = 0; n < p->world->topology->n_nodes; n++) {
        const NodeLoad *node = &p->world->nodes[n];
        uint64_t others = node->others_permille - MIN(p->s->not_others[n], node->others_permille);
        uint64_t beside = left[n] - MIN(known[n], left[n]);

        if (left[n] > 0 && beside < others)
            p->s->not_others[n] += MIN(most[n], others - beside);
    }
}

int choose_nodes_offer(Planner *p, const uint64_t *ran, PackNode *nodes)
{
    const Topology *topology = p->world->topology;
    hwloc_bitmap_t cores = p->s->set;

    sum_bound(p, ran);
    sum_newcomers(p);
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
        nodes[i].capacity_permille = choose_nodes_left(p, i, nodes[i].capacity_permille);
        nodes[i].cores_permille =
            rule_holds(p->world, ABLATION_SIBLINGS) ? choose_nodes_left(p, i, nodes[i].cores_permille) : 0;
    }
    return 0;
}

/* The last cpuset asked about is mostly the next one. */
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
