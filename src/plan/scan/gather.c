/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/scan/gather.h"

#include "base/time.h"
#include "plan/ablation.h"
#include "plan/planner.h"

/* Instructions by cycle differ by less from one time to the next, mostly; permille. A choice of ours. */
#define NOISE_PERMILLE 150U

/* Of all its memory. What is less can hardly make a process slower, or is where it is by chance. */
#define OUTSIDE_PART 4U
#define LEAST_PART   4U /* of an equal part of it: where less lies, it does not lie */

/* Choices of ours: when it is counted again, if it seems slower; how long a trial lasts at most; when one has begun
 * though no memory could be moved; and how long what it shows is believed. */
#define AGAIN_USEC (2 * USEC_PER_SEC)
#define TRIAL_USEC (30 * USEC_PER_SEC)
#define BEGUN_USEC (8 * USEC_PER_SEC)
#define LASTS_USEC (3600 * USEC_PER_SEC)

bool gather_is_undone(const World *world, const Process *process)
{
    return process->gather.nodes && world->now_usec < process->gather.until_usec;
}

/* Puts the nodes on which it lies into `set`. Returns how many that are; -ENOMEM. */
static int find_nodes(const World *world, const Process *process, uint64_t all, hwloc_bitmap_t set)
{
    uint32_t n_nodes = world->topology->n_nodes;

    for (uint32_t i = 0; i < n_nodes; i++)
        if (process->node_bytes[i] > all / n_nodes / LEAST_PART && hwloc_bitmap_set(set, i) < 0)
            return -ENOMEM;
    return hwloc_bitmap_weight(set);
}

/* Of all nodes that have to do with it; NULL: it is not brought together, or memory is out. */
static CpuMask find_all_nodes(const World *world, const Process *process, CpuMask to, uint64_t all)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    CpuMask nodes = NULL;

    if (set && find_nodes(world, process, all, set) > hwloc_bitmap_weight(to) &&
        hwloc_bitmap_or(set, set, to) == 0)
        nodes = intern_mask(world->pool, set);
    hwloc_bitmap_free(set);
    return nodes;
}

void gather_begun(World *world, Process *process, CpuMask to)
{
    uint64_t all = 0, outside = 0;

    if (gather_is_undone(world, process))
        return;
    process->gather = (MemoryGather){0};
    if (!process->node_bytes || process->stall_usec == 0 || !rule_holds(world, ABLATION_SLOWER))
        return;
    for (uint32_t i = 0; i < world->topology->n_nodes; i++) {
        all += process->node_bytes[i];
        outside += hwloc_bitmap_isset(to, i) ? 0 : process->node_bytes[i];
    }
    if (all < PLANNER_MEMORY_MIN || outside * OUTSIDE_PART < all)
        return;
    process->gather = (MemoryGather){
        .nodes = find_all_nodes(world, process, to, all),
        .progress = process->ipc_permille,
        .since_usec = world->now_usec,
    };
}

static bool is_slower(uint64_t now, uint64_t before)
{
    return now * 1000 < before * (1000 - NOISE_PERMILLE);
}

static void begin_trial(const World *world, Process *process)
{
    MemoryGather *gather = &process->gather;

    gather->slower = false;
    gather->trial = true;
    gather->progress = process->ipc_permille;
    gather->since_usec = world->now_usec;
    gather->until_usec = world->now_usec + TRIAL_USEC;
}

static void end_trial(const World *world, Process *process)
{
    MemoryGather *gather = &process->gather;

    gather->trial = false;
    if (process->ipc_permille * 1000ULL >= gather->progress * (1000 + NOISE_PERMILLE))
        gather->until_usec = world->now_usec + LASTS_USEC;
    else
        *gather = (MemoryGather){0};
}

/* Since when what is counted counts: its memory is where it is to be, or will not come. */
static uint64_t counts_since(const Process *process)
{
    const MemoryGather *gather = &process->gather;

    if (process->memory.to)
        return UINT64_MAX;
    return gather->trial && process->memory.over_usec <= gather->since_usec
               ? gather->since_usec + BEGUN_USEC
               : MAX(gather->since_usec, process->memory.over_usec);
}

void gather_counted(const World *world, Process *process)
{
    MemoryGather *gather = &process->gather;

    if (!gather->nodes || process->stall_usec <= counts_since(process))
        return;
    if (gather->trial) {
        end_trial(world, process);
    } else if (gather->until_usec > 0) {
        return;
    } else if (!is_slower(process->ipc_permille, gather->progress)) {
        gather->slower = false;
    } else if (gather->slower) {
        begin_trial(world, process);
    } else {
        gather->slower = true;
        gather->since_usec = world->now_usec;
        process->stall_due_usec = MIN(process->stall_due_usec, world->now_usec + AGAIN_USEC);
    }
}

PackNodes gather_nodes(const World *world, size_t group)
{
    PackNodes nodes = 0;
    uint64_t all = 0, undone = 0;

    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *process = &world->processes[i];

        if (process->group.i != (int32_t)group || process->gone)
            continue;
        all += process->cpu_permille;
        if (!gather_is_undone(world, process))
            continue;
        undone += process->cpu_permille;
        for (uint32_t k = 0; k < MIN(world->topology->n_nodes, PACK_NODES_MAX); k++)
            nodes |= hwloc_bitmap_isset(process->gather.nodes, k) ? (PackNodes)1 << k : 0;
    }
    return undone * 2 > all ? nodes : 0;
}
