/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads that their user pinned to exactly the mask they are to get. Process 100 has threads 100, 101 and 102. */

#include "fixture.h"

static void see(Fixture *f)
{
    for (pid_t tid = 100; tid <= 102; tid++)
        fixture_world_task(f, 100, tid);
}

static void test_thread(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_pin(f->record, 101, "0-3"));
    see(f);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_true(fixture_wrote(f, " original=0-7 whole=yes\n"
                                 "thread pid=100 start=1000 tid=101 born=1000 original=0-3 whole=no\n"
                                 "mask pid=100 start=1000 mask=0-3\n"));
    fixture_recover(f, 2, 0);
    assert_masks(f, "100=0-7 101=0-3 102=0-7");
}

/* The first thread is pinned, too: threads born later get the mask of the others. */
static void test_first_thread(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_pin(f->record, 100, "0-3"));
    see(f);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 10);
    assert_true(act_record_clone(f->record, 101, 103));
    fixture_restore(f, 3, 0);
    assert_masks(f, "100=0-3 102=0-7 103=0-7");
}

static void pin_all(Fixture *f, const char *mask)
{
    for (pid_t tid = 100; tid <= 102; tid++)
        assert_true(act_record_pin(f->record, tid, mask));
}

/* The whole process is pinned: one line is enough. The plan takes the mask for inherited, but the process's
 * parent is not ours. */
static void test_process(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_add_process(f->record, 50, 1, 50, "0-7"));
    act_record_exit(f->record, 100);
    assert_true(act_record_fork(f->record, 50, 100) && act_record_clone(f->record, 100, 101) &&
                act_record_clone(f->record, 100, 102));
    f->world.n_processes = 0;
    fixture_world_process(f, 100, "0-7");
    pin_all(f, "0-3");
    see(f);
    f->plan.n_actions = 1;
    f->actions[0] = (PlanAction){
        .kind = PLAN_KIND_SET_HOME,
        .subject = {.pid = 100, .start_ticks = act_record_key(f->record, 100).start_ticks},
        .from = fixture_mask(f, "0-7"),
        .to = fixture_mask(f, "0-3"),
        .original = fixture_mask(f, "0-7"),
    };
    assert_int_equal(act_execute(f->act, &f->world, &f->plan, f->outcomes), 0);
    assert_int_equal(f->outcomes[0], PLAN_OUTCOME_DONE);
    assert_true(fixture_wrote(f, " original=0-3 whole=no\nmask "));
    assert_false(fixture_wrote(f, "\nthread "));

    /* It moves with the others, and returns to its user's choice. */
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-3", "4-7", -1), PLAN_OUTCOME_DONE);
    assert_mask(f, 102, "4-7");
    fixture_restore(f, 3, 0);
    assert_masks(f, "100=0-3 102=0-3");
}

/* The home that a thread was pinned to comes later; so does a lent CPU that makes a mask of ours equal to the
 * thread's. */
static void test_later_masks(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_pin(f->record, 101, "4-7"));
    assert_true(act_record_pin(f->record, 102, "0-4"));
    see(f);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 100, "0-3", "0-4", 4), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 100, "0-4", "4-7", -1), PLAN_OUTCOME_DONE);
    fixture_restore(f, 1, 0);
    assert_masks(f, "100=0-7 101=4-7 102=0-4");
}

/* Managed, released, pinned to the former home, and managed again. */
static void test_again(void **state)
{
    Fixture *f = *state;

    see(f);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_pin(f->record, 101, "0-3"));
    f->world.n_tasks = 0;
    see(f);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    assert_masks(f, "100=0-7 101=0-3");

    /* Once more, when it is as wide as the others. */
    assert_true(act_record_pin(f->record, 101, "0-7"));
    f->world.n_tasks = 0;
    see(f);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    fixture_restore(f, 3, 0);
    assert_mask(f, 101, "0-7");
}

/* One thread changed its mask after the World was read, another one ended. */
static void test_looked_at_again(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_pin(f->record, 101, "0-3"));
    assert_true(act_record_pin(f->record, 102, "0-3"));
    see(f);
    assert_true(act_record_pin(f->record, 101, "0-7"));
    act_record_exit(f->record, 102);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_false(fixture_wrote(f, "\nthread "));
    fixture_restore(f, 2, 0);
    assert_mask(f, 101, "0-7");
}

/* Released, pinned to what was its home, and placed elsewhere: a mask from before the release is nobody's any more. */
static void test_pinned_to_an_earlier_home(void **state)
{
    Fixture *f = *state;

    fixture_world_process(f, 100, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, "0-3", NULL, -1), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 10);
    assert_true(act_record_pin(f->record, 101, "0-3"));
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "4-7", -1), PLAN_OUTCOME_DONE);
    assert_masks(f, "100=4-7 101=0-3 102=4-7");
    fixture_recover(f, 2, 1);
    assert_masks(f, "100=0-7 101=0-3 102=0-7");

    /* The same home again. */
    see(f);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, "0-3", NULL, -1), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 10);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    fixture_recover(f, 2, 0);
    assert_masks(f, "100=0-7 101=0-3 102=0-7");
}

TEST_MAIN(fixture_setup_threads, fixture_teardown, test_thread, test_first_thread, test_process,
          test_later_masks, test_again, test_looked_at_again, test_pinned_to_an_earlier_home)
