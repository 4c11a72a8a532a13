/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory that follows its home: what is requested, what is not and why, and what results. */

#include "follow-test.h"

static void test_follows(void **state)
{
    const PlanAction *a;
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 0);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_SET_HOME), 1);
    a = fixture_action(&f, PLAN_KIND_MOVE_PAGES, 0);
    assert_int_equal(a->subject.pid, 10);
    assert_ptr_equal(a->memory.from, fixture_mask(&f, "1"));
    assert_ptr_equal(a->memory.to, fixture_mask(&f, "0"));
    assert_int_equal(a->memory.bytes, 64 * MIB);
    assert_int_equal(a->memory.reserve_bytes, 0);
    assert_int_equal(a->memory.headroom_percent, 10);
    assert_false(a->memory.shared);
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, true);
    assert_ptr_equal(move_of(&f, 10)->to, fixture_mask(&f, "0"));

    /* In flight. */
    fixture_wait(&f, SEC);
    follow_progress(f.world, a->subject, 24 * MIB);
    assert_int_equal(move_of(&f, 10)->todo_bytes, 40 * MIB);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
    end_order(&f, 10, FOLLOW_END_DONE, 63 * MIB, MIB);
    assert_null(move_of(&f, 10)->to);
    assert_int_equal(f.world->groups[0].memory.moved_bytes, 63 * MIB);
    assert_int_equal(f.world->groups[0].memory.refused_bytes, MIB);
    assert_int_equal(f.world->workloads[0].memory.n_orders, 1);
    assert_int_equal(f.world->workloads[0].memory.blocked_usec, 7);

    /* Earlier measurements no longer count. */
    assert_true(follow_wants_look(f.world, world_process(f.world, 10)));
    assert_refused(&f, PLAN_REASON_EVIDENCE);
    fixture_wait(&f, 2 * SEC);
    set_memory(&f, 10, 63 * MIB, MIB);
    assert_false(follow_wants_look(f.world, world_process(f.world, 10)));
    assert_refused(&f, PLAN_REASON_MEMORY_NEAR);
    set_memory(&f, 10, 64 * MIB, 0);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_MEMORY_NEAR], 0);
}

/* A process without a home is measured again when it has twice the memory that was found. */
static void test_grown(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Process *process;

    setup(&f, "[Placement]\nMode=auto\n");
    set_memory(&f, 10, 8 * MIB, 8 * MIB);
    process = world_process(f.world, 10);
    assert_true(process->group.i >= 0 && !f.world->groups[process->group.i].home);
    process->rss_bytes = 32 * MIB;
    assert_false(follow_wants_look(f.world, process));
    process->rss_bytes = 40 * MIB;
    assert_true(follow_wants_look(f.world, process));
    set_memory(&f, 10, 20 * MIB, 20 * MIB);
    assert_false(follow_wants_look(f.world, process));
}

/* In a home of two nodes it is not known which node a block belongs to: memory on either stays. */
static void test_never_inside_the_home(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, "[Placement]\nMode=fixed\nNodes=0-1\n");
    fixture_place(&f);
    assert_non_null(f.world->groups[0].home);
    fixture_wait(&f, SEC);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 0);
}

static void test_refusals(void **state)
{
    TopologyOrigin origin;
    Task *task;
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    f.policies->policies[0]->follow = false;
    assert_refused(&f, PLAN_REASON_FOLLOW_OFF);
    f.policies->policies[0]->follow = true;

    f.world->memory_pressure_permille = 101;
    assert_refused(&f, PLAN_REASON_MEMORY_PRESSURE);
    f.world->memory_pressure_permille = 100;

    origin = f.world->topology->origin;
    f.world->topology->rehearsal = 2;
    f.world->topology->origin = TOPOLOGY_ORIGIN_REHEARSAL;
    assert_refused(&f, PLAN_REASON_REHEARSAL);
    f.world->topology->rehearsal = 0;
    f.world->topology->origin = origin;

    task = fixture_find(&f, 10, 11);
    task->hands = TASK_HANDS_FOREIGN;
    task->allowed = fixture_mask(&f, "8-9");
    assert_refused(&f, PLAN_REASON_FOREIGN_AFFINITY);
    task->allowed = fixture_mask(&f, "0-1"); /* at home all the same */
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    task->hands = TASK_HANDS_FREE;
    task->allowed = fixture_mask(&f, NULL);

    move_of(&f, 10)->until_usec = f.world->now_usec + 1;
    assert_refused(&f, PLAN_REASON_RESIDENCY);
    move_of(&f, 10)->until_usec = f.world->now_usec;

    fixture_wait(&f, 3 * SEC);
    assert_refused(&f, PLAN_REASON_EVIDENCE); /* older than the home, which this plan sets */
    assert_int_equal(world_set_process_memory(f.world, world_process(f.world, 10), NULL, 0), 0);
    assert_refused(&f, PLAN_REASON_EVIDENCE);
    set_memory(&f, 10, 0, 64 * MIB);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
}

