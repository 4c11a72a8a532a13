/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Pushes threads that share a core, or are in the way of others, to an idle core of their home on another node (P4).
 *
 * The kernel puts a waking thread on an idle core, and pushes it to one of the same node. Across nodes it allows some
 * imbalance, and counts CPUs, not cores. So threads gathered on one node stay there when their home grows, and
 * siblings run at six tenths of their speed each: a greater loss than remote memory. Such a thread is pushed: its mask
 * is the idle CPU for a moment (act/masks/passage.c), and then its home again.
 *
 * Nor does the kernel see which thread is in the way. Of five threads on four CPUs, four have a home of one node, and
 * two of these share a CPU. The kernel looks for one to pull from that CPU, and neither may go. The fifth, whose home
 * has an idle CPU elsewhere, has a CPU of its own, and stays. It is pushed, too. But not for a waiting thread that may
 * use only some CPUs of the node: which one is freed is not ours to choose.
 *
 * A thread is pushed only if it runs all the time, on two ticks, and is still there when the push is made; only to a
 * core whose CPUs are all idle on both ticks and that no thread waits for; not while its own node has an idle core;
 * not in a plan that changes homes; and not again within MinResidencySec=. Pushes are moves across nodes, with their
 * limits. */

#include "plan/planner.h"

#include <string.h>

#define MECHANISM 4 /* P4 */

/* A thread or CPU busy for this part of a tick counts as never idle: the rest is for interrupts. */
#define BUSY_PERMILLE 900U

static bool runs_steadily(const Task *task)
{
    return MIN(task->run_permille, task->run_before_permille) >= BUSY_PERMILLE;
}

static PlannerCpu *core_of(const Planner *p, CpuIx cpu)
{
    return &p->s->cpus[p->world->topology->cpus[cpu.i].core.i];
}

static bool has_whole_node(Planner *p, const Task *task, NodeIx node)
{
    planner_note(p, hwloc_bitmap_and(p->s->set, p->world->topology->nodes[node.i].cpus, p->s->usable));
    return hwloc_bitmap_isincluded(p->s->set, task->allowed);
}

/* Counts the threads that wait on each node, on two ticks, may use all of its CPUs, so that any freed one
 * will do, and have no idle CPU to go to. */
static void count_waiting(Planner *p)
{
    const Topology *topology = p->world->topology;

    memset(p->s->node_waiting, 0, sizeof(p->s->node_waiting));
    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        const TopologyCpu *cpu = topology_cpu(topology, task->last_cpu);

        if (!task->gone && cpu && (uint32_t)cpu->node.i < PACK_NODES_MAX && task->allowed &&
            MIN(task->wait_permille, task->wait_before_permille) >= OVERLOAD_WAIT_PERMILLE &&
            !hwloc_bitmap_intersects(task->allowed, p->s->idle) && has_whole_node(p, task, cpu->node))
            p->s->node_waiting[cpu->node.i]++;
    }
}

/* Counts the CPUs of each core, and puts the nodes with shared cores into PlanScratch.nodes. */
static void count_cores(Planner *p)
{
    const Topology *topology = p->world->topology;

    for (uint32_t i = 0; i < topology->cpu_limit; i++)
        p->s->cpus[i].n_idle = p->s->cpus[i].n_busy = p->s->cpus[i].n_cpus = 0;
    for (uint32_t i = 0; i < topology->cpu_limit; i++) {
        const CpuLoad *load = &p->world->cpus[i];
        const PlannerCpu *cpu = &p->s->cpus[i];
        PlannerCpu *core;

        if (!topology->cpus[i].present || !load->online)
            continue;
        core = core_of(p, (CpuIx){(int32_t)i});
        core->n_cpus++;
        core->n_idle += hwloc_bitmap_isset(p->s->idle, i) && !cpu->claimed && !cpu->cooling && !cpu->owned;
        core->n_busy += MIN(load->busy_permille, load->busy_before_permille) >= BUSY_PERMILLE;
    }
    hwloc_bitmap_zero(p->s->nodes);
    for (uint32_t i = 0; i < topology->cpu_limit; i++)
        if (topology->cpus[i].present && core_of(p, (CpuIx){(int32_t)i})->n_busy > 1)
            planner_note(p, hwloc_bitmap_set(p->s->nodes, (unsigned)topology->cpus[i].node.i));
}

/* The lowest CPU of the nearest idle core of the home. Excluded are cores that cool down, that a thread comes
 * home to, that are in the home of a waiting thread, or on a node with shared cores, where the kernel fills
 * them. CPU_NONE if there is none, or if the thread's own node has an idle one. */
