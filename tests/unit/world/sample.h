/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A small World to test with: two nodes of two cores with two threads each. */

#include "../cpu-list.h"
#include "../machine.h"
#include "world/world.h"

static inline World *sample_empty(void)
{
    CLEANUP(topology_unref_p) Topology *topology = test_machine("numa:2 l3:1 core:2 pu:2");
    World *world = NULL;

    assert_int_equal(world_new(topology, &world), 0);
    world->now_usec = 1000000;
    return world;
}

static inline CpuMask sample_mask(World *world, const char *list)
{
    return test_mask(world->pool, list);
}

static inline int sample_process(World *world, pid_t pid, int workload, int group)
{
    const Process value = {
        .pid = pid,
        .parent = 1,
        .start_ticks = (uint64_t)pid * 10,
        .comm = intern_string(world->pool, "java"),
        .cgroup = intern_string(world->pool, "/"),
        .cpuset = sample_mask(world, "0-7"),
        .workload = {workload},
        .group = {group},
    };

    return world_add_process(world, &value);
}

static inline int sample_task(World *world, pid_t pid, pid_t tid, uint16_t run, uint16_t wait)
{
    const Process *process = world_process(world, pid);
    Task value = {
        .tid = tid,
        .process = {(int32_t)(process - world->processes)},
        .start_ticks = (uint64_t)tid * 10,
        .comm = "worker",
        .last_cpu = {0},
        .run_permille = run,
        .wait_permille = wait,
        .allowed = sample_mask(world, "0-3"),
        .original = sample_mask(world, "0-7"),
    };

    return world_add_task(world, &value);
}

static inline int sample_lease(World *world, pid_t pid, pid_t tid, int cpu, uint64_t group_id)
{
    const Lease value = {
        .task = {pid, tid, (uint64_t)tid * 10},
        .group_id = group_id,
        .cpu = {cpu},
        .since_usec = world->now_usec,
        .until_usec = world->now_usec + 1,
        .since_tick = world->tick,
    };

    return world_add_lease(world, &value);
}

static inline void sample_check(const World *world)
{
    CLEANUP_FREE char *what = NULL;

    if (world_check(world, &what) < 0)
        fail_msg("%s", what);
}

/* Two workloads with a group each; process 100 with threads 100 and 101, process 200 with thread 200; CPU 4
 * is lent to 101. */
static inline World *sample_world(void)
{
    World *world = sample_empty();

    assert_int_equal(world_add_workload(world, "jvm", 0), 0);
    assert_int_equal(world_add_workload(world, "db", 1), 1);
    assert_int_equal(world_add_group(world, (WorkloadIx){0}, ""), 0);
    assert_int_equal(world_add_group(world, (WorkloadIx){1}, "200"), 1);
    world->groups[0].home = sample_mask(world, "0-3");
    world->groups[0].home_nodes = sample_mask(world, "0");
    assert_int_equal(sample_process(world, 100, 0, 0), 0);
    assert_int_equal(sample_process(world, 200, 1, 1), 1);
    assert_int_equal(sample_task(world, 100, 100, 300, 10), 0);
    assert_int_equal(sample_task(world, 100, 101, 400, 20), 1);
    assert_int_equal(sample_task(world, 200, 200, 500, 30), 2);
    assert_int_equal(sample_lease(world, 100, 101, 4, 1), 0);
    for (uint32_t i = 0; i < world->topology->cpu_limit; i++)
        world->cpus[i].online = world->cpus[i].usable = true;
    world_sum(world);
    sample_check(world);
    return world;
}
