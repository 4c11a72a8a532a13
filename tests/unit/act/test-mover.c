/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Orders and threads, on a machine in memory whose calls can be made to hang. */

#include "mover-machine.h"

#include "base/time.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>

#define HEAP    UINT64_C(0x7f0000000000)
#define WAIT_MS 60000

typedef struct Fixture {
    Machine machine;
    Topology *topology;
    Mover *mover;
    hwloc_bitmap_t to;
    MoverOrder order;
} Fixture;

/* Not on the heap: a thread that hangs when its mover is gone still uses it. */
static Fixture fixture;

/* Whether threads of a mover are about, by their name. */
static bool any_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    bool any = false;
    struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        char path[300], name[16] = "";
        FILE *file;

        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        file = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        any = any || (file && fgets(name, sizeof(name), file) && strncmp(name, "mover/", 6) == 0);
        if (file)
            (void)fclose(file);
    }
    (void)closedir(dir);
    return any;
}

/* Waits for what hung and came back to go. Its last words to the machine were under the lock. */
static void await_no_threads(Fixture *f)
{
    while (any_threads())
        (void)sched_yield();
    (void)pthread_mutex_lock(&f->machine.lock);
    (void)pthread_mutex_unlock(&f->machine.lock);
}

static int setup(void **state)
{
    const TopologyOptions options = {.synthetic = "numa:4 core:2 pu:1"};
    Fixture *f = &fixture;
    char *error = NULL;

    machine_init(&f->machine);
    f->to = hwloc_bitmap_alloc();
    *state = f;
    if (!f->to || hwloc_bitmap_only(f->to, 1) < 0 || topology_load(&options, &f->topology, &error) < 0)
        return -1;
    f->order =
        (MoverOrder){.pid = MACHINE_PID, .start_ticks = MACHINE_START, .to_nodes = f->to, .userdata = 42};
    return mover_new(&machine_ops, &f->machine, -1, f->topology, &f->mover);
}

static int teardown(void **state)
{
    Fixture *f = *state;

    f->mover = mover_free(f->mover);
    await_no_threads(f);
    f->topology = topology_unref(f->topology);
    hwloc_bitmap_free(f->to);
    machine_done(&f->machine);
    return 0;
}

static bool readable(const Fixture *f)
{
    struct pollfd pfd = {.fd = mover_fd(f->mover), .events = POLLIN};

    return poll(&pfd, 1, 0) == 1;
}

/* The next result, when there is one. */
static MoverResult await(Fixture *f)
{
    struct pollfd pfd = {.fd = mover_fd(f->mover), .events = POLLIN};
    MoverResult result;

    assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
    assert_int_equal(mover_collect(f->mover, &result), 1);
    return result;
}

static uint64_t submit(Fixture *f)
{
    uint64_t id = 0;

    assert_int_equal(mover_submit(f->mover, &f->order, &id), 0);
    assert_true(id > 0);
    return id;
}

/* Lets moves hang, or go on. */
static void set_hanging(Fixture *f, bool hanging)
{
    (void)pthread_mutex_lock(&f->machine.lock);
    f->machine.hanging = hanging;
    (void)pthread_cond_broadcast(&f->machine.hang);
    (void)pthread_mutex_unlock(&f->machine.lock);
}

/* Waits until so many threads hang. */
static void await_hanging(Fixture *f, unsigned n)
{
    bool there = false;

    while (!there) {
        (void)pthread_mutex_lock(&f->machine.lock);
        there = f->machine.n_waiting == n;
        (void)pthread_mutex_unlock(&f->machine.lock);
        (void)sched_yield();
    }
}

static void test_order(void **state)
{
    Fixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);
    MoverStatistics statistics;
    MoverAccount account;
    MoverResult result;
    uint64_t id;

    assert_false(readable(f));
    assert_int_equal(mover_collect(f->mover, &result), 0);
    f->order.nice = 7;
    id = submit(f);
    result = await(f);
    assert_int_equal(result.id, id);
    assert_int_equal(result.userdata, 42);
    assert_int_equal(result.pid, MACHINE_PID);
    assert_int_equal(result.start_ticks, MACHINE_START);
    assert_int_equal(result.outcome, MOVER_DONE);
    assert_int_equal(result.account.moved_bytes, 64 * MIB);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(f->machine.nice, 7);
    assert_int_equal(f->machine.n_settled, 1);

    assert_false(readable(f));
    assert_int_equal(mover_collect(f->mover, &result), 0);
    assert_int_equal(mover_look(f->mover, id, &account), -ESRCH);
    assert_int_equal(mover_cancel(f->mover, id), -ESRCH);
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.account.moved_bytes, 64 * MIB);
    assert_int_equal(statistics.n_outcome[MOVER_DONE], 1);
    assert_int_equal(statistics.n_orders, 0);
    assert_int_equal(statistics.n_unsettled, 0);
}

