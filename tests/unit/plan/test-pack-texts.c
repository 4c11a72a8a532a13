/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Packing: the examples and scenarios of the texts. */

#include "pack-test.h"

/* S-FORK: 16 tasks that need bandwidth, on two nodes of 40 CPUs, with their memory where they started, are
 * spread. S-SHELL: tasks that need none are not, nor are young ones. */
static void test_spreading(void **state)
{
    Instance in;

    instance_init(&in, 2, 40000, 21);
    in.problem.allowed_imbalance_permille = 5000;
    add_group(&in, 16000, (uint64_t[]){8, 0})->home = 1;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].private_permille = 1000;
    solve(&in);
    assert_int_equal(in.sets[0], 3);
    assert_stable(&in);
    in.groups[0].home = 1;
    in.groups[0].demand_permille = 13000;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].demand_permille = 14000;
    solve(&in);
    assert_int_equal(in.sets[0], 3);
    in.groups[0].young = true;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].home = 0;
    solve(&in);
    assert_int_equal(in.sets[0], 3); /* a first home, and the threads are seen to share nothing */
    in.groups[0].private_permille = 0;
    solve(&in);
    assert_int_equal(in.sets[0], 1); /* that is not seen: beside its memory */
    in.groups[0].private_permille = 1000;
    in.groups[0].mode = PACK_MODE_SPREAD;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].young = false;
    in.groups[0].private_permille = 0;
    solve(&in);
    assert_int_equal(in.sets[0], 3); /* the policy says that it helps */
    in.groups[0].mode = PACK_MODE_COMPRESS;
    in.groups[0].private_permille = 1000;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].mode = PACK_MODE_AUTO;
    in.groups[0].demand_permille = 5000; /* the allowed imbalance (P5) */
    solve(&in);
    assert_int_equal(in.sets[0], 1);

    /* Short shells: none is on more than one node, whatever the mode and the evidence. */
    instance_init(&in, 2, 8000, 21);
    for (uint32_t i = 0; i < GROUPS; i++) {
        add_group(&in, 300, i % 2 ? (uint64_t[]){1, 0} : NULL)->young = true;
        in.groups[i].mode = (PackMode)(i % PACK_MODE_MAX);
        in.groups[i].private_permille = 1000;
    }
    solve(&in);
    for (uint32_t i = 0; i < GROUPS; i++)
        assert_int_equal(in.sets[i] & (in.sets[i] - 1), 0);
}

/* Counts the groups on each node; each is on one. */
static void count_groups(const Instance *in, unsigned *ret_counts)
{
    memset(ret_counts, 0, NODES * sizeof(*ret_counts));
    for (uint32_t i = 0; i < in->problem.n_groups; i++) {
        assert_int_equal(__builtin_popcountll(in->sets[i]), 1);
        ret_counts[__builtin_ctzll(in->sets[i])]++;
    }
}

/* S-FORK with a group for each task, all born on node 0: even halves where the policy says spread, also while
 * the averages of new tasks rise. In Mode=auto light tasks stay. */
static void test_fork_groups(void **state)
{
    for (uint32_t demand = 740; demand <= 1000; demand += 20) {
        unsigned counts[NODES];
        Instance in;

        instance_init(&in, 2, 40000, 21);
        in.problem.allowed_imbalance_permille = 5000;
        for (uint32_t i = 0; i < 16; i++) {
            add_group(&in, demand, (uint64_t[]){1, 0})->mode = PACK_MODE_SPREAD;
            in.groups[i].home = 1;
            in.groups[i].max_nodes = 1;
        }
        solve(&in);
        count_groups(&in, counts);
        assert_int_equal(counts[0], 8);
        assert_stable(&in);

        for (uint32_t i = 0; i < 16; i++) {
            in.groups[i].mode = PACK_MODE_AUTO;
            in.groups[i].home = i % 2;
        }
        solve(&in);
        count_groups(&in, counts);
        assert_int_equal(counts[0], 16);
    }
}

/* P4's order, idle core, idle CPU, least loaded, for groups: cores of other nodes come before siblings here, also for
 * groups with memory here, if siblings cost them more. Nodes of 18 cores with two CPUs each, groups of 8 CPUs. */
