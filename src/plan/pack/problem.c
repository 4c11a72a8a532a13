/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Converts the caller's problem to a Pack: sorts nodes and groups, and computes once what the search needs
 * often, above all what each group would pay for its memory on each node. */

#include "plan/pack/internal.h"

#include "base/util.h"

#include <math.h>
#include <string.h>

/* Memory answers late before its bandwidth is used up (pack.h). */
#define FED_PERCENT 80U
/* Any memory gives that, so less is not worth spreading; MB/s. A choice of ours: 1000 and 10000 do nearly as well. */
#define FED_LEAST        4000U
#define WANTED_TIMES_MAX 1000U
#define DISTANCE_HERE    10U
#define WEIGHT_MIN       100U         /* permille: a group that sleeps now should wake beside its memory */
#define SPREAD_PULL      PACK_FOLLOWS /* permille (pack.h) */
#define SINGLE_PULL      500U         /* the same */
#define CORES_UNKNOWN    (1ULL << 40) /* more than any load: 4096 groups of PACK_DEMAND_MAX are 2^34 */
#define MOST_UNKNOWN     (1ULL << 40) /* the same */
#define NOISE_PART       64U          /* four threads that run all the time measure as 4.00 to 4.01 CPUs */
#define SURELY_FULL_PART 4U /* of what the machine has: demand must exceed it by this part (pack.h) */
#define KIB              1024U

static int compare_sites(const void *a, const void *b)
{
    uint32_t x = ((const PackSite *)a)->key, y = ((const PackSite *)b)->key;

    return x < y ? -1 : x > y;
}

static int compare_items(const void *a, const void *b)
{
    uint64_t x = ((const PackItem *)a)->id, y = ((const PackItem *)b)->id;

    return x < y ? -1 : x > y;
}

static uint64_t excess(const PackProblem *problem, uint32_t from, uint32_t to)
{
    uint32_t distance = problem->distances[(size_t)from * problem->n_nodes + to];

    return distance > DISTANCE_HERE ? distance - DISTANCE_HERE : 0;
}

/* The memory of a group that roams is not known to follow it anywhere. */
static bool has_memory(const PackGroup *group)
{
    return group->memory_bytes && !(group->stays && !group->home);
}

static int make_sites(Pack *p)
{
    const PackProblem *problem = p->problem;
    uint32_t share = problem->share_permille ? problem->share_permille : 1000;

    for (uint32_t i = 0; i < problem->n_nodes; i++)
        if (problem->nodes[i].capacity_permille > 0)
            p->sites[p->n_sites++] = (PackSite){.index = i, .key = problem->nodes[i].key};
    qsort(p->sites, p->n_sites, sizeof(*p->sites), compare_sites);
    for (uint32_t i = 0; i < p->n_sites; i++) {
        PackSite *site = &p->sites[i];
        const PackNode *node = &problem->nodes[site->index];
        uint64_t bytes = node->free_bytes;

        if (i > 0 && site->key == site[-1].key)
            return -EINVAL;
        site->capacity = MIN(node->capacity_permille, PACK_DEMAND_MAX);
        site->limit = pack_limit(site->capacity);
        site->heavy = MIN(node->heavy_permille, PACK_DEMAND_MAX);
        site->fed = node->traffic_mb > 0 ? node->traffic_mb * FED_PERCENT / 100 : PACK_UNFED;
        site->cores = node->cores_permille ? node->cores_permille : CORES_UNKNOWN;
        site->unmet = site->capacity * (1000 - MIN(share + share / SURELY_FULL_PART, 1000U)) / 1000;
        site->busy = site->unmet > 0 ? site->capacity * share / 2000 : 0;
        site->per_capacity = (1ULL << 32) / site->capacity;
        site->size = MAX(site->capacity, MIN(node->size_permille, PACK_DEMAND_MAX));
        for (uint32_t k = 0; k < problem->n_groups; k++)
            if (has_memory(&problem->groups[k]))
                bytes += problem->groups[k].memory_bytes[site->index];
        site->memory_kib = bytes / KIB;
        site->per_memory = site->memory_kib ? (site->capacity << 32) / site->memory_kib : 0;
    }
    return 0;
}

