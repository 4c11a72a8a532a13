/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Carrying out actions, on the machine in memory with process 100 and its threads 100, 101 and 102. */

#include "fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void test_home(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_string_equal(act_record_log(f->record), "100 0-3\n101 0-3\n102 0-3\n");

    /* Two lines, however many threads there are. */
    assert_true(fixture_wrote(
        f, "\nprocess pid=100 start=1000 group=100 session=100 place=1 since=1010 original=0-7 whole=yes\n"
           "mask pid=100 start=1000 mask=0-3\n"));
    assert_false(fixture_wrote(f, "thread"));

    /* Nothing is left to do. */
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(act_statistics(f->act)->n_set_mask, 3);

    /* From one home to the next: the mask is ours, whatever the plan takes it to be. */
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "4-7", -1), PLAN_OUTCOME_DONE);
    assert_mask(f, 101, "4-7");
    fixture_restore(f, 3, 0);
    assert_masks(f, "100=0-7 102=0-7");
}

/* Just before the last thread is changed, it creates another one, which does the same in the next pass. */
static void bear(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    pid_t *next = userdata;

    if (op == ACT_RECORD_SET_MASK && task.tid == *next - 1 && *next < 110) {
        assert_true(act_record_clone(record, task.tid, *next));
        (*next)++;
    }
}

static void test_births(void **state)
{
    Fixture *f = *state;
    pid_t next = 103;

    act_record_set_hook(f->record, bear, &next);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(next, 110);
    for (pid_t tid = 100; tid < 110; tid++)
        assert_mask(f, tid, "0-3");
    fixture_restore(f, 10, 0);
}

static void multiply(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    pid_t *next = userdata;

    if (op != ACT_RECORD_LIST_THREADS)
        return;
    assert_true(act_record_clone(record, 100, *next));
    assert_true(act_record_pin(record, *next, "0-7"));
    (*next)++;
}

static void test_births_without_end(void **state)
{
    Fixture *f = *state;
    pid_t next = 103;

    act_record_set_hook(f->record, multiply, &next);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_RETRY);
    assert_in_range(next, 104, 203);
}

static void test_foreign(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_pin(f->record, 101, "5"));
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_masks(f, "101=5 102=0-3");

    assert_true(act_record_pin(f->record, 100, "6"));
    assert_true(act_record_pin(f->record, 102, "7"));
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "4-7", -1), PLAN_OUTCOME_FOREIGN);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 102, "0-3", "0-4", 4), PLAN_OUTCOME_FOREIGN);
    assert_int_equal(fixture_do(f, PLAN_KIND_RECALL, 100, 102, "0-4", "0-3", 4), PLAN_OUTCOME_FOREIGN);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 102, NULL, NULL, -1), PLAN_OUTCOME_FOREIGN);
    /* For the whole process nothing is restored either, and the outcome says so. */
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, NULL, NULL, -1), PLAN_OUTCOME_FOREIGN);
    assert_int_equal(act_statistics(f->act)->n_left, 3);
    assert_masks(f, "100=6 101=5 102=7");
    assert_string_equal(act_record_log(f->record), "100 0-3\n102 0-3\n");
}

/* A pinned thread that the plan places all the same gets back its own mask, not that of its process. */
static void test_own_original(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_pin(f->record, 101, "5"));
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 101, "5", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_mask(f, 101, "0-3");
    assert_true(fixture_wrote(f, "\nthread pid=100 start=1000 tid=101 born=1000 original=5 whole=no\n"));

    fixture_recover(f, 3, 0);
    assert_masks(f, "100=0-7 101=5");
}

static void test_gone(void **state)
{
    Fixture *f = *state;

    /* The PID now belongs to a later process. */
    act_record_exit(f->record, 100);
    assert_true(act_record_add_process(f->record, 100, 1, 100, "0-7"));
    f->plan.n_actions = 1;
    for (PlanKind kind = 0; kind < PLAN_KIND_MAX; kind++)
        for (pid_t tid = 0; tid <= 100; tid += 100) {
            f->actions[0] = (PlanAction){
                .kind = kind,
                .subject = {.pid = 100, .tid = tid, .start_ticks = 1000},
                .from = fixture_mask(f, "0-7"),
                .to = fixture_mask(f, "0-3"),
                .cpu = {1},
            };
            assert_int_equal(act_execute(f->act, &f->world, &f->plan, f->outcomes), 0);
            assert_int_equal(f->outcomes[0], PLAN_OUTCOME_GONE);
        }

    act_record_exit(f->record, 100);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_GONE);
    assert_string_equal(act_record_log(f->record), "");
}

