/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Groups that a cpuset keeps on a part of the machine. However many they are and however much they want, they take no
 * more than its CPUs have. Demand beyond that is no reason for others to avoid these nodes, nor is it wanted of the
 * machine. Example, four nodes of four CPUs: thirteen threads that never pause, in a cpuset of one CPU of one node and
 * three of the next, take four CPUs and not thirteen. Nor are they sent to the first of these nodes because it has
 * four: the packing is told how many of each the cpuset has. Cpusets that overlap are each taken by themselves, and
 * threads that somebody has bound to CPUs of a cpuset take nothing of it. */

#include "plan/choose/cpusets.h"

#include "base/util.h"
#include "world/load.h"

/* The cpuset of all processes of a group; NULL: they have several, or it is not known. */
static void find_cpusets(Planner *p)
{
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];
        PlannerGroup *g = process->group.i >= 0 ? &p->s->groups[process->group.i] : NULL;

        if (!g || process->gone || !process->cpuset)
            continue;
        g->cpusets_differ |= g->cpuset && g->cpuset != process->cpuset;
        g->cpuset = process->cpuset;
    }
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (p->s->groups[i].cpusets_differ || p->world->groups[i].gone)
            p->s->groups[i].cpuset = NULL;
}

/* The capacity of the CPUs of a cpuset, permille of a CPU. */
static uint64_t capacity_of(Planner *p, CpuMask cpuset)
{
    planner_note(p, hwloc_bitmap_and(p->s->set, cpuset, p->s->usable));
    return (uint64_t)MAX(hwloc_bitmap_weight(p->s->set), 0) * LOAD_FULL_PERMILLE;
}

/* Cuts all groups with the cpuset of `first`, the first of them. */
static void cut(Planner *p, size_t first)
{
    CpuMask cpuset = p->s->groups[first].cpuset;
    uint64_t capacity = capacity_of(p, cpuset), wants = 0;

    for (size_t i = first; i < p->world->n_groups; i++)
        if (p->s->groups[i].cpuset == cpuset)
            wants += demand_held(&p->world->groups[i]);
    for (size_t i = first; i < p->world->n_groups; i++)
        if (p->s->groups[i].cpuset == cpuset) {
            p->s->groups[i].cut_permille = wants > capacity ? (uint32_t)(1000 - capacity * 1000 / wants) : 0;
            p->s->groups[i].cpuset_known = true;
        }
}

void choose_cpusets(Planner *p)
{
    find_cpusets(p);
    for (size_t i = 0; i < p->world->n_groups && rule_holds(p->world, ABLATION_REACH); i++) {
        const PlannerGroup *g = &p->s->groups[i];

        if (g->cpuset && !g->cpuset_known && !hwloc_bitmap_isincluded(p->s->usable, g->cpuset))
            cut(p, i);
    }
}

/* The capacity of the cpuset on each node. Returns whether it has only a part of one of them. */
static bool divide(Planner *p, CpuMask cpuset, uint32_t *ret)
{
    const Topology *topology = p->world->topology;
    bool part = false;

    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        int all, has;

        planner_note(p, hwloc_bitmap_and(p->s->set, topology->nodes[i].cpus, p->s->usable));
        all = MAX(hwloc_bitmap_weight(p->s->set), 0);
        planner_note(p, hwloc_bitmap_and(p->s->set, p->s->set, cpuset));
        has = MAX(hwloc_bitmap_weight(p->s->set), 0);
        part |= has > 0 && has < all;
        ret[i] = (uint32_t)MIN((uint64_t)has * LOAD_FULL_PERMILLE, PACK_DEMAND_MAX);
    }
    return part;
}

int choose_cpusets_slices(Planner *p)
{
    PlanScratch *s = p->s;
    CpuMask cpusets[CHOOSE_CPUSETS_MAX];

    s->n_cpusets = 0;
    if (!GROW(s->slices, s->slices_capacity, (size_t)CHOOSE_CPUSETS_MAX * p->world->topology->n_nodes))
        return -ENOMEM;
    for (size_t i = 0; i < s->n_order && rule_holds(p->world, ABLATION_REACH); i++) {
        PlannerGroup *g = &s->groups[s->order[i].index];
        uint32_t at = 0;

        if (!g->cpuset_known)
            continue;
        while (at < s->n_cpusets && cpusets[at] != g->cpuset)
            at++;
        if (at == CHOOSE_CPUSETS_MAX ||
            (at == s->n_cpusets &&
             !divide(p, g->cpuset, s->slices + (size_t)at * p->world->topology->n_nodes)))
            continue;
        cpusets[at] = g->cpuset;
        s->n_cpusets = MAX(s->n_cpusets, at + 1);
        g->slice = at + 1;
    }
    return 0;
}
