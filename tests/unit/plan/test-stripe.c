/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory striped over nodes (P17): by Mode=interleave, and if one of several nodes has nearly all of it. */

#include "fixture.h"
#include "plan/memory/follow.h"

#define FOUR_NODES "numa:4 l3:1 core:4 pu:1"
#define INTERLEAVE "[Placement]\nMode=interleave\n"
#define AUTO       "[Placement]\nMode=auto\n"
#define MIB        ((uint64_t)1 << 20)
#define SEC        ((uint64_t)1000000)
#define N_THREADS  8

/* Sets the MiB of process 10 on each of four nodes, as measured now. */
static void set_memory(Fixture *f, uint64_t on_0, uint64_t on_1, uint64_t on_2, uint64_t on_3)
{
    const uint64_t bytes[] = {on_0 * MIB, on_1 * MIB, on_2 * MIB, on_3 * MIB};

    fixture_bytes(f, 10, bytes);
}

/* Sets up process 10 with eight busy threads, on nodes 0 and 1 of four nodes of 4 CPUs, where it stays. */
static void setup(Fixture *f, const char *policy)
{
    Group *g;

    fixture_init(f, FOUR_NODES);
    fixture_memory(f);
    fixture_policy(f, "a", policy);
    fixture_process(f, 10, "a", NULL);
    for (pid_t i = 0; i < N_THREADS; i++) {
        Task *task = fixture_task(f, 10, 10 + i, 0);

        task->original = task->allowed;
        task->allowed = fixture_mask(f, "0-7");
    }
    world_sum(f->world);
    g = &f->world->groups[0];
    g->home = fixture_mask(f, "0-7");
    g->home_nodes = fixture_mask(f, "0-1");
    g->last_home_usec = f->world->now_usec - 5 * SEC;
    g->frozen_until_usec = f->world->now_usec + 3600 * SEC;
    set_memory(f, 64, 0, 0, 0);
}

/* Sets its home; NULL: all nodes. */
static void set_home(Fixture *f, const char *cpus, const char *nodes)
{
    Group *g = &f->world->groups[0];

    g->home = cpus ? fixture_mask(f, cpus) : NULL;
    g->home_nodes = nodes ? fixture_mask(f, nodes) : NULL;
    g->roams = !cpus;
    for (pid_t i = 0; i < N_THREADS; i++) {
        Task *task = fixture_find(f, 10, 10 + i);

        task->allowed = fixture_mask(f, cpus);
        task->original = cpus ? fixture_mask(f, NULL) : NULL;
    }
}

static MemoryMove *move_of(Fixture *f)
{
    return &world_process(f->world, 10)->memory;
}

static void end_order(Fixture *f, uint64_t moved)
{
    const Process *process = world_process(f->world, 10);

    follow_over(f->world, f->policies,
                &(FollowResult){
                    .subject = {.pid = 10, .start_ticks = process->start_ticks},
                    .group_id = f->world->groups[0].id,
                    .end = FOLLOW_END_DONE,
                    .time_usec = f->world->now_usec,
                    .moved_bytes = moved,
                });
}

static const PlanAction *assert_ordered(Fixture *f, PlanRule rule, const char *from, const char *to,
                                        uint64_t mib)
{
    const PlanAction *a;

    fixture_plan(f, true);
    assert_int_equal(fixture_count(f, PLAN_KIND_MOVE_PAGES), 1);
    a = fixture_action(f, PLAN_KIND_MOVE_PAGES, 0);
    assert_int_equal(a->rule, rule);
    assert_int_equal(a->mechanism, rule == PLAN_RULE_FOLLOW_HOME ? 18 : 17);
    assert_int_equal(a->memory.stripe, rule != PLAN_RULE_FOLLOW_HOME);
    assert_ptr_equal(a->memory.from, fixture_mask(f, from));
    assert_ptr_equal(a->memory.to, fixture_mask(f, to));
    assert_int_equal(a->memory.bytes, mib * MIB);
    return a;
}

static void assert_refused(Fixture *f, PlanReason reason, uint64_t value, uint64_t limit)
{
    size_t n = 0;

    fixture_plan(f, true);
    assert_int_equal(fixture_count(f, PLAN_KIND_MOVE_PAGES), 0);
    for (size_t i = 0; i < f->plan.n_refusals; i++)
        if (f->plan.refusals[i].reason == reason && f->plan.refusals[i].mechanism >= 17) {
            assert_int_equal(f->plan.refusals[i].value, value);
            assert_int_equal(f->plan.refusals[i].limit, limit);
            n++;
        }
    assert_int_equal(n, 1);
}

