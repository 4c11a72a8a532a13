/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Breaks each invariant once; the check must find and name it. */

#include "sample.h"

static void names(const World *world, const char *expected)
{
    CLEANUP_FREE char *what = NULL;

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

/* Damages a new World, for which world_check() must report `expected`. */
#define HARM(expected, statement)                            \
    do {                                                     \
        CLEANUP(world_free_p) World *world = sample_world(); \
                                                             \
        statement;                                           \
        names(world, expected);                              \
    } while (0)

static void test_machine_checked(void **state)
{
    HARM("the next group would have id 0", world->next_group_id = 0);
    HARM("a bucket was updated after now", world->cross_node.updated_usec = world->now_usec + 1);
    HARM("CPU 3 is usable but not online", world->cpus[3].online = false);
    HARM("CPU 3 is busy for more than the whole tick", world->cpus[3].busy_permille = 1001);
    HARM("the idle spell of CPU 3 begins after now", world->cpus[3].idle_since_usec = world->now_usec + 1);
    HARM("node 1 has more free memory than is possible", world->nodes[1].free_bytes = 1);
    HARM("node 0 has more free memory than is possible",
         world->nodes[0] = ((NodeLoad){WORLD_MEMORY_MAX + 1, true}));
}

static void test_workloads_and_groups(void **state)
{
    HARM("the name of workload 0 is not interned", world->workloads[0].name = "elsewhere");
    HARM("workloads 0 and 1 have the same name", world->workloads[1].name = world->workloads[0].name);
    HARM("a bucket was updated after now", world->workloads[1].cross_node.updated_usec = world->now_usec + 1);
    HARM("group id 3 was never assigned", world->groups[1].id = 3);
    HARM("group 1 is out of order", world->groups[1].id = 1);
    HARM("group 2 belongs to no workload", world->groups[1].workload.i = 2);
    HARM("the key of group 2 is not interned", world->groups[1].key = NULL);
    HARM("the home of group 1 is not interned", world->groups[0].home = world->topology->all_cpus);
    HARM("group 1 has a home without nodes, or nodes without a home", world->groups[0].home_nodes = NULL);
    HARM("group 1 has a home outside the topology", world->groups[0].home_nodes = sample_mask(world, "2"));
    HARM("group 1 has a home outside the topology",
         world->groups[0].before_nodes = sample_mask(world, "1-2"));
    HARM("group 2 has a home outside the topology", world->groups[1].wish_nodes = sample_mask(world, "2"));
}

static void test_processes(void **state)
{
    HARM("process 100 is out of order", world->processes[1].pid = 100);
    HARM("a name or mask of process 200 is not interned", world->processes[1].comm = NULL);
    HARM("a name or mask of process 200 is not interned", world->processes[1].shared = "0:1:77");
    HARM("process 200 belongs to a workload that does not exist", world->processes[1].workload.i = 2);
    HARM("process 200 is in a group that does not exist", world->processes[1].group.i = 2);
    HARM("process 200 is in a group of another workload", world->processes[1].group.i = 0);
    HARM("the residency of process 200 and its time do not match, or the time is after now",
         world->processes[1].node_bytes_usec = 1);
    HARM("the residency of process 200 and its time do not match, or the time is after now",
         assert_int_equal(world_set_process_memory(world, &world->processes[1], (uint64_t[]){0, 0}, 1000001),
                          0));
    HARM("process 200 has more memory than is possible",
         assert_int_equal(world_set_process_memory(world, &world->processes[1], (uint64_t[]){0, 0}, 1), 0);
         world->processes[1].node_bytes[1] = WORLD_MEMORY_MAX + 1);
    HARM("process 200 waits for memory longer than it ran, or was counted after now",
         world->processes[1].stall_usec = 1;
         world->processes[1].stall_permille = 1001);
    HARM("process 200 waits for memory longer than it ran, or was counted after now",
         world->processes[1].stall_permille = 1);
    HARM("process 200 has too much memory traffic, or traffic that was not counted",
         world->processes[1].stall_usec = 1;
         world->processes[1].traffic_mb = WORLD_TRAFFIC_MAX + 1);
    HARM("process 200 has too much memory traffic, or traffic that was not counted",
         world->processes[1].traffic_mb = 1);
    HARM("process 200 waits for memory longer than it ran, or was counted after now",
         world->processes[1].stall_usec = world->now_usec + 1);
}

static void test_tasks_and_leases(void **state)
{
    HARM("task 200 belongs to no process", world->tasks[2].process.i = 2);
    HARM("task 100 is out of order", world->tasks[1].tid = 100);
    HARM("the class or eligibility of task 101 is out of range", world->tasks[1].task_class = TASK_CLASS_MAX);
    HARM("the name of task 101 is not terminated", memset(world->tasks[1].comm, 'a', WORLD_COMM_SIZE));
    HARM("the last CPU of task 101 is out of range", world->tasks[1].last_cpu.i = -2);
    HARM("task 101 has a load above one CPU", world->tasks[1].wait_before_permille = 1001);
    HARM("task 101 has a load above one CPU", world->tasks[1].run_ewma_permille = 1001);
    HARM("a mask of task 101 is not interned", world->tasks[1].allowed = world->topology->all_cpus);
    HARM("task 101 was moved after now", world->tasks[1].last_move_usec = world->now_usec + 1);
    HARM("the memory use of task 101 is out of range", use(world, 100)->stay.usec = 101);
    HARM("the memory use of task 101 is out of range", use(world, 100)->stay.node.i = 2);
    HARM("task 100 has a lease that does not exist", world->tasks[0].lease = 1);
    HARM("task 100 has the lease of another task", world->tasks[0].lease = 0);
    HARM("CPU 8 is lent but not in the topology", world->leases[0].cpu.i = 8);
    HARM("1 CPUs are lent, but 0 tasks have a lease", world->tasks[1].lease = -1);
    HARM("task 101 is lent a CPU and has no mask to put back", world->tasks[1].original = NULL);
    HARM("CPU 4 is lent to a group that never existed", world->leases[0].group_id = 3);
    HARM("the lease of CPU 4 begins after its end, or after now", world->leases[0].until_usec = 1);
}

TEST_MAIN(NULL, NULL, test_machine_checked, test_workloads_and_groups, test_processes, test_tasks_and_leases)
