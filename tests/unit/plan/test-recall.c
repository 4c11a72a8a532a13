/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P2: when lent CPUs are taken back. */

#include "fixture.h"

#define FIXED0 "[Placement]\nMode=fixed\nNodes=0\n[Limits]\nNiceTries=0\n"
#define FIXED1 "[Placement]\nMode=fixed\nNodes=1\n"

/* Process 10, confined to node 0, borrowed CPU 8 for thread 10 and CPU 9 for thread 11 of its 10 busy threads
 * two seconds ago. Process 20 owns node 1 and sleeps. */
static void make_lent(Fixture *f)
{
    fixture_init_with(f, TWO_SHARDS, FIXED0);
    fixture_policy(f, "b", FIXED1);
    fixture_process(f, 10, "a", NULL);
    for (pid_t tid = 10; tid < 20; tid++)
        fixture_task(f, 10, tid, tid < 12 ? 501 : 500);
    fixture_process(f, 20, "b", NULL);
    fixture_task(f, 20, 20, 0)->run_permille = 0;
    fixture_cpus(f, 0, 7, 1000, 0);
    fixture_home(f);
    for (size_t i = 2; i < 10; i++) /* waiting for two CPUs */
        f->world->tasks[i].wait_permille = f->world->tasks[i].wait_before_permille = 100;
    fixture_plan(f, false);
    assert_int_equal(fixture_count(f, PLAN_KIND_LEND), 2);
    fixture_commit(f, NULL);
    assert_ptr_equal(fixture_find(f, 10, 10)->allowed, fixture_mask(f, "0-8"));
    assert_ptr_equal(fixture_find(f, 10, 11)->allowed, fixture_mask(f, "0-7,9"));

    for (unsigned i = 0; i < 20; i++)
        fixture_tick(f);
    for (size_t i = 0; i < 10; i++) {
        Task *task = &f->world->tasks[i];

        task->run_permille = task->run_before_permille = task->run_ewma_permille = 1000;
        task->wait_permille = task->wait_before_permille = task->wait_ewma_permille = 0;
        task->last_cpu = (CpuIx){i == 0 ? 8 : i == 1 ? 9 : (int)i - 2};
    }
    fixture_cpus(f, 0, 9, 1000, 0);
    fixture_assert_settled(f, false);
    assert_true(f->plan.pressed); /* a lease runs */
}

/* Asserts that exactly CPU 8 is recalled, by this rule. */
static void assert_recalled(Fixture *f, PlanRule rule)
{
    size_t n_leases = f->world->n_leases;
    const PlanAction *a;

    fixture_plan(f, false);
    if (fixture_count(f, PLAN_KIND_RECALL) != 1) {
        CLEANUP_FREE char *text = plan_format(f->world, &f->plan);

        fail_msg("expected one recall, %s\n%s", plan_rule_name(rule), text);
    }
    a = fixture_action(f, PLAN_KIND_RECALL, 0);
    assert_int_equal(a->rule, rule);
    assert_int_equal(a->subject.tid, 10);
    assert_int_equal(a->cpu.i, 8);
    assert_ptr_equal(a->from, fixture_mask(f, "0-8"));
    assert_ptr_equal(a->to, fixture_mask(f, "0-7"));
    fixture_commit(f, NULL);
    assert_int_equal(f->world->n_leases, n_leases - 1);
    assert_ptr_equal(fixture_find(f, 10, 10)->allowed, fixture_mask(f, "0-7"));
    assert_int_equal(fixture_find(f, 10, 10)->lease, -1);
    assert_int_equal(f->world->workloads[0].n_recalls, 1);
    fixture_assert_settled(f, false);
}

