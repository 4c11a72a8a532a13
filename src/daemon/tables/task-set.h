/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A small set of processes, by PID and start time, so that a reused PID is not mistaken for a member. */

#include "base/util.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct TaskSet TaskSet;

TaskSet *task_set_new(void);
TaskSet *task_set_free(TaskSet *set);
DEFINE_CLEANUP(TaskSet *, task_set_free)

/* Returns 0, also if it is there already, or -ENOMEM. */
int task_set_add(TaskSet *set, pid_t pid, uint64_t start_ticks);
/* Whether it is a member. Finding it marks it alive, see task_set_sweep(). */
bool task_set_find(TaskSet *set, pid_t pid, uint64_t start_ticks);
/* Removes the member with this PID. Returns whether there was one. */
bool task_set_remove(TaskSet *set, pid_t pid);
void task_set_clear(TaskSet *set);
size_t task_set_size(const TaskSet *set);

/* Drops members that were not found since before the last two sweeps: they have exited. */
void task_set_sweep(TaskSet *set);
