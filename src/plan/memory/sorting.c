/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A thread's block goes to the node where the thread lives: its home node in a home of several, else the only node of
 * its home. A thread that somebody else pinned to one node lives there. What a thread without a node uses alone goes
 * where it has run for a while.
 *
 * Blocks that threads of several nodes share have no right node. If they are most of what is known of a process, they
 * are interleaved over its home, so that no node serves all of them (P17); else they stay. What buddies share is not
 * dealt out in its first rounds: they may yet get a node together (P14); nor anything while its threads run on one
 * node; nor what a set of half of the threads or fewer shares, unless one node has most of all that. A block at
 * which only one thread was seen waits until another one is, or until it is known to be that one's
 * (plan/memory/blocks.h): among the memory that a database shares lies what each of its threads has alone, and uses
 * most.
 *
 * Example: 48 blocks on node 0, 20 of them of a thread that lives on node 1, 20 of one on node 0, and 8 of both. The 20
 * go to node 1 in one request; 8 of 48 is not most, and they stay. */

#include "plan/memory/sorting.h"

#include "plan/memory/follow-internal.h"

#include <string.h>

/* Blocks of threads on several nodes, of which no node has more than this share of the use, are shared. */
#define SHARED_PERMILLE 875U

/* They are striped when they are more than half of all blocks, known or not, and more than a quarter of them lie
 * elsewhere; then all of them, for as long as they are that. What all use is known first: threads walk through
 * their own but now and then. */
#define STRIPE_SHARE 2U
#define STRIPE_WORTH 4U

/* A thread without a node stays on one that it was seen on for so long, in so many rounds at least. Choices of ours:
 * longer than who wanders stays by chance. */
#define STAYS_USEC   5000000U
#define STAYS_ROUNDS 4U

/* So many rounds what buddies share waits for their node: the fast rounds at first, and some behind them. */
#define BUDDIES_ROUNDS 32U

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
    free(sorting->sums);
    free(sorting->demands);
    hwloc_bitmap_free(sorting->home);
    hwloc_bitmap_free(sorting->from);
    hwloc_bitmap_free(sorting->to);
    *sorting = (Sorting){0};
}

/*
 * Where threads live
 */

typedef struct Place {
    const SortingLook *look;
    NodeIx only;             /* node of the home; NODE_NONE: it has several */
    const uint64_t *demands; /* Sorting.demands */
    uint64_t largest;        /* node of the home, in permille of a CPU */
    bool few_apart;          /* what few share need not be dealt out */
} Place;

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

/* Where a thread without a node has run for so long that what it uses alone may be beside it. */
static NodeIx stays_on(const World *world, const Task *task)
{
    const TaskUse *use = task->use;

    return use && rule_holds(world, ABLATION_STAYS) && use->stay.rounds >= STAYS_ROUNDS &&
                   use->measured_usec - MIN(use->stay.usec, use->measured_usec) >= STAYS_USEC
               ? use->stay.node
               : NODE_NONE;
}

