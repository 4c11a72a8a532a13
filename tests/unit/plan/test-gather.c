/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P15, P18: memory that was gathered goes back if its process makes less progress then (S-SLOWER). */

#include "choose-test.h"
#include "plan/ablation.h"
#include "plan/memory/follow.h"
#include "plan/scan/gather.h"
#include "plan/scan/stall.h"

/* Sets up a process with a quarter of its memory on each node; `permille`: instructions per cycle, 0: not counted. */
static Process *setup_threads(Fixture *f, int n_threads, uint64_t permille)
{
    fixture_init(f, FOUR);
    fixture_memory(f);
    fixture_policy(f, "a", AUTO);
    add_job(f, 100, n_threads, 0, 8);
    set_memory(f, 100, (uint64_t[]){100, 100, 100, 100});
    if (permille > 0)
        (void)stall_counted(
            f->world, world_process(f->world, 100),
            &(StallCounts){.instructions = permille * 60000, .cycles = 60000000, .misses = 2000}, 0);
    return world_process(f->world, 100);
}

static Process *setup(Fixture *f, uint64_t permille)
{
    return setup_threads(f, 4, permille);
}

static void count(Fixture *f, uint64_t permille)
{
    assert_true(stall_counted(
        f->world, world_process(f->world, 100),
        &(StallCounts){.instructions = permille * 60000, .cycles = 60000000, .misses = 2000}, 0));
}

static void end_move(Fixture *f)
{
    Process *process = world_process(f->world, 100);

    process->memory.to = NULL;
    process->memory.last = process->gather.nodes;
    process->memory.over_usec = f->world->now_usec;
    seconds(f, 1);
}

/* No note is made if the process was not counted, or if most memory is on the target already, all is on one
 * other node, or there is next to none. */
