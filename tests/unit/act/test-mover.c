/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Migration requests and threads, one thread for each node; test-mover-lanes.c has more. */

#include "mover-fixture.h"

#include "base/time.h"

#include <sys/resource.h>

static int setup(void **state)
{
    struct rlimit files;

    /* Each request takes a descriptor, and the daemon raises its limit to the hard one. */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    return mover_setup(state, "numa:4 core:1 pu:1");
}

static void test_order(void **state)
{
    MoverFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);
    MoverStatistics statistics;
    MoverAccount account;
    MoverResult result;
    uint64_t id;

    assert_false(mover_readable(f));
    assert_int_equal(mover_collect(f->mover, &result), 0);
    f->order.nice = 7;
    id = mover_order(f);
    result = mover_await(f);
    assert_int_equal(result.id, id);
    assert_int_equal(result.pid, MACHINE_PID);
    assert_int_equal(result.start_ticks, MACHINE_START);
    assert_int_equal(result.outcome, MOVER_DONE);
    assert_int_equal(result.account.moved_bytes, 64 * MIB);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(f->machine.nice, 7);
    assert_int_equal(f->machine.n_settled, 1);

    assert_false(mover_readable(f));
    assert_int_equal(mover_collect(f->mover, &result), 0);
    assert_int_equal(mover_look(f->mover, id, &account), -ESRCH);
    assert_int_equal(mover_cancel(f->mover, id), -ESRCH);
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.account.moved_bytes, 64 * MIB);
    assert_int_equal(statistics.n_outcome[MOVER_DONE], 1);
    assert_int_equal(statistics.n_orders, 0);
    assert_int_equal(statistics.n_unsettled, 0);
}

/* Several nodes: a thread for each, one result. */
static void test_several_nodes(void **state)
{
    MoverFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);
    MoverResult result;

    assert_int_equal(hwloc_bitmap_set_range(f->to, 1, 3), 0);
    (void)mover_order(f);
    result = mover_await(f);
    assert_int_equal(result.outcome, MOVER_DONE);
    assert_int_equal(result.account.moved_bytes, 64 * MIB);
    assert_int_equal(machine_count(&f->machine, heap, 0), 0);
    for (int node = 1; node <= 3; node++)
        assert_in_range(machine_count(&f->machine, heap, node), heap->n_pages / 32 * 10,
                        heap->n_pages / 32 * 11);
    assert_int_equal(f->machine.n_settled, 3);

    /* Memory on either of two target nodes stays; but not if it is to be striped over them. */
    assert_int_equal(hwloc_bitmap_clr(f->to, 3), 0);
    memset(heap->node, 1, heap->n_pages);
    (void)mover_order(f);
    assert_int_equal(mover_await(f).account.moved_bytes, 0);
    f->order.stripe = true;
    (void)mover_order(f);
    assert_int_equal(mover_await(f).account.moved_bytes, 32 * MIB);
    assert_int_equal(machine_count(&f->machine, heap, 2), heap->n_pages / 2);
}

/* Of several nodes the worst outcome counts, and what was done before it is reported. */
static void test_one_node_full(void **state)
{
    MoverFixture *f = *state;
    MoverResult result;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    assert_int_equal(hwloc_bitmap_set_range(f->to, 1, 2), 0);
    f->machine.free_bytes[2] = 0;
    (void)mover_order(f);
    result = mover_await(f);
    assert_int_equal(result.outcome, MOVER_NO_ROOM);
    assert_int_equal(result.account.moved_bytes, 32 * MIB);
    assert_true(result.account.refused_bytes[MOVER_REASON_HEADROOM] > 0);
}

