/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Handles memory that threads of several nodes share. It has no right node. If it is most of what is known of
 * a process, it is interleaved over the home, so that no single node serves it (P17); else it stays. Nothing
 * is interleaved while all threads run on one node, nor what buddies share in their first rounds: they may
 * yet get a node together (P14).
 *
 * Memory that a set of half of the threads or fewer shares is an exception. If the set lives on several
 * nodes, because none holds it, its memory goes to where most of its threads live. If its threads have no
 * nodes, its memory stays, unless one node has most of all such memory. */

#include "plan/memory/sorting-internal.h"

#include "plan/planner.h"

#include <string.h>

/* A block is shared if threads of several nodes use it and no node has this share of the use. */
#define SHARED_PERMILLE 875U

/* Interleaving begins when more than 1/STRIPE_WORTH of the shared blocks are on the wrong node. It lasts, for
 * all of them, while they are most of what threads use. */
#define STRIPE_WORTH 4U

/* Rounds in which memory of buddies waits for their node: the fast first ones, and some more. */
#define BUDDIES_ROUNDS 32U

/* Nodes for the memory of a set that lives on several, a bit each: those with at least three quarters as many
 * of its threads as the node with most, a choice of ours. Of three threads, two on one node, two are local to
 * memory there, and one and a half to interleaved memory. */
static uint64_t main_nodes(const uint32_t *lives, uint32_t n_nodes)
{
    uint64_t nodes = 0;
    uint32_t most = 0, n = 0;

    for (uint32_t i = 0; i < n_nodes; i++) {
        most = MAX(most, lives[i]);
        n += lives[i] > 0;
    }
    for (uint32_t i = 0; i < n_nodes && n > 1; i++)
        nodes |= (uint64_t)(lives[i] * 4 >= most * 3) << i;
    return nodes;
}

int sorting_sum_sets(Sorting *sorting, const SortingLook *look)
{
    const Touches *touches = look->touches;
    uint32_t n_nodes = MIN(sorting->n_nodes, PACK_NODES_MAX);

    if (!GROW(sorting->sets, sorting->sets_capacity, MAX(touches->n_threads, 1U)) ||
        !GROW(sorting->lives, sorting->lives_capacity, MAX(touches->n_threads, 1U) * n_nodes))
        return -ENOMEM;
    sorting->n_threads = 0;
    memset(sorting->sets, 0, touches->n_threads * sizeof(*sorting->sets));
    memset(sorting->lives, 0, touches->n_threads * n_nodes * sizeof(*sorting->lives));
    for (size_t i = 0; i < touches->n_threads; i++) {
        pid_t tid = touches->threads[i].key.tid;
        const Task *task = world_task_by_tid(look->world, look->process->pid, tid);
        TouchSet state;
        const TouchThread *first = touches_set(touches, tid, &state);
        size_t set = first ? (size_t)(first - touches->threads) : 0;

        if (!task || task->gone || !first)
            continue;
        sorting->n_threads++;
        sorting->sets[set].n++;
        sorting->sets[set].demand += buddies_demand(task);
        if (state == TOUCH_SET_CLOSED && task->home_node.i >= 0 && (uint32_t)task->home_node.i < n_nodes)
            sorting->lives[set * n_nodes + (uint32_t)task->home_node.i]++;
        else
            sorting->sets[set].is_free = true;
    }
    for (size_t i = 0; i < touches->n_threads; i++)
        if (!sorting->sets[i].is_free)
            sorting->sets[i].nodes = main_nodes(sorting->lives + i * n_nodes, n_nodes);
    return 0;
}

static const Task *user_of(const SortingPlace *place, const TouchBlock *block, size_t i)
{
    return world_task_by_tid(place->look->world, place->look->process->pid, block->owners[i].tid);
}

/* Whether the thread lives in all of a home of several nodes. */
static bool is_free(const SortingPlace *place, const Task *task)
{
    return task && !task->gone && planner_placeable(place->look->policy, place->look->process, task) &&
           task->home_node.i < 0 && place->only.i < 0;
}

/* The first thread of a user's set; NULL: it has none, or the set is open or too large for a node of the home. */
static const TouchThread *set_of(const SortingPlace *place, pid_t tid)
{
    const Touches *touches = place->look->touches;
    TouchSet state;
    const TouchThread *first = touches_set(touches, tid, &state);

    return first && state != TOUCH_SET_OPEN &&
                   buddies_fit(place->sets[first - touches->threads].demand, place->largest)
               ? first
               : NULL;
}

/* Whether at least two users of the block are in one set and all its users are remembered: they may yet get a
 * node together (P14). Not if threads get no nodes, nor for a set too large for a node, nor for longer than
 * finding a node takes. */
static bool is_of_buddies(const SortingPlace *place, const TouchBlock *block)
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

