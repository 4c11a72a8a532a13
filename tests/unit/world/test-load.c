/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "sample.h"
#include "world/load.h"

#define TICK 100000000ULL /* 100 ms in nanoseconds */

static void test_permille(void **state)
{
    assert_int_equal(load_permille(0, TICK), 0);
    assert_int_equal(load_permille(TICK / 2, TICK), 500);
    assert_int_equal(load_permille(TICK, TICK), 1000);
    assert_int_equal(load_permille(5 * TICK, TICK), 5000);
    assert_int_equal(load_permille(TICK - 1, TICK), 999);
    assert_int_equal(load_permille(1000 * TICK, TICK), UINT16_MAX);
    assert_int_equal(load_permille(5, 0), 0);
    assert_int_equal(load_permille(UINT64_MAX, 1), UINT16_MAX);
    assert_int_equal(load_permille(UINT64_MAX / 2, UINT64_MAX), 500);
    assert_int_equal(load_permille(UINT64_MAX, UINT64_MAX), 1000);
}

static void test_ewma(void **state)
{
    uint32_t v;

    assert_int_equal(load_ewma(0, 800), 100);
    assert_int_equal(load_ewma(800, 0), 700);
    assert_int_equal(load_ewma(5, 5), 5);
    assert_int_equal(load_ewma(0, 1), 1);
    assert_int_equal(load_ewma(1, 0), 0);
    assert_int_equal(load_ewma(0, UINT32_MAX), 1U << 29);
    assert_int_equal(load_ewma(UINT32_MAX, 0), UINT32_MAX - (1U << 29));

    /* The average gets there, from either side, and stays. */
    v = 0;
    for (int i = 0; i < 60; i++)
        v = load_ewma(v, 1000);
    assert_int_equal(v, 1000);
    for (int i = 0; i < 60; i++)
        v = load_ewma(v, 0);
    assert_int_equal(v, 0);
}

static void test_task(void **state)
{
    Task task = {0};

    load_task(&task, TICK * 8 / 10, TICK / 10, TICK);
    assert_int_equal(task.run_permille, 800);
    assert_int_equal(task.wait_permille, 100);
    assert_int_equal(task.run_before_permille, 0);
    assert_int_equal(task.run_ewma_permille, 100);
    assert_int_equal(task.wait_ewma_permille, 13); /* 12.5, towards the sample */

    /* Ticks are not exact: a load above the interval is cut. */
    load_task(&task, TICK * 2, TICK * 3, TICK);
    assert_int_equal(task.run_permille, 1000);
    assert_int_equal(task.wait_permille, 1000);
    assert_int_equal(task.run_before_permille, 800);
    assert_int_equal(task.wait_before_permille, 100);

    load_task(&task, 1, 1, 0);
    assert_int_equal(task.run_permille, 1000);
    assert_int_equal(task.run_before_permille, 800);
}

static void test_cpu(void **state)
{
    CpuLoad cpu = {0};

    load_cpu(&cpu, 1000000, TICK, 3 * TICK, true, TICK, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.busy_permille, 1000);
    assert_int_equal(cpu.wait_permille, 3000); /* three tasks waited; not cut */
    assert_true(cpu.wait_known);
    assert_int_equal(cpu.idle_since_usec, 0);

    load_cpu(&cpu, 1100000, TICK * 2, 3 * TICK, false, TICK, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.busy_permille, 1000);
    assert_int_equal(cpu.wait_permille, 0);
    assert_int_equal(cpu.wait_before_permille, 3000);
    assert_false(cpu.wait_known);

    load_cpu(&cpu, 1200000, 1, 0, true, 0, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.busy_before_permille, 1000);
    assert_false(cpu.wait_known);
}

static void test_idle_spells(void **state)
{
    CpuLoad cpu = {0};

    /* 4.9 % is idle, 5 % is not. */
    load_cpu(&cpu, 1000000, TICK * 49 / 1000, 0, true, TICK, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.idle_since_usec, 900000);
    load_cpu(&cpu, 1100000, 0, 0, true, TICK, LOAD_IDLE_PERMILLE);
    load_cpu(&cpu, 1200000, 0, 0, true, TICK, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.idle_since_usec, 900000);
    assert_int_equal(cpu.idle_ewma_usec, 0);
    load_cpu(&cpu, 1300000, TICK * 50 / 1000, 0, true, TICK, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.idle_since_usec, 0);
    assert_int_equal(cpu.idle_ewma_usec, 300000); /* the whole first idle period */

    load_cpu(&cpu, 1400000, 0, 0, true, TICK, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.idle_since_usec, 1300000);
    load_cpu(&cpu, 1500000, TICK, 0, true, TICK, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.idle_ewma_usec, 275000); /* 300000 - (300000 - 100000) / 8 */

    /* A CPU that stays busy ends no idle period. */
    load_cpu(&cpu, 1600000, TICK, 0, true, TICK, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.idle_ewma_usec, 275000);
}

