/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Packing: the single terms of the cost, and the rules. test-pack-texts.c has the examples of the texts,
 * test-pack-alone.c memory that threads use alone. */

#include "pack-test.h"

/* The terms */

static void test_terms(void **state)
{
    Instance in;
    PackCost cost;

    /* 8 CPUs, all of 4 GiB on the other node, 20 apart: 8000 x 10 x 64. Moving: 30 permille of 8000 x 10 x
     * 64. Evenness: 64 CPU^2 of 8. */
    instance_init(&in, 2, 8000, 20);
    add_group(&in, 8000, (uint64_t[]){0, 4})->home = 2;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
    assert_int_equal(cost.remote, 5120000);
    assert_int_equal(cost.split, 0);
    assert_int_equal(cost.move, 153600);
    assert_int_equal(cost.overload + cost.shortage + cost.crowd, 0);
    assert_in_range(cost.even, 79900, 80000);
    assert_int_equal(cost.total, cost.remote + cost.move + cost.even);

    /* On both nodes: half of the memory is remote, and half of all pairs of threads; plus a 128th for the
     * second node. */
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_int_equal(cost.remote, 2560000);
    assert_int_equal(cost.split, 2560000 + 40000);
    assert_in_range(cost.even, 39900, 40000);

    /* 10 CPUs on 8: 8640 are no overload, 1360 x 32 x 10 x 64. */
    in.groups[0].demand_permille = 10000;
    in.groups[0].home = 0;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){2}, &cost), 0);
    assert_int_equal(cost.overload, 27852800);
    assert_int_equal(cost.remote + cost.move, 0);

    /* All of it needs bandwidth: 9 CPUs beyond the one allowed, 81 / 8 CPUs. */
    in.groups[0].private_permille = 1000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){2}, &cost), 0);
    assert_in_range(cost.crowd, 10120ULL * 8 * 10 * 64, 10125ULL * 8 * 10 * 64);

    /* 1 GiB more than the 3 GiB that node 0 can take: counts as a third of its CPUs. */
    in.nodes[0].free_bytes = 3 * GIB;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
    assert_in_range(cost.shortage / (32ULL * 10 * 64), 2665, 2667);

    /* 10 CPUs on 4 cores: 6000 x 2 x 10 x 64. On both nodes, 5 and 5; the number of the other's cores is not
     * known. */
    assert_int_equal(cost.siblings, 0);
    in.nodes[0].cores_permille = 4000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
    assert_int_equal(cost.siblings, 7680000);
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_int_equal(cost.siblings, 1280000);
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){2}, &cost), 0);
    assert_int_equal(cost.siblings, 0);
    /* 10 CPUs on 8 that are cores: 2000 x 3/4 x 10 x 64. */
    in.nodes[0].cores_permille = 8000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
    assert_int_equal(cost.siblings, 960000);
}

/* How much nearness to memory counts: less if guessed; for Mode=spread a quarter, also of the discounted amount. */
static void test_pull(void **state)
{
    static const uint32_t expected[] = {
        [PACK_MODE_COMPRESS] = 1000, [PACK_MODE_AUTO] = 1000, [PACK_MODE_SPREAD] = 250};
    Instance in;
    PackCost cost;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 4000, (uint64_t[]){0, 3});
    for (uint32_t discount = 0; discount <= 1200; discount += 200)
        for (uint32_t mode = 0; mode < PACK_MODE_MAX; mode++) {
            in.groups[0].mode = (PackMode)mode;
            in.groups[0].memory_discount_permille = discount;
            assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
            assert_int_equal(cost.remote,
                             expected[mode] * (1000 - MIN(discount, 1000U)) / 1000 * 4 * 10 * 64);
            assert_int_equal(pack_cost(&in.problem, (PackNodes[]){2}, &cost), 0);
            assert_int_equal(cost.remote, 0);
        }
}

/* The example in pack/cost.c: a wide group flows around a narrow one. */
static void test_pours(void **state)
{
    Instance in;
    PackCost cost;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 12000, NULL);
    add_group(&in, 4000, NULL);
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3, 1}, &cost), 0);
    assert_int_equal(cost.overload, 0);
    solve(&in);
    assert_int_equal(in.sets[0], 3);
    assert_int_equal(in.sets[1], 1);
    assert_stable(&in);
}

/* Rules */