/* Whether threads of several nodes use the block, or several free ones, which use it from any node. */
static bool is_used_apart(Sorting *sorting, const SortingPlace *place, const TouchBlock *block,
                          bool *ret_free)
{
    uint64_t *votes = sorting->sums, all = touches_weight(block), most = 0;

    *ret_free = false;
    memset(votes, 0, sorting->n_nodes * sizeof(*votes));
    for (size_t i = 0; i < TOUCHES_OWNERS && block->owners[i].tid; i++) {
        NodeIx node = sorting_node_of((void *)place, block->owners[i].tid, false);

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

/* The set of all users of the block, if it has at most half of the living threads (a choice of ours); else NULL. Most
 * of these are nearer to the block where one of them touched it first than interleaved over the nodes of all. */
static const SortingSet *few_of(const SortingPlace *place, const TouchBlock *block)
{
    const Touches *touches = place->look->touches;
    const TouchThread *set = NULL;

    for (size_t i = 0; i < TOUCHES_OWNERS && block->owners[i].tid; i++) {
        TouchSet state;
        const TouchThread *first = touches_set(touches, block->owners[i].tid, &state);

        if (!first || state == TOUCH_SET_OPEN || (set && set != first))
            return NULL;
        set = first;
    }
    return set && block->others == 0 && place->sets[set - touches->threads].n * 2 <= place->n_threads
               ? &place->sets[set - touches->threads]
               : NULL;
}

/* Whether no node has more than half of the memory that few share; a node with more would serve most of it.
 * Asked before interleaving begins: once begun, it is done completely. */
static bool are_few_apart(Sorting *sorting, const SortingLook *look)
{
    const SortingPlace place = sorting_place_of(sorting, look);
    uint64_t *blocks = sorting->sums, sum = 0, most = 0;

    memset(blocks, 0, sorting->n_nodes * sizeof(*blocks));
    for (size_t i = 0; i < look->touches->n_blocks; i++) {
        const TouchBlock *block = &look->touches->blocks[i];

        if (block->node.i < 0 || (uint32_t)block->node.i >= sorting->n_nodes || !few_of(&place, block))
            continue;
        sum++;
        blocks[block->node.i]++;
        most = MAX(most, blocks[block->node.i]);
    }
    return most * 2 <= sum;
}

static bool is_shared(Sorting *sorting, const SortingPlace *place, const TouchBlock *block)
{
    const SortingSet *few = few_of(place, block);
    bool any_free;

    return !(few && (few->nodes || place->few_apart)) && is_used_apart(sorting, place, block, &any_free) &&
           (!any_free || !is_of_buddies(place, block));
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

/* The node of `nodes` (a bit each) for a block interleaved over them, by its address. */
static NodeIx dealt_node(uint64_t nodes, uint64_t address)
{
    for (uint64_t n = address / TOUCHES_BLOCK_BYTES % (unsigned)__builtin_popcountll(nodes); n > 0; n--)
        nodes &= nodes - 1;
    return (NodeIx){__builtin_ctzll(nodes)};
}

/* Where a block goes that few threads on several nodes share: to one of their nodes, if it is on none.
 * NODE_NONE: it stays. */
static NodeIx node_of_few(Sorting *sorting, const SortingPlace *place, const TouchBlock *block)
{
    const SortingSet *few = block->n_rounds >= TOUCHES_ROUNDS_MIN ? few_of(place, block) : NULL;
    uint64_t nodes = few ? few->nodes : 0;
    NodeIx to = nodes ? dealt_node(nodes, block->address) : NODE_NONE;
    bool any_free;

    return nodes && block->node.i >= 0 && (nodes >> block->node.i & 1) == 0 &&
                   may_stripe(place->look, block) && hwloc_bitmap_isset(sorting->home, (unsigned)to.i) &&
                   is_used_apart(sorting, place, block, &any_free)
               ? to
               : NODE_NONE;
}

int sorting_add_few(Sorting *sorting, const SortingLook *look)
{
    const SortingPlace place = sorting_place_of(sorting, look);
    int r = 0;

    for (size_t i = 0; i < look->touches->n_blocks && r == 0; i++) {
        const TouchBlock *block = &look->touches->blocks[i];
        uint64_t number = block->address / TOUCHES_BLOCK_BYTES, start = number * TOUCHES_BLOCK_BYTES;
        NodeIx to = node_of_few(sorting, &place, block);

        if (to.i >= 0 && !sorting_rests(sorting, look, number, block->node, to))
            r = sorting_add_move(sorting,
                                 &(SortingMove){{start, start + TOUCHES_BLOCK_BYTES}, block->node, to});
    }
    return r;
}

/* Blocks, and the sum of their users. */
typedef struct SharedSum {
    size_t n, n_users;
} SharedSum;

typedef struct Shared {
    SharedSum all;
    SharedSum apart; /* including what buddies or few share: they may look like a set for one round */
    SharedSum shared;
    size_t n_unknown; /* of which little is known */
    size_t n_open;    /* which buddies may yet have alone */
    size_t n_elsewhere;
} Shared;

/* Fewer users are often the one that touched the block first and the real one, and count as one, unless they
 * are all threads (P17, v18: three buddies or more). */
#define USERS_MIN 3U

/* If more users were there than are remembered, all threads count: their number is not known. */
static size_t count_users(const Sorting *sorting, const TouchBlock *block, const SortingSet *few)
{
    size_t n = 0;

    while (n < TOUCHES_OWNERS && block->owners[n].tid)
        n++;
    if (few)
        return few->n;
    if (block->others > 0)
        return MAX(sorting->n_threads, n);
    return n >= MIN(USERS_MIN, sorting->n_threads) ? n : 1;
}

static void add_block(SharedSum *sum, size_t n_users)
{
    sum->n++;
    sum->n_users += n_users;
}

static void count_shared(Sorting *sorting, const SortingLook *look, Shared *ret)
{
    SortingPlace place = sorting_place_of(sorting, look);

    *ret = (Shared){0};
    place.few_apart = !sorting->striping && are_few_apart(sorting, look);
    for (size_t i = 0; i < look->touches->n_blocks; i++) {
        const TouchBlock *block = &look->touches->blocks[i];
        const SortingSet *few = few_of(&place, block);
        size_t n_users = count_users(sorting, block, few);
        bool any_free;

        add_block(&ret->all, n_users);
        if (block->n_rounds < TOUCHES_ROUNDS_MIN) {
            ret->n_unknown++;
            continue;
        }
        if (!may_stripe(look, block) || !is_used_apart(sorting, &place, block, &any_free))
            continue;
        add_block(&ret->apart, n_users);
        if (any_free && is_of_buddies(&place, block)) {
            ret->n_open++;
        } else if (!few || !(few->nodes || place.few_apart)) {
            add_block(&ret->shared, n_users);
            ret->n_elsewhere +=
                block->node.i >= 0 && block->node.i != sorting_stripe_node(sorting->home, block->address).i;
        }
    }
}

static int add_shared(Sorting *sorting, const SortingLook *look)
{
    SortingPlace place = sorting_place_of(sorting, look);
    int r = 0;

    place.few_apart = !sorting->striping && are_few_apart(sorting, look);
    for (size_t i = 0; i < look->touches->n_blocks && r == 0; i++) {
        const TouchBlock *block = &look->touches->blocks[i];
        uint64_t number = block->address / TOUCHES_BLOCK_BYTES, start = number * TOUCHES_BLOCK_BYTES;
        NodeIx to = sorting_stripe_node(sorting->home, block->address);

        if (block->node.i >= 0 && block->node.i != to.i && may_stripe(look, block) &&
            is_shared(sorting, &place, block) && !sorting_rests(sorting, look, number, block->node, to))
            r = sorting_add_move(
                sorting, &(SortingMove){{start, start + TOUCHES_BLOCK_BYTES}, block->node, NODE_NONE});
    }
    return r;
}

/* Whether nearly all work of the threads was on one node when each was last seen, though the home has
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

/* Whether threads run on one node, or did until a moment ago: nothing is interleaved then. */
static bool waits_on_one(Sorting *sorting, const SortingLook *look)
{
    if (!rule_holds(look->world, ABLATION_STAYS))
        return false;
    if (runs_on_one(sorting, look)) {
        sorting->on_one = true;
        sorting->one_round = look->touches->n_rounds;
    }
    return sorting->on_one && look->touches->n_rounds - sorting->one_round < SORTING_STAYS_ROUNDS;
}

/* Whether `part` is most of what threads use; each block counts once per user. Threads walk through their own
 * memory only now and then, so shared memory is known first. It is not most while more blocks than it has are
 * little known. */
static bool is_most(const Shared *shared, const SharedSum *part, size_t n_unknown)
{
    return part->n > n_unknown && part->n_users * 2 > shared->all.n_users;
}

int sorting_stripe(Sorting *sorting, const SortingLook *look)
{
    Shared shared;

    if (hwloc_bitmap_weight(sorting->home) < 2 || !rule_holds(look->world, ABLATION_STRIPE_SHARED) ||
        waits_on_one(sorting, look))
        return 0;
    count_shared(sorting, look, &shared);
    if (!is_most(&shared, &shared.apart, shared.n_unknown))
        sorting->striping = false;
    else if (is_most(&shared, &shared.shared, shared.n_unknown + shared.n_open) &&
             shared.n_elsewhere * STRIPE_WORTH > shared.shared.n)
        sorting->striping = true;
    return sorting->striping ? add_shared(sorting, look) : 0;
}