/* A thread that waits no longer than the daemon ran may have waited for the daemon; but not for half a tick. */
static void test_daemon_in_between(void **state)
{
    static const struct {
        uint32_t own;
        uint16_t stays, goes;
    } cases[] = {{0, 99, 100}, {150, 249, 250}, {900, 399, 400}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        make_lent(&f);
        f.world->own_permille = cases[i].own;
        fixture_find(&f, 10, 10)->wait_permille = cases[i].stays;
        fixture_assert_settled(&f, false);
        fixture_find(&f, 10, 10)->wait_permille = cases[i].goes;
        assert_recalled(&f, PLAN_RULE_OWNER_WAITS);
    }
}

/* How the owner's waiting is seen. */
static void test_owner_waits(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_lent(&f);
    f.world->leases[0].since_usec = f.world->now_usec - 1999999;
    fixture_find(&f, 10, 10)->wait_permille = 99;
    fixture_assert_settled(&f, false);
    fixture_find(&f, 10, 10)->wait_permille = 100; /* the borrower, on the lent CPU */
    assert_recalled(&f, PLAN_RULE_OWNER_WAITS);
    assert_int_equal(f.world->cpus[8].cooldown_until_usec, f.world->now_usec + 1000000);
    fixture_done(&f);

    make_lent(&f);
    fixture_cpu(&f, 8, 1000, 100); /* some thread on that CPU */
    assert_recalled(&f, PLAN_RULE_OWNER_WAITS);
    fixture_done(&f);

    /* A thread at home there, on whichever of its CPUs it waits: both borrowers go. */
    for (int cpu = 8; cpu < 12; cpu += 3) {
        make_lent(&f);
        fixture_find(&f, 20, 20)->last_cpu = (CpuIx){cpu};
        fixture_find(&f, 20, 20)->wait_permille = 99;
        fixture_assert_settled(&f, false);
        fixture_find(&f, 20, 20)->wait_permille = 100;
        f.world->cpus[8].wait_known = false;
        fixture_plan(&f, false);
        assert_int_equal(fixture_count(&f, PLAN_KIND_RECALL), 2);
        assert_int_equal(fixture_action(&f, PLAN_KIND_RECALL, 0)->rule, PLAN_RULE_OWNER_WAITS);
        assert_int_equal(fixture_action(&f, PLAN_KIND_RECALL, 1)->rule, PLAN_RULE_OWNER_WAITS);
        fixture_commit(&f, NULL);
        fixture_assert_settled(&f, false);
        fixture_done(&f);
    }

    make_lent(&f);
    fixture_find(&f, 10, 10)->last_cpu = CPU_NONE; /* not known: taken to be on the lent CPU */
    fixture_find(&f, 10, 10)->wait_permille = 300;
    assert_recalled(&f, PLAN_RULE_OWNER_WAITS);
}

/* Each home has a borrower from the other. Waiting of the recalled borrower on the lent CPU was not waiting
 * at home, so it is no reason to recall the other one in a plan of the same instant (I9). */
static void test_waited_on_loan(void **state)
{
    Task *guest;
    CLEANUP(fixture_done) Fixture f;

    make_lent(&f);
    guest = fixture_task(&f, 20, 21, 0);
    guest->original = fixture_mask(&f, "0-15");
    guest->allowed = fixture_mask(&f, "2,8-15");
    guest->last_cpu = (CpuIx){2};
    assert_true(world_add_lease(f.world, &(Lease){
                                             .task = world_task_key(f.world, guest),
                                             .group_id = 2,
                                             .cpu = {2},
                                             .cross_node = true,
                                             .since_usec = f.world->now_usec - 1000000,
                                             .until_usec = f.world->now_usec + 1000000,
                                             .since_tick = f.world->tick - 10,
                                         }) >= 0);
    fixture_cpus(&f, 0, 15, 1000, 0);
    fixture_assert_settled(&f, false);

    fixture_find(&f, 10, 10)->wait_permille = 500;
    assert_recalled(&f, PLAN_RULE_OWNER_WAITS);
    fixture_tick(&f);
    fixture_find(&f, 10, 10)->last_cpu = (CpuIx){3}; /* now it waits at home */
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_RECALL), 1);
    assert_int_equal(fixture_action(&f, PLAN_KIND_RECALL, 0)->subject.tid, 21);
}