/* Little memory matters to small programs. A quarter of a MiB is too little to move, and one bound block too
 * little to consider. */
static void test_little(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    set_memory(&f, 10, MIB, MIB / 4 + 4096);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    set_memory(&f, 10, MIB, MIB / 4);
    assert_refused(&f, PLAN_REASON_MEMORY_NEAR);

    set_memory(&f, 10, 4 * MIB, 4 * MIB);
    world_process(f.world, 10)->bound_bytes = 2 * MIB;
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    world_process(f.world, 10)->bound_bytes = 2 * MIB + 4096;
    assert_refused(&f, PLAN_REASON_MEMORY_BOUND);
}

/* P19: a tenth of 8 GiB stays free, and as much as the group grew by. */
static void test_headroom(void **state)
{
    const uint64_t keep = 8192 * MIB / 100 * 10;
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    f.world->nodes[0].free_bytes = keep + 2 * MIB;
    assert_refused(&f, PLAN_REASON_HEADROOM);
    f.world->nodes[0].free_bytes = keep + 3 * MIB;
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);

    set_memory(&f, 10, 0, 74 * MIB);
    assert_refused(&f, PLAN_REASON_HEADROOM);
    f.world->nodes[0].free_bytes = keep + 13 * MIB;
    fixture_plan(&f, true);
    assert_int_equal(fixture_action(&f, PLAN_KIND_MOVE_PAGES, 0)->memory.reserve_bytes, 10 * MIB);

    f.world->nodes[0] = (NodeLoad){0};
    assert_refused(&f, PLAN_REASON_HEADROOM);
}

/* Two nodes give the process bandwidth that one cannot. Being near its memory is worth a fifth less, but no more. */
static void test_bandwidth(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Process *process;

    setup(&f, FIXED0);
    process = world_process(f.world, 10);
    set_memory(&f, 10, 32 * MIB, 32 * MIB);
    for (unsigned n = 0; n < 2; n++)
        f.world->topology->nodes[n].bandwidth_mb = 40000;
    process->stall_usec = f.world->now_usec;
    process->cpu_permille = 10000;
    process->traffic_mb = 5000;
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    process->traffic_mb = 5010;
    assert_refused(&f, PLAN_REASON_BANDWIDTH);

    f.world->topology->nodes[1].bandwidth_mb = 0; /* its present bandwidth is not known */
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    f.world->topology->nodes[1].bandwidth_mb = 20000; /* less than its present traffic there */
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    f.world->topology->nodes[1].bandwidth_mb = 40000;
    set_memory(&f, 10, 0, 64 * MIB); /* from one node to another */
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
}

/* Memory takes bandwidth where it lies until it has moved, and where it goes as soon as that is planned: the next plan
 * finds for others what this one did. */
static void test_bandwidth_is_shared(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_memory(&f);
    fixture_policy(&f, "a", "[Placement]\nMode=fixed\nNodes=1\n");
    fixture_policy(&f, "b", FIXED0);
    fixture_policy(&f, "c", AUTO); /* with a policy that chooses, traffic is known */
    add_process(&f, 10);
    fixture_process(&f, 20, "b", NULL);
    fixture_task(&f, 20, 20, 0);
    set_memory(&f, 10, 64 * MIB, 0);
    set_memory(&f, 20, 32 * MIB, 32 * MIB);
    for (unsigned n = 0; n < 2; n++)
        f.world->topology->nodes[n].bandwidth_mb = 40000;
    for (pid_t pid = 10; pid <= 20; pid += 10) {
        world_process(f.world, pid)->stall_usec = f.world->now_usec;
        world_process(f.world, pid)->cpu_permille = 10000;
        world_process(f.world, pid)->traffic_mb = pid == 10 ? 3000 : 4000;
    }
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    assert_int_equal(fixture_action(&f, PLAN_KIND_MOVE_PAGES, 0)->subject.pid, 10);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_BANDWIDTH], 1);
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, true);

    end_order(&f, 10, FOLLOW_END_DONE, 64 * MIB, 0);
    f.world->now_usec += SEC;
    set_memory(&f, 10, 0, 64 * MIB);
    fixture_plan(&f, true);
    assert_int_equal(fixture_action(&f, PLAN_KIND_MOVE_PAGES, 0)->subject.pid, 20);
}

