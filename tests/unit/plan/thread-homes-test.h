/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A process of four busy threads on a small machine, for tests of threads on different nodes. */

#include "fixture.h"

/* Two nodes of two CPUs. */
#define SMALL "numa:2 l3:1 core:2 pu:1 distances=10,20,20,10"
#define AUTO  "[Workload]\nGroupBy=process\n[Placement]\nMode=auto\n"

/* Sets up one process with four busy threads, tids 10 to 13. */
static inline void init_with(Fixture *f, const char *policy)
{
    fixture_init_with(f, SMALL, policy);
    fixture_threads(f, 10, 4);
    fixture_cpus(f, 0, 3, 1000, 0);
}

static inline void init(Fixture *f)
{
    init_with(f, AUTO);
}

static inline void use(Fixture *f, pid_t tid, uint64_t node0, uint64_t node1, uint32_t private_permille,
                       pid_t buddy)
{
    TaskKey key = buddy > 0 ? world_task_key(f->world, fixture_find(f, 10, buddy)) : (TaskKey){0};

    fixture_use(f, 10, tid, (uint64_t[]){node0, node1}, private_permille, key);
}

static inline void assert_nodes(Fixture *f, const int *nodes)
{
    for (int i = 0; i < 4; i++)
        assert_int_equal(fixture_find(f, 10, 10 + i)->home_node.i, nodes[i]);
}

static inline void place(Fixture *f)
{
    fixture_place(f);
    fixture_assert_settled(f, true);
}

/* Sets up the process, two threads on each node beside their memory. */
static inline void start_apart(Fixture *f)
{
    init(f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, 1000, 0);
    place(f);
    assert_nodes(f, (int[]){0, 0, 1, 1});
}
