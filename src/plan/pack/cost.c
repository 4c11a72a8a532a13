/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The cost of a packing, as pack.h defines it, kept so that the new sum is cheap to compute when one group
 * changes its set.
 *
 * A group of several nodes is not divided over them in equal parts, because the kernel balances inside its
 * mask. So groups without a choice come first (one node, then two, ...), and wider ones flow around them.
 * Worked example, two nodes of 8 CPUs, A with a demand of 12 on both, B with 4 on the first: B leaves room
 * for 4 and 8, A divides 12 as 4 and 8, and neither node is overloaded. Equal halves of A would have
 * overloaded the first, and B would have been spread for nothing.
 *
 * All numbers are integers. Squares are taken of loads up to 16 times the capacity, larger ones are cut: no
 * sum of 64 nodes or 4096 groups then reaches 2^63. */

#include "plan/pack/internal.h"

#include "base/util.h"

#include <math.h>
#include <string.h>

#define SIBLINGS_WEIGHT (PACK_SCALE * 2) /* reasons in pack.h */
#define UNFAIR_WEIGHT   (PACK_SCALE * 3 / 2)
#define SQUEEZE_WEIGHT  PACK_SCALE
#define CHANCE_WEIGHT   (PACK_SCALE * 3)
#define WAITING_WEIGHT  (PACK_SCALE * 4)
#define WAITING_MIN     250U
#define STARVED_WEIGHT  (PACK_SCALE * 2)
#define LOST_MIN        10U /* the distance of memory that takes twice the time, minus 10 */

/* Costs */

/* Where some demand is in vain, what a site lacks to be half busy is an overload as well: others wait for its CPUs. */
static uint64_t overload_cost(const Pack *p, const PackSite *site, const PackLoad *load)
{
    uint64_t limit = site->limit + site->unmet;
    uint64_t much = load->cpu > limit ? load->cpu - limit : site->busy - MIN(load->cpu, site->busy);

    return much * PACK_OVERLOAD * PACK_SCALE * p->far;
}

static uint64_t unfair_cost(const Pack *p, const PackSite *site, const PackLoad *load)
{
    return load->cpu > site->capacity && site->unmet > 0
               ? pack_square(site, load->cpu - site->capacity) * UNFAIR_WEIGHT * site->unmet /
                     site->capacity * p->far
               : 0;
}

/* Demand that at times finds no core, beyond what finds none on average: the mean excess over the cores of a
 * sum of many threads, which is nearly normal. The table has it for a standard normal variate over 0, 1/2, 1,
 * ..., in thousandths. A load beyond the cores counts as one that just fills them: its own, smaller value
 * would make a full node cheaper with each load that comes to it. If all threads running at once want no more
 * than the cores, the excess is 0. */
static uint64_t excess_by_chance(const PackSite *site, const PackLoad *load)
{
    static const uint64_t excess[] = {399, 198, 83, 29, 8, 2, 0};
    uint64_t cores = site->cores + site->unmet, room = cores - MIN(load->cpu, cores), deviation, at, part;
    uint64_t most = load->most - MIN(load->most, MAX(load->cpu, cores));

    if (load->variance == 0 || room > PACK_CUT * site->capacity)
        return 0;
    deviation = (uint64_t)sqrt(1000.0 * (double)load->variance) + 1;
    at = 2 * room / deviation;
    if (at >= ARRAY_SIZE(excess) - 1)
        return 0;
    part = 2 * room - at * deviation;
    return MIN((excess[at] * (deviation - part) + excess[at + 1] * part) / 1000, most);
}

/* Demand of threads that never pause and find no CPU, while other CPUs are idle. Less than a quarter of a
 * thread is one that has just begun, or noise. */
static uint64_t waiting(const Pack *p, const PackSite *site, const PackLoad *load)
{
    bool waits = load->steady >= site->capacity + WAITING_MIN;

    return waits && p->problem->share_permille == 0 ? load->steady - site->capacity : 0;
}

