/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/scan/gather.h"

#include "base/time.h"
#include "plan/ablation.h"
#include "plan/group.h"
#include "plan/planner.h"

/* Instructions per cycle mostly differ by less from one count to the next; permille. A choice of ours. */
#define NOISE_PERMILLE 150U

/* 1/OUTSIDE_PART of all memory: less can hardly make a process slower, or lies there by chance. */
#define OUTSIDE_PART 4U
#define MUCH_PART    2U /* of an equal part for each node with CPUs */

/* Choices of ours: how old a count before a move may be, and how long after it counts are compared; how long a new
 * process is waited for until it is counted; when it is counted again, in doubt; when a trial counts as begun though
 * no memory moved; and how long its result holds. */
#define COMPARED_USEC (60 * USEC_PER_SEC)
#define AWAITED_USEC  (2 * USEC_PER_SEC)
#define AGAIN_USEC    (2 * USEC_PER_SEC)
#define BEGUN_USEC    (8 * USEC_PER_SEC)
#define LASTS_USEC    (3600 * USEC_PER_SEC)

bool gather_is_undone(const World *world, const Policy *policy, const Process *process)
{
    const MemoryGather *gather = &process->gather;

    return gather->nodes && world->now_usec < gather->until_usec && gather->cpuset == process->cpuset &&
           policy && policy->mode == POLICY_MODE_AUTO && !policy->nodes;
}

/* Whether the daemon may let its memory go back: it chose the nodes. */
static bool is_watched(const World *world, const Policy *policy, const Process *process)
{
    return policy && policy->mode == POLICY_MODE_AUTO && !policy->nodes && process->node_bytes &&
           rule_holds(world, ABLATION_SLOWER);
}

/* Whether much of `all` its memory lies on the node, and the node has CPUs. */
static bool lies_on(const World *world, const Process *process, uint64_t all, uint32_t node)
{
    const Topology *topology = world->topology;
    uint32_t n = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        n += topology->nodes[i].n_cpus > 0;
    return topology->nodes[node].n_cpus > 0 && process->node_bytes[node] > all / n / MUCH_PART;
}

/* Whether enough of its memory would move to `to`, which is fewer nodes than it lies on. */
static bool is_gathered(const World *world, const Process *process, CpuMask to, uint64_t all)
{
    uint64_t outside = 0;
    int n = 0;

    for (uint32_t i = 0; i < world->topology->n_nodes; i++) {
        outside += hwloc_bitmap_isset(to, i) ? 0 : process->node_bytes[i];
        n += lies_on(world, process, all, i);
    }
    return all >= PLANNER_MEMORY_MIN && outside * OUTSIDE_PART >= all && n > hwloc_bitmap_weight(to);
}

bool gather_awaits_count(const World *world, const Policy *policy, const Process *process, CpuMask to)
{
    return process->stall_due_usec > 0 && process->stall_usec == 0 &&
           world_since(world, process->first_seen_usec) < AWAITED_USEC &&
           is_watched(world, policy, process) &&
           is_gathered(world, process, to, world_sum_nodes(world, process->node_bytes));
}

/* The nodes on which much of its memory lies, and `to`. NULL: out of memory. */
static CpuMask find_all_nodes(const World *world, const Process *process, CpuMask to, uint64_t all)
{
    hwloc_bitmap_t set = hwloc_bitmap_dup(to);
    CpuMask nodes = NULL;
    bool complete = set;

    for (uint32_t i = 0; complete && i < world->topology->n_nodes; i++)
        if (lies_on(world, process, all, i))
            complete = hwloc_bitmap_set(set, i) == 0;
    if (complete)
        nodes = intern_mask(world->pool, set);
    hwloc_bitmap_free(set);
    return nodes;
}

/* Whether it was counted recently, with its memory where it is. */
static bool was_counted(const World *world, const Process *process)
{
    return process->stall_usec > process->memory.over_usec &&
           world_since(world, process->stall_usec) <= COMPARED_USEC;
}

/* A request to the same nodes as before moves the rest. If the memory had gone back and follows all the same,
 * its home had to change. */
void gather_begun(World *world, const Policy *policy, Process *process, CpuMask to)
{
    bool undone = gather_is_undone(world, policy, process);
    uint64_t all;

    if (process->gather.nodes && process->gather.until_usec == 0 && process->memory.last == to &&
        world_since(world, process->gather.begun_usec) <= 2 * COMPARED_USEC) {
        process->gather.slower = false;
        return;
    }
    process->gather = (MemoryGather){0};
    if (undone || !is_watched(world, policy, process) || !was_counted(world, process))
        return;
    all = world_sum_nodes(world, process->node_bytes);
    if (!is_gathered(world, process, to, all))
        return;
    process->gather = (MemoryGather){
        .nodes = find_all_nodes(world, process, to, all),
        .cpuset = process->cpuset,
        .progress = process->ipc_permille,
        .begun_usec = world->now_usec,
        .since_usec = world->now_usec,
    };
}

static bool is_slower(uint64_t now, uint64_t before)
{
    return now * 1000 < before * (1000 - NOISE_PERMILLE);
}

static void count_again(const World *world, Process *process)
{
    process->stall_due_usec = MIN(process->stall_due_usec, world->now_usec + AGAIN_USEC);
}

static void begin_trial(const World *world, Process *process)
{
    MemoryGather *gather = &process->gather;

    gather->slower = false;
    gather->trial = true;
    gather->progress = process->ipc_permille;
    gather->since_usec = world->now_usec;
    gather->until_usec = world->now_usec + LASTS_USEC;
    count_again(world, process);
}

static void end_trial(const World *world, Process *process)
{
    MemoryGather *gather = &process->gather;

    gather->trial = false;
    if (process->memory.last == gather->nodes && world->now_usec < gather->until_usec &&
        process->ipc_permille * 1000ULL >= gather->progress * (1000 + NOISE_PERMILLE))
        gather->until_usec = world->now_usec + LASTS_USEC;
    else
        *gather = (MemoryGather){0};
}

/* From when on counts are valid: the memory is where it is to be, or will not come. */
static uint64_t counts_since(const Process *process)
{
    const MemoryGather *gather = &process->gather;

    if (process->memory.to)
        return UINT64_MAX;
    return gather->trial && process->memory.over_usec <= gather->since_usec
               ? gather->since_usec + BEGUN_USEC
               : MAX(gather->since_usec, process->memory.over_usec);
}

static void compare(const World *world, Process *process, uint64_t since_usec)
{
    MemoryGather *gather = &process->gather;

    if (process->memory.n_vain > 0 || world_since(world, since_usec) > COMPARED_USEC) {
        *gather = (MemoryGather){0};
    } else if (!is_slower(process->ipc_permille, gather->progress)) {
        gather->slower = false;
    } else if (gather->slower) {
        begin_trial(world, process);
    } else {
        gather->slower = true;
        gather->since_usec = world->now_usec;
        count_again(world, process);
    }
}

void gather_counted(const World *world, Process *process)
{
    MemoryGather *gather = &process->gather;
    uint64_t since = counts_since(process);

    if (!gather->nodes || (gather->until_usec > 0 && !gather->trial))
        return;
    if (process->stall_usec <= since)
        count_again(world, process);
    else if (gather->trial)
        end_trial(world, process);
    else
        compare(world, process, since);
}
