/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The search from one packing to better ones; pack.c says how it is used and what bounds it.
 *
 * The neighbourhoods, cheap ones first; an improvement by a later one restarts with the first:
 *
 *   move      one group to any other set, if it may have at most four nodes; else to the best single node,
 *             the best set grown from that node by single nodes or by all nodes at a distance, or its own set
 *             with one node more, less or exchanged
 *   swap      two groups exchange their sets: the flip of P15 for whole groups; net load unchanged when they
 *             are equal
 *   exchange  all groups of two nodes change places, as far as they may; then each moves to where it is best
 *   push      one group to some other set, whatever that costs, then a move of another group that it meets
 *             there or made room for
 *   kick      some groups, in a small problem all, go to random sets; then each moves to where it is best,
 *             until none moves. Finds chains of moves, and exchanges of one group for several. The random
 *             numbers are the same every time
 *
 * Each is needed. Of 6,000 small random problems (BENCHMARKS.md) 39 are not packed at the least cost, and the
 * worst costs 3.9 % more. Without kick it is 367 and 79 %, without push 68 and 8.5 %, without exchange 51 and
 * 5.1 %, and without trying all sets 61 and 14 %. Swap is for large problems: without it those of the
 * benchmark whose demand exceeds the machine cost 3 % more. */

#include "plan/pack/internal.h"

#include "base/util.h"

#include <string.h>

#define NODES_FEW  4   /* 15 sets: hardly more than a search for the best one would look at */
#define KICK_MAX   8U  /* groups; in a small problem all of them, which makes it a new start */
#define KICKS      64U /* kicks in vain before the search ends */
#define KICKS_HOME 8U  /* the same when every group is at home, as nearly always */

typedef struct Quest {
    uint32_t item;
    bool booking; /* by pack_booking_cost(), while not all items are placed */
    uint64_t cost;
    PackNodes set; /* the best so far; 0: none better than the initial `cost` */
} Quest;

static bool exhausted(const PackSearch *s)
{
    return s->p->steps >= s->until;
}

static uint64_t total_cost(Pack *p)
{
    uint64_t load = pack_load_cost(p);

    return p->own + load;
}

/* Returns the cost with this set, and keeps the set if it is the best so far. UINT64_MAX: it cannot be the best. */
static uint64_t appraise(PackSearch *s, Quest *q, PackNodes set)
{
    Pack *p = s->p;
    const PackItem *item = &p->items[q->item];
    uint64_t cost;

    p->steps += 2;
    if (q->booking) {
        cost = pack_booking_cost(p, q->item, set);
    } else {
        cost = p->own + pack_own(p, q->item, set) - pack_own(p, q->item, item->set);
        if (exhausted(s) || (cost + p->least >= q->cost && !item->may_split))
            return UINT64_MAX;
        pack_assign(p, q->item, set);
        cost = total_cost(p);
    }
    if (cost < q->cost) {
        q->cost = cost;
        q->set = set;
    }
    return cost;
}

/* Adds to a set the node that helps most, as long as one does. */
static void grow(PackSearch *s, Quest *q, PackNodes set, uint64_t cost)
{
    const PackItem *item = &s->p->items[q->item];

    while ((unsigned)__builtin_popcountll(set) < item->max_nodes && cost != UINT64_MAX && !exhausted(s)) {
        PackNodes best = 0;

        for (PackNodes rest = item->allowed & ~set; rest; rest &= rest - 1) {
            PackNodes wider = set | (rest & -rest);
            uint64_t c = appraise(s, q, wider);

            if (c < cost) {
                cost = c;
                best = wider;
            }
        }
        if (!best)
            return;
        set = best;
    }
}

/* Adds to a node all nodes at the least distance, then at the next, and so on. Where a machine has parts, a
 * group too large for one of them is better off on the whole, but not on any number of nodes between. */