static uint64_t siblings_cost(const Pack *p, const PackSite *site, const PackLoad *load)
{
    bool has_siblings = site->cores < site->capacity;
    uint64_t weight = has_siblings ? SIBLINGS_WEIGHT : PACK_CROWDED;
    uint64_t cores = site->cores + site->unmet, sure = load->cpu > cores ? load->cpu - cores : 0;
    uint64_t squeezed = has_siblings && load->steady > cores ? load->steady - cores : 0;

    return (sure * weight + squeezed * SQUEEZE_WEIGHT + waiting(p, site, load) * WAITING_WEIGHT +
            excess_by_chance(site, load) * CHANCE_WEIGHT) *
           (has_siblings ? MAX(p->far, LOST_MIN) : p->far);
}

static uint64_t shortage_cost(const Pack *p, const PackSite *site, const PackLoad *load)
{
    uint64_t kib;

    if (load->memory <= site->memory_kib)
        return 0;
    kib = MIN(load->memory - site->memory_kib, PACK_CUT * site->memory_kib);
    return (kib * site->per_memory >> 32) * PACK_OVERLOAD * PACK_SCALE * p->far;
}

static uint64_t crowd_cost(const Pack *p, const PackSite *site, const PackLoad *load)
{
    return pack_crowd(p, site, load->heavy);
}

static uint64_t starved_cost(const Pack *p, const PackSite *site, const PackLoad *load)
{
    uint64_t lacking = load->traffic > site->fed ? (load->traffic - site->fed) * 1000 / load->traffic : 0;

    return load->thirst * lacking / 1000 * STARVED_WEIGHT * p->far;
}

static uint64_t even_cost(const Pack *p, const PackSite *site, const PackLoad *load)
{
    return pack_square(site, load->cpu) * p->far;
}

static uint64_t site_cost(const Pack *p, const PackSite *site, const PackLoad *load)
{
    return overload_cost(p, site, load) + siblings_cost(p, site, load) + shortage_cost(p, site, load) +
           crowd_cost(p, site, load) + starved_cost(p, site, load) + unfair_cost(p, site, load) +
           even_cost(p, site, load);
}

/* What the groups of a cpuset pay for its part of a site. What they cost the whole site is counted there. */
static uint64_t slice_cost(const Pack *p, const PackSlice *slice, const PackSliceLoad *load)
{
    uint64_t over = load->cpu - MIN(load->cpu, slice->limit);
    uint64_t beyond = load->cpu - MIN(load->cpu, slice->capacity);
    uint64_t waits = load->steady - MIN(load->steady, slice->capacity);

    if (waits < WAITING_MIN || p->problem->share_permille > 0)
        waits = 0;
    return (over * PACK_OVERLOAD * PACK_SCALE + beyond * PACK_CROWDED + waits * WAITING_WEIGHT) * p->far;
}

/* Loads */

static void load_add(PackLoad *load, const PackItem *item, uint64_t cpu, uint64_t memory)
{
    load->cpu += cpu;
    load->most += cpu;
    if (item->variance > 0) {
        uint64_t all = MAX(item->demand, 1U), part = item->variance * cpu / all;

        load->variance += item->lone ? part * cpu / all : part;
        load->most += (item->most - item->demand) * cpu / all;
    }
    load->steady += item->steady * cpu / MAX(item->demand, 1U);
    load->thirst += cpu * item->stalls / 1000;
    load->traffic += item->traffic * cpu / MAX(item->demand, 1U);
    load->heavy += cpu * item->alone / 1000;
    load->memory += memory;
}

static PackLoad plus(const PackLoad *a, const PackLoad *b)
{
    return (PackLoad){a->cpu + b->cpu,           a->heavy + b->heavy,    a->memory + b->memory,
                      a->variance + b->variance, a->most + b->most,      a->steady + b->steady,
                      a->thirst + b->thirst,     a->traffic + b->traffic};
}

/* Divides an amount over sites, in proportion to the room on each; what finds no room, in proportion to the sizes. */
typedef struct Stream {
    uint64_t rooms, sizes, left;
    uint64_t fill, over; /* the parts of each room and of each size that are used; times 2^16 */
} Stream;

