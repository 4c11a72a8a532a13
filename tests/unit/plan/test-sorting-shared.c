/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory that many threads of one process share, and which of it is striped (P17). */

#include "sorting-test.h"

/* P17: memory used from both nodes is striped over them if it is most of the process; otherwise it stays. */
static void test_striped(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = i < 2 ? -1 : ON_0;
    rounds(&b, 6);
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    for (uint32_t i = 2; i < 8; i++)
        b.user[i] = -1;
    rounds(&b, 12);
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    assert_true(b.f.plan.actions[0].memory.stripe);
    assert_int_equal(b.f.plan.actions[0].mechanism, 17);
    assert_int_equal(use.bytes, 4 * BLOCK);
    carry_out(&b, &use);
    round_(&b);
    b.f.world->now_usec += 3600 * SEC;
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    done(&b);
}

/* Threads that share everything have no node of their own, and use the memory from any node of their home. */
static void test_striped_for_free_threads(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    set_free(&b);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = ON_0; /* private, wherever the thread runs */
    rounds(&b, 12);
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = -1;
    rounds(&b, 12);
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    assert_int_equal(use.bytes, 4 * BLOCK);
    done(&b);
}

/* P17: memory shared by free threads is not striped while all of them run on one node, nor because one was
 * elsewhere for a moment. */
static void test_not_striped_on_one(void **state)
{
    PlanUse use;
    Bench b;

    setup_shared(&b);
    b.runs_on[1] = 0;
    told_rounds(&b, 12);
    assert_int_equal(n_judged(&b), 0);
    for (unsigned i = 0; i < 4; i++) {
        b.runs_on[1] = i < 3;
        told_rounds(&b, 1);
        assert_int_equal(n_judged(&b), 0);
    }
    b.runs_on[1] = 1;
    for (unsigned i = 0; i < 3; i++) {
        told_rounds(&b, 1);
        assert_int_equal(n_judged(&b), 0);
    }
    told_rounds(&b, 1);
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    carry_out(&b, &use);
    for (uint32_t i = 0; i < 8; i++)
        b.where[i].i = 0; /* as if it had not moved */
    b.f.world->now_usec += 3600 * SEC;
    b.runs_on[1] = 0;
    told_rounds(&b, 1);
    assert_int_equal(n_judged(&b), 0);
    b.f.world->ablated = 1ULL << ABLATION_STAYS;
    assert_int_not_equal(n_judged(&b), 0);
    done(&b);
}

/* P14: buddies will get a node together, and before they have it their memory is not striped. It is if
 * threads get no nodes of their own, or have got none for long. */
static void test_not_striped_for_buddies(void **state)
{
    enum {
        BUDDIES,
        SWITCHED_OFF,
        FIXED,
        FOR_LONG,
        CASES
    };

    for (unsigned i = 0; i < CASES; i++) {
        const uint64_t pages[2] = {1024, 0};
        PlanUse use;
        Bench b;

        setup_shared(&b);
        b.policy->mode = i == FIXED ? POLICY_MODE_FIXED : POLICY_MODE_AUTO;
        b.f.world->ablated = i == SWITCHED_OFF ? 1ULL << ABLATION_BUDDIES : 0;
        assert_int_equal(world_set_task_use(b.f.world, fixture_find(&b.f, PID, ON_1), pages, 100,
                                            world_task_key(b.f.world, fixture_find(&b.f, PID, ON_0)), 1),
                         0);
        rounds(&b, i == FOR_LONG ? 40 : 12);
        judge(&b);
        assert_int_equal(order(&b, &use), i != BUDDIES);
        done(&b);
    }
}

/* Two pairs share eight blocks each, on different nodes: striped over both nodes their memory would be no
 * nearer. If all of it is on one node, or shared by more threads, it is striped. */
static void test_not_striped_for_few(void **state)
{
    for (unsigned c = 0; c < 3; c++) {
        bool one_node = c == 1, third = c == 2;
        PlanUse use;
        Bench b;

        setup_shared(&b);
        add_thread(&b, ON_1 + 1);
        add_thread(&b, ON_1 + 2);
        for (uint32_t i = 8; i < 16; i++)
            b.where[i].i = one_node ? 0 : 1;
        for (unsigned r = 0; r < 12; r++) {
            for (uint32_t i = 8; i < 16; i++)
                touch(&b, i, (r + i) % 2 ? ON_1 + 1 : third ? ON_0 : ON_1 + 2);
            round_(&b);
        }
        judge(&b);
        assert_int_equal(order(&b, &use), one_node || third);
        done(&b);
    }
}

/* Of three nodes one pair lives on two, another pair on one. Four blocks of the first pair lie on the third. */
static void setup_few(Bench *b)
{
    setup_on(b, "numa:3 l3:1 core:2 pu:1", 3);
    for (uint32_t i = 0; i < 8; i++) {
        b->user[i] = -1;
        b->where[i].i = i < 4 ? 2 : (int32_t)i % 2;
    }
    add_thread(b, ON_1 + 1);
    add_thread(b, ON_1 + 2);
    fixture_find(&b->f, PID, ON_1 + 1)->home_node.i = fixture_find(&b->f, PID, ON_1 + 2)->home_node.i = 2;
    for (uint32_t i = 8; i < 16; i++)
        b->where[i].i = 2;
    for (unsigned r = 0; r < 12; r++) {
        for (uint32_t i = 8; i < 16; i++)
            touch(b, i, (r + i) % 2 ? ON_1 + 1 : ON_1 + 2);
        round_(b);
    }
}

