/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Telling inherited masks from masks that a user set. Process 100, a child of the shell 90, lives on CPUs 0-3
 * of eight. Everything is restored after a crash, unless a test says otherwise. */

#include "fixture.h"

#include "act/internal.h"
#include "act/place.h"

#define ELSEWHERE 77U /* cgroups other than the roots */

static int setup(void **state)
{
    Fixture *f = fixture_new(state);

    fixture_start(f);
    if (!act_record_add_process(f->record, 1, 0, 1, "0-7") ||
        !act_record_add_process(f->record, 90, 1, 90, "0-7") || !act_record_fork(f->record, 90, 100))
        return -1;
    act_record_advance(f->record, 10);
    /* Born before 100 got its mask, in the same session, and pinned: must stay pinned. */
    if (!act_record_fork(f->record, 90, 95) || !act_record_fork(f->record, 95, 96) ||
        !act_record_pin(f->record, 96, "0-3"))
        return -1;
    act_record_exit(f->record, 95);
    act_record_advance(f->record, 10);
    fixture_world_process(f, 100, "0-7");
    if (fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1) != PLAN_OUTCOME_DONE)
        return -1;
    act_record_advance(f->record, 10);
    return 0;
}

/* fork, setsid, fork; the processes in between end. */
static void daemonize(Fixture *f, pid_t creator, pid_t pid)
{
    assert_true(act_record_fork(f->record, creator, pid - 1));
    act_record_set_session(f->record, pid - 1, pid - 1);
    assert_true(act_record_fork(f->record, pid - 1, pid));
    act_record_exit(f->record, pid - 1);
}

static void born(Fixture *f, pid_t pid)
{
    TaskKey key = act_record_key(f->record, pid);

    key.tid = 0;
    assert_int_equal(act_follow_births(f->act, &key, 1), 0);
}

static void crash_and_restore(Fixture *f)
{
    fixture_restart(f);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_masks(f, "100=0-7 96=0-3");
}

/* Born while no daemon looked, in the session and group of 100, to a shell that still lives. */
static void test_innocent(void **state)
{
    Fixture *f = *state;

    fixture_fork_pinned(f->record, 90, 200, "0-3");
    assert_true(act_record_fork(f->record, 90, 210)); /* in a session of its own */
    act_record_set_session(f->record, 210, 210);
    assert_true(act_record_pin(f->record, 210, "0-3"));
    assert_true(act_record_fork(f->record, 200, 220)); /* with a child */
    assert_true(act_record_fork(f->record, 100, 300)); /* beside them, one that did inherit */
    crash_and_restore(f);
    assert_masks(f, "200=0-3 210=0-3 220=0-3 300=0-7");
}

/* The same when 100 has ended meanwhile, so that the process cannot be its child. */
static void test_innocent_later(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 100, 300));
    act_record_exit(f->record, 100);
    act_record_advance(f->record, 10);
    fixture_fork_pinned(f->record, 90, 200, "0-3");
    fixture_recover(f, 1, 0);
    assert_masks(f, "200=0-3 300=0-7");
}

/* A chain of processes that moved to other cgroups, seen while the last but one is ending. */
static void test_ending(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 100, 201));
    act_record_set_place(f->record, 201, ELSEWHERE);
    act_record_exit(f->record, 100);
    act_record_advance(f->record, 10);
    assert_true(act_record_fork(f->record, 201, 202));
    act_record_set_session(f->record, 201, -1);
    fixture_restart(f);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_mask(f, 202, "0-7");
}

/* The last but one is exiting, and may stay so while hundreds of others run. Its child is judged without it,
 * by its own cgroups, as nothing else is left. */
static void test_exiting(void **state)
{
    Fixture *f = *state;

    act_record_set_place(f->record, 90, ELSEWHERE);
    act_record_set_session(f->record, 90, 0);
    assert_true(act_record_fork(f->record, 90, 110));
    act_record_advance(f->record, 10);
    fixture_world_process(f, 110, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 110, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 10);
    assert_true(act_record_fork(f->record, 110, 201));
    act_record_exit(f->record, 110);
    act_record_advance(f->record, 10);
    assert_true(act_record_fork(f->record, 201, 202));
    act_record_set_exiting(f->record, 201);
    fixture_restart(f);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_mask(f, 202, "0-7");
}

