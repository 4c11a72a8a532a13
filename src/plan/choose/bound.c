/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Groups that somebody else has bound to CPUs: how much of these they take. */

#include "plan/choose/bound.h"
#include "plan/choose/memory.h"

#include "world/load.h"

/* Halving the interval of the mean this often leaves less than a permille of it. */
#define LEVEL_ROUNDS 48U

/* Programs are mostly bound by a few different masks, in turn. */
#define MASKS_MAX 32U

typedef struct Wants {
    CpuMask masks[MASKS_MAX];
    uint64_t wants[MASKS_MAX];
    size_t n;
} Wants;

static PlannerGroup *group_of(Planner *p, const Task *task)
{
    const Process *process = &p->world->processes[task->process.i];

    return !task->gone && !process->gone && process->group.i >= 0 ? &p->s->groups[process->group.i] : NULL;
}

/* The mask that somebody else has given the thread, as it is after this plan: for a released thread, what is
 * put back. NULL: none, or a mask of ours. */
static CpuMask mask_of(const Planner *p, const Task *task)
{
    if (!task->original)
        return task->allowed;
    if (!p->world->processes[task->process.i].yielded)
        return NULL;
    return task->hands == TASK_HANDS_REPINNED || !planner_can_put_back(task) ? task->allowed : task->original;
}

/* A group with threads that may run anywhere is not bound: it is not known where they are. */
static void find_bound(Planner *p)
{
    CpuMask anywhere = NULL, narrow = NULL;

    for (size_t i = 0; i < p->world->n_groups; i++)
        p->s->groups[i].bound = rule_holds(p->world, ABLATION_BOUND) && !p->world->groups[i].gone &&
                                p->s->groups[i].n_placeable == 0;
    for (size_t i = 0; i < p->world->n_tasks; i++) {
        PlannerGroup *g = group_of(p, &p->world->tasks[i]);
        CpuMask mask;

        if (!g || !g->bound)
            continue;
        mask = mask_of(p, &p->world->tasks[i]);
        if (mask && mask != anywhere && mask != narrow) {
            bool all = hwloc_bitmap_isincluded(p->s->usable, mask);

            anywhere = all ? mask : anywhere;
            narrow = all ? narrow : mask;
        }
        g->bound = mask && mask != anywhere;
    }
}

/* Divides a demand evenly over the CPUs of a mask. */
static void want_cpus(Planner *p, CpuMask mask, uint64_t want)
{
    uint64_t n = (uint64_t)MAX(hwloc_bitmap_weight(mask), 1);

    for (int i = want > 0 ? hwloc_bitmap_first(mask) : -1;
         i >= 0 && (uint32_t)i < p->world->topology->cpu_limit; i = hwloc_bitmap_next(mask, i))
        p->s->cpus[i].bound_want += want / n;
}

/* Collects demand by mask, so that each mask is walked only once, or nearly so. */
static void want_mask(Planner *p, Wants *wants, CpuMask mask, uint64_t want)
{
    size_t i = 0;

    while (i < wants->n && wants->masks[i] != mask)
        i++;
    if (i == MASKS_MAX) {
        i = 0;
        want_cpus(p, wants->masks[i], wants->wants[i]);
        wants->wants[i] = 0;
    }
    wants->n = MAX(wants->n, i + 1);
    wants->wants[i] = wants->masks[i] == mask ? wants->wants[i] + want : want;
    wants->masks[i] = mask;
}

/* Sums the demand for each CPU, as if all threads of a group wanted the same. Returns whether there is any. */
static bool sum_wants(Planner *p)
{
    Wants wants = {0};

    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        const PlannerGroup *g = group_of(p, task);
        const Group *group;

        if (!g || !g->bound)
            continue;
        group = &p->world->groups[g - p->s->groups];
        want_mask(p, &wants, mask_of(p, task), demand_held(group) * 1000 / MAX(group->n_tasks, 1U));
    }
    for (size_t i = 0; i < wants.n; i++)
        want_cpus(p, wants.masks[i], wants.wants[i]);
    return wants.n > 0;
}

static uint64_t sum_below(const Planner *p, uint64_t level)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < p->world->topology->cpu_limit; i++)
        sum += MIN(p->s->cpus[i].bound_want, level);
    return sum;
}

/* The demand for each CPU if all that is not bound were divided over them so that each is wanted as much as the next,
 * except CPUs of which bound threads alone want more; at least one CPU. In thousandths of a permille. */
static uint64_t mean_want(const Planner *p)
{
    uint64_t n_cpus = MAX(p->world->topology->n_cpus, 1U), others = 0;
    uint64_t low = LOAD_FULL_PERMILLE * 1000ULL, high;

    for (size_t i = 0; i < p->world->n_groups; i++)
        if (!p->world->groups[i].gone && !p->s->groups[i].bound)
            others += demand_given(p, i) * 1000;
    high = MAX(others + sum_below(p, UINT64_MAX), low);
    for (unsigned i = 0; i < LEVEL_ROUNDS && high - low > 1; i++) {
        uint64_t level = low + (high - low) / 2;

        if (n_cpus * level >= others + sum_below(p, level))
            high = level;
        else
            low = level;
    }
    return n_cpus * low >= others + sum_below(p, low) ? low : high;
}

void choose_bound(Planner *p)
{
    const Topology *topology = p->world->topology;
    uint64_t level;

    find_bound(p);
    if (!sum_wants(p))
        return;
    level = rule_holds(p->world, ABLATION_REACH) ? mean_want(p) : LOAD_FULL_PERMILLE * 1000ULL;
    for (uint32_t i = 0; i < topology->cpu_limit; i++) {
        const TopologyCpu *cpu = topology_cpu(topology, (CpuIx){(int32_t)i});
        uint64_t want = p->s->cpus[i].bound_want;

        if (rule_holds(p->world, ABLATION_REACH))
            want = MIN(want, level);
        p->s->bound_given += want / 1000;
        if (cpu && hwloc_bitmap_isset(p->s->usable, i))
            p->s->bound_permille[cpu->node.i] += want * LOAD_FULL_PERMILLE / level;
    }
}

void choose_bound_press(Planner *p, const uint64_t *ran, const uint64_t *memory, PackNode *nodes)
{
    uint32_t n_nodes = p->world->topology->n_nodes;

    for (size_t i = 0; i < p->world->n_groups; i++) {
        PlannerGroup *g = &p->s->groups[i];

        if (!g->bound)
            continue;
        g->discount_permille = choose_memory_discount(g, memory + i * n_nodes, n_nodes);
        for (uint32_t n = 0; n < n_nodes; n++)
            nodes[n].heavy_permille += (uint32_t)(MIN(ran[i * n_nodes + n], PACK_DEMAND_MAX) *
                                                  choose_memory_alone(p, &p->world->groups[i]) / 1000);
    }
}
