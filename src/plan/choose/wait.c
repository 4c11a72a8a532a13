/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When a group gets its first home (P4, P15): before the next slow tick, or later than that. */

#include "plan/choose/wait.h"
#include "plan/choose/choose.h"
#include "plan/choose/memory.h"
#include "plan/choose/nodes.h"
#include "plan/choose/outgrown.h"
#include "plan/group.h"
#include "plan/pack/pack.h"
#include "world/load.h"

/* Demand for all CPUs that is in vain: a quarter more than there is (pack.h). */
#define IN_VAIN_PERMILLE (LOAD_FULL_PERMILLE + LOAD_FULL_PERMILLE / 4)

/* Less memory of a process on a node is not what its threads work with, but a thread's stack and arena. A
 * choice of ours. */
#define LITTLE_MEMORY (4U << 20)

/* Whether the group was found a short time ago, has a policy that chooses nodes, and has no home yet. */
static bool is_homeless(const Planner *p, const Group *group)
{
    const Policy *policy = group_policy(p->world, p->policies, group->workload);

    return p->n_cpu_nodes > 1 && !group->gone && !group->home && !group->roams && policy &&
           policy_chooses_nodes(policy) && (policy->act != POLICY_ACT_OBSERVE || p->limits->would) &&
           demand_is_new(p, group);
}

/* Whether the home depends on who uses the memory. A group that may have only one node gets one anyway. A
 * group so large that no fewer nodes will do than hold some of its memory is not brought together. */
static bool use_decides(const Planner *p, size_t index, const uint64_t *memory, const DemandShare *share)
{
    const Topology *topology = p->world->topology;
    const Policy *policy = p->s->workloads[p->world->groups[index].workload.i].policy;
    PackNodes allowed = p->s->groups[index].allowed & choose_nodes_of_policy(topology, policy);
    uint32_t n_cpus = 0, n = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        n_cpus = MAX(n_cpus, topology->nodes[i].n_cpus);
        n += memory[i] >= LITTLE_MEMORY;
    }
    return n > 1 && policy->max_nodes != 1 && (allowed & (allowed - 1)) != 0 &&
           demand_share(share, demand_of_group(p, index)) <=
               pack_limit((uint64_t)(n - 1) * n_cpus * LOAD_FULL_PERMILLE);
}

/* Whether most of its threads have just begun; what they do is known from the next tick on. */
static bool awaits_loads(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];

    return rule_holds(p->world, ABLATION_BEGUN) && !group->home && !group->roams &&
           p->s->groups[index].n_fresh > group->n_tasks / 2;
}

/* Whether its first home need not be a guess: where its memory is will be known in a moment, or who uses it.
 * Memory of a single thread is most likely where it runs. */
static bool awaits_evidence(const Planner *p, size_t index, const uint64_t *memory, const DemandShare *share)
{
    const PlannerGroup *g = &p->s->groups[index];

    return ((rule_holds(p->world, ABLATION_AWAIT_MEMORY) && g->awaits_memory &&
             p->world->groups[index].n_tasks > 1) ||
            (g->awaits_use && !choose_memory_seen(g) && use_decides(p, index, memory, share))) &&
           is_homeless(p, &p->world->groups[index]);
}

/* Whether a single thread that runs beside its memory gains nothing by a home, because no CPU is idle: on any
 * node it would wait less only if another waited more, and its memory would have to follow. Where hardly more
 * is wanted than there is, that passes, and holds only for a young group that waits; without waiting it needs
 * no home yet anyway (home.c). Not where the policy says which nodes it is to have. */
static bool waits_in_vain(const Planner *p, size_t index, const uint64_t *memory, const uint64_t *ran,
                          uint64_t wanted_permille)
{
    const Group *group = &p->world->groups[index];
    const Policy *policy = p->s->workloads[group->workload.i].policy;

    return rule_holds(p->world, ABLATION_IN_VAIN) && wanted_permille > LOAD_FULL_PERMILLE &&
           (wanted_permille > IN_VAIN_PERMILLE ||
            (group->wait_permille >= CHOOSE_WAITS_PERMILLE && choose_is_young(p, group, policy))) &&
           group->n_tasks == 1 && !group->home && !group->roams && policy->mode == POLICY_MODE_AUTO &&
           !policy->nodes && policy->max_nodes == 0 && demand_of_group(p, index) >= CHOOSE_IDLE_PERMILLE &&
           choose_memory_beside(p, index, memory, ran);
}

uint64_t choose_wanted_permille(const Planner *p)
{
    uint64_t wants = 0, n = (uint64_t)MAX(hwloc_bitmap_weight(p->s->usable), 1);

    for (int i = hwloc_bitmap_first(p->s->usable); i >= 0; i = hwloc_bitmap_next(p->s->usable, i))
        if (load_cpu_is_idle(p->world, &p->world->cpus[i]))
            return 0;
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (!p->world->groups[i].gone && p->world->groups[i].workload.i >= 0)
            wants += demand_given(p, i);
    return wants / n;
}

void choose_wait(Planner *p, size_t index, const uint64_t *memory, const uint64_t *ran,
                 const DemandShare *share, uint64_t wanted_permille)
{
    PlannerGroup *g = &p->s->groups[index];
    bool awaits = awaits_loads(p, index) || awaits_evidence(p, index, memory, share);

    g->put_off = awaits || waits_in_vain(p, index, memory, ran, wanted_permille);
    g->put_off_for = awaits ? PLAN_REASON_USE_AWAITED : PLAN_REASON_ALL_BUSY;
}

/* Whether the place of its memory is known, as far as that can be. */
static bool has_memory(const Planner *p, size_t index)
{
    for (size_t i = 0; i < p->world->n_processes; i++)
        if (p->world->processes[i].group.i == (int32_t)index && p->world->processes[i].memory_awaited &&
            !p->world->processes[i].gone)
            return false;
    return true;
}

/* Whether a process seen for the first time now is the first of a group whose nodes its policy names. */
static bool begins_fixed(const Planner *p)
{
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];
        const Policy *policy;

        if (process->gone || process->group.i < 0 || process->first_seen_usec != p->world->now_usec ||
            p->world->groups[process->group.i].home)
            continue;
        policy = group_policy(p->world, p->policies, process->workload);
        if (policy && policy->nodes && !policy_chooses_nodes(policy))
            return true;
    }
    return false;
}

bool choose_early(const Planner *p)
{
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (demand_held(&p->world->groups[i]) >= CHOOSE_IDLE_PERMILLE &&
            is_homeless(p, &p->world->groups[i]) && has_memory(p, i))
            return true;
    for (size_t i = 0; i < p->world->n_groups; i++) {
        const Group *group = &p->world->groups[i];
        const Policy *policy = group_policy(p->world, p->policies, group->workload);

        if (policy && policy_chooses_nodes(policy) && !p->world->workloads[group->workload.i].paused &&
            outgrown_holds(p, group))
            return true;
    }
    return begins_fixed(p);
}

bool choose_waits(const Planner *p)
{
    const World *world = p->world;

    for (size_t i = 0; i < world->n_groups; i++)
        if (demand_held(&world->groups[i]) >= CHOOSE_IDLE_PERMILLE && is_homeless(p, &world->groups[i]))
            return true;
    /* For the other groups, loads are known from the next tick on, and the place of memory soon. */
    for (size_t i = 0; i < world->n_tasks; i++) {
        const Task *task = &world->tasks[i];
        const Process *process = &world->processes[task->process.i];

        if (!task->gone && (task->fresh || process->memory_awaited) && process->group.i >= 0 &&
            is_homeless(p, &world->groups[process->group.i]))
            return true;
    }
    return false;
}
