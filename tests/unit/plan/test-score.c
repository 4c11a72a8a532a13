/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P11: the shape of a machine, weights of nodes, and the preferred node (S-PREF). */

#include "fixture.h"
#include "score-test.h"

#include <stdio.h>

static ScoreShape shape_of(const char *synthetic)
{
    CLEANUP(topology_unref_p) Topology *topology = machine_new(synthetic);

    return score_machine(topology).shape;
}

static void test_shape(void **state)
{
    assert_int_equal(shape_of("numa:1 l3:1 core:4 pu:1"), SCORE_SHAPE_DIRECT);
    assert_int_equal(shape_of(TWO_SHARDS), SCORE_SHAPE_DIRECT);
    assert_int_equal(shape_of("numa:8 l3:1 core:2 pu:1"), SCORE_SHAPE_DIRECT);
    assert_int_equal(shape_of(RING), SCORE_SHAPE_GLUELESS_MESH);
    assert_int_equal(shape_of(BOARDS), SCORE_SHAPE_BACKPLANE);

    /* A row of three: over the middle. With the middle as far as the rest there is one distance more to go. */
    assert_int_equal(shape_of("numa:3 l3:1 core:2 pu:1 distances=10,15,20,15,10,15,20,15,10"),
                     SCORE_SHAPE_GLUELESS_MESH);
    assert_int_equal(shape_of("numa:3 l3:1 core:2 pu:1 distances=10,15,20,15,10,20,20,20,10"),
                     SCORE_SHAPE_BACKPLANE);
}

/* 10 / 21 of what is at 21 of 31, 6 / 12 of what is at 16 of 22. */
static void test_nearby(void **state)
{
    CLEANUP(topology_unref_p) Topology *ring = machine_new(RING);
    CLEANUP(topology_unref_p)
    Topology *row = machine_new("numa:3 l3:1 core:2 pu:1 distances=10,16,22,16,10,16,22,16,10");
    CLEANUP(topology_unref_p) Topology *boards = machine_new(BOARDS);
    CLEANUP(topology_unref_p) Topology *direct = machine_new("numa:4 l3:1 core:2 pu:1");
    ScoreMachine m;
    Faults f, g;

    TABLE(&f, 0, 21000, 5000, 0);
    TABLE(&g, 0, 1000, 500);

    m = score_machine(ring);
    assert_int_equal(score_nearby(&m, &f, (NodeIx){0}, 31), 10000); /* the opposite node does not count */
    assert_int_equal(score_nearby(&m, &f, (NodeIx){2}, 31), 10000);
    assert_int_equal(score_weight(&m, &f, (NodeIx){2}, 31), 1000 * 15000 / 26000);
    assert_int_equal(score_nearby(&m, &f, (NodeIx){3}, 31), 5000 * 10 / 21);

    m = score_machine(row);
    assert_int_equal(score_nearby(&m, &g, (NodeIx){0}, 22), 500);
    assert_int_equal(score_weight(&m, &g, (NodeIx){0}, 22), 333);
    assert_int_equal(score_weight(&m, &g, (NodeIx){1}, 22), 833);

    /* Whole, and only when nearer than the limit. */
    m = score_machine(boards);
    assert_int_equal(score_nearby(&m, &f, (NodeIx){0}, 22), 21000);
    assert_int_equal(score_nearby(&m, &f, (NodeIx){0}, 255), 21000); /* the furthest never */
    assert_int_equal(score_nearby(&m, &f, (NodeIx){0}, 16), 0);
    assert_int_equal(score_nearby(&m, &f, (NodeIx){3}, 22), 5000);

    m = score_machine(direct);
    assert_int_equal(score_nearby(&m, &f, (NodeIx){0}, 20), 0);
    assert_int_equal(score_weight(&m, &f, (NodeIx){1}, 20), 1000 * 21000 / 26000);

    faults_done(&f);
    TABLE(&f, 0, 0, 0, 0);
    assert_int_equal(score_weight(&m, &f, (NodeIx){1}, 20), 0);
    faults_done(&f);
    faults_done(&g);
}

/* S-PREF: the first sequence decides when it is 70 to 30, and nothing changes at 50 to 50, on whichever node. */
static void test_s_pref(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = machine_new(TWO_SHARDS);
    ScoreMachine m = score_machine(topology);

    for (int32_t home = 0; home < 2; home++) {
        NodeIx here = {home}, there = {1 - home};
        Faults f;

        assert_int_equal(faults_init(&f, 2), 0);
        assert_int_equal(score_preferred(&m, &f, NULL, here).i, home); /* nothing seen */
        faults_accessed(&f, here, FAULTS_KIND_SHARED, 500);
        faults_accessed(&f, there, FAULTS_KIND_SHARED, 500);
        faults_fold(&f, 1000000, NULL);
        assert_int_equal(score_preferred(&m, &f, NULL, here).i, home);
        faults_done(&f);

        assert_int_equal(faults_init(&f, 2), 0);
        faults_accessed(&f, here, FAULTS_KIND_SHARED, 300);
        faults_accessed(&f, there, FAULTS_KIND_SHARED, 700);
        faults_fold(&f, 1000000, NULL);
        assert_int_equal(score_preferred(&m, &f, NULL, here).i, 1 - home);
        faults_done(&f);
    }
}

