/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From what was measured of a process to a verdict about it: does its placement cost it anything, and what would help?
 * Pure; diagnose/survey.h measures. Everything is said with the uncertainty it has: where memory lies is known by the
 * page, who uses which part of it is not. */

#include "topo/topology.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum DiagnoseVerdict {
    DIAGNOSE_UNREADABLE, /* where its memory lies cannot be read */
    DIAGNOSE_ONE_NODE,   /* of the machine */
    DIAGNOSE_IDLE,       /* it hardly runs */
    DIAGNOSE_SMALL,      /* its memory fits caches */
    DIAGNOSE_PLACED,     /* by numaplaced */
    DIAGNOSE_LOCAL,      /* most of what it uses is local */
    DIAGNOSE_FULL,       /* its threads wait, and no CPU of the machine is idle */
    DIAGNOSE_WAITS,      /* they wait, while CPUs are idle that they may use */
    DIAGNOSE_PIN_WAITS,  /* they wait, while CPUs are idle that somebody's mask or cpuset keeps them from */
    DIAGNOSE_PIN_FAR,    /* somebody's mask or cpuset keeps them from their memory */
    DIAGNOSE_BOUND_FAR,  /* somebody's memory policy keeps its memory from them */
    DIAGNOSE_THREADS_FAR,
    DIAGNOSE_MEMORY_FAR,
    DIAGNOSE_BANDWIDTH, /* it needs more than one node, and one node has its memory */
    DIAGNOSE_UNCERTAIN, /* it depends on who uses which part of its memory */
    DIAGNOSE_NOWHERE,   /* much is remote, and no better place was found for it */
    DIAGNOSE_MAX,
    DIAGNOSE_INVALID = -EINVAL,
} DiagnoseVerdict;

/* "threads-far", and one sentence, for --json and people. */
const char *diagnose_verdict_name(DiagnoseVerdict verdict);
const char *diagnose_verdict_text(DiagnoseVerdict verdict);

/* Whether something is wrong that can be helped. */
bool diagnose_is_alarm(DiagnoseVerdict verdict);

/* Averages over the time it was looked at. CPU time is in permille of one CPU. */
typedef struct DiagnoseFacts {
    const Topology *topology;
    uint64_t run, wait;
    const uint64_t *run_node; /* [n_nodes]: what of `run` was seen on each node */
    /* What each thread ran on the node where it ran most: the most of `run` that can have been near what is its own. */
    uint64_t run_stays;
    const uint64_t *node_bytes; /* [n_nodes]; NULL: not known */
    uint64_t
        bound_bytes; /* of these, that a memory policy keeps on nodes where it hardly runs (mbind(2), numactl) */
    /* CPU time that was left idle: on CPUs that its threads may use, that its cpuset has, and on all. */
    uint64_t idle_allowed, idle_cpuset, idle_machine;
    hwloc_const_bitmap_t allowed_nodes; /* NodeIx: of the CPUs that its threads may use */
    hwloc_const_bitmap_t cpuset_nodes;  /* NodeIx: of those that its cpuset has */
    bool pinned;                        /* most of what runs of it has a mask narrower than its cpuset */
    bool confined;                      /* the cpuset has not all CPUs */
    bool placed;                        /* numaplaced has given it a home */
    hwloc_const_bitmap_t home_nodes;    /* NodeIx: where acting would place it; NULL: nowhere */
} DiagnoseFacts;

#define DIAGNOSE_UNKNOWN UINT32_MAX

typedef struct Diagnosis {
    DiagnoseVerdict verdict;
    bool by_cpuset; /* PIN_...: a cpuset, not a mask */
    /* Permille of its memory accesses that are local: if it uses all of its memory alike, and at least and at most,
     * whoever uses which part. DIAGNOSE_UNKNOWN: where its memory lies is not known. */
    uint32_t local, local_least, local_most;
    uint32_t waits; /* permille of the CPU time it wants */
    uint32_t
        gain_most; /* permille of its time that the best placement would save, if it did nothing but that */
    uint64_t move_bytes; /* that would have to move for it */
} Diagnosis;

void diagnose(const DiagnoseFacts *facts, Diagnosis *ret);