static void test_daemon(void **state)
{
    Fixture *f = *state;

    daemonize(f, 100, 201);
    assert_true(act_record_fork(f->record, 201, 202));
    assert_true(act_record_clone(f->record, 202, 203));
    crash_and_restore(f);
    assert_masks(f, "201=0-7 202=0-7 203=0-7");
}

/* A daemon in other cgroups that inherited what its parent's user chose. */
static void test_daemon_of_others(void **state)
{
    Fixture *f = *state;

    act_record_set_place(f->record, 90, ELSEWHERE);
    assert_true(act_record_pin(f->record, 90, "0-3"));
    daemonize(f, 90, 201);
    assert_true(act_record_pin(f->record, 90, "0-7"));
    crash_and_restore(f);
    assert_mask(f, 201, "0-3");
}

/* In cgroups other than the roots, the same place is evidence enough for a process in a session of its own;
 * in the roots it is not. */
static void test_place(void **state)
{
    Fixture *f = *state;

    act_record_set_place(f->record, 100, ELSEWHERE);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 10);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_fork(f->record, 100, 201));
    act_record_detach(f->record, 201);
    assert_true(act_record_fork(f->record, 100, 211));
    act_record_detach(f->record, 211);
    act_record_set_place(f->record, 211, ACT_PLACE_ROOT);
    crash_and_restore(f);
    assert_masks(f, "201=0-7 211=0-3");
}

/* Moved, or its cgroup renamed, while no daemon ran: children that it had before and has since are found. */
static void test_place_changes(void **state)
{
    Fixture *f = *state;

    act_record_set_place(f->record, 100, ELSEWHERE);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 10);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_fork(f->record, 100, 201));
    act_record_detach(f->record, 201);
    act_record_set_place(f->record, 100, ELSEWHERE + 1);
    assert_true(act_record_fork(f->record, 100, 211));
    act_record_detach(f->record, 211);
    assert_true(act_record_fork(f->record, 100, 221));
    act_record_detach(f->record, 221);
    act_record_set_place(f->record, 221, ELSEWHERE + 2);
    crash_and_restore(f);
    assert_masks(f, "201=0-7 211=0-7 221=0-3");
}

static void reuse(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    bool *done = userdata;

    if (op != ACT_RECORD_GET_PLACE || task.pid != 100 || *done)
        return;
    *done = true;
    act_record_exit(record, 100);
    assert_true(act_record_add_process(record, 100, 1, 100, "0-7"));
    act_record_set_place(record, 100, ELSEWHERE + 1);
}

/* It ends just before its cgroups are read, and another process gets its PID: what is in those is not ours. */
static void test_place_of_another(void **state)
{
    Fixture *f = *state;
    bool done = false;

    act_record_set_place(f->record, 100, ELSEWHERE);
    assert_true(act_record_add_process(f->record, 201, 1, 201, "0-3"));
    act_record_set_place(f->record, 201, ELSEWHERE + 1);
    act_record_advance(f->record, 10);
    fixture_restart(f);
    act_record_set_hook(f->record, reuse, &done);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_true(done);
    assert_masks(f, "201=0-3");
}

/* A living session leader began its session, so what holds for the leader holds for processes of the session. */
static void test_leader(void **state)
{
    Fixture *f = *state;

    /* 210 leads the session; 211 forks 212 and ends. */
    assert_true(act_record_fork(f->record, 90, 210));
    act_record_set_session(f->record, 210, 210);
    assert_true(act_record_fork(f->record, 210, 211));
    fixture_fork_pinned(f->record, 211, 212, "0-3");
    act_record_exit(f->record, 211);
    /* The same, descending from 100. */
    assert_true(act_record_fork(f->record, 100, 220));
    act_record_set_session(f->record, 220, 220);
    assert_true(act_record_fork(f->record, 220, 221));
    assert_true(act_record_fork(f->record, 221, 222));
    act_record_exit(f->record, 221);
    crash_and_restore(f);
    assert_masks(f, "212=0-3 222=0-7");
}

/* The first process of a container adopts its orphans. Other adopters are known by the session of the orphans. */
static void test_reapers(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 90, 110));
    act_record_set_first(f->record, 110);
    assert_true(act_record_fork(f->record, 110, 120)); /* in the group of 100, and apparently an orphan */
    assert_true(act_record_pin(f->record, 120, "0-3"));
    assert_true(act_record_fork(f->record, 90, 130)); /* the same without being the first process */
    fixture_fork_pinned(f->record, 130, 140, "0-3");
    act_record_set_session(f->record, 130, 130);
    fixture_fork_pinned(f->record, 130, 150, "0-3");
    crash_and_restore(f);
    assert_masks(f, "120=0-7 140=0-7 150=0-3");
}

