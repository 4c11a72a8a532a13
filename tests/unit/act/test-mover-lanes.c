/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Several threads that move to one node for one migration request. */

#include "mover-fixture.h"

/* Two lanes for each node. */
static int setup(void **state)
{
    return mover_setup(state, "numa:4 core:2 pu:1");
}

/* Four lanes for each node. */
static int setup_wide(void **state)
{
    return mover_setup(state, "numa:4 core:16 pu:1");
}

static unsigned n_settled(MoverFixture *f)
{
    unsigned n;

    (void)pthread_mutex_lock(&f->machine.lock);
    n = f->machine.n_settled;
    (void)pthread_mutex_unlock(&f->machine.lock);
    return n;
}

/* As many threads as the node has CPUs for, whose work adds up to one account. */
static void check_lanes(MoverFixture *f, unsigned n_lanes)
{
    MachineArea *heap = machine_add(&f->machine, HEAP, 128 * MIB, 0);
    MoverStatistics statistics;
    MoverResult result;

    machine_map(&f->machine, "100000-300000 r--p 00000000 08:01 5 /usr/lib/x\n");
    (void)mover_order_hanging(f, n_lanes);
    assert_int_equal(n_settled(f), n_lanes);
    mover_set_hanging(f, false);
    result = mover_await(f);
    assert_int_equal(result.outcome, MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(result.account.moved_bytes, 128 * MIB);
    /* Each block by samples, by the pages that came along with its first one, and page by page; each mapping once. */
    assert_int_equal(result.account.n_asked, (uint64_t)64 * (5 + 4) + heap->n_pages);
    assert_int_equal(result.account.refused_bytes[MOVER_REASON_FILE], 0x200000);
    assert_int_equal(n_settled(f), n_lanes);
    mover_statistics(f->mover, &statistics);
    assert_memory_equal(&statistics.account, &result.account, sizeof(statistics.account));
    assert_int_equal(statistics.n_outcome[MOVER_DONE], 1);
}

static void test_lanes(void **state)
{
    check_lanes(*state, 2);
}

static void test_lanes_wide(void **state)
{
    check_lanes(*state, MOVER_LANES_MAX);
}

/* With the CPUs of the node that memory leaves: every second thread runs there, and neither node has more
 * threads than without help. The next request, without help, uses the node's own CPUs only. */
static void check_help(MoverFixture *f, unsigned node_cpus, unsigned n_own, unsigned n_helping)
{
    MachineArea *heap = machine_add(&f->machine, HEAP, 128 * MIB, 0);
    hwloc_bitmap_t help = hwloc_bitmap_alloc();

    assert_non_null(help);
    assert_int_equal(hwloc_bitmap_set_range(help, 0, 1), 0); /* the second is the target node itself */
    f->machine.node_cpus = node_cpus;
    f->order.help_nodes = help;
    mover_set_hanging(f, true);
    (void)mover_order(f);
    hwloc_bitmap_free(help);
    f->order.help_nodes = NULL;
    mover_await_hanging(f, n_own + n_helping);
    (void)pthread_mutex_lock(&f->machine.lock);
    assert_int_equal(f->machine.n_settled_on[1], n_own);
    assert_int_equal(f->machine.n_settled_on[0], n_helping);
    assert_int_equal(f->machine.n_settled, n_own + n_helping);
    (void)pthread_mutex_unlock(&f->machine.lock);
    mover_set_hanging(f, false);
    assert_int_equal(mover_await(f).account.moved_bytes, 128 * MIB);

    memset(heap->node, 0, heap->n_pages);
    (void)mover_order(f);
    assert_int_equal(mover_await(f).account.moved_bytes, 128 * MIB);
}

static void test_help(void **state)
{
    check_help(*state, 2, 2, 2);
}

static void test_help_wide(void **state)
{
    check_help(*state, 16, MOVER_LANES_MAX / 2, MOVER_LANES_MAX / 2);
}

/* Memory goes to a node without CPUs. */
static int setup_bare(void **state)
{
    MoverFixture *f;
    int r = setup(state);

    if (r < 0)
        return r;
    f = *state;
    f->mover = mover_free(f->mover);
    hwloc_bitmap_zero(f->topology->nodes[1].cpus);
    return mover_new(&machine_ops, &f->machine, -1, f->topology, &f->mover);
}

static unsigned n_settled_on(MoverFixture *f, int node)
{
    unsigned n;

    (void)pthread_mutex_lock(&f->machine.lock);
    n = f->machine.n_settled_on[node];
    (void)pthread_mutex_unlock(&f->machine.lock);
    return n;
}

/* A thread that helped on CPUs of another node leaves them for what comes next without help. Two threads take turns, so
 * the one that helped gets some of it. */
static void test_help_bare(void **state)
{
    MoverFixture *f = *state;
    hwloc_bitmap_t help = hwloc_bitmap_alloc();

    (void)machine_add(&f->machine, HEAP, 128 * MIB, 0);
    assert_non_null(help);
    assert_int_equal(hwloc_bitmap_only(help, 2), 0);
    f->machine.node_cpus = 2;
    f->order.help_nodes = help;
    (void)mover_order_hanging(f, 2);
    assert_int_equal(n_settled_on(f, 2), 1);
    assert_int_equal(n_settled(f), 1); /* the other has the mask of the daemon */
    mover_set_hanging(f, false);
    (void)mover_await(f);
    hwloc_bitmap_free(help);
    f->order.help_nodes = NULL;

    /* The first CPU of all is one of node 0. */
    for (unsigned i = 0; i < 1000 && n_settled_on(f, 0) == 0; i++) {
        (void)mover_order(f);
        (void)mover_await(f);
    }
    assert_true(n_settled_on(f, 0) > 0);
}

/* At most one thread for each block. */
static void test_few_blocks(void **state)
{
    MoverFixture *f = *state;
    static const MoverRange ranges[] = {{HEAP, HEAP + 1},
                                        {HEAP + 8 * BLOCK, HEAP + 8 * BLOCK + 1},
                                        {HEAP + 16 * BLOCK, HEAP + 16 * BLOCK + 1}};

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    f->order.ranges = ranges;
    for (unsigned n = 1; n <= ARRAY_SIZE(ranges); n++) {
        f->order.n_ranges = n;
        memset(f->machine.areas[0].node, 0, f->machine.areas[0].n_pages);
        (void)mover_order_hanging(f, n);
        assert_int_equal(n_settled(f), n);
        mover_set_hanging(f, false);
        assert_int_equal(mover_await(f).account.moved_bytes, n * f->machine.page_bytes);
    }
}

/* A small process is moved as a whole, by one thread. */
static void test_small_process(void **state)
{
    MoverFixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 16 * MIB, 0);
    f->machine.rss_pages = 10;
    (void)mover_order(f);
    assert_int_equal(mover_await(f).outcome, MOVER_DONE);
    assert_int_equal(n_settled(f), 1);
}

