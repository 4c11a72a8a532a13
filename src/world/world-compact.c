/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Drops what is gone. Entries move down in place, in order, so the arrays stay sorted. The only memory needed
 * is a map of group indices, allocated before anything changes. */

#include "world/world.h"

/* Maps each group to its new index; -1: it is dropped. A group without processes is dropped as well, or a
 * host that forks all day would collect them. */
static void map_groups(const World *world, GroupIx *map)
{
    int32_t n = 0;

    for (size_t i = 0; i < world->n_groups; i++)
        map[i] = GROUP_NONE;
    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *p = &world->processes[i];

        if (!p->gone && p->group.i >= 0 && !world->groups[p->group.i].gone)
            map[p->group.i].i = 0;
    }
    for (size_t i = 0; i < world->n_groups; i++)
        if (map[i].i >= 0)
            map[i].i = n++;
}

static void drop_leases(World *world)
{
    size_t n = 0;

    for (size_t i = 0; i < world->n_leases; i++) {
        const Task *task = world_task(world, world->leases[i].task);

        if (task && !task->gone && !world->processes[task->process.i].gone)
            world->leases[n++] = world->leases[i];
    }
    world->n_leases = n;
}

static void drop_groups(World *world, const GroupIx *map)
{
    size_t n = 0;

    for (size_t i = 0; i < world->n_groups; i++)
        if (map[i].i >= 0)
            world->groups[n++] = world->groups[i];
    world->n_groups = n;
}

/* Tasks are in the order of their processes, so one walk over both is enough. */
static void drop_processes_and_tasks(World *world, const GroupIx *map)
{
    size_t n_processes = 0, n_tasks = 0, t = 0;

    for (size_t i = 0; i < world->n_processes; i++) {
        Process *p = &world->processes[i];
        bool gone = p->gone;

        for (; t < world->n_tasks && world->tasks[t].process.i == (int32_t)i; t++) {
            if (gone || world->tasks[t].gone) {
                free(world->tasks[t].use);
                continue;
            }
            world->tasks[n_tasks] = world->tasks[t];
            world->tasks[n_tasks++].process.i = (int32_t)n_processes;
        }
        if (gone) {
            free(p->node_bytes);
            continue;
        }
        if (p->group.i >= 0)
            p->group = map[p->group.i];
        world->processes[n_processes++] = *p;
    }
    world->n_processes = n_processes;
    world->n_tasks = n_tasks;
}

static void mark_string(void *userdata, const char **s)
{
    intern_mark_string(userdata, *s);
}

static void mark_mask(void *userdata, CpuMask *mask)
{
    intern_mark_mask(userdata, *mask);
}

static void sweep_pool(World *world)
{
    intern_pool_begin(world->pool);
    world_visit_interned(world, mark_string, mark_mask, world->pool);
    intern_pool_sweep(world->pool);
}

/* Gives memory back after many entries were dropped. Failure is harmless. */
static void shrink(void **array, size_t *capacity, size_t n, size_t element_size)
{
    size_t want = MAX(n * 2, (size_t)64);
    void *p;

    if (*capacity / 2 <= want)
        return;
    p = realloc(*array, want * element_size);
    if (!p)
        return;
    *array = p;
    *capacity = want;
}

int world_compact(World *world)
{
    CLEANUP_FREE GroupIx *map = calloc(MAX(world->n_groups, (size_t)1), sizeof(*map));

    if (!map)
        return -ENOMEM;

    map_groups(world, map);
    drop_leases(world);
    drop_groups(world, map);
    drop_processes_and_tasks(world, map);
    sweep_pool(world);
    shrink((void **)&world->groups, &world->groups_capacity, world->n_groups, sizeof(*world->groups));
    shrink((void **)&world->processes, &world->processes_capacity, world->n_processes,
           sizeof(*world->processes));
    shrink((void **)&world->tasks, &world->tasks_capacity, world->n_tasks, sizeof(*world->tasks));
    world_sum(world);
    return 0;
}
