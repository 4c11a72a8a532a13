/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "sample.h"

static void test_lookups(void **state)
{
    CLEANUP(world_free_p) World *world = sample_world();
    size_t n = 0;

    assert_ptr_equal(world_process(world, 200), &world->processes[1]);
    assert_null(world_process(world, 150));
    assert_null(world_process(world, 300));
    assert_ptr_equal(world_task_by_tid(world, 100, 101), &world->tasks[1]);
    assert_null(world_task_by_tid(world, 100, 200));
    assert_null(world_task_by_tid(world, 100, 99));
    assert_null(world_task_by_tid(world, 300, 300));
    assert_ptr_equal(world_task(world, (TaskKey){200, 200, 2000}), &world->tasks[2]);
    assert_null(world_task(world, (TaskKey){200, 200, 2001})); /* the TID was reused */
    assert_null(world_task(world, (TaskKey){200, 0, 2000}));
    assert_ptr_equal(world_group_by_id(world, 2), &world->groups[1]);
    assert_null(world_group_by_id(world, 3));
    assert_ptr_equal(world_workload_by_name(world, "db"), &world->workloads[1]);
    assert_null(world_workload_by_name(world, "dba"));

    assert_int_equal(world_process_tasks(world, &world->processes[0], &n), 0);
    assert_int_equal(n, 2);
    assert_int_equal(world_process_tasks(world, &world->processes[1], &n), 2);
    assert_int_equal(n, 1);
    assert_int_equal(sample_process(world, 150, -1, -1), 1);
    assert_int_equal(world_process_tasks(world, world_process(world, 150), &n), 2);
    assert_int_equal(n, 0);

    assert_int_equal(world_task_key(world, &world->tasks[2]).pid, 200);
    assert_int_equal(world_task_key(world, &world->tasks[2]).tid, 200);
    assert_int_equal(world_task_key(world, &world->tasks[2]).start_ticks, 2000);
}

static void test_empty(void **state)
{
    CLEANUP(world_free_p) World *world = sample_empty();

    sample_check(world);
    assert_null(world_process(world, 1));
    assert_null(world_task_by_tid(world, 1, 1));
    assert_null(world_group_by_id(world, 1));
    assert_null(world_workload_by_name(world, ""));
    assert_int_equal(world_compact(world), 0);
    sample_check(world);
    assert_null(world_free(NULL));
}

static void test_add_out_of_order(void **state)
{
    CLEANUP(world_free_p) World *world = sample_world();

    /* A process and a task are inserted in front: everything behind moves, and references follow. */
    assert_int_equal(sample_process(world, 50, 0, 0), 0);
    sample_check(world);
    assert_int_equal(sample_task(world, 50, 51, 1, 1), 0);
    assert_int_equal(sample_task(world, 50, 50, 1, 1), 0);
    assert_int_equal(sample_task(world, 100, 99, 1, 1), 2);
    sample_check(world);
    assert_int_equal(world_task_key(world, world_task_by_tid(world, 200, 200)).pid, 200);
    assert_int_equal(world_task_by_tid(world, 100, 101)->lease, 0);
}

static void test_add_twice(void **state)
{
    CLEANUP(world_free_p) World *world = sample_world();

    assert_int_equal(sample_process(world, 100, 0, 0), -EEXIST);
    assert_int_equal(sample_process(world, 200, 0, 0), -EEXIST);
    assert_int_equal(sample_task(world, 100, 100, 0, 0), -EEXIST);
    assert_int_equal(sample_task(world, 200, 200, 0, 0), -EEXIST);
    assert_int_equal(world_add_workload(world, "jvm", 7), -EEXIST);
    assert_int_equal(sample_lease(world, 100, 100, 4, 1), -EEXIST); /* the CPU is lent */
    assert_int_equal(sample_lease(world, 100, 101, 5, 1), -EEXIST); /* the task has a lease */
    assert_int_equal(sample_lease(world, 100, 102, 5, 1), -ESRCH);
    sample_check(world);
}

static void test_leases(void **state)
{
    CLEANUP(world_free_p) World *world = sample_world();

    assert_int_equal(sample_lease(world, 200, 200, 1, 2), 0);
    assert_int_equal(sample_lease(world, 100, 100, 7, 1), 2);
    sample_check(world);
    assert_int_equal(world_task_by_tid(world, 200, 200)->lease, 0);
    assert_int_equal(world_task_by_tid(world, 100, 101)->lease, 1);
    assert_int_equal(world_task_by_tid(world, 100, 100)->lease, 2);

    world_sum(world);
    assert_int_equal(world->groups[0].n_leases, 2);
    assert_int_equal(world->groups[1].n_leases, 1);

    world_remove_lease(world, 1);
    sample_check(world);
    assert_int_equal(world->n_leases, 2);
    assert_int_equal(world_task_by_tid(world, 100, 101)->lease, -1);
    assert_int_equal(world_task_by_tid(world, 100, 100)->lease, 1);
}

