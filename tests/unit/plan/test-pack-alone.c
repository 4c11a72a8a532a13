/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Packing: how memory counts that threads use alone, or that few of them share (P5, P14, P15). */

#include "pack-test.h"

/* Memory that threads use alone is beside them as far as there is room. */
static void test_alone(void **state)
{
    Instance in;
    PackCost cost;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 4000, (uint64_t[]){3, 3})->private_permille = 1000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_int_equal(cost.remote, 0);
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
    assert_int_equal(cost.remote, 4000 * 64 * 10 / 2);
    in.groups[0].private_permille = 500;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_int_equal(cost.remote, 4000 * 64 * 10 / 4);

    /* All on one node: half of the threads are away from theirs. */
    instance_init(&in, 2, 8000, 20);
    add_group(&in, 4000, (uint64_t[]){0, 3})->private_permille = 1000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_int_equal(cost.remote, 4000 * 64 * 10 / 2);
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){2}, &cost), 0);
    assert_int_equal(cost.remote, 0);
}

/* Memory that few threads share costs nothing for being apart, and follows its users. So two nodes of eight cores beat
 * one for ten threads that all share, if they share in sets that fit a node; not if one node has a core for each. */
static void test_few(void **state)
{
    Instance in;
    PackCost cost;

    instance_init(&in, 2, 16000, 20);
    in.nodes[0].cores_permille = in.nodes[1].cores_permille = 8000;
    add_group(&in, 10000, (uint64_t[]){3, 0});
    for (uint32_t few = 0; few <= 1000; few += 500) {
        in.groups[0].home = 1;
        in.groups[0].few_permille = few;
        assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
        assert_int_equal(cost.remote, 10000 * 64 * 10 / 2 * (1000 - few * 3 / 4) / 1000);
        assert_int_equal(cost.split, 10000 * 64 * 10 / 2 * (1000 - few) / 1000 + 50000);
        assert_int_equal(pack_cost(&in.problem, (PackNodes[]){2}, &cost), 0);
        assert_int_equal(cost.remote, 10000 * 64 * 10);
        solve(&in);
        assert_int_equal(in.sets[0], few == 1000 ? 3 : 1);
        assert_stable(&in);
    }
    in.groups[0].home = 1;
    in.groups[0].demand_permille = 8000;
    solve(&in);
    assert_int_equal(in.sets[0], 1);
    in.groups[0].demand_permille = 10000;
    in.groups[0].mode = PACK_MODE_COMPRESS;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_int_equal(cost.remote, 10000 * 64 * 10 / 2);
}

/* Memory that each thread uses alone, with each thread beside its own, costs nothing for being apart. If one
 * node has most of it, it does; so does memory that is only used alone. */
static void test_sorted(void **state)
{
    Instance in;
    PackCost cost;

    instance_init(&in, 4, 2000, 20);
    in.problem.allowed_imbalance_permille = 2000;
    add_group(&in, 4000, (uint64_t[]){1, 1, 1, 1})->private_permille = 1000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){15}, &cost), 0);
    assert_int_equal(cost.split, 4000 * 64 * 10 * 3 / 4 + 3 * 20000);
    in.groups[0].sorted_permille = 1000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){15}, &cost), 0);
    assert_int_equal(cost.split, 3 * 20000);
    solve(&in);
    assert_int_equal(in.sets[0], 15);
    assert_stable(&in);
    in.groups[0].sorted_permille = 500;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){15}, &cost), 0);
    assert_int_equal(cost.split, 4000 * 64 * 10 * 3 / 4 / 2 + 3 * 20000);

    /* Two of four on one node, which that may have. */
    in.groups[0].sorted_permille = 1000;
    in.groups[0].home = 0;
    memcpy(in.memory[0], (uint64_t[]){2 * GIB, GIB, GIB, 0}, 4 * sizeof(uint64_t));
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){7}, &cost), 0);
    assert_int_equal(cost.split, 2 * 20000);
    assert_int_equal(cost.remote, 0);
    solve(&in);
    assert_int_equal(in.sets[0], 7);
    in.problem.allowed_imbalance_permille = 1000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){7}, &cost), 0);
    assert_in_range(cost.remote, 4000 * 64 * 10 / 6 - 2000, 4000 * 64 * 10 / 6 + 1000);

    /* A tenth elsewhere excuses a fifth of being apart. */
    in.problem.allowed_imbalance_permille = 4000;
    in.groups[0].demand_permille = 2000;
    memcpy(in.memory[0], (uint64_t[]){9 * GIB, GIB, 0, 0}, 4 * sizeof(uint64_t));
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_int_equal(cost.remote, 0);
    assert_int_equal(cost.split, 2000 * 64 * 10 / 2 * 8 / 10 + 10000);
    in.problem.allowed_imbalance_permille = 1000;
    in.groups[0].demand_permille = 4000;

    /* All on one node: two of four threads leave it, and are apart. */
    memcpy(in.memory[0], (uint64_t[]){4 * GIB, 0, 0, 0}, 4 * sizeof(uint64_t));
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_int_equal(cost.split, 4000 * 64 * 10 / 2 + 20000);
}

/* Seven threads that share nothing do not count as six and a fraction: two of them would share a node. */
static void test_whole(void **state)
{
    Instance in;
    PackCost cost;

    instance_init(&in, NODES, 2000, 20);
    add_group(&in, 6950, (uint64_t[NODES]){1, 1, 1, 1, 1, 1})->private_permille = 1000;
    for (unsigned i = 0; i < 2; i++) {
        in.groups[0].home = i == 1 ? ALL_OF(6) : 0;
        solve(&in);
        assert_int_equal(__builtin_popcountll(in.sets[0]), 7);
    }
    /* Three on two nodes: half of the time each has a second one, which costs 8 x 10 x 64 x 1000^2 / 2000. */
    in.groups[0].demand_permille = 3000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_in_range(cost.crowd, 2550000, 2560000);
    in.groups[0].demand_permille = 2000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_int_equal(cost.crowd, 0);
    in.groups[0].demand_permille = 4000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_in_range(cost.crowd, 5100000, 5120000);
}

/* Threads of one group that use memory alone take no more than half of a node's CPUs, if P5 allows no more
 * either: not three on four CPUs, but two, or three that share. */
static void test_pressed(void **state)
{
    static const struct {
        uint32_t demand, private;
        PackNodes expected;
    } cases[] = {{3000, 1000, 3}, {2000, 1000, 1}, {3000, 0, 1}};
    PackCost cost;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Instance in;

        instance_init(&in, 2, 4000, 32);
        in.problem.allowed_imbalance_permille = 2000;
        add_group(&in, cases[i].demand, (uint64_t[]){1, 0})->private_permille = cases[i].private;
        in.groups[0].home = 1;
        assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
        assert_int_equal(cost.pressed, cases[i].expected == 3 ? 1000 * 2 * 22 * 64 : 0);
        solve(&in);
        assert_int_equal(in.sets[0], cases[i].expected);
        assert_stable(&in);

        /* If all nodes are pressed, none is better. */
        add_group(&in, 4000, (uint64_t[]){0, 1})->private_permille = 1000;
        assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1, 2}, &cost), 0);
        assert_int_equal(cost.pressed, cases[i].private > 0 ? 0 : 2000 * 2 * 22 * 64);
    }
}

TEST_MAIN(NULL, NULL, test_alone, test_few, test_sorted, test_whole, test_pressed)
