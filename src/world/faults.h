/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who accesses memory on which node: decaying averages of one task, or of a group (P11).
 * Source: task_numa_placement() of Linux, restated.
 *
 * What is counted depends on the evidence: sampled accesses, hint faults, or resident pages. Averages of one table are
 * comparable, those of two kinds of evidence are not. It is here and not in plan/ because sensing fills it in. */

#include "base/ids.h"

#include <errno.h>
#include <stdint.h>

typedef enum FaultsKind {
    FAULTS_KIND_PRIVATE, /* the last one to access the page was the same task; also what residency is counted as */
    FAULTS_KIND_SHARED,
    FAULTS_KIND_MAX,
    FAULTS_KIND_INVALID = -EINVAL,
} FaultsKind;

/* What a run time equal to the whole period counts for. */
#define FAULTS_CPU_ONE 65536U

typedef struct FaultsNode {
    /* Averages: each sequence takes half away and adds what is new, so a steady rate shows as twice that rate.
     * Halves are rounded down; so a node once accessed never falls below 1, and a large value that sinks stops at
     * twice the rate plus 1. */
    uint64_t memory[FAULTS_KIND_MAX]; /* accesses to memory of this node */
    uint64_t cpu; /* share of run time on this node, FAULTS_CPU_ONE the whole; so up to 2x */

    /* In the present sequence. */
    uint64_t memory_now[FAULTS_KIND_MAX];
    uint64_t run_usec;
} FaultsNode;

typedef struct Faults {
    FaultsNode *nodes; /* [n_nodes], by NodeIx */
    uint32_t n_nodes;
    uint32_t n_sequences; /* completed; stops at UINT32_MAX */
} Faults;

/* Returns 0 or -ENOMEM. */
int faults_init(Faults *f, uint32_t n_nodes);
void faults_done(Faults *f);

/* Counts in the present sequence. `n` < 2^40 and `usec` < 2^40 in one sequence. */
void faults_accessed(Faults *f, NodeIx memory_node, FaultsKind kind, uint64_t n);

/* The kernel counts on which node a task ran when it faulted, and does not export it. Run time by the node of the last
 * CPU is the nearest that can be had. */
void faults_ran(Faults *f, NodeIx cpu_node, uint64_t usec);

/* Ends the sequence of a task that took `period_usec`, and gives its group (NULL: none) the same differences. A
 * group is the sum of its members at any time; it has no sequence of its own that must be ended. */
void faults_fold(Faults *task, uint64_t period_usec, Faults *group);

/* A task with its averages enters or leaves a group. Both tables have the same number of nodes. */
void faults_join(Faults *group, const Faults *task);
void faults_leave(Faults *group, const Faults *task);

/* Averages: of one node, private and shared; of one kind, all nodes; of everything. */
uint64_t faults_memory(const Faults *f, NodeIx node);
uint64_t faults_kind(const Faults *f, FaultsKind kind);
uint64_t faults_total(const Faults *f);
