/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The orders of plans to move memory that are under way in a mover: at most one for each process. */

#include "act/mover/mover.h"
#include "plan/plan.h"

typedef struct Orders Orders;

/* Takes the mover over on success. 0 or -ENOMEM. */
int orders_new(Mover *mover, Orders **ret);
/* As mover_free(). */
Orders *orders_free(Orders *orders);

/* For its descriptor, its statistics, and its rate. */
Mover *orders_mover(const Orders *orders);

/* Gives the order of a MOVE_PAGES, whose ranges are copied. DONE means that it was taken; RETRY: not now; REFUSED:
 * it is no good. Or -ENOMEM. */
int orders_give(Orders *orders, const PlanAction *action);

typedef struct OrderNews {
    TaskKey subject; /* a process */
    uint64_t group_id;
    uint64_t moved_bytes; /* since the news before; of an order that is over: in all */
    bool over;
    MoverResult result; /* when it is over */
} OrderNews;

/* Takes one order that is over. 1; 0: there is none. */
int orders_collect(Orders *orders, OrderNews *ret);

/* The order at `index`, from 0 on, and what it has moved. 1; 0: there are not so many. */
int orders_look(Orders *orders, size_t index, OrderNews *ret);

/* Ends an order soon; it is collected as always. */
void orders_cancel(Orders *orders, TaskKey subject);
