/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Workloads follow the policies, groups follow GroupBy=. */

#include "fixture.h"

#define FIXED0 "[Placement]\nMode=fixed\nNodes=0\n"

static void add_policy(Fixture *f, const char *name, const char *group_by)
{
    char text[128];

    (void)snprintf(text, sizeof(text), FIXED0 "[Workload]\nGroupBy=%s\n", group_by);
    fixture_policy(f, name, text);
}

static int group_of(Fixture *f, pid_t pid)
{
    return world_process(f->world, pid)->group.i;
}

static void test_group_by(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    add_policy(&f, "w", "workload");
    add_policy(&f, "c", "cgroup");
    add_policy(&f, "p", "process");
    for (pid_t pid = 1; pid <= 9; pid++)
        fixture_process(&f, pid, pid <= 3 ? "w" : pid <= 6 ? "c" : "p", NULL);
    assert_int_equal(group_of(&f, 1), group_of(&f, 3));
    assert_int_equal(group_of(&f, 4), group_of(&f, 6));
    assert_int_not_equal(group_of(&f, 7), group_of(&f, 8));
    assert_int_not_equal(group_of(&f, 1), group_of(&f, 4));
    assert_int_equal(f.world->n_groups, 5);
    assert_string_equal(f.world->groups[group_of(&f, 1)].key, "");
    assert_string_equal(f.world->groups[group_of(&f, 4)].key, "/job.slice");
    assert_string_equal(f.world->groups[group_of(&f, 9)].key, "9");

    /* Another cgroup is another group; asking again changes nothing. */
    world_process(f.world, 5)->cgroup = intern_string(f.world->pool, "/other.slice");
    assert_int_equal(group_assign(f.world, f.policies, world_process(f.world, 5), 1), 0);
    assert_int_equal(group_assign(f.world, f.policies, world_process(f.world, 5), 1), 0);
    assert_int_equal(f.world->n_groups, 6);
    assert_int_not_equal(group_of(&f, 5), group_of(&f, 4));
}

static void test_modes(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "off", "[Placement]\nMode=none\n");
    fixture_policy(&f, "on", FIXED0);
    assert_int_equal(f.world->n_workloads, 1);
    assert_string_equal(f.world->workloads[0].name, "on");
    assert_int_equal(f.world->workloads[0].policy, 1);
    assert_ptr_equal(group_policy(f.world, f.policies, (WorkloadIx){0}), f.policies->policies[1]);
    assert_null(group_policy(f.world, f.policies, WORKLOAD_NONE));
    assert_null(group_policy(f.world, f.policies, (WorkloadIx){1}));

    fixture_process(&f, 1, "off", NULL);
    assert_int_equal(group_of(&f, 1), -1);
}

/* A reload: policies come, go, and change places. State is kept by policy name. */
static void test_reload(void **state)
{
    Policy *gone;
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    add_policy(&f, "a", "workload");
    add_policy(&f, "b", "workload");
    add_policy(&f, "c", "workload");
    for (pid_t pid = 1; pid <= 3; pid++) {
        fixture_process(&f, pid, pid == 1 ? "a" : pid == 2 ? "b" : "c", NULL);
        fixture_task(&f, pid, pid, 900);
    }
    f.world->workloads[2].n_lends = 7;
    fixture_home(&f);
    fixture_cpus(&f, 0, 7, 1000, 500);
    assert_int_equal(world_add_lease(f.world, &(Lease){.task = {.pid = 2, .tid = 2, .start_ticks = 20},
                                                       .group_id = 2,
                                                       .cpu = {9},
                                                       .until_usec = UINT64_MAX}),
                     0);

    gone = f.policies->policies[1];
    f.policies->policies[1] = f.policies->policies[0];
    f.policies->policies[0] = f.policies->policies[2];
    f.policies->n_policies = 2; /* c, a */
    assert_int_equal(group_sync_workloads(f.world, f.policies), 0);
    policy_free(gone);

    assert_int_equal(f.world->n_workloads, 2);
    assert_string_equal(f.world->workloads[0].name, "c");
    assert_int_equal(f.world->workloads[0].n_lends, 7);
    assert_int_equal(f.world->workloads[0].policy, 0);
    assert_int_equal(f.world->n_groups, 2);
    assert_int_equal(world_process(f.world, 1)->workload.i, 1);
    assert_int_equal(f.world->groups[group_of(&f, 3)].id, 3);
    assert_int_equal(group_of(&f, 2), -1);
    assert_int_equal(f.world->n_leases, 0);

    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_actions, 1);
    assert_int_equal(f.plan.actions[0].kind, PLAN_KIND_RELEASE);
    assert_int_equal(f.plan.actions[0].subject.pid, 2);
    assert_int_equal(f.plan.actions[0].rule, PLAN_RULE_WORKLOAD_GONE);
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, true);
}

/* A process assigned to another policy goes from home to home. */
static void test_reassigned(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, FIXED0);
    fixture_policy(&f, "b", "[Placement]\nMode=fixed\nNodes=1\n");
    fixture_policy(&f, "c", "[Placement]\nMode=fixed\nNodes=1\n");
    fixture_threads(&f, 1, 1);
    fixture_home(&f);
    assert_int_equal(group_assign(f.world, f.policies, world_process(f.world, 1), 1), 0);
    fixture_assert_settled(&f, false);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_actions, 1);
    assert_int_equal(f.plan.actions[0].kind, PLAN_KIND_SET_HOME);
    assert_ptr_equal(f.plan.actions[0].from, fixture_mask(&f, "0-7"));
    assert_ptr_equal(f.plan.actions[0].to, fixture_mask(&f, "8-15"));
    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, true);

    /* The next group has the same home, and must still be given it. */
    assert_int_equal(group_assign(f.world, f.policies, world_process(f.world, 1), 2), 0);
    fixture_place(&f);
    assert_ptr_equal(f.world->groups[group_of(&f, 1)].home, fixture_mask(&f, "8-15"));
    fixture_assert_settled(&f, true);
}

TEST_MAIN(NULL, NULL, test_group_by, test_modes, test_reload, test_reassigned)