static void test_sums(void **state)
{
    CLEANUP(world_free_p) World *world = sample_world();

    assert_int_equal(world->groups[0].n_tasks, 2);
    assert_int_equal(world->groups[0].run_permille, 700);
    assert_int_equal(world->groups[0].wait_permille, 30);
    assert_int_equal(world->groups[0].n_leases, 1);
    assert_int_equal(world->workloads[1].n_processes, 1);
    assert_int_equal(world->workloads[1].n_tasks, 1);
    assert_int_equal(world->workloads[1].run_permille, 500);
    assert_int_equal(world->workloads[1].wait_permille, 30);

    world->tasks[0].gone = true;
    world->processes[1].gone = true;
    world_sum(world);
    assert_int_equal(world->groups[0].n_tasks, 1);
    assert_int_equal(world->groups[0].run_permille, 400);
    assert_int_equal(world->workloads[1].n_processes, 0);
    assert_int_equal(world->workloads[1].n_tasks, 0);
    assert_int_equal(world->workloads[1].run_permille, 0);
}

static void test_compact(void **state)
{
    CLEANUP(world_free_p) World *world = sample_world();
    size_t before = intern_pool_size(world->pool);

    assert_int_equal(sample_lease(world, 200, 200, 1, 2), 0);
    assert_non_null(intern_string(world->pool, "nobody holds this"));
    world->processes[1].shared = intern_string(world->pool, "0:1:77"); /* kept */
    world->tasks[1].gone = true;
    assert_int_equal(world_compact(world), 0);
    sample_check(world);
    assert_int_equal(world->n_tasks, 2);
    assert_int_equal(world->n_leases, 1); /* that of task 101 ended */
    assert_int_equal(world_task_by_tid(world, 200, 200)->lease, 0);
    assert_int_equal(world->groups[0].n_tasks, 1);
    assert_int_equal(intern_pool_size(world->pool), before + 1);

    /* A group goes with its last process, and the other group moves down. */
    world->processes[0].gone = true;
    assert_int_equal(world_compact(world), 0);
    sample_check(world);
    assert_int_equal(world->n_processes, 1);
    assert_int_equal(world->n_groups, 1);
    assert_int_equal(world->groups[0].id, 2);
    assert_int_equal(world->processes[0].group.i, 0);
    assert_int_equal(world->tasks[0].process.i, 0);
    assert_int_equal(world->n_workloads, 2);

    /* When a group is gone, its processes leave it; they are not removed with it. */
    world->groups[0].gone = true;
    assert_int_equal(world_compact(world), 0);
    sample_check(world);
    assert_int_equal(world->n_groups, 0);
    assert_int_equal(world->processes[0].group.i, -1);
    assert_int_equal(world->n_tasks, 1);
    assert_int_equal(world->n_leases, 1);
    assert_int_equal(world_add_group(world, (WorkloadIx){1}, ""), 0);
    assert_int_equal(world->groups[0].id, 3); /* ids are not reused */
}

static void test_memory(void **state)
{
    CLEANUP(world_free_p) World *world = sample_world();
    const uint64_t bytes[] = {1, UINT64_MAX}, others[] = {3, 4};
    Process copy;

    assert_null(world->processes[0].node_bytes);
    assert_int_equal(world_set_process_memory(world, &world->processes[0], bytes, 5), 0);
    assert_int_equal(world->processes[0].node_bytes[0], 1);
    assert_int_equal(world->processes[0].node_bytes[1], WORLD_MEMORY_MAX);
    assert_int_equal(world->processes[0].node_bytes_usec, 5);
    assert_int_equal(world_set_process_memory(world, &world->processes[1], others, 6), 0);
    sample_check(world);

    /* The array follows its process to another index, and stays with it. */
    copy = world->processes[0];
    copy.pid = 150;
    assert_int_equal(world_add_process(world, &copy), 1);
    assert_null(world->processes[1].node_bytes);
    assert_int_equal(world->processes[1].node_bytes_usec, 0);
    assert_int_equal(world->processes[2].node_bytes[0], 3);
    world->processes[0].gone = true;
    assert_int_equal(world_compact(world), 0);
    sample_check(world);
    assert_int_equal(world->processes[1].node_bytes[1], 4);

    assert_int_equal(world_set_process_memory(world, &world->processes[1], NULL, 0), 0);
    assert_null(world->processes[1].node_bytes);
    sample_check(world);
}

static void test_crowd(void **state)
{
    CLEANUP(world_free_p) World *world = sample_empty();
    size_t capacity;

    for (int i = 0; i < 100; i++)
        assert_int_equal(sample_process(world, 1000 * (i + 1), -1, -1), i);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(sample_task(world, 1000 * (i / 100 + 1), 1000 * (i / 100 + 1) + i % 100, 1, 0), i);
    sample_check(world);
    /* The array including spare capacity, and one mask for all. */
    assert_true(world->tasks_capacity * sizeof(Task) < 2000000); /* 200 bytes each */
    assert_true(intern_pool_size(world->pool) < 10);

    capacity = world->tasks_capacity;
    for (size_t i = 1; i < world->n_processes; i++)
        world->processes[i].gone = true;
    assert_int_equal(world_compact(world), 0);
    sample_check(world);
    assert_int_equal(world->n_tasks, 100);
    assert_true(world->tasks_capacity < capacity / 10); /* memory is released */
}

TEST_MAIN(NULL, NULL, test_lookups, test_empty, test_add_out_of_order, test_add_twice, test_leases, test_sums,
          test_compact, test_memory, test_crowd)