static void test_group_first(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = machine_new(TWO_SHARDS);
    ScoreMachine m = score_machine(topology);
    Faults task, group;

    TABLE(&task, 900, 100);
    TABLE(&group, 900, 5000);
    assert_int_equal(score_preferred(&m, &task, NULL, NODE_NONE).i, 0);
    assert_int_equal(score_preferred(&m, &task, &group, NODE_NONE).i, 1);
    faults_done(&task);
    faults_done(&group);
}

static void test_preferred(void **state)
{
    CLEANUP(topology_unref_p) Topology *ring = machine_new(RING);
    CLEANUP(topology_unref_p) Topology *boards = machine_new(BOARDS);
    ScoreMachine mesh = score_machine(ring), backplane = score_machine(boards);
    Faults f;

    /* Most is on node 0, but more is on and near node 2. A task without a group goes by the plain numbers. */
    TABLE(&f, 400, 300, 0, 300);
    assert_int_equal(score_preferred(&mesh, &f, &f, NODE_NONE).i, 0); /* 400 + 142 + 142 */
    faults_done(&f);
    TABLE(&f, 400, 0, 300, 300);
    assert_int_equal(score_preferred(&mesh, &f, NULL, NODE_NONE).i, 0);
    assert_int_equal(score_preferred(&mesh, &f, &f, NODE_NONE).i, 3); /* 300 + 190 + 142; 0: 542; 2: 442 */
    faults_done(&f);

    /* The board with most, then the node with most on it. */
    TABLE(&f, 400, 0, 250, 300);
    assert_int_equal(score_preferred(&backplane, &f, NULL, NODE_NONE).i, 0);
    assert_int_equal(score_preferred(&backplane, &f, &f, NODE_NONE).i, 3);
    faults_done(&f);

    /* A tie of boards and nodes: it stays. */
    TABLE(&f, 10, 10, 10, 10);
    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(score_preferred(&backplane, &f, &f, (NodeIx){i}).i, i);
        assert_int_equal(score_preferred(&mesh, &f, &f, (NodeIx){i}).i, i);
    }
    assert_int_equal(score_preferred(&backplane, &f, &f, NODE_NONE).i, 0);
    faults_done(&f);

    TABLE(&f, 0, 0, 0, 0);
    assert_int_equal(score_preferred(&mesh, &f, &f, (NodeIx){2}).i, 2);
    assert_int_equal(score_preferred(&backplane, &f, &f, (NodeIx){2}).i, 2);
    assert_int_equal(score_preferred(&backplane, &f, &f, NODE_NONE).i, -1);
    faults_done(&f);
}

/* Takes the CPUs from a node. The topology is not shared with anybody. */
static void make_memory_only(Topology *topology, uint32_t node)
{
    hwloc_bitmap_zero(topology->nodes[node].cpus);
    topology->nodes[node].n_cpus = 0;
}

static void test_memory_only(void **state)
{
    CLEANUP(topology_unref_p)
    Topology *topology = machine_new("numa:3 l3:1 core:2 pu:1 distances=10,20,40,20,10,30,40,30,10");
    ScoreMachine m;
    Faults f;

    /* Without CPUs on node 2 only one distance is left between those that can run something. */
    assert_int_equal(score_machine(topology).shape, SCORE_SHAPE_GLUELESS_MESH);
    make_memory_only(topology, 2);
    m = score_machine(topology);
    assert_int_equal(m.shape, SCORE_SHAPE_DIRECT);
    assert_int_equal(m.max_distance, 20);

    TABLE(&f, 1, 1, 1000);
    assert_int_equal(score_preferred(&m, &f, NULL, (NodeIx){0}).i, 1); /* 30 is nearer than 40 */
    assert_int_equal(score_preferred(&m, &f, &f, (NodeIx){0}).i, 1);
    faults_done(&f);
}

#define NODES 6U

/* A random machine without CPUs on some nodes, and the same with its nodes in another order: to[i] is what node i of
 * the first is in the second. */
static void random_machines(uint64_t *random, Topology *first, Topology *second, uint32_t to[NODES])
{
    for (uint32_t i = 0; i < NODES; i++)
        to[i] = i;
    for (uint32_t i = NODES - 1; i > 0; i--) {
        uint32_t k = fixture_random(random, i + 1), swap = to[i];

        to[i] = to[k];
        to[k] = swap;
    }
    for (uint32_t i = 0; i < NODES; i++) {
        uint32_t n_cpus = fixture_random(random, 6) > 0;

        first->nodes[i].n_cpus = second->nodes[to[i]].n_cpus = n_cpus;
        for (uint32_t k = 0; k <= i; k++) {
            uint32_t d = i == k ? 10 : 11 + 7 * fixture_random(random, 4);

            first->distances[i * NODES + k] = first->distances[k * NODES + i] = d;
            second->distances[to[i] * NODES + to[k]] = second->distances[to[k] * NODES + to[i]] = d;
        }
    }
}

