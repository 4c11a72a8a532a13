/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Actions on process 100 while its cpuset changes: whatever the kernel leaves of a mask of ours is still ours. */

#include "fixture.h"

/* The cpuset was narrowed after the plan was made. */
static void test_cut(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_set_cpuset(f->record, 100, "0-5"));
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-5", "4-7", -1), PLAN_OUTCOME_REFUSED);
    assert_masks(f, "100=0-5 101=0-5");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-5", "6-7", -1), PLAN_OUTCOME_REFUSED);
    fixture_restore(f, 0, 0);
}

/* The cpuset is narrowed while the daemon runs. */
static void test_cpuset_changes(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    fixture_tick(f);
    assert_true(act_record_set_cpuset(f->record, 100, "2-7"));
    assert_mask(f, 100, "2-3");
    f->processes[0].cpuset = fixture_mask(f, "2-7");
    fixture_tick(f);
    fixture_recover(f, 3, 0);
    assert_mask(f, 100, "2-7");
}

/* Each CPU goes offline for a while, one after the other. What a cpuset left of a mask is not cut by the next one. */
static void test_cpuset_changes_often(void **state)
{
    Fixture *f = *state;
    CLEANUP_FREE char *text = NULL;
    size_t n_masks = 0;
    char list[64];

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-5", -1), PLAN_OUTCOME_DONE);
    for (int without = 0; without < 12; without++) {
        size_t len = 0;

        for (int cpu = 0; cpu < 8; cpu++)
            if (cpu != without % 6)
                len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%d", len > 0 ? "," : "", cpu);
        assert_true(act_record_set_cpuset(f->record, 100, list));
        f->processes[0].cpuset = fixture_mask(f, list);
        fixture_tick(f);
        assert_true(act_record_set_cpuset(f->record, 100, "0-7"));
        f->processes[0].cpuset = fixture_mask(f, "0-7");
        fixture_tick(f);
    }
    text = fixture_journal(f);
    for (const char *at = text; (at = strstr(at, "\nmask pid=100 ")); at++)
        n_masks++;
    assert_int_equal(n_masks, 1 + 6);
    fixture_recover(f, 3, 0);
}

/* The same, but everything is restored before the new cpuset is seen. The kernel remembers the masks that it
 * is given. */
static void test_cpuset_cut_unseen(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_fork(f->record, 100, 110));
    assert_true(act_record_set_cpuset(f->record, 100, "0-2,4-7"));
    assert_true(act_record_set_cpuset(f->record, 110, "0-2,4-7"));
    assert_true(act_record_pin(f->record, 101, "1-2")); /* by its user */
    assert_mask(f, 100, "0-2");
    fixture_recover(f, 3, 1);
    assert_mask(f, 101, "1-2");
    for (pid_t tid = 100; tid <= 110; tid += 10) {
        assert_mask(f, tid, "0-2,4-7");
        assert_true(act_record_set_cpuset(f->record, tid, "0-7"));
        assert_mask(f, tid, "0-7");
    }
}

/* The new cpuset leaves no CPU of the home, so the thread has all of the cpuset. It is restored all the same,
 * because the kernel would remember the home. */
static void test_cpuset_elsewhere(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_fork(f->record, 100, 110));
    for (pid_t pid = 100; pid <= 110; pid += 10)
        assert_true(act_record_set_cpuset(f->record, pid, "5-7"));
    assert_true(act_record_pin(f->record, 101, "6-7")); /* by its user */
    assert_mask(f, 100, "5-7");
    fixture_recover(f, 3, 1);
    for (pid_t pid = 100; pid <= 110; pid += 10) {
        assert_true(act_record_set_cpuset(f->record, pid, "0-7"));
        assert_mask(f, pid, "0-7");
    }
    assert_mask(f, 101, "6-7");
}

/* What the cpuset leaves of our mask happens to be the thread's original mask. The mask that the kernel
 * remembers is still ours. */
