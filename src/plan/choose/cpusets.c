/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Groups that a cpuset keeps on a part of the machine. However many they are and however much they want, they take no
 * more than its CPUs have. What they want besides is no reason for others to keep away from these nodes, nor is it
 * wanted of the machine. Example, four nodes of four CPUs: thirteen threads that never pause, in a cpuset of two CPUs
 * of one node and two of the next, take two CPUs of each, and leave two. Nor does a home on one of these nodes help any
 * of them: it would have two CPUs to run on, and not four. They have all the nodes of their cpuset. */

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

/* What the CPUs of a cpuset can give, permille of a CPU; and whether it has some of a node's and not all. */
static uint64_t capacity_of(Planner *p, CpuMask cpuset, bool *ret_partial)
{
    hwloc_bitmap_t set = p->s->set;
    uint64_t n_cpus = 0;

    *ret_partial = false;
    for (uint32_t i = 0; i < p->world->topology->n_nodes; i++) {
        CpuMask cpus = p->world->topology->nodes[i].cpus;
        int n = 0, n_all;

        if (hwloc_bitmap_and(set, cpus, p->s->usable) < 0)
            p->error = -ENOMEM;
        n_all = hwloc_bitmap_weight(set);
        if (hwloc_bitmap_and(set, set, cpuset) < 0)
            p->error = -ENOMEM;
        n = hwloc_bitmap_weight(set);
        *ret_partial |= n > 0 && n < n_all;
        n_cpus += (uint64_t)n;
    }
    return n_cpus * LOAD_FULL_PERMILLE;
}

static uint64_t wants_of(const Planner *p, CpuMask cpuset)
{
    uint64_t wants = 0;

    for (size_t i = 0; i < p->world->n_groups; i++)
        if (p->s->groups[i].cpuset == cpuset)
            wants += demand_held(&p->world->groups[i]);
    return wants;
}

/* Whether a group before it has the same. */
static bool is_known(const Planner *p, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (p->s->groups[i].cpuset == p->s->groups[index].cpuset)
            return true;
    return false;
}

/* Whether it goes by what is wanted, and not by what a policy says or has been asked for. */
static bool is_chosen(const Planner *p, const Group *group)
{
    const PlannerWorkload *w = group->workload.i >= 0 ? &p->s->workloads[group->workload.i] : NULL;

    return w && w->blocked == PLAN_REASON_INVALID && w->policy->mode == POLICY_MODE_AUTO &&
           !w->policy->nodes && w->policy->max_nodes == 0 && !p->world->workloads[group->workload.i].paused;
}

static void cut(Planner *p, CpuMask cpuset)
{
    bool partial;
    uint64_t capacity = capacity_of(p, cpuset, &partial), wants = wants_of(p, cpuset);

    for (size_t i = 0; i < p->world->n_groups && wants > capacity; i++)
        if (p->s->groups[i].cpuset == cpuset) {
            p->s->groups[i].cut_permille = (uint32_t)(1000 - capacity * 1000 / wants);
            p->s->groups[i].penned = partial && is_chosen(p, &p->world->groups[i]);
        }
}

void choose_cpusets(Planner *p)
{
    find_cpusets(p);
    for (size_t i = 0; i < p->world->n_groups && rule_holds(p->world, ABLATION_REACH); i++) {
        CpuMask cpuset = p->s->groups[i].cpuset;

        if (cpuset && !hwloc_bitmap_isincluded(p->s->usable, cpuset) && !is_known(p, i))
            cut(p, cpuset);
    }
}
