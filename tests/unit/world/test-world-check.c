/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Each invariant is broken once, and must be found and named. */

#include "sample.h"

static void names(void (*harm)(World *world), const char *expected)
{
    CLEANUP(world_free_p) World *world = sample_world();
    CLEANUP_FREE char *what = NULL;

    harm(world);
    assert_int_equal(world_check(world, &what), -EUCLEAN);
    assert_string_equal(what, expected);
    assert_int_equal(world_check(world, NULL), -EUCLEAN);
}

static TaskUse *use(World *world, uint64_t measured_usec)
{
    assert_int_equal(
        world_set_task_use(world, &world->tasks[1], (uint64_t[]){1, 1}, 0, (TaskKey){0}, measured_usec), 0);
    return world->tasks[1].use;
}

/* Declares how to do harm, for the table below. */
#define HARM(name, statement)             \
    static void harm_##name(World *world) \
    {                                     \
        statement;                        \
    }

HARM(next_group, world->next_group_id = 0)
HARM(bucket, world->cross_node.updated_usec = world->now_usec + 1)
HARM(cpu_usable, world->cpus[3].online = false)
HARM(cpu_busy, world->cpus[3].busy_permille = 1001)
HARM(cpu_idle, world->cpus[3].idle_since_usec = world->now_usec + 1)
HARM(node_unknown, world->nodes[1].free_bytes = 1)
HARM(node_bytes, world->nodes[0] = ((NodeLoad){WORLD_MEMORY_MAX + 1, true}))
HARM(workload_name, world->workloads[0].name = "elsewhere")
HARM(workload_twice, world->workloads[1].name = world->workloads[0].name)
HARM(workload_bucket, world->workloads[1].cross_node.updated_usec = world->now_usec + 1)
HARM(group_id, world->groups[1].id = 3)
HARM(group_order, world->groups[1].id = 1)
HARM(group_workload, world->groups[1].workload.i = 2)
HARM(group_key, world->groups[1].key = NULL)
HARM(group_home, world->groups[0].home = world->topology->all_cpus)
HARM(group_half, world->groups[0].home_nodes = NULL)
HARM(group_nodes, world->groups[0].home_nodes = sample_mask(world, "2"))
HARM(group_before, world->groups[0].before_nodes = sample_mask(world, "1-2"))
HARM(group_wish, world->groups[1].wish_nodes = sample_mask(world, "2"))
HARM(process_order, world->processes[1].pid = 100)
HARM(process_name, world->processes[1].comm = NULL)
HARM(process_shared, world->processes[1].shared = "0:1:77")
HARM(process_workload, world->processes[1].workload.i = 2)
HARM(process_group, world->processes[1].group.i = 2)
HARM(process_other, world->processes[1].group.i = 0)
HARM(process_unmeasured, world->processes[1].node_bytes_usec = 1)
HARM(process_measured_later,
     assert_int_equal(world_set_process_memory(world, &world->processes[1], (uint64_t[]){0, 0}, 1000001), 0))
HARM(process_memory,
     assert_int_equal(world_set_process_memory(world, &world->processes[1], (uint64_t[]){0, 0}, 1), 0);
     world->processes[1].node_bytes[1] = WORLD_MEMORY_MAX + 1)
HARM(process_stall, world->processes[1].stall_usec = 1; world->processes[1].stall_permille = 1001)
HARM(process_stall_unmeasured, world->processes[1].stall_permille = 1)
HARM(process_traffic, world->processes[1].stall_usec = 1;
     world->processes[1].traffic_mb = WORLD_TRAFFIC_MAX + 1)
HARM(process_traffic_unmeasured, world->processes[1].traffic_mb = 1)
HARM(process_stall_later, world->processes[1].stall_usec = world->now_usec + 1)
HARM(task_process, world->tasks[2].process.i = 2)
HARM(task_order, world->tasks[1].tid = 100)
HARM(task_class, world->tasks[1].task_class = TASK_CLASS_MAX)
HARM(task_comm, memset(world->tasks[1].comm, 'a', WORLD_COMM_SIZE))
HARM(task_cpu, world->tasks[1].last_cpu.i = -2)
HARM(task_load, world->tasks[1].wait_before_permille = 1001)
HARM(task_ewma, world->tasks[1].run_ewma_permille = 1001)
HARM(task_mask, world->tasks[1].allowed = world->topology->all_cpus)
HARM(task_moved, world->tasks[1].last_move_usec = world->now_usec + 1)
HARM(task_use_later, use(world, 100)->stay.usec = 101)
HARM(task_use_node, use(world, 100)->stay.node.i = 2)
HARM(task_no_lease, world->tasks[0].lease = 1)
HARM(task_other_lease, world->tasks[0].lease = 0)
HARM(lease_cpu, world->leases[0].cpu.i = 8)
HARM(lease_holder, world->tasks[1].lease = -1)
HARM(lease_original, world->tasks[1].original = NULL)
HARM(lease_group, world->leases[0].group_id = 3)
HARM(lease_time, world->leases[0].until_usec = 1)