static void test_not_the_owner(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    /* Sent there by somebody else: it cannot use the CPUs of the home. */
    make_lent(&f);
    f.world->processes[1].yielded = true;
    fixture_find(&f, 20, 20)->hands = TASK_HANDS_REPINNED;
    fixture_find(&f, 20, 20)->wait_permille = 600;
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_RECALL), 0);
    fixture_done(&f);

    /* The kernel moved the borrower home, where it waits for its own CPUs. */
    make_lent(&f);
    fixture_find(&f, 10, 10)->last_cpu = (CpuIx){3};
    fixture_find(&f, 10, 10)->wait_permille = 600;
    fixture_assert_settled(&f, false);

    /* The waiting of the CPU is the borrower's; on another CPU it would count. */
    fixture_find(&f, 10, 10)->last_cpu = (CpuIx){8};
    fixture_find(&f, 10, 10)->wait_permille = 90;
    fixture_cpu(&f, 8, 1000, 180);
    fixture_assert_settled(&f, false);

    /* A partial reading (I10). */
    fixture_find(&f, 10, 10)->wait_permille = 600;
    f.world->partial = true;
    fixture_assert_settled(&f, false);
}

static void test_lease_ended(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_lent(&f);
    f.world->leases[0].until_usec = f.world->now_usec + 1;
    fixture_assert_settled(&f, false);
    f.world->leases[0].until_usec = f.world->now_usec;
    assert_recalled(&f, PLAN_RULE_LEASE_ENDED);
    assert_int_equal(f.world->cpus[8].cooldown_until_usec,
                     f.world->now_usec + 1); /* no longer than this instant */
}

static void test_asleep(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Task *task;

    make_lent(&f);
    task = fixture_find(&f, 10, 10);
    task->run_permille = task->run_before_permille = task->run_ewma_permille = 49;
    task->wait_ewma_permille = 1;
    fixture_assert_settled(&f, false);
    task->wait_ewma_permille = 0;
    assert_recalled(&f, PLAN_RULE_DEMAND_FELL);
}

/* One idle CPU at home brings one thread back, after its residency. */
static void test_room_at_home(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_lent(&f);
    fixture_cpu(&f, 5, 0, 0);
    fixture_find(&f, 10, 10)->last_move_usec = fixture_find(&f, 10, 11)->last_move_usec =
        f.world->now_usec - 999999;
    fixture_assert_settled(&f, false); /* I7 */
    f.world->now_usec++;
    assert_recalled(&f, PLAN_RULE_DEMAND_FELL);
    fixture_cpu(&f, 5, 1000, 0);
    fixture_tick(&f);
    fixture_assert_settled(&f, false);
}

static void test_farthest_first(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, "numa:3 l3:1 core:2 pu:1 distances=10,20,30,20,10,30,30,30,10",
                      FIXED0 "[Steal]\nNodeLimit=3\n");
    fixture_process(&f, 10, "a", NULL);
    for (pid_t tid = 10; tid < 16; tid++)
        fixture_task(&f, 10, tid, 700);
    fixture_cpus(&f, 0, 1, 1000, 0);
    fixture_home(&f);
    fixture_plan(&f, false);
    fixture_commit(&f, NULL);
    assert_int_equal(f.world->n_leases, 4);
    for (unsigned i = 0; i < 20; i++)
        fixture_tick(&f);
    for (size_t i = 0; i < 6; i++) {
        f.world->tasks[i].wait_permille = f.world->tasks[i].wait_before_permille = 0;
        f.world->tasks[i].last_cpu = CPU_NONE;
    }
    fixture_cpus(&f, 0, 5, 1000, 0);
    fixture_cpu(&f, 1, 0, 0);
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_RECALL), 1);
    assert_int_equal(fixture_action(&f, PLAN_KIND_RECALL, 0)->cpu.i, 4);
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, false);
}