static void test_not_noted(void **state)
{
    static const struct {
        uint64_t counted;
        uint64_t mib[4];
        bool ablated;
        bool noted;
    } cases[] = {
        {1000, {100, 100, 100, 100}, false, true}, {0, {100, 100, 100, 100}, false, false},
        {1000, {301, 99, 0, 0}, false, false},     {1000, {1, 1, 0, 0}, false, false},
        {1000, {0, 400, 0, 0}, false, false},      {1000, {0, 100, 100, 0}, false, true},
        {1000, {100, 100, 100, 100}, true, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;
        Process *process = setup(&f, cases[i].counted);

        f.world->ablated = cases[i].ablated ? 1ULL << ABLATION_SLOWER : 0;
        set_memory(&f, 100, cases[i].mib);
        gather_begun(f.world, f.policies->policies[0], process, fixture_mask(&f, "0"));
        assert_int_equal(process->gather.nodes != NULL, cases[i].noted);
        assert_false(gather_is_undone(f.world, f.policies->policies[0], process));
    }
}

/* Memory goes back after the process was twice counted to be slower, with all memory on the target. */
static void test_slower_twice(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Process *process = setup(&f, 1000);

    gather_begun(f.world, f.policies->policies[0], process, fixture_mask(&f, "0"));
    assert_ptr_equal(process->gather.nodes, fixture_mask(&f, "0-3"));
    process->memory.to = fixture_mask(&f, "0");
    seconds(&f, 1);
    count(&f, 500); /* in flight */
    assert_false(process->gather.slower);
    end_move(&f);
    count(&f, 860); /* noise */
    assert_false(process->gather.slower);
    seconds(&f, 1);
    process->stall_due_usec = f.world->now_usec + 10000000;
    count(&f, 500);
    assert_true(process->gather.slower);
    assert_int_equal(process->stall_due_usec, f.world->now_usec + 2000000);
    seconds(&f, 2);
    count(&f, 900); /* no longer slower */
    assert_false(process->gather.slower);
    seconds(&f, 1);
    count(&f, 500);
    assert_false(gather_is_undone(f.world, f.policies->policies[0], process));
    seconds(&f, 2);
    count(&f, 500);
    assert_true(gather_is_undone(f.world, f.policies->policies[0], process));
    assert_int_equal(process->gather.progress, 500);
}

/* In a trial, memory stays there for an hour if that is faster; otherwise it goes home for good. */
static void test_trial(void **state)
{
    static const struct {
        uint64_t permille;
        bool helps;
    } cases[] = {{1000, true}, {575, true}, {570, false}, {400, false}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;
        Process *process = setup(&f, 1000);

        gather_begun(f.world, f.policies->policies[0], process, fixture_mask(&f, "0"));
        for (int k = 0; k < 2; k++) {
            seconds(&f, 2);
            count(&f, 500);
        }
        assert_true(process->gather.trial);
        seconds(&f, 2);
        count(&f, cases[i].permille); /* nothing has moved yet */
        assert_true(process->gather.trial);
        end_move(&f);
        count(&f, cases[i].permille);
        assert_int_equal(gather_is_undone(f.world, f.policies->policies[0], process), cases[i].helps);
        seconds(&f, 3595);
        assert_int_equal(gather_is_undone(f.world, f.policies->policies[0], process), cases[i].helps);
        seconds(&f, 10);
        assert_false(gather_is_undone(f.world, f.policies->policies[0], process));
    }
}

/* Slowness that comes later, or after a request that moved nothing, has other causes. The rest of the memory,
 * going the same way, changes nothing. */
static void test_compared(void **state)
{
    for (int i = 0; i < 3; i++) {
        CLEANUP(fixture_done) Fixture f;
        Process *process = setup(&f, 1000);

        gather_begun(f.world, f.policies->policies[0], process, fixture_mask(&f, "0"));
        process->memory.last = fixture_mask(&f, "0");
        process->memory.n_vain = i == 1;
        seconds(&f, i == 0 ? 61 : 2);
        set_memory(&f, 100, (uint64_t[]){380, 20, 0, 0});
        if (i == 2)
            gather_begun(f.world, f.policies->policies[0], process, fixture_mask(&f, "0"));
        count(&f, 500);
        assert_int_equal(process->gather.slower, i == 2);
        assert_int_equal(process->gather.nodes != NULL, i == 2);
    }
}

/* A trial ends when it was counted, however long the move takes. */
static void test_long_trial(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Process *process = setup(&f, 1000);

    gather_begun(f.world, f.policies->policies[0], process, fixture_mask(&f, "0"));
    process->stall_due_usec = f.world->now_usec + 60000000;
    for (int k = 0; k < 2; k++) {
        seconds(&f, 2);
        count(&f, 500);
        process->stall_due_usec = f.world->now_usec + 60000000;
    }
    process->memory.to = process->gather.nodes;
    seconds(&f, 100);
    process->stall_due_usec = f.world->now_usec + 60000000;
    count(&f, 500);
    assert_true(process->gather.trial);
    assert_int_equal(process->stall_due_usec, f.world->now_usec + 2000000);
    end_move(&f);
    count(&f, 1000);
    assert_false(process->gather.trial);
    assert_true(gather_is_undone(f.world, f.policies->policies[0], process));
}

static const PlanAction *find_move(const Fixture *f)
{
    for (size_t i = 0; i < f->plan.n_actions; i++)
        if (f->plan.actions[i].kind == PLAN_KIND_MOVE_PAGES)
            return &f->plan.actions[i];
    return NULL;
}

/* Sets up a process with memory on node 1 that is to lie on nodes 1 and 2 for the next 20 seconds. */
static Process *go_back(Fixture *f, int n_threads)
{
    Process *process = setup_threads(f, n_threads, 1000);

    process->gather = (MemoryGather){.nodes = fixture_mask(f, "1-2"),
                                     .cpuset = process->cpuset,
                                     .progress = 500,
                                     .since_usec = f->world->now_usec,
                                     .until_usec = f->world->now_usec + 20000000};
    process->cpu_permille = (uint32_t)n_threads * 1000;
    seconds(f, 3);
    set_memory(f, 100, (uint64_t[]){0, 400, 0, 0});
    return process;
}

/* Two processes of one group, whose memory lay on different nodes: the home includes the nodes of both, and
 * the memory of each goes to its own. */
static void test_two(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Process *process;

    fixture_init(&f, FOUR);
    fixture_memory(&f);
    fixture_policy(&f, "a", "[Placement]\nMode=auto\n[Workload]\nGroupBy=workload\n");
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        add_job(&f, pid, 4, 0, 8);
        process = world_process(f.world, pid);
        process->gather = (MemoryGather){.nodes = fixture_mask(&f, pid == 100 ? "0-1" : "1-2"),
                                         .cpuset = process->cpuset,
                                         .until_usec = f.world->now_usec + 20000000};
        process->cpu_permille = 4000;
    }
    seconds(&f, 3);
    for (pid_t pid = 100; pid <= 200; pid += 100)
        set_memory(&f, pid, (uint64_t[]){0, 400, 0, 0});
    fixture_place(&f);
    assert_nodes(&f, 100, "0-2");
    assert_ptr_equal(world_process(f.world, 100)->memory.to, fixture_mask(&f, "0-1"));
    assert_ptr_equal(world_process(f.world, 200)->memory.to, fixture_mask(&f, "1-2"));
}

/* One of two processes of a group goes back. The home goes with it once it has most of the CPU time, and
 * stays as long as it has a quarter. */