/* Several nodes: a thread each, one result. */
static void test_several_nodes(void **state)
{
    Fixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);
    MoverResult result;

    assert_int_equal(hwloc_bitmap_set_range(f->to, 1, 3), 0);
    (void)submit(f);
    result = await(f);
    assert_int_equal(result.outcome, MOVER_DONE);
    assert_int_equal(result.account.moved_bytes, 64 * MIB);
    assert_int_equal(machine_count(&f->machine, heap, 0), 0);
    for (int node = 1; node <= 3; node++)
        assert_in_range(machine_count(&f->machine, heap, node), heap->n_pages / 32 * 10,
                        heap->n_pages / 32 * 11);
    assert_int_equal(f->machine.n_settled, 3);

    /* Where it is now will do, also for two of the nodes; but not if it is to be striped over them. */
    assert_int_equal(hwloc_bitmap_clr(f->to, 3), 0);
    memset(heap->node, 1, heap->n_pages);
    (void)submit(f);
    assert_int_equal(await(f).account.moved_bytes, 0);
    f->order.stripe = true;
    (void)submit(f);
    assert_int_equal(await(f).account.moved_bytes, 32 * MIB);
    assert_int_equal(machine_count(&f->machine, heap, 2), heap->n_pages / 2);
}

/* Of several nodes the worst end counts, and what was done before it is told. */
static void test_one_node_full(void **state)
{
    Fixture *f = *state;
    MoverResult result;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    assert_int_equal(hwloc_bitmap_set_range(f->to, 1, 2), 0);
    f->machine.free_bytes[2] = 0;
    (void)submit(f);
    result = await(f);
    assert_int_equal(result.outcome, MOVER_NO_ROOM);
    assert_int_equal(result.account.moved_bytes, 32 * MIB);
    assert_true(result.account.refused_bytes[MOVER_REASON_HEADROOM] > 0);
}

static void test_bad_orders(void **state)
{
    static const MoverRange swapped[] = {{2, 3}, {1, 2}}, overlapping[] = {{1, 3}, {2, 4}},
                            empty[] = {{3, 3}};
    const MoverRange *const ranges[] = {swapped, overlapping, empty};
    Fixture *f = *state;
    uint64_t id = 77;
    MoverOrder order;

    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
        order = f->order;
        order.ranges = ranges[i];
        order.n_ranges = i < 2 ? 2 : 1;
        assert_int_equal(mover_submit(f->mover, &order, &id), -EINVAL);
    }
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

/* What is asked for while a call is under way comes back at once. */
static void test_nobody_waits(void **state)
{
    Fixture *f = *state;
    MoverAccount account;
    MoverResult result;
    uint64_t id, second;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    set_hanging(f, true);
    id = submit(f);
    await_hanging(f, 1);
    second = submit(f);
    assert_int_equal(mover_look(f->mover, id, &account), 0);
    assert_true(account.n_asked > 0);
    assert_int_equal(account.moved_bytes, 0);
    mover_set_rate(f->mover, 0);
    mover_tend(f->mover, time_now_usec());
    assert_int_equal(mover_collect(f->mover, &result), 0);

    /* Who has not begun ends at once, who has when its call is over. */
    assert_int_equal(mover_cancel(f->mover, second), 0);
    result = await(f);
    assert_int_equal(result.id, second);
    assert_int_equal(result.outcome, MOVER_CANCELLED);
    assert_int_equal(mover_cancel(f->mover, id), 0);
    assert_int_equal(mover_cancel(f->mover, id), 0);
    assert_false(readable(f));
    set_hanging(f, false);
    result = await(f);
    assert_int_equal(result.id, id);
    assert_int_equal(result.outcome, MOVER_CANCELLED);
    assert_int_equal(result.account.moved_bytes, f->machine.moved_bytes);
}

/* Orders take turns: a small one does not wait for all of a large one. */
static void test_turns(void **state)
{
    const MoverRange range = {HEAP, HEAP + 1};
    Fixture *f = *state;
    uint64_t large, small;

    (void)machine_add(&f->machine, HEAP, 256 * MIB, 0);
    set_hanging(f, true);
    large = submit(f);
    await_hanging(f, 1);
    f->order.ranges = &range;
    f->order.n_ranges = 1;
    small = submit(f);
    set_hanging(f, false);
    assert_int_equal(await(f).id, small);
    assert_int_equal(await(f).id, large);
}