static CpuIx find_core(const Planner *p, CpuMask due, NodeIx node)
{
    const Topology *topology = p->world->topology;
    uint32_t nearest = UINT32_MAX;
    CpuIx best = CPU_NONE;

    for (int i = hwloc_bitmap_first(p->s->idle); i >= 0; i = hwloc_bitmap_next(p->s->idle, i)) {
        const PlannerCpu *core = core_of(p, (CpuIx){i});
        uint32_t distance = topology_distance(topology, node, topology->cpus[i].node);

        if (!hwloc_bitmap_isset(due, (unsigned)i) || core->n_idle < core->n_cpus)
            continue;
        if (topology->cpus[i].node.i == node.i)
            return CPU_NONE;
        if (distance >= nearest || hwloc_bitmap_isset(p->s->nodes, (unsigned)topology->cpus[i].node.i))
            continue;
        nearest = distance;
        best.i = i;
    }
    return best;
}

/* Whether the thread shares a core, or others wait on its node. */
static bool is_in_the_way(const Planner *p, const Task *task, NodeIx node)
{
    return core_of(p, task->last_cpu)->n_busy > 1 ||
           ((uint32_t)node.i < PACK_NODES_MAX && p->s->node_waiting[node.i] > 0);
}

static bool push(Planner *p, size_t index)
{
    const World *world = p->world;
    const Task *task = &world->tasks[index];
    const Process *process = &world->processes[task->process.i];
    CpuMask due = p->s->tasks[index].due;
    const TopologyCpu *cpu = topology_cpu(world->topology, task->last_cpu);
    const Policy *policy;
    uint64_t since;
    CpuIx to;

    if (task->gone || process->gone || process->group.i < 0 || task->fresh || !due || !cpu ||
        !hwloc_bitmap_isset(due, (unsigned)task->last_cpu.i) || task->allowed != due || !task->original ||
        task->lease >= 0 || !runs_steadily(task) || world->workloads[process->workload.i].paused)
        return true;
    policy = p->s->workloads[process->workload.i].policy;
    if (!p->s->groups[process->group.i].home || !policy->steal || !planner_placeable(policy, process, task) ||
        !is_in_the_way(p, task, cpu->node) || guard_residency(policy, task, world->now_usec, &since))
        return true;
    to = find_core(p, due, cpu->node);
    if (to.i < 0 || cap_reason(p, process->workload) != PLAN_REASON_INVALID)
        return true;
    if ((uint32_t)cpu->node.i < PACK_NODES_MAX && p->s->node_waiting[cpu->node.i] > 0)
        p->s->node_waiting[cpu->node.i]--;
    core_of(p, task->last_cpu)->n_busy -= core_of(p, task->last_cpu)->n_busy > 0;
    core_of(p, to)->n_idle--;
    hwloc_bitmap_clr(p->s->idle, (unsigned)to.i);
    p->s->workloads[process->workload.i].n_lent++;
    p->n_lent_host++;
    return planner_act(
        p, &(PlanAction){
               .kind = PLAN_KIND_PUSH,
               .rule = PLAN_RULE_IDLE_CORE,
               .mechanism = MECHANISM,
               .subject = world_task_key(world, task),
               .workload = process->workload,
               .group_id = world->groups[process->group.i].id,
               .from = task->allowed,
               .to = task->allowed,
               .cpu = to,
               .from_cpu = task->last_cpu,
               .cross_node = true,
               .distance = topology_distance(world->topology, cpu->node, world->topology->cpus[to.i].node),
               .value = task->run_permille,
               .limit = BUSY_PERMILLE,
           });
}

/* Whether homes change in this plan, or did in another at this instant. */
static bool homes_change(const Planner *p)
{
    for (size_t i = 0; i < p->plan->n_homes; i++)
        if (!p->plan->homes[i].judged)
            return true;
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (p->world->groups[i].last_home_usec >= p->world->now_usec)
            return true;
    return false;
}

void push_siblings(Planner *p)
{
    /* Where threads would run after moves that were only planned is not known. */
    if (p->limits->would || p->world->partial || homes_change(p) || !rule_holds(p->world, ABLATION_PUSH))
        return;
    if (hwloc_bitmap_iszero(p->s->idle))
        return;
    count_cores(p);
    count_waiting(p);
    for (size_t i = 0; i < p->world->n_tasks && planner_has_budget(p); i++)
        if (!push(p, i))
            return;
}