/* The slice of a cpuset that has all CPUs of a site is PACK_WHOLE. */
static int make_slices(Pack *p)
{
    const PackProblem *problem = p->problem;

    p->n_slices = (size_t)problem->n_cpusets * p->n_sites;
    p->slices = calloc(p->n_slices + 1, sizeof(*p->slices));
    p->sliced = calloc(3 * p->n_slices + 1, sizeof(*p->sliced));
    if (!p->slices || !p->sliced)
        return -ENOMEM;
    p->booked_slices = p->sliced + p->n_slices;
    p->poured = p->booked_slices + p->n_slices;
    for (uint32_t i = 0; i < problem->n_cpusets; i++)
        for (uint32_t k = 0; k < p->n_sites; k++) {
            uint64_t capacity = problem->cpusets[(size_t)i * problem->n_nodes + p->sites[k].index];
            bool whole = capacity >= p->sites[k].size;

            p->slices[(size_t)i * p->n_sites + k] = (PackSlice){
                .capacity = whole ? PACK_WHOLE : capacity,
                .limit = whole ? PACK_WHOLE : pack_limit(capacity),
            };
        }
    return 0;
}

static int make_distances(Pack *p)
{
    const PackProblem *problem = p->problem;

    p->far = 1;
    for (uint32_t i = 0; i < problem->n_nodes; i++)
        for (uint32_t k = 0; k < problem->n_nodes; k++)
            p->far = MAX(p->far, excess(problem, i, k));
    p->excess = calloc((size_t)p->n_sites * p->n_sites + 1, sizeof(*p->excess));
    if (!p->excess)
        return -ENOMEM;
    for (uint32_t i = 0; i < p->n_sites; i++)
        for (uint32_t k = 0; k < p->n_sites; k++)
            p->excess[(size_t)i * p->n_sites + k] =
                (uint32_t)(excess(problem, p->sites[i].index, p->sites[k].index) +
                           excess(problem, p->sites[k].index, p->sites[i].index));
    return 0;
}

static void make_remote(const Pack *p, const PackItem *item, const uint64_t *bytes, uint64_t *ret,
                        uint32_t *ret_here)
{
    uint64_t total = 0;

    for (uint32_t k = 0; k < p->problem->n_nodes; k++)
        total += bytes[k] / KIB;
    for (uint32_t i = 0; i < p->n_sites && total > 0; i++) {
        uint64_t sum = 0;

        for (uint32_t k = 0; k < p->problem->n_nodes; k++)
            sum += bytes[k] / KIB * excess(p->problem, p->sites[i].index, k);
        /* The mean is taken times 1024 first, so that 2^40 KiB and a demand of PACK_DEMAND_MAX stay below 2^64. */
        ret_here[i] = (uint32_t)(bytes[p->sites[i].index] / KIB * 1000 / total);
        ret[i] = sum * 1024 / total * item->weight * item->pull / (1024ULL / PACK_SCALE * 1000);
    }
}

/* Whether n nodes hold the item: its demand fits their CPUs, and its threads need not share cores. A single
 * node must have cores for a standard deviation more than the demand. Where each CPU is a core of its own, a
 * single node is enough if its CPUs are: then all is in one place. */
static bool is_held(const PackItem *item, uint32_t n, uint64_t capacity, uint64_t cores)
{
    return n > 0 && pack_limit(capacity) >= item->demand &&
           cores + cores / NOISE_PART >= (n == 1 ? MIN(item->demand + item->strays, capacity) : item->demand);
}

/* The fewest nodes that would hold its demand if it had them for itself; `most` if that many do not. */
static uint32_t fewest_nodes(const Pack *p, const PackItem *item, uint32_t most)
{
    PackNodes rest = item->allowed;
    uint64_t sum = 0, cores = 0;
    uint32_t n = 0;

    while (rest && n < most && !is_held(item, n, sum, cores)) {
        int largest = __builtin_ctzll(rest);

        for (PackNodes r = rest; r; r &= r - 1)
            if (pack_capacity(p, item, (uint32_t)__builtin_ctzll(r)) >
                pack_capacity(p, item, (uint32_t)largest))
                largest = __builtin_ctzll(r);
        sum += pack_capacity(p, item, (uint32_t)largest);
        cores += pack_cores(p, item, (uint32_t)largest);
        rest &= ~(1ULL << largest);
        n++;
    }
    return n;
}

