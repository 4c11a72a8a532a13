/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* CPU demand of groups, for choose.c: what is held, what is to be expected, how it varies, and how much of it
 * is wanted all the time. */

#include "plan/ablation.h"
#include "plan/buddies.h"
#include "plan/planner.h"
#include "world/load.h"

#include <string.h>

/* A group is new for this long, and its first home need not wait for a slow tick. */
#define NEW_USEC LOAD_YOUNG_USEC

/* A younger process may have begun a moment ago, and not pause. A choice of ours. */
#define MEAN_KNOWN_USEC 5000000U

/* A group with more held demand had more threads just now: a tenth of a CPU is noise (load.h). */
#define ONE_AT_MOST_PERMILLE 1100U

/* Of a tick; a thread that runs less wakes now and then. */
#define BEGUN_PERMILLE 500U

/* A thread that runs for most of a tick, and did not in the one before, began within it. In a new group it counts as
 * wanting a CPU, as the kernel takes the load of a new task to be full until it has shown otherwise. */
static void gather_begun(PlannerGroup *g, const Task *task)
{
    uint32_t wants = task->run_permille + task->wait_permille;

    if (wants >= BEGUN_PERMILLE && wants < LOAD_FULL_PERMILLE && task->run_before_permille < wants / 2)
        g->begun_permille += LOAD_FULL_PERMILLE - wants;
}

/* How far what a thread uses lies on one node, in permille: 1000 if wholly, 0 if evenly on two nodes or more. */
static uint64_t on_one_node(const World *world, const TaskUse *use)
{
    uint64_t sum = world_sum_nodes(world, use->pages), squares = 0;

    for (uint32_t i = 0; i < world->topology->n_nodes && sum > 0; i++)
        squares += use->pages[i] * 1000 / sum * use->pages[i] * 2 / sum;
    return squares - MIN(squares, 1000U);
}

/* Whether a thread is known, without looking, to use its memory alone: it is the only thread of one of several
 * processes, which has more memory than caches may hold, and little of it mapped by others. */
static bool is_single(const World *world, const Group *group, const Task *task)
{
    const Process *process = &world->processes[task->process.i];
    size_t n;

    (void)world_process_tasks(world, process, &n);
    return n == 1 && group->n_tasks > 1 && process->rss_bytes >= PLANNER_MEMORY_MIN / 2 &&
           !(process->shared && strchr(process->shared, PROCESS_SHARED_MUCH));
}

/* A thread that wants a CPU for more of the time than the first begins to count as one that never pauses, wholly from
 * DEMAND_NO_PAUSES_PERMILLE on. On several nodes threads run faster and pause more: less is enough to stay there. */
#define SOME_PAUSES_PERMILLE 800U
#define PAUSES_MORE_PERMILLE 100U

/* Sums what the threads of a group want, how that varies, and what is used by one thread alone. A thread
 * wants a CPU or does not, so its share of the time is the chance that it does. */
static void gather_use(const World *world, const Group *group, PlannerGroup *g, const Task *task)
{
    uint64_t demand = task->run_ewma_permille + (uint64_t)task->wait_ewma_permille;
    uint32_t more = group->roams || (group->home_nodes && hwloc_bitmap_weight(group->home_nodes) > 1)
                        ? PAUSES_MORE_PERMILLE
                        : 0;

    g->threads_permille += demand;
    g->steady_permille +=
        demand *
        (MIN(MAX(demand + more, SOME_PAUSES_PERMILLE), DEMAND_NO_PAUSES_PERMILLE) - SOME_PAUSES_PERMILLE) /
        (DEMAND_NO_PAUSES_PERMILLE - SOME_PAUSES_PERMILLE);
    g->variance_permille += (uint32_t)(MIN(demand, 1000U) * (1000 - MIN(demand, 1000U)) / 1000);
    if (!task->use && is_single(world, group, task)) {
        g->seen_permille += demand;
        g->alone_permille += demand;
    }
    if (!task->use)
        return;
    g->seen_permille += demand;
    g->alone_permille += demand * task->use->private_permille / 1000;
    g->sorted_permille += demand * task->use->private_permille / 1000 * on_one_node(world, task->use) / 1000;
}

void demand_gather(const World *world, const Group *group, PlannerGroup *g, const Task *task)
{
    gather_use(world, group, g, task);
    gather_begun(g, task);
    g->n_fresh += task->fresh;
}

static void gather_few(const World *world, const Process *process, const BuddySet *sets, uint64_t largest,
                       PlannerGroup *g)
{
    size_t n, first = world_process_tasks(world, process, &n);

    for (size_t i = 0; i < n; i++) {
        const Task *task = &world->tasks[first + i];

        if (!task->gone && task->use && buddies_are_few(&sets[i], n) && buddies_fit(sets[i].demand, largest))
            g->few_permille += (task->run_ewma_permille + (uint64_t)task->wait_ewma_permille) *
                               (1000 - task->use->private_permille) / 1000;
    }
}

