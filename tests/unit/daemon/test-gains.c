/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a change of home was worth: samples before it against samples after it, when there are enough of both. */

#include "../machine.h"
#include "daemon/tables/gains.h"
#include "world/load.h"

#define SEC 1000000ULL
#define GIB (1ULL << 30)

typedef struct Fixture {
    Topology *topology;
    World *world;
    Gains *gains;
} Fixture;

/* One process of one thread in one group, on two nodes of two CPUs. */
static int setup(void **state)
{
    Fixture *f = calloc(1, sizeof(*f));
    Process process = {.pid = 100, .start_ticks = 7, .workload = {0}, .group = {0}};
    Task task = {
        .tid = 100, .process = {0}, .start_ticks = 7, .last_cpu = {0}, .lease = -1, .home_node = NODE_NONE};

    assert_non_null(f);
    f->topology = test_machine("numa:2 core:2 pu:1");
    assert_int_equal(world_new(f->topology, &f->world), 0);
    f->world->now_usec = 1000 * SEC;
    assert_int_equal(world_add_workload(f->world, "db", 0), 0);
    assert_int_equal(world_add_group(f->world, (WorkloadIx){0}, ""), 0);
    process.comm = intern_string(f->world->pool, "db");
    process.cgroup = intern_string(f->world->pool, "/");
    process.cpuset = intern_mask(f->world->pool, f->topology->all_cpus);
    assert_int_equal(world_add_process(f->world, &process), 0);
    task.allowed = process.cpuset;
    assert_int_equal(world_add_task(f->world, &task), 0);
    f->gains = gains_new();
    assert_non_null(f->gains);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Fixture *f = *state;

    gains_free(f->gains);
    world_free(f->world);
    topology_unref(f->topology);
    return 0;
}

/* A second in which the thread ran and waited as given, with that much memory on each node. */
static void look(Fixture *f, uint16_t run, uint16_t wait, uint64_t near, uint64_t far)
{
    const uint64_t bytes[2] = {near, far};
    Task *task = &f->world->tasks[0];

    f->world->now_usec += SEC;
    task->run_permille = task->run_ewma_permille = run;
    task->wait_permille = task->wait_ewma_permille = wait;
    if (near + far > 0)
        assert_int_equal(
            world_set_process_memory(f->world, &f->world->processes[0], bytes, f->world->now_usec), 0);
    world_sum(f->world);
    assert_int_equal(gains_look(f->gains, f->world), 0);
}

static void looks(Fixture *f, unsigned n, uint16_t run, uint16_t wait, uint64_t near, uint64_t far)
{
    while (n-- > 0)
        look(f, run, wait, near, far);
}

static void change_home(const Fixture *f)
{
    f->world->groups[0].last_home_usec = f->world->now_usec + 1;
}

static void test_before_and_after(void **state)
{
    Fixture *f = *state;
    uint64_t id = f->world->groups[0].id;
    Gain gain;

    for (int i = 0; i < 10; i++)
        look(f, 500, i % 2 ? 600 : 400, GIB, 3 * GIB);
    assert_false(gains_find(f->gains, id, &gain));
    change_home(f);
    looks(f, 3, 1000, 0, 4 * GIB, 0);
    assert_false(gains_find(f->gains, id, &gain)); /* two seconds to settle */
    looks(f, 5, 1000, 0, 4 * GIB, 0);
    assert_true(gains_find(f->gains, id, &gain));
    assert_int_equal(gain.since_usec, f->world->groups[0].last_home_usec);
    assert_in_range(gain.before.waits.permille, 490, 500);
    assert_in_range(gain.before.waits.noise, 45, 55);
    assert_int_equal(gain.before.local.permille, 250);
    assert_int_equal(gain.before.local.noise, 0);
    assert_int_equal(gain.after.waits.permille, 0);
    assert_int_equal(gain.after.local.permille, 1000);
}

/* Only the last samples before the change count, and only those in which the group did something. */
static void test_window(void **state)
{
    Fixture *f = *state;
    uint64_t id = f->world->groups[0].id;
    Gain gain;

    for (unsigned i = 0; i < 2 * GAIN_LOOKS; i++)
        look(f, 500, i < GAIN_LOOKS ? 500 : 0, 0, 0);
    looks(f, GAIN_LOOKS, 0, 0, 0, 0);
    change_home(f);
    looks(f, 10, 750, 250, 0, 0);
    assert_true(gains_find(f->gains, id, &gain));
    assert_int_equal(gain.before.waits.permille, 0);
    assert_int_equal(gain.after.waits.permille, 250);
    assert_false(gain.before.local.known);
    assert_false(gain.after.local.known);
}

/* A group that got its home at once has no time before it. When it changes again, the time in between is the
 * reference. */
static void test_first_home_and_second(void **state)
{
    Fixture *f = *state;
    uint64_t id = f->world->groups[0].id;
    Gain gain;

    change_home(f);
    looks(f, 10, 900, 100, 0, 0);
    assert_false(gains_find(f->gains, id, &gain));
    change_home(f);
    looks(f, 10, 1000, 0, 0, 0);
    assert_true(gains_find(f->gains, id, &gain));
    assert_int_equal(gain.before.waits.permille, 100);
}

/* A home that was given up is worth nothing. The time after it is the reference for the next home. */
static void test_released(void **state)
{
    Fixture *f = *state;
    Group *group = &f->world->groups[0];
    Gain gain;

    looks(f, 5, 500, 500, 0, 0);
    change_home(f);
    group->home = group->home_nodes = intern_mask(f->world->pool, f->topology->nodes[0].cpus);
    looks(f, 8, 900, 100, 0, 0);
    assert_true(gains_find(f->gains, group->id, &gain));
    group->home = group->home_nodes = NULL;
    looks(f, 4, 600, 400, 0, 0);
    assert_false(gains_find(f->gains, group->id, &gain));
    change_home(f);
    group->home = group->home_nodes = intern_mask(f->world->pool, f->topology->nodes[0].cpus);
    looks(f, 8, 900, 100, 0, 0);
    assert_true(gains_find(f->gains, group->id, &gain));
    assert_int_equal(gain.before.waits.permille, 400);
}

static void test_forgets(void **state)
{
    Fixture *f = *state;
    uint64_t id = f->world->groups[0].id;
    Gain gain;

    looks(f, 5, 900, 100, 0, 0);
    change_home(f);
    looks(f, 8, 900, 100, 0, 0);
    assert_true(gains_find(f->gains, id, &gain));
    f->world->groups[0].gone = true;
    look(f, 900, 100, 0, 0);
    assert_false(gains_find(f->gains, id, &gain));
}

TEST_MAIN(setup, teardown, test_before_and_after, test_window, test_first_home_and_second, test_released,
          test_forgets)