static void assert_silent(Fixture *f)
{
    fixture_plan(f, true);
    assert_int_equal(fixture_count(f, PLAN_KIND_MOVE_PAGES), 0);
    for (size_t i = 0; i < f->plan.n_refusals; i++)
        assert_int_not_equal(f->plan.refusals[i].mechanism, 17);
}

/* Memory beyond a node's share, or outside the home, is moved from a fiftieth of it all on. */
static void test_interleave(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, INTERLEAVE);
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "0", "0-1", 32);
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, true);
    assert_true(move_of(&f)->stripe);
    assert_true(follow_holds(f.world, f.policies, world_process(f.world, 10)));
    fixture_done(&f);

    setup(&f, INTERLEAVE);
    set_memory(&f, 250, 50, 0, 100);
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "0,3", "0-1", 150);
    set_memory(&f, 208, 192, 0, 0);
    assert_refused(&f, PLAN_REASON_MEMORY_EVEN, 8 * MIB, 8 * MIB);
    set_memory(&f, 209, 191, 0, 0);
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "0", "0-1", 9);
    set_memory(&f, 200, 200, 0, 0);
    assert_silent(&f);
    /* Only a node that is to receive memory needs room. */
    set_memory(&f, 64, 0, 0, 0);
    f.world->nodes[1].free_bytes = 819 * MIB;
    assert_refused(&f, PLAN_REASON_HEADROOM, 0, 2 * MIB);
    f.world->nodes[1].free_bytes = 4096 * MIB;
    f.world->nodes[0].free_bytes = 0;
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "0", "0-1", 32);
    /* The kernel's balancing would move it back to its users. */
    f.world->kernel_balances = true;
    assert_refused(&f, PLAN_REASON_KERNEL_BALANCES, 0, 0);
}

/* If the home becomes one node, that gets all memory; if it becomes three, the memory is striped anew. */
static void test_home_changes(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, INTERLEAVE);
    set_memory(&f, 60, 60, 0, 0);
    assert_silent(&f);
    set_home(&f, "0-3", "0");
    (void)assert_ordered(&f, PLAN_RULE_FOLLOW_HOME, "1", "0", 60);
    set_home(&f, "0-11", "0-2");
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "0-1", "0-2", 40);
    fixture_commit(&f, NULL);
    assert_true(follow_holds(f.world, f.policies, world_process(f.world, 10)));
    set_home(&f, "0-3", "0");
    assert_false(follow_holds(f.world, f.policies, world_process(f.world, 10)));
}

/* A roaming process is striped over all nodes on which it can run. */
static void test_roams(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, INTERLEAVE);
    set_home(&f, NULL, NULL);
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "0", "0-3", 48);
    fixture_commit(&f, NULL);
    assert_true(follow_holds(f.world, f.policies, world_process(f.world, 10)));
    f.world->groups[0].roams = false;
    assert_false(follow_holds(f.world, f.policies, world_process(f.world, 10)));
    fixture_done(&f);

    setup(&f, INTERLEAVE);
    set_home(&f, NULL, NULL);
    for (uint32_t i = 12; i < 16; i++)
        f.world->cpus[i].usable = false;
    set_memory(&f, 30, 30, 30, 30);
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "3", "0-2", 30);
    f.world->topology->nodes[2].memory_bytes = 0;
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "2-3", "0-1", 60);
    /* Memory on nodes outside its cpuset is never near. */
    world_process(f.world, 10)->cpuset = fixture_mask(&f, "0-3");
    assert_silent(&f);
    world_process(f.world, 10)->cpuset = fixture_mask(&f, NULL);
    f.policies->policies[0]->mode = POLICY_MODE_SPREAD;
    assert_silent(&f);
}