int demand_gather_few(Planner *p)
{
    World *world = p->world;
    uint64_t largest;

    hwloc_bitmap_zero(p->s->nodes);
    if (hwloc_bitmap_set_range(p->s->nodes, 0, (int)world->topology->n_nodes - 1) < 0)
        return -ENOMEM;
    largest = buddies_largest(world, p->s->nodes, 0);
    for (size_t i = 0; i < world->n_processes && rule_holds(world, ABLATION_FEW); i++) {
        const Process *process = &world->processes[i];
        size_t n;

        if (process->gone || process->group.i < 0)
            continue;
        (void)world_process_tasks(world, process, &n);
        if (!GROW(p->s->sets, p->s->sets_capacity, MAX(n, 1U)))
            return -ENOMEM;
        buddies_sets(world, process, NULL, NULL, p->s->sets);
        gather_few(world, process, p->s->sets, largest, &p->s->groups[process->group.i]);
    }
    return 0;
}

uint64_t demand_held(const Group *group)
{
    return group->demand_permille > 0 ? group->demand_permille : group->want_permille;
}

static uint64_t cut(const Planner *p, size_t index, uint64_t permille)
{
    return permille * (1000 - p->s->groups[index].cut_permille) / 1000;
}

uint64_t demand_given(const Planner *p, size_t index)
{
    return cut(p, index, demand_held(&p->world->groups[index]));
}

bool demand_is_new(const Planner *p, const Group *group)
{
    return world_since(p->world, group->first_seen_usec) < NEW_USEC;
}

bool demand_is_of_one(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    const Policy *policy = p->s->workloads[group->workload.i].policy;

    return group->n_tasks == 1 && world_since(p->world, p->s->groups[index].newest_usec) >= MEAN_KNOWN_USEC &&
           demand_held(group) <= ONE_AT_MOST_PERMILLE && policy->mode == POLICY_MODE_AUTO &&
           policy->expect_width <= 1 && rule_holds(p->world, ABLATION_PAUSES);
}

/* The mean demand. The average is a short one, so it is at least half of what is held: a thread that pauses
 * for longer should not lose its place each time. */
static uint64_t demand_of_one(const Planner *p, size_t index)
{
    uint64_t held = demand_held(&p->world->groups[index]);

    return MIN(held, MAX(p->s->groups[index].threads_permille, held / 2));
}

uint32_t demand_of_group(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    uint64_t expected = p->s->workloads[group->workload.i].policy->expect_width * 1000ULL;
    uint64_t demand = demand_held(group);

    if (demand_is_of_one(p, index))
        demand = demand_of_one(p, index);
    if (demand_is_new(p, group) && rule_holds(p->world, ABLATION_BEGUN))
        demand += p->s->groups[index].begun_permille;
    return (uint32_t)MIN(MAX(demand, expected), PACK_DEMAND_MAX);
}

uint32_t demand_of_packing(const Planner *p, size_t index)
{
    return (uint32_t)cut(p, index, demand_of_group(p, index));
}

DemandShare demand_share_of_all(const Planner *p)
{
    DemandShare share = {.demands = p->s->bound_given,
                         .capacity =
                             (uint64_t)MAX(hwloc_bitmap_weight(p->s->usable), 0) * LOAD_FULL_PERMILLE};

    for (size_t i = 0; i < p->world->n_groups; i++)
        if (!p->world->groups[i].gone && !p->s->groups[i].bound)
            share.demands += demand_given(p, i);
    return share;
}

uint32_t demand_share(const DemandShare *share, uint32_t demand)
{
    return share->demands > share->capacity ? (uint32_t)(demand * share->capacity / share->demands) : demand;
}

/* The variance of the held demand if all threads did the same, so that it is as steady as the demand; at most
 * what they show now, since some may sleep for ever. For a single thread, that of its mean demand; before
 * that is known, its peaks are in the held demand. */
uint32_t demand_variance(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    bool one = demand_is_of_one(p, index);
    uint64_t demand = one ? demand_of_one(p, index) : demand_held(group);
    uint64_t most = 1000ULL * group->n_tasks;

    if (!rule_holds(p->world, ABLATION_PAUSES) || (group->n_tasks < 2 && !one) ||
        demand >= (one ? DEMAND_NO_PAUSES_PERMILLE : most))
        return 0;
    return (uint32_t)cut(p, index,
                         MIN(demand * (most - demand) / most, p->s->groups[index].variance_permille));
}