static void exit_102(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    if (op == ACT_RECORD_SET_MASK && task.tid == 102)
        act_record_exit(record, 102);
}

static void test_gone_meanwhile(void **state)
{
    Fixture *f = *state;

    act_record_set_hook(f->record, exit_102, NULL);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_masks(f, "101=0-3 102=gone");
}

static void test_errors(void **state)
{
    Fixture *f = *state;

    act_record_fail(f->record, 101, ACT_E_RETRY, 100);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_RETRY);
    assert_mask(f, 102, "0-3");
    act_record_fail(f->record, 101, ACT_E_REFUSED, 100);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 101, "0-7", "0-3", -1), PLAN_OUTCOME_REFUSED);
    act_record_fail(f->record, 101, ACT_E_REFUSED, 0);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 101, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
}

/* The World learns which threads have the mask although others failed. */
static void test_failed_in_part(void **state)
{
    Fixture *f = *state;
    const PlanPart *parts;
    size_t n;

    f->plan.n_actions = 1;
    f->actions[0] = (PlanAction){
        .kind = PLAN_KIND_SET_HOME,
        .subject = {.pid = 100, .start_ticks = act_record_key(f->record, 100).start_ticks},
        .from = fixture_mask(f, "0-7"),
        .to = fixture_mask(f, "0-3"),
        .cpu = CPU_NONE,
    };
    act_record_fail(f->record, 101, ACT_E_RETRY, 100);
    assert_int_equal(act_execute_slice(f->act, &f->world, &f->plan, f->outcomes), 0);
    assert_int_equal(f->outcomes[0], PLAN_OUTCOME_RETRY);
    assert_masks(f, "100=0-3 101=0-7 102=0-3");
    parts = act_parts(f->act, &n);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(parts[i].action, 0);
        assert_int_equal(parts[i].task.tid, 100 + 2 * (pid_t)i);
        assert_int_equal(parts[i].outcome, PLAN_OUTCOME_DONE);
    }
    act_record_fail(f->record, 101, ACT_E_RETRY, 0);
    assert_int_equal(act_execute_slice(f->act, &f->world, &f->plan, f->outcomes), 0);
    assert_int_equal(f->outcomes[0], PLAN_OUTCOME_DONE);
    (void)act_parts(f->act, &n);
    assert_int_equal(n, 0);
}

static void test_lend(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_DONE);
    assert_mask(f, 101, "0-4");
    assert_non_null(strstr(act_record_log(f->record), "101 0-4 via 4\n"));
    assert_true(fixture_wrote(f, "mask pid=100 start=1000 mask=0-4\n"
                                 "narrow pid=100 start=1000 tid=101 born=1000 cpu=4 ticks=1010 last=102\n"
                                 "settled\n"));

    /* The same lend again is no new one, and giving the home again does not end it. */
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_DONE);
    f->world.leases = &(Lease){.task = act_record_key(f->record, 101), .cpu = {4}};
    f->world.n_leases = 1;
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_mask(f, 101, "0-4");
    assert_int_equal(act_statistics(f->act)->n_set_mask, 4);

    assert_int_equal(fixture_do(f, PLAN_KIND_RECALL, 100, 101, "0-4", "0-3", 4), PLAN_OUTCOME_DONE);
    assert_mask(f, 101, "0-3");
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 102, "0-3", "0-5", 5), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 102, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    assert_mask(f, 102, "0-7");
    fixture_restore(f, 2, 0);
}

