/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The search from one packing to better ones; pack.c says how it is used and what bounds it.
 *
 * The neighbourhoods, the cheap ones first; after an improvement by a later one it begins again with the first:
 *
 *   move      one group to the best single node, the best set grown from that node by node, or its own set with one node
 *             more, less or exchanged
 *   swap      two groups exchange their sets: the flip of P15 for whole groups; net load unchanged when they are equal
 *   exchange  all groups of two nodes change places
 *   push      one group to some other set, and then a move of another one that it meets there or made room for
 *   tear      all groups that touch some nodes, up to four, are taken out and put back in random order; the random
 *             numbers are the same every time
 *
 * Each is needed. Of the 500 small problems of the unit test, on which they were chosen, 9 are not packed at the least cost,
 * and the worst costs 2.1 % more. Without tear it is 19 and 19 %, without push 17 and 16 %, without exchange 11 and 11 %,
 * without swap 9 and 5.4 %, and without a group's own set with one node changed 18 and 36 %. */

#include "plan/pack-internal.h"

#include "base/util.h"

#include <string.h>

#define PACK_TEARS 64U /* in vain, then the search ends */

typedef struct Quest {
    uint32_t item;
    bool booking; /* by pack_booking_cost(), while not everybody is placed */
    uint64_t cost;
    PackNodes set; /* the best so far; 0: none that is better than `cost` was */
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

/* The cost with this set, UINT64_MAX when it cannot be the best. */
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

/* What remains when the steps are used up and still everybody must be placed: the cheapest 1, 2, 4, 8, ... nodes. */
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

/* One node more, less, or another: what growing from one node does not reach. */
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

static bool try_move(PackSearch *s, uint32_t item, uint64_t *cost)
{
    PackNodes old = s->p->items[item].set;
    Quest q = {.item = item, .cost = *cost};

    find_set(s, &q);
    try_neighbours(s, &q, old);
    pack_assign(s->p, item, q.set ? q.set : old);
    *cost = q.cost;
    return q.set != 0;
}

bool pack_fits(const PackItem *item, PackNodes set)
{
    return !(set & ~item->allowed) && (unsigned)__builtin_popcountll(set) <= item->max_nodes;
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

/* One group to another set, whatever that costs, and then the best for one that it meets there or leaves behind. */
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

/* After a change of many sets that touched these nodes: the best move for each of those concerned, and if that is no
 * improvement, all back to s->saved. */
static bool keep_or_restore(PackSearch *s, PackNodes nodes, uint64_t *cost)
{
    Pack *p = s->p;
    uint64_t c = exhausted(s) ? UINT64_MAX : total_cost(p);

    for (uint32_t i = 0; i < s->n && !exhausted(s); i++)
        if (s->saved[s->order[i]] & nodes)
            (void)try_move(s, s->order[i], &c);
    if (c < *cost) {
        *cost = c;
        return true;
    }
    for (uint32_t i = 0; i < s->n; i++)
        pack_assign(p, s->order[i], s->saved[s->order[i]]);
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

/* All groups of two nodes change places, as far as they may. */
static bool exchange(PackSearch *s, PackNodes a, PackNodes b, uint64_t *cost)
{
    Pack *p = s->p;

    p->steps += 2ULL * s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t item = s->order[i];
        PackNodes set = p->items[item].set;
        PackNodes other = (set & ~(a | b)) | (set & a ? b : 0) | (set & b ? a : 0);

        s->saved[item] = set;
        if (other != set && pack_fits(&p->items[item], other))
            pack_assign(p, item, other);
    }
    return keep_or_restore(s, a | b, cost);
}

static bool improve_by_exchanging(PackSearch *s, uint64_t *cost)
{
    bool improved = false;

    for (uint32_t i = 0; i < s->p->n_sites; i++)
        for (uint32_t k = i + 1; k < s->p->n_sites && !exhausted(s); k++)
            improved |= exchange(s, 1ULL << i, 1ULL << k, cost);
    return improved;
}

/* Takes all groups out that touch these nodes, and puts them back in the order of s->shaken. */
static bool tear(PackSearch *s, PackNodes nodes, uint64_t *cost)
{
    Pack *p = s->p;

    p->steps += 2ULL * s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        s->saved[s->shaken[i]] = p->items[s->shaken[i]].set;
        if (p->items[s->shaken[i]].set & nodes)
            pack_assign(p, s->shaken[i], 0);
    }
    pack_book_all(p);
    for (uint32_t i = 0; i < s->n && !exhausted(s); i++)
        if (!p->items[s->shaken[i]].set)
            place(s, s->shaken[i]);
    return keep_or_restore(s, nodes, cost);
}

/* Splitmix64. The seed is the same for all, so the same problem gives the same packing. */
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

/* What the other moves have no name for: chains, and one group against several. */
static bool improve_by_tearing(PackSearch *s, uint64_t *cost)
{
    for (uint32_t vain = 0; vain < PACK_TEARS && !exhausted(s); vain++) {
        PackNodes nodes = 0;

        for (uint32_t i = 0; i < 2 + vain % 3; i++)
            nodes |= 1ULL << random_below(s, s->p->n_sites);
        shuffle(s);
        if (tear(s, nodes, cost))
            return true;
    }
    return false;
}

uint64_t pack_improve(PackSearch *s)
{
    uint64_t cost = total_cost(s->p);

    if (s->n == 0)
        return cost;
    do
        while (improve_simply(s, &cost) && !exhausted(s))
            continue;
    while (!exhausted(s) &&
           (improve_by_exchanging(s, &cost) || improve_by_pushing(s, &cost) || improve_by_tearing(s, &cost)));
    return cost;
}