/* Memory in flight takes room, too. */
static void test_headroom_is_shared(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    add_process(&f, 20);
    set_memory(&f, 20, 0, 64 * MIB);
    f.world->nodes[0].free_bytes = 8192 * MIB / 100 * 10 + 65 * MIB;
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_HEADROOM], 1);
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, true);
    end_order(&f, 10, FOLLOW_END_CANCELLED, 0, 0);
    fixture_plan(&f, true);
    assert_int_equal(fixture_action(&f, PLAN_KIND_MOVE_PAGES, 0)->subject.pid, 20);
}

/* P20: requests that share a rate take turns; memory pressure lowers the rate for all. */
static void test_rate(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0 "[Memory]\nRateLimit=128M\n");
    add_process(&f, 20);
    set_memory(&f, 20, 0, 64 * MIB);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_RATE_MEMORY], 1);
    assert_int_equal(fixture_action(&f, PLAN_KIND_MOVE_PAGES, 0)->memory.rate_bytes, 128 * MIB);
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, true);
    end_order(&f, 10, FOLLOW_END_DONE, 64 * MIB, 0);
    fixture_plan(&f, true);
    assert_int_equal(fixture_action(&f, PLAN_KIND_MOVE_PAGES, 0)->subject.pid, 20);

    f.world->memory_pressure_permille = 9;
    assert_int_equal(follow_rate(f.world), 0);
    f.world->memory_pressure_permille = 50;
    assert_int_equal(follow_rate(f.world), 1280 * MIB);
    f.world->memory_pressure_permille = 500;
    assert_int_equal(follow_rate(f.world), 128 * MIB);
}

static CpuMask helping(Fixture *f)
{
    fixture_plan(f, true);
    assert_int_equal(fixture_count(f, PLAN_KIND_MOVE_PAGES), 1);
    return fixture_action(f, PLAN_KIND_MOVE_PAGES, 0)->memory.help;
}

/* The CPUs of the node that memory leaves help to move it if other threads need no more than half of them. */
static void test_help(void **state)
{
    const TopologyNode *node;
    CLEANUP(fixture_done) Fixture f;
    int first, n;

    setup(&f, FIXED0);
    node = &f.world->topology->nodes[1];
    first = hwloc_bitmap_first(node->cpus);
    n = hwloc_bitmap_weight(node->cpus);
    assert_ptr_equal(helping(&f), fixture_mask(&f, "1"));
    fixture_cpus(&f, first, first + n / 2 - 1, 1000, 0);
    assert_ptr_equal(helping(&f), fixture_mask(&f, "1"));
    fixture_cpu(&f, first + n / 2, 1000, 0);
    assert_null(helping(&f));
    /* The process's own threads are not "others". */
    fixture_find(&f, 10, 11)->last_cpu.i = first;
    assert_ptr_equal(helping(&f), fixture_mask(&f, "1"));
    fixture_find(&f, 10, 11)->last_cpu.i = 0;
    assert_null(helping(&f));
}

/* I7: after each attempt in vain the pause doubles; what failed for good is not tried for PingPongSec=. */
static void test_pauses(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    for (uint64_t pause = 2 * SEC; pause <= 32 * SEC; pause *= 2) {
        fixture_plan(&f, true);
        assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
        fixture_commit(&f, NULL);
        end_order(&f, 10, FOLLOW_END_NO_ROOM, 0, 0);
        fixture_wait(&f, pause - 1);
        set_memory(&f, 10, 0, 64 * MIB);
        assert_refused(&f, PLAN_REASON_RESIDENCY);
        fixture_wait(&f, 1);
        set_memory(&f, 10, 0, 64 * MIB);
    }
    fixture_place(&f);
    end_order(&f, 10, FOLLOW_END_DONE, MIB, 40 * MIB);
    assert_int_equal(move_of(&f, 10)->until_usec, f.world->now_usec + SEC);
    fixture_wait(&f, 5 * SEC);
    set_memory(&f, 10, 23 * MIB, 41 * MIB);
    assert_refused(&f, PLAN_REASON_MEMORY_NEAR); /* memory that cannot be moved is no reason to try again */
    set_memory(&f, 10, 20 * MIB, 44 * MIB);
    fixture_place(&f);
    end_order(&f, 10, FOLLOW_END_FAILED, MIB, 0);
    assert_int_equal(move_of(&f, 10)->until_usec, f.world->now_usec + 60 * SEC);
}

