/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The idle CPU nearest to a waiting thread, in the order in which the kernel steals (P2): SMT sibling of the
 * CPU it ran on last, same LLC, same node, then other nodes by distance. Ties go to the lowest number. Node
 * numbers play no part, so renaming nodes renames the result (I12).
 *
 * Each search walks over all idle CPUs: a few microseconds for 256 of them, and at most STEAL_SEARCHES_MAX
 * walks in a tick. Lists per LLC and node, updated from tick to tick, would be faster and more code. */

#include "plan/planner.h"

NearestSeeker nearest_seeker(const Planner *p, size_t task_index)
{
    const Task *task = &p->world->tasks[task_index];
    const Process *process = &p->world->processes[task->process.i];
    CpuMask due = p->s->tasks[task_index].due;
    bool known = topology_cpu(p->world->topology, task->last_cpu) &&
                 hwloc_bitmap_isset(due, (unsigned)task->last_cpu.i);

    return (NearestSeeker){
        .task = task,
        .process = process,
        .g = &p->s->groups[process->group.i],
        .policy = p->s->workloads[process->workload.i].policy,
        .home_node = p->s->tasks[task_index].apart ? p->s->tasks[task_index].home_node : NODE_NONE,
        .origin = known ? task->last_cpu : CPU_NONE,
    };
}

/* How far away a CPU is, from the origin if there is one, else from the home as a whole. */
static NearestFind measure(const Planner *p, const NearestSeeker *s, CpuIx cpu)
{
    const Topology *topology = p->world->topology;
    NodeIx node = topology->cpus[cpu.i].node;
    bool at_home = s->home_node.i >= 0 ? node.i == s->home_node.i
                                       : hwloc_bitmap_isset(s->g->home_nodes, (unsigned)node.i);
    NearestFind f = {.cpu = cpu, .reason = PLAN_REASON_INVALID, .cross_node = !at_home};

    if (s->origin.i >= 0) {
        f.level = topology_level(topology, s->origin, cpu);
        f.distance = topology_distance(topology, topology->cpus[s->origin.i].node, node);
    } else {
        f.level = at_home ? TOPOLOGY_LEVEL_NODE : TOPOLOGY_LEVEL_MACHINE;
        f.distance = s->home_node.i >= 0 ? topology_distance(topology, s->home_node, node)
                                         : planner_distance(topology, s->g->home_nodes, node);
    }
    return f;
}

NearestFind nearest_blocked(NearestFind f, PlanReason reason, uint64_t value, uint64_t limit)
{
    f.reason = reason;
    f.value = value;
    f.limit = limit;
    return f;
}

static TopologyLevel scope_level(int scope)
{
    static const TopologyLevel levels[POLICY_SCOPE_MAX] = {
        [POLICY_SCOPE_SMT] = TOPOLOGY_LEVEL_SMT,
        [POLICY_SCOPE_LLC] = TOPOLOGY_LEVEL_LLC,
        [POLICY_SCOPE_NODE] = TOPOLOGY_LEVEL_NODE,
        [POLICY_SCOPE_MACHINE] = TOPOLOGY_LEVEL_MACHINE,
    };

    return levels[scope];
}

/* How long the CPU is expected to stay idle: as long as it has been, or as its idle spells last on average. */
static uint64_t expected_idle_usec(const World *world, const CpuLoad *load)
{
    uint64_t spell = world->now_usec > load->idle_since_usec ? world->now_usec - load->idle_since_usec : 0;

    return MAX(spell, (uint64_t)load->idle_ewma_usec);
}

/* Whether this thread may have that idle CPU. Reasons that cannot change soon come first. */
static NearestFind judge(const Planner *p, const NearestSeeker *s, CpuIx cpu)
{
    const CpuLoad *load = &p->world->cpus[cpu.i];
    NearestFind f = measure(p, s, cpu);
    uint64_t idle = expected_idle_usec(p->world, load), cost;

    if (!hwloc_bitmap_isset(s->process->cpuset, (unsigned)cpu.i))
        return nearest_blocked(f, PLAN_REASON_CPUSET, 0, 0);
    if (f.level > scope_level(s->policy->scope))
        return nearest_blocked(f, PLAN_REASON_SCOPE, 0, 0);
    if (f.cross_node && p->n_cpu_nodes > s->policy->node_limit)
        return nearest_blocked(f, PLAN_REASON_NODE_LIMIT, p->n_cpu_nodes, s->policy->node_limit);
    if (f.cross_node && f.distance > s->policy->max_distance)
        return nearest_blocked(f, PLAN_REASON_MAX_DISTANCE, f.distance, s->policy->max_distance);
    if (p->s->cpus[cpu.i].cooling)
        return nearest_blocked(f, PLAN_REASON_COOLDOWN, 0, 0);
    if (__builtin_mul_overflow(p->world->action_cost_usec, (uint64_t)s->policy->idle_cost_ratio, &cost))
        cost = UINT64_MAX;
    if (idle < cost)
        return nearest_blocked(f, PLAN_REASON_IDLE_TOO_SHORT, idle, cost);
    return f;
}

static bool is_nearer(const NearestFind *a, const NearestFind *b)
{
    if (a->level != b->level)
        return a->level < b->level;
    if (a->distance != b->distance)
        return a->distance < b->distance;
    return a->cpu.i < b->cpu.i;
}

NearestFind nearest_find(const Planner *p, const NearestSeeker *s, bool cross_node)
{
    NearestFind best = {.cpu = CPU_NONE, .reason = PLAN_REASON_NO_IDLE_CPU};

    for (size_t i = 0; i < p->s->n_donors; i++) {
        NearestFind f = judge(p, s, p->s->donors[i]);
        bool good = f.reason == PLAN_REASON_INVALID, best_good = best.reason == PLAN_REASON_INVALID;

        if ((f.cross_node && !cross_node) || (best_good && !good))
            continue;
        if (best.cpu.i < 0 || (good && !best_good) ||
            (rule_holds(p->world, ABLATION_NEAREST) && is_nearer(&f, &best)))
            best = f;
    }
    if (best.reason != PLAN_REASON_INVALID)
        best.cpu = CPU_NONE;
    return best;
}
