/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Watching the use of memory by a process: when its threads begin and end to work, and when a plan should
 * know of it. */

#include "../cpu-list.h"
#include "../machine.h"
#include "fixture.h"
#include "plan/memory/watch.h"

#include <hwloc.h>

#define BLOCK  TOUCHES_BLOCK_BYTES
#define BASE   (1ULL << 30)
#define PID    10
#define MAIN   10 /* threads */
#define WORKER 11

static Topology *topology;
static World *world;
static MemoryWatch watch_, *const watch = &watch_;
static Touches touches;

static const Process *process(void)
{
    return world_process(world, PID);
}

static void add_thread(pid_t tid, uint16_t run)
{
    const Task task = {.tid = tid, .start_ticks = (uint64_t)tid, .run_ewma_permille = run};

    assert_true(world_add_task(world, &task) >= 0);
    assert_int_equal(touches_add_thread(&touches, (TaskKey){PID, tid, (uint64_t)tid}), 0);
}

static int setup(void **state)
{
    topology = test_machine("numa:2 l3:1 core:2 pu:1");
    assert_int_equal(world_new(topology, &world), 0);
    world->now_usec = 1000000;
    assert_int_equal(world_add_workload(world, "work", 0), 0);
    assert_int_equal(world_add_group(world, (WorkloadIx){0}, "work"), 0);
    assert_int_equal(world_add_process(world, &(Process){.pid = PID,
                                                         .start_ticks = PID,
                                                         .comm = intern_string(world->pool, "work"),
                                                         .workload = {0},
                                                         .group = {0}}),
                     0);
    touches_init(&touches, 2);
    add_thread(MAIN, 1000);
    add_thread(WORKER, 0);
    assert_int_equal(memory_watch_init(watch, 2, world->now_usec), 0);
    return 0;
}

static int teardown(void **state)
{
    memory_watch_done(watch);
    touches_done(&touches);
    world = world_free(world);
    topology = topology_unref(topology);
    return 0;
}

static void run(pid_t tid, uint16_t permille)
{
    world_task_by_tid(world, PID, tid)->run_ewma_permille = permille;
}

/* Touches eight blocks of the thread's own. */
static void touch(pid_t tid)
{
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(touches_add(&touches, &(Touch){BASE + ((uint64_t)tid * 8 + i) * BLOCK, tid, {0}}),
                         0);
}

/* A round in which both threads are seen, and what the event loop does after it. */
static void round_(void)
{
    touch(MAIN);
    touch(WORKER);
    assert_int_equal(touches_gather(&touches), 0);
    for (size_t i = 0; i < touches.n_blocks; i++)
        touches.blocks[i].node.i = 0;
    assert_true(touches_fold(&touches));
    assert_int_equal(memory_watch_note_busy(watch, world, process()), 0);
    assert_int_equal(memory_watch_follow_busy(watch, &touches), 0);
}

static uint64_t known(pid_t tid)
{
    return touches_thread(&touches, tid)->n_samples;
}

/* A thread that works from the start keeps its samples of the first round. */
static void test_first(void **state)
{
    round_();
    assert_int_equal(known(MAIN), 8);
    assert_int_equal(known(WORKER), 8);
    round_();
    assert_int_equal(known(MAIN), 16);
}

/* Samples of a thread are forgotten when its work begins or ends, and only then. */
static void test_forgotten(void **state)
{
    round_();
    run(MAIN, 100);
    run(WORKER, 900);
    round_();
    assert_int_equal(known(MAIN), 0);
    assert_int_equal(known(WORKER), 0);
    round_();
    assert_int_equal(known(MAIN), 8);
    assert_int_equal(known(WORKER), 8);
}

static uint64_t period_after_noting(void)
{
    watch->pace.period_usec = 5000000;
    assert_int_equal(memory_watch_note_busy(watch, world, process()), 0);
    return scan_pace_usec(&watch->pace);
}

/* Then rounds follow at once, as at the beginning. A changing average alone does not do that. */
static void test_pace(void **state)
{
    round_();
    run(MAIN, 300);
    assert_int_equal(period_after_noting(), 5000000);
    run(WORKER, 300);
    assert_int_equal(period_after_noting(), 5000000);
    /* Waiting for a CPU counts as work. */
    run(MAIN, 0);
    world_task_by_tid(world, PID, MAIN)->wait_ewma_permille = 300;
    assert_int_equal(period_after_noting(), 5000000);
    world_task_by_tid(world, PID, MAIN)->wait_ewma_permille = 0;
    run(MAIN, 700);
    run(WORKER, 700);
    assert_int_equal(period_after_noting(), SCAN_PACE_FIRST_USEC);
    assert_int_equal(period_after_noting(), 5000000);
    run(MAIN, 0);
    assert_int_equal(period_after_noting(), SCAN_PACE_FIRST_USEC);
    run(MAIN, 700);
    run(WORKER, 0);
    assert_int_equal(period_after_noting(), SCAN_PACE_FIRST_USEC);
}

/* Once three rounds were made, a plan should know of threads whose use has become known since the last plan. */
static void test_news(void **state)
{
    const Policy policy = {.mode = POLICY_MODE_AUTO};
    Task *worker = world_task_by_tid(world, PID, WORKER);

    watch->n_counted = TOUCHES_ROUNDS_MIN;
    assert_false(memory_watch_has_news(watch, world, process(), &policy));
    assert_int_equal(world_set_task_use(world, worker, (uint64_t[]){1000, 0}, 1000, (TaskKey){0}, 1), 0);
    assert_true(memory_watch_has_news(watch, world, process(), &policy));
    watch->n_counted--;
    assert_false(memory_watch_has_news(watch, world, process(), &policy));
    watch->n_counted++;
    memory_watch_planned(watch, world, process(), &policy);
    assert_false(memory_watch_has_news(watch, world, process(), &policy));
    assert_int_equal(world_set_task_use(world, world_task_by_tid(world, PID, MAIN), (uint64_t[]){0, 1000},
                                        1000, (TaskKey){0}, 1),
                     0);
    assert_true(memory_watch_has_news(watch, world, process(), &policy));
}

