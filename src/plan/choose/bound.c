/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Groups that somebody else has bound: where they are, and what of the CPUs there each can have. */

#include "plan/choose/bound.h"

#include "plan/pack/pack.h"
#include "world/load.h"

/* Enough for the mean to settle. */
#define LEVEL_ROUNDS 16U

/* Nodes of a mask; the last one asked about is mostly the next one. */
typedef struct MaskNodes {
    CpuMask mask;
    PackNodes nodes;
} MaskNodes;

static PackNodes nodes_of_mask(const Topology *topology, CpuMask mask, MaskNodes *last)
{
    if (mask == last->mask)
        return last->nodes;
    *last = (MaskNodes){.mask = mask};
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (hwloc_bitmap_intersects(mask, topology->nodes[i].cpus))
            last->nodes |= (PackNodes)1 << i;
    return last->nodes;
}

/* Of those that may be anywhere it is not known where they are. */
void choose_bound(Planner *p)
{
    const Topology *topology = p->world->topology;
    MaskNodes last = {0};
    PackNodes all = nodes_of_mask(topology, topology->all_cpus, &last);

    for (size_t i = 0; i < p->world->n_tasks && rule_holds(p->world, ABLATION_BOUND); i++) {
        const Task *task = &p->world->tasks[i];
        const Process *process = &p->world->processes[task->process.i];
        PlannerGroup *g;

        if (task->gone || process->gone || process->group.i < 0 || !task->allowed)
            continue;
        g = &p->s->groups[process->group.i];
        if (g->n_placeable == 0)
            g->bound |= nodes_of_mask(topology, task->allowed, &last);
    }
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (p->world->groups[i].home || p->world->groups[i].roams || p->s->groups[i].bound == all)
            p->s->groups[i].bound = 0;
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

        others += group->gone || group->workload.i < 0 || p->s->groups[i].n_placeable == 0
                      ? 0
                      : demand_held(group) * 1000;
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

/* The part that the CPUs of a mask can give of what is wanted of them, in permille. */
static uint64_t part_given(const Planner *p, CpuMask mask)
{
    const uint64_t full = p->s->want_level;
    uint64_t sum = 0, n = 0;

    for (int i = hwloc_bitmap_first(mask); i >= 0 && (uint32_t)i < p->world->topology->cpu_limit;
         i = hwloc_bitmap_next(mask, i)) {
        sum += full * 1000 / MAX(p->s->cpus[i].bound_want, full);
        n++;
    }
    return sum / MAX(n, 1U);
}

/* The group of a task, when nobody of it can be placed, also if it has a home: its threads stay where they are. */
static PlannerGroup *fixed_group(Planner *p, const Task *task)
{
    int32_t group = p->world->processes[task->process.i].group.i;

    return !task->gone && task->allowed && group >= 0 && p->s->groups[group].n_placeable == 0
               ? &p->s->groups[group]
               : NULL;
}

void choose_bound_divide(Planner *p)
{
    uint64_t part = 0, want = 0;
    CpuMask last = NULL;

    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        const PlannerGroup *g = fixed_group(p, task);

        if (!g)
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
    last = NULL;
    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        PlannerGroup *g = fixed_group(p, task);

        if (!g)
            continue;
        part = task->allowed != last ? part_given(p, task->allowed) : part;
        last = task->allowed;
        g->given += want_of_one(&p->world->groups[g - p->s->groups]) * part / 1000;
    }
}