static void test_siblings(void **state)
{
    unsigned counts[NODES];
    Instance in;

    instance_init(&in, 8, 36000, 20);
    for (uint32_t i = 0; i < 8; i++)
        in.nodes[i].cores_permille = 18000;
    for (uint32_t i = 0; i < 16; i++) {
        add_group(&in, 8000, (uint64_t[]){1, 1, 0, 0, 0, 0, 0, 0});
        in.groups[i].memory_discount_permille = 800; /* a guess: where the kernel had put them */
    }
    solve(&in);
    count_groups(&in, counts);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(counts[i], 2);
    assert_stable(&in);

    /* Four groups at home beside all of their memory: 14 CPUs without a core weigh more than two groups away
     * from memory, which will follow. */
    in.problem.n_groups = 4;
    for (uint32_t i = 0; i < 4; i++) {
        in.groups[i].memory_discount_permille = 0;
        in.groups[i].home = 1;
        in.memory[i][1] = 0;
    }
    solve(&in);
    count_groups(&in, counts);
    assert_int_equal(counts[0], 2);
    assert_stable(&in);

    /* Three groups of 7 CPUs want only 3 CPUs beyond the cores: they stay. */
    in.problem.n_groups = 3;
    for (uint32_t i = 0; i < 3; i++)
        in.groups[i].demand_permille = 7000;
    solve(&in);
    count_groups(&in, counts);
    assert_int_equal(counts[0], 3);

    /* A single group is not torn apart for cores when the number of cores is not known. */
    for (uint32_t i = 0; i < 8; i++)
        in.nodes[i].cores_permille = 0;
    in.problem.n_groups = 1;
    in.groups[0] = (PackGroup){.id = 1, .demand_permille = 36000, .mode = PACK_MODE_AUTO, .allowed = 255};
    solve(&in);
    assert_int_equal(__builtin_popcountll(in.sets[0]), 1);
}

/* Threads that never pause are not squeezed into siblings of the one node with their memory while nodes
 * beside it are idle. Threads that pause are, and also if the policy wants them together. */
static void test_squeezed(void **state)
{
    Instance in;

    instance_init(&in, 4, 12000, 20);
    for (uint32_t i = 0; i < 4; i++)
        in.nodes[i].cores_permille = 6000;
    add_group(&in, 11000, (uint64_t[]){1, 0, 0, 0});
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].steady_permille = 11000;
    solve(&in);
    assert_int_equal(__builtin_popcountll(in.sets[0]), 2);
    assert_true(in.sets[0] & 1);
    assert_stable(&in);
    in.groups[0].steady_permille = 6500;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].steady_permille = 11000;
    in.groups[0].mode = PACK_MODE_COMPRESS;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
}

/* They are squeezed when all cores are shared anyway: two such groups, and one thread more than there are CPUs. */
static void test_squeezed_anyway(void **state)
{
    Instance in;

    instance_init(&in, 2, 4000, 28);
    in.nodes[0].cores_permille = in.nodes[1].cores_permille = 2000;
    in.problem.share_permille = 889;
    for (uint32_t i = 0; i < 2; i++) {
        add_group(&in, 3555, (uint64_t[]){1, 1});
        in.groups[i].steady_permille = 3555;
        in.groups[i].private_permille = 340;
        in.groups[i].home = 3;
    }
    add_group(&in, 888, (uint64_t[]){0, 4});
    in.groups[2].steady_permille = 888;
    in.groups[2].private_permille = 1000;
    in.groups[2].max_nodes = 1;
    in.problem.allowed_imbalance_permille = 1000;
    solve(&in);
    assert_int_equal(in.sets[0] | in.sets[1], 3);
    assert_int_equal(in.sets[0] & in.sets[1], 0);
    assert_int_equal(in.sets[2], 2);
    assert_stable(&in);
}

/* Six threads that pause a third of the time want four CPUs on average, but five as often as three. They get
 * more nodes than the average needs, if these have some of their memory. */
static void test_pauses(void **state)
{
    Instance in;

    instance_init(&in, 4, 2000, 20);
    add_group(&in, 4000, (uint64_t[]){1, 1, 1, 1});
    for (uint32_t i = 0; i < 4; i++)
        in.nodes[i].cores_permille = 2000;
    solve(&in);
    assert_int_equal(__builtin_popcountll(in.sets[0]), 2);
    in.groups[0].variance_permille = 1333;
    solve(&in);
    assert_in_range(__builtin_popcountll(in.sets[0]), 3, 4);
    assert_stable(&in);
}

