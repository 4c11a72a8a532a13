/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The memory of explain: bounded, in order, and independent of the World it was filled from. */

#include "../cpu-list.h"
#include "../machine.h"
#include "daemon/tables/moves.h"

typedef struct Fixture {
    Topology *topology;
    World *world;
    Moves *moves;
} Fixture;

/* A World of four CPUs with one process of two threads in one workload. */
static int setup(void **state)
{
    Fixture *f = calloc(1, sizeof(*f));
    Process process = {.pid = 100, .start_ticks = 7, .workload = {0}, .group = {0}};
    Task task = {.process = {0}, .start_ticks = 7, .last_cpu = CPU_NONE};

    assert_non_null(f);
    f->topology = test_machine("package:1 numa:1 core:4 pu:1");
    assert_int_equal(world_new(f->topology, &f->world), 0);
    f->world->now_usec = 1000;
    assert_int_equal(world_add_workload(f->world, "jvm", 0), 0);
    assert_int_equal(world_add_group(f->world, (WorkloadIx){0}, ""), 0);
    process.comm = intern_string(f->world->pool, "java");
    process.cgroup = intern_string(f->world->pool, "/");
    process.cpuset = intern_mask(f->world->pool, f->topology->all_cpus);
    assert_int_equal(world_add_process(f->world, &process), 0);
    for (pid_t tid = 100; tid <= 101; tid++) {
        task.tid = tid;
        task.allowed = process.cpuset;
        (void)strcpy(task.comm, tid == 100 ? "java" : "worker\n");
        assert_int_equal(world_add_task(f->world, &task), tid - 100);
    }
    f->moves = moves_new();
    assert_non_null(f->moves);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Fixture *f = *state;

    moves_free(f->moves);
    world_free(f->world);
    topology_unref(f->topology);
    return 0;
}

static PlanAction lend(Fixture *f, pid_t tid, int cpu)
{
    CpuMask all = intern_mask(f->world->pool, f->topology->all_cpus);

    return (PlanAction){
        .kind = PLAN_KIND_LEND,
        .rule = PLAN_RULE_IDLE_NEARBY,
        .mechanism = 2,
        .subject = {.pid = 100, .tid = tid, .start_ticks = 7},
        .workload = {0},
        .group_id = 1,
        .from = all,
        .to = all,
        .cpu = {cpu},
        .value = 800,
        .limit = 250,
    };
}

static const Move *add(Fixture *f, const PlanAction *action, PlanOutcome outcome)
{
    const Move *move = NULL;

    assert_int_equal(moves_add(f->moves, f->world, action, outcome, 5, &move), 0);
    return move;
}

static void test_empty(void **state)
{
    Fixture *f = *state;

    assert_int_equal(moves_last(f->moves), 0);
    assert_null(moves_next(f->moves, 0));
    assert_null(moves_next(f->moves, UINT64_MAX));
    assert_null(moves_refusals(f->moves));
}

static void test_order_and_names(void **state)
{
    Fixture *f = *state;
    PlanAction first = lend(f, 100, 2), second = lend(f, 101, 3);
    const Move *move = add(f, &first, PLAN_OUTCOME_DONE);

    assert_non_null(move);
    assert_int_equal(move->sequence, 1);
    assert_string_equal(move->comm, "java");
    assert_string_equal(move->workload, "jvm");
    move = add(f, &second, PLAN_OUTCOME_DONE);
    assert_string_equal(move->comm, "worker\n");
    assert_int_equal(moves_last(f->moves), 2);
    assert_int_equal(moves_next(f->moves, 0)->sequence, 1);
    assert_int_equal(moves_next(f->moves, 1)->sequence, 2);
    assert_null(moves_next(f->moves, 2));
    assert_null(moves_next(f->moves, UINT64_MAX));
}

static void test_done_is_never_folded(void **state)
{
    Fixture *f = *state;
    PlanAction action = lend(f, 100, 2);

    assert_non_null(add(f, &action, PLAN_OUTCOME_DONE));
    assert_non_null(add(f, &action, PLAN_OUTCOME_DONE));
    assert_int_equal(moves_last(f->moves), 2);
}

/* A dry run that would do the same in every tick is recorded once, with a count. */
static void test_the_same_failure_is_counted(void **state)
{
    Fixture *f = *state;
    PlanAction action = lend(f, 100, 2), other = lend(f, 101, 3);

    assert_non_null(add(f, &action, PLAN_OUTCOME_SKIPPED));
    assert_non_null(add(f, &other, PLAN_OUTCOME_SKIPPED));
    f->world->now_usec = 2000;
    for (int i = 0; i < 9; i++)
        assert_null(add(f, &action, PLAN_OUTCOME_SKIPPED));
    assert_int_equal(moves_last(f->moves), 2);
    assert_int_equal(moves_next(f->moves, 0)->count, 10);
    assert_int_equal(moves_next(f->moves, 0)->time_usec, 2000);
    assert_int_equal(moves_next(f->moves, 1)->count, 1);

    /* After another outcome, the same one is recorded anew. */
    assert_non_null(add(f, &action, PLAN_OUTCOME_RETRY));
    assert_non_null(add(f, &action, PLAN_OUTCOME_SKIPPED));
}

