/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P16: strength of convergence, freezing, windows (S-FEED). */

#include "fixture.h"
#include "plan/scan/converge.h"

#define MEGABYTE (UINT64_C(1) << 20)

static uint32_t strength_of(uint64_t a, uint64_t b, uint64_t c, uint64_t d, int32_t expected_node)
{
    const uint64_t amounts[] = {a, b, c, d};
    NodeIx node;
    uint32_t strength = converge_share(amounts, ARRAY_SIZE(amounts), &node);

    assert_int_equal(node.i, expected_node);
    return strength;
}

static void test_strength(void **state)
{
    assert_int_equal(strength_of(0, 0, 0, 0, -1), 0);
    assert_int_equal(strength_of(5, 5, 5, 5, 0), 256);
    assert_int_equal(strength_of(0, 5, 5, 0, 1), 512);
    assert_int_equal(strength_of(0, 1, 0, 3, 3), 768);
    assert_int_equal(strength_of(90, 10, 0, 0, 0), 921);
    assert_int_equal(strength_of(0, 0, 7, 0, 2), 1024);
}

/* Runs one sequence of a thread with these accesses to each node. Returns the strength of all threads. */
static uint32_t sequence(Touches *t, pid_t tid, const uint64_t accesses[4])
{
    Faults *f = &touches_thread(t, tid)->faults;
    NodeIx node;

    for (int32_t i = 0; i < 4; i++)
        faults_accessed(f, (NodeIx){i}, FAULTS_KIND_SHARED, accesses[i]);
    faults_fold(f);
    return converge_touches(t, &node);
}

/* The accesses of a process are the sum of its threads'. */
static void test_touches(void **state)
{
    const uint64_t accesses[3][4] = {{100, 0, 0, 0}, {0, 700, 0, 0}, {100, 100, 0, 0}};
    NodeIx node;
    CLEANUP(touches_done) Touches t;

    touches_init(&t, 4);
    assert_int_equal(converge_touches(&t, &node), 0);
    assert_int_equal(node.i, -1);
    for (pid_t tid = 1; tid <= 3; tid++) {
        assert_int_equal(touches_add_thread(&t, (TaskKey){.pid = 1, .tid = tid, .start_ticks = 1}), 0);
        (void)sequence(&t, tid, accesses[tid - 1]);
    }
    assert_int_equal(converge_touches(&t, &node), 800 * 1024 / 1000);
    assert_int_equal(node.i, 1);
}

static void test_windows(void **state)
{
    assert_int_equal(converge_window_bytes(512 * MEGABYTE, 256), 392 * MEGABYTE);
    assert_int_equal(converge_window_bytes(512 * MEGABYTE, 512), 272 * MEGABYTE);
    assert_int_equal(converge_window_bytes(512 * MEGABYTE, 768), 152 * MEGABYTE);
    assert_int_equal(converge_window_bytes(512 * MEGABYTE, 921), 80 * MEGABYTE);
    assert_int_equal(converge_window_bytes(512 * MEGABYTE, 1024), 32 * MEGABYTE);
    assert_int_equal(converge_window_bytes(512 * MEGABYTE, 0), 512 * MEGABYTE);

    /* Another ScanSize= scales both ends. */
    assert_int_equal(converge_window_bytes(256 * MEGABYTE, 1024), 16 * MEGABYTE);
    assert_int_equal(converge_window_bytes(256 * MEGABYTE, 512), 136 * MEGABYTE);
    assert_int_equal(converge_window_bytes(16 * MEGABYTE, 1024), 2 * MEGABYTE);
    assert_int_equal(converge_window_bytes(MEGABYTE, 1024), MEGABYTE);
    assert_int_equal(converge_window_bytes(UINT64_C(1) << 40, 0), UINT64_C(1) << 40);
}

static void test_freeze(void **state)
{
    assert_true(converge_is_frozen(false, 921));
    assert_false(converge_is_frozen(false, 920));
    assert_true(converge_is_frozen(true, 768));
    assert_false(converge_is_frozen(true, 767));

    /* A share that wavers around 0.9 freezes once. */
    for (unsigned i = 0, changes = 0, frozen = 0; i < 100; i++) {
        bool now = converge_is_frozen(frozen, i % 2 ? 940 : 900);

        changes += now != frozen;
        frozen = now;
        assert_in_range(changes, 0, 1);
    }
}

/* S-FEED: the window shrinks twelvefold from spread to together, and is back above 250 MB two sequences after
 * a new phase begins; what was frozen is thawed by then. */
static void test_s_feed(void **state)
{
    const uint64_t spread[] = {2500, 2500, 2500, 2500}, together[] = {0, 0, 10000, 0};
    uint64_t before, after;
    bool frozen = false;
    uint32_t strength = 0;
    CLEANUP(touches_done) Touches t;

    touches_init(&t, 4);
    assert_int_equal(touches_add_thread(&t, (TaskKey){.pid = 1, .tid = 1, .start_ticks = 1}), 0);
    for (unsigned i = 0; i < 10; i++)
        strength = sequence(&t, 1, spread);
    before = converge_window_bytes(512 * MEGABYTE, strength);
    for (unsigned i = 0; i < 12; i++)
        frozen = converge_is_frozen(frozen, strength = sequence(&t, 1, together));
    after = converge_window_bytes(512 * MEGABYTE, strength);
    assert_true(frozen);
    assert_int_equal(before / after, 12);

    for (unsigned i = 0; i < 2; i++)
        frozen = converge_is_frozen(frozen, strength = sequence(&t, 1, spread));
    assert_false(frozen);
    assert_true(converge_window_bytes(512 * MEGABYTE, strength) > 250 * MEGABYTE);
}

TEST_MAIN(NULL, NULL, test_strength, test_touches, test_windows, test_freeze, test_s_feed)
