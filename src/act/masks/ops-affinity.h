/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What ops-affinity.c and ops-forks.c share. Contracts: ActOps. */

#include "act/act.h"
#include "kernel/procstat.h"

int affinity_birth_mark(void *context, ActBirthMark *ret);
int affinity_may_fork(void *context, TaskKey task, ActFork *ret);
bool affinity_waits_in_fork(void *context, TaskKey task);

/* Of the context: where /proc and /sys are. */
static inline int affinity_root(const void *context)
{
    return *(const int *)context;
}

/* As procstat_read_task(). 0, or an ActResult. */
int affinity_read_stat(int root_fd, pid_t pid, pid_t tid, ProcStat *ret);
