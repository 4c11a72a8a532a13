/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Packing: random instances compared with brute force; order, names and a second packing change nothing. */

#include "pack-test.h"

#define N_EXACT      500U  /* random instances that are also solved exactly */
#define N_SEARCHED   150U  /* and larger ones */
#define COMBINATIONS 4096U /* packings of one instance that brute force looks at */

static PackNodes random_nodes(uint64_t *random, uint32_t n)
{
    return (PackNodes)fixture_random(random, 1U << n);
}

static void random_machine(Instance *in, uint64_t *random, uint32_t n_nodes)
{
    static const uint32_t steps[] = {12, 16, 20, 21, 22, 31, 32};
    uint64_t other = *random;

    instance_init(in, n_nodes, 8000, 20);
    in->problem.allowed_imbalance_permille = 1000 + fixture_random(random, 3) * 1000;
    in->problem.share_permille = fixture_random(&other, 2) ? 100 + fixture_random(&other, 900) : 0;
    for (uint32_t i = 0; i < n_nodes; i++) {
        in->nodes[i].capacity_permille = fixture_random(random, 8) ? 8000 : fixture_random(random, 4) * 4000;
        in->nodes[i].cores_permille =
            fixture_random(random, 2) ? in->nodes[i].capacity_permille / (1 + fixture_random(random, 2)) : 0;
        in->nodes[i].free_bytes = (4 + fixture_random(random, 40)) * GIB;
        for (uint32_t k = 0; k < i; k++)
            in->distances[i * n_nodes + k] = in->distances[k * n_nodes + i] =
                steps[fixture_random(random, ARRAY_SIZE(steps))];
    }
}

/* Two cpusets with all of some nodes, parts of others, and none of the rest. */
static void random_cpusets(Instance *in, uint64_t *random)
{
    in->problem.cpusets = in->cpusets;
    in->problem.n_cpusets = 2;
    for (uint32_t i = 0; i < 2 * in->problem.n_nodes; i++)
        in->cpusets[i] = fixture_random(random, 3) * 4000;
    for (uint32_t i = 0; i < in->problem.n_groups; i++)
        in->groups[i].cpuset = fixture_random(random, 4) ? 0 : 1 + fixture_random(random, 2);
}

static void random_group(Instance *in, uint64_t *random, uint32_t load)
{
    uint32_t n = in->problem.n_nodes;
    PackGroup *group = add_group(in, 1 + fixture_random(random, load), NULL);

    if (fixture_random(random, 4)) {
        group->memory_bytes = in->memory[in->problem.n_groups - 1];
        for (uint32_t k = 0; k < n; k++)
            in->memory[in->problem.n_groups - 1][k] =
                fixture_random(random, 2) ? fixture_random(random, 8192) * MIB : 0;
    }
    group->memory_discount_permille = fixture_random(random, 3) ? 0 : fixture_random(random, 1001);
    group->mode = (PackMode)fixture_random(random, PACK_MODE_MAX);
    group->private_permille = fixture_random(random, 3) ? 0 : fixture_random(random, 1001);
    group->sorted_permille = group->id % 2 ? group->private_permille : group->private_permille / 3;
    group->few_permille = group->id % 5 ? 0 : 800;
    group->steady_permille = group->id % 3 ? 0 : group->demand_permille;
    group->variance_permille = group->id % 2 ? 0 : group->demand_permille / 3;
    group->lone = group->demand_permille <= 1000;
    group->max_nodes = fixture_random(random, 3);
    group->home = fixture_random(random, 2) ? random_nodes(random, n) : 0;
    group->stays = fixture_random(random, 8) == 0;
    if (fixture_random(random, 4) == 0)
        group->allowed = random_nodes(random, n);
}

/* Nodes with CPUs, of which sets consist. */
static PackNodes with_cpus(const Instance *in, PackNodes nodes)
{
    for (uint32_t i = 0; i < in->problem.n_nodes; i++)
        if (in->nodes[i].capacity_permille == 0)
            nodes &= ~(1ULL << i);
    return nodes;
}

/* Whether a group may have exactly this set; 0 only when no other set is possible. */
static bool may_have(const Instance *in, const PackGroup *group, PackNodes set)
{
    PackNodes allowed = with_cpus(in, group->allowed), home = with_cpus(in, group->home);

    if (group->stays)
        return set == home;
    if (!allowed)
        return set == 0;
    return set && !(set & ~allowed) &&
           (!group->max_nodes || (unsigned)__builtin_popcountll(set) <= group->max_nodes);
}

static uint32_t n_choices(const Instance *in, const PackGroup *group)
{
    uint32_t n = 0;

    for (PackNodes set = 0; set <= ALL_OF(in->problem.n_nodes); set++)
        n += may_have(in, group, set);
    return n;
}

static uint64_t brute_force(const Instance *in, PackNodes *sets, uint32_t group)
{
    uint64_t least = UINT64_MAX;

    if (group == in->problem.n_groups)
        return cost_of(in, sets);
    for (PackNodes set = 0; set <= ALL_OF(in->problem.n_nodes); set++)
        if (may_have(in, &in->groups[group], set)) {
            uint64_t cost;

            sets[group] = set;
            cost = brute_force(in, sets, group + 1);
            least = MIN(least, cost);
        }
    return least;
}