static void test_cpu_gone(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_lent(&f);
    f.world->cpus[8].usable = false;
    assert_recalled(&f, PLAN_RULE_CPU_GONE);
    fixture_done(&f);

    make_lent(&f);
    f.world->processes[0].cpuset = fixture_mask(&f, "0-7,9-15");
    assert_recalled(&f, PLAN_RULE_CPU_GONE);
}

static void test_paused(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_lent(&f);
    f.world->workloads[0].paused = true;
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_RECALL), 2);
    assert_int_equal(fixture_action(&f, PLAN_KIND_RECALL, 0)->rule, PLAN_RULE_PAUSED);
    fixture_commit(&f, NULL);
    assert_int_equal(f.world->n_leases, 0);
    assert_non_null(f.world->groups[0].home); /* the home stays */
    fixture_assert_settled(&f, true);
}

/* The home moves: leases end first, and their threads go straight to the new home. */
static void test_home_changed(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_lent(&f);
    assert_int_equal(hwloc_bitmap_only(f.policies->policies[0]->nodes, 1), 0);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_RECALL), 2);
    assert_int_equal(fixture_action(&f, PLAN_KIND_RECALL, 0)->rule, PLAN_RULE_HOME_CHANGED);
    assert_int_equal(fixture_count(&f, PLAN_KIND_SET_HOME), 1);
    fixture_commit(&f, NULL);
    assert_ptr_equal(fixture_find(&f, 10, 10)->allowed, fixture_mask(&f, "8-15"));
    assert_ptr_equal(fixture_find(&f, 10, 19)->allowed, fixture_mask(&f, "8-15"));
    fixture_assert_settled(&f, true);
}

/* Releasing a process also gives back the CPUs it borrowed. */
static void test_release(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_lent(&f);
    f.policies->policies[0]->mode = POLICY_MODE_NONE;
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 1);
    assert_int_equal(f.plan.actions[0].kind, PLAN_KIND_RELEASE);
    fixture_commit(&f, NULL);
    assert_int_equal(f.world->n_leases, 0);
    assert_ptr_equal(fixture_find(&f, 10, 10)->allowed, fixture_mask(&f, NULL));
    fixture_assert_settled(&f, false);
}

/* I2, I10: a borrower that must be left alone is left alone. */
static void test_hands(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    make_lent(&f);
    fixture_find(&f, 10, 10)->hands = TASK_HANDS_UNKNOWN;
    fixture_find(&f, 10, 10)->wait_permille = 900;
    fixture_assert_settled(&f, false);
}

/* The promise: a recall within two ticks of the owner's waking, at any moment of a tick, whatever share of the CPU the
 * owner wants, from a third up. Two threads on one CPU get half of it each, or less if one wants less. */
static void test_two_ticks(void **state)
{
    for (unsigned wake = 0; wake < 100; wake += 5)
        for (unsigned want = 34; want <= 100; want += 6) {
            unsigned ticks = 0;
            CLEANUP(fixture_done) Fixture f;

            make_lent(&f);
            do {
                unsigned awake = ticks == 0 ? 100 - wake : 100; /* percent of this tick */
                Task *borrower = fixture_find(&f, 10, 10);

                /* For each percent of a tick the owner gets min(want, 50 %) of it, and the borrower loses as much. */
                borrower->wait_before_permille = borrower->wait_permille;
                borrower->wait_permille = (uint16_t)(awake * MIN(want, 50U) / 10);
                fixture_tick(&f);
                fixture_plan(&f, false);
                ticks++;
            } while (fixture_count(&f, PLAN_KIND_RECALL) == 0 && ticks < 5);
            assert_true(ticks <= 2);
        }
}

TEST_MAIN(NULL, NULL, test_owner_waits, test_daemon_in_between, test_waited_on_loan, test_not_the_owner,
          test_lease_ended, test_asleep, test_room_at_home, test_farthest_first, test_cpu_gone, test_paused,
          test_home_changed, test_release, test_hands, test_two_ticks)
