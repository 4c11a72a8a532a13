/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A packing problem that tests fill in, and functions that solve and check it. */

#include "fixture.h"
#include "plan/pack/pack.h"

#define NODES     16U
#define GROUPS    40U
#define MIB       (1024ULL * 1024)
#define GIB       (1024ULL * MIB)
#define ALL_OF(n) ((1ULL << (n)) - 1)

typedef struct Instance {
    PackNode nodes[NODES];
    uint32_t distances[NODES * NODES];
    PackGroup groups[GROUPS];
    uint64_t memory[GROUPS][NODES];
    uint32_t cpusets[2 * NODES];
    PackProblem problem;
    PackNodes sets[GROUPS];
} Instance;

static inline void instance_init(Instance *in, uint32_t n_nodes, uint32_t capacity, uint32_t far)
{
    memset(in, 0, sizeof(*in));
    for (uint32_t i = 0; i < n_nodes; i++) {
        in->nodes[i] = (PackNode){.capacity_permille = capacity, .free_bytes = 1024 * GIB, .key = i};
        for (uint32_t k = 0; k < n_nodes; k++)
            in->distances[i * n_nodes + k] = i == k ? 10 : far;
    }
    in->problem = (PackProblem){.nodes = in->nodes,
                                .distances = in->distances,
                                .n_nodes = n_nodes,
                                .allowed_imbalance_permille = 1000,
                                .groups = in->groups};
}

/* Adds a group with gib[node] GiB of memory on each node; NULL: not known. */
static inline PackGroup *add_group(Instance *in, uint32_t demand, const uint64_t *gib)
{
    uint32_t i = in->problem.n_groups++;

    in->groups[i] = (PackGroup){.id = i + 1,
                                .mode = PACK_MODE_AUTO,
                                .demand_permille = demand,
                                .min_gain_permille = 30,
                                .allowed = ALL_OF(in->problem.n_nodes)};
    if (gib) {
        for (uint32_t k = 0; k < in->problem.n_nodes; k++)
            in->memory[i][k] = gib[k] * GIB;
        in->groups[i].memory_bytes = in->memory[i];
    }
    return &in->groups[i];
}

static inline void solve(Instance *in)
{
    assert_int_equal(pack_solve(&in->problem, in->sets), 0);
}

static inline uint64_t cost_of(const Instance *in, const PackNodes *sets)
{
    PackCost cost;

    assert_int_equal(pack_cost(&in->problem, sets, &cost), 0);
    return cost.total;
}

static inline void go_home(Instance *in)
{
    for (uint32_t i = 0; i < in->problem.n_groups; i++)
        if (in->sets[i])
            in->groups[i].home = in->sets[i];
}

static inline void assert_stable(Instance *in)
{
    PackNodes before[GROUPS];

    memcpy(before, in->sets, sizeof(before));
    go_home(in);
    solve(in);
    assert_memory_equal(before, in->sets, in->problem.n_groups * sizeof(*before));
}