/* As many groups as brute force can handle, on machines from nearly idle to overloaded. */
static void random_small(Instance *in, uint64_t *random)
{
    uint32_t load = 2000 + fixture_random(random, 12000);
    uint64_t combinations = 1;

    random_machine(in, random, 2 + fixture_random(random, 3));
    while (in->problem.n_groups < 9) {
        random_group(in, random, load);
        combinations *= n_choices(in, &in->groups[in->problem.n_groups - 1]);
        if (combinations > COMBINATIONS)
            break;
    }
    in->problem.n_groups -= combinations > COMBINATIONS;
    random_cpusets(in, &(uint64_t){*random});
}

static void test_near_optimum(void **state)
{
    uint64_t random = 31415926;

    for (unsigned round = 0; round < N_EXACT; round++) {
        PackNodes sets[GROUPS];
        uint64_t cost, least;
        Instance in;

        random_small(&in, &random);
        solve(&in);
        for (uint32_t i = 0; i < in.problem.n_groups; i++)
            assert_true(may_have(&in, &in.groups[i], in.sets[i]));
        cost = cost_of(&in, in.sets);
        least = brute_force(&in, sets, 0);
        assert_true(cost >= least);
        assert_true(cost * 100 <= least * 105);
    }
}

static void random_large(Instance *in, uint64_t *random)
{
    uint32_t n_groups = 10 + fixture_random(random, GROUPS - 10), load = 500 + fixture_random(random, 4000);

    random_machine(in, random, 2 + fixture_random(random, NODES - 1));
    for (uint32_t i = 0; i < n_groups; i++) {
        random_group(in, random, load);
        in->groups[i].young = fixture_random(random, 8) == 0;
    }
    random_cpusets(in, &(uint64_t){*random});
}

/* Small problems, and large ones that use up the search steps; with groups that stay at home, roam, or are young. */
static void test_stable(void **state)
{
    uint64_t random = 27182818;
    unsigned n_stay = 0, n_roam = 0, n_young = 0;

    for (unsigned round = 0; round < 4 * N_SEARCHED; round++) {
        Instance in;

        if (round % 4)
            random_small(&in, &random);
        else
            random_large(&in, &random);
        for (uint32_t i = 0; i < in.problem.n_groups; i++) {
            in.groups[i].young = fixture_random(&random, 6) == 0;
            n_stay += in.groups[i].stays && in.groups[i].home;
            n_roam += in.groups[i].stays && !in.groups[i].home;
            n_young += in.groups[i].young;
        }
        solve(&in);
        assert_stable(&in);
    }
    assert_true(n_stay > N_SEARCHED && n_roam > N_SEARCHED && n_young > N_SEARCHED);
}

static void shuffle(uint64_t *random, uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = fixture_random(random, i), swap = order[k];

        order[k] = order[i - 1];
        order[i - 1] = swap;
    }
}

static PackNodes rename_set(const uint32_t *to, PackNodes set)
{
    PackNodes renamed = 0;

    for (; set; set &= set - 1)
        renamed |= 1ULL << to[__builtin_ctzll(set)];
    return renamed;
}

/* The same instance with nodes and groups in another order; keys and ids move along. */
static void rename_all(const Instance *in, const uint32_t *node_to, const uint32_t *group_to, Instance *ret)
{
    uint32_t n = in->problem.n_nodes;

    *ret = *in;
    ret->problem.nodes = ret->nodes;
    ret->problem.distances = ret->distances;
    ret->problem.groups = ret->groups;
    ret->problem.cpusets = ret->cpusets;
    for (uint32_t i = 0; i < n; i++) {
        ret->nodes[node_to[i]] = in->nodes[i];
        for (uint32_t k = 0; k < in->problem.n_cpusets; k++)
            ret->cpusets[k * n + node_to[i]] = in->cpusets[k * n + i];
        for (uint32_t k = 0; k < n; k++)
            ret->distances[node_to[i] * n + node_to[k]] = in->distances[i * n + k];
    }
    for (uint32_t i = 0; i < in->problem.n_groups; i++) {
        PackGroup *group = &ret->groups[group_to[i]];

        *group = in->groups[i];
        group->home = rename_set(node_to, group->home);
        group->allowed = rename_set(node_to, group->allowed);
        for (uint32_t k = 0; k < n; k++)
            ret->memory[group_to[i]][node_to[k]] = in->memory[i][k];
        if (group->memory_bytes)
            group->memory_bytes = ret->memory[group_to[i]];
    }
}

/* I12 */
static void test_renaming(void **state)
{
    uint64_t random = 16180339;

    for (unsigned round = 0; round < N_SEARCHED; round++) {
        uint32_t node_to[NODES] = {0}, group_to[GROUPS] = {0};
        Instance in, renamed;

        random_large(&in, &random);
        shuffle(&random, node_to, in.problem.n_nodes);
        shuffle(&random, group_to, in.problem.n_groups);
        rename_all(&in, node_to, group_to, &renamed);
        solve(&in);
        solve(&renamed);
        for (uint32_t i = 0; i < in.problem.n_groups; i++)
            assert_int_equal(renamed.sets[group_to[i]], rename_set(node_to, in.sets[i]));
    }
}

TEST_MAIN(NULL, NULL, test_near_optimum, test_stable, test_renaming)
