/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The costs that a group pays itself for its nodes, whatever other groups do: the terms of pack.h that belong
 * to no node. */

#include "plan/pack/internal.h"

#include "base/util.h"

#define THREAD_PERMILLE  1000U /* the most that one thread can want */
#define OVERLOAD_PERCENT 108U  /* half the imbalance_pct of a NUMA domain, 117 (P6) */
#define OVERLOAD_MIN     500U  /* reasons in pack.h */

uint64_t pack_limit(uint64_t capacity)
{
    return MAX(capacity * OVERLOAD_PERCENT / 100, capacity + MIN(OVERLOAD_MIN, capacity / 4));
}

/* The permille of the memory its threads use alone that is beside its users on this site of n: as much as the
 * site has of their demand, or could have without its memory being pressed (P5). */
static uint64_t beside(const Pack *p, uint32_t item, int site, unsigned n)
{
    uint64_t fits = MIN(pack_capacity(p, &p->items[item], (uint32_t)site), p->allowed_imbalance) * 1000 /
                    MAX(p->items[item].demand, 1U);

    return MIN(p->here[(size_t)item * p->n_sites + (size_t)site], MAX(1000U / n, fits));
}

/* Each thread is on the site of the memory it uses alone, as far as there is room. The other threads are on
 * the sites that have less of the memory than of the demand, at the mean distance from theirs. */
static uint64_t remote_alone(const Pack *p, uint32_t item, PackNodes set)
{
    const uint64_t *remote = &p->remote[(size_t)item * p->n_sites];
    unsigned n = (unsigned)__builtin_popcountll(set);
    uint64_t part = 1000 / n, sum = 0, local = 0, others = 0;

    for (PackNodes rest = set; rest; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);
        uint64_t near = beside(p, item, i, n);

        local += near;
        others += part - MIN(part, near);
        if (near < part)
            sum += remote[i] * (part - near) / (1000 - near);
    }
    return others > 0 ? sum * MIN(1000 - MIN(local, 1000U), others * 1000 / (part * n)) / others : 0;
}

static uint64_t remote_cost(const Pack *p, uint32_t index, PackNodes set)
{
    const PackItem *item = &p->items[index];
    const uint64_t *remote = &p->remote[(size_t)index * p->n_sites];
    uint64_t sum = 0, alone = item->spreads || item->lone ? 0 : item->alone;
    uint64_t few = set & (set - 1) ? item->few : 0;

    for (PackNodes rest = set; rest; rest &= rest - 1)
        sum += remote[__builtin_ctzll(rest)];
    if (!set)
        return 0;
    sum /= (unsigned)__builtin_popcountll(set);
    sum *= 1000 - alone - few * (1000 - PACK_FOLLOWS) / 1000;
    return (sum + (alone > 0 ? remote_alone(p, index, set) * alone : 0)) / 1000;
}

/* The permille of its weight that pays for being apart (pack.h). */
static uint64_t apart(const Pack *p, uint32_t item, PackNodes set, unsigned n)
{
    uint64_t sum = 0, most = 0, elsewhere;

    for (PackNodes rest = p->items[item].sorted > 0 ? set : 0; rest; rest &= rest - 1) {
        uint64_t near = beside(p, item, __builtin_ctzll(rest), n);

        sum += near;
        most = MAX(most, near);
    }
    elsewhere = MIN(sum, 1000U) - most;
    elsewhere = elsewhere * 1000 / MAX(1000 - most, 500U) * p->items[item].sorted / 1000;
    return 1000 - elsewhere - p->items[item].few;
}

static uint64_t split_cost(const Pack *p, uint32_t index, PackNodes set)
{
    const PackItem *item = &p->items[index];
    uint64_t n = (unsigned)__builtin_popcountll(set), sum = 0;

    if (n < 2 || item->spreads)
        return 0;
    for (PackNodes a = item->lone ? 0 : set; a; a &= a - 1)
        for (PackNodes b = a & (a - 1); b; b &= b - 1)
            sum += p->excess[(size_t)__builtin_ctzll(a) * p->n_sites + (size_t)__builtin_ctzll(b)];
    return item->weight * PACK_SCALE * sum / (n * n) *
               (PACK_EXCHANGE + item->stalls * (1000 - PACK_EXCHANGE) / 1000) / 1000 *
               apart(p, index, set, (unsigned)n) / 1000 +
           item->weight * p->far * (n - 1) / 2;
}

static uint64_t move_cost(const PackItem *item, PackNodes set)
{
    return item->home && set != item->home ? item->move_cost : 0;
}

/* The limit of each site includes half a CPU more than it has (pack_limit()), and the group may have that
 * only once. Demand beyond all cores counts once more (pack.h). */
