/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A small set of processes, named so that a reused PID is not mistaken for one of them. */

#include "base/util.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct TaskSet TaskSet;

TaskSet *task_set_new(void);
TaskSet *task_set_free(TaskSet *set);
DEFINE_CLEANUP(TaskSet *, task_set_free)

/* 0, also when it is there already, or -ENOMEM. */
int task_set_add(TaskSet *set, pid_t pid, uint64_t start_ticks);
/* Whether it is a member. Finding it counts as a sign of life, see task_set_sweep(). */
bool task_set_find(TaskSet *set, pid_t pid, uint64_t start_ticks);
/* Removes whatever has this number; whether there was one. */
bool task_set_remove(TaskSet *set, pid_t pid);
void task_set_clear(TaskSet *set);
size_t task_set_size(const TaskSet *set);

/* Drops members that nobody found for two sweeps: they have exited. */
void task_set_sweep(TaskSet *set);