static void grow_by_distance(PackSearch *s, Quest *q, uint32_t node)
{
    const Pack *p = s->p;
    const PackItem *item = &p->items[q->item];
    const uint32_t *excess = &p->excess[(size_t)node * p->n_sites];
    PackNodes set = 1ULL << node;
    uint32_t n = 1;

    while (n < item->max_nodes && (item->allowed & ~set) && !exhausted(s)) {
        uint32_t nearest = UINT32_MAX;

        for (PackNodes rest = item->allowed & ~set; rest; rest &= rest - 1)
            nearest = MIN(nearest, excess[__builtin_ctzll(rest)]);
        for (PackNodes rest = item->allowed & ~set; rest && n < item->max_nodes; rest &= rest - 1)
            if (excess[__builtin_ctzll(rest)] == nearest) {
                set |= rest & -rest;
                n++;
            }
        (void)appraise(s, q, set);
    }
}

/* When the steps are used up but all items must still be placed: tries the cheapest 2, 4, 8, ... nodes. */
static void grow_roughly(PackSearch *s, Quest *q, const uint64_t *costs)
{
    const PackItem *item = &s->p->items[q->item];
    PackNodes set = 0;
    unsigned n = 0, next = 2;

    for (PackNodes left = item->allowed; left && n < item->max_nodes; left &= ~set) {
        int best = __builtin_ctzll(left);

        for (PackNodes rest = left; rest; rest &= rest - 1)
            if (costs[__builtin_ctzll(rest)] < costs[best])
                best = __builtin_ctzll(rest);
        set |= 1ULL << best;
        n++;
        if (n == next || (n > 1 && (n == item->max_nodes || set == item->allowed))) {
            (void)appraise(s, q, set);
            next *= 2;
        }
    }
}

static void find_set(PackSearch *s, Quest *q)
{
    const PackItem *item = &s->p->items[q->item];
    uint64_t costs[PACK_NODES_MAX];
    int first = -1;

    for (PackNodes rest = item->allowed; rest; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);

        costs[i] = appraise(s, q, 1ULL << i);
        if (first < 0 || costs[i] < costs[first])
            first = i;
    }
    if (!item->may_split)
        return;
    if (q->booking && exhausted(s))
        grow_roughly(s, q, costs);
    for (PackNodes rest = item->allowed; rest && !exhausted(s); rest &= rest - 1)
        if (q->booking || __builtin_ctzll(rest) == first)
            grow(s, q, rest & -rest, costs[__builtin_ctzll(rest)]);
    if (first >= 0)
        grow_by_distance(s, q, (uint32_t)first);
}

static void place(PackSearch *s, uint32_t item)
{
    Quest q = {.item = item, .booking = true, .cost = UINT64_MAX};

    find_set(s, &q);
    pack_assign(s->p, item, q.set);
    pack_book(s->p, item);
}

void pack_place_all(PackSearch *s, const uint32_t *order)
{
    pack_book_all(s->p);
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->p->items[order[i]].set)
            place(s, order[i]);
}

/* Moves of one or two groups */

/* Tries one node more, one less, or one exchanged: sets that growing from one node does not reach. */
static void try_neighbours(PackSearch *s, Quest *q, PackNodes set)
{
    const PackItem *item = &s->p->items[q->item];
    bool full = (unsigned)__builtin_popcountll(set) >= item->max_nodes;

    for (PackNodes drop = set; drop && (set & (set - 1)); drop &= drop - 1)
        (void)appraise(s, q, set & ~(drop & -drop));
    for (PackNodes rest = item->allowed & ~set; rest && !exhausted(s); rest &= rest - 1) {
        if (!full)
            (void)appraise(s, q, set | (rest & -rest));
        for (PackNodes drop = set; drop; drop &= drop - 1)
            (void)appraise(s, q, (set & ~(drop & -drop)) | (rest & -rest));
    }
}

bool pack_fits(const PackItem *item, PackNodes set)
{
    return !(set & ~item->allowed) && (unsigned)__builtin_popcountll(set) <= item->max_nodes;
}

static void try_all(PackSearch *s, Quest *q)
{
    const PackItem *item = &s->p->items[q->item];

    for (PackNodes set = item->allowed; set && !exhausted(s); set = (set - 1) & item->allowed)
        if (pack_fits(item, set))
            (void)appraise(s, q, set);
}

static bool try_move(PackSearch *s, uint32_t item, uint64_t *cost)
{
    PackNodes old = s->p->items[item].set;
    Quest q = {.item = item, .cost = *cost};

    if (__builtin_popcountll(s->p->items[item].allowed) <= NODES_FEW) {
        try_all(s, &q);
    } else {
        find_set(s, &q);
        try_neighbours(s, &q, old);
    }
    pack_assign(s->p, item, q.set ? q.set : old);
    *cost = q.cost;
    return q.set != 0;
}

