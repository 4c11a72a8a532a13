/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Shared by the mechanisms of a plan: its working memory, and how actions and refusals are appended. Arrays stay with
 * the Plan and only grow. */

#include "plan/planner.h"

#include <string.h>

static bool prepare_arrays(PlanScratch *s, const World *world)
{
    size_t n_cpus = MAX(world->topology->cpu_limit, 1U), n_nodes = MAX(world->topology->n_nodes, 1U);

    if (!GROW(s->cpus, s->cpus_capacity, n_cpus) || !GROW(s->donors, s->donors_capacity, n_cpus) ||
        !GROW(s->node_waits, s->node_waits_capacity, n_nodes) ||
        !GROW(s->workloads, s->workloads_capacity, MAX(world->n_workloads, 1U)) ||
        !GROW(s->groups, s->groups_capacity, MAX(world->n_groups, 1U)) ||
        !GROW(s->processes, s->processes_capacity, MAX(world->n_processes, 1U)) ||
        !GROW(s->tasks, s->tasks_capacity, MAX(world->n_tasks, 1U)) ||
        !GROW(s->order, s->order_capacity, MAX(MAX(world->n_groups, world->n_leases), 1U)) ||
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): elements are pointers */
        !GROW(s->node_due, s->node_due_capacity, n_nodes))
        return false;

    memset(s->cpus, 0, n_cpus * sizeof(*s->cpus));
    memset(s->node_waits, 0, n_nodes * sizeof(*s->node_waits));
    memset(s->workloads, 0, world->n_workloads * sizeof(*s->workloads));
    memset(s->groups, 0, world->n_groups * sizeof(*s->groups));
    memset(s->processes, 0, world->n_processes * sizeof(*s->processes));
    s->node_due_of = NULL; /* so node_due is cleared before its first use */
    for (size_t i = 0; i < world->n_tasks; i++)
        s->tasks[i] = (PlannerTask){.home_node = world->tasks[i].home_node, .unit = UINT32_MAX};
    s->n_candidates = s->n_order = s->n_donors = 0;
    return true;
}

static bool prepare_bitmaps(PlanScratch *s)
{
    hwloc_bitmap_t *const all[] = {&s->usable, &s->idle, &s->set, &s->nodes};

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        if (!*all[i])
            *all[i] = hwloc_bitmap_alloc();
        if (!*all[i])
            return false;
        hwloc_bitmap_zero(*all[i]);
    }
    return true;
}

int planner_prepare(Planner *p)
{
    const Topology *topology = p->world->topology;
    PlanScratch *s;

    if (!p->plan->scratch)
        p->plan->scratch = calloc(1, sizeof(*p->plan->scratch));
    s = p->s = p->plan->scratch;
    if (!s || !prepare_arrays(s, p->world) || !prepare_bitmaps(s))
        return -ENOMEM;

    for (uint32_t i = 0; i < topology->cpu_limit; i++) {
        s->cpus[i].lease = -1;
        s->cpus[i].cooling = p->world->cpus[i].cooldown_until_usec > p->world->now_usec;
        if (p->world->cpus[i].usable && hwloc_bitmap_set(s->usable, i) < 0)
            return -ENOMEM;
    }
    for (size_t i = 0; i < p->world->n_leases; i++)
        s->cpus[p->world->leases[i].cpu.i].lease = (int32_t)i;
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        p->n_cpu_nodes += topology->nodes[i].n_cpus > 0;
    return 0;
}

CpuMask planner_intern(Planner *p, hwloc_const_bitmap_t set)
{
    CpuMask mask = hwloc_bitmap_iszero(set) ? NULL : intern_mask(p->world->pool, set);

    planner_note(p, mask || hwloc_bitmap_iszero(set) ? 0 : -ENOMEM);
    return mask;
}

bool planner_act(Planner *p, const PlanAction *action)
{
    int r = APPEND(p->plan->actions, p->plan->actions_capacity, p->plan->n_actions, *action);

    planner_note(p, r);
    p->n_spent += r == 0 && plan_kind_traits(action->kind)->spends;
    return r == 0;
}

void planner_refuse(Planner *p, const PlanRefusal *refusal)
{
    Plan *plan = p->plan;

    plan->n_refused[refusal->reason]++;
    if (plan->n_refusals < PLAN_REFUSALS_MAX)
        planner_note(p, APPEND(plan->refusals, plan->refusals_capacity, plan->n_refusals, *refusal));
}

