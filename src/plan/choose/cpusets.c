/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Groups that a cpuset keeps on a part of the machine. However many they are and however much they want, they take no
 * more than its CPUs have. What they want besides is no reason for others to keep away from these nodes, nor is it
 * wanted of the machine. Example, four nodes of four CPUs: thirteen threads that never pause, in a cpuset of two CPUs
 * of one node and two of the next, take four CPUs and not thirteen. It is not known here which of them; and cpusets
 * that overlap are each taken for themselves. */

#include "plan/choose/cpusets.h"

#include "world/load.h"

/* That of all processes of a group; NULL: they have several, or it is not known. */
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

/* What the CPUs of a cpuset can give, permille of a CPU. */
static uint64_t capacity_of(Planner *p, CpuMask cpuset)
{
    if (hwloc_bitmap_and(p->s->set, cpuset, p->s->usable) < 0)
        p->error = -ENOMEM;
    return (uint64_t)MAX(hwloc_bitmap_weight(p->s->set), 0) * LOAD_FULL_PERMILLE;
}

/* Of all groups of the cpuset of `first`, of which that is the first. */
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
