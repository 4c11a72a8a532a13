/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads that crowd on few nodes of their home, on siblings of one core, while cores of its other nodes are idle (P15,
 * spread). Nobody waits for a CPU then, so nothing is stolen.
 *
 * It comes about when a home is given or grows. Linux moves a thread whose CPU is no longer allowed to the CPU after
 * the one that it gave last (__set_cpus_allowed_ptr(), cpumask_any_and_distribute()), and so several to the same node.
 * Later only the load balancing across nodes would move them. That looks at the busiest node alone, and gives up when
 * its threads may not come, because they are of another group that lives there.
 *
 * So each thread is given a node, as many to each as the packing takes it to hold, until the first slow tick at which
 * they do not crowd. Then it may use the whole home again. That is done as long as the home has not been judged. */

#include "plan/buddies.h"
#include "plan/planner.h"

/* So many cores must have two busy CPUs on one node, and none on another, in two ticks in a row: of one the kernel's
 * own choice at the next wakeup is as good. */
#define CORES_MIN 2U

/* For so long a home is to have been as it is, so that all that was measured was measured in it. A choice of ours. */
#define MEASURED_USEC 500000U

/* Of a tick; who runs less is placed anew by the kernel when it wakes. */
#define BUSY_PERMILLE 500U

static bool is_busy(const CpuLoad *cpu)
{
    return MIN(cpu->busy_permille, cpu->busy_before_permille) >= BUSY_PERMILLE;
}

static bool was_idle(const CpuLoad *cpu)
{
    return MAX(cpu->busy_permille, cpu->busy_before_permille) < BUSY_PERMILLE;
}

/* Of one node, busy CPUs beyond the first of each core, and cores without any. Siblings are numbered far apart on most
 * machines. */
static void count_cores(const Planner *p, CpuMask cpus, uint32_t *ret_shared, uint32_t *ret_idle)
{
    const Topology *topology = p->world->topology;

    *ret_shared = *ret_idle = 0;
    for (int i = hwloc_bitmap_first(cpus); i >= 0; i = hwloc_bitmap_next(cpus, i)) {
        uint32_t n_busy = 0, n_idle = 0, n_before = 0, n = 0;

        for (int k = hwloc_bitmap_first(cpus); k >= 0; k = hwloc_bitmap_next(cpus, k)) {
            if (topology->cpus[k].core.i != topology->cpus[i].core.i ||
                !hwloc_bitmap_isset(p->s->usable, (unsigned)k))
                continue;
            n_before += k < i;
            n_busy += is_busy(&p->world->cpus[k]);
            n_idle += was_idle(&p->world->cpus[k]);
            n++;
        }
        if (n_before > 0 || n == 0)
            continue;
        *ret_shared += n_busy > 1 ? n_busy - 1 : 0;
        *ret_idle += n_idle == n;
    }
}

static bool is_lopsided(const Planner *p, CpuMask home_nodes)
{
    uint32_t shared = 0, idle = 0;

    for (int i = hwloc_bitmap_first(home_nodes); i >= 0; i = hwloc_bitmap_next(home_nodes, i)) {
        uint32_t s, n;

        count_cores(p, p->world->topology->nodes[i].cpus, &s, &n);
        shared = MAX(shared, s);
        idle = MAX(idle, n);
    }
    return MIN(shared, idle) >= CORES_MIN;
}

static bool may_deal(const Planner *p, const Group *group, const PlannerGroup *g)
{
    return !group->gone && g->packed && g->home && g->home == group->home &&
           p->world->now_usec < group->judge_usec &&
           p->world->now_usec - MIN(group->last_home_usec, p->world->now_usec) >= MEASURED_USEC &&
           !p->world->workloads[group->workload.i].paused && hwloc_bitmap_weight(g->home_nodes) > 1 &&
           is_lopsided(p, g->home_nodes);
}

/* It may go anywhere in the home, and needs a CPU. */
static bool is_free(const Planner *p, const Policy *policy, const Process *process, const Task *task)
{
    return planner_placeable(policy, process, task) && p->s->tasks[task - p->world->tasks].home_node.i < 0 &&
           task->run_permille >= BUSY_PERMILLE;
}

/* The node with most left; among equals that with the lowest CPU, however nodes are numbered (I12). */
static NodeIx most_left(const Topology *topology, const uint64_t *parts)
{
    NodeIx best = NODE_NONE;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].n_cpus > 0 &&
            (best.i < 0 || parts[i] > parts[best.i] ||
             (parts[i] == parts[best.i] && hwloc_bitmap_first(topology->nodes[i].cpus) <
                                               hwloc_bitmap_first(topology->nodes[best.i].cpus))))
            best.i = (int32_t)i;
    return best;
}

static void deal_group(Planner *p, size_t index)
{
    const World *world = p->world;
    const Policy *policy = p->s->workloads[world->groups[index].workload.i].policy;
    uint64_t *parts = p->s->parts + index * world->topology->n_nodes;

    for (size_t i = 0; i < world->n_tasks; i++) {
        const Task *task = &world->tasks[i];
        const Process *process = &world->processes[task->process.i];
        PlannerTask *t = &p->s->tasks[i];
        NodeIx node;

        if (process->group.i != (int32_t)index || process->gone || !is_free(p, policy, process, task))
            continue;
        node = most_left(world->topology, parts);
        parts[node.i] -= MIN(parts[node.i], buddies_demand(task));
        t->due = planner_node_mask(p, t->due, node);
        t->dealt = true;
    }
}

void deal_masks(Planner *p)
{
    if (!rule_holds(p->world, ABLATION_DEAL) || p->s->n_parts == 0)
        return;
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (may_deal(p, &p->world->groups[i], &p->s->groups[i]))
            deal_group(p, i);
}
