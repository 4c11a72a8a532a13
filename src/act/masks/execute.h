/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of carrying out an action share. Functions that return an outcome: a PlanOutcome, or -ENOMEM. */

#include "act/internal.h"

/* What one action works with. */
typedef struct Work {
    Act *act;
    const World *world;
    const PlanAction *action;
    size_t index; /* its place in the plan */
    ActProcess process;
    hwloc_bitmap_t have, scratch;
    size_t n_changed; /* threads, by this pass over its process */
    Restore restore; /* of the releases that follow each other */
} Work;

/* Threads of a process by what became of them. */
typedef struct Tally {
    size_t n[PLAN_OUTCOME_MAX];
} Tally;

/* The outcome that a result of ActOps is. */
int execute_outcome(int r);

/* Finds out what the journal knows of the process; *ret_ours: whether work->have is a mask of ours. In a dry run
 * nothing is. Returns 0, -ENOMEM, or a PlanOutcome. */
int execute_look_up(Work *work, TaskKey task, bool *ret_ours);

/* The same, after reading that mask. */
int execute_look(Work *work, TaskKey task, bool *ret_ours);

/* A large process, as far as this slice goes. `step` does it to one thread, and returns its outcome. */
int execute_by_threads(Work *work, int (*step)(void *userdata, TaskKey task));

/* release.c */

/* Carries out a release, of a process or a thread. */
int release_action(Work *work);
/* Whether it is one of a process that comes to need all nodes. */
bool release_roams(const PlanAction *action);