static void test_follows_memory(void **state)
{
    Instance in;

    instance_init(&in, 4, 8000, 20);
    add_group(&in, 4000, (uint64_t[]){0, 0, 9, 1});
    add_group(&in, 4000, (uint64_t[]){0, 0, 9, 1});
    add_group(&in, 4000, (uint64_t[]){0, 0, 6, 4}); /* it loses least elsewhere */
    solve(&in);
    assert_int_equal(in.sets[0], 4);
    assert_int_equal(in.sets[1], 4);
    assert_int_equal(in.sets[2], 8);
    assert_stable(&in);
}

/* The fewest and nearest nodes that fit: 12 CPUs on a machine of two sockets of two nodes. */
static void test_near_nodes(void **state)
{
    Instance in;

    instance_init(&in, 4, 8000, 30);
    for (uint32_t i = 0; i < 4; i++)
        in.distances[i * 4 + (i ^ 2)] = 15; /* 0 and 2, 1 and 3 */
    add_group(&in, 12000, NULL)->mode = PACK_MODE_COMPRESS;
    add_group(&in, 12000, (uint64_t[]){0, 0, 1, 0})->mode = PACK_MODE_COMPRESS;
    solve(&in);
    assert_int_equal(in.sets[0], 2 | 8);
    assert_int_equal(in.sets[1], 1 | 4);

    in.problem.n_groups = 1;
    in.groups[0].demand_permille = 8640; /* fully busy, not overloaded (P6) */
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].demand_permille = 8700;
    solve(&in);
    assert_int_equal(in.sets[0], 1 | 4);
    in.groups[0].demand_permille = 100000; /* fits nowhere: least overload */
    solve(&in);
    assert_int_equal(in.sets[0], 15);
    in.groups[0].max_nodes = 2;
    solve(&in);
    assert_int_equal(in.sets[0], 1 | 4);
    in.groups[0].allowed = 2 | 4;
    solve(&in);
    assert_int_equal(in.sets[0], 2 | 4);
    in.groups[0].allowed = 0;
    solve(&in);
    assert_int_equal(in.sets[0], 0);
}

/* All memory is on node 0, which lacks room. Both nodes would cost as much and be more even, but the smaller
 * set wins. */
static void test_smaller_set(void **state)
{
    for (uint32_t demand = 5900; demand <= 8000; demand += 100) {
        Instance in;

        instance_init(&in, 2, 8000, 20);
        add_group(&in, 3000, NULL)->allowed = 1;
        add_group(&in, demand, (uint64_t[]){1, 0});
        solve(&in);
        assert_int_equal(in.sets[1], 2);
    }
}

/* The weight of overload, where it is least: all memory on one node, all nodes equally far. */
static void test_feasible_first(void **state)
{
    Instance in;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 8900, (uint64_t[]){1, 0});
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].demand_permille = 8960;
    solve(&in);
    assert_int_equal(in.sets[0], 3);

    in.groups[0].demand_permille = 8000;
    add_group(&in, 1000, (uint64_t[]){1, 0});
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    assert_int_equal(in.sets[1], 2);

    /* Half a CPU too many is no overload on one node of two CPUs; on each of two nodes of one CPU it is. */
    instance_init(&in, 4, 2000, 20);
    add_group(&in, 2500, (uint64_t[]){1, 0, 0, 0});
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    instance_init(&in, 4, 1000, 20);
    add_group(&in, 3000, (uint64_t[]){1, 1, 0, 0});
    solve(&in);
    assert_int_equal(__builtin_popcountll(in.sets[0]), 3);
}

/* Adds ten threads on two nodes of two CPUs; `n_first` of them have their memory on the first. */
static void add_ten(Instance *in, uint32_t n_first)
{
    instance_init(in, 2, 2000, 20);
    for (uint32_t i = 0; i < 10; i++)
        add_group(in, 400, i < n_first ? (uint64_t[]){1, 0} : (uint64_t[]){0, 1});
}

static uint32_t n_away(const Instance *in, uint32_t n_first)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < in->problem.n_groups; i++)
        n += in->sets[i] != (i < n_first ? 1 : 2);
    return n;
}