/* Adds fourteen threads that want 0.4 of a CPU, on two halves of four nodes of one CPU. */
static void add_pausing(Instance *in, uint32_t near, uint32_t far)
{
    instance_init(in, 8, 1000, far);
    for (uint32_t i = 0; i < 8; i++) {
        in->nodes[i].cores_permille = 1000;
        for (uint32_t k = 0; k < 8; k++)
            in->distances[i * 8 + k] = i == k ? 10 : i / 4 == k / 4 ? near : far;
    }
    for (uint32_t i = 0; i < 14; i++) {
        uint64_t gib[8] = {0};
        PackGroup *group;

        gib[i % 8] = 1;
        group = add_group(in, 400, gib);
        group->private_permille = 1000;
        group->variance_permille = 240;
        group->lone = true;
    }
}

/* Two of them on one node wait for each other; on four nodes that are hardly farther from their memory they
 * seldom do. */
static void test_pool(void **state)
{
    uint32_t n_wide = 0;
    Instance in;

    add_pausing(&in, 12, 32);
    solve(&in);
    for (uint32_t i = 0; i < 14; i++) {
        n_wide += (uint32_t)__builtin_popcountll(in.sets[i]) > 1;
        assert_int_equal(in.sets[i] & ~(i % 8 < 4 ? 0x0fULL : 0xf0ULL), 0);
    }
    assert_in_range(n_wide, 12, 14);
    assert_stable(&in);

    /* With as many CPUs as threads nothing waits. */
    add_pausing(&in, 12, 32);
    in.problem.n_groups = 8;
    solve(&in);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(in.sets[i], 1ULL << i);

    /* Nodes are not shared by threads that never pause. */
    add_pausing(&in, 12, 32);
    for (uint32_t i = 0; i < 14; i++)
        in.groups[i].variance_permille = 0;
    solve(&in);
    for (uint32_t i = 0; i < 14; i++)
        assert_int_equal(__builtin_popcountll(in.sets[i]), 1);
}

/* A node that is full on average does not become cheaper for a newcomer. */
static void test_full_by_chance(void **state)
{
    PackNodes sets[2] = {1, 1};
    PackCost alone, both;
    Instance in;

    instance_init(&in, 2, 8000, 20);
    for (uint32_t i = 0; i < 2; i++)
        in.nodes[i].cores_permille = 8000;
    add_group(&in, 8000, NULL)->variance_permille = 4000;
    assert_int_equal(pack_cost(&in.problem, sets, &alone), 0);
    for (uint32_t demand = 10; demand < 700; demand += 10) {
        in.problem.n_groups = 1;
        add_group(&in, demand, NULL);
        assert_int_equal(pack_cost(&in.problem, sets, &both), 0);
        assert_true(both.siblings > alone.siblings);
        alone = both;
    }
}

/* A group that needs several nodes is not squeezed into siblings on some of them, be it for memory there or
 * in its first home. Nodes of 4 cores with two CPUs each. */
static void test_siblings_of_many(void **state)
{
    Instance in;

    instance_init(&in, 4, 8000, 20);
    for (uint32_t i = 0; i < 4; i++)
        in.nodes[i].cores_permille = 4000;
    add_group(&in, 14000, (uint64_t[]){1, 1, 1, 0})->home = 7;
    solve(&in);
    assert_int_equal(in.sets[0], 15);
    in.groups[0].demand_permille = 12000;
    solve(&in);
    assert_int_equal(in.sets[0], 7);

    in.groups[0].young = true;
    in.groups[0].home = 0;
    in.groups[0].demand_permille = 15000;
    solve(&in);
    assert_int_equal(in.sets[0], 15);
    /* One node would hold it with all siblings in use: it gets two. One node suffices if it has as many cores
     * as CPUs. */
    in.groups[0].demand_permille = 8000;
    in.memory[0][1] = in.memory[0][2] = 0;
    solve(&in);
    assert_int_equal(__builtin_popcountll(in.sets[0]), 2);
    in.groups[0].demand_permille = 4500;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    /* Nor does a node suffice that does so on average, if another is near. */
    in.groups[0].demand_permille = 4000;
    in.distances[1] = in.distances[4] = 11;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].variance_permille = 3000;
    solve(&in);
    assert_int_equal(in.sets[0], 3);
    in.groups[0].variance_permille = 0;
    in.groups[0].demand_permille = 8000;
    for (uint32_t i = 0; i < 4; i++)
        in.nodes[i].cores_permille = 8000;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
}

