/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Groups that somebody else has bound to CPUs: how much of these they take. */

#include "plan/choose/bound.h"

#include "world/load.h"

/* Enough for the mean to settle. */
#define LEVEL_ROUNDS 16U

static PlannerGroup *group_of(Planner *p, const Task *task)
{
    const Process *process = &p->world->processes[task->process.i];

    return !task->gone && !process->gone && process->group.i >= 0 ? &p->s->groups[process->group.i] : NULL;
}

/* Of threads that may be anywhere it is not known where they are. A mask of ours is nobody's binding, also when it is
 * to be taken back. */
static void find_bound(Planner *p)
{
    CpuMask anywhere = NULL;

    for (size_t i = 0; i < p->world->n_groups; i++)
        p->s->groups[i].bound = rule_holds(p->world, ABLATION_BOUND) && !p->world->groups[i].gone &&
                                p->world->groups[i].workload.i >= 0 && p->s->groups[i].n_placeable == 0;
    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        PlannerGroup *g = group_of(p, task);

        if (!g || !g->bound)
            continue;
        if (task->allowed && task->allowed != anywhere &&
            hwloc_bitmap_isincluded(p->s->usable, task->allowed))
            anywhere = task->allowed;
        g->bound = task->allowed && task->allowed != anywhere && !task->original;
    }
}

/* What one of its threads wants, as if all wanted the same; in thousandths of a permille. */
static uint64_t want_of_one(const Group *group)
{
    return demand_held(group) * 1000 / MAX(group->n_tasks, 1U);
}

/* To be had evenly from the CPUs of a mask. */
static void want_cpus(Planner *p, CpuMask mask, uint64_t want)
{
    uint64_t n = mask ? (uint64_t)MAX(hwloc_bitmap_weight(mask), 1) : 1;

    for (int i = mask ? hwloc_bitmap_first(mask) : -1; i >= 0 && (uint32_t)i < p->world->topology->cpu_limit;
         i = hwloc_bitmap_next(mask, i))
        p->s->cpus[i].bound_want += want / n;
}

/* What would be wanted of each CPU if all that is not bound were divided over all evenly, and of what is bound to a CPU
 * beyond that nothing counted; at least one CPU. In thousandths of a permille. */
static uint64_t mean_want(const Planner *p)
{
    const Topology *topology = p->world->topology;
    uint64_t others = 0, level = UINT64_MAX, before = 0;

    for (size_t i = 0; i < p->world->n_groups; i++) {
        const Group *group = &p->world->groups[i];

        others +=
            group->gone || group->workload.i < 0 || p->s->groups[i].bound ? 0 : demand_held(group) * 1000;
    }
    for (unsigned i = 0; i < LEVEL_ROUNDS && level != before; i++) {
        uint64_t sum = others;

        for (uint32_t k = 0; k < topology->cpu_limit; k++)
            sum += MIN(p->s->cpus[k].bound_want, level);
        before = level;
        level = MAX(sum / MAX(topology->n_cpus, 1U), LOAD_FULL_PERMILLE * 1000ULL);
    }
    return level;
}

/* What they take of each node, and what they want that counts. */
static void sum_nodes(Planner *p)
{
    const Topology *topology = p->world->topology;

    p->s->bound_given = 0;
    for (uint32_t i = 0; i < topology->cpu_limit; i++) {
        const TopologyCpu *cpu = topology_cpu(topology, (CpuIx){(int32_t)i});
        uint64_t want = p->s->cpus[i].bound_want, level = p->s->want_level;

        p->s->bound_given += MIN(want, level) / 1000;
        if (cpu && hwloc_bitmap_isset(p->s->usable, i))
            p->s->bound_permille[cpu->node.i] += rule_holds(p->world, ABLATION_REACH)
                                                     ? MIN(want, level) * LOAD_FULL_PERMILLE / level
                                                     : want / 1000;
    }
}

void choose_bound(Planner *p)
{
    uint64_t want = 0;
    CpuMask last = NULL;

    find_bound(p);
    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        const PlannerGroup *g = group_of(p, task);

        if (!g || !g->bound)
            continue;
        if (task->allowed != last) {
            want_cpus(p, last, want);
            want = 0;
        }
        last = task->allowed;
        want += want_of_one(&p->world->groups[g - p->s->groups]);
    }
    want_cpus(p, last, want);
    p->s->want_level = mean_want(p);
    sum_nodes(p);
}
