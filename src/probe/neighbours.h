/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What else on this machine decides where tasks run, where their memory lies, or which CPUs are available. */

#include <errno.h>
#include <stdbool.h>

/* Longer lists of CPUs end in "...". */
#define NEIGHBOUR_DETAIL_SIZE 128U

/* In the order of display. */
typedef enum NeighbourKind {
    NEIGHBOUR_NUMAD,
    NEIGHBOUR_NUMA_BALANCING, /* kernel.numa_balancing is not 0 */
    NEIGHBOUR_SCHED_EXT,      /* the scheduler is a BPF program */
    NEIGHBOUR_SCHED_CACHE,    /* cache-aware scheduling of Linux 7, as far as debugfs shows it */
    NEIGHBOUR_ISOLATED,       /* isolcpus= */
    NEIGHBOUR_PARTITION,      /* CPUs that a cpuset partition has taken from all others */
    NEIGHBOUR_NOHZ_FULL,
    NEIGHBOUR_CPU_MANAGER, /* of the kubelet, with the static policy */
    NEIGHBOUR_TUNED,
    NEIGHBOUR_IRQBALANCE,
    NEIGHBOUR_MAX,
    NEIGHBOUR_INVALID = -EINVAL,
} NeighbourKind;

typedef struct Neighbour {
    bool present;
    char detail[NEIGHBOUR_DETAIL_SIZE]; /* "pid 812", a list of CPUs, a value; may be "" */
} Neighbour;

typedef struct Neighbours {
    Neighbour of[NEIGHBOUR_MAX];
} Neighbours;

/* Reads some ten small files below `root_fd`. Daemons are found by the PID file or socket that they keep in
 * /run, so one started by hand without it is missed. What cannot be read counts as absent. Returns 0 or
 * -ENOMEM; or -EMFILE or -ENFILE, when nothing is known for lack of descriptors. */
int neighbours_read(int root_fd, Neighbours *ret);

/* The name: "numad", "numa-balancing", ...; and what numaplace does about it, to follow "numad: ". */
const char *neighbour_name(NeighbourKind kind);
const char *neighbour_text(NeighbourKind kind);
