/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* On which nodes memory may lie: those that have memory, in a home or where somebody else pinned the threads. And what
 * of a process lies elsewhere. */

#include "plan/memory/follow-internal.h"
#include "plan/memory/follow.h"

bool follow_has_memory(const Topology *topology, uint32_t node)
{
    if (topology->nodes[node].memory_bytes > 0)
        return true;
    /* Descriptions of machines may leave sizes out. */
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].memory_bytes > 0)
            return false;
    return true;
}

static bool has_usable_cpu(const World *world, uint32_t node)
{
    for (uint32_t i = 0; i < world->topology->cpu_limit; i++)
        if (world->cpus[i].usable && world->topology->cpus[i].node.i == (int32_t)node)
            return true;
    return false;
}

bool follow_takes_memory(const World *world, CpuMask home_nodes, uint32_t node)
{
    return follow_has_memory(world->topology, node) &&
           (home_nodes ? (bool)hwloc_bitmap_isset(home_nodes, node) : has_usable_cpu(world, node));
}

bool follow_is_pinned(const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n), n_pinned = 0;

    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];

        if (task->gone)
            continue;
        if (task->hands != TASK_HANDS_FOREIGN || task->original || !task->allowed)
            return false;
        n_pinned++;
    }
    return n_pinned > 0;
}

bool follow_pin_takes(const World *world, const Process *process, uint32_t node)
{
    size_t n, first = world_process_tasks(world, process, &n);

    for (size_t i = first; i < first + n && follow_has_memory(world->topology, node); i++)
        if (!world->tasks[i].gone &&
            hwloc_bitmap_intersects(world->tasks[i].allowed, world->topology->nodes[node].cpus))
            return true;
    return false;
}

bool follow_is_pinned_to(const World *world, const Process *process, CpuMask nodes)
{
    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        if (follow_pin_takes(world, process, i) != (bool)hwloc_bitmap_isset(nodes, i))
            return false;
    return true;
}

CpuMask follow_find_nodes(Planner *p, CpuMask home_nodes)
{
    hwloc_bitmap_zero(p->s->nodes);
    for (uint32_t i = 0; i < p->world->topology->n_nodes; i++)
        if (follow_takes_memory(p->world, home_nodes, i))
            planner_note(p, hwloc_bitmap_set(p->s->nodes, i));
    return planner_intern(p, p->s->nodes);
}

void follow_find_outside(Follow *f)
{
    const Topology *topology = f->p->world->topology;
    uint64_t share = stripe_is(f->rule) ? stripe_share(f) : UINT64_MAX;
    hwloc_bitmap_t set = f->p->s->nodes;

    hwloc_bitmap_zero(set);
    for (uint32_t i = 0; f->process->node_bytes && i < topology->n_nodes; i++) {
        uint64_t bytes = f->process->node_bytes[i];
        uint64_t due = f->to && hwloc_bitmap_isset(f->to, i) ? share : 0;

        if (bytes <= due)
            continue;
        f->outside_bytes += bytes - due;
        planner_note(f->p, hwloc_bitmap_set(set, i));
    }
    f->from = planner_intern(f->p, set);
}