/* Returns the period after a round in which all was local, and after a request that moved nothing, or
 * something, ended. */
static uint64_t period_after_order(uint32_t n_vain)
{
    const Policy policy = {.mode = POLICY_MODE_AUTO,
                           .scan_min_usec = 1000000,
                           .scan_max_usec = 60000000,
                           .scan_size_bytes = 1 << 28};
    Process *mine = world_process(world, PID);
    MemoryWatchLook look = {.watch = watch,
                            .world = world,
                            .process = mine,
                            .policy = &policy,
                            .touches = &touches,
                            .whole = true};

    mine->memory.over_usec = ++world->now_usec;
    mine->memory.n_vain = n_vain;
    watch->pace = (ScanPace){.period_usec = 4000000, .n_rounds = SCAN_PACE_LEARN_ROUNDS};
    touch(MAIN);
    assert_int_equal(touches_gather(&touches), 0);
    for (size_t i = 0; i < touches.n_blocks; i++)
        touches.blocks[i].node.i = (int32_t)(i % 2);
    assert_true(touches_fold(&touches));
    assert_int_equal(memory_watch_look(&look), 0);
    assert_true(look.news);
    return scan_pace_usec(&watch->pace);
}

/* Moves in vain make rounds less urgent, once (P10). */
static void test_failed(void **state)
{
    for (int i = 0; i < 4; i++)
        (void)period_after_order(0);
    assert_true(period_after_order(0) < 8000000);
    assert_int_equal(period_after_order(1), 8000000);
    assert_true(period_after_order(0) < 8000000);
}

/* With several nodes to choose from; or on one, if more threads that share nothing run there than P5 allows. */
static void test_asked(void **state)
{
    Process *p = world_process(world, PID);
    Group *group = &world->groups[0];

    p->n_threads = 2;
    p->rss_bytes = 64ULL << 20;
    group->demand_permille = 2000;
    assert_false(memory_watch_is_asked(world, NULL, p));
    group->home = topology->nodes[0].cpus;
    group->home_nodes = test_mask(world->pool, "0");
    assert_true(memory_watch_is_asked(world, NULL, p));
    group->demand_permille = 1000;
    assert_false(memory_watch_is_asked(world, NULL, p));
    group->home_nodes = test_mask(world->pool, "0-1");
    assert_true(memory_watch_is_asked(world, NULL, p));
    group->home_nodes = test_mask(world->pool, "0");
    group->demand_permille = 2000;
    p->rss_bytes = 16ULL << 20;
    assert_false(memory_watch_is_asked(world, NULL, p));
    p->rss_bytes = 64ULL << 20;
    p->n_threads = 1;
    assert_false(memory_watch_is_asked(world, NULL, p));
}

/* Without a home yet, with more threads than all nodes but one have CPUs: the home will be all nodes. The use
 * seen counts from then on. */
static void test_everywhere(void **state)
{
    const Policy policy = {.mode = POLICY_MODE_AUTO}, compress = {.mode = POLICY_MODE_COMPRESS},
                 one = {.mode = POLICY_MODE_AUTO, .max_nodes = 1};
    Process *p = world_process(world, PID);
    MemoryWatchLook look = {
        .watch = watch, .world = world, .process = p, .policy = &policy, .touches = &touches};
    Group *group = &world->groups[0];

    p->rss_bytes = 64ULL << 20;
    p->n_threads = 3; /* two for the CPUs of one node, and one that may only wait */
    assert_false(memory_watch_begins_early(world, &policy, p));
    p->n_threads = 4;
    assert_true(memory_watch_begins_early(world, &policy, p));
    assert_true(memory_watch_is_asked(world, &policy, p));
    assert_false(memory_watch_precedes_home(world, &policy, p));
    assert_true(follow_awaits_use(world, &policy, p, watch)); /* meanwhile memory does not follow */
    assert_false(memory_watch_begins_early(world, &compress, p));
    assert_false(memory_watch_begins_early(world, &one, p));
    p->cpuset = topology->nodes[0].cpus;
    assert_false(memory_watch_begins_early(world, &policy, p));
    p->cpuset = topology->all_cpus;
    assert_true(memory_watch_begins_early(world, &policy, p));
    group->want_permille = 2000; /* it has as many threads, but does not use them */
    assert_false(memory_watch_begins_early(world, &policy, p));
    group->want_permille = 2001;
    assert_true(memory_watch_begins_early(world, &policy, p));
    p->rss_bytes = 16ULL << 20;
    assert_false(memory_watch_begins_early(world, &policy, p));
    p->rss_bytes = 64ULL << 20;
    group->first_seen_usec = world->now_usec;
    world->now_usec += MEMORY_WATCH_FIRST_USEC;
    assert_false(memory_watch_begins_early(world, &policy, p));

    run(WORKER, 1000);
    for (int i = 0; i < 8; i++)
        round_();
    assert_int_equal(memory_watch_look(&look), 0);
    assert_null(world_task_by_tid(world, PID, MAIN)->use);
    group->roams = true;
    assert_false(memory_watch_begins_early(world, &policy, p));
    round_();
    assert_int_equal(memory_watch_look(&look), 0);
    assert_non_null(world_task_by_tid(world, PID, MAIN)->use);
}

TEST_MAIN(setup, teardown, test_first, test_asked, test_everywhere, test_forgotten, test_pace, test_news,
          test_failed)
