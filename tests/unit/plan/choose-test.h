/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Jobs, where their memory is and what they want, for tests of the choice of homes. */

#include "fixture.h"

#include "base/util.h"

#define EACH "[Workload]\nGroupBy=process\n"
#define AUTO EACH "[Placement]\nMode=auto\n"
/* Two nodes of two CPUs, and four of eight. */
#define SMALL "numa:2 l3:1 core:2 pu:1 distances=10,20,20,10"
#define FOUR  "numa:4 l3:1 core:8 pu:1 distances=10,20,20,20,20,10,20,20,20,20,10,20,20,20,20,10"

#define MIB ((uint64_t)1 << 20)

/* Adds a process whose threads use a whole CPU each: the first runs on `cpu`, each further one `step` CPUs
 * on, modulo the machine. */
static inline void add_job(Fixture *f, pid_t pid, unsigned n_threads, int cpu, int step)
{
    fixture_process(f, pid, "a", NULL);
    for (unsigned i = 0; i < n_threads; i++)
        fixture_task(f, pid, pid + (pid_t)i, 0)->last_cpu.i =
            (cpu + (int)i * step) % (int)f->world->topology->cpu_limit;
}

static inline void set_memory(Fixture *f, pid_t pid, const uint64_t *mib)
{
    CLEANUP_FREE uint64_t *bytes = calloc(f->world->topology->n_nodes, sizeof(*bytes));

    assert_non_null(bytes);
    for (uint32_t i = 0; i < f->world->topology->n_nodes; i++)
        bytes[i] = mib[i] * MIB;
    fixture_bytes(f, pid, bytes);
}

static inline const Group *group_of(Fixture *f, pid_t pid)
{
    return &f->world->groups[world_process(f->world, pid)->group.i];
}

static inline void assert_nodes(Fixture *f, pid_t pid, const char *nodes)
{
    const Group *group = group_of(f, pid);

    if (nodes) {
        assert_ptr_equal(group->home_nodes, fixture_mask(f, nodes));
        assert_false(group->roams);
    } else {
        assert_null(group->home_nodes);
    }
}

static inline void seconds(Fixture *f, uint64_t n)
{
    f->world->now_usec += n * 1000000;
    f->world->tick += n * 10;
}

/* Makes all threads of the process want this share of a CPU from now on. */
static inline void set_demand(Fixture *f, pid_t pid, uint16_t run, uint16_t wait)
{
    size_t n, first = world_process_tasks(f->world, world_process(f->world, pid), &n);

    for (size_t i = first; i < first + n; i++) {
        Task *task = &f->world->tasks[i];

        task->run_permille = task->run_before_permille = task->run_ewma_permille = run;
        task->wait_permille = task->wait_before_permille = task->wait_ewma_permille = wait;
    }
}