/* With any number of threads, a block goes to the node that its address determines. */
static void test_nodes(void **state)
{
    MoverFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP + 8192, 257 * MIB, 0);
    MoverResult result;

    assert_int_equal(hwloc_bitmap_set_range(f->to, 1, 3), 0);
    for (unsigned stripe = 0; stripe < 2; stripe++) {
        memset(heap->node, stripe ? 2 : 0, heap->n_pages);
        f->order.stripe = stripe;
        (void)mover_order(f);
        result = mover_await(f);
        assert_int_equal(result.outcome, MOVER_DONE);
        assert_int_equal(result.account.moved_bytes,
                         (heap->n_pages - (stripe ? machine_count(&f->machine, heap, 2) : 0)) *
                             f->machine.page_bytes);
        for (size_t i = 0; i < heap->n_pages; i++)
            assert_int_equal(heap->node[i], 1 + (heap->start + i * f->machine.page_bytes) / BLOCK % 3);
    }
}

/* If memory alternates between two nodes, the blocks that are elsewhere are shared out, too. */
static void test_interleaved(void **state)
{
    MoverFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 256 * MIB, 0);
    size_t per_block = (size_t)(BLOCK / f->machine.page_bytes);

    for (size_t i = 0; i < heap->n_pages; i += 2 * per_block)
        memset(heap->node + i, 1, per_block);
    (void)mover_order_hanging(f, MOVER_LANES_MAX);
    mover_set_hanging(f, false);
    assert_int_equal(mover_await(f).account.moved_bytes, 128 * MIB);
}

/* Memory in flight counts as arrived: no thread moves into the headroom because another has not filled the
 * room yet. */