/* Whether the item is too large for one node like this site. */
static bool is_split_by(const Pack *p, const PackItem *item, uint32_t site)
{
    const PackSlice *slice = pack_slice(p, item, site);
    uint64_t most = MIN(p->sites[site].limit, p->sites[site].cores);

    return item->demand + item->strays > (slice ? MIN(most, slice->capacity) : most) ||
           item->traffic > p->sites[site].fed;
}

static void make_item(const Pack *p, PackItem *item)
{
    const PackGroup *group = &p->problem->groups[item->index];
    bool spreads = group->mode == PACK_MODE_SPREAD && !group->young;
    uint64_t stalls = 1000 - (group->mode == PACK_MODE_AUTO ? MIN(group->stall_discount_permille, 1000U) : 0);
    uint64_t pull = (1000 - MIN(group->memory_discount_permille, 1000U)) * stalls / 1000;
    uint32_t alone = group->mode == PACK_MODE_AUTO ? MIN(group->private_permille, 1000U) : 0;
    bool single = alone == 1000 && group->demand_permille <= 1000;

    item->demand = MIN(group->demand_permille, PACK_DEMAND_MAX);
    item->weight = MAX(item->demand, WEIGHT_MIN);
    item->pull = pull * (spreads ? SPREAD_PULL : single ? SINGLE_PULL : 1000U) / 1000;
    item->stalls = stalls;
    item->alone = spreads ? 1000 : alone;
    item->sorted = MIN(alone, group->sorted_permille);
    item->few = group->mode == PACK_MODE_AUTO && !group->lone ? MIN(group->few_permille, 1000 - alone) : 0;
    item->variance = group->variance_permille;
    item->strays = (uint64_t)sqrt(1000.0 * group->variance_permille);
    item->most = group->lone ? MAX(item->demand, 1000U) : MOST_UNKNOWN;
    item->steady = group->mode == PACK_MODE_AUTO ? MIN(group->steady_permille, item->demand) : 0;
    item->traffic = group->mode == PACK_MODE_AUTO ? MIN(group->traffic_mb, PACK_TRAFFIC_MAX) : 0;
    item->heavy = item->demand * item->alone / 1000;
    item->home = pack_nodes_in(p, group->home);
    item->wishes = group->wishes;
    item->allowed = pack_nodes_in(p, group->allowed);
    item->young = group->young;
    item->cpuset = group->cpuset;
    item->lone = group->lone;
    item->spreads = spreads;
    item->stays = group->stays || (group->young && item->home);
    item->roams = item->stays && !item->home;
    item->move_cost = item->weight * PACK_SCALE * p->far * MIN(group->min_gain_permille, 1000U) / 1000;
    item->max_nodes = group->max_nodes ? MIN(group->max_nodes, p->n_sites) : p->n_sites;
    if (group->young && item->heavy <= p->allowed_imbalance)
        item->max_nodes = fewest_nodes(p, item, item->max_nodes);
    item->may_split = spreads || (item->sorted + item->few >= 500 && !item->lone) ||
                      item->heavy > p->allowed_imbalance || (item->lone && item->variance > 0);
    for (PackNodes rest = item->allowed; rest; rest &= rest - 1)
        item->may_split |= is_split_by(p, item, (uint32_t)__builtin_ctzll(rest));
    for (uint32_t i = 0; has_memory(group) && i < p->problem->n_nodes; i++)
        item->memory_kib += group->memory_bytes[i] / KIB;
}

/* `all` times `size` / `sizes`, without a product that could overflow: 2^12 groups of PACK_TRAFFIC_MAX are 2^44, and
 * PACK_DEMAND_MAX is 2^22. */
static uint64_t part_of(uint64_t all, uint64_t size, uint64_t sizes)
{
    return all / sizes * size + all % sizes * size / sizes;
}

/* A node whose bandwidth is unknown is taken to give its share of what all groups want, by its size. To spread traffic
 * it is enough to know how much each group transfers. */
static void guess_traffic(Pack *p, uint64_t wanted)
{
    uint64_t sizes = 0;

    for (uint32_t i = 0; i < p->n_sites; i++)
        sizes += p->sites[i].size;
    for (uint32_t i = 0; i < p->n_sites; i++)
        if (p->sites[i].fed == PACK_UNFED)
            p->sites[i].fed = MAX(part_of(wanted, p->sites[i].size, sizes), FED_LEAST);
}

/* If all groups together want more than all nodes give, raises `fed` so that each node has its share of the
 * demand: a group that leaves a full node gains nothing on a node that is as full. */