static uint64_t wide_cost(const Pack *p, const PackItem *item, PackNodes set)
{
    uint64_t capacity = 0, limits = 0, cores = 0, limit, demand, cost;

    if (!(set & (set - 1)))
        return 0;
    for (PackNodes rest = set; rest; rest &= rest - 1) {
        capacity += pack_capacity(p, item, (uint32_t)__builtin_ctzll(rest));
        limits += p->sites[__builtin_ctzll(rest)].limit + p->sites[__builtin_ctzll(rest)].unmet;
        cores += pack_cores(p, item, (uint32_t)__builtin_ctzll(rest));
    }
    limit = pack_limit(capacity);
    demand = MIN(item->demand, limits);
    cost = demand > limit ? (demand - limit) * PACK_OVERLOAD * PACK_SCALE * p->far : 0;
    return cost + (item->demand > cores ? (item->demand - cores) * PACK_CROWDED * p->far : 0);
}

/* How much more a crowd costs because threads are whole (pack.h). */
static uint64_t whole_crowd(const Pack *p, const PackSite *site, uint64_t heavy)
{
    uint64_t part = heavy % THREAD_PERMILLE, less = heavy - part, divided = pack_crowd(p, site, heavy);
    uint64_t whole = (pack_crowd(p, site, less) * (THREAD_PERMILLE - part) +
                      pack_crowd(p, site, less + THREAD_PERMILLE) * part) /
                     THREAD_PERMILLE;

    return MAX(whole, divided) - divided;
}

static uint64_t set_capacity(const Pack *p, const PackItem *item, PackNodes set)
{
    uint64_t capacity = 0;

    for (PackNodes rest = set; rest; rest &= rest - 1)
        capacity += pack_capacity(p, item, (uint32_t)__builtin_ctzll(rest));
    return capacity;
}

static uint64_t pressed_cost(const Pack *p, const PackItem *item, PackNodes set)
{
    uint64_t capacity = set_capacity(p, item, set), sum = 0;

    if (item->heavy <= p->allowed_imbalance || item->lone || capacity == 0)
        return 0;
    for (PackNodes rest = set; rest; rest &= rest - 1) {
        const PackSite *site = &p->sites[__builtin_ctzll(rest)];
        uint64_t heavy = item->heavy * pack_capacity(p, item, (uint32_t)__builtin_ctzll(rest)) / capacity;

        sum += heavy - MIN(heavy, pack_unpressed(p, site));
    }
    return MIN(sum, p->unpressed + sum - MIN(p->unpressed + sum, p->heavy)) * PACK_PRESSED * p->far;
}

/* If each of the threads that share nothing could have its own node, they are counted whole: of 13 on 12
 * nodes two are together, and not a twelfth more on each. Uses the sizes of the nodes, and this group alone.
 * The cost fades with the first thread that is one too many for the nodes. */
static uint64_t whole_cost(const Pack *p, const PackItem *item, PackNodes set)
{
    uint64_t capacity = set_capacity(p, item, set), cost = 0;
    uint64_t most = MIN((uint32_t)__builtin_popcountll(item->allowed), item->max_nodes) * THREAD_PERMILLE;
    uint64_t over = item->heavy - MIN(item->heavy, most);

    if (item->heavy <= p->allowed_imbalance || over >= THREAD_PERMILLE || item->lone)
        return 0;
    for (PackNodes rest = capacity > 0 ? set : 0; rest; rest &= rest - 1) {
        const PackSite *site = &p->sites[__builtin_ctzll(rest)];

        cost += whole_crowd(p, site,
                            item->heavy * pack_capacity(p, item, (uint32_t)__builtin_ctzll(rest)) / capacity);
    }
    return cost * (THREAD_PERMILLE - over) / THREAD_PERMILLE;
}

void pack_own_add(const Pack *p, uint32_t item, PackNodes set, PackCost *ret)
{
    const PackItem *it = &p->items[item];

    ret->remote += remote_cost(p, item, set);
    ret->split += split_cost(p, item, set);
    ret->move += set ? move_cost(it, set) : 0;
    ret->overload += wide_cost(p, it, set);
    ret->crowd += set & (set - 1) ? whole_cost(p, it, set) : 0;
    ret->pressed += pressed_cost(p, it, set);
}

uint64_t pack_own(const Pack *p, uint32_t item, PackNodes set)
{
    const PackItem *it = &p->items[item];
    PackCost cost = {0};

    if (!set || it->roams)
        return 0;
    if (!(set & (set - 1))) /* by far the most frequent */
        return p->remote[(size_t)item * p->n_sites + (size_t)__builtin_ctzll(set)] + move_cost(it, set) +
               pressed_cost(p, it, set);
    pack_own_add(p, item, set, &cost);
    return cost.remote + cost.split + cost.move + cost.overload + cost.crowd + cost.pressed;
}