static void test_most(void **state)
{
    static const struct {
        uint32_t permille; /* CPU time of that process; the other one runs 2000 */
        bool back;
    } steps[] = {{1500, false}, {3000, true}, {1500, true}, {900, true}, {500, false}, {1500, false}};
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, FOUR);
    fixture_memory(&f);
    fixture_policy(&f, "a", "[Placement]\nMode=auto\nSettleSec=0\n[Workload]\nGroupBy=workload\n");
    for (pid_t pid = 100; pid <= 200; pid += 100) {
        add_job(&f, pid, 3, 0, 8);
        set_memory(&f, pid, (uint64_t[]){0, 400, 0, 0});
        world_process(f.world, pid)->cpu_permille = 2000;
    }
    world_process(f.world, 100)->gather = (MemoryGather){.nodes = fixture_mask(&f, "1-2"),
                                                         .cpuset = world_process(f.world, 100)->cpuset,
                                                         .until_usec = f.world->now_usec + 3600000000ULL};
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        world_process(f.world, 100)->cpu_permille = steps[i].permille;
        seconds(&f, 70);
        fixture_home(&f);
        assert_nodes(&f, 100, steps[i].back ? "1-2" : "1");
    }
}

/* The plan: the memory is interleaved over the nodes where it lay, and the home is as wide, for that reason, also for
 * a single thread. */
static void test_plan(void **state)
{
    for (int n_threads = 1; n_threads <= 4; n_threads += 3) {
        CLEANUP(fixture_done) Fixture f;

        (void)go_back(&f, n_threads);
        fixture_plan(&f, true);
        assert_non_null(find_move(&f));
        assert_int_equal(find_move(&f)->rule, PLAN_RULE_GO_BACK);
        assert_true(find_move(&f)->memory.stripe);
        assert_ptr_equal(find_move(&f)->memory.to, fixture_mask(&f, "1-2"));
        fixture_place(&f);
        assert_nodes(&f, 100, "1-2");
        fixture_plan(&f, true);
        assert_true(f.plan.n_refused[PLAN_REASON_SLOWER] > 0);
    }
}

/* Memory of a new process does not come to fewer nodes before the process was counted, but only where processes are
 * counted, and for two seconds. */
static void test_count_awaited(void **state)
{
    static const struct {
        const char *policy;
        uint64_t mib[4];
        int seconds;
        bool counting, counted, ablated;
        bool awaited;
    } cases[] = {
        {AUTO, {100, 100, 100, 100}, 1, true, false, false, true},
        {AUTO, {100, 100, 100, 100}, 2, true, false, false, false},
        {AUTO, {100, 100, 100, 100}, 1, false, false, false, false},
        {AUTO, {100, 100, 100, 100}, 1, true, true, false, false},
        {AUTO, {100, 100, 100, 100}, 1, true, false, true, false},
        {AUTO, {0, 400, 0, 0}, 1, true, false, false, false},
        {AUTO, {301, 99, 0, 0}, 1, true, false, false, false},
        {"[Placement]\nMode=compress\n", {100, 100, 100, 100}, 1, true, false, false, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;
        Process *process;

        fixture_init(&f, FOUR);
        fixture_memory(&f);
        fixture_policy(&f, "a", cases[i].policy);
        add_job(&f, 100, 4, 0, 8);
        process = world_process(f.world, 100);
        process->first_seen_usec = f.world->now_usec;
        process->stall_due_usec = cases[i].counting ? f.world->now_usec + 10000000 : 0;
        f.world->ablated = cases[i].ablated ? 1ULL << ABLATION_SLOWER : 0;
        seconds(&f, cases[i].seconds);
        set_memory(&f, 100, cases[i].mib);
        if (cases[i].counted)
            count(&f, 1000);
        assert_int_equal(
            gather_awaits_count(f.world, f.policies->policies[0], process, fixture_mask(&f, "0")),
            cases[i].awaited);
    }
}

/* Sets up a new process that is about to be counted for the first time. */
static Process *setup_new(Fixture *f)
{
    Process *process = setup(f, 0);

    process->first_seen_usec = f->world->now_usec;
    process->stall_due_usec = f->world->now_usec + 10000000;
    seconds(f, 1);
    set_memory(f, 100, (uint64_t[]){100, 100, 100, 100});
    return process;
}

/* The plan: the process has its home at once, and its memory follows when the process has been counted. */
static void test_follows_count(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    (void)setup_new(&f);
    fixture_home(&f);
    assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100)->home_nodes), 1);
    fixture_plan(&f, true);
    assert_null(find_move(&f));
    assert_true(f.plan.n_refused[PLAN_REASON_USE_AWAITED] > 0);
    fixture_commit(&f, NULL);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 0);
    assert_false(f.plan.settled); /* time alone prevents it */
    count(&f, 1000);
    fixture_plan(&f, true);
    assert_non_null(find_move(&f));
    assert_ptr_equal(find_move(&f)->memory.to, group_of(&f, 100)->home_nodes);
}