/* What could not be moved is tried again after ten minutes: the child of fork(2) that shared it may have ended. */
static void test_stuck(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    fixture_place(&f);
    end_order(&f, 10, FOLLOW_END_DONE, 0, 64 * MIB);
    fixture_wait(&f, 600 * SEC - 1);
    set_memory(&f, 10, 0, 64 * MIB);
    assert_refused(&f, PLAN_REASON_MEMORY_NEAR);
    fixture_wait(&f, 1);
    set_memory(&f, 10, 0, 64 * MIB);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
}

/* I7: there and back, and then not again for PingPongSec=. */
static void test_ping_pong(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    for (int i = 0; i < 2; i++) {
        fixture_plan(&f, true);
        assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
        fixture_commit(&f, NULL);
        end_order(&f, 10, FOLLOW_END_DONE, 64 * MIB, 0);
        fixture_wait(&f, 2 * SEC);
        set_memory(&f, 10, i == 0 ? 64 * MIB : 0, i == 0 ? 0 : 64 * MIB);
        hwloc_bitmap_only(f.policies->policies[0]->nodes, i == 0 ? 1 : 0);
    }
    assert_refused(&f, PLAN_REASON_RESIDENCY);
    fixture_wait(&f, 60 * SEC);
    set_memory(&f, 10, 0, 64 * MIB);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
}

/* In a home of several nodes use decides where memory goes, and is waited for; to a single node all of it goes. */
static void test_use_awaited(void **state)
{
    static const char *const policies[] = {FIXED0, "[Placement]\nMode=fixed\nNodes=1-2\n"};
    Fixture f;

    for (int i = 0; i < 4; i++) {
        fixture_init(&f, "numa:4 l3:1 core:4 pu:1");
        fixture_memory(&f);
        fixture_policy(&f, "a", policies[i % 2]);
        add_process(&f, 10);
        fixture_bytes(&f, 10, (uint64_t[]){0, 0, 0, 64 * MIB});
        world_process(f.world, 10)->use_awaited = i >= 2;
        fixture_plan(&f, true);
        assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), i == 3 ? 0 : 1);
        assert_int_equal(f.plan.n_refused[PLAN_REASON_USE_AWAITED], i == 3 ? 1 : 0);
        fixture_done(&f);
    }
}

/* Beside the kernel's balancing, memory goes to the single node of a home; and to several nodes if its use
 * can be seen. Otherwise the kernel sees more. */
static void test_beside(void **state)
{
    static const struct {
        const char *policy;
        bool hidden, kernels;
    } cases[] = {
        {FIXED0, false, false},
        {FIXED0, true, false},
        {"[Placement]\nMode=fixed\nNodes=1-2\n", false, false},
        {"[Placement]\nMode=fixed\nNodes=1-2\n", true, true},
        {"[Placement]\nMode=fixed\nNodes=1-2\n[Memory]\nEvidence=residency\n", false, true},
        {"[Placement]\nMode=fixed\nNodes=1-2\n[Memory]\nEvidence=kernel\n", false, true},
        {"[Placement]\nMode=fixed\nNodes=1-2\n[Memory]\nEvidence=write\n", false, false},
    };

    for (size_t k = 0; k < 2 * ARRAY_SIZE(cases); k++) {
        size_t i = k / 2;
        CLEANUP(fixture_done) Fixture f;

        fixture_init(&f, "numa:4 l3:1 core:4 pu:1");
        fixture_memory(&f);
        fixture_policy(&f, "a", cases[i].policy);
        add_process(&f, 10);
        fixture_bytes(&f, 10, (uint64_t[]){0, 0, 0, 64 * MIB});
        /* Use is hidden on the whole machine, or of this process. */
        *(k % 2 ? &world_process(f.world, 10)->use_hidden : &f.world->use_hidden) = cases[i].hidden;
        f.world->kernel_balances = true;
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_refused[PLAN_REASON_KERNEL_BALANCES], cases[i].kernels);
        assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), !cases[i].kernels);
        f.world->kernel_balances = false;
        fixture_plan(&f, true);
        assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
        f.world->kernel_balances = true;
        assert_int_equal(plan_check(f.world, f.policies, &f.limits, &f.plan, NULL),
                         cases[i].kernels ? -EUCLEAN : 0);
        /* A request is cancelled where the kernel begins to balance. */
        fixture_commit(&f, NULL);
        assert_int_equal(follow_holds(f.world, f.policies, world_process(f.world, 10)), !cases[i].kernels);
    }
}

