/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From measurements of a process to a verdict: does its placement cost it anything, and what would help?
 * Pure; diagnose/survey.h measures. Results state their uncertainty: the node of each page is known, but not
 * which thread uses which part of the memory. */

#include "topo/topology.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum DiagnoseVerdict {
    DIAGNOSE_UNREADABLE, /* where its memory lies cannot be read */
    DIAGNOSE_ONE_NODE,   /* of the machine */
    DIAGNOSE_IDLE,       /* it hardly runs */
    DIAGNOSE_SMALL,      /* its memory fits in caches */
    DIAGNOSE_PLACED,     /* by numaplaced */
    DIAGNOSE_LOCAL,      /* most of what it uses is local */
    DIAGNOSE_FULL,       /* its threads wait, and no CPU of the machine is idle */
    DIAGNOSE_WAITS,      /* they wait, while CPUs are idle that they may use */
    DIAGNOSE_PIN_WAITS,  /* they wait, while a foreign mask or cpuset keeps them from idle CPUs */
    DIAGNOSE_PIN_FAR,    /* a foreign mask or cpuset keeps them from their memory */
    DIAGNOSE_BOUND_FAR,  /* a foreign memory policy keeps its memory from them */
    DIAGNOSE_THREADS_FAR,
    DIAGNOSE_MEMORY_FAR,
    DIAGNOSE_BANDWIDTH, /* it needs more than one node, and one node has its memory */
    DIAGNOSE_UNCERTAIN, /* it depends on which thread uses which part of its memory */
    DIAGNOSE_NOWHERE,   /* much is remote, and no better place was found for it */
    DIAGNOSE_MAX,
    DIAGNOSE_INVALID = -EINVAL,
} DiagnoseVerdict;

/* "threads-far", and one sentence, for --json and people. */
const char *diagnose_verdict_name(DiagnoseVerdict verdict);
const char *diagnose_verdict_text(DiagnoseVerdict verdict);

/* Whether something is wrong that can be fixed. */
bool diagnose_is_alarm(DiagnoseVerdict verdict);

/* Averages over the observation. CPU time is in permille of one CPU. */
typedef struct DiagnoseFacts {
    const Topology *topology;
    uint64_t run, wait;
    const uint64_t *run_node; /* [n_nodes]: the part of `run` on each node */
    /* The run time of each thread on the node where it ran most: the most of `run` that can have been near
     * memory of its own. */
    uint64_t run_stays;
    const uint64_t *node_bytes; /* [n_nodes]; NULL: not known */
    uint64_t bound_bytes;       /* of these, bound to nodes where it hardly runs (mbind(2), numactl) */
    /* Idle CPU time: of the CPUs that its threads may use, of its cpuset, and of the machine. */
    uint64_t idle_allowed, idle_cpuset, idle_machine;
    hwloc_const_bitmap_t allowed_nodes; /* NodeIx: of the CPUs that its threads may use */
    hwloc_const_bitmap_t cpuset_nodes;  /* NodeIx: of the CPUs in its cpuset */
    bool pinned;                        /* most of it runs with masks narrower than its cpuset */
    bool confined;                      /* the cpuset lacks some CPUs */
    bool placed;                        /* numaplaced has given it a home */
    hwloc_const_bitmap_t home_nodes;    /* NodeIx: where it would be placed; NULL: nowhere */
} DiagnoseFacts;

#define DIAGNOSE_UNKNOWN UINT32_MAX

typedef struct Diagnosis {
    DiagnoseVerdict verdict;
    bool by_cpuset; /* PIN_...: by a cpuset, not a mask */
    /* Local memory accesses in permille: if it uses all of its memory evenly, and at least and at most,
     * whichever thread uses which part. DIAGNOSE_UNKNOWN: unknown where its memory lies. */
    uint32_t local, local_least, local_most;
    uint32_t waits;      /* waiting time, permille of the CPU time it wants */
    uint32_t gain_most;  /* permille of its time that the best placement could save at most */
    uint64_t move_bytes; /* memory that would have to move for that */
} Diagnosis;

void diagnose(const DiagnoseFacts *facts, Diagnosis *ret);