/* A push goes through the target CPU and ends with the same mask; it is not done when the mask is no longer ours. */
static void test_push(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_PUSH, 100, 101, "0-3", "0-3", 2), PLAN_OUTCOME_DONE);
    assert_mask(f, 101, "0-3");
    assert_non_null(strstr(act_record_log(f->record), "101 0-3 via 2\n"));
    assert_true(fixture_wrote(f, "narrow pid=100 start=1000 tid=101 born=1000 cpu=2 ticks=1010 last=102\n"
                                 "settled\n"));
    assert_int_equal(fixture_do(f, PLAN_KIND_PUSH, 100, 102, "0-4", "0-4", 4), PLAN_OUTCOME_FOREIGN);
    act_record_run_on(f->record, 102, 1); /* no longer on the CPU where it was seen */
    assert_int_equal(fixture_do(f, PLAN_KIND_PUSH, 100, 102, "0-3", "0-3", 2), PLAN_OUTCOME_RETRY);
    assert_mask(f, 102, "0-3");
    fixture_restore(f, 3, 0);
}

static void refuse_second(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    if (op == ACT_RECORD_SET_MASK && task.tid == 101)
        act_record_fail(record, 101, *(ActResult *)userdata, 1);
}

static void test_lend_fails_halfway(void **state)
{
    Fixture *f = *state;
    ActResult result = ACT_E_RETRY;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    act_record_set_hook(f->record, refuse_second, &result);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_RETRY);
    act_record_set_hook(f->record, NULL, NULL);
    /* The same hook made the attempt to undo it fail as well. The mask that is left is known to be ours. */
    assert_mask(f, 101, "4");

    fixture_tick(f);
    act_record_advance(f->record, 5);
    fixture_tick(f);
    fixture_recover(f, 3, 0);
}

static void refuse_second_once(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    bool *done = userdata;

    if (op == ACT_RECORD_SET_MASK && task.tid == 101 && !*done) {
        *done = true;
        act_record_fail(record, 101, ACT_E_RETRY, 1);
    }
}

static void test_lend_put_back(void **state)
{
    Fixture *f = *state;
    bool done = false;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    act_record_set_hook(f->record, refuse_second_once, &done);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_RETRY);
    assert_true(done);
    assert_mask(f, 101, "0-3");
}

/* I3: before a change takes effect, the journal has the new mask and the original one. */
static void check_written(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    Fixture *f = userdata;

    if (op != ACT_RECORD_SET_MASK && op != ACT_RECORD_SET_VIA)
        return;
    assert_true(fixture_wrote(
        f, "\nprocess pid=100 start=1000 group=100 session=100 place=1 since=1010 original=0-7 whole=yes\n"));
    assert_true(fixture_wrote(f, f->actions[0].to == fixture_mask(f, "0-3") ? "mask=0-3\n" : "mask=0-4\n"));
    if (op == ACT_RECORD_SET_VIA)
        assert_true(fixture_wrote(f, " tid=101 born=1000 cpu=4 "));
}

static void test_written_first(void **state)
{
    Fixture *f = *state;

    act_record_set_hook(f->record, check_written, f);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_RECALL, 100, 101, "0-4", "0-3", 4), PLAN_OUTCOME_DONE);
    assert_int_equal(act_statistics(f->act)->n_set_mask, 5);
}