/* Memory that could not go back does not wait for a count. */
static void test_count_not_awaited(void **state)
{
    enum {
        PINNED,
        ONE_NODE,
        KERNEL,
        BOUND,
        N_CASES
    };

    for (int i = 0; i < N_CASES; i++) {
        CLEANUP(fixture_done) Fixture f;
        Process *process = setup_new(&f);

        for (pid_t tid = 100; tid < 104 && i == PINNED; tid++) {
            fixture_find(&f, 100, tid)->hands = TASK_HANDS_FOREIGN;
            fixture_find(&f, 100, tid)->allowed = fixture_mask(&f, "0-7");
        }
        f.policies->policies[0]->max_nodes = i == ONE_NODE ? 1 : 0;
        f.world->kernel_balances = process->use_hidden = i == KERNEL;
        process->bound_bytes = i == BOUND ? 400 * MIB : 0;
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_refused[PLAN_REASON_USE_AWAITED], 0);
        if (i == BOUND) {
            assert_int_equal(f.plan.n_refused[PLAN_REASON_MEMORY_BOUND], 1);
            continue;
        }
        assert_non_null(find_move(&f));
        assert_int_equal(find_move(&f)->rule, i == PINNED ? PLAN_RULE_FOLLOW_PIN : PLAN_RULE_FOLLOW_HOME);
    }
}

/* After a trial that did not help, the memory comes together on one node again, also that of a single thread. */
static void test_together_again(void **state)
{
    for (int n_threads = 1; n_threads <= 4; n_threads += 3) {
        CLEANUP(fixture_done) Fixture f;
        Process *process = go_back(&f, n_threads);

        fixture_home(&f);
        assert_nodes(&f, 100, "1-2");
        assert_true(process->memory.stripe);
        process->memory.to = NULL;
        process->memory.todo_bytes = 0;
        process->memory.over_usec = f.world->now_usec;
        process->gather = (MemoryGather){0};
        seconds(&f, 60);
        set_memory(&f, 100, (uint64_t[]){0, 200, 200, 0});
        fixture_plan(&f, true);
        assert_non_null(find_move(&f));
        assert_int_equal(find_move(&f)->rule, PLAN_RULE_FOLLOW_HOME);
        fixture_commit(&f, NULL);
        assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100)->home_nodes), 1);
    }
}

/* Not over more nodes than the policy allows, nor if the policy names nodes, with
 * another mode or cpuset, or if the threads would starve there. */
static void test_not_back(void **state)
{
    enum {
        MAX_NODES,
        NODES,
        MODE,
        CPUSET,
        STARVES,
        PAUSED,
        N_CASES
    };

    for (int i = 0; i < N_CASES; i++) {
        CLEANUP(fixture_done) Fixture f;
        Process *process = go_back(&f, 4);
        Policy *policy = f.policies->policies[0];

        if (i == STARVES) {
            fixture_home(&f);
            assert_nodes(&f, 100, "1-2");
            seconds(&f, 11);
            for (pid_t tid = 110; tid < 130; tid++)
                fixture_task(&f, 100, tid, 0);
            set_demand(&f, 100, 550, 450);
        }
        policy->max_nodes = i == MAX_NODES ? 1 : 0;
        policy->nodes = i == NODES ? hwloc_bitmap_dup(fixture_mask(&f, "0")) : NULL;
        policy->mode = i == MODE ? POLICY_MODE_COMPRESS : POLICY_MODE_AUTO;
        if (i == CPUSET)
            process->cpuset = fixture_mask(&f, "0-15");
        f.world->workloads[0].paused = i == PAUSED;
        fixture_plan(&f, true);
        assert_true(!find_move(&f) || find_move(&f)->rule != PLAN_RULE_GO_BACK);
        fixture_home(&f);
        assert_true(!group_of(&f, 100)->home_nodes ||
                    !hwloc_bitmap_isequal(group_of(&f, 100)->home_nodes, fixture_mask(&f, "1-2")));
    }
}

TEST_MAIN(NULL, NULL, test_not_noted, test_slower_twice, test_trial, test_compared, test_long_trial,
          test_plan, test_two, test_most, test_not_back, test_count_awaited, test_follows_count,
          test_count_not_awaited, test_together_again)
