/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A World of its own with the same contents, for plans that are only looked at. Names and masks are interned anew,
 * because the pool of the original is swept of what only the copy holds. */

#include "world/world.h"

#include <string.h>

static bool keep_string(InternPool *pool, const char **s)
{
    const char *before = *s;

    *s = intern_string(pool, before);
    return !before || *s;
}

static bool keep(InternPool *pool, CpuMask *mask)
{
    if (!*mask)
        return true;
    *mask = intern_mask(pool, *mask);
    return *mask;
}

/* The elements; room for one at least. */
static void *copy_array(const void *array, size_t n, size_t size)
{
    void *copy = calloc(MAX(n, (size_t)1), size);

    if (copy && n > 0)
        memcpy(copy, array, n * size);
    return copy;
}

static bool copy_workloads(const World *from, World *to)
{
    to->workloads = copy_array(from->workloads, from->n_workloads, sizeof(*to->workloads));
    if (!to->workloads)
        return false;
    to->n_workloads = to->workloads_capacity = from->n_workloads;
    for (size_t i = 0; i < to->n_workloads; i++)
        if (!keep_string(to->pool, &to->workloads[i].name))
            return false;
    return true;
}

static bool copy_groups(const World *from, World *to)
{
    to->groups = copy_array(from->groups, from->n_groups, sizeof(*to->groups));
    if (!to->groups)
        return false;
    to->n_groups = to->groups_capacity = from->n_groups;
    for (size_t i = 0; i < to->n_groups; i++) {
        Group *group = &to->groups[i];

        if (!keep_string(to->pool, &group->key) || !keep(to->pool, &group->home) ||
            !keep(to->pool, &group->home_nodes) || !keep(to->pool, &group->before_nodes) ||
            !keep(to->pool, &group->wish_nodes))
            return false;
    }
    return true;
}

static bool copy_process(World *to, Process *process)
{
    InternPool *pool = to->pool;
    const uint64_t *bytes = process->node_bytes;

    process->node_bytes = NULL;
    if (bytes) {
        process->node_bytes = copy_array(bytes, to->topology->n_nodes, sizeof(*bytes));
        if (!process->node_bytes)
            return false;
    }
    return keep_string(pool, &process->comm) && keep_string(pool, &process->cgroup) &&
           keep_string(pool, &process->unit) && keep_string(pool, &process->slice) &&
           keep_string(pool, &process->shared) && keep(pool, &process->cpuset) &&
           keep(pool, &process->memory.to) && keep(pool, &process->memory.last) &&
           keep(pool, &process->memory.before);
}

/* An element counts once it owns what it points to, so that freeing half a copy frees nothing of the original. */
static bool copy_processes(const World *from, World *to)
{
    to->processes = copy_array(from->processes, from->n_processes, sizeof(*to->processes));
    if (!to->processes)
        return false;
    to->processes_capacity = from->n_processes;
    while (to->n_processes < from->n_processes)
        if (!copy_process(to, &to->processes[to->n_processes++]))
            return false;
    return true;
}

static bool copy_tasks(const World *from, World *to)
{
    to->tasks = copy_array(from->tasks, from->n_tasks, sizeof(*to->tasks));
    if (!to->tasks)
        return false;
    to->tasks_capacity = from->n_tasks;
    while (to->n_tasks < from->n_tasks) {
        Task *task = &to->tasks[to->n_tasks++];
        const TaskUse *use = task->use;

        task->use = NULL;
        if (!keep(to->pool, &task->allowed) || !keep(to->pool, &task->original) ||
            (use && world_set_task_use(to, task, use->pages, use->private_permille, use->buddy,
                                       use->measured_usec) < 0))
            return false;
        if (use)
            task->use->stay = use->stay;
    }
    return true;
}

static bool copy_rest(const World *from, World *to)
{
    to->leases = copy_array(from->leases, from->n_leases, sizeof(*to->leases));
    if (!to->leases)
        return false;
    to->n_leases = to->leases_capacity = from->n_leases;
    memcpy(to->cpus, from->cpus, from->topology->cpu_limit * sizeof(*to->cpus));
    memcpy(to->nodes, from->nodes, from->topology->n_nodes * sizeof(*to->nodes));
    to->now_usec = from->now_usec;
    to->tick = from->tick;
    to->interval_usec = from->interval_usec;
    to->action_cost_usec = from->action_cost_usec;
    to->idle_permille = from->idle_permille;
    to->own_permille = from->own_permille;
    to->partial = from->partial;
    to->cross_node = from->cross_node;
    to->ablated = from->ablated;
    to->kernel_balances = from->kernel_balances;
    to->use_hidden = from->use_hidden;
    to->memory_pressure_permille = from->memory_pressure_permille;
    to->next_group_id = from->next_group_id;
    return true;
}

int world_copy(const World *world, World **ret)
{
    CLEANUP(world_free_p) World *copy = NULL;
    int r = world_new(world->topology, &copy);

    if (r < 0)
        return r;
    if (!copy_workloads(world, copy) || !copy_groups(world, copy) || !copy_processes(world, copy) ||
        !copy_tasks(world, copy) || !copy_rest(world, copy))
        return -ENOMEM;
    *ret = TAKE_PTR(copy);
    return 0;
}