/* Runs in a child process whose files cannot grow by more than `room` bytes. */
static void run_with_full_disk(Fixture *f, size_t room)
{
    struct stat before, after;
    int status;
    pid_t pid;

    assert_int_equal(stat(f->journal, &before), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit limit = {.rlim_cur = (rlim_t)before.st_size + room, .rlim_max = RLIM_INFINITY};
        bool ok;

        (void)signal(SIGXFSZ, SIG_IGN);
        ok = setrlimit(RLIMIT_FSIZE, &limit) == 0 &&
             fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1) == PLAN_OUTCOME_UNJOURNALLED &&
             fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-7", "0-3", 1) == PLAN_OUTCOME_UNJOURNALLED &&
             strcmp(act_record_log(f->record), "") == 0;
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(stat(f->journal, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
}

static void test_full_disk(void **state)
{
    Fixture *f = *state;

    run_with_full_disk(f, 0);
    run_with_full_disk(f, 20); /* room for half a line */
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
}

static void test_release(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 10);
    assert_true(act_record_fork(f->record, 101, 200));
    assert_true(act_record_fork(f->record, 101, 201));
    fixture_world_process(f, 201, "0-7"); /* has a home of its own */

    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    assert_masks(f, "100=0-7 102=0-7 200=0-7 201=0-3");
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 201, 0, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    assert_mask(f, 201, "0-7");

    /* Afterwards the same mask is its user's choice, also in children. */
    act_record_advance(f->record, 10);
    assert_true(act_record_pin(f->record, 100, "0-3"));
    assert_true(act_record_fork(f->record, 100, 300));
    fixture_restore(f, 0, 0);
    assert_masks(f, "100=0-3 300=0-3");
}

/* Members of the group that were born with the mask, and are not in the journal yet. */
static void test_members(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 10);
    assert_true(act_record_fork(f->record, 100, 200));
    assert_true(act_record_fork(f->record, 100, 201));
    act_record_detach(f->record, 201);

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 200, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    fixture_world_process(f, 201, "0-7");
    f->actions[0] = (PlanAction){
        .kind = PLAN_KIND_SET_HOME,
        .subject = {.pid = 201, .start_ticks = act_record_key(f->record, 201).start_ticks},
        .from = fixture_mask(f, "0-7"),
        .to = fixture_mask(f, "0-3"),
        .original = fixture_mask(f, "0-7"),
    };
    assert_int_equal(act_execute(f->act, &f->world, &f->plan, f->outcomes), 0);
    assert_int_equal(f->outcomes[0], PLAN_OUTCOME_DONE);
    assert_int_equal(act_statistics(f->act)->n_set_mask, 3);

    /* They outlive the process that forked them. */
    act_record_exit(f->record, 100);
    fixture_restore(f, 2, 0);
    assert_masks(f, "200=0-7 201=0-7");
}

static void fork_in_passage(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    bool *done = userdata;

    if (op == ACT_RECORD_SET_MASK && task.tid == 101 && !*done) {
        *done = true;
        assert_true(act_record_fork(record, 101, 200));
        assert_true(act_record_clone(record, 101, 201));
    }
}

static void test_born_in_passage(void **state)
{
    Fixture *f = *state;
    bool done = false;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_pin(f->record, 102, "4")); /* chosen by its user, before the forced migration */
    act_record_set_hook(f->record, fork_in_passage, &done);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_DONE);
    assert_true(done);
    assert_mask(f, 200, "4");
    assert_true(act_record_fork(f->record, 200, 202));

    fixture_tick(f); /* too early */
    assert_mask(f, 200, "4");
    act_record_advance(f->record, 2);
    fixture_tick(f);
    assert_masks(f, "200=0-4 201=0-4 202=0-4 102=4");
    fixture_restore(f, 5, 1);
    assert_masks(f, "202=0-7 102=4");
}

/* Of more numbers than are looked at, the rest is counted. */
static void test_many_born(void **state)
{
    Fixture *f = *state;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 2);
    assert_true(act_record_fork(f->record, 101, 102 + 4096));
    fixture_tick(f);
    assert_int_equal(act_statistics(f->act)->n_unchecked, 0);

    assert_int_equal(fixture_do(f, PLAN_KIND_RECALL, 100, 101, "0-4", "0-3", 4), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 2);
    assert_true(act_record_fork(f->record, 101, 102 + 2 * 4096 + 7));
    fixture_tick(f);
    assert_int_equal(act_statistics(f->act)->n_unchecked, 7);
}

typedef struct Snapshot {
    Fixture *f;
    char *text;
} Snapshot;

/* Keeps a copy of the journal from the middle of a forced migration, and forks a child there. */
static void take_snapshot(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    Snapshot *snapshot = userdata;

    if (op == ACT_RECORD_SET_MASK && task.tid == 101 && !snapshot->text) {
        assert_true(act_record_fork(record, 101, 200));
        snapshot->text = fixture_journal(snapshot->f);
    }
}

static void test_crash_in_passage(void **state)
{
    Fixture *f = *state;
    Snapshot snapshot = {.f = f};

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    act_record_set_hook(f->record, take_snapshot, &snapshot);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_DONE);
    act_record_set_hook(f->record, NULL, NULL);

    /* As if the daemon had crashed then. */
    fixture_crash(f);
    assert_non_null(snapshot.text);
    fixture_write_journal(f, snapshot.text, strlen(snapshot.text));
    free(snapshot.text);
    assert_true(act_record_pin(f->record, 101, "4"));
    assert_true(act_record_pin(f->record, 102, "4")); /* its user's choice */
    assert_mask(f, 200, "4");

    fixture_start(f);
    fixture_restore(f, 3, 1);
    assert_masks(f, "101=0-7 200=0-7 102=4");
}

