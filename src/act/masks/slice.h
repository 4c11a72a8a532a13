/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Long actions a slice at a time; see act_execute_slice(). */

#include "act/internal.h"

/* Begins and ends the slice. In between slice_spent() says whether nothing more is to be begun in it. */
void slice_begin(Act *act, const World *world, const Plan *plan);
void slice_end(Act *act);
bool slice_spent(Act *act);

/* Notes that there is more to do than this slice can. */
void slice_leave(Act *act);

/* Whether the action is gone through thread by thread. Never outside a slice. */
bool slice_is_large(const Act *act, const World *world, const PlanAction *action);

typedef struct SliceThreads {
    const World *world;
    const PlanAction *action; /* of the process */
    size_t index;             /* its place in the plan */
    /* Does it to one thread. A PlanOutcome or -ENOMEM. */
    int (*step)(void *userdata, TaskKey task);
    void *userdata;
} SliceThreads;

/* Goes through the threads of the World that the action is for, and notes what became of each. Adds them to `n`
 * [PLAN_OUTCOME_MAX]. 0: it was the last of them; 1: there are more; -ENOMEM. */
int slice_threads(Act *act, const SliceThreads *threads, size_t *n);
