/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The fault averages of P11. In one sequence all memory of a task is looked at once; after it each average is halved,
 * and the new count is added. Old behaviour is forgotten within a few sequences, and no division by time is needed.
 *
 * Worked example, 1000 accesses in each sequence: 1000 1500 1750 1875 1938 1969 1985 1993 ... 2000. The halves are
 * rounded down: 1875 - 937 + 1000 = 1938.
 *
 * The kernel also counts on which node a task ran when it faulted, but does not export that.
 *
 * What it does badly: with residency as the only evidence, the "accesses" are pages that lie there, used or not. */

#include "world/faults.h"

#include "base/util.h"

int faults_init(Faults *f, uint32_t n_nodes)
{
    FaultsNode *nodes = calloc(MAX(n_nodes, 1U), sizeof(*nodes));

    if (!nodes)
        return -ENOMEM;
    *f = (Faults){.nodes = nodes, .n_nodes = n_nodes};
    return 0;
}

void faults_done(Faults *f)
{
    free(f->nodes);
    *f = (Faults){0};
}

static FaultsNode *node_of(const Faults *f, NodeIx node)
{
    assert(node.i >= 0 && (uint32_t)node.i < f->n_nodes);
    return &f->nodes[node.i];
}

void faults_accessed(Faults *f, NodeIx memory_node, FaultsKind kind, uint64_t n)
{
    node_of(f, memory_node)->memory_now[kind] += n;
}

void faults_fold(Faults *f)
{
    for (uint32_t i = 0; i < f->n_nodes; i++)
        for (unsigned k = 0; k < FAULTS_KIND_MAX; k++) {
            FaultsNode *node = &f->nodes[i];

            node->memory[k] += node->memory_now[k] - node->memory[k] / 2;
            node->memory_now[k] = 0;
        }
    f->n_sequences += f->n_sequences < UINT32_MAX;
}

uint64_t faults_memory(const Faults *f, NodeIx node)
{
    const FaultsNode *n = node_of(f, node);

    return n->memory[FAULTS_KIND_PRIVATE] + n->memory[FAULTS_KIND_SHARED];
}

uint64_t faults_kind(const Faults *f, FaultsKind kind)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < f->n_nodes; i++)
        sum += f->nodes[i].memory[kind];
    return sum;
}

uint64_t faults_total(const Faults *f)
{
    return faults_kind(f, FAULTS_KIND_PRIVATE) + faults_kind(f, FAULTS_KIND_SHARED);
}
