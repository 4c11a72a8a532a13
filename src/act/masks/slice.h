/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Carries out long actions in slices; see act_execute_slice(). */

#include "act/internal.h"

/* Begin and end a slice. In between, slice_spent() says whether nothing more may be started in it. */
void slice_begin(Act *act, const World *world, const Plan *plan);
void slice_end(Act *act);
bool slice_spent(Act *act);

/* Notes that this slice leaves work undone. */
void slice_leave(Act *act);

/* Whether the action is carried out thread by thread. Never outside a slice. */
bool slice_is_large(const Act *act, const World *world, const PlanAction *action);

/* Notes what became of a thread of the action with this index. 0 or -ENOMEM. */
int slice_note(Act *act, size_t index, TaskKey task, int outcome);

typedef struct SliceThreads {
    const World *world;
    const PlanAction *action; /* of the process */
    size_t index;             /* its index in the plan */
    /* Handles one thread. Returns a PlanOutcome or -ENOMEM. */
    int (*step)(void *userdata, TaskKey task);
    void *userdata;
} SliceThreads;

/* Goes through the threads of the World that the action is for, and records the outcome of each. Adds the
 * outcomes to `n` [PLAN_OUTCOME_MAX]. Returns 0 after the last thread; 1: there are more; -ENOMEM. */
int slice_threads(Act *act, const SliceThreads *threads, size_t *n);