static void test_full(void **state)
{
    Fixture *f = *state;
    MoverStatistics statistics;
    uint64_t id, last = 0;

    (void)machine_add(&f->machine, HEAP, 8 * MIB, 0);
    set_hanging(f, true);
    for (size_t i = 0; i < MOVER_ORDERS_MAX; i++)
        last = submit(f);
    assert_int_equal(mover_submit(f->mover, &f->order, &id), -ENOBUFS);
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.n_orders, MOVER_ORDERS_MAX);
    /* It counts until it is collected. */
    assert_int_equal(mover_cancel(f->mover, last), 0);
    assert_int_equal(mover_submit(f->mover, &f->order, &id), -ENOBUFS);
    assert_int_equal(await(f).outcome, MOVER_CANCELLED);
    (void)submit(f);
    set_hanging(f, false);
    for (size_t i = 0; i < MOVER_ORDERS_MAX; i++)
        (void)await(f);
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.n_orders, 0);
    assert_int_equal(statistics.n_outcome[MOVER_DONE], MOVER_ORDERS_MAX);
}

/* A thread that hangs is given up after a time; another one takes over, and the first does no harm when it comes
 * back. */
static void test_hanging_call(void **state)
{
    Fixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);
    uint64_t first, second;
    MoverStatistics statistics;
    MoverResult result;

    set_hanging(f, true);
    first = submit(f);
    await_hanging(f, 1);
    second = submit(f);
    mover_tend(f->mover, time_now_usec() + MOVER_HANG_USEC / 2);
    assert_false(readable(f));
    mover_tend(f->mover, time_now_usec() + MOVER_HANG_USEC + 1000000);
    result = await(f);
    assert_int_equal(result.id, first);
    assert_int_equal(result.outcome, MOVER_HUNG);
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.n_hanging, 1);

    await_hanging(f, 2);
    set_hanging(f, false);
    result = await(f);
    assert_int_equal(result.id, second);
    assert_int_equal(result.outcome, MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    do
        mover_statistics(f->mover, &statistics);
    while (statistics.n_hanging > 0);
    assert_int_equal(statistics.n_orders, 0);
}

/* There is an end to that. */
static void test_all_hang(void **state)
{
    Fixture *f = *state;
    MoverStatistics statistics;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    set_hanging(f, true);
    for (unsigned i = 0; i < MOVER_HANGING_MAX + 1; i++) {
        (void)submit(f);
        await_hanging(f, i + 1);
        mover_tend(f->mover, time_now_usec() + MOVER_HANG_USEC + 1000000);
    }
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.n_hanging, MOVER_HANGING_MAX);
    assert_int_equal(statistics.n_outcome[MOVER_HUNG], MOVER_HANGING_MAX);
    set_hanging(f, false);
    for (unsigned i = 0; i < MOVER_HANGING_MAX; i++)
        assert_int_equal(await(f).outcome, MOVER_HUNG);
    assert_int_equal(await(f).outcome, MOVER_DONE);
}

/* The end of the mover does not wait for a call that hangs; what it uses is left to it. */
static void test_end_while_hanging(void **state)
{
    Fixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    set_hanging(f, true);
    (void)submit(f);
    (void)submit(f);
    await_hanging(f, 1);
    f->mover = mover_free(f->mover);
    set_hanging(f, false);
    await_no_threads(f);
    /* It came back, took note of what was done, and went. */
    assert_int_equal(f->machine.n_moves, 1);
}

static void test_end_in_the_midst(void **state)
{
    Fixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 256 * MIB, 0);
    assert_int_equal(hwloc_bitmap_set_range(f->to, 1, 3), 0);
    for (size_t i = 0; i < 20; i++)
        (void)submit(f);
    f->mover = mover_free(f->mover);
}

/* A thread that cannot have its CPUs or its nice value moves all the same. */
static void test_unsettled(void **state)
{
    Fixture *f = *state;
    MoverStatistics statistics;

    (void)machine_add(&f->machine, HEAP, 8 * MIB, 0);
    f->machine.settle_error = -EPERM;
    f->order.nice = -5;
    (void)submit(f);
    assert_int_equal(await(f).account.moved_bytes, 8 * MIB);
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
    Fixture *f = *state;
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_order),
        TEST(test_several_nodes),
        TEST(test_one_node_full),
        TEST(test_bad_orders),
        TEST(test_nobody_waits),
        TEST(test_turns),
        TEST(test_full),
        TEST(test_hanging_call),
        TEST(test_all_hang),
        TEST(test_end_while_hanging),
        TEST(test_end_in_the_midst),
        TEST(test_unsettled),
        TEST(test_no_mover),
        TEST(test_names),
    };

    return cmocka_run_group_tests_name("act/mover", tests, NULL, NULL);
}