static void test_harm(void **state)
{
    static const struct {
        void (*harm)(World *world);
        const char *expected;
    } cases[] = {
        {harm_next_group, "the next group would have id 0"},
        {harm_bucket, "a bucket was updated after now"},
        {harm_cpu_usable, "CPU 3 is usable but not online"},
        {harm_cpu_busy, "CPU 3 is more than busy"},
        {harm_cpu_idle, "CPU 3 is idle since after now"},
        {harm_node_unknown, "node 1 has more free memory than can be"},
        {harm_node_bytes, "node 0 has more free memory than can be"},
        {harm_workload_name, "the name of workload 0 is not interned"},
        {harm_workload_twice, "workloads 0 and 1 have the same name"},
        {harm_workload_bucket, "a bucket was updated after now"},
        {harm_group_id, "group id 3 was never given out"},
        {harm_group_order, "group 1 is out of order"},
        {harm_group_workload, "group 2 is of no workload"},
        {harm_group_key, "the key of group 2 is not interned"},
        {harm_group_home, "the home of group 1 is not interned"},
        {harm_group_half, "group 1 has a home without nodes, or nodes without a home"},
        {harm_group_nodes, "group 1 has a home outside the topology"},
        {harm_group_before, "group 1 has a home outside the topology"},
        {harm_group_wish, "group 2 has a home outside the topology"},
        {harm_process_order, "process 100 is out of order"},
        {harm_process_name, "a name or mask of process 200 is not interned"},
        {harm_process_shared, "a name or mask of process 200 is not interned"},
        {harm_process_workload, "process 200 is of a workload that is not there"},
        {harm_process_group, "process 200 is in a group that is not there"},
        {harm_process_other, "process 200 is in a group of another workload"},
        {harm_process_unmeasured, "the memory of process 200 was not measured, or was after now"},
        {harm_process_measured_later, "the memory of process 200 was not measured, or was after now"},
        {harm_process_memory, "process 200 has more memory than can be"},
        {harm_process_stall, "process 200 waits for memory for more than its time, or will"},
        {harm_process_stall_unmeasured, "process 200 waits for memory for more than its time, or will"},
        {harm_process_traffic, "process 200 moves more than can be, or was not counted"},
        {harm_process_traffic_unmeasured, "process 200 moves more than can be, or was not counted"},
        {harm_process_stall_later, "process 200 waits for memory for more than its time, or will"},
        {harm_task_process, "task 200 is of no process"},
        {harm_task_order, "task 100 is out of order"},
        {harm_task_class, "task 101 has an impossible class or hands"},
        {harm_task_comm, "the name of task 101 does not end"},
        {harm_task_cpu, "task 101 ran on an impossible CPU"},
        {harm_task_load, "task 101 has a load above one CPU"},
        {harm_task_ewma, "task 101 has a load above one CPU"},
        {harm_task_mask, "a mask of task 101 is not interned"},
        {harm_task_moved, "task 101 was moved after now"},
        {harm_task_use_later, "what task 101 uses is not possible"},
        {harm_task_use_node, "what task 101 uses is not possible"},
        {harm_task_no_lease, "task 100 has a lease that is not there"},
        {harm_task_other_lease, "task 100 has the lease of another"},
        {harm_lease_cpu, "CPU 8 is lent but not in the topology"},
        {harm_lease_holder, "1 CPUs are lent, but 0 tasks have a lease"},
        {harm_lease_original, "task 101 is lent a CPU and has no mask to put back"},
        {harm_lease_group, "CPU 4 is lent to a group that never was"},
        {harm_lease_time, "the lease of CPU 4 begins after its end, or after now"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        names(cases[i].harm, cases[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