/* Memory of the first pair goes to its two nodes, or stays on either; nothing is striped over all three. */
static void test_few_on_two_nodes(void **state)
{
    PlanUse use;
    Bench b;

    setup_few(&b);
    judge(&b);
    assert_true(order(&b, &use));
    assert_false(use.stripe);
    assert_int_equal(use.bytes, 4 * BLOCK);
    assert_int_equal(hwloc_bitmap_weight(use.to), 2);
    assert_false(hwloc_bitmap_isset(use.to, 2));
    carry_out(&b, &use);
    round_(&b);
    b.f.world->now_usec += 3600 * SEC;
    judge(&b);
    assert_false(order(&b, &use));
    done(&b);
}

/* Threads that share everything may look like buddies for a round. That does not stop what was begun. */
static void test_striped_past_a_round(void **state)
{
    PlanUse use;
    Bench b;

    setup_shared(&b);
    b.user[7] = ON_0;
    rounds(&b, 12);
    judge(&b);
    assert_true(order(&b, &use));
    assert_int_equal(use.bytes, 3 * BLOCK); /* blocks 1, 3, 5 */
    carry_out(&b, &use);

    b.user[7] = -1;
    rounds(&b, 4);
    b.f.world->now_usec += 3600 * SEC;
    b.policy->mode = POLICY_MODE_AUTO;
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    b.policy->mode = POLICY_MODE_FIXED;
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    assert_int_equal(use.bytes, BLOCK);
    done(&b);
}

/* Most of ten blocks are shared: blocks where only one thread was seen stay, however often it was seen, because they
 * may be private to it. A shared block found later moves, too, although it is less than a quarter. */
static void test_striped_with_the_others(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    set_free(&b);
    b.user[9] = ON_0;
    rounds(&b, 10);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = i < 6 ? -1 : ON_1;
    rounds(&b, 4);
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    assert_int_equal(use.bytes, 3 * BLOCK); /* blocks 1, 3, 5 */
    carry_out(&b, &use);

    b.user[7] = -1;
    rounds(&b, 4);
    b.f.world->now_usec += 3600 * SEC;
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    assert_int_equal(use.bytes, BLOCK);
    done(&b);
}

/* Memory that all use is known first. It is not most of the memory while there is more of which little is known. */
static void test_not_striped_too_soon(void **state)
{
    PlanUse use;
    Bench b;

    setup_shared(&b);
    rounds(&b, 12);
    for (uint32_t i = 8; i < 16; i++)
        b.user[i] = i % 2 ? ON_0 : ON_1;
    rounds(&b, 2);
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    b.user[8] = -1;
    rounds(&b, 8);
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    done(&b);
}

/* Memory shared by two threads counts for each of them: six blocks beside ten private ones of one thread are
 * most of what they use, two beside eight are not. */
static void test_striped_beside_what_is_alone(void **state)
{
    static const struct {
        uint32_t n_shared, n;
        bool stripes;
    } cases[] = {{6, 16, true}, {2, 10, false}};

    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        PlanUse use;
        Bench b;

        setup(&b);
        for (uint32_t i = 0; i < cases[k].n; i++) {
            b.user[i] = i < cases[k].n_shared ? -1 : i % 2 ? ON_1 : ON_0;
            b.where[i].i = b.user[i] == ON_1;
        }
        rounds(&b, 12);
        judge(&b);
        assert_int_equal(order(&b, &use) && use.stripe, cases[k].stripes);
        done(&b);
    }
}

/* A block that is to be striped and does not move is left alone after three attempts. */
static void test_striped_in_vain(void **state)
{
    unsigned n_orders = 0;
    PlanUse use;
    Bench b;

    setup_shared(&b);
    rounds(&b, 8);
    for (unsigned i = 0; i < 6; i++) {
        round_(&b);
        judge(&b);
        if (order(&b, &use)) {
            assert_int_equal(use.bytes, 4 * BLOCK);
            carry_out(&b, &use);
            for (uint32_t k = 0; k < 8; k++)
                b.where[k].i = 0;
            n_orders++;
        }
        b.f.world->now_usec += b.policy->min_residency_usec + SEC;
    }
    assert_int_equal(n_orders, 3);
    done(&b);
}

static uint32_t tries_of(Bench *b, uint64_t start)
{
    Tries *tries = &b->sorting.blocks.tries;
    uint32_t n;

    tries_begin(tries);
    assert_int_equal(tries_ask(tries, start, &n), 0);
    assert_int_equal(tries_keep(tries, start, n), 0);
    assert_int_equal(tries_end(tries), 0);
    return n;
}

/* What was tried before, when one thread used it, is not taken back with a request for memory that few share, which
 * counts no attempts. */
static void test_few_refused(void **state)
{
    PlanUse use;
    Bench b;

    setup_few(&b);
    tries_begin(&b.sorting.blocks.tries);
    assert_int_equal(tries_keep(&b.sorting.blocks.tries, HEAP, 2), 0);
    assert_int_equal(tries_end(&b.sorting.blocks.tries), 0);
    judge(&b);
    assert_true(order(&b, &use));
    assert_int_equal(use.ranges[0].start, HEAP);
    sorting_refused(&b.sorting);
    assert_int_equal(tries_of(&b, HEAP), 2);
    done(&b);
}

TEST_MAIN(NULL, NULL, test_striped, test_striped_for_free_threads, test_not_striped_on_one,
          test_not_striped_for_buddies, test_not_striped_for_few, test_few_on_two_nodes, test_few_refused,
          test_striped_past_a_round, test_striped_with_the_others, test_not_striped_too_soon,
          test_striped_beside_what_is_alone, test_striped_in_vain)