/* Seen while its parent lived: remembered when nothing else shows its descent any more. */
static void test_heir_is_remembered(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 100, 200));
    born(f, 200);
    act_record_detach(f->record, 200);
    assert_true(act_record_fork(f->record, 200, 210));
    act_record_detach(f->record, 210);
    assert_true(act_record_fork(f->record, 200, 220));
    crash_and_restore(f);
    assert_mask(f, 200, "0-7");
    assert_mask(f, 210, "0-3"); /* never seen alive with its parent: a known limit */
    assert_mask(f, 220, "0-7");
}

/* A child is born while only these CPUs are online, and loses its parent when all are. */
static void bear_and_restore(Fixture *f, const char *online)
{
    assert_true(act_record_fork(f->record, 100, 200));
    assert_true(act_record_set_online(f->record, online));
    born(f, 200);
    assert_true(act_record_set_online(f->record, "0-7"));
    act_record_detach(f->record, 200);
    crash_and_restore(f);
    assert_mask(f, 200, "0-7");
}

/* Seen while a CPU of the home was offline: its mask has that CPU again when it is back. */
static void test_heir_of_offline_cpus(void **state)
{
    bear_and_restore(*state, "0-2,4-7");
}

/* Without the lent CPU, which is offline, its mask looks like the home. */
static void test_heir_of_offline_lease(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 100, "0-3", "0-4", -1), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 10);
    bear_and_restore(f, "0-3,5-7");
}

/* All of them are offline, and the kernel shows an empty mask for a task that sleeps. */
static void test_heir_without_cpus(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 100, 200));
    assert_true(act_record_fork(f->record, 100, 300));
    assert_true(act_record_set_online(f->record, "4-7"));
    born(f, 200);
    act_record_detach(f->record, 200);
    fixture_restart(f);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_true(act_record_set_online(f->record, "0-7"));
    assert_masks(f, "100=0-7 96=0-3 200=0-7 300=0-7");
}

static void test_stranger_is_remembered(void **state)
{
    Fixture *f = *state;
    CLEANUP_FREE char *text = NULL;

    assert_true(act_record_fork(f->record, 90, 110));
    fixture_fork_pinned(f->record, 110, 200, "0-3");
    born(f, 200);
    born(f, 200);
    text = fixture_journal(f);
    assert_non_null(strstr(text, "\nstranger pid=200 start=1030\n"));
    assert_null(strstr(strstr(text, "\nstranger") + 1, "\nstranger"));
    /* Its child is a stranger, too. */
    assert_true(act_record_fork(f->record, 200, 220));
    born(f, 220);
    assert_true(journal_is_stranger(f->act->journal, 220, 1030));
    /* Now they look like orphans of the group of 100. */
    act_record_exit(f->record, 110);
    assert_true(act_record_fork(f->record, 200, 210));
    crash_and_restore(f);
    assert_masks(f, "200=0-3 210=0-3 220=0-3");
}

/* Seen while a process becomes a daemon: the parent is an orphan with no evidence, and ends a moment later. */
static void test_undecided(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 100, 199));
    act_record_detach(f->record, 199);
    assert_true(act_record_fork(f->record, 199, 200));
    born(f, 200);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(act_follow_births(f->act, NULL, 0), 0);
    assert_false(fixture_wrote(f, "pid=200 "));
    act_record_exit(f->record, 199);
    assert_int_equal(act_follow_births(f->act, NULL, 0), 0);
    for (unsigned i = 0; i < 8; i++) /* the intervals between attempts grow */
        assert_int_equal(act_follow_births(f->act, NULL, 0), 0);
    assert_true(fixture_wrote(f, "\nprocess pid=200 "));
    act_record_detach(f->record, 200);
    crash_and_restore(f);
    assert_mask(f, 200, "0-7");
}