static void test_bad_orders(void **state)
{
    static const MoverRange swapped[] = {{2, 3}, {1, 2}}, overlapping[] = {{1, 3}, {2, 4}},
                            empty[] = {{3, 3}}, nowhere[] = {{3, 4, {-1}}};
    const MoverRange *const ranges[] = {swapped, overlapping, empty, nowhere};
    MoverFixture *f = *state;
    uint64_t id = 77;
    MoverOrder order;

    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
        order = f->order;
        order.ranges = ranges[i];
        order.n_ranges = i < 2 ? 2 : 1;
        order.sent = i == 3;
        assert_int_equal(mover_submit(f->mover, &order, &id), -EINVAL);
    }
    order = f->order;
    order.sent = true;
    assert_int_equal(mover_submit(f->mover, &order, &id), -EINVAL);
    order = f->order;
    order.n_ranges = MOVER_RANGES_MAX + 1;
    assert_int_equal(mover_submit(f->mover, &order, &id), -E2BIG);
    order = f->order;
    order.pid = 0;
    assert_int_equal(mover_submit(f->mover, &order, &id), -EINVAL);
    order = f->order;
    order.headroom_percent = 101;
    assert_int_equal(mover_submit(f->mover, &order, &id), -EINVAL);
    order = f->order;
    order.to_nodes = NULL;
    assert_int_equal(mover_submit(f->mover, &order, &id), -EINVAL);
    hwloc_bitmap_zero(f->to);
    assert_int_equal(mover_submit(f->mover, &f->order, &id), -EINVAL);
    assert_int_equal(hwloc_bitmap_set(f->to, 4), 0);
    assert_int_equal(mover_submit(f->mover, &f->order, &id), -EINVAL);
    hwloc_bitmap_fill(f->to);
    assert_int_equal(mover_submit(f->mover, &f->order, &id), -EINVAL);
    assert_int_equal(hwloc_bitmap_only(f->to, 2), 0);
    f->topology->nodes[2].memory_bytes = 0;
    assert_int_equal(mover_submit(f->mover, &f->order, &id), -EINVAL);
    assert_int_equal(id, 77);
}

/* Calls return at once while a move is in progress. */
static void test_nobody_waits(void **state)
{
    MoverFixture *f = *state;
    MoverAccount account;
    MoverResult result;
    uint64_t id, second;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    id = mover_order_hanging(f, 1);
    second = mover_order(f);
    assert_int_equal(mover_look(f->mover, id, &account), 0);
    assert_true(account.n_asked > 0);
    assert_int_equal(account.moved_bytes, 0);
    mover_set_rate(f->mover, 0);
    mover_tend(f->mover, time_now_usec());
    assert_int_equal(mover_collect(f->mover, &result), 0);

    /* A request that has not begun ends at once; one that has, when its call returns. */
    assert_int_equal(mover_cancel(f->mover, second), 0);
    result = mover_await(f);
    assert_int_equal(result.id, second);
    assert_int_equal(result.outcome, MOVER_CANCELLED);
    assert_int_equal(mover_cancel(f->mover, id), 0);
    assert_int_equal(mover_cancel(f->mover, id), 0);
    assert_false(mover_readable(f));
    mover_set_hanging(f, false);
    result = mover_await(f);
    assert_int_equal(result.id, id);
    assert_int_equal(result.outcome, MOVER_CANCELLED);
    assert_int_equal(result.account.moved_bytes, f->machine.moved_bytes);
}

/* Requests take turns: a small one does not wait for all of a large one. */
static void test_turns(void **state)
{
    mover_try_turns(*state, 1);
}

static void test_full(void **state)
{
    MoverFixture *f = *state;
    MoverStatistics statistics;
    uint64_t id, last = 0;

    (void)machine_add(&f->machine, HEAP, 8 * MIB, 0);
    mover_set_hanging(f, true);
    for (size_t i = 0; i < MOVER_ORDERS_MAX; i++)
        last = mover_order(f);
    assert_int_equal(mover_submit(f->mover, &f->order, &id), -ENOBUFS);
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.n_orders, MOVER_ORDERS_MAX);
    /* It counts until it is collected. */
    assert_int_equal(mover_cancel(f->mover, last), 0);
    assert_int_equal(mover_submit(f->mover, &f->order, &id), -ENOBUFS);
    assert_int_equal(mover_await(f).outcome, MOVER_CANCELLED);
    (void)mover_order(f);
    mover_set_hanging(f, false);
    for (size_t i = 0; i < MOVER_ORDERS_MAX; i++) {
        const MoverResult result = mover_await(f);

        assert_int_equal(result.error, 0);
        assert_int_equal(result.outcome, MOVER_DONE);
    }
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.n_orders, 0);
    assert_int_equal(statistics.n_outcome[MOVER_DONE], MOVER_ORDERS_MAX);
}

static void test_hanging_call(void **state)
{
    mover_try_hanging(*state, 1);
}