/* 18 busy threads on nodes of 4 CPUs: half a CPU too many on each of four nodes would be two CPUs in all. */
static void test_half_a_cpu(void **state)
{
    Instance in;

    instance_init(&in, 8, 4000, 32);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 4; k++)
            if (i != k)
                in.distances[i * 8 + k] = 12;
    add_group(&in, 17999, (uint64_t[]){1, 1, 1, 1, 0, 0, 0, 0})->home = 15;
    solve(&in);
    assert_true((in.sets[0] & ~15ULL) != 0);
    in.groups[0].demand_permille = 16500;
    solve(&in);
    assert_int_equal(in.sets[0], 15);
}

/* S-JVM: four groups of eight threads, shuffled over four nodes of eight CPUs, get one node each. */
static void test_jvm(void **state)
{
    uint64_t random = 20121118;

    for (unsigned round = 0; round < 50; round++) {
        PackNodes all = 0;
        Instance in;

        instance_init(&in, 4, 8000, 20);
        for (uint32_t i = 0; i < 4; i++) {
            add_group(&in, 8000, (uint64_t[]){0, 0, 0, 0});
            for (uint32_t thread = 0; thread < 8; thread++)
                in.memory[i][fixture_random(&random, 4)] += GIB;
            in.groups[i].home = 15;
        }
        solve(&in);
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(in.sets[i] & (in.sets[i] - 1), 0);
            all |= in.sets[i];
        }
        assert_int_equal(all, 15);
        assert_stable(&in);
    }
}

/* S-FLIP for groups, here just threads: node 0 runs G1 (3) G2 (2) G4 (1), node 1 runs G1 (3) G3 (2) G5 (1).
 * After T6<->T11, T7<->T4 and T8<->T5 node 0 has all of G1 and node 1 the rest, and that is stable. */
static void test_flip(void **state)
{
    Instance in;

    instance_init(&in, 2, 6000, 20);
    add_group(&in, 6000, NULL)->home = 3;
    add_group(&in, 2000, NULL)->home = 1;
    add_group(&in, 2000, NULL)->home = 2;
    add_group(&in, 1000, NULL)->home = 1;
    add_group(&in, 1000, NULL)->home = 2;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    for (uint32_t i = 1; i < 5; i++)
        assert_int_equal(in.sets[i], 2);
    assert_stable(&in);
}

/* Asserts what a group of one CPU pays on each node for distance from its memory, in permille of the cost of
 * memory on the farthest node: the complement of P11's weight of the node. */
static void assert_remote(Instance *in, const uint32_t *expected)
{
    for (uint32_t i = 0; i < in->problem.n_nodes; i++) {
        PackCost cost;
        uint32_t far = 0;

        for (uint32_t k = 0; k < in->problem.n_nodes * in->problem.n_nodes; k++)
            far = MAX(far, in->distances[k] - 10);
        assert_int_equal(pack_cost(&in->problem, (PackNodes[]){1ULL << i}, &cost), 0);
        assert_in_range(cost.remote * 1000, (expected[i] - 1) * far * 64000ULL,
                        (expected[i] + 1) * far * 64000ULL);
    }
}

static void set_distances(Instance *in, const uint32_t *distances)
{
    memcpy(in->distances, distances, in->problem.n_nodes * in->problem.n_nodes * sizeof(*distances));
}

/* P11's weights: memory counts by nearness, (max - d) / (max - 10): 10 / 21 of memory at distance 21 of 31, 6
 * / 12 at 16 of 22, and nothing at the largest distance. */