/* While its memory is in flight, a group does not leave its home for the node that the memory came from. */
static void test_home_stays(void **state)
{
    Fixture f;

    for (int moves = 0; moves < 2; moves++) {
        setup(&f, AUTO);
        set_memory(&f, 10, 1024 * MIB, 0);
        fixture_home(&f);
        assert_ptr_equal(f.world->groups[0].home_nodes, fixture_mask(&f, "0"));
        fixture_wait(&f, 60 * SEC);
        f.world->groups[0].demand_permille = f.world->groups[0].want_permille = 2000;
        set_memory(&f, 10, 0, 1024 * MIB);
        move_of(&f, 10)->to = move_of(&f, 10)->last = moves ? fixture_mask(&f, "0") : NULL;
        fixture_plan(&f, true);
        assert_int_equal(fixture_count(&f, PLAN_KIND_SET_HOME), !moves);
        fixture_done(&f);
    }
}

/* A request that was not carried out, or whose home was not, leaves nothing behind. */
static void test_not_taken(void **state)
{
    PlanOutcome outcomes[2] = {PLAN_OUTCOME_DONE, PLAN_OUTCOME_RETRY};
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0);
    fixture_plan(&f, true);
    fixture_commit(&f, outcomes);
    assert_null(move_of(&f, 10)->to);
    assert_int_equal(fixture_find(&f, 10, 10)->hands, TASK_HANDS_FREE);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    outcomes[0] = PLAN_OUTCOME_REFUSED;
    fixture_commit(&f, outcomes);
    assert_int_equal(fixture_find(&f, 10, 10)->hands, TASK_HANDS_FREE);
    fixture_done(&f);

    setup(&f, FIXED0);
    fixture_plan(&f, true);
    outcomes[0] = PLAN_OUTCOME_RETRY;
    outcomes[1] = PLAN_OUTCOME_DONE;
    fixture_commit(&f, outcomes);
    assert_null(f.world->groups[0].home);
    assert_false(follow_holds(f.world, f.policies, world_process(f.world, 10)));
}

/* plan_check() finds each violation. */
static void test_check(void **state)
{
    PlanMemory *memory;
    MemoryMove *move;
    CLEANUP(fixture_done) Fixture f;

    setup(&f, FIXED0 "[Memory]\nRateLimit=128M\n");
    fixture_plan(&f, true);
    assert_int_equal(f.plan.actions[1].kind, PLAN_KIND_MOVE_PAGES);
    memory = &f.plan.actions[1].memory;
    move = move_of(&f, 10);
    ASSERT_BROKEN(&f, memory->to = fixture_mask(&f, "1"), memory->to = fixture_mask(&f, "0"));
    ASSERT_BROKEN(&f, memory->from = fixture_mask(&f, "0"), memory->from = fixture_mask(&f, "1"));
    ASSERT_BROKEN(&f, memory->rate_bytes = 0, memory->rate_bytes = 128 * MIB);
    ASSERT_BROKEN(&f, memory->headroom_percent = 9, memory->headroom_percent = 10);
    ASSERT_BROKEN(&f, f.world->nodes[0].free_bytes = 8192 * MIB / 100 * 10,
                  f.world->nodes[0].free_bytes = 4096 * MIB);
    ASSERT_BROKEN(&f, move->until_usec = f.world->now_usec + 1, move->until_usec = 0);
    ASSERT_BROKEN(&f, move->over_usec = f.world->now_usec, move->over_usec = 0);
    ASSERT_BROKEN(&f, move->to = fixture_mask(&f, "0"), move->to = NULL);
    ASSERT_BROKEN(&f, f.policies->policies[0]->follow = false, f.policies->policies[0]->follow = true);
    ASSERT_BROKEN(&f, f.plan.actions[1].subject.tid = 10, f.plan.actions[1].subject.tid = 0);
}

TEST_MAIN(NULL, NULL, test_grown, test_follows, test_never_inside_the_home, test_refusals, test_little,
          test_use_awaited, test_beside, test_help, test_headroom, test_bandwidth, test_headroom_is_shared,
          test_rate, test_pauses, test_stuck, test_ping_pong, test_home_stays, test_not_taken, test_check,
          test_bandwidth_is_shared)