void planner_refuse_group(Planner *p, uint8_t mechanism, PlanReason reason, const Group *group,
                          uint64_t value, uint64_t limit)
{
    planner_refuse(p, &(PlanRefusal){
                          .reason = reason,
                          .mechanism = mechanism,
                          .workload = group->workload,
                          .group_id = group->id,
                          .cpu = CPU_NONE,
                          .value = value,
                          .limit = limit,
                      });
}

/* A refusal about a process or one of its threads. */
static void refuse(Planner *p, uint8_t mechanism, PlanReason reason, TaskKey subject, const Process *process,
                   uint64_t value, uint64_t limit)
{
    planner_refuse(p, &(PlanRefusal){
                          .reason = reason,
                          .mechanism = mechanism,
                          .subject = subject,
                          .workload = process->workload,
                          .group_id = process->group.i >= 0 ? p->world->groups[process->group.i].id : 0,
                          .cpu = CPU_NONE,
                          .value = value,
                          .limit = limit,
                      });
}

void planner_refuse_process(Planner *p, uint8_t mechanism, PlanReason reason, const Process *process,
                            uint64_t value, uint64_t limit)
{
    refuse(p, mechanism, reason, planner_process_key(process), process, value, limit);
}

void planner_refuse_task(Planner *p, uint8_t mechanism, PlanReason reason, const Task *task, uint64_t value,
                         uint64_t limit)
{
    refuse(p, mechanism, reason, world_task_key(p->world, task), &p->world->processes[task->process.i], value,
           limit);
}

bool planner_has_budget(const Planner *p)
{
    return p->n_spent < PLAN_ACTIONS_PER_TICK;
}

TaskKey planner_process_key(const Process *process)
{
    return (TaskKey){.pid = process->pid, .start_ticks = process->start_ticks};
}

int planner_order_compare(const void *a, const void *b)
{
    const PlannerOrder *x = a, *y = b;

    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return x->tie < y->tie ? -1 : x->tie > y->tie;
}

bool planner_placeable(const Policy *policy, const Process *process, const Task *task)
{
    if (task->gone || process->gone || process->yielded || task->task_class == TASK_CLASS_DEADLINE)
        return false;
    return task->hands == TASK_HANDS_FREE ||
           (task->hands == TASK_HANDS_FOREIGN &&
            (task->original || (policy && policy->foreign_affinity == POLICY_FOREIGN_OVERRIDE)));
}

bool planner_can_put_back(const Task *task)
{
    return task->hands != TASK_HANDS_UNKNOWN && task->hands != TASK_HANDS_DENIED;
}

void planner_take_back(Planner *p, CpuIx cpu)
{
    p->s->cpus[cpu.i].lease = -1;
    p->s->cpus[cpu.i].cooling = true;
}

uint32_t planner_distance(const Topology *topology, CpuMask nodes, NodeIx node)
{
    uint32_t nearest = 0;

    for (int i = nodes ? hwloc_bitmap_first(nodes) : -1; i >= 0; i = hwloc_bitmap_next(nodes, i)) {
        uint32_t d = topology_distance(topology, (NodeIx){i}, node);

        if (nearest == 0 || d < nearest)
            nearest = d;
    }
    return nearest;
}

/* One CPU in this many may press on the memory of their nodes. */
#define PRESSES_PART 4U

/* The allowed imbalance is at most this part of a node's CPUs. A choice of ours: where each CPU or two has a
 * cache of its own, as in guests, one task for each cache would fill the node. */
#define ALLOWED_PART 2U

uint32_t planner_allowed_imbalance(const Topology *topology)
{
    uint32_t n_nodes = 0, most;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        n_nodes += topology->nodes[i].n_cpus > 0;
    most = MAX(topology->n_cpus / MAX(n_nodes, 1U) / ALLOWED_PART, 1U);
    for (uint32_t i = 0; i < topology->n_domains; i++)
        if (topology->domains[i].numa)
            return MIN(topology->domains[i].imb_numa_nr, most);
    return 0;
}

bool planner_is_kernels(const World *world, const Policy *policy, bool hidden)
{
    return rule_holds(world, ABLATION_BESIDE) && world->kernel_balances &&
           (hidden || world->use_hidden || policy->mode == POLICY_MODE_INTERLEAVE ||
            !policy_locates_use(policy));
}

bool planner_presses(const Topology *topology, CpuMask cpus, CpuMask nodes, uint64_t permille)
{
    uint64_t n_nodes = (uint64_t)MAX(hwloc_bitmap_weight(nodes), 1);

    return permille > planner_allowed_imbalance(topology) * n_nodes * 1000 &&
           permille * PRESSES_PART > (uint64_t)MAX(hwloc_bitmap_weight(cpus), 0) * 1000;
}