/* A damaged journal may hold the largest number there is, behind which they begin anew. */
static void test_largest_number(void **state)
{
    Fixture *f = *state;
    Snapshot snapshot = {.f = f};
    CLEANUP_FREE char *damaged = NULL;
    const char *last;

    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    act_record_set_hook(f->record, take_snapshot, &snapshot);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_DONE);
    act_record_set_hook(f->record, NULL, NULL);
    fixture_crash(f);
    assert_non_null(snapshot.text);
    last = strstr(snapshot.text, "last=102\n");
    assert_non_null(last);
    assert_true(asprintf(&damaged, "%.*slast=%d\n", (int)(last - snapshot.text), snapshot.text, INT32_MAX) >
                0);
    free(snapshot.text);
    fixture_write_journal(f, damaged, strlen(damaged));
    assert_true(act_record_fork(f->record, 101, 400));
    assert_true(act_record_pin(f->record, 400, "4"));
    fixture_start(f);
    act_record_advance(f->record, 2);
    fixture_tick(f);
    assert_mask(f, 400, "0-4");
    assert_int_equal(act_statistics(f->act)->n_unchecked, 0);
}

static void test_dry_run(void **state)
{
    Fixture *f = *state;
    struct stat st;

    fixture_crash(f);
    assert_int_equal(unlink(f->journal), 0);
    f->ops.changes = false;
    fixture_start(f);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_SKIPPED);
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-7", "0-3", 1), PLAN_OUTCOME_SKIPPED);
    assert_int_equal(fixture_do(f, PLAN_KIND_RECALL, 100, 101, "0-7", "0-3", 1), PLAN_OUTCOME_SKIPPED);
    assert_int_equal(fixture_do(f, PLAN_KIND_PUSH, 100, 101, "0-7", "0-7", 1), PLAN_OUTCOME_SKIPPED);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, NULL, NULL, -1), PLAN_OUTCOME_SKIPPED);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-2", "0-3", -1), PLAN_OUTCOME_FOREIGN);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 999, 0, "0-7", "0-3", -1), PLAN_OUTCOME_GONE);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_int_equal(act_measure(f->act), 0);
    assert_int_equal(act_cost_usec(f->act), 0);
    assert_string_equal(act_record_log(f->record), "");
    assert_int_equal(stat(f->journal, &st), -1);
}

static void test_journal_needed(void **state)
{
    Fixture *f = *state;
    CLEANUP(act_free_p) Act *act = NULL;
    char *error;

    assert_int_equal(act_new(&act_ops_record, f->record, f->root_fd, NULL, &act, &error), -EINVAL);
    assert_null(act);
}

static unsigned n_online_reads;

static int count_online(void *context, hwloc_bitmap_t ret)
{
    n_online_reads++;
    return act_ops_record.get_online(context, ret);
}

/* Ticks that change nothing, ten a second, read nothing here. */
static void test_idle_ticks_read_nothing(void **state)
{
    Fixture *f = *state;

    f->ops.get_online = count_online;
    n_online_reads = 0;
    fixture_tick(f);
    assert_int_equal(n_online_reads, 0);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_int_equal(n_online_reads, 1);
    fixture_tick(f);
    assert_int_equal(n_online_reads, 1);
    /* After a lend the search for births compares masks. */
    assert_int_equal(fixture_do(f, PLAN_KIND_LEND, 100, 101, "0-3", "0-4", 4), PLAN_OUTCOME_DONE);
    fixture_tick(f);
    assert_int_equal(n_online_reads, 3);
}

TEST_MAIN(fixture_setup_threads, fixture_teardown, test_home, test_births, test_births_without_end,
          test_foreign, test_own_original, test_gone, test_gone_meanwhile, test_errors, test_failed_in_part,
          test_lend, test_push, test_lend_fails_halfway, test_lend_put_back, test_written_first,
          test_full_disk, test_release, test_members, test_born_in_passage, test_many_born,
          test_crash_in_passage, test_largest_number, test_dry_run, test_journal_needed,
          test_idle_ticks_read_nothing)
