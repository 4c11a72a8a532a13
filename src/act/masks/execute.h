/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files that carry out an action share. Functions that return an outcome return a PlanOutcome or -ENOMEM. */

#include "act/internal.h"

/* The state of one action. */
typedef struct Work {
    Act *act;
    const World *world;
    const PlanAction *action;
    size_t index; /* its index in the plan */
    ActProcess process;
    hwloc_bitmap_t have, scratch;
    size_t n_changed; /* threads changed by this pass over its process */
    size_t n_parts;   /* of earlier actions */
    Restore restore;  /* of consecutive releases */
} Work;

/* Number of threads of a process by outcome. */
typedef struct Tally {
    size_t n[PLAN_OUTCOME_MAX];
} Tally;

/* Maps a result of ActOps to an outcome. */
int execute_outcome(int r);

/* Finds out what the journal knows of the process, and enters a process that has inherited or already has its mask.
 * *ret_ours: whether work->have is a mask of ours; never in a dry run. Returns 0, -ENOMEM, or a PlanOutcome. */
int execute_look_up(Work *work, TaskKey task, bool *ret_ours);

/* The same, but first reads that mask. */
int execute_look(Work *work, TaskKey task, bool *ret_ours);

/* Carries out the action for a large process, as far as this slice goes. `step` handles one thread and
 * returns its outcome. */
int execute_by_threads(Work *work, int (*step)(void *userdata, TaskKey task));

/* release.c */

/* Releases a process or a thread. */
int release_action(Work *work);
/* Whether the action releases a process because it now needs all nodes. */
bool release_roams(const PlanAction *action);
