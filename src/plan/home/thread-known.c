/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/home/thread-known.h"

#include "plan/planner.h"

/* Averages below this say nothing: a quarter of a huge page. */
#define USE_MIN 128U

/* Threads of a process with less memory get no node each: much of it is the program and its libraries, and
 * caches hold the rest. A choice of ours. */
#define THREADS_MEMORY_MIN ((uint64_t)8 << 20)

bool thread_is_seen(const World *world, const Process *process, const Task *task, const Policy *policy,
                    uint32_t enough)
{
    if (!task->use || (process->rss_bytes > 0 && process->rss_bytes < THREADS_MEMORY_MIN) ||
        !planner_placeable(policy, process, task) ||
        (task->use->private_permille < enough && task->use->buddy.tid == 0))
        return false;
    return world_sum_nodes(world, task->use->pages) >= USE_MIN;
}

static bool is_known(const World *world, const Process *process, const Task *task, const Policy *policy)
{
    return thread_is_seen(world, process, task, policy,
                          task->home_node.i >= 0 ? PRIVATE_MOSTLY_PERMILLE : PRIVATE_PERMILLE);
}

size_t thread_homes_n_known(const World *world, const Policy *policy, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n), n_known = 0;

    for (size_t i = first; i < first + n; i++)
        n_known += is_known(world, process, &world->tasks[i], policy);
    return n_known;
}

/* A step of FNV-1a. */
static uint64_t mix(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * 1099511628211U;
}

uint64_t thread_homes_digest(const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n);
    uint64_t digest = 0;

    for (size_t i = first; i < first + n; i++)
        if (!world->tasks[i].gone && world->tasks[i].home_node.i >= 0)
            digest = mix(mix(digest, (uint64_t)world->tasks[i].tid), (uint64_t)world->tasks[i].home_node.i);
    return digest;
}

bool thread_homes_known(const Planner *p, size_t group)
{
    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        const Process *process = &p->world->processes[task->process.i];

        if (task->use && process->group.i == (int32_t)group &&
            thread_is_seen(p->world, process, task, p->s->workloads[process->workload.i].policy,
                           PRIVATE_MOSTLY_PERMILLE))
            return true;
    }
    return false;
}