static void check_cut_to_original(Fixture *f, const char *home, bool seen)
{
    assert_true(act_record_add_process(f->record, 120, 1, 120, "2-3"));
    fixture_world_process(f, 120, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 120, 0, "2-3", home, -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_set_cpuset(f->record, 120, "2-3"));
    assert_mask(f, 120, "2-3");
    if (seen) {
        f->processes[1].cpuset = fixture_mask(f, "2-3");
        fixture_tick(f);
    }
    fixture_recover(f, 0, 0);
    assert_true(act_record_set_cpuset(f->record, 120, "0-7"));
    assert_mask(f, 120, "2-3");
}

static void test_cpuset_cut_to_original(void **state)
{
    check_cut_to_original(*state, "0-3", false);
}

static void test_cpuset_cut_to_original_seen(void **state)
{
    check_cut_to_original(*state, "0-3", true);
}

static void test_cpuset_leaves_original(void **state)
{
    check_cut_to_original(*state, "4-7", false);
}

static void test_cpuset_leaves_original_seen(void **state)
{
    check_cut_to_original(*state, "4-7", true);
}

/* A cpuset that was narrowed after the World was read: what it leaves of a mask of all CPUs is not a user's choice. */
static void check_narrower_than_known(Fixture *f, const char *home, PlanOutcome outcome)
{
    assert_true(act_record_set_cpuset(f->record, 100, "4-7"));
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "4-7", home, -1), outcome);
    fixture_recover(f, outcome == PLAN_OUTCOME_DONE ? 3 : 0, 0);
    assert_true(act_record_set_cpuset(f->record, 100, "0-7"));
    assert_mask(f, 100, "0-7");
}

static void test_cpuset_narrower_than_known(void **state)
{
    check_narrower_than_known(*state, "4-5", PLAN_OUTCOME_DONE);
}

static void test_cpuset_narrower_than_known_refused(void **state)
{
    check_narrower_than_known(*state, "0-3", PLAN_OUTCOME_REFUSED);
}

/* The same when a plan releases the process, and gives it a home again afterwards. */
static void test_cpuset_elsewhere_and_back(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_set_cpuset(f->record, 100, "5-7"));
    f->processes[0].cpuset = fixture_mask(f, "5-7");
    fixture_tick(f);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, "5-7", "0-7", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_set_cpuset(f->record, 100, "0-7"));
    assert_mask(f, 100, "0-7");
    f->processes[0].cpuset = fixture_mask(f, "0-7");
    fixture_tick(f);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_mask(f, 100, "0-3");
    fixture_restore(f, 3, 0);
    assert_mask(f, 100, "0-7");
}

/* A mask that lacks only isolated CPUs was no choice. It follows the cpuset again, and still has no isolated CPU. */
static void test_cpuset_isolated(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_isolate(f->record, "7"));
    assert_true(act_record_add_process(f->record, 120, 1, 120, "0-6"));
    fixture_world_process(f, 120, "0-2,4-7");
    assert_true(act_record_set_cpuset(f->record, 120, "0-2,4-7"));
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 120, 0, "0-2,4-6", "0-2", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_set_cpuset(f->record, 120, "0-7"));
    fixture_restore(f, 1, 0);
    assert_mask(f, 120, "0-6");
}

/* For a task that sleeps while all its CPUs are offline, the kernel shows an empty mask. */
static void test_without_cpus(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_pin(f->record, 101, "6-7"));
    assert_true(act_record_set_online(f->record, "0-5"));
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 101, "6-7", "0-3", -1), PLAN_OUTCOME_RETRY);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 101, "0-7", "6-7", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_set_online(f->record, "0-7"));
    fixture_recover(f, 0, 0);
    assert_mask(f, 101, "6-7");
}

TEST_MAIN(fixture_setup_threads, fixture_teardown, test_cut, test_cpuset_changes, test_cpuset_changes_often,
          test_cpuset_cut_unseen, test_cpuset_elsewhere, test_cpuset_cut_to_original,
          test_cpuset_cut_to_original_seen, test_cpuset_leaves_original, test_cpuset_leaves_original_seen,
          test_cpuset_narrower_than_known, test_cpuset_narrower_than_known_refused,
          test_cpuset_elsewhere_and_back, test_cpuset_isolated, test_without_cpus)