static bool try_swap(PackSearch *s, uint32_t a, uint32_t b, uint64_t *cost)
{
    Pack *p = s->p;
    PackNodes of_a = p->items[a].set, of_b = p->items[b].set;
    uint64_t own, c;

    p->steps += 2;
    if (of_a == of_b || !pack_fits(&p->items[a], of_b) || !pack_fits(&p->items[b], of_a))
        return false;
    own = p->own - pack_own(p, a, of_a) - pack_own(p, b, of_b) + pack_own(p, a, of_b) + pack_own(p, b, of_a);
    if (own + p->least >= *cost)
        return false;
    pack_assign(p, a, of_b);
    pack_assign(p, b, of_a);
    c = total_cost(p);
    if (c < *cost) {
        *cost = c;
        return true;
    }
    pack_assign(p, a, of_a);
    pack_assign(p, b, of_b);
    return false;
}

static bool push(PackSearch *s, uint32_t item, PackNodes set, uint64_t *cost)
{
    Pack *p = s->p;
    PackNodes old = p->items[item].set;

    p->steps++;
    if (set == old || !set || !pack_fits(&p->items[item], set))
        return false;
    pack_assign(p, item, set);
    for (uint32_t i = 0; i < s->n && !exhausted(s); i++) {
        const PackItem *other = &p->items[s->order[i]];

        p->steps++;
        if (s->order[i] != item && ((other->set & set & ~old) || (other->allowed & old & ~set)) &&
            try_move(s, s->order[i], cost))
            return true;
    }
    pack_assign(p, item, old);
    return false;
}

static bool improve_by_pushing(PackSearch *s, uint64_t *cost)
{
    bool improved = false;

    for (uint32_t i = 0; i < s->n; i++) {
        const PackItem *item = &s->p->items[s->order[i]];

        for (PackNodes rest = item->allowed; rest && !exhausted(s); rest &= rest - 1) {
            improved |= push(s, s->order[i], rest & -rest, cost);
            improved |= push(s, s->order[i], item->set ^ (rest & -rest), cost);
        }
    }
    return improved;
}

/* Moves of many groups */

/* Ends a change of many sets and the moves after it, at cost `c`: restores s->saved if that is no improvement. */
static bool keep_if_better(PackSearch *s, uint64_t c, uint64_t *cost)
{
    if (c < *cost) {
        *cost = c;
        return true;
    }
    for (uint32_t i = 0; i < s->n; i++)
        pack_assign(s->p, s->order[i], s->saved[s->order[i]]);
    return false;
}

static bool improve_simply(PackSearch *s, uint64_t *cost)
{
    bool improved = false;

    for (uint32_t i = 0; i < s->n && !exhausted(s); i++)
        improved |= try_move(s, s->order[i], cost);
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = i + 1; k < s->n && !exhausted(s); k++)
            improved |= try_swap(s, s->order[i], s->order[k], cost);
    return improved;
}

static bool exchange(PackSearch *s, PackNodes a, PackNodes b, uint64_t *cost)
{
    Pack *p = s->p;
    uint64_t c;

    p->steps += 2ULL * s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t item = s->order[i];
        PackNodes set = p->items[item].set;
        PackNodes other = (set & ~(a | b)) | (set & a ? b : 0) | (set & b ? a : 0);

        s->saved[item] = set;
        if (other != set && pack_fits(&p->items[item], other))
            pack_assign(p, item, other);
    }
    c = exhausted(s) ? UINT64_MAX : total_cost(p);
    for (uint32_t i = 0; i < s->n && !exhausted(s); i++)
        if (s->saved[s->order[i]] & (a | b))
            (void)try_move(s, s->order[i], &c);
    return keep_if_better(s, c, cost);
}

static bool improve_by_exchanging(PackSearch *s, uint64_t *cost)
{
    bool improved = false;

    for (uint32_t i = 0; i < s->p->n_sites; i++)
        for (uint32_t k = i + 1; k < s->p->n_sites && !exhausted(s); k++)
            improved |= exchange(s, 1ULL << i, 1ULL << k, cost);
    return improved;
}

