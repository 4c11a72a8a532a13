/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decaying averages of the accesses of one task to memory on each node (P11). Source: task_numa_placement()
 * of Linux, restated.
 *
 * What is counted depends on the evidence: sampled accesses, hint faults, or resident pages. Averages of one
 * table are comparable; averages from different kinds of evidence are not. It is here and not in plan/
 * because sensing fills it in. */

#include "base/ids.h"

#include <errno.h>
#include <stdint.h>

typedef enum FaultsKind {
    FAULTS_KIND_PRIVATE, /* the same task accessed the page last; residency is counted as this, too */
    FAULTS_KIND_SHARED,
    FAULTS_KIND_MAX,
    FAULTS_KIND_INVALID = -EINVAL,
} FaultsKind;

typedef struct FaultsNode {
    /* Averages: each sequence halves the old value and adds the new accesses, so a steady rate shows as twice
     * the rate. The half that is taken away is rounded down, so a node once accessed never falls below 1, and
     * a large value that falls stops at twice the rate plus 1. */
    uint64_t memory[FAULTS_KIND_MAX];     /* accesses to memory of this node */
    uint64_t memory_now[FAULTS_KIND_MAX]; /* in the present sequence */
} FaultsNode;

typedef struct Faults {
    FaultsNode *nodes; /* [n_nodes], by NodeIx */
    uint32_t n_nodes;
    uint32_t n_sequences; /* completed; stops at UINT32_MAX */
} Faults;

/* Returns 0 or -ENOMEM. */
int faults_init(Faults *f, uint32_t n_nodes);
void faults_done(Faults *f);

/* Counts accesses in the present sequence; `n` < 2^40 in one sequence. */
void faults_accessed(Faults *f, NodeIx memory_node, FaultsKind kind, uint64_t n);

/* Ends the sequence of a task. */
void faults_fold(Faults *f);

/* Sums of averages: of one node, private and shared; of one kind on all nodes; of all. */
uint64_t faults_memory(const Faults *f, NodeIx node);
uint64_t faults_kind(const Faults *f, FaultsKind kind);
uint64_t faults_total(const Faults *f);
