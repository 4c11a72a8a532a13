/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads that share a core, or are in the way of others, while another core of their home is idle (P4).
 *
 * The kernel puts a thread on an idle core where it wakes, and pushes it to one of the same node; over nodes it allows
 * some imbalance, and counts CPUs and not cores. So what a home gathered on one node stays there when the home grows,
 * with siblings that run at six tenths of their speed each, which is more than what far memory costs. Such a thread is
 * pushed: it is allowed only the idle CPU for a moment (act/masks/passage.c), and then its home again.
 *
 * Nor does it find who is in the way of others. Of five threads on four CPUs, four have a home of one node, and two of
 * these share a CPU. It looks for one to pull from that CPU, and neither may go. The fifth, whose home has an idle
 * CPU elsewhere, has a CPU of its own, and stays. It is pushed, too. Not for who may use but some CPUs of the node:
 * which of them is freed is not ours to say.
 *
 * Only threads that run all the time, on two ticks, and still there when it is done; only to cores all CPUs of which
 * are idle on both, and for which nobody waits; not while the node has an idle core itself; not in a plan that changes
 * homes; and each not again within MinResidencySec=. Pushes are moves across nodes, with the limits of these. */

#include "plan/planner.h"

#include <string.h>

#define MECHANISM 4 /* P4 */

/* Of a tick, a thread and a CPU that are not idle at all. What is left is for interrupts. */
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
    if (hwloc_bitmap_and(p->s->set, p->world->topology->nodes[node.i].cpus, p->s->usable) < 0)
        p->error = -ENOMEM;
    return hwloc_bitmap_isincluded(p->s->set, task->allowed);
}

/* How many wait on each node, on two ticks, who may use all of its CPUs, so that any that becomes free will do, and
 * have no idle one to go to. */
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

/* And, into PlanScratch.nodes, on which nodes cores are shared. */
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
        if (topology->cpus[i].present && core_of(p, (CpuIx){(int32_t)i})->n_busy > 1 &&
            hwloc_bitmap_set(p->s->nodes, (unsigned)topology->cpus[i].node.i) < 0)
            p->error = -ENOMEM;
}

/* The CPU with the lowest number of an idle core of its home, that nobody else is to have: neither who comes home to it
 * nor who waits at a home that it is part of, nor who shares a core of the same node, to whom the kernel gives it. The
 * nearest first; none when one is on its own node. */
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

static bool is_capped(const Planner *p, const Process *process, const Policy *policy)
{
    uint64_t now = p->world->now_usec;

    return !cap_has(&p->world->workloads[process->workload.i].cross_node, policy->cross_node_moves_per_sec,
                    policy->cross_node_burst, now, p->s->workloads[process->workload.i].n_lent) ||
           !cap_has(&p->world->cross_node, p->limits->cross_node_moves_per_sec, p->limits->cross_node_burst,
                    now, p->n_lent_host);
}

/* Whether it shares a core, or others wait on its node. */
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
    if (to.i < 0 || is_capped(p, process, policy))
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

/* By this plan, or one of this instant. */
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
    /* Where those would run whom nobody has moved is not known. */
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