/* A thread that leaves a full node for another full node gains no CPU, and loses its memory. */
static void test_full_machine(void **state)
{
    Instance in;
    PackCost cost;

    /* Each wants 0.4 of a CPU, and gets it. */
    add_ten(&in, 7);
    solve(&in);
    assert_int_equal(n_away(&in, 7), 1);

    /* Each wants one CPU, and gets 0.4: there is no room anywhere, unless one node has far more threads. */
    in.problem.share_permille = 400;
    solve(&in);
    assert_int_equal(n_away(&in, 7), 0);
    assert_stable(&in);
    add_ten(&in, 10);
    in.problem.share_permille = 400;
    solve(&in);
    assert_in_range(n_away(&in, 10), 1, 4);

    /* 32 threads get half of what they want, and have their memory on three of four nodes: the fourth is
     * used, too. */
    instance_init(&in, 4, 4000, 20);
    in.problem.share_permille = 500;
    for (uint32_t i = 0; i < 32; i++) {
        uint64_t gib[4] = {0};

        gib[i % 3] = 1;
        add_group(&in, 500, gib);
    }
    solve(&in);
    for (uint32_t n = 0; n < 4; n++) {
        uint32_t n_there = 0;

        for (uint32_t i = 0; i < 32; i++)
            n_there += in.sets[i] == 1ULL << n;
        assert_in_range(n_there, 2, 10);
    }
    assert_stable(&in);

    /* A group that wants twice the machine gets all of it. */
    instance_init(&in, 4, 4000, 20);
    in.problem.share_permille = 500;
    add_group(&in, 16000, (uint64_t[]){1, 1, 1, 1});
    solve(&in);
    assert_int_equal(in.sets[0], 15);

    /* 2800 on 2000: 800^2 / 2000 x 3/2 x 10 x 64, half of which counts, if a quarter more is wanted than
     * there is. */
    add_ten(&in, 7);
    for (uint32_t i = 0; i < 10; i++)
        in.sets[i] = i < 7 ? 1 : 2;
    in.problem.share_permille = 400;
    assert_int_equal(pack_cost(&in.problem, in.sets, &cost), 0);
    assert_int_equal(cost.overload, 0);
    assert_in_range(cost.unfair, 152000, 153600);
    in.problem.share_permille = 800;
    assert_int_equal(pack_cost(&in.problem, in.sets, &cost), 0);
    assert_int_equal(cost.overload, 300 * 32 * 10 * 64);
    assert_int_equal(cost.unfair, 0);
}

static void test_headroom(void **state)
{
    Instance in;

    instance_init(&in, 2, 8000, 20);
    in.nodes[0].free_bytes = 4 * GIB;
    add_group(&in, 2000, (uint64_t[]){6, 5});
    solve(&in);
    assert_int_equal(in.sets[0], 2); /* most of it is on node 0, but the other 5 GiB do not fit into 4 */
    in.nodes[0].free_bytes = 5 * GIB;
    solve(&in);
    assert_int_equal(in.sets[0], 1);

    /* A group that leaves makes room: each of two moves is possible only with the other. */
    instance_init(&in, 2, 8000, 20);
    in.nodes[0].free_bytes = in.nodes[1].free_bytes = 0;
    add_group(&in, 8000, (uint64_t[]){2, 6})->home = 1;
    add_group(&in, 8000, (uint64_t[]){6, 2})->home = 2;
    solve(&in);
    assert_int_equal(in.sets[0], 2);
    assert_int_equal(in.sets[1], 1);

    /* Nodes without memory or without CPUs: no division by zero, and a result has CPUs. */
    instance_init(&in, 3, 8000, 20);
    in.nodes[0].free_bytes = 0;
    in.nodes[2].capacity_permille = 0;
    in.distances[1 * 3 + 2] = in.distances[2 * 3 + 1] = 12;
    add_group(&in, 8000, (uint64_t[]){0, 0, 8});
    solve(&in);
    assert_int_equal(in.sets[0], 2);
    in.nodes[0].capacity_permille = in.nodes[1].capacity_permille = 0;
    solve(&in);
    assert_int_equal(in.sets[0], 0);
}

static void test_stays(void **state)
{
    Instance in;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 8000, (uint64_t[]){0, 1})->home = 1; /* all its memory is there */
    in.groups[0].stays = true;
    add_group(&in, 8000, (uint64_t[]){1, 0});
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    assert_int_equal(in.sets[1], 2);
    in.groups[0].stays = false;
    solve(&in);
    assert_int_equal(in.sets[0], 2);
    assert_int_equal(in.sets[1], 1);

    /* A roaming group fills the room that others leave, and gets no home. */
    in.groups[0] = (PackGroup){.id = 9, .demand_permille = 8000, .allowed = 1, .stays = true};
    in.groups[1].memory_bytes = NULL;
    solve(&in);
    assert_int_equal(in.sets[0], 0);
    assert_int_equal(in.sets[1], 2);
}

