/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Migration requests of plans that are in flight in a mover: at most one per process. */

#include "act/mover/mover.h"
#include "plan/plan.h"

typedef struct Orders Orders;

/* Takes over the mover on success. 0 or -ENOMEM. */
int orders_new(Mover *mover, Orders **ret);
/* As mover_free(). */
Orders *orders_free(Orders *orders);

/* The mover, for its descriptor, statistics and rate. */
Mover *orders_mover(const Orders *orders);

/* Submits the request of a MOVE_PAGES, copying its ranges. DONE: accepted; RETRY: not now; REFUSED: invalid.
 * Or -ENOMEM. */
int orders_give(Orders *orders, const PlanAction *action);

typedef struct OrderNews {
    TaskKey subject; /* a process */
    uint64_t group_id;
    uint64_t moved_bytes; /* since the last news; of a finished request: in all */
    bool over;
    MoverResult result; /* if `over` */
} OrderNews;

/* Takes one finished request. 1, or 0 if there is none. */
int orders_collect(Orders *orders, OrderNews *ret);

/* The request at `index`, counted from 0, and what it has moved. 1, or 0 if there are fewer. */
int orders_look(Orders *orders, size_t index, OrderNews *ret);

/* Ends a request soon. It is still collected as usual. */
void orders_cancel(Orders *orders, TaskKey subject);