static void stream_start(Stream *s, uint64_t amount)
{
    s->left = amount;
    s->fill = amount < s->rooms ? (amount << 16) / s->rooms : 1U << 16;
    s->over = amount > s->rooms && s->sizes ? ((amount - s->rooms) << 16) / s->sizes : 0;
}

/* The last site takes what rounding left. */
static uint64_t stream_part(Stream *s, uint64_t room, uint64_t size, bool last)
{
    uint64_t part = last ? s->left : MIN(s->left, (room * s->fill + size * s->over) >> 16);

    s->left -= part;
    return part;
}

static uint64_t room(uint64_t size, uint64_t used)
{
    return size - MIN(size, used);
}

static void slice_add(PackSliceLoad *load, const PackItem *item, uint64_t cpu)
{
    load->cpu += cpu;
    load->steady += item->steady * cpu / MAX(item->demand, 1U);
}

/* The load in `loads` of the item's slice of a site; NULL: it has no slice. */
static PackSliceLoad *slice_load(const Pack *p, PackSliceLoad *loads, const PackItem *item, uint32_t site)
{
    return item->cpuset > 0 ? &loads[(size_t)(item->cpuset - 1) * p->n_sites + site] : NULL;
}

/* The CPU room that the item finds on a site. */
static uint64_t cpu_room(const Pack *p, const PackItem *item, uint32_t site, const PackLoad *load)
{
    const PackSlice *slice = pack_slice(p, item, site);
    uint64_t all = room(p->sites[site].capacity, load->cpu);

    return slice ? MIN(all, room(slice->capacity, slice_load(p, p->poured, item, site)->cpu)) : all;
}

/* Adds an item to the loads of its sites. `parts` [n_sites] receives how much of its demand each site gets;
 * or NULL. */
static void pour(const Pack *p, PackLoad *loads, const PackItem *item, uint64_t *parts)
{
    Stream cpu = {0}, memory = {0};

    for (PackNodes rest = item->set; rest; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);
        const PackSite *site = &p->sites[i];

        cpu.rooms += cpu_room(p, item, (uint32_t)i, &loads[i]);
        cpu.sizes += pack_capacity(p, item, (uint32_t)i);
        memory.rooms += room(site->memory_kib, loads[i].memory);
        memory.sizes += site->memory_kib;
    }
    stream_start(&cpu, item->demand);
    stream_start(&memory, memory.sizes ? item->memory_kib : 0);
    for (PackNodes rest = item->set; rest; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);
        const PackSite *site = &p->sites[i];
        bool last = !(rest & (rest - 1));
        uint64_t cpu_part = stream_part(&cpu, cpu_room(p, item, (uint32_t)i, &loads[i]),
                                        pack_capacity(p, item, (uint32_t)i), last);

        if (item->cpuset > 0)
            slice_add(slice_load(p, p->poured, item, (uint32_t)i), item, cpu_part);
        if (parts)
            parts[i] = cpu_part;
        load_add(&loads[i], item, cpu_part,
                 stream_part(&memory, room(site->memory_kib, loads[i].memory), site->memory_kib, last));
    }
}

/* Resets the poured loads of the cpusets of wide groups; those of other cpusets are not used. */
static void begin_slices(const Pack *p)
{
    for (uint32_t i = 0; i < p->n_wide; i++) {
        const PackItem *item = &p->items[p->wide[i]];

        if (item->cpuset > 0)
            memcpy(slice_load(p, p->poured, item, 0), slice_load(p, p->sliced, item, 0),
                   p->n_sites * sizeof(*p->poured));
    }
}

static void pour_all(const Pack *p, PackLoad *ret)
{
    memcpy(ret, p->single, p->n_sites * sizeof(*ret));
    begin_slices(p);
    for (uint32_t i = 0; i < p->n_wide; i++)
        pour(p, ret, &p->items[p->wide[i]], NULL);
}

/* The cost of slices with the wide groups, beyond that of groups of one node alone. A slice is reset when
 * counted, so each cpuset counts once. */