static void test_the_ring_is_bounded(void **state)
{
    Fixture *f = *state;
    PlanAction action = lend(f, 100, 2);
    uint64_t n = 0;

    for (unsigned i = 0; i < 3 * MOVES_MAX; i++) {
        action.value = i;
        assert_non_null(add(f, &action, PLAN_OUTCOME_DONE));
    }
    assert_int_equal(moves_last(f->moves), 3 * MOVES_MAX);
    for (const Move *m = moves_next(f->moves, 0); m; m = moves_next(f->moves, m->sequence)) {
        assert_int_equal(m->value, m->sequence - 1);
        assert_string_equal(m->workload, "jvm");
        n++;
    }
    assert_int_equal(n, MOVES_MAX);
    assert_int_equal(moves_next(f->moves, 0)->sequence, 2 * MOVES_MAX + 1);
}

/* Masks of a freed World stay readable, also after the ring's own pool was swept. */
static void test_outlives_the_world(void **state)
{
    Fixture *f = *state;
    PlanAction action = lend(f, 100, 2);

    for (unsigned i = 0; i < 2 * MOVES_MAX + 5; i++)
        assert_non_null(add(f, &action, PLAN_OUTCOME_DONE));
    f->world = world_free(f->world);
    for (const Move *m = moves_next(f->moves, 0); m; m = moves_next(f->moves, m->sequence)) {
        assert_true(hwloc_bitmap_isequal(m->to, f->topology->all_cpus));
        assert_string_equal(m->workload, "jvm");
    }
}

static PlanRefusal refusal(pid_t tid, PlanReason reason, uint64_t value)
{
    return (PlanRefusal){
        .reason = reason,
        .mechanism = 2,
        .subject = {.pid = 100, .tid = tid, .start_ticks = 7},
        .workload = {0},
        .group_id = 1,
        .cpu = CPU_NONE,
        .value = value,
        .limit = 9,
    };
}

static void test_refusals_keep_the_last(void **state)
{
    Fixture *f = *state;
    PlanRefusal a = refusal(100, PLAN_REASON_NODE_LIMIT, 1), b = refusal(101, PLAN_REASON_NODE_LIMIT, 2);
    const MoveRefusal *r;

    assert_int_equal(moves_refuse(f->moves, f->world, &a), 0);
    assert_int_equal(moves_refuse(f->moves, f->world, &b), 0);
    a.value = 3;
    assert_int_equal(moves_refuse(f->moves, f->world, &a), 0);

    r = moves_refusals(f->moves);
    assert_int_equal(r->subject.tid, 101); /* the oldest comes first */
    assert_int_equal(r->count, 1);
    r = r->newer;
    assert_int_equal(r->subject.tid, 100);
    assert_int_equal(r->count, 2);
    assert_int_equal(r->value, 3);
    assert_string_equal(r->workload, "jvm");
    assert_null(r->newer);
}

static void test_refusals_are_bounded(void **state)
{
    Fixture *f = *state;
    size_t n = 0;

    for (unsigned i = 0; i < 2 * MOVES_REFUSALS_MAX; i++) {
        PlanRefusal r = refusal((pid_t)(1000 + i), PLAN_REASON_BUDGET, i);

        assert_int_equal(moves_refuse(f->moves, f->world, &r), 0);
    }
    for (const MoveRefusal *r = moves_refusals(f->moves); r; r = r->newer)
        n++;
    assert_int_equal(n, MOVES_REFUSALS_MAX);
    assert_int_equal(moves_refusals(f->moves)->value, MOVES_REFUSALS_MAX);
}

static void test_forget_nodes(void **state)
{
    Fixture *f = *state;
    PlanAction action = lend(f, 100, 2);
    PlanRefusal r = refusal(100, PLAN_REASON_BUDGET, 1);

    action.kind = PLAN_KIND_SET_HOME;
    action.home_nodes = intern_mask(f->world->pool, f->topology->all_cpus);
    assert_non_null(add(f, &action, PLAN_OUTCOME_DONE)->home_nodes);
    assert_int_equal(moves_refuse(f->moves, f->world, &r), 0);
    moves_forget_nodes(f->moves);
    assert_null(moves_next(f->moves, 0)->home_nodes);
    assert_null(moves_refusals(f->moves));
    assert_int_equal(moves_last(f->moves), 1);
}

/* A release that left all threads as somebody else pinned them has no target. */
static void test_left_as_pinned(void **state)
{
    Fixture *f = *state;
    PlanAction action = lend(f, 100, -1);
    const Move *move;

    action.kind = PLAN_KIND_RELEASE;
    action.rule = PLAN_RULE_REPINNED;
    action.from = test_mask(f->world->pool, "1");
    move = add(f, &action, PLAN_OUTCOME_FOREIGN);
    assert_int_equal(hwloc_bitmap_weight(move->from), 1);
    assert_ptr_equal(move->to, move->from);
    move = add(f, &action, PLAN_OUTCOME_DONE);
    assert_int_equal(hwloc_bitmap_weight(move->to), 4);
}

TEST_MAIN(setup, teardown, test_empty, test_order_and_names, test_done_is_never_folded,
          test_the_same_failure_is_counted, test_the_ring_is_bounded, test_outlives_the_world,
          test_refusals_keep_the_last, test_refusals_are_bounded, test_forget_nodes, test_left_as_pinned)