static void check_renamed(const ScoreMachine *a, const ScoreMachine *b, const uint32_t to[NODES],
                          const Faults *fa, const Faults *fb)
{
    assert_int_equal(a->shape, b->shape);
    assert_int_equal(a->max_distance, b->max_distance);
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t limit = 10; limit <= 40; limit += 5)
            assert_int_equal(score_weight(a, fa, (NodeIx){(int32_t)i}, limit),
                             score_weight(b, fb, (NodeIx){(int32_t)to[i]}, limit));
    for (int32_t current = -1; current < (int32_t)NODES; current++) {
        NodeIx ca = {current}, cb = {current < 0 ? -1 : (int32_t)to[current]};
        NodeIx alone = score_preferred(a, fa, NULL, ca), grouped = score_preferred(a, fa, fa, ca);

        assert_int_equal(score_preferred(b, fb, NULL, cb).i, alone.i < 0 ? -1 : (int32_t)to[alone.i]);
        assert_int_equal(score_preferred(b, fb, fb, cb).i, grouped.i < 0 ? -1 : (int32_t)to[grouped.i]);
        if (current < 0 && grouped.i >= 0)
            assert_true(a->topology->nodes[grouped.i].n_cpus > 0 && a->topology->nodes[alone.i].n_cpus > 0);
    }
}

/* I12: other numbers for the nodes, the same scores. No two nodes have the same number of accesses. */
static void test_renaming(void **state)
{
    CLEANUP(topology_unref_p) Topology *first = machine_new("numa:6 l3:1 core:1 pu:1");
    CLEANUP(topology_unref_p) Topology *second = machine_new("numa:6 l3:1 core:1 pu:1");
    unsigned shapes[SCORE_SHAPE_MAX] = {0};
    uint64_t random = 99;
    uint32_t to[NODES];

    for (unsigned round = 0; round < 2000; round++) {
        uint64_t memory[NODES], renamed[NODES];
        ScoreMachine a, b;
        Faults fa, fb;

        random_machines(&random, first, second, to);
        for (uint32_t i = 0; i < NODES; i++)
            memory[i] = 1ULL << (3 * i + fixture_random(&random, 3));
        for (uint32_t i = 0; i < NODES; i++)
            renamed[to[i]] = memory[i];
        table_init(&fa, NODES, memory);
        table_init(&fb, NODES, renamed);
        a = score_machine(first);
        b = score_machine(second);
        shapes[a.shape]++;
        check_renamed(&a, &b, to, &fa, &fb);
        faults_done(&fa);
        faults_done(&fb);
    }
    assert_true(shapes[SCORE_SHAPE_GLUELESS_MESH] > 50 && shapes[SCORE_SHAPE_BACKPLANE] > 50);
}

/* On boards, where nearness is transitive, the descent finds the heaviest board and on it the heaviest node, however
 * the nodes are numbered. */
static void test_boards_renamed(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = machine_new("numa:6 l3:1 core:1 pu:1");
    uint64_t random = 5;

    for (unsigned round = 0; round < 500; round++) {
        uint32_t board[NODES], best = 0;
        uint64_t memory[NODES], sum[3] = {0};
        Faults f;
        ScoreMachine m;

        for (uint32_t i = 0; i < NODES; i++) {
            board[i] = i < 3 ? i : fixture_random(&random, 3); /* no board is empty */
            memory[i] = 1ULL << (3 * fixture_random(&random, 5) + i % 3);
            memory[i] = memory[i] * 16 + i; /* no ties */
            sum[board[i]] += memory[i];
        }
        if (sum[0] == sum[1] || sum[1] == sum[2] || sum[0] == sum[2])
            continue;
        for (uint32_t i = 0; i < NODES; i++)
            for (uint32_t k = 0; k < NODES; k++)
                topology->distances[i * NODES + k] = i == k ? 10 : board[i] == board[k] ? 16 : 22;
        for (uint32_t i = 1; i < NODES; i++)
            if (sum[board[i]] > sum[board[best]] || (board[i] == board[best] && memory[i] > memory[best]))
                best = i;
        table_init(&f, NODES, memory);
        m = score_machine(topology);
        assert_int_equal(m.shape, SCORE_SHAPE_BACKPLANE);
        assert_int_equal(score_preferred(&m, &f, &f, NODE_NONE).i, best);
        faults_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape),     cmocka_unit_test(test_nearby),
        cmocka_unit_test(test_s_pref),    cmocka_unit_test(test_group_first),
        cmocka_unit_test(test_preferred), cmocka_unit_test(test_memory_only),
        cmocka_unit_test(test_renaming),  cmocka_unit_test(test_boards_renamed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
