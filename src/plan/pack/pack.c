/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Packing: a local search (pack/search.c) from one start or three, repeated until it finds no improvement.
 *
 * If all groups have homes that fit, the search begins there: a machine in use is improved, not rebuilt. Otherwise
 * there are two more starts, from nothing: by decreasing demand, as in bin packing, and by decreasing regret, which is
 * how much more a group pays for its memory on the second best node than on the best. The best of the three results
 * counts.
 *
 * The result becomes the home of every group, and the search begins again from there, until nothing changes. So the
 * result is a fixed point. That costs nothing: a packing that is better by more than the cost of moving from here also
 * looks better from the first homes, because moving directly is never dearer than in two steps. For the same reason
 * each round lowers the cost, and the rounds end.
 *
 * Worked example, four nodes of 8 CPUs, four groups of 8 threads, a quarter of each group's memory on each node
 * (S-JVM): each node costs the same for the memory. The first group gets the first node. There the second would be
 * 7.36 CPUs beyond 108 %, so it gets the second node, and so on: one node each, which no neighbourhood improves.
 *
 * The bound. Work is counted in steps of a few nanoseconds, mostly looks at one group's load on one node. A search
 * checks its steps before each set that it tries. So it ends PACK_STEPS after its start, plus at most one exact cost,
 * less than G x (3 x n + 10) for G groups, all of them on all n nodes, and one change of all sets and back, G x (3 + G
 * / 8) each. The rest of a construction is not cut off: a group tries n single nodes at 6 steps, and the cheapest 2,
 * 4, 8, ... nodes, together less than 4 x n at 4 steps: 22 x n for each group. There are at most PACK_ROUNDS + 2
 * starts, so all takes less than
 *
 *     (PACK_ROUNDS + 2) x (PACK_STEPS + G x (25 x n + G / 4 + 20))
 *
 * steps: 2.6 million for 200 groups on 16 nodes, of which the worst of 945 random problems took half. Nothing
 * enumerates orders, nor the sets of more than four nodes.
 *
 * What it does badly: of small random problems one in 2,500 costs more than 5 % too much, up to 19 % (BENCHMARKS.md),
 * where three or four groups would have to change to quite other sets together. On large problems PACK_STEPS ends the
 * search before it has tried everything; how far from the optimum they are is unknown. */

#include "plan/pack/internal.h"

#include "base/util.h"

#include <string.h>

#define PACK_STEPS  120000U /* 200 groups on up to 16 nodes took 6.4 ms in all at worst (BENCHMARKS.md) */
#define PACK_ROUNDS 10U     /* mostly 2 or 3; one of 945 large random problems would have taken more */

static uint64_t regret_of(const Pack *p, uint32_t item)
{
    const uint64_t *remote = &p->remote[(size_t)item * p->n_sites];
    uint64_t least = UINT64_MAX, second = UINT64_MAX;

    for (PackNodes rest = p->items[item].allowed; rest; rest &= rest - 1) {
        uint64_t cost = remote[__builtin_ctzll(rest)];

        second = MIN(second, MAX(cost, least));
        least = MIN(least, cost);
    }
    return second == UINT64_MAX ? UINT64_MAX : second - least;
}

static int compare_keys(const void *a, const void *b, void *data)
{
    const uint64_t *key = data;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    if (key[x] != key[y])
        return key[x] > key[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* A search from all homes that fit, or from nothing. */
static uint64_t search_from(PackSearch *s, const uint32_t *order, bool homes)
{
    Pack *p = s->p;

    s->until = p->steps + PACK_STEPS;
    s->random = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const PackItem *item = &p->items[order[i]];

        pack_assign(p, order[i], homes && item->home && pack_fits(item, item->home) ? item->home : 0);
    }
    pack_place_all(s, order);
    return pack_improve(s);
}

static void keep_best(PackSearch *s, uint64_t cost, uint64_t *best)
{
    if (cost >= *best)
        return;
    *best = cost;
    for (uint32_t i = 0; i < s->p->n_items; i++)
        s->best[i] = s->p->items[i].set;
}

/* Makes the best sets the homes. Returns false if they were already. */
static bool settle(PackSearch *s)
{
    Pack *p = s->p;
    bool changed = false;

    for (uint32_t i = 0; i < s->n; i++) {
        PackItem *item = &p->items[s->order[i]];

        changed |= item->home != s->best[s->order[i]];
        item->wishes = false;
        pack_assign(p, s->order[i], 0);
        item->home = s->best[s->order[i]];
        pack_assign(p, s->order[i], item->home);
    }
    return changed;
}

/* Collects and sorts the items that may be placed. A young item is placed only in the first round. */
static void collect(PackSearch *s, bool first)
{
    Pack *p = s->p;

    s->n = 0;
    for (uint32_t i = 0; i < p->n_items; i++)
        if (!p->items[i].stays && p->items[i].allowed && (first || !p->items[i].young))
            s->order[s->n++] = i;
    memcpy(s->regret, s->order, s->n * sizeof(*s->order));
    for (uint32_t i = 0; i < s->n; i++)
        s->key[s->order[i]] = p->items[s->order[i]].demand;
    qsort_r(s->order, s->n, sizeof(*s->order), compare_keys, s->key);
    for (uint32_t i = 0; i < s->n; i++)
        s->key[s->order[i]] = regret_of(p, s->order[i]);
    qsort_r(s->regret, s->n, sizeof(*s->regret), compare_keys, s->key);
}

static bool all_at_home(const PackSearch *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const PackItem *item = &s->p->items[s->order[i]];

        if (!item->home || item->wishes || !pack_fits(item, item->home))
            return false;
    }
    return true;
}

static void solve(PackSearch *s)
{
    for (uint32_t round = 0; round < PACK_ROUNDS; round++) {
        uint64_t best = UINT64_MAX;

        collect(s, round == 0);
        keep_best(s, search_from(s, s->order, true), &best);
        if (!all_at_home(s)) {
            keep_best(s, search_from(s, s->order, false), &best);
            keep_best(s, search_from(s, s->regret, false), &best);
        }
        if (!settle(s))
            return;
    }
}

int pack_solve(const PackProblem *problem, PackNodes *ret_sets)
{
    CLEANUP_FREE uint32_t *orders = NULL;
    CLEANUP_FREE uint64_t *words = NULL;
    Pack p;
    PackSearch s = {.p = &p};
    size_t n = (size_t)problem->n_groups + 1;
    int r = pack_open(problem, &p);

    if (r < 0)
        return r;
    orders = calloc(3 * n, sizeof(*orders));
    words = calloc(3 * n, sizeof(*words));
    if (!orders || !words) {
        pack_close(&p);
        return -ENOMEM;
    }
    s.order = orders;
    s.regret = orders + n;
    s.shaken = orders + 2 * n;
    s.key = words;
    s.saved = words + n;
    s.best = words + 2 * n;
    solve(&s);
    for (uint32_t i = 0; i < p.n_items; i++)
        ret_sets[p.items[i].index] = p.items[i].roams ? 0 : pack_nodes_out(&p, p.items[i].set);
    pack_close(&p);
    return 0;
}