/* The number of threads given up is limited. */
static void test_all_hang(void **state)
{
    MoverFixture *f = *state;
    MoverStatistics statistics;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    mover_set_hanging(f, true);
    for (unsigned i = 0; i < MOVER_HANGING_MAX + 1; i++) {
        (void)mover_order(f);
        mover_await_hanging(f, i + 1);
        mover_tend(f->mover, time_now_usec() + MOVER_HANG_USEC + 1000000);
    }
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.n_hanging, MOVER_HANGING_MAX);
    assert_int_equal(statistics.n_outcome[MOVER_HUNG], MOVER_HANGING_MAX);
    mover_set_hanging(f, false);
    for (unsigned i = 0; i < MOVER_HANGING_MAX; i++)
        assert_int_equal(mover_await(f).outcome, MOVER_HUNG);
    assert_int_equal(mover_await(f).outcome, MOVER_DONE);
}

/* Freeing the mover does not wait for a call that hangs, and leaves it what it uses. */
static void test_end_while_hanging(void **state)
{
    MoverFixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    mover_set_hanging(f, true);
    (void)mover_order(f);
    (void)mover_order(f);
    mover_await_hanging(f, 1);
    f->mover = mover_free(f->mover);
    mover_set_hanging(f, false);
    mover_await_no_threads(f);
    /* The thread came back, recorded what was done, and ended. */
    assert_int_equal(f->machine.n_moves, 1);
}

/* Nor does it wait for a thread that has not begun: on a busy machine it may have been without a CPU all the
 * while. The thread then finds its CPUs although the topology is gone, and moves nothing. */
static void test_end_while_settling(void **state)
{
    MoverFixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    f->machine.settling_hangs = true;
    (void)mover_order(f);
    mover_await_hanging(f, 1);
    f->mover = mover_free(f->mover);
    f->topology = topology_unref(f->topology);
    mover_set_hanging(f, false);
    mover_await_no_threads(f);
    assert_int_equal(f->machine.n_settled, 1);
    assert_int_equal(f->machine.n_moves, 0);
}

static void test_end_in_the_midst(void **state)
{
    MoverFixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 256 * MIB, 0);
    assert_int_equal(hwloc_bitmap_set_range(f->to, 1, 3), 0);
    for (size_t i = 0; i < 20; i++)
        (void)mover_order(f);
    f->mover = mover_free(f->mover);
}

/* A thread that cannot get its CPUs or its nice value moves memory all the same. */
static void test_unsettled(void **state)
{
    MoverFixture *f = *state;
    MoverStatistics statistics;

    (void)machine_add(&f->machine, HEAP, 8 * MIB, 0);
    f->machine.settle_error = -EPERM;
    f->order.nice = -5;
    (void)mover_order(f);
    assert_int_equal(mover_await(f).account.moved_bytes, 8 * MIB);
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.n_unsettled, 2);
}

static int no_device(void *context, uint64_t *ret)
{
    return -ENOSYS;
}

static void test_no_mover(void **state)
{
    const TopologyOptions options = {.synthetic = "numa:1 core:4 pu:1", .rehearse = 2};
    MoverFixture *f = *state;
    Topology *rehearsal = NULL;
    MoverOps ops = machine_ops;
    Mover *mover = NULL;
    char *error = NULL;

    ops.memory_device = no_device;
    assert_int_equal(mover_new(&ops, &f->machine, -1, f->topology, &mover), -ENOSYS);
    assert_int_equal(topology_load(&options, &rehearsal, &error), 0);
    assert_int_equal(mover_new(&machine_ops, &f->machine, -1, rehearsal, &mover), -EOPNOTSUPP);
    topology_unref(rehearsal);
    assert_null(mover);
    assert_null(mover_free(NULL));
}

static void test_names(void **state)
{
    for (size_t i = 0; i < MOVER_REASON_MAX; i++)
        assert_non_null(mover_reason_names[i]);
    assert_null(mover_reason_names[MOVER_REASON_MAX]);
    for (size_t i = 0; i < MOVER_OUTCOME_MAX; i++)
        assert_non_null(mover_outcome_names[i]);
    assert_null(mover_outcome_names[MOVER_OUTCOME_MAX]);
}

TEST_MAIN(setup, mover_teardown, test_order, test_several_nodes, test_one_node_full, test_bad_orders,
          test_nobody_waits, test_turns, test_full, test_hanging_call, test_all_hang, test_end_while_hanging,
          test_end_while_settling, test_end_in_the_midst, test_unsettled, test_no_mover, test_names)
