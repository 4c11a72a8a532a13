/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The fault averages of P11. One sequence is one look at all memory of a task; after it each average is halved and gets
 * what was counted in it. Old habits are forgotten within a few sequences, and no division by time is needed.
 *
 * Worked example, 1000 accesses in each sequence: 1000 1500 1750 1875 1938 1969 1985 1993 ... 2000. The halves are
 * rounded down: 1875 - 937 + 1000 = 1938.
 *
 * The run time side is a share: a task that ran 600 ms of a period of 1 s, 450 of it on node 0, adds
 * (600 * 65536 / 1000) * 450 / 600 = 29491 there. Two additions of one to the divisors keep them from being zero.
 *
 * What it does badly: with residency as the only evidence the "accesses" are pages that lie there, used or not. */

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

void faults_ran(Faults *f, NodeIx cpu_node, uint64_t usec)
{
    node_of(f, cpu_node)->run_usec += usec;
}

/* `*average` becomes its next value, and so does the sum it is part of. */
static void fold(uint64_t *average, uint64_t now, uint64_t *sum)
{
    uint64_t next = *average - *average / 2 + now;

    if (sum)
        *sum += next - *average;
    *average = next;
}

void faults_fold(Faults *task, uint64_t period_usec, Faults *group)
{
    uint64_t run_usec = 0, activity;

    assert(!group || group->n_nodes == task->n_nodes);
    for (uint32_t i = 0; i < task->n_nodes; i++)
        run_usec += task->nodes[i].run_usec;
    activity = MIN(run_usec, period_usec) * FAULTS_CPU_ONE / (period_usec + 1);

    for (uint32_t i = 0; i < task->n_nodes; i++) {
        FaultsNode *t = &task->nodes[i], *g = group ? &group->nodes[i] : NULL;

        for (unsigned k = 0; k < FAULTS_KIND_MAX; k++) {
            fold(&t->memory[k], t->memory_now[k], g ? &g->memory[k] : NULL);
            t->memory_now[k] = 0;
        }
        fold(&t->cpu, activity * t->run_usec / (run_usec + 1), g ? &g->cpu : NULL);
        t->run_usec = 0;
    }
    task->n_sequences += task->n_sequences < UINT32_MAX;
}

void faults_join(Faults *group, const Faults *task)
{
    assert(group->n_nodes == task->n_nodes);
    for (uint32_t i = 0; i < task->n_nodes; i++) {
        for (unsigned k = 0; k < FAULTS_KIND_MAX; k++)
            group->nodes[i].memory[k] += task->nodes[i].memory[k];
        group->nodes[i].cpu += task->nodes[i].cpu;
    }
}

void faults_leave(Faults *group, const Faults *task)
{
    assert(group->n_nodes == task->n_nodes);
    for (uint32_t i = 0; i < task->n_nodes; i++) {
        for (unsigned k = 0; k < FAULTS_KIND_MAX; k++) {
            assert(group->nodes[i].memory[k] >= task->nodes[i].memory[k]);
            group->nodes[i].memory[k] -= task->nodes[i].memory[k];
        }
        assert(group->nodes[i].cpu >= task->nodes[i].cpu);
        group->nodes[i].cpu -= task->nodes[i].cpu;
    }
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