static void test_idle_at_boot(void **state)
{
    CpuLoad cpu = {0};

    /* A tick longer than the time since boot would begin at 0, which means "not idle". */
    load_cpu(&cpu, 50000, 0, 0, true, TICK, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.idle_since_usec, 1);

    /* An idle period too long for the average is cut. */
    load_cpu(&cpu, 1ULL << 40, TICK, 0, true, TICK, LOAD_IDLE_PERMILLE);
    assert_int_equal(cpu.idle_ewma_usec, UINT32_MAX);
}

/* Demand rises at once, and falls by a fifteenth of the difference per second. */
static void test_groups(void **state)
{
    CLEANUP(world_free_p) World *world = sample_empty();
    Group *g;

    assert_int_equal(world_add_workload(world, "w", 0), 0);
    assert_int_equal(world_add_group(world, (WorkloadIx){0}, ""), 0);
    g = &world->groups[0];
    g->first_seen_usec = 0;
    world->interval_usec = 1000000;
    world->now_usec = LOAD_YOUNG_USEC;
    g->want_permille = 3000;
    load_groups(world);
    assert_int_equal(g->demand_permille, 3000);
    g->want_permille = 1500;
    load_groups(world);
    assert_int_equal(g->demand_permille, 2900);
    g->want_permille = 3190; /* within a tenth */
    load_groups(world);
    assert_int_equal(g->demand_permille, 2900);
    g->want_permille = 3200;
    load_groups(world);
    assert_int_equal(g->demand_permille, 3200);
    g->want_permille = 2880;
    load_groups(world);
    assert_int_equal(g->demand_permille, 3200);
    g->want_permille = 0;
    for (unsigned i = 0; i < 300; i++)
        load_groups(world);
    assert_int_equal(g->demand_permille, 0);
    world->interval_usec = UINT64_MAX; /* after a suspend */
    g->want_permille = 700;
    load_groups(world);
    g->want_permille = 0;
    load_groups(world);
    assert_int_equal(g->demand_permille, 0);
}

/* The demand of a young group is what it wanted in the last two ticks, whatever its averages are. */
static void test_young_group(void **state)
{
    CLEANUP(world_free_p) World *world = sample_empty();
    Group *g;

    assert_int_equal(world_add_workload(world, "w", 0), 0);
    assert_int_equal(world_add_group(world, (WorkloadIx){0}, ""), 0);
    g = &world->groups[0];
    g->first_seen_usec = 0;
    world->interval_usec = 100000;
    world->now_usec = LOAD_YOUNG_USEC - 1;
    g->want_permille = 1900;
    g->run_permille = 1000;
    g->wait_permille = 3000;
    load_groups(world);
    assert_int_equal(g->demand_permille, 4000);
    g->run_permille = 500;
    g->wait_permille = 0;
    load_groups(world);
    assert_int_equal(g->demand_permille, 4000);
    load_groups(world);
    assert_int_equal(g->demand_permille, 500);
    world->now_usec++;
    load_groups(world);
    assert_int_equal(g->demand_permille, 1900);
}

/* The load of others does not include what groups with a home ran, what a roaming group ran, wherever that
 * was, or what a thread without a home ran where it was last seen. */