/* MinGainPermille=: more than 30 permille become local, or not. */
static void test_hysteresis(void **state)
{
    Instance in;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 4000, (uint64_t[]){0, 0})->home = 1;
    for (uint64_t gib = 500; gib < 560; gib++) {
        in.memory[0][0] = (1000 - gib) * GIB;
        in.memory[0][1] = gib * GIB;
        solve(&in);
        assert_int_equal(in.sets[0], 2 * gib - 1000 <= 30 ? 1 : 2);
    }
}

static void test_errors(void **state)
{
    Instance in;
    PackCost cost;

    instance_init(&in, 2, 8000, 20);
    solve(&in); /* no groups */
    add_group(&in, 1000, NULL);
    add_group(&in, 1000, NULL)->id = 1;
    assert_int_equal(pack_solve(&in.problem, in.sets), -EINVAL);
    in.groups[1].id = 2;
    in.nodes[1].key = 0;
    assert_int_equal(pack_solve(&in.problem, in.sets), -EINVAL);
    in.nodes[1].key = 1;
    in.groups[1].home = 4;
    assert_int_equal(pack_cost(&in.problem, in.sets, &cost), -EINVAL);
    in.groups[1].home = 0;
    in.problem.n_nodes = PACK_NODES_MAX + 1;
    assert_int_equal(pack_solve(&in.problem, in.sets), -E2BIG);
    in.problem.n_nodes = 2;
    in.problem.n_groups = PACK_GROUPS_MAX + 1;
    assert_int_equal(pack_solve(&in.problem, in.sets), -E2BIG);
}

/* A group of both nodes flows around one that has the first to itself; overload is divided by size. */
static void test_parts(void **state)
{
    uint64_t parts[8];
    Instance in;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 6000, NULL);
    add_group(&in, 8000, NULL);
    assert_int_equal(pack_parts(&in.problem, (PackNodes[]){1, 3}, parts), 0);
    assert_int_equal(parts[0], 6000);
    assert_int_equal(parts[1], 0);
    assert_in_range(parts[2], 1590, 1600);
    assert_int_equal(parts[2] + parts[3], 8000);
    in.groups[1].demand_permille = 14000;
    assert_int_equal(pack_parts(&in.problem, (PackNodes[]){1, 3}, parts), 0);
    assert_in_range(parts[2], 2000 + 1990, 2000 + 2000);
    assert_int_equal(parts[2] + parts[3], 14000);
    /* A group that stays without a home is anywhere. */
    in.groups[0].stays = true;
    in.groups[1].demand_permille = 0;
    assert_int_equal(pack_parts(&in.problem, (PackNodes[]){0, 0}, parts), 0);
    assert_int_equal(parts[0] + parts[1], 6000);
    assert_in_range(parts[0], 2990, 3000);
    assert_int_equal(parts[2] + parts[3], 0);
}

/* Cpusets that straddle nodes. A group is divided by the CPUs it may have, and goes to as many nodes as give
 * it enough of them, away from its memory if need be. It shares them with groups of the same cpuset only. */
static void test_cpusets(void **state)
{
    static const uint32_t cpus[] = {1000, 3000, 3000, 1000};
    uint64_t parts[6];
    Instance in;

    instance_init(&in, 2, 4000, 20);
    in.problem.cpusets = cpus;
    in.problem.n_cpusets = 1;
    add_group(&in, 3000, (uint64_t[]){1, 0})->cpuset = 1;
    solve(&in);
    assert_int_equal(in.sets[0], 2);
    assert_stable(&in);
    in.groups[0].demand_permille = 4000;
    solve(&in);
    assert_int_equal(in.sets[0], 3);
    assert_int_equal(pack_parts(&in.problem, in.sets, parts), 0);
    assert_in_range(parts[0], 990, 1010);
    in.groups[0].home = 0;
    in.groups[0].young = true;
    solve(&in);
    assert_int_equal(in.sets[0], 3);

    in.groups[0].young = false;
    in.groups[0].demand_permille = 1000;
    add_group(&in, 1000, (uint64_t[]){1, 0})->cpuset = 1;
    add_group(&in, 1000, (uint64_t[]){1, 0})->cpuset = 2;
    assert_int_equal(pack_solve(&in.problem, in.sets), -EINVAL);
    in.problem.n_cpusets = 2;
    solve(&in);
    assert_int_equal(in.sets[0] ^ in.sets[1], 3); /* one each */
    assert_int_equal(in.sets[2], 1);
    assert_stable(&in);
}

