/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A block goes to the node where its thread lives: the thread's home node in a home of several, else the only
 * node of its home. A thread that somebody else pinned to one node lives there. Memory that only a thread
 * without a node uses goes where this thread has run for a while.
 *
 * sorting-shared.c handles memory that threads of several nodes share. A block at which only one thread was
 * seen waits for another user, or until it is known to be private (plan/memory/blocks.h): the memory that a
 * database shares also holds what each of its threads has alone, and uses most.
 *
 * Example: 48 blocks on node 0, 20 of them of a thread that lives on node 1, 20 of one on node 0, and 8 of
 * both. The 20 go to node 1 in one request; 8 of 48 is not most, and they stay. */

#include "plan/memory/sorting-internal.h"

#include "plan/memory/follow-internal.h"

#include <string.h>

/* How long a thread without a node must have been seen on one to stay there, in at least SORTING_STAYS_ROUNDS
 * rounds. A choice of ours: longer than a wandering thread stays by chance. */
#define STAYS_USEC 5000000U

/* How long a moved block may not go back; doubled after further moves, up to BACK_DOUBLINGS times. Choices of ours. */
#define BACK_USEC      5000000ULL
#define BACK_DOUBLINGS 16

int sorting_init(Sorting *sorting, uint32_t n_nodes)
{
    *sorting = (Sorting){
        .home = hwloc_bitmap_alloc(),
        .from = hwloc_bitmap_alloc(),
        .to = hwloc_bitmap_alloc(),
        .sums = calloc(MAX(n_nodes, 1U), sizeof(*sorting->sums)),
        .n_nodes = n_nodes,
    };
    if (sorting->home && sorting->from && sorting->to && sorting->sums &&
        blocks_init(&sorting->blocks, n_nodes) == 0)
        return 0;
    sorting_done(sorting);
    return -ENOMEM;
}

void sorting_done(Sorting *sorting)
{
    blocks_done(&sorting->blocks);
    free(sorting->moves);
    free(sorting->past);
    free(sorting->ranges);
    free(sorting->tried);
    free(sorting->sums);
    free(sorting->sets);
    free(sorting->lives);
    hwloc_bitmap_free(sorting->home);
    hwloc_bitmap_free(sorting->from);
    hwloc_bitmap_free(sorting->to);
    *sorting = (Sorting){0};
}

/*
 * Where threads live
 */

/* The node all these CPUs are on, or NODE_NONE. */
static NodeIx node_of_cpus(const Topology *topology, CpuMask cpus)
{
    NodeIx node = NODE_NONE;

    for (int i = cpus ? hwloc_bitmap_first(cpus) : -1; i >= 0; i = hwloc_bitmap_next(cpus, i)) {
        const TopologyCpu *cpu = topology_cpu(topology, (CpuIx){i});

        if (!cpu || (node.i >= 0 && cpu->node.i != node.i))
            return NODE_NONE;
        node = cpu->node;
    }
    return node;
}

/* The node where a thread without one has run long enough for its private memory to follow, or NODE_NONE. */
static NodeIx stays_on(const World *world, const Task *task)
{
    const TaskUse *use = task->use;

    return use && rule_holds(world, ABLATION_STAYS) && use->stay.rounds >= SORTING_STAYS_ROUNDS &&
                   use->measured_usec - MIN(use->stay.usec, use->measured_usec) >= STAYS_USEC
               ? use->stay.node
               : NODE_NONE;
}

NodeIx sorting_node_of(void *userdata, pid_t tid, bool alone)
{
    const SortingPlace *place = userdata;
    const SortingLook *look = place->look;
    const Task *task = world_task_by_tid(look->world, look->process->pid, tid);

    if (!task || task->gone)
        return NODE_NONE;
    if (!planner_placeable(look->policy, look->process, task))
        return node_of_cpus(look->world->topology, task->allowed);
    if (task->home_node.i >= 0)
        return task->home_node;
    return place->only.i < 0 && alone ? stays_on(look->world, task) : place->only;
}

static int find_home(Sorting *sorting, const SortingLook *look)
{
    const Topology *topology = look->world->topology;
    const Group *group = look->process->group.i >= 0 ? &look->world->groups[look->process->group.i] : NULL;

    hwloc_bitmap_zero(sorting->home);
    for (uint32_t i = 0; group && i < topology->n_nodes; i++)
        if (follow_has_memory(topology, i) &&
            (group->home_nodes ? hwloc_bitmap_isset(group->home_nodes, i) : group->roams) &&
            hwloc_bitmap_set(sorting->home, i) < 0)
            return -ENOMEM;
    return 0;
}

SortingPlace sorting_place_of(const Sorting *sorting, const SortingLook *look)
{
    const World *world = look->world;
    SortingPlace place = {look, NODE_NONE, sorting->sets, sorting->n_threads, 0};

    if (hwloc_bitmap_weight(sorting->home) == 1)
        place.only = (NodeIx){hwloc_bitmap_first(sorting->home)};
    if (look->process->group.i >= 0)
        place.largest =
            buddies_largest(world, sorting->home, world->groups[look->process->group.i].demand_permille);
    return place;
}

/*
 * Rest (I7)
 */

int sorting_compare_past(const void *va, const void *vb)
{
    const SortingPast *a = va, *b = vb;

    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    return (a->usec > b->usec) - (a->usec < b->usec);
}