static NodeIx node_of(void *userdata, pid_t tid, bool alone)
{
    const Place *place = userdata;
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

/* What the threads of each set want. */
static int sum_demands(Sorting *sorting, const SortingLook *look)
{
    const Touches *touches = look->touches;

    if (!GROW(sorting->demands, sorting->demands_capacity, MAX(touches->n_threads, 1U)))
        return -ENOMEM;
    memset(sorting->demands, 0, touches->n_threads * sizeof(*sorting->demands));
    for (size_t i = 0; i < touches->n_threads; i++) {
        pid_t tid = touches->threads[i].key.tid;
        const Task *task = world_task_by_tid(look->world, look->process->pid, tid);
        TouchSet state;
        const TouchThread *first = touches_set(touches, tid, &state);

        if (task && !task->gone && first)
            sorting->demands[first - touches->threads] += buddies_demand(task);
    }
    return 0;
}

static Place place_of(const Sorting *sorting, const SortingLook *look)
{
    const World *world = look->world;
    Place place = {look, NODE_NONE, sorting->demands, 0};

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

/* What moved a while ago, or did not move though it was to several times. */
static bool rests(const Sorting *sorting, const SortingLook *look, uint64_t block, NodeIx from, NodeIx to)
{
    const SortingPast *past = find_past(sorting, block);
    uint64_t age = past ? look->world->now_usec - MIN(past->usec, look->world->now_usec) : 0;

    if (!past || !rule_holds(look->world, ABLATION_REST))
        return false;
    return age < look->policy->min_residency_usec ||
           (past->n_tries >= BLOCKS_TRIES && from.i == past->from.i) ||
           (to.i == past->from.i && age < look->policy->ping_pong_usec);
}

/* What happened too long ago to matter. */
static void forget(Sorting *sorting, const SortingLook *look)
{
    uint64_t keep = MAX(look->policy->min_residency_usec, look->policy->ping_pong_usec);
    size_t n = 0;

    for (size_t i = 0; i < sorting->n_past; i++)
        if (look->world->now_usec - MIN(sorting->past[i].usec, look->world->now_usec) < keep)
            sorting->past[n++] = sorting->past[i];
    sorting->n_past = n;
}

/*
 * What is to move
 */

static int add_move(Sorting *sorting, const SortingMove *move)
{
    SortingMove *last = sorting->n_moves > 0 ? &sorting->moves[sorting->n_moves - 1] : NULL;

    if (last && last->range.end == move->range.start && last->to.i == move->to.i &&
        last->from.i == move->from.i) {
        last->range.end = move->range.end;
        return 0;
    }
    if (!GROW(sorting->moves, sorting->moves_capacity, sorting->n_moves + 1))
        return -ENOMEM;
    sorting->moves[sorting->n_moves++] = *move;
    return 0;
}

/* Where the first block behind an address lies. */
static NodeIx lies_on(const Touches *touches, uint64_t address)
{
    size_t at = LOWER_BOUND(i, touches->n_blocks, touches->blocks[i].address < address);

    return at < touches->n_blocks ? touches->blocks[at].node : NODE_NONE;
}

/* One range of a judgement, less what rests. */
static int take_range(Sorting *sorting, const SortingLook *look, const BlocksRange *range)
{
    SortingMove move = {.range = {.end = range->start}, .to = range->to};
    int r = 0;

    while (r == 0 && move.range.end < range->end) {
        uint64_t block = move.range.end / TOUCHES_BLOCK_BYTES;

        move.range.start = move.range.end;
        move.range.end = MIN((block + 1) * TOUCHES_BLOCK_BYTES, range->end);
        move.from = lies_on(look->touches, move.range.start);
        if (rests(sorting, look, block, move.from, move.to)) {
            blocks_take_back(&sorting->blocks, move.range.start, move.range.end);
            sorting->n_resting++;
        } else {
            r = add_move(sorting, &move);
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

static const Task *user_of(const Place *place, const TouchBlock *block, size_t i)
{
    return world_task_by_tid(place->look->world, place->look->process->pid, block->owners[i].tid);
}

/* Whether it lives in all of a home of several nodes. */
static bool is_free(const Place *place, const Task *task)
{
    return task && !task->gone && planner_placeable(place->look->policy, place->look->process, task) &&
           task->home_node.i < 0 && place->only.i < 0;
}

/* The first of a user's set, if it may be one that fits a node of the home; NULL: it is none. */
static const TouchThread *set_of(const Place *place, pid_t tid)
{
    const Touches *touches = place->look->touches;
    TouchSet state;
    const TouchThread *first = touches_set(touches, tid, &state);

    return first && state != TOUCH_SET_OPEN &&
                   buddies_fit(place->demands[first - touches->threads], place->largest)
               ? first
               : NULL;
}

/* Whether two users of the block at least are of one set, and no more use it than are remembered: they may yet get a
 * node together (P14). Not where threads get none, not those who are too many for a node, and not for longer than it
 * takes to find one. */
static bool is_of_buddies(const Place *place, const TouchBlock *block)
{
    const World *world = place->look->world;
    const TouchThread *sets[TOUCHES_OWNERS];

    if (!policy_chooses_nodes(place->look->policy) || !rule_holds(world, ABLATION_APART) ||
        !rule_holds(world, ABLATION_BUDDIES) || block->others > 0 || block->n_rounds >= BUDDIES_ROUNDS)
        return false;
    for (size_t i = 0; i < TOUCHES_OWNERS && block->owners[i].tid; i++) {
        sets[i] = set_of(place, block->owners[i].tid);
        for (size_t k = 0; k < i && sets[i]; k++)
            if (sets[k] == sets[i])
                return true;
    }
    return false;
}

/* Whether threads of several nodes use it, or several that are free, which use it from any. */
static bool is_used_apart(Sorting *sorting, const Place *place, const TouchBlock *block, bool *ret_free)
{
    uint64_t *votes = sorting->sums, all = touches_weight(block), most = 0;

    *ret_free = false;
    memset(votes, 0, sorting->n_nodes * sizeof(*votes));
    for (size_t i = 0; i < TOUCHES_OWNERS && block->owners[i].tid; i++) {
        NodeIx node = node_of((void *)place, block->owners[i].tid, false);

        if (node.i >= 0) {
            votes[node.i] += block->owners[i].weight;
            most = MAX(most, votes[node.i]);
        } else if (!is_free(place, user_of(place, block, i))) {
            return false;
        } else {
            *ret_free = true;
        }
    }
    return most * 1000 < all * SHARED_PERMILLE && touches_shared(block);
}

/* Whether all who use the block are of one set, which has half of the threads of the process at most: it is nearer to
 * most of these where one of them touched it first than dealt out over the nodes of all. Half is a choice of ours. */
static bool is_of_few(const Place *place, const TouchBlock *block)
{
    const Touches *touches = place->look->touches;
    const TouchThread *set = NULL;

    for (size_t i = 0; i < TOUCHES_OWNERS && block->owners[i].tid; i++) {
        TouchSet state;
        const TouchThread *first = touches_set(touches, block->owners[i].tid, &state);

        if (!first || state == TOUCH_SET_OPEN || (set && set != first))
            return false;
        set = first;
    }
    return set && block->others == 0 && (size_t)set->set_size * 2 <= touches->n_threads;
}

/* Whether what few share lies on several nodes, none of which has more than half: else that one serves most of them.
 * Asked before anything is dealt out; what was begun is done wholly. */
static bool are_few_apart(Sorting *sorting, const SortingLook *look)
{
    const Place place = place_of(sorting, look);
    uint64_t *blocks = sorting->sums, sum = 0, most = 0;

    memset(blocks, 0, sorting->n_nodes * sizeof(*blocks));
    for (size_t i = 0; i < look->touches->n_blocks; i++) {
        const TouchBlock *block = &look->touches->blocks[i];

        if (block->node.i < 0 || (uint32_t)block->node.i >= sorting->n_nodes || !is_of_few(&place, block))
            continue;
        sum++;
        blocks[block->node.i]++;
        most = MAX(most, blocks[block->node.i]);
    }
    return most * 2 <= sum;
}

static bool is_shared(Sorting *sorting, const Place *place, const TouchBlock *block)
{
    bool any_free;

    return !(place->few_apart && is_of_few(place, block)) &&
           is_used_apart(sorting, place, block, &any_free) && (!any_free || !is_of_buddies(place, block));
}

NodeIx sorting_stripe_node(hwloc_const_bitmap_t nodes, uint64_t address)
{
    uint64_t n = address / TOUCHES_BLOCK_BYTES % (uint64_t)hwloc_bitmap_weight(nodes);
    int node = hwloc_bitmap_first(nodes);

    for (; n > 0; n--)
        node = hwloc_bitmap_next(nodes, node);
    return (NodeIx){node};
}

static bool may_stripe(const SortingLook *look, const TouchBlock *block)
{
    const MemoryRegion *region = regions_find(look->regions, block->address);

    return region && !region->bound &&
           (region->kind == REGION_KIND_ANON || region->kind == REGION_KIND_SHMEM);
}

typedef struct Shared {
    size_t n_all;
    size_t n_apart; /* what buddies or few share too, who may seem to be some for a round */
    size_t n_shared, n_elsewhere;
} Shared;

static void count_shared(Sorting *sorting, const SortingLook *look, Shared *ret)
{
    Place place = place_of(sorting, look);

    *ret = (Shared){0};
    place.few_apart = !sorting->striping && are_few_apart(sorting, look);
    for (size_t i = 0; i < look->touches->n_blocks; i++) {
        const TouchBlock *block = &look->touches->blocks[i];
        bool any_free;

        ret->n_all++;
        if (block->n_rounds < TOUCHES_ROUNDS_MIN || !may_stripe(look, block) ||
            !is_used_apart(sorting, &place, block, &any_free))
            continue;
        ret->n_apart++;
        if ((any_free && is_of_buddies(&place, block)) || (place.few_apart && is_of_few(&place, block)))
            continue;
        ret->n_shared++;
        ret->n_elsewhere +=
            block->node.i >= 0 && block->node.i != sorting_stripe_node(sorting->home, block->address).i;
    }
}

static int add_shared(Sorting *sorting, const SortingLook *look)
{
    Place place = place_of(sorting, look);
    int r = 0;

    place.few_apart = !sorting->striping && are_few_apart(sorting, look);
    for (size_t i = 0; i < look->touches->n_blocks && r == 0; i++) {
        const TouchBlock *block = &look->touches->blocks[i];
        uint64_t number = block->address / TOUCHES_BLOCK_BYTES, start = number * TOUCHES_BLOCK_BYTES;
        NodeIx to = sorting_stripe_node(sorting->home, block->address);

        if (block->node.i >= 0 && block->node.i != to.i && may_stripe(look, block) &&
            is_shared(sorting, &place, block) && !rests(sorting, look, number, block->node, to))
            r = add_move(sorting,
                         &(SortingMove){{start, start + TOUCHES_BLOCK_BYTES}, block->node, NODE_NONE});
    }
    return r;
}

static int compare_moves(const void *va, const void *vb)
{
    const SortingMove *a = va, *b = vb;

    return (a->range.start > b->range.start) - (a->range.start < b->range.start);
}

/* Whether nearly all that its threads do was on one node in the last round in which each was seen, though its home has
 * several: what they share is used from there. */
static bool runs_on_one(Sorting *sorting, const SortingLook *look)
{
    uint64_t *demands = sorting->sums, sum = 0, most = 0;

    memset(demands, 0, sorting->n_nodes * sizeof(*demands));
    for (size_t i = 0; i < look->touches->n_threads; i++) {
        const TouchThread *thread = &look->touches->threads[i];
        const Task *task = world_task_by_tid(look->world, look->process->pid, thread->key.tid);

        if (!task || task->gone || thread->n_samples == 0)
            continue;
        sum += buddies_demand(task);
        if (thread->main_node.i < 0 || (uint32_t)thread->main_node.i >= sorting->n_nodes)
            continue;
        demands[thread->main_node.i] += buddies_demand(task);
        most = MAX(most, demands[thread->main_node.i]);
    }
    return sum > 0 && most * 1000 >= sum * SHARED_PERMILLE;
}

/* Nothing is dealt out while that is so, nor because somebody was elsewhere for a moment. */
static bool waits_on_one(Sorting *sorting, const SortingLook *look)
{
    if (!rule_holds(look->world, ABLATION_STAYS))
        return false;
    if (runs_on_one(sorting, look)) {
        sorting->on_one = true;
        sorting->one_round = look->touches->n_rounds;
    }
    return sorting->on_one && look->touches->n_rounds - sorting->one_round < STAYS_ROUNDS;
}

static int stripe(Sorting *sorting, const SortingLook *look)
{
    Shared shared;
    int r;

    if (hwloc_bitmap_weight(sorting->home) < 2 || !rule_holds(look->world, ABLATION_STRIPE_SHARED) ||
        waits_on_one(sorting, look))
        return 0;
    count_shared(sorting, look, &shared);
    if (shared.n_apart * STRIPE_SHARE <= shared.n_all)
        sorting->striping = false;
    else if (shared.n_shared * STRIPE_SHARE > shared.n_all &&
             shared.n_elsewhere * STRIPE_WORTH > shared.n_shared)
        sorting->striping = true;
    if (!sorting->striping)
        return 0;
    r = add_shared(sorting, look);
    qsort(sorting->moves, sorting->n_moves, sizeof(*sorting->moves), compare_moves);
    return r;
}

int sorting_judge(Sorting *sorting, const SortingLook *look)
{
    const BlocksRules rules = {
        .two_stage = look->policy->two_stage,
        .any_balance = !rule_holds(look->world, ABLATION_BALANCE),
        .any_tries = !rule_holds(look->world, ABLATION_TRIES),
        .to_nodes = sorting->home,
    };
    Place place;
    const BlocksThreads threads = {node_of, &place};
    int r = find_home(sorting, look);

    assert(sorting->n_moves == 0);
    forget(sorting, look);
    if (r == 0)
        r = sum_demands(sorting, look);
    place = place_of(sorting, look);
    if (r == 0)
        r = blocks_judge(&sorting->blocks, look->touches, look->regions, &rules, &threads);
    if (r == 0)
        r = take_moves(sorting, look);
    if (r == 0)
        r = stripe(sorting, look);
    if (r < 0)
        sorting->n_moves = 0;
    sorting->n_quiet = sorting->n_moves > 0 ? 0 : sorting->n_quiet + (sorting->n_quiet < UINT32_MAX);
    return r;
}
