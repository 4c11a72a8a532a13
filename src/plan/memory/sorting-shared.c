/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What threads of several nodes share. It has no right node. If it is most of what is known of a process, it is
 * interleaved over its home, so that no node serves all of it (P17); else it stays. What buddies share is not dealt out
 * in its first rounds: they may yet get a node together (P14); nor anything while its threads run on one node.
 *
 * Nor what a set of half of the threads or fewer shares. If these live on several nodes, because none holds them, it
 * goes to where most of them live. If they live on none it stays, unless one node has most of all that. */

#include "plan/memory/sorting-internal.h"

#include "plan/planner.h"

#include <string.h>

/* Blocks of threads on several nodes, of which no node has more than this share of the use, are shared. */
#define SHARED_PERMILLE 875U

/* They are striped when more than a quarter of them lie elsewhere; then all of them, for as long as they are most of
 * what a thread uses. */
#define STRIPE_WORTH 4U

/* So many rounds what buddies share waits for their node: the fast rounds at first, and some behind them. */
#define BUDDIES_ROUNDS 32U

/* A node on which less than three quarters as many of a set live as on another one, a choice of ours, is none for its
 * memory: of three threads, two on one node, two are beside what is there, and one and a half beside what is dealt
 * out. */
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

/* What the threads of each set want, and where they live. */
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

/* Whether it lives in all of a home of several nodes. */
static bool is_free(const SortingPlace *place, const Task *task)
{
    return task && !task->gone && planner_placeable(place->look->policy, place->look->process, task) &&
           task->home_node.i < 0 && place->only.i < 0;
}

/* The first of a user's set, if it may be one that fits a node of the home; NULL: it is none. */
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

/* Whether two users of the block at least are of one set, and no more use it than are remembered: they may yet get a
 * node together (P14). Not where threads get none, not those who are too many for a node, and not for longer than it
 * takes to find one. */
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

/* Whether threads of several nodes use it, or several that are free, which use it from any. */
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

/* The set of all who use the block, if it has half of the living threads of the process at most, or NULL. The block is
 * nearer to most of these where one of them touched it first than dealt out over the nodes of all. Half is a choice of
 * ours. */
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

/* Whether what few share lies on several nodes, none of which has more than half: else that one serves most of them.
 * Asked before anything is dealt out; what was begun is done wholly. */
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

/* Of these nodes (a bit each) the one that a block goes to that is dealt out over them, by its address. */
static NodeIx dealt_node(uint64_t nodes, uint64_t address)
{
    for (uint64_t n = address / TOUCHES_BLOCK_BYTES % (unsigned)__builtin_popcountll(nodes); n > 0; n--)
        nodes &= nodes - 1;
    return (NodeIx){__builtin_ctzll(nodes)};
}

/* Where a block that few share goes, who live on several nodes: to one of these, if it lies on none. NODE_NONE: it
 * stays. */
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

/* Blocks, and all their users. */
typedef struct SharedSum {
    size_t n, n_users;
} SharedSum;

typedef struct Shared {
    SharedSum all;
    SharedSum apart; /* what buddies or few share too, who may seem to be some for a round */
    SharedSum shared;
    size_t n_unknown; /* of which little is known */
    size_t n_open;    /* which buddies may yet have alone */
    size_t n_elsewhere;
} Shared;

/* Fewer users than that are often who touched it first and who uses it, and count as one; unless they are all threads
 * (P17, v18: three buddies or more). */
#define USERS_MIN 3U

/* Of more than are remembered all threads, since it is not known how many. */
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
    return sorting->on_one && look->touches->n_rounds - sorting->one_round < SORTING_STAYS_ROUNDS;
}

/* Whether that is most of what threads use, each of which uses a part of all: its blocks count by their users. Threads
 * walk through their own but now and then, so what all use is known first; it is not most as long as there are more
 * blocks of which little is known. */
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