static uint64_t poured_slices(Pack *p)
{
    uint64_t cost = 0;

    for (uint32_t i = 0; i < p->n_wide; i++) {
        const PackItem *item = &p->items[p->wide[i]];

        for (uint32_t k = 0; k < p->n_sites && item->cpuset > 0; k++) {
            const PackSlice *slice = pack_slice(p, item, k);
            PackSliceLoad *poured = slice_load(p, p->poured, item, k);
            const PackSliceLoad *alone = slice_load(p, p->sliced, item, k);

            cost += slice_cost(p, slice, poured) - slice_cost(p, slice, alone);
            *poured = *alone;
        }
        p->steps += item->cpuset > 0 ? p->n_sites : 0;
    }
    return cost;
}

/* Sites that no wide group touches are already in single_sum. */
uint64_t pack_load_cost(Pack *p)
{
    PackLoad loads[PACK_NODES_MAX];
    uint64_t cost = p->single_sum;
    PackNodes touched = 0;

    p->steps++;
    if (p->n_wide == 0)
        return cost;
    pour_all(p, loads);
    for (uint32_t i = 0; i < p->n_wide; i++) {
        touched |= p->items[p->wide[i]].set;
        p->steps += 3 * (unsigned)__builtin_popcountll(p->items[p->wide[i]].set) + 8;
    }
    for (PackNodes rest = touched; rest; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);

        cost += site_cost(p, &p->sites[i], &loads[i]) - p->single_cost[i];
        p->steps += 2;
    }
    return cost + poured_slices(p);
}

/* The machine as one large site, where all memory fits and demand does not vary. A sum of overloads is never
 * below the overload of the sum, and the same holds for loads beyond the cores. By Cauchy and Schwarz a sum
 * of x^2 / c is never below (sum of x)^2 / (sum of c). */
uint64_t pack_load_least(const Pack *p)
{
    PackLoad load = {0};
    PackSite machine = {0};

    for (uint32_t i = 0; i < p->n_items; i++)
        if (p->items[i].allowed) {
            load.cpu += p->items[i].demand;
            load.heavy += p->items[i].heavy;
        }
    for (uint32_t i = 0; i < p->n_sites; i++) {
        machine.capacity += p->sites[i].capacity;
        machine.limit += p->sites[i].limit;
        machine.cores += p->sites[i].cores;
        machine.unmet += p->sites[i].unmet;
        machine.size += p->sites[i].size;
        machine.busy += p->sites[i].busy;
        load.heavy += p->sites[i].heavy;
    }
    load.heavy -=
        MIN(load.heavy, p->allowed_imbalance * (p->n_sites - 1)); /* crowd_cost() subtracts one more */
    machine.per_capacity = (1ULL << 32) / MAX(machine.capacity, 1U);
    return overload_cost(p, &machine, &load) + siblings_cost(p, &machine, &load) +
           crowd_cost(p, &machine, &load) + even_cost(p, &machine, &load);
}

/* Booking: the same, but wide groups are divided by capacity, so that loads simply add up. */

void pack_start(Pack *p)
{
    for (uint32_t i = 0; i < p->n_sites; i++) {
        p->single[i] = (PackLoad){.heavy = p->sites[i].heavy};
        p->single_cost[i] = site_cost(p, &p->sites[i], &p->single[i]);
        p->single_sum += p->single_cost[i];
    }
    p->empty_cost = p->single_sum;
}

static PackLoad booking(const Pack *p, const PackItem *item, PackNodes set, uint32_t site)
{
    uint64_t capacity = 0, memory = 0;
    PackLoad load = {0};

    for (PackNodes rest = set; rest; rest &= rest - 1) {
        capacity += pack_capacity(p, item, (uint32_t)__builtin_ctzll(rest));
        memory += p->sites[__builtin_ctzll(rest)].memory_kib;
    }
    load_add(&load, item,
             set & (set - 1) ? item->demand * pack_capacity(p, item, site) / MAX(capacity, 1U) : item->demand,
             memory ? item->memory_kib / (unsigned)__builtin_popcountll(set) : 0);
    return load;
}

