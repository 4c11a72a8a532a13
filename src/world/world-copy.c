/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* An independent World with the same contents, for plans that are only looked at. Names and masks are
 * interned anew, because sweeping the pool of the original would drop what only the copy holds. */

#include "world/world.h"

#include <string.h>

typedef struct Keep {
    InternPool *pool;
    bool failed;
} Keep;

static void keep_string(void *userdata, const char **s)
{
    Keep *keep = userdata;
    const char *before = *s;

    *s = intern_string(keep->pool, before);
    keep->failed |= before && !*s;
}

static void keep_mask(void *userdata, CpuMask *mask)
{
    Keep *keep = userdata;
    CpuMask before = *mask;

    *mask = before ? intern_mask(keep->pool, before) : NULL;
    keep->failed |= before && !*mask;
}

/* Copies the elements; allocates at least one. */
static void *copy_array(const void *array, size_t n, size_t size)
{
    void *copy = calloc(MAX(n, (size_t)1), size);

    if (copy && n > 0)
        memcpy(copy, array, n * size);
    return copy;
}

/* Copies everything except what elements point to; elements that own memory are not counted yet. The two
 * Worlds have no array in common, even when memory is out. */
static bool copy_arrays(const World *from, World *to)
{
    *to = *from;
    to->topology = topology_ref(from->topology);
    to->pool = intern_pool_new();
    to->cpus = copy_array(from->cpus, from->topology->cpu_limit, sizeof(*to->cpus));
    to->nodes = copy_array(from->nodes, from->topology->n_nodes, sizeof(*to->nodes));
    to->workloads = copy_array(from->workloads, from->n_workloads, sizeof(*to->workloads));
    to->groups = copy_array(from->groups, from->n_groups, sizeof(*to->groups));
    to->processes = copy_array(from->processes, from->n_processes, sizeof(*to->processes));
    to->tasks = copy_array(from->tasks, from->n_tasks, sizeof(*to->tasks));
    to->leases = copy_array(from->leases, from->n_leases, sizeof(*to->leases));
    to->workloads_capacity = from->n_workloads;
    to->groups_capacity = from->n_groups;
    to->processes_capacity = from->n_processes;
    to->tasks_capacity = from->n_tasks;
    to->leases_capacity = from->n_leases;
    to->n_processes = to->n_tasks = 0;
    return to->pool && to->cpus && to->nodes && to->workloads && to->groups && to->processes && to->tasks &&
           to->leases;
}

/* Counts an element once it owns what it points to, so that freeing half a copy frees nothing of the original. */
static bool own_memory(const World *from, World *to)
{
    while (to->n_processes < from->n_processes) {
        Process *process = &to->processes[to->n_processes++];
        const uint64_t *bytes = process->node_bytes;

        process->node_bytes = bytes ? copy_array(bytes, to->topology->n_nodes, sizeof(*bytes)) : NULL;
        if (bytes && !process->node_bytes)
            return false;
    }
    while (to->n_tasks < from->n_tasks) {
        Task *task = &to->tasks[to->n_tasks++];
        const TaskUse *use = task->use;

        task->use = NULL;
        if (use && world_set_task_use(to, task, use->pages, use->private_permille, use->buddy,
                                      use->measured_usec) < 0)
            return false;
        if (use)
            task->use->stay = use->stay;
    }
    return true;
}

int world_copy(const World *world, World **ret)
{
    CLEANUP(world_free_p) World *copy = calloc(1, sizeof(*copy));
    Keep keep = {0};

    if (!copy || !copy_arrays(world, copy) || !own_memory(world, copy))
        return -ENOMEM;
    keep.pool = copy->pool;
    world_visit_interned(copy, keep_string, keep_mask, &keep);
    if (keep.failed)
        return -ENOMEM;
    *ret = TAKE_PTR(copy);
    return 0;
}
