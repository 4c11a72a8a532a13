/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The mover knows requests by number, plans know processes. There are at most MOVER_ORDERS_MAX, and usually a
 * few, so a plain array is searched. */

#include "act/orders.h"

typedef struct Order {
    TaskKey subject;
    uint64_t id, group_id;
    uint64_t told_bytes; /* moved as of the last news */
} Order;

struct Orders {
    Mover *mover;
    Order *orders;
    size_t n, capacity;
};

int orders_new(Mover *mover, Orders **ret)
{
    Orders *orders = calloc(1, sizeof(*orders));

    if (!orders)
        return -ENOMEM;
    orders->mover = mover;
    *ret = orders;
    return 0;
}

Orders *orders_free(Orders *orders)
{
    if (!orders)
        return NULL;
    mover_free(orders->mover);
    free(orders->orders);
    free(orders);
    return NULL;
}

Mover *orders_mover(const Orders *orders)
{
    return orders->mover;
}

static Order *find(const Orders *orders, TaskKey subject)
{
    for (size_t i = 0; i < orders->n; i++)
        if (orders->orders[i].subject.pid == subject.pid &&
            orders->orders[i].subject.start_ticks == subject.start_ticks)
            return &orders->orders[i];
    return NULL;
}

static int outcome_of(int r)
{
    if (r == 0)
        return PLAN_OUTCOME_DONE;
    if (r == -ENOMEM)
        return -ENOMEM;
    return r == -ENOBUFS || r == -EAGAIN ? PLAN_OUTCOME_RETRY : PLAN_OUTCOME_REFUSED;
}

static_assert(sizeof(PlanRange) == sizeof(MoverRange) &&
                  offsetof(PlanRange, end) == offsetof(MoverRange, end) &&
                  offsetof(PlanRange, to) == offsetof(MoverRange, to),
              "a plan's range is the mover's");

int orders_give(Orders *orders, const PlanAction *action)
{
    const PlanMemory *memory = &action->memory;
    const MoverOrder order = {
        .ranges = (const MoverRange *)(const void *)memory->ranges,
        .n_ranges = memory->n_ranges,
        .pid = action->subject.pid,
        .start_ticks = action->subject.start_ticks,
        .to_nodes = memory->to,
        .help_nodes = memory->help,
        .stripe = memory->stripe,
        .sent = memory->ranges && !memory->stripe,
        .shared = memory->shared,
        .nice = memory->nice,
        .headroom_percent = memory->headroom_percent,
        .reserve_bytes = memory->reserve_bytes,
        .spend_cache = true, /* as World.nodes counts: see kernel/node-memory.h */
        .rate_bytes = memory->rate_bytes,
    };
    uint64_t id;
    int r;

    if (find(orders, action->subject))
        return PLAN_OUTCOME_RETRY; /* a cancelled request is not over yet */
    if (!GROW(orders->orders, orders->capacity, orders->n + 1))
        return -ENOMEM;
    r = mover_submit(orders->mover, &order, &id);
    if (r == 0)
        orders->orders[orders->n++] =
            (Order){.subject = action->subject, .id = id, .group_id = action->group_id};
    return outcome_of(r);
}

int orders_collect(Orders *orders, OrderNews *ret)
{
    MoverResult result;

    if (mover_collect(orders->mover, &result) == 0)
        return 0;
    *ret = (OrderNews){
        .subject = {.pid = result.pid, .start_ticks = result.start_ticks},
        .moved_bytes = result.account.moved_bytes,
        .over = true,
        .result = result,
    };
    for (size_t i = 0; i < orders->n; i++)
        if (orders->orders[i].id == result.id) {
            ret->group_id = orders->orders[i].group_id;
            orders->orders[i] = orders->orders[--orders->n];
            break;
        }
    return 1;
}

int orders_look(Orders *orders, size_t index, OrderNews *ret)
{
    MoverAccount account = {0};
    Order *order;

    if (index >= orders->n)
        return 0;
    order = &orders->orders[index];
    (void)mover_look(orders->mover, order->id, &account);
    *ret = (OrderNews){
        .subject = order->subject,
        .group_id = order->group_id,
        .moved_bytes = account.moved_bytes - MIN(account.moved_bytes, order->told_bytes),
    };
    order->told_bytes = MAX(order->told_bytes, account.moved_bytes);
    return 1;
}

void orders_cancel(Orders *orders, TaskKey subject)
{
    const Order *order = find(orders, subject);

    if (order)
        (void)mover_cancel(orders->mover, order->id);
}
