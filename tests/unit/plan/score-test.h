/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Machines and fault tables in a line, for the tests of what is computed from them. Include after <cmocka.h>. */

#include "plan/pack/score.h"

#include <stdlib.h>

/* Four nodes in a ring, on which the opposite one is reached over either neighbour. */
#define RING "numa:4 l3:1 core:2 pu:1 distances=10,21,31,21,21,10,21,31,31,21,10,21,21,31,21,10"

/* Two boards of two nodes each, and nothing between them. */
#define BOARDS "numa:4 l3:1 core:2 pu:1 distances=10,16,22,22,16,10,22,22,22,22,10,16,22,22,16,10"

static inline Topology *machine_new(const char *synthetic)
{
    Topology *topology = NULL;
    char *error = NULL;

    if (topology_load(&(TopologyOptions){.synthetic = synthetic}, &topology, &error) < 0)
        fail_msg("%s", error);
    return topology;
}

/* Averages of `n` nodes, as after one sequence of so many private accesses. */
static inline void table_init(Faults *f, uint32_t n, const uint64_t memory[])
{
    assert_int_equal(faults_init(f, n), 0);
    for (uint32_t i = 0; i < n; i++)
        faults_accessed(f, (NodeIx){(int32_t)i}, FAULTS_KIND_PRIVATE, memory[i]);
    faults_fold(f, 1000000, NULL);
}

#define TABLE(f, ...) \
    table_init(f, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})
