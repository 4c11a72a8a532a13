/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What threads that move to one node share, and what walks that share their blocks do. All run in one thread,
 * in turns. */

#include "mover-walk-fixture.h"

#define N_PASSES 4U
#define RATE     (2 * MIB) /* a second; the burst is as much */

/*
 * The gate
 */

static void test_line(void **state)
{
    MoverPass first = {0}, second = {0};
    MoverGate gate;
    uint64_t now = 1000000;

    mover_gate_init(&gate);
    assert_int_equal(mover_gate_take(&gate, &first, RATE, BLOCK, now), 0);
    assert_int_equal(mover_gate_take(&gate, &first, RATE, BLOCK, now), 1000000);
    assert_int_equal(mover_gate_take(&gate, &second, RATE, RATE / 1000, now), 1001000);
    /* There is enough for the small one, but it is not its turn. */
    now += 500000;
    assert_int_equal(mover_gate_take(&gate, &second, RATE, RATE / 1000, now), 501000);
    now += 500000;
    assert_int_equal(mover_gate_take(&gate, &first, RATE, BLOCK, now), 0);
    assert_int_equal(mover_gate_take(&gate, &second, RATE, RATE / 1000, now), 1000);

    /* When a thread leaves the line, or gives back, the next one follows at once. */
    assert_int_equal(mover_gate_take(&gate, &first, RATE, BLOCK, now), 1001000);
    mover_gate_forgo(&gate, &second);
    mover_gate_forgo(&gate, &second);
    assert_int_equal(mover_gate_take(&gate, &first, RATE, BLOCK, now), 1000000);
    mover_gate_return(&gate, BLOCK);
    assert_int_equal(mover_gate_take(&gate, &first, RATE, BLOCK, now), 0);
    mover_gate_done(&gate);
}

/* I5: in whatever order threads come, over any time they take no more than the burst plus rate * time, and
 * they can take all of that. */
static void test_rate_of_many(void **state)
{
    MoverPass passes[N_PASSES] = {0};
    uint64_t wants[N_PASSES] = {0}, gone = 0, seed = 1, now = 1000000;
    MoverGate gate;

    mover_gate_init(&gate);
    for (unsigned i = 0; i < 100000; i++) {
        unsigned k = (unsigned)(machine_random(&seed) % N_PASSES);

        if (wants[k] == 0)
            wants[k] = 1 + machine_random(&seed) % BLOCK;
        if (mover_gate_take(&gate, &passes[k], RATE, wants[k], now) == 0) {
            gone += wants[k];
            wants[k] = 0;
        }
        assert_true(gone <= RATE + (now - 1000000) * RATE / 1000000);
        now += machine_random(&seed) % 50000;
    }
    assert_true(gone >= (now - 1000000) * RATE / 1000000 / 10 * 9);
    mover_gate_done(&gate);
}

/* The example in mover/gate.c. */
static void test_room(void **state)
{
    MoverPass passes[3] = {0};
    MoverGate gate;

    mover_gate_init(&gate);
    for (unsigned i = 0; i < 2; i++)
        mover_gate_look(&gate, &passes[i]);
    assert_int_equal(mover_gate_enter(&gate, &passes[0], 40 * MIB, 15, BLOCK), 15);
    assert_int_equal(mover_gate_enter(&gate, &passes[1], 40 * MIB, 15, BLOCK), 5);
    mover_gate_look(&gate, &passes[2]);
    assert_int_equal(mover_gate_enter(&gate, &passes[2], 20 * MIB, 15, BLOCK), 0);
    mover_gate_leave(&gate, &passes[0]);
    mover_gate_leave(&gate, &passes[0]);
    assert_int_equal(mover_gate_enter(&gate, &passes[2], 60 * MIB, 15, BLOCK), 10);
    mover_gate_leave(&gate, &passes[2]);
    mover_gate_leave(&gate, &passes[1]);
    mover_gate_look(&gate, &passes[2]);
    assert_int_equal(mover_gate_enter(&gate, &passes[2], 20 * MIB, 15, BLOCK), 10);
    mover_gate_done(&gate);
}

/*
 * Lanes
 */

typedef struct Lane {
    Walk *walk;
    WalkNode node;
    bool over;
} Lane;

static void add_account(MoverAccount *to, const MoverAccount *account)
{
    to->moved_bytes += account->moved_bytes;
    to->n_asked += account->n_asked;
    for (size_t i = 0; i < MOVER_REASON_MAX; i++)
        to->refused_bytes[i] += account->refused_bytes[i];
}

static void step(WalkFixture *f, Lane *lane)
{
    MoverOutcome outcome = MOVER_DONE;

    lane->over = !walk_step(lane->walk, &lane->node, &f->host, &outcome, &f->error);
    assert_int_equal(outcome, MOVER_DONE);
}

/* Carries out a part of the request with up to `max` lanes, which step in random order. Returns how many
 * there were. */
