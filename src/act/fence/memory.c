/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A memory fence goes up and down with a CPU fence, but may stay up when that comes down for a lend: threads
 * run elsewhere for a moment, yet what they allocate belongs to their home. */

#include "act/fence/internal.h"
#include "base/time.h"

/* What a process at home may have elsewhere: as much as memory that follows leaves behind
 * (plan/memory/follow-when.c). */
#define FEW_BYTES ((uint64_t)2 << 20)
#define FEW_PART  50U

static bool is_at_home(const World *world, const Process *process)
{
    CpuMask home = world->groups[process->group.i].home_nodes;
    uint64_t all = 0, elsewhere = 0;

    if (!process->node_bytes || !home)
        return false;
    for (uint32_t i = 0; i < world->topology->n_nodes; i++) {
        all += process->node_bytes[i];
        if (!hwloc_bitmap_isset(home, i))
            elsewhere += process->node_bytes[i];
    }
    return elsewhere <= MAX(FEW_BYTES, all / FEW_PART);
}

int fence_memory_join(Fence *fence, const World *world, const Process *process, bool wanted)
{
    const Topology *topology = world->topology;
    CpuMask home = world->groups[process->group.i].home_nodes;

    if (fence->n_members == 0) {
        hwloc_bitmap_zero(fence->nodes);
        fence->gathered = true;
        for (uint32_t i = 0; wanted && home && !topology->rehearsal && i < topology->n_nodes; i++)
            if (hwloc_bitmap_isset(home, i) && topology->nodes[i].memory_bytes > 0 &&
                hwloc_bitmap_set(fence->nodes, topology->nodes[i].os_index) < 0)
                return -ENOMEM;
    }
    fence->gathered = fence->gathered && is_at_home(world, process);
    return 0;
}

/* Whether this CPU fence is to have a memory fence, up or down. */
static bool is_wanted(const Fence *cpus)
{
    return cpus->n_members > 0 && !hwloc_bitmap_iszero(cpus->nodes) && cpus->n_foreign < FENCE_FOREIGN_MAX &&
           (cpus->why == ACT_WHY_UP || cpus->why == ACT_WHY_BORROWS);
}

/* The nodes of the home that the cgroup may use anyway; none if that changes nothing. 0 or -errno. */
static int find_target(const Fences *fences, const Fence *cpus, Fence *fence)
{
    int r = fence_read_effective(fences->root_fd, fence->kind, fence->path, true, fences->scratch);

    if (r < 0)
        return r;
    if (hwloc_bitmap_and(fence->target, cpus->nodes, fences->scratch) < 0 ||
        hwloc_bitmap_copy(fence->nodes, cpus->nodes) < 0)
        return -ENOMEM;
    if (hwloc_bitmap_isequal(fence->target, fences->scratch))
        hwloc_bitmap_zero(fence->target);
    return 0;
}

static void move(Fences *fences, Fence *fence)
{
    const Fence *cpus = fence_find(fences, fence->name, false);
    bool wanted = cpus && is_wanted(cpus);
    FenceGroup *group;

    if (fence->state == FENCE_DOWN && !fence->moved && wanted && cpus->state == FENCE_UP && cpus->gathered &&
        fence->n_foreign < FENCE_FOREIGN_MAX && time_now_usec() >= fence->rest_usec &&
        fence_read_before(fences, fence) == 0 && find_target(fences, cpus, fence) == 0 &&
        !hwloc_bitmap_iszero(fence->target) && !fence_is_taken_below(fences, fence))
        fence_raise(fences, fence);
    else if (fence->state != FENCE_DOWN && (!wanted || !hwloc_bitmap_isequal(fence->nodes, cpus->nodes)))
        fence_lower(fences, fence);

    group = cpus ? fence_group(fences, cpus->group_id) : NULL;
    if (group)
        group->means.memory = fence->state == FENCE_UP;
    if (fence->state == FENCE_DOWN && !fence->noted && !wanted)
        fence_remove(fences, fence);
}

int fence_memory_follow(Fences *fences)
{
    size_t n = fences->n_fences;

    for (size_t i = 0; i < n; i++) {
        const Fence *cpus = fences->fences[i];
        Fence *fence;

        if (!cpus->memory && cpus->state == FENCE_UP && is_wanted(cpus) &&
            !fence_find(fences, cpus->name, true) &&
            fence_add(fences, cpus->kind, cpus->name, cpus->path, true, &fence) == -ENOMEM)
            return -ENOMEM;
    }
    for (size_t i = fences->n_fences; i-- > 0;)
        if (fences->fences[i]->memory)
            move(fences, fences->fences[i]);
    return 0;
}
