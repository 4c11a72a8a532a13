/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the kernel's own NUMA balancing knows of a thread (evidence A): the end of /proc/PID/task/TID/sched, which is
 * there with CONFIG_SCHED_DEBUG and CONFIG_NUMA_BALANCING. The numbers are the kernel's averages (P11): halved with
 * each of its scans, so they have no unit but can be compared within a thread. */

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
    pid_t group;            /* numa_group_id, a thread id; 0: none. What status calls Ngid */
    uint64_t total_faults;  /* of the thread; 0: nothing is known */
    uint32_t scan_sequence; /* of the process; stays at 0 until it was scanned once */
    uint32_t n_nodes;
    SchedNumaNode nodes[SCHED_NUMA_NODES_MAX]; /* ascending; those that are online */
} SchedNuma;

/* Parses the whole file. Returns 0; -ENOENT when it says nothing of NUMA: the kernel was built without, or it is the
 * file of a thread without memory of its own; -EINVAL when what it says is not of the form, or is cut. *ret is
 * written anyhow. */
int sched_numa_parse(const char *text, SchedNuma *ret);

/* The group in /proc/PID/status or that of a thread; 0: none. Returns 0, or -ENOENT when there is no such line. */
int sched_numa_parse_status(const char *text, pid_t *ret);