static uint32_t run_lanes(WalkFixture *f, uint32_t part, uint32_t n_parts, uint32_t max, uint64_t *seed,
                          MoverAccount *account)
{
    Lane lanes[8] = {0};
    uint32_t n, n_over = 0;

    assert_int_equal(walk_new(&f->order, f->accept, part, n_parts, &lanes[0].walk), 0);
    for (uint32_t i = 0; i < max; i++) {
        walk_reset_node(f);
        lanes[i].node = f->node;
        f->node = (WalkNode){0};
    }
    step(f, &lanes[0]);
    n = walk_share(lanes[0].walk, max);
    assert_in_range(n, 1, max);
    for (uint32_t i = 1; i < n; i++)
        assert_int_equal(walk_join(lanes[0].walk, &lanes[i].walk), 0);
    while (n_over < n) {
        Lane *lane = &lanes[machine_random(seed) % n];

        if (lane->over)
            continue;
        step(f, lane);
        n_over += lane->over;
    }
    for (uint32_t i = max; i-- > 0;) {
        if (i < n)
            add_account(account, walk_account(lanes[i].walk));
        walk_free(lanes[i].walk);
        walk_node_done(&lanes[i].node);
    }
    return n;
}

/* With any number of parts and lanes, each block is queried and moved once, and each mapping refused once. */
static void test_once(void **state)
{
    static const uint64_t sizes[] = {MIB / 16, 3 * MIB, 40 * MIB, 2 * MIB, 131 * MIB};
    WalkFixture *f = *state;
    MoverAccount alone = {0};
    uint64_t at = HEAP + 8192, seed = 1, n_pages = 0;

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        n_pages += machine_add(&f->machine, at, sizes[i], 0)->n_pages;
        at += sizes[i] + 5 * f->machine.page_bytes;
    }
    machine_map(&f->machine, "300000-301000 r--p 00000000 08:01 5 /usr/lib/x\n"
                             "400000-600000 rw-s 00000000 00:0f 5 /anon_hugepage (deleted)\n"
                             "rubbish\n");
    assert_int_equal(walk_run(f), MOVER_DONE);
    add_account(&alone, &f->account);
    assert_int_equal(alone.moved_bytes, n_pages * f->machine.page_bytes);
    assert_int_equal(alone.refused_bytes[MOVER_REASON_HUGETLB], BLOCK);
    for (uint32_t n_parts = 1; n_parts <= 3; n_parts++)
        for (uint32_t max = 1; max <= 8; max++) {
            MoverAccount account = {0};
            uint32_t n_lanes = 0;

            for (size_t i = 0; i < f->machine.n_areas; i++)
                memset(f->machine.areas[i].node, 0, f->machine.areas[i].n_pages);
            for (uint32_t part = 0; part < n_parts; part++)
                n_lanes += run_lanes(f, part, n_parts, max, &seed, &account);
            assert_int_equal(n_lanes, n_parts * max);
            assert_memory_equal(&account, &alone, sizeof(account));
        }
}

/* No more lanes than blocks, and one if there is no block. */
static void test_no_more_than_blocks(void **state)
{
    WalkFixture *f = *state;
    static const MoverRange ranges[] = {{HEAP, HEAP + BLOCK}, {HEAP + 4 * BLOCK, HEAP + 5 * BLOCK}};
    uint64_t seed = 1;

    (void)machine_add(&f->machine, HEAP, 16 * MIB, 0);
    f->order.ranges = ranges;
    for (unsigned n = 1; n <= 2; n++) {
        MoverAccount account = {0};

        f->order.n_ranges = n;
        memset(f->machine.areas[0].node, 0, f->machine.areas[0].n_pages);
        assert_int_equal(run_lanes(f, 0, 1, 4, &seed, &account), n);
        assert_int_equal(account.moved_bytes, n * BLOCK);
    }
    /* Both blocks belong to the other part. */
    assert_int_equal(run_lanes(f, (uint32_t)(HEAP / BLOCK + 1) % 2, 2, 4, &seed, &(MoverAccount){0}), 1);
}

/* S-RATE: the rate is per node, however many lanes move to it. */
static void test_rate_of_lanes(void **state)
{
    const uint64_t rate = 64000000;
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 256 * MIB, 0);
    uint64_t seed = 1;

    for (int huge = 0; huge < 2; huge++) {
        uint64_t began = f->machine.now_usec;
        MoverAccount account = {0};

        memset(heap->node, 0, heap->n_pages);
        heap->huge = huge;
        f->order.rate_bytes = rate;
        assert_int_equal(run_lanes(f, 0, 1, 4, &seed, &account), 4);
        assert_int_equal(account.moved_bytes, 256 * MIB);
        assert_in_range(f->machine.now_usec - began,
                        (256 * MIB - mover_bucket_burst(rate)) / (rate / 1000000),
                        256 * MIB / (rate / 1000000) + 50000);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, walk_setup, walk_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),    cmocka_unit_test(test_rate_of_many),
        cmocka_unit_test(test_room),    TEST(test_once),
        TEST(test_no_more_than_blocks), TEST(test_rate_of_lanes),
    };

    return cmocka_run_group_tests_name("act/mover-gate", tests, NULL, NULL);
}