/* What the load of an item adds to the cost of its slice of a site, beyond what is booked there. */
static uint64_t booking_slice_cost(const Pack *p, const PackItem *item, uint32_t site, uint64_t cpu)
{
    const PackSlice *slice = pack_slice(p, item, site);
    PackSliceLoad more, *booked;

    if (!slice)
        return 0;
    booked = slice_load(p, p->booked_slices, item, site);
    more = *booked;
    slice_add(&more, item, cpu);
    return slice_cost(p, slice, &more) - slice_cost(p, slice, booked);
}

uint64_t pack_booking_cost(Pack *p, uint32_t item, PackNodes set)
{
    uint64_t cost = pack_own(p, item, set) + p->empty_cost; /* a load on empty sites may save this much */

    for (PackNodes rest = set; rest; rest &= rest - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(rest);
        PackLoad more = booking(p, &p->items[item], set, i);

        cost += booking_slice_cost(p, &p->items[item], i, more.cpu);
        more = plus(&more, &p->booked[i]);
        cost += site_cost(p, &p->sites[i], &more) - site_cost(p, &p->sites[i], &p->booked[i]);
        p->steps += 4;
    }
    return cost;
}

void pack_book(Pack *p, uint32_t item)
{
    for (PackNodes rest = p->items[item].set; rest; rest &= rest - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(rest);
        PackLoad more = booking(p, &p->items[item], p->items[item].set, i), *load = &p->booked[i];

        *load = plus(load, &more);
        if (p->items[item].cpuset > 0)
            slice_add(slice_load(p, p->booked_slices, &p->items[item], i), &p->items[item], more.cpu);
    }
}

void pack_book_all(Pack *p)
{
    for (uint32_t i = 0; i < p->n_sites; i++)
        p->booked[i] = (PackLoad){.heavy = p->sites[i].heavy};
    if (p->n_slices > 0)
        memset(p->booked_slices, 0, p->n_slices * sizeof(*p->booked_slices));
    for (uint32_t i = 0; i < p->n_items; i++)
        pack_book(p, i);
    p->steps += p->n_items;
}

/* Changing sets */

static void wide_remove(Pack *p, uint32_t item)
{
    uint32_t at = 0;

    while (p->wide[at] != item)
        at++;
    p->n_wide--;
    memmove(&p->wide[at], &p->wide[at + 1], (p->n_wide - at) * sizeof(*p->wide));
}

static void wide_insert(Pack *p, uint32_t item)
{
    int size = __builtin_popcountll(p->items[item].set);
    uint32_t at = p->n_wide;

    for (; at > 0; at--) {
        uint32_t other = p->wide[at - 1];
        int other_size = __builtin_popcountll(p->items[other].set);

        if (other_size < size || (other_size == size && other < item))
            break;
        p->wide[at] = other;
    }
    p->wide[at] = item;
    p->n_wide++;
}

static void single_slice_change(Pack *p, const PackItem *item, uint32_t site, bool add)
{
    const PackSlice *slice = pack_slice(p, item, site);
    PackSliceLoad *load = slice_load(p, p->sliced, item, site);

    p->single_sum -= slice_cost(p, slice, load);
    load->cpu = add ? load->cpu + item->demand : load->cpu - item->demand;
    load->steady = add ? load->steady + item->steady : load->steady - item->steady;
    p->single_sum += slice_cost(p, slice, load);
}

static void single_change(Pack *p, const PackItem *item, bool add)
{
    int i = __builtin_ctzll(item->set);
    PackLoad *load = &p->single[i];
    uint64_t memory = p->sites[i].memory_kib ? item->memory_kib : 0;
    uint64_t most = item->variance > 0 ? item->most : item->demand;
    uint64_t thirst = item->demand * item->stalls / 1000;

    load->cpu = add ? load->cpu + item->demand : load->cpu - item->demand;
    load->heavy = add ? load->heavy + item->heavy : load->heavy - item->heavy;
    load->variance = add ? load->variance + item->variance : load->variance - item->variance;
    load->most = add ? load->most + most : load->most - most;
    load->steady = add ? load->steady + item->steady : load->steady - item->steady;
    load->thirst = add ? load->thirst + thirst : load->thirst - thirst;
    load->traffic = add ? load->traffic + item->traffic : load->traffic - item->traffic;
    load->memory = add ? load->memory + memory : load->memory - memory;
    p->single_sum -= p->single_cost[i];
    p->single_cost[i] = site_cost(p, &p->sites[i], load);
    p->single_sum += p->single_cost[i];
    if (item->cpuset > 0)
        single_slice_change(p, item, (uint32_t)i, add);
}

