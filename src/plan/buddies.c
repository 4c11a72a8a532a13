/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A buddy precedes its thread in the order of tids (world/buddy.h), so one walk finds the first thread of
 * each set: the buddy's. Example: t2 -> t1, t4 -> t3, t5 -> t3 gives the sets t1 t2 and t3 t4 t5. A thread
 * that is gone still holds together the threads that shared with it. */

#include "plan/buddies.h"

#include "base/util.h"

#include <math.h>

/* No node has as many. */
#define CORES_MAX 4096U

uint32_t buddies_demand(const Task *task)
{
    return MAX((uint32_t)task->run_ewma_permille + task->wait_ewma_permille, 1U);
}

bool buddies_are_few(const BuddySet *set, size_t n_threads)
{
    return set->n > 1 && set->n * 2 <= n_threads;
}

bool buddies_fit(uint64_t demand, uint64_t capacity)
{
    return demand <= capacity + capacity / 16;
}

/* A core has the number of its lowest CPU; its CPUs need not be neighbours. */
void buddies_count(const World *world, CpuMask cpus, uint64_t *ret_cpus, uint64_t *ret_cores)
{
    uint64_t seen[CORES_MAX / 64] = {0};

    *ret_cpus = *ret_cores = 0;
    for (int i = hwloc_bitmap_first(cpus); i >= 0; i = hwloc_bitmap_next(cpus, i)) {
        const TopologyCpu *cpu = topology_cpu(world->topology, (CpuIx){i});
        uint32_t core = cpu ? (uint32_t)cpu->core.i % CORES_MAX : 0;

        if (!cpu || !world->cpus[i].usable)
            continue;
        *ret_cpus += 1000;
        *ret_cores += (seen[core / 64] >> core % 64 & 1) == 0 ? 1000 : 0;
        seen[core / 64] |= 1ULL << core % 64;
    }
}

/* Cores count while the demand is at most a third above all of them. Even then, with sets that exceed the
 * cores of a node by half, being apart costs less: twice the demand that shares cores needlessly (pack.h),
 * against half of the demand being far from what it shares. */
uint64_t buddies_largest(const World *world, CpuMask nodes, uint64_t demand)
{
    uint64_t most_cpus = 0, most_cores = 0, all_cores = 0;

    for (int i = nodes ? hwloc_bitmap_first(nodes) : -1; i >= 0; i = hwloc_bitmap_next(nodes, i)) {
        uint64_t n_cpus, n_cores;

        buddies_count(world, world->topology->nodes[i].cpus, &n_cpus, &n_cores);
        most_cpus = MAX(most_cpus, n_cpus);
        most_cores = MAX(most_cores, n_cores);
        all_cores += n_cores;
    }
    return all_cores * 4 / 3 >= demand && rule_holds(world, ABLATION_SIBLINGS) ? most_cores : most_cpus;
}

static const Task *buddy_of(World *world, const Task *task, BuddyMay *may, void *userdata)
{
    const Task *buddy = task->use && task->use->private_permille < BUDDIES_PRIVATE_PERMILLE
                            ? world_task(world, task->use->buddy)
                            : NULL;

    if (!buddy || buddy >= task || buddy->process.i != task->process.i)
        return NULL;
    return !may || ((task->gone || may(userdata, task)) && (buddy->gone || may(userdata, buddy))) ? buddy
                                                                                                  : NULL;
}

/* `peak` holds the variance until all threads are added. */
static void add_thread(BuddySet *set, const Task *task, const Task *first)
{
    uint64_t demand = buddies_demand(task), often = MIN(demand, 1000U);

    set->demand += demand;
    set->peak += often * (1000 - often);
    set->n++;
    set->apart |= !first->gone && first->home_node.i >= 0 && task->home_node.i >= 0 &&
                  task->home_node.i != first->home_node.i;
}

void buddies_sets(World *world, const Process *process, BuddyMay *may, void *userdata, BuddySet *ret)
{
    size_t n, first = world_process_tasks(world, process, &n);

    for (size_t i = 0; i < n; i++) {
        const Task *task = &world->tasks[first + i], *buddy = buddy_of(world, task, may, userdata);

        ret[i] = (BuddySet){.first = i, .buddy = i};
        if (buddy) {
            ret[i].buddy = (size_t)(buddy - &world->tasks[first]);
            ret[i].first = ret[ret[i].buddy].first;
        }
        if (!task->gone)
            add_thread(&ret[ret[i].first], task, &world->tasks[first + ret[i].first]);
    }
    for (size_t i = 0; i < n; i++) {
        BuddySet *set = &ret[ret[i].first];

        if (set == &ret[i])
            set->peak = set->demand + (uint64_t)sqrt((double)set->peak);
        ret[i] = (BuddySet){set->first, ret[i].buddy, set->demand, set->peak, set->n, set->apart};
    }
}