static void share_traffic(Pack *p)
{
    uint64_t wanted = 0, fed = 0, permille;

    for (uint32_t i = 0; i < p->n_items; i++)
        wanted += p->items[i].allowed ? p->items[i].traffic : 0;
    guess_traffic(p, wanted);
    for (uint32_t i = 0; i < p->n_sites; i++)
        fed += p->sites[i].fed;
    if (wanted <= fed || fed == 0)
        return;
    permille = MIN(wanted * 1000 / fed, WANTED_TIMES_MAX * 1000);
    for (uint32_t i = 0; i < p->n_sites; i++)
        p->sites[i].fed = p->sites[i].fed * permille / 1000;
}

static int make_items(Pack *p)
{
    p->n_items = p->problem->n_groups;
    p->items = calloc(p->n_items + 1, sizeof(*p->items));
    p->wide = calloc(p->n_items + 1, sizeof(*p->wide));
    p->remote = calloc((size_t)p->n_items * p->n_sites + 1, sizeof(*p->remote));
    p->here = calloc((size_t)p->n_items * p->n_sites + 1, sizeof(*p->here));
    if (!p->items || !p->wide || !p->remote || !p->here)
        return -ENOMEM;
    for (uint32_t i = 0; i < p->n_items; i++)
        p->items[i] = (PackItem){.index = i, .id = p->problem->groups[i].id};
    qsort(p->items, p->n_items, sizeof(*p->items), compare_items);
    for (uint32_t i = 0; i < p->n_items; i++) {
        PackItem *item = &p->items[i];
        const PackGroup *group = &p->problem->groups[item->index];

        if (i > 0 && item->id == item[-1].id)
            return -EINVAL;
        make_item(p, item);
        if (has_memory(group))
            make_remote(p, item, group->memory_bytes, &p->remote[(size_t)i * p->n_sites],
                        &p->here[(size_t)i * p->n_sites]);
    }
    for (uint32_t i = 0; i < p->n_sites; i++) {
        p->heavy += p->sites[i].heavy;
        p->unpressed += pack_unpressed(p, &p->sites[i]);
    }
    for (uint32_t i = 0; i < p->n_items; i++)
        p->heavy += p->items[i].allowed ? p->items[i].heavy : 0;
    share_traffic(p);
    for (uint32_t i = 0; i < p->n_items; i++)
        if (p->items[i].stays)
            pack_assign(p, i, p->items[i].roams ? p->items[i].allowed : p->items[i].home);
    return 0;
}

static int check(const PackProblem *problem)
{
    PackNodes all = problem->n_nodes < 64 ? (1ULL << problem->n_nodes) - 1 : ~0ULL;

    if (problem->n_nodes > PACK_NODES_MAX || problem->n_groups > PACK_GROUPS_MAX)
        return -E2BIG;
    for (uint32_t i = 0; i < problem->n_groups; i++)
        if (((problem->groups[i].home | problem->groups[i].allowed) & ~all) ||
            problem->groups[i].cpuset > problem->n_cpusets)
            return -EINVAL;
    return 0;
}

int pack_open(const PackProblem *problem, Pack *ret)
{
    int r = check(problem);

    *ret = (Pack){.problem = problem, .allowed_imbalance = problem->allowed_imbalance_permille};
    if (r == 0)
        r = make_sites(ret);
    if (r == 0)
        r = make_slices(ret);
    if (r == 0)
        r = make_distances(ret);
    if (r == 0) {
        pack_start(ret);
        r = make_items(ret);
    }
    if (r < 0)
        pack_close(ret);
    else
        ret->least = pack_load_least(ret);
    return r;
}

void pack_close(Pack *p)
{
    free(p->slices);
    free(p->sliced);
    free(p->excess);
    free(p->items);
    free(p->wide);
    free(p->remote);
    free(p->here);
}

PackNodes pack_nodes_in(const Pack *p, PackNodes nodes)
{
    PackNodes sites = 0;

    for (uint32_t i = 0; i < p->n_sites; i++)
        if (nodes >> p->sites[i].index & 1)
            sites |= 1ULL << i;
    return sites;
}

PackNodes pack_nodes_out(const Pack *p, PackNodes sites)
{
    PackNodes nodes = 0;

    for (PackNodes rest = sites; rest; rest &= rest - 1)
        nodes |= 1ULL << p->sites[__builtin_ctzll(rest)].index;
    return nodes;
}