/* Memory that is uneven after striping is not striped again at once; the pause doubles each time. */
static void test_again(void **state)
{
    uint64_t pause = 0;
    CLEANUP(fixture_done) Fixture f;

    setup(&f, INTERLEAVE);
    for (unsigned i = 0; i < 8; i++) {
        uint64_t before = pause;

        (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "0", "0-1", 32);
        fixture_commit(&f, NULL);
        fixture_wait(&f, SEC / 10);
        end_order(&f, 32 * MIB);
        pause = move_of(&f)->until_usec - f.world->now_usec;
        assert_int_equal(pause, i == 0 ? 2 * SEC : MIN(2 * before, 60 * SEC));
        fixture_wait(&f, pause - 1);
        set_memory(&f, 64, 0, 0, 0);
        assert_refused(&f, PLAN_REASON_RESIDENCY, pause - 1, pause);
        fixture_wait(&f, 1);
    }
    assert_int_equal(pause, 60 * SEC);
    /* Other nodes start anew. */
    set_home(&f, "0-11", "0-2");
    fixture_place(&f);
    assert_int_equal(move_of(&f)->n_vain, 0);
}

/* If memory lies where its addresses say and is uneven all the same, it is not walked through again until
 * more has come. */
static void test_uneven_by_address(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, INTERLEAVE);
    f.policies->policies[0]->min_residency_usec = f.policies->policies[0]->ping_pong_usec = 0;
    set_memory(&f, 37, 31, 0, 0);
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "0", "0-1", 3);
    fixture_commit(&f, NULL);
    fixture_wait(&f, SEC / 10);
    end_order(&f, 0);
    fixture_wait(&f, SEC);
    set_memory(&f, 37, 31, 0, 0);
    assert_refused(&f, PLAN_REASON_MEMORY_EVEN, 3 * MIB, 5 * MIB);
    set_memory(&f, 43, 31, 0, 0);
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "0", "0-1", 6);
    /* After a request that moved some, all unevenness counts again. */
    fixture_commit(&f, NULL);
    fixture_wait(&f, SEC / 10);
    end_order(&f, 3 * MIB);
    fixture_wait(&f, SEC);
    set_memory(&f, 40, 34, 0, 0);
    (void)assert_ordered(&f, PLAN_RULE_INTERLEAVE, "0", "0-1", 3);
}

static void test_even_out(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    setup(&f, AUTO);
    (void)assert_ordered(&f, PLAN_RULE_EVEN_OUT, "0", "0-1", 32);
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, true);
    assert_true(follow_holds(f.world, f.policies, world_process(f.world, 10)));
    fixture_done(&f);

    /* More than three quarters, including memory outside the home. */
    setup(&f, AUTO);
    set_memory(&f, 75, 25, 0, 0);
    assert_silent(&f);
    set_memory(&f, 77, 23, 0, 0);
    (void)assert_ordered(&f, PLAN_RULE_EVEN_OUT, "0", "0-1", 27);
    set_memory(&f, 10, 10, 80, 0);
    (void)assert_ordered(&f, PLAN_RULE_FOLLOW_HOME, "2", "0-1", 80);
    set_memory(&f, 75, 0, 25, 0);
    (void)assert_ordered(&f, PLAN_RULE_FOLLOW_HOME, "2", "0-1", 25);
    set_memory(&f, 80, 0, 20, 0);
    (void)assert_ordered(&f, PLAN_RULE_EVEN_OUT, "0,2", "0-1", 50);
    set_memory(&f, 80, 20, 0, 0);
    set_home(&f, NULL, NULL);
    (void)assert_ordered(&f, PLAN_RULE_EVEN_OUT, "0", "0-3", 55);
}