/* A process that stays undecided is not looked at for ever. */
static void test_undecided_for_long(void **state)
{
    Fixture *f = *state;

    for (pid_t pid = 1000; pid < 1300; pid++) {
        assert_true(act_record_fork(f->record, 100, pid));
        act_record_detach(f->record, pid);
        born(f, pid);
    }
    assert_in_range(f->act->n_undecided, 1, ACT_UNDECIDED_MAX);
    for (unsigned i = 0; i < 66000; i++)
        assert_int_equal(act_follow_births(f->act, NULL, 0), 0);
    assert_int_equal(f->act->n_undecided, 0);
}

/* Processes whose mask is not ours are ignored, and so is one that is in the journal already. */
static void test_births_of_others(void **state)
{
    Fixture *f = *state;
    size_t n = f->act->journal->n_lines;

    assert_true(act_record_fork(f->record, 90, 200));
    fixture_fork_pinned(f->record, 90, 210, "1");
    born(f, 200);
    born(f, 210);
    born(f, 100);
    assert_int_equal(act_follow_births(f->act, &(TaskKey){.pid = 999, .start_ticks = 1}, 1), 0);
    assert_int_equal(f->act->journal->n_lines, n);
}

/* Heirs, and heirs of heirs, are restored with the process they inherited from, unless they have a home of
 * their own. */
