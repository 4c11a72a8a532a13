/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the kernel's NUMA balancing knows of a thread: the end of /proc/PID/task/TID/sched, which
 * needs CONFIG_SCHED_DEBUG and CONFIG_NUMA_BALANCING. The numbers are the kernel's fault averages (P11): each
 * scan halves them, so they have no unit and can only be compared within one thread. */

#include <stdint.h>
#include <sys/types.h>

/* Room for a whole file: 60 lines of at most 70 bytes, and one of 120 for each of 1024 nodes. */
#define SCHED_NUMA_TEXT_SIZE ((size_t)128 << 10)

#define SCHED_NUMA_NODES_MAX 1024U /* CONFIG_NODES_SHIFT is at most 10 */

typedef struct SchedNumaNode {
    uint32_t node; /* operating-system number */
    uint64_t task_private, task_shared, group_private, group_shared;
} SchedNumaNode;

typedef struct SchedNuma {
    int32_t preferred_node; /* operating-system number; -1: none yet */
    pid_t group;            /* numa_group_id, a thread id, Ngid in /proc/PID/status; 0: none */
    uint64_t total_faults;  /* of the thread; 0: nothing is known */
    uint32_t scan_sequence; /* of the process; 0 until its first scan is complete */
    uint32_t n_nodes;
    SchedNumaNode nodes[SCHED_NUMA_NODES_MAX]; /* online nodes, ascending */
} SchedNuma;

/* Parses the whole file. Returns 0; -ENOENT if it has no NUMA fields, because the kernel was built without
 * them or the thread has no memory of its own; -EINVAL if the NUMA fields are malformed or the text is cut.
 * *ret is written in all cases. */
int sched_numa_parse(const char *text, SchedNuma *ret);

/* Finds the NUMA group in the status file of a process or thread; 0: none. Returns 0, or -ENOENT without one. */
int sched_numa_parse_status(const char *text, pid_t *ret);