static void test_nearness(void **state)
{
    /* A ring of four nodes; the opposite one is reached through either neighbour. */
    static const uint32_t ring[] = {10, 21, 31, 21, 21, 10, 21, 31, 31, 21, 10, 21, 21, 31, 21, 10};
    /* Two boards of two nodes each, and no distance in between. */
    static const uint32_t boards[] = {10, 16, 22, 22, 16, 10, 22, 22, 22, 22, 10, 16, 22, 22, 16, 10};
    Instance in;

    instance_init(&in, 4, 8000, 31);
    set_distances(&in, ring);
    add_group(&in, 1000, (uint64_t[]){0, 21, 5, 0});
    assert_remote(&in, (uint32_t[]){1000 - 385, 1000 - 899, 1000 - 577, 1000 - 92});
    instance_init(&in, 3, 8000, 22);
    set_distances(&in, (uint32_t[]){10, 16, 22, 16, 10, 16, 22, 16, 10});
    add_group(&in, 1000, (uint64_t[]){0, 2, 1});
    assert_remote(&in, (uint32_t[]){667, 167, 333});

    /* Node 0 has most, but node 3 and its neighbours have more than any other. */
    instance_init(&in, 4, 8000, 31);
    set_distances(&in, ring);
    add_group(&in, 1000, (uint64_t[]){400, 0, 300, 300});
    solve(&in);
    assert_int_equal(in.sets[0], 8);
    in.memory[0][2] = 0;
    in.memory[0][1] = 300 * GIB;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    /* The board with most, then the node on it with most. */
    set_distances(&in, boards);
    memcpy(in.memory[0], (uint64_t[]){400 * GIB, 0, 250 * GIB, 300 * GIB}, 4 * sizeof(uint64_t));
    solve(&in);
    assert_int_equal(in.sets[0], 8);
    /* A tie: the group stays. */
    memcpy(in.memory[0], (uint64_t[]){GIB, GIB, GIB, GIB}, 4 * sizeof(uint64_t));
    for (uint32_t i = 0; i < 4; i++) {
        in.groups[0].home = 1ULL << i;
        solve(&in);
        assert_int_equal(in.sets[0], 1ULL << i);
    }
}

/* S-PREF: 70 to 30 decides, and at 50 to 50 nothing changes, whichever the node. */
static void test_preferred(void **state)
{
    for (uint32_t home = 0; home < 2; home++) {
        Instance in;

        instance_init(&in, 2, 8000, 21);
        add_group(&in, 1000, (uint64_t[]){500, 500})->home = 1ULL << home;
        solve(&in);
        assert_int_equal(in.sets[0], 1U << home);
        in.memory[0][home] = 300 * GIB;
        in.memory[0][1 - home] = 700 * GIB;
        solve(&in);
        assert_int_equal(in.sets[0], 2U >> home);
    }
}

/* S-SWAP: two full nodes, each with a group whose memory is on the other: they are exchanged, unless each
 * gains less than MinGainPermille=. If there is room, a group that gains goes alone, and none is sent away
 * for it (no pointless swaps). */
static void test_swap(void **state)
{
    Instance in;

    instance_init(&in, 2, 8000, 20);
    for (uint32_t i = 0; i < 8; i++)
        add_group(&in, 2000, i == 0 || i == 7 ? (uint64_t[]){i == 7, i == 0} : (uint64_t[]){i < 4, i >= 4})
            ->home = i < 4 ? 1 : 2;
    solve(&in);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(in.sets[i], i == 0 || (i > 3 && i < 7) ? 2 : 1);
    assert_stable(&in);

    for (uint32_t gain = 0; gain <= 60; gain += 4) {
        for (uint32_t i = 0; i < 8; i += 7) {
            in.groups[i].home = i == 0 ? 1 : 2;
            in.memory[i][i == 0] = (500 + gain / 2) * GIB;
            in.memory[i][i != 0] = (500 - gain / 2) * GIB;
        }
        solve(&in);
        assert_int_equal(in.sets[0], gain > 30 ? 2 : 1);
        assert_int_equal(in.sets[7], gain > 30 ? 1 : 2);
    }

    /* There is room: groups without known memory stay. */
    for (uint32_t i = 1; i < 8; i++)
        in.groups[i].memory_bytes = NULL;
    in.groups[0].home = 1;
    in.problem.n_groups = 7;
    solve(&in);
    assert_int_equal(in.sets[0], 2);
    for (uint32_t i = 1; i < 7; i++)
        assert_int_equal(in.sets[i], in.groups[i].home);
}

/* S-WA: 16 pairs that must stay together, on eight nodes: two on each. */
static void test_pairs(void **state)
{
    unsigned count[NODES] = {0};
    Instance in;

    instance_init(&in, 8, 4000, 21);
    for (uint32_t i = 0; i < 16; i++)
        add_group(&in, 2000, NULL);
    solve(&in);
    for (uint32_t i = 0; i < 16; i++) {
        assert_int_equal(in.sets[i] & (in.sets[i] - 1), 0);
        count[__builtin_ctzll(in.sets[i])]++;
    }
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(count[i], 2);
    assert_stable(&in);
}

TEST_MAIN(NULL, NULL, test_spreading, test_fork_groups, test_siblings, test_squeezed, test_squeezed_anyway,
          test_pauses, test_pool, test_full_by_chance, test_siblings_of_many, test_half_a_cpu, test_jvm,
          test_flip, test_nearness, test_preferred, test_swap, test_pairs)