static void test_headroom(void **state)
{
    MoverFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);
    /* Above the watermark: room for one block and a half. */
    const uint64_t room = BLOCK + BLOCK / 2;
    MoverResult result;

    f->machine.free_bytes[1] = 64 * MIB + room;
    heap->huge = true;
    (void)mover_order_hanging(f, 1);
    assert_false(mover_readable(f));
    mover_set_hanging(f, false);
    result = mover_await(f);
    assert_int_equal(result.outcome, MOVER_NO_ROOM);
    assert_int_equal(result.account.moved_bytes, BLOCK);
    assert_int_equal(f->machine.free_bytes[1], 64 * MIB + BLOCK / 2);
}

static void test_cancel(void **state)
{
    MoverFixture *f = *state;
    MoverResult result;
    uint64_t id;

    (void)machine_add(&f->machine, HEAP, 256 * MIB, 0);
    id = mover_order_hanging(f, MOVER_LANES_MAX);
    assert_int_equal(mover_cancel(f->mover, id), 0);
    assert_false(mover_readable(f));
    mover_set_hanging(f, false);
    result = mover_await(f);
    assert_int_equal(result.outcome, MOVER_CANCELLED);
    assert_int_equal(result.account.n_calls, MOVER_LANES_MAX);
    assert_int_equal(result.account.moved_bytes, f->machine.moved_bytes);
    assert_false(mover_readable(f));
}

/* A small request does not wait for the lanes of a large one to end. */
static void test_turns(void **state)
{
    mover_try_turns(*state, 2);
}

static void test_hanging(void **state)
{
    mover_try_hanging(*state, MOVER_LANES_MAX);
}

static void test_end_while_hanging(void **state)
{
    MoverFixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 256 * MIB, 0);
    mover_set_hanging(f, true);
    (void)mover_order(f);
    (void)mover_order(f);
    mover_await_hanging(f, MOVER_LANES_MAX);
    f->mover = mover_free(f->mover);
    mover_set_hanging(f, false);
    mover_await_no_threads(f);
    assert_int_equal(f->machine.n_moves, MOVER_LANES_MAX);
}

/* Calls everything that may be called while threads move. */
static void look_on(MoverFixture *f, uint64_t id)
{
    MoverStatistics statistics;
    MoverAccount account;

    (void)mover_look(f->mover, id, &account);
    mover_statistics(f->mover, &statistics);
    mover_set_rate(f->mover, 0);
    mover_tend(f->mover, 0);
}

/* Many requests at once, some of them cancelled. */
static void test_many(void **state)
{
    MoverFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);
    uint64_t ids[64];
    MoverStatistics statistics;
    size_t n_pages = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(ids); i++) {
        assert_int_equal(hwloc_bitmap_only(f->to, i % 4), 0);
        if (i % 3 == 0)
            assert_int_equal(hwloc_bitmap_set(f->to, (i + 1) % 4), 0);
        f->order.stripe = i % 2;
        ids[i] = mover_order(f);
        if (i % 5 == 4)
            (void)mover_cancel(f->mover, ids[i - 2]);
        look_on(f, ids[i / 2]);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(ids); i++)
        (void)mover_await(f);
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.n_orders, 0);
    assert_int_equal(statistics.n_outcome[MOVER_CANCELLED] + statistics.n_outcome[MOVER_DONE],
                     ARRAY_SIZE(ids));
    for (int node = 0; node < 4; node++)
        n_pages += machine_count(&f->machine, heap, node);
    assert_int_equal(n_pages, heap->n_pages);
}

int main(void)
{
#define TEST(name, set) cmocka_unit_test_setup_teardown(name, set, mover_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_lanes, setup),
        TEST(test_lanes_wide, setup_wide),
        TEST(test_help, setup),
        TEST(test_help_wide, setup_wide),
        TEST(test_help_bare, setup_bare),
        TEST(test_few_blocks, setup_wide),
        TEST(test_small_process, setup_wide),
        TEST(test_nodes, setup_wide),
        TEST(test_interleaved, setup_wide),
        TEST(test_headroom, setup_wide),
        TEST(test_cancel, setup_wide),
        TEST(test_turns, setup),
        TEST(test_hanging, setup_wide),
        TEST(test_end_while_hanging, setup_wide),
        TEST(test_many, setup_wide),
    };

    return cmocka_run_group_tests_name("act/mover-lanes", tests, NULL, NULL);
}