static void test_release(void **state)
{
    Fixture *f = *state;

    for (pid_t pid = 200; pid < 230; pid += 10) {
        assert_true(act_record_fork(f->record, 100, pid));
        born(f, pid);
    }
    assert_true(act_record_fork(f->record, 200, 201));
    born(f, 201);
    act_record_detach(f->record, 200);
    act_record_detach(f->record, 201);
    assert_true(act_record_pin(f->record, 210, "1")); /* by its user, meanwhile */
    fixture_world_process(f, 220, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 220, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    assert_masks(f, "100=0-7 200=0-7 201=0-7 210=1 220=0-3");
    fixture_restore(f, 1, 0);
    assert_mask(f, 220, "0-7");
}

/* Its parent has ended: it is restored with another member of the group, with which it would not have been before. */
static void test_release_of_the_rest(void **state)
{
    Fixture *f = *state;

    for (pid_t pid = 110; pid <= 120; pid += 10) {
        assert_true(act_record_fork(f->record, 100, pid));
        fixture_world_process(f, pid, "0-7");
        assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, pid, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    }
    act_record_advance(f->record, 10);
    assert_true(act_record_fork(f->record, 110, 200));
    assert_true(act_record_fork(f->record, 100, 210));
    born(f, 200);
    born(f, 210);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 110, 0, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    assert_masks(f, "200=0-7 210=0-3");
    act_record_exit(f->record, 100);
    f->processes[0].gone = true;
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 120, 0, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    assert_mask(f, 210, "0-7");
}

/* A process that is being restored has children that were never seen. By then it has another mask, but the
 * journal knows it. */
static void bear_late(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    bool *done = userdata;

    if (op == ACT_RECORD_SET_MASK && task.tid == 201 && !*done) {
        *done = true;
        assert_true(act_record_fork(record, 201, 150)); /* a PID that the sweep has passed already */
        act_record_set_session(record, 150, 150);
        assert_true(act_record_fork(record, 201, 250));
        act_record_set_session(record, 250, 250);
    }
}

static void test_children_of_restored(void **state)
{
    Fixture *f = *state;
    bool done = false;

    daemonize(f, 100, 201);
    act_record_exit(f->record, 100);
    act_record_set_hook(f->record, bear_late, &done);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_true(done);
    assert_masks(f, "201=0-7 150=0-7 250=0-7");
}

/* A member is given the home that it was born with, while its parent or it itself ends. */
typedef struct Ending {
    pid_t pid;
    unsigned after; /* number of times that its cgroups are asked for */
} Ending;

static void end(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    Ending *ending = userdata;

    if (op == ACT_RECORD_GET_PLACE && task.pid == ending->pid && ending->after > 0 && --ending->after == 0)
        act_record_exit(record, ending->pid);
}

static PlanOutcome give_home(Fixture *f, pid_t pid)
{
    TaskKey key = act_record_key(f->record, pid);

    f->plan.n_actions = 1;
    f->actions[0] = (PlanAction){
        .kind = PLAN_KIND_SET_HOME,
        .subject = {.pid = pid, .start_ticks = key.start_ticks},
        .from = fixture_mask(f, "0-7"),
        .to = fixture_mask(f, "0-3"),
        .original = fixture_mask(f, "0-7"),
    };
    assert_int_equal(act_execute(f->act, &f->world, &f->plan, f->outcomes), 0);
    return f->outcomes[0];
}

static void test_parent_ends(void **state)
{
    Fixture *f = *state;
    Ending ending = {.pid = 201, .after = 2}; /* in the second question, which is for members */

    daemonize(f, 100, 201);
    act_record_set_session(f->record, 201, 201);
    assert_true(act_record_fork(f->record, 201, 202));
    fixture_world_process(f, 202, "0-7");
    act_record_set_hook(f->record, end, &ending);
    assert_int_equal(give_home(f, 202), PLAN_OUTCOME_DONE);
    assert_int_equal(act_record_key(f->record, 201).start_ticks, 0);
    crash_and_restore(f);
    assert_mask(f, 202, "0-7");
}

static void test_ends_itself(void **state)
{
    Fixture *f = *state;
    Ending ending = {.pid = 201, .after = 1};

    daemonize(f, 100, 201);
    act_record_set_session(f->record, 201, 201);
    fixture_world_process(f, 201, "0-7");
    act_record_set_hook(f->record, end, &ending);
    assert_int_equal(give_home(f, 201), PLAN_OUTCOME_RETRY);
    assert_false(fixture_wrote(f, "process pid=201 "));
}

/* The number of strangers kept is bounded. */
static void test_many_strangers(void **state)
{
    Fixture *f = *state;

    fixture_fork_pinned(f->record, 90, 200, "0-3");
    for (uint64_t i = 0; i < JOURNAL_STRANGERS_MAX + 10; i++)
        assert_int_equal(journal_note_stranger(f->act->journal, 1000 + (pid_t)i, 1), 0);
    born(f, 200);
    assert_int_equal(f->act->journal->n_strangers, JOURNAL_STRANGERS_MAX);
    crash_and_restore(f);
    assert_mask(f, 200, "0-3");
    assert_int_equal(f->act->journal->n_strangers, 0);
}

static void test_texts(void **state)
{
    (void)state;
    assert_int_equal(place_of_cgroups(""), ACT_PLACE_UNKNOWN);
    assert_int_equal(place_of_cgroups("0::/\n"), ACT_PLACE_ROOT);
    assert_int_equal(place_of_cgroups("3:cpuset:/\n1:name=systemd:/\n0::/\n"), ACT_PLACE_ROOT);
    assert_true(place_of_cgroups("0::/a\n") > ACT_PLACE_ROOT);
    assert_true(place_of_cgroups("0::/a/\n") > ACT_PLACE_ROOT);
    assert_int_equal(place_of_cgroups("3:cpuset:/\n0::/a\n"), place_of_cgroups("3:cpuset:/\n0::/a\n"));
    assert_int_not_equal(place_of_cgroups("3:cpuset:/\n0::/a\n"), place_of_cgroups("3:cpuset:/a\n0::/\n"));

    assert_false(place_is_first(""));
    assert_false(place_is_first("Name:\ta\nNSpid:\t1\n")); /* of our namespace: known by its PID */
    assert_true(place_is_first("Name:\ta\nNSpid:\t4711\t1\nNSpgid:\t4711\t1\n"));
    assert_false(place_is_first("Name:\ta\nNSpid:\t4711\t17\n"));
    assert_true(place_is_first("Name:\ta\nNSpid:\t4711\t17\t1\n"));
    assert_false(place_is_first("Name:\tNSpid:\t4711\t1\n"));
    assert_false(place_is_first("Name:\ta\nNSpid:\tx\t1\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_innocent),
        TEST(test_innocent_later),
        TEST(test_ending),
        TEST(test_exiting),
        TEST(test_daemon),
        TEST(test_daemon_of_others),
        TEST(test_place),
        TEST(test_place_changes),
        TEST(test_place_of_another),
        TEST(test_leader),
        TEST(test_reapers),
        TEST(test_parent_ends),
        TEST(test_ends_itself),
        TEST(test_heir_is_remembered),
        TEST(test_heir_of_offline_cpus),
        TEST(test_heir_of_offline_lease),
        TEST(test_heir_without_cpus),
        TEST(test_stranger_is_remembered),
        TEST(test_undecided),
        TEST(test_undecided_for_long),
        TEST(test_births_of_others),
        TEST(test_release),
        TEST(test_release_of_the_rest),
        TEST(test_children_of_restored),
        TEST(test_many_strangers),
        cmocka_unit_test(test_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
