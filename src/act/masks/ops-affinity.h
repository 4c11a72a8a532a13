/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The reading half of act_ops_affinity, which act_ops_dry_run shares. Contracts: ActOps. */

#include "act/act.h"
#include "kernel/procstat.h"

int affinity_get_online(void *context, hwloc_bitmap_t ret);
int affinity_get_isolated(void *context, hwloc_bitmap_t ret);
int affinity_get_cpuset(void *context, pid_t tid, hwloc_bitmap_t ret);
int affinity_get_mask(void *context, TaskKey task, hwloc_bitmap_t ret);
int affinity_list_threads(void *context, pid_t pid, uint64_t start_ticks, TaskKey **ret, size_t *ret_n);
int affinity_walk_threads(void *context, ActThreadWalk *walk);
int affinity_list_processes(void *context, ActProcess **ret, size_t *ret_n);
int affinity_walk(void *context, ActWalk *walk);
int affinity_read_process(void *context, pid_t pid, ActProcess *ret);
int affinity_get_place(void *context, pid_t pid, uint64_t *ret);
bool affinity_is_first(void *context, pid_t pid);
/* ops-forks.c */
int affinity_birth_mark(void *context, ActBirthMark *ret);
int affinity_may_fork(void *context, TaskKey task, ActFork *ret);
bool affinity_waits_in_fork(void *context, TaskKey task);

/* Of the context: where /proc and /sys are. */
static inline int affinity_root(const void *context)
{
    return *(const int *)context;
}

/* The stat file of one thread. 0, or an ActResult. */
int affinity_read_stat(int root_fd, pid_t pid, pid_t tid, ProcStat *ret);

/* What an errno of a task's system call or file means: GONE, REFUSED or RETRY. */
ActResult affinity_result(int error);