/* Splitmix64. The seed is always the same, so the same problem gives the same packing. */
static uint32_t random_below(PackSearch *s, uint32_t n)
{
    uint64_t x = s->random += 0x9e3779b97f4a7c15ULL;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return (uint32_t)((x ^ (x >> 31)) >> 32) % n;
}

static void shuffle(PackSearch *s)
{
    s->p->steps += 2ULL * s->n;
    memcpy(s->shaken, s->order, s->n * sizeof(*s->order));
    for (uint32_t i = s->n; i > 1; i--) {
        uint32_t k = random_below(s, i), item = s->shaken[k];

        s->shaken[k] = s->shaken[i - 1];
        s->shaken[i - 1] = item;
    }
}

static PackNodes random_set(PackSearch *s, const PackItem *item)
{
    PackNodes set = item->allowed;
    uint32_t n = (uint32_t)__builtin_popcountll(set), wanted = 1 + random_below(s, MIN(item->max_nodes, n));

    for (; n > wanted; n--) {
        PackNodes drop = set;

        for (uint32_t skip = random_below(s, n); skip > 0; skip--)
            drop &= drop - 1;
        set &= ~(drop & -drop);
    }
    return set;
}

static bool kick(PackSearch *s, uint64_t *cost)
{
    Pack *p = s->p;
    bool improved = true;
    uint64_t c;

    p->steps += 2ULL * s->n;
    for (uint32_t i = 0; i < s->n; i++)
        s->saved[s->order[i]] = p->items[s->order[i]].set;
    for (uint32_t i = 0; i < MIN(s->n, KICK_MAX); i++)
        pack_assign(p, s->shaken[i], random_set(s, &p->items[s->shaken[i]]));
    c = exhausted(s) ? UINT64_MAX : total_cost(p);
    while (improved && !exhausted(s)) {
        improved = false;
        for (uint32_t i = 0; i < s->n && !exhausted(s); i++)
            improved |= try_move(s, s->order[i], &c);
    }
    return keep_if_better(s, c, cost);
}

static bool all_at_home(const PackSearch *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const PackItem *item = &s->p->items[s->order[i]];

        if (!item->home || item->wishes || item->set != item->home)
            return false;
    }
    return true;
}

static bool improve_by_kicking(PackSearch *s, uint64_t *cost)
{
    uint32_t kicks = all_at_home(s) ? KICKS_HOME : KICKS;

    for (uint32_t vain = 0; vain < kicks && !exhausted(s); vain++) {
        shuffle(s);
        if (kick(s, cost))
            return true;
    }
    return false;
}

/* A lower bound of the cost of all other packings: the least cost of loads, what each group itself pays where
 * it is, and the least that any group loses by going elsewhere, which is at least the cost of its move. 0:
 * not known, because there are many sets, or some group would be better off elsewhere. Settled groups nearly
 * always prove to be in the best place this way, and looking for more is most of what a plan costs. */
static uint64_t floor_of_others(PackSearch *s)
{
    Pack *p = s->p;
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < s->n; i++) {
        const PackItem *item = &p->items[s->order[i]];
        uint64_t here = pack_own(p, s->order[i], item->set);

        if (!item->set || __builtin_popcountll(item->allowed) > NODES_FEW)
            return 0;
        for (PackNodes set = item->allowed; set; set = (set - 1) & item->allowed) {
            uint64_t there =
                set != item->set && pack_fits(item, set) ? pack_own(p, s->order[i], set) : UINT64_MAX;

            if (there < here)
                return 0;
            least = MIN(least, there - here);
        }
        p->steps++;
    }
    return p->own + p->least + MIN(least, UINT64_MAX - p->own - p->least);
}

uint64_t pack_improve(PackSearch *s)
{
    uint64_t cost = total_cost(s->p);

    if (s->n == 0 || cost <= floor_of_others(s))
        return cost;
    do
        while (improve_simply(s, &cost) && !exhausted(s))
            continue;
    while (!exhausted(s) &&
           (improve_by_exchanging(s, &cost) || improve_by_pushing(s, &cost) || improve_by_kicking(s, &cost)));
    return cost;
}