static void change(Pack *p, uint32_t item, bool add)
{
    const PackItem *it = &p->items[item];

    if (!it->set)
        return;
    if (!(it->set & (it->set - 1)))
        single_change(p, it, add);
    else if (add)
        wide_insert(p, item);
    else
        wide_remove(p, item);
}

void pack_assign(Pack *p, uint32_t item, PackNodes set)
{
    PackItem *it = &p->items[item];

    if (it->set == set)
        return;
    p->steps += 3 + p->n_wide / 8;
    p->own += pack_own(p, item, set) - pack_own(p, item, it->set);
    change(p, item, false);
    it->set = set;
    change(p, item, true);
}

int pack_parts(const PackProblem *problem, const PackNodes *sets, uint64_t *ret)
{
    PackLoad loads[PACK_NODES_MAX];
    Pack p;
    int r = pack_open(problem, &p);

    if (r < 0)
        return r;
    memset(ret, 0, sizeof(*ret) * problem->n_groups * problem->n_nodes);
    for (uint32_t i = 0; i < p.n_items; i++) {
        const PackItem *item = &p.items[i];

        if (!item->roams)
            pack_assign(&p, i, pack_nodes_in(&p, sets[item->index]));
        if (item->set && !(item->set & (item->set - 1)))
            ret[item->index * problem->n_nodes + p.sites[__builtin_ctzll(item->set)].index] = item->demand;
    }
    memcpy(loads, p.single, p.n_sites * sizeof(*loads));
    begin_slices(&p);
    for (uint32_t i = 0; i < p.n_wide; i++) {
        const PackItem *item = &p.items[p.wide[i]];
        uint64_t parts[PACK_NODES_MAX] = {0};

        pour(&p, loads, item, parts);
        for (uint32_t k = 0; k < p.n_sites; k++)
            ret[item->index * problem->n_nodes + p.sites[k].index] = parts[k];
    }
    pack_close(&p);
    return 0;
}

int pack_cost(const PackProblem *problem, const PackNodes *sets, PackCost *ret)
{
    PackLoad loads[PACK_NODES_MAX];
    PackCost cost = {0};
    Pack p;
    int r = pack_open(problem, &p);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < p.n_items; i++) {
        const PackItem *item = &p.items[i];

        if (item->roams)
            continue;
        pack_assign(&p, i, pack_nodes_in(&p, sets[item->index]));
        pack_own_add(&p, i, item->set, &cost);
    }
    pour_all(&p, loads);
    for (uint32_t i = 0; i < p.n_sites; i++) {
        cost.overload += overload_cost(&p, &p.sites[i], &loads[i]);
        cost.siblings += siblings_cost(&p, &p.sites[i], &loads[i]);
        cost.shortage += shortage_cost(&p, &p.sites[i], &loads[i]);
        cost.crowd += crowd_cost(&p, &p.sites[i], &loads[i]);
        cost.starved += starved_cost(&p, &p.sites[i], &loads[i]);
        cost.unfair += unfair_cost(&p, &p.sites[i], &loads[i]);
        cost.even += even_cost(&p, &p.sites[i], &loads[i]);
    }
    for (size_t i = 0; i < p.n_slices; i++)
        cost.overload += slice_cost(&p, &p.slices[i], &p.sliced[i]);
    cost.overload += poured_slices(&p);
    cost.total = cost.remote + cost.split + cost.move + cost.overload + cost.siblings + cost.shortage +
                 cost.crowd + cost.pressed + cost.starved + cost.unfair + cost.even;
    pack_close(&p);
    *ret = cost;
    return 0;
}
