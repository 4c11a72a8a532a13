/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Releases that take several ticks: a call too many is refused and changes nothing. */

#include "../plan/fixture.h"
#include "daemon/manager/manager.h"

#define PID 100

typedef struct Bench {
    Fixture f;
    Manager manager;
} Bench;

/* A process with too many threads to be released at once, while as many releases are under way as may be. */
static void bench_init(Bench *b)
{
    fixture_init(&b->f, TWO_SHARDS);
    fixture_policy(&b->f, "a", "[Placement]\nMode=auto\n");
    fixture_process(&b->f, PID, "a", NULL);
    for (pid_t i = 0; i <= (pid_t)MANAGER_RELEASE_AT_ONCE; i++)
        fixture_task(&b->f, PID, PID + i, 0);
    b->manager = (Manager){
        .mode = MANAGER_MODE_ACTIVE,
        .world = b->f.world,
        .policies = b->f.policies,
        .released = task_set_new(),
        .n_releasing = MANAGER_RELEASING_MAX,
    };
    assert_non_null(b->manager.released);
}

static void bench_done(Bench *b)
{
    task_set_free(b->manager.released);
    fixture_done(&b->f);
}

static void test_process_too_many(void **state)
{
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    assert_int_equal(manager_release(&b.manager, "100"), MANAGER_E_BUSY);
    assert_int_equal(task_set_size(b.manager.released), 0);
}

static void test_workload_too_many(void **state)
{
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    assert_int_equal(manager_release(&b.manager, "a"), MANAGER_E_BUSY);
    assert_false(world_workload_by_name(b.f.world, "a")->paused);
    assert_int_equal(manager_release(&b.manager, ""), MANAGER_E_BUSY);
    assert_false(b.manager.paused);
    assert_int_equal(manager_release(&b.manager, "nosuch"), MANAGER_E_NO_SUCH_WORKLOAD);
}

TEST_MAIN(NULL, NULL, test_process_too_many, test_workload_too_many)
