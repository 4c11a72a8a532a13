/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "mover-fixture.h"

#include "../machine.h"
#include "base/time.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>

#define WAIT_MS 60000

/* Not on the heap: a thread that hangs still uses it after its mover was freed. */
static MoverFixture fixture;

/* Whether threads of a mover exist, by their name. */
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

void mover_await_no_threads(MoverFixture *f)
{
    while (any_threads())
        (void)sched_yield();
    (void)pthread_mutex_lock(&f->machine.lock);
    (void)pthread_mutex_unlock(&f->machine.lock);
}

int mover_setup(void **state, const char *synthetic)
{
    MoverFixture *f = &fixture;

    machine_init(&f->machine);
    f->to = hwloc_bitmap_alloc();
    *state = f;
    if (!f->to || hwloc_bitmap_only(f->to, 1) < 0)
        return -1;
    f->topology = test_machine(synthetic);
    f->order = (MoverOrder){.pid = MACHINE_PID, .start_ticks = MACHINE_START, .to_nodes = f->to};
    return mover_new(&machine_ops, &f->machine, -1, f->topology, &f->mover);
}

int mover_teardown(void **state)
{
    MoverFixture *f = *state;

    f->mover = mover_free(f->mover);
    mover_await_no_threads(f);
    f->topology = topology_unref(f->topology);
    hwloc_bitmap_free(f->to);
    machine_done(&f->machine);
    return 0;
}

bool mover_readable(const MoverFixture *f)
{
    struct pollfd pfd = {.fd = mover_fd(f->mover), .events = POLLIN};

    return poll(&pfd, 1, 0) == 1;
}

MoverResult mover_await(MoverFixture *f)
{
    struct pollfd pfd = {.fd = mover_fd(f->mover), .events = POLLIN};
    MoverResult result;

    assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
    assert_int_equal(mover_collect(f->mover, &result), 1);
    return result;
}

uint64_t mover_order(MoverFixture *f)
{
    uint64_t id = 0;

    assert_int_equal(mover_submit(f->mover, &f->order, &id), 0);
    assert_true(id > 0);
    return id;
}

void mover_set_hanging(MoverFixture *f, bool hanging)
{
    (void)pthread_mutex_lock(&f->machine.lock);
    f->machine.hanging = hanging;
    f->machine.settling_hangs = false;
    (void)pthread_cond_broadcast(&f->machine.hang);
    (void)pthread_mutex_unlock(&f->machine.lock);
}

void mover_await_hanging(MoverFixture *f, unsigned n)
{
    bool there = false;

    while (!there) {
        (void)pthread_mutex_lock(&f->machine.lock);
        there = f->machine.n_waiting == n;
        (void)pthread_mutex_unlock(&f->machine.lock);
        (void)sched_yield();
    }
}

uint64_t mover_order_hanging(MoverFixture *f, unsigned n)
{
    uint64_t id;

    mover_set_hanging(f, true);
    id = mover_order(f);
    mover_await_hanging(f, n);
    return id;
}

/* Lets one move pass whenever `n_hanging` threads hang, until a request is over. */
static void pass_until_over(MoverFixture *f, unsigned n_hanging)
{
    while (!mover_readable(f)) {
        (void)pthread_mutex_lock(&f->machine.lock);
        if (f->machine.n_waiting == n_hanging && f->machine.n_passing == 0) {
            f->machine.n_passing = 1;
            (void)pthread_cond_broadcast(&f->machine.hang);
        }
        (void)pthread_mutex_unlock(&f->machine.lock);
        (void)sched_yield();
    }
}

void mover_try_turns(MoverFixture *f, unsigned n_hanging)
{
    static const MoverRange range = {HEAP, HEAP + 1};
    uint64_t large, small;

    (void)machine_add(&f->machine, HEAP, 256 * MIB, 0);
    large = mover_order_hanging(f, n_hanging);
    f->order.ranges = &range;
    f->order.n_ranges = 1;
    small = mover_order(f);
    pass_until_over(f, n_hanging);
    assert_int_equal(mover_await(f).id, small);
    mover_set_hanging(f, false);
    assert_int_equal(mover_await(f).id, large);
}

void mover_try_hanging(MoverFixture *f, unsigned n)
{
    const MachineArea *heap = machine_add(&f->machine, HEAP, 256 * MIB, 0);
    uint64_t first, second;
    MoverStatistics statistics;
    MoverResult result;

    first = mover_order_hanging(f, n);
    second = mover_order(f);
    mover_tend(f->mover, time_now_usec() + MOVER_HANG_USEC / 2);
    assert_false(mover_readable(f));
    mover_tend(f->mover, time_now_usec() + MOVER_HANG_USEC + 1000000);
    result = mover_await(f);
    assert_int_equal(result.id, first);
    assert_int_equal(result.outcome, MOVER_HUNG);
    mover_statistics(f->mover, &statistics);
    assert_int_equal(statistics.n_hanging, n);
    assert_int_equal(statistics.n_outcome[MOVER_HUNG], 1);

    mover_await_hanging(f, 2 * n);
    mover_set_hanging(f, false);
    result = mover_await(f);
    assert_int_equal(result.id, second);
    assert_int_equal(result.outcome, MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    do
        mover_statistics(f->mover, &statistics);
    while (statistics.n_hanging > 0);
    assert_int_equal(statistics.n_orders, 0);
}