static void test_nodes(void **state)
{
    CLEANUP(world_free_p) World *world = sample_empty();

    assert_int_equal(world_add_workload(world, "w", 0), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(world_add_group(world, (WorkloadIx){0}, i == 0 ? "a" : i == 1 ? "b" : "c"), i);
    for (uint32_t i = 0; i < world->topology->cpu_limit; i++)
        world->cpus[i] = (CpuLoad){.online = true, .usable = true, .busy_permille = 500};
    world->interval_usec = LOAD_HOLD_USEC;
    world->groups[0].home = sample_mask(world, "0-3");
    world->groups[0].home_nodes = sample_mask(world, "0");
    world->groups[0].run_permille = 1200;
    world->groups[1].roams = true;
    world->groups[1].run_permille = 1400;
    assert_int_equal(sample_process(world, 100, 0, 2), 0);
    assert_int_equal(sample_task(world, 100, 100, 600, 0), 0);
    world->tasks[0].last_cpu = (CpuIx){4};
    load_nodes(world);
    /* The first group leaves 800 of 2000, the thread 1400 of the other 2000, and the second group takes its
     * share of each: a bit over a third of each remains. */
    assert_int_equal(world->nodes[0].others_permille, 291);
    assert_int_equal(world->nodes[1].others_permille, 510);
    world->tasks[0].gone = true;
    load_nodes(world);
    assert_int_equal(world->nodes[0].others_permille, 400);
    assert_int_equal(world->nodes[1].others_permille, 1000);

    /* The value is an average. */
    world->interval_usec = LOAD_HOLD_USEC / 10;
    world->groups[1].run_permille = 0;
    load_nodes(world);
    assert_int_equal(world->nodes[0].others_permille, 440);
    assert_int_equal(world->nodes[1].others_permille, 1100);

    /* Ticks of 100 ms converge too, from both sides: one steady CPU gives one CPU. */
    world->interval_usec = 100000;
    world->groups[0].run_permille = 1000;
    world->groups[1].run_permille = 0;
    for (unsigned i = 0; i < 3000; i++)
        load_nodes(world);
    assert_int_equal(world->nodes[0].others_permille, 1000);
    world->groups[0].run_permille = 2000;
    for (unsigned i = 0; i < 3000; i++)
        load_nodes(world);
    assert_int_equal(world->nodes[0].others_permille, 0);
}

/* The load of others does not include what groups ran, wherever it is assumed to have run: for a group with
 * more nodes than another one, and for a thread last seen on a node where all load was that of others. */
static void test_nodes_elsewhere(void **state)
{
    CLEANUP(world_free_p) World *world = sample_empty();

    assert_int_equal(world_add_workload(world, "w", 0), 0);
    assert_int_equal(world_add_group(world, (WorkloadIx){0}, "a"), 0);
    for (uint32_t i = 0; i < world->topology->cpu_limit; i++)
        world->cpus[i] = (CpuLoad){.online = true, .usable = true, .busy_permille = 500};
    world->interval_usec = LOAD_HOLD_USEC;
    world->groups[0].home = sample_mask(world, "0-3");
    world->groups[0].home_nodes = sample_mask(world, "0");
    world->groups[0].run_permille = 2600;
    load_nodes(world);
    assert_int_equal(world->nodes[0].others_permille, 0);
    assert_int_equal(world->nodes[1].others_permille, 1400);

    world->groups[0].run_permille = 1900;
    assert_int_equal(sample_process(world, 100, 0, 0), 0);
    assert_int_equal(sample_task(world, 100, 100, 1000, 0), 0);
    world->tasks[0].last_cpu = (CpuIx){4};
    for (uint32_t i = 4; i < world->topology->cpu_limit; i++)
        world->cpus[i].busy_permille = 0;
    load_nodes(world);
    assert_int_equal(world->nodes[0].others_permille, 100);
    assert_int_equal(world->nodes[1].others_permille, 0);
}

/* One tick of a second counts like ten of a tenth. After a very long tick nothing is left of the old average. */
static void test_long_ticks(void **state)
{
    Task one = {.run_ewma_permille = 100, .wait_ewma_permille = 900}, ten = one;

    load_task(&one, TICK * 10, 0, TICK * 10);
    for (int i = 0; i < 10; i++)
        load_task(&ten, TICK, 0, TICK);
    assert_int_equal(one.run_ewma_permille, ten.run_ewma_permille);
    assert_int_equal(one.wait_ewma_permille, ten.wait_ewma_permille);
    assert_in_range(one.run_ewma_permille, 750, 770); /* 1000 - 900 * (7/8)^10 */
    load_task(&one, TICK * 100, 0, TICK * 100);
    assert_in_range(one.run_ewma_permille, 990, 1000);
}

TEST_MAIN(NULL, NULL, test_permille, test_ewma, test_task, test_long_ticks, test_nodes_elsewhere, test_cpu,
          test_idle_spells, test_idle_at_boot, test_groups, test_young_group, test_nodes)