/* Each guard, with the value that is not enough and the one that is. */
static void test_even_out_guards(void **state)
{
    static const uint64_t use[4] = {1000};
    MemoryMove *move;
    Process *process;
    CLEANUP(fixture_done) Fixture f;

    setup(&f, AUTO);
    f.policies->policies[0]->even_out = false;
    assert_refused(&f, PLAN_REASON_EVEN_OUT_OFF, 0, 0);
    f.policies->policies[0]->even_out = true;

    /* Eight threads run 5000 permille: no more than a node of four CPUs and a quarter. */
    for (pid_t i = 0; i < N_THREADS; i++)
        fixture_find(&f, 10, 10 + i)->run_ewma_permille = 625;
    assert_refused(&f, PLAN_REASON_FITS_NODE, 5000, 5000);
    fixture_find(&f, 10, 10)->run_ewma_permille = 626;
    (void)assert_ordered(&f, PLAN_RULE_EVEN_OUT, "0", "0-1", 32);
    /* CPUs that are not usable do not count. */
    for (pid_t i = 0; i < N_THREADS; i++)
        fixture_find(&f, 10, 10 + i)->run_ewma_permille = 500;
    assert_refused(&f, PLAN_REASON_FITS_NODE, 4000, 5000);
    f.world->cpus[3].usable = false;
    (void)assert_ordered(&f, PLAN_RULE_EVEN_OUT, "0", "0-1", 32);

    /* A thread whose use is known can be put next to its memory. */
    fixture_use(&f, 10, 17, use, 1000, (TaskKey){0});
    assert_silent(&f);
    assert_int_equal(world_set_task_use(f.world, fixture_find(&f, 10, 17), NULL, 0, (TaskKey){0}, 0), 0);

    process = world_process(f.world, 10);
    process->started_usec = f.world->now_usec - SEC + 1;
    assert_refused(&f, PLAN_REASON_TOO_YOUNG, SEC - 1, SEC);
    process->started_usec--;
    f.world->groups[0].last_home_usec = f.world->now_usec - SEC + 1;
    assert_refused(&f, PLAN_REASON_UNSETTLED, SEC - 1, SEC);
    f.world->groups[0].last_home_usec--;
    (void)assert_ordered(&f, PLAN_RULE_EVEN_OUT, "0", "0-1", 32);

    move = move_of(&f);
    move->last = fixture_mask(&f, "0");
    move->since_usec = f.world->now_usec - 61 * SEC;
    move->over_usec = f.world->now_usec - 60 * SEC + 1;
    assert_refused(&f, PLAN_REASON_RESIDENCY, 60 * SEC - 1, 60 * SEC);
    move->over_usec--;
    (void)assert_ordered(&f, PLAN_RULE_EVEN_OUT, "0", "0-1", 32);
}

/* Many single-threaded processes are a group that needs all nodes, but each can be beside its own memory. */
static void test_even_out_by_process(void **state)
{
    static const uint64_t bytes[] = {64 * MIB, 0, 0, 0};
    CLEANUP(fixture_done) Fixture f;

    setup(&f, "[Workload]\nGroupBy=workload\n" AUTO);
    for (pid_t pid = 10; pid < 18; pid++) {
        fixture_find(&f, 10, pid)->run_ewma_permille = pid == 10 ? 1000 : 0;
        if (pid == 10)
            continue;
        fixture_process(&f, pid * 10, "a", NULL);
        fixture_task(&f, pid * 10, pid * 10, 0);
        fixture_bytes(&f, pid * 10, bytes);
    }
    world_sum(f.world);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 0);
    assert_int_equal(f.plan.n_refused[PLAN_REASON_FITS_NODE], 8);
}

/* plan_check() finds each violation. */
static void test_check(void **state)
{
    PlanAction *a;
    CLEANUP(fixture_done) Fixture f;

    setup(&f, INTERLEAVE);
    fixture_plan(&f, true);
    a = &f.plan.actions[f.plan.n_actions - 1];
    assert_int_equal(a->kind, PLAN_KIND_MOVE_PAGES);
    ASSERT_BROKEN(&f, a->memory.stripe = false, a->memory.stripe = true);
    ASSERT_BROKEN(&f, a->rule = PLAN_RULE_EVEN_OUT, a->rule = PLAN_RULE_INTERLEAVE);
    ASSERT_BROKEN(&f, a->rule = PLAN_RULE_FOLLOW_HOME, a->rule = PLAN_RULE_INTERLEAVE);
    ASSERT_BROKEN(&f, a->memory.to = fixture_mask(&f, "0"), a->memory.to = fixture_mask(&f, "0-1"));
    ASSERT_BROKEN(&f, a->memory.to = fixture_mask(&f, "0-2"), a->memory.to = fixture_mask(&f, "0-1"));
    f.world->groups[0].home = f.world->groups[0].home_nodes = NULL;
    ASSERT_BROKEN(&f, f.world->groups[0].roams = false, f.world->groups[0].roams = true);
}

TEST_MAIN(NULL, NULL, test_interleave, test_home_changes, test_roams, test_again, test_uneven_by_address,
          test_even_out, test_even_out_guards, test_even_out_by_process, test_check)