/* A machine of two halves of eight nodes, each of one core with two siblings. Sixteen threads that share memory live
 * in one half, two on each core. On all nodes they would cost a quarter less, on nine to eleven more than now. */
static void test_across_halves(void **state)
{
    Instance in;
    PackGroup *group;

    instance_init(&in, 16, 2000, 12);
    for (uint32_t i = 0; i < 16; i++) {
        in.nodes[i].cores_permille = 1000;
        for (uint32_t k = 0; k < 16; k++)
            if (i / 8 != k / 8)
                in.distances[i * 16 + k] = 19;
    }
    group = add_group(&in, 16000, (uint64_t[16]){1, 1, 1, 1, 1, 1, 1, 1});
    group->home = 0xff;
    group->max_nodes = 16;
    for (PackNodes set = 0x1ff; set <= 0x7ff; set = set << 1 | 1)
        assert_true(cost_of(&in, &set) > cost_of(&in, &group->home));
    solve(&in);
    assert_int_equal(in.sets[0], 0xffff);
    assert_stable(&in);
}

/* Two new programs of four threads, on four nodes of two CPUs, get two nodes each, although one is measured
 * to want slightly more than two nodes have. */
static void test_noise(void **state)
{
    for (uint32_t more = 0; more <= 30; more += 5) {
        Instance in;

        instance_init(&in, 4, 2000, 20);
        for (uint32_t i = 0; i < 4; i++)
            in.nodes[i].cores_permille = 2000;
        add_group(&in, 4000 + more, (uint64_t[]){1, 0, 0, 0})->young = true;
        add_group(&in, 3998, (uint64_t[]){1, 0, 0, 0})->young = true;
        solve(&in);
        assert_int_equal(__builtin_popcountll(in.sets[0]), 2);
        assert_int_equal(in.sets[1], ALL_OF(4) & ~in.sets[0]);
    }
}

/* Nine threads of three groups on two nodes of four CPUs: if they never pause one waits for good, which costs
 * 4 x far more. Not if more is wanted than there is, nor for less than a quarter of a thread. */
static void test_waiting(void **state)
{
    static const struct {
        uint32_t steady, share;
        uint64_t waiting;
    } cases[] = {{3000, 0, 1000}, {0, 0, 0}, {3000, 990, 0}, {2900, 0, 700}, {2800, 0, 0}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        PackCost costs[2];
        Instance in;

        instance_init(&in, 4, 4000, 20);
        for (uint32_t k = 0; k < 4; k++)
            in.nodes[k].cores_permille = 4000;
        in.problem.share_permille = cases[i].share;
        for (uint32_t k = 0; k < 3; k++) {
            add_group(&in, 3000, NULL);
            in.sets[k] = k + 1;
        }
        for (unsigned steady = 0; steady < 2; steady++) {
            for (uint32_t k = 0; k < 3; k++)
                in.groups[k].steady_permille = steady ? cases[i].steady : 0;
            assert_int_equal(pack_cost(&in.problem, in.sets, &costs[steady]), 0);
        }
        assert_int_equal(costs[1].siblings - costs[0].siblings, cases[i].waiting * 4 * 10 * 64);
    }
}

/* Pressure on the memory of a node counts more for a small node, but not more if others use half of its CPUs. */
static void test_size(void **state)
{
    PackCost whole, half, small;
    Instance in;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 6000, NULL)->private_permille = 1000;
    in.sets[0] = 1;
    assert_int_equal(pack_cost(&in.problem, in.sets, &whole), 0);
    in.nodes[0].capacity_permille = in.nodes[1].capacity_permille = 6000;
    assert_int_equal(pack_cost(&in.problem, in.sets, &small), 0);
    in.nodes[0].size_permille = in.nodes[1].size_permille = 8000;
    assert_int_equal(pack_cost(&in.problem, in.sets, &half), 0);
    assert_true(small.crowd > whole.crowd * 5 / 4);
    assert_in_range(half.crowd, whole.crowd * 999 / 1000, whole.crowd * 1001 / 1000);
}

TEST_MAIN(NULL, NULL, test_waiting, test_size, test_cpusets, test_noise, test_terms, test_parts, test_pull,
          test_pours, test_follows_memory, test_near_nodes, test_smaller_set, test_feasible_first,
          test_full_machine, test_headroom, test_stays, test_across_halves, test_hysteresis, test_errors)