static SortingPast *find_past(const Sorting *sorting, uint64_t block)
{
    const SortingPast key = {.block = block, .usec = UINT64_MAX};
    size_t end = LOWER_BOUND(i, sorting->n_past, sorting_compare_past(&sorting->past[i], &key) <= 0);

    return end > 0 && sorting->past[end - 1].block == block ? &sorting->past[end - 1] : NULL;
}

/* How long a block may not return to where it came from. The first thread seen to use it is not always its
 * user, so it may return soon, and then each time after twice as long, up to PingPongSec=. */
static uint64_t back_usec(const Policy *policy, const SortingPast *past)
{
    return MIN(policy->ping_pong_usec, BACK_USEC << MIN(past->n_moves - 1, BACK_DOUBLINGS));
}

bool sorting_rests(const Sorting *sorting, const SortingLook *look, uint64_t block, NodeIx from, NodeIx to)
{
    const SortingPast *past = find_past(sorting, block);
    uint64_t age = past ? world_since(look->world, past->usec) : 0;

    if (!past || !rule_holds(look->world, ABLATION_REST))
        return false;
    return age < look->policy->min_residency_usec ||
           (past->n_tries >= BLOCKS_TRIES && from.i == past->from.i && age < look->policy->ping_pong_usec) ||
           (to.i == past->from.i && age < back_usec(look->policy, past));
}

/* Forgets moves too old to matter. */
static void forget(Sorting *sorting, const SortingLook *look)
{
    uint64_t keep = MAX(look->policy->min_residency_usec, 2 * look->policy->ping_pong_usec);
    size_t n = 0;

    for (size_t i = 0; i < sorting->n_past; i++)
        if (world_since(look->world, sorting->past[i].usec) < keep)
            sorting->past[n++] = sorting->past[i];
    sorting->n_past = n;
}

/*
 * What is to move
 */

int sorting_add_move(Sorting *sorting, const SortingMove *move)
{
    SortingMove *last = sorting->n_moves > 0 ? &sorting->moves[sorting->n_moves - 1] : NULL;

    if (last && last->range.end == move->range.start && last->to.i == move->to.i &&
        last->from.i == move->from.i && last->judged == move->judged) {
        last->range.end = move->range.end;
        return 0;
    }
    return APPEND(sorting->moves, sorting->moves_capacity, sorting->n_moves, *move);
}

/* The node of the first block from an address on. */
static NodeIx lies_on(const Touches *touches, uint64_t address)
{
    size_t at = LOWER_BOUND(i, touches->n_blocks, touches->blocks[i].address < address);

    return at < touches->n_blocks ? touches->blocks[at].node : NODE_NONE;
}

/* Adds one range of a judgement, without blocks that rest. */
static int take_range(Sorting *sorting, const SortingLook *look, const BlocksRange *range)
{
    SortingMove move = {.range = {.end = range->start}, .to = range->to, .judged = true};
    int r = 0;

    while (r == 0 && move.range.end < range->end) {
        uint64_t block = move.range.end / TOUCHES_BLOCK_BYTES;

        move.range.start = move.range.end;
        move.range.end = MIN((block + 1) * TOUCHES_BLOCK_BYTES, range->end);
        move.from = lies_on(look->touches, move.range.start);
        if (sorting_rests(sorting, look, block, move.from, move.to)) {
            blocks_take_back(&sorting->blocks, move.range.start, move.range.end);
            sorting->n_resting++;
        } else {
            r = sorting_add_move(sorting, &move);
        }
    }
    return r;
}

static int take_moves(Sorting *sorting, const SortingLook *look)
{
    int r = 0;

    for (size_t i = 0; i < sorting->blocks.n_moves && r == 0; i++)
        r = take_range(sorting, look, &sorting->blocks.moves[i]);
    return r;
}

static int compare_moves(const void *va, const void *vb)
{
    const SortingMove *a = va, *b = vb;

    return (a->range.start > b->range.start) - (a->range.start < b->range.start);
}

int sorting_judge(Sorting *sorting, const SortingLook *look)
{
    const BlocksRules rules = {
        .two_stage = look->policy->two_stage,
        .any_balance = !rule_holds(look->world, ABLATION_BALANCE),
        .any_tries = !rule_holds(look->world, ABLATION_TRIES),
        .to_nodes = sorting->home,
    };
    SortingPlace place;
    const BlocksThreads threads = {sorting_node_of, &place};
    int r = find_home(sorting, look);

    assert(sorting->n_moves == 0);
    forget(sorting, look);
    if (r == 0)
        r = sorting_sum_sets(sorting, look);
    place = sorting_place_of(sorting, look);
    if (r == 0)
        r = blocks_judge(&sorting->blocks, look->touches, look->regions, &rules, &threads);
    if (r == 0)
        r = take_moves(sorting, look);
    if (r == 0)
        r = sorting_add_few(sorting, look);
    if (r == 0)
        r = sorting_stripe(sorting, look);
    if (sorting->n_moves > 0)
        qsort(sorting->moves, sorting->n_moves, sizeof(*sorting->moves), compare_moves);
    if (r < 0)
        sorting->n_moves = 0;
    sorting->n_quiet = sorting->n_moves > 0 ? 0 : sorting->n_quiet + (sorting->n_quiet < UINT32_MAX);
    return r;
}
