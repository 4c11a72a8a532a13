/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The migration requests of plans, on a mover over a machine in memory. */

#include "../machine.h"
#include "act/orders.h"
#include "mover-machine.h"

#include <poll.h>

#define HEAP    UINT64_C(0x7f0000000000)
#define WAIT_MS 60000

typedef struct Fixture {
    Machine machine;
    Topology *topology;
    Orders *orders;
    hwloc_bitmap_t to;
    PlanAction action;
} Fixture;

static Fixture fixture;

static int setup(void **state)
{
    Fixture *f = &fixture;
    Mover *mover = NULL;

    machine_init(&f->machine);
    f->to = hwloc_bitmap_alloc();
    *state = f;
    if (!f->to || hwloc_bitmap_only(f->to, 1) < 0)
        return -1;
    f->topology = test_machine("numa:4 core:2 pu:1");
    f->action = (PlanAction){
        .kind = PLAN_KIND_MOVE_PAGES,
        .subject = {.pid = MACHINE_PID, .start_ticks = MACHINE_START},
        .group_id = 7,
        .memory = {.to = f->to},
    };
    if (mover_new(&machine_ops, &f->machine, -1, f->topology, &mover) < 0)
        return -1;
    return orders_new(mover, &f->orders);
}

static int teardown(void **state)
{
    Fixture *f = *state;

    f->orders = orders_free(f->orders);
    f->topology = topology_unref(f->topology);
    hwloc_bitmap_free(f->to);
    machine_done(&f->machine);
    return 0;
}

static OrderNews await(Fixture *f)
{
    struct pollfd pfd = {.fd = mover_fd(orders_mover(f->orders)), .events = POLLIN};
    OrderNews news;

    assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
    assert_int_equal(orders_collect(f->orders, &news), 1);
    return news;
}

static void test_order(void **state)
{
    Fixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 4 * BLOCK, 0);
    OrderNews news;

    assert_int_equal(orders_collect(f->orders, &news), 0);
    assert_int_equal(orders_look(f->orders, 0, &news), 0);
    assert_int_equal(orders_give(f->orders, &f->action), PLAN_OUTCOME_DONE);
    news = await(f);
    assert_true(news.over);
    assert_int_equal(news.subject.pid, MACHINE_PID);
    assert_int_equal(news.subject.start_ticks, MACHINE_START);
    assert_int_equal(news.group_id, 7);
    assert_int_equal(news.result.outcome, MOVER_DONE);
    assert_int_equal(news.moved_bytes, 4 * BLOCK);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(orders_look(f->orders, 0, &news), 0);
}

/* The plan's reserve is kept, and the page cache counts as room. */
static void test_limits(void **state)
{
    Fixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 4 * BLOCK, 0);
    f->machine.free_bytes[1] = 0;
    f->machine.cache_bytes[1] = 100 * MIB;
    f->action.memory.reserve_bytes = 1000 * MIB;
    assert_int_equal(orders_give(f->orders, &f->action), PLAN_OUTCOME_DONE);
    assert_int_equal(await(f).result.outcome, MOVER_NO_ROOM);
    f->action.memory.reserve_bytes = 0;
    assert_int_equal(orders_give(f->orders, &f->action), PLAN_OUTCOME_DONE);
    assert_int_equal(await(f).result.outcome, MOVER_DONE);
}

/* One request for a process; progress is reported once. */
static void test_under_way(void **state)
{
    Fixture *f = *state;
    OrderNews news;

    (void)machine_add(&f->machine, HEAP, 4 * BLOCK, 0);
    f->machine.hanging = true;
    assert_int_equal(orders_give(f->orders, &f->action), PLAN_OUTCOME_DONE);
    assert_int_equal(orders_give(f->orders, &f->action), PLAN_OUTCOME_RETRY);
    assert_int_equal(orders_look(f->orders, 0, &news), 1);
    assert_int_equal(news.subject.pid, MACHINE_PID);
    assert_int_equal(news.moved_bytes, 0);
    assert_int_equal(orders_look(f->orders, 1, &news), 0);

    orders_cancel(f->orders,
                  (TaskKey){.pid = MACHINE_PID, .start_ticks = MACHINE_START + 1}); /* of another process */
    orders_cancel(f->orders, f->action.subject);
    (void)pthread_mutex_lock(&f->machine.lock);
    f->machine.hanging = false;
    (void)pthread_cond_broadcast(&f->machine.hang);
    (void)pthread_mutex_unlock(&f->machine.lock);
    assert_int_equal(await(f).result.outcome, MOVER_CANCELLED);
    assert_int_equal(orders_give(f->orders, &f->action), PLAN_OUTCOME_DONE);
    assert_int_equal(await(f).result.outcome, MOVER_DONE);
}

static void test_no_good(void **state)
{
    Fixture *f = *state;

    hwloc_bitmap_zero(f->to);
    assert_int_equal(orders_give(f->orders, &f->action), PLAN_OUTCOME_REFUSED);
}

TEST_MAIN(setup, teardown, test_order, test_limits, test_under_way, test_no_good)
