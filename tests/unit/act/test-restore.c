/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Restoring after a crash, and whose inherited masks are restored. Process 100 lives on CPUs 0-3 of eight. */

#include "fixture.h"

#include "act/internal.h"

#include <unistd.h>

static int setup(void **state)
{
    Fixture *f = fixture_new(state);

    fixture_start(f);
    /* An older process of the same session, which happens to have the same mask. */
    if (!act_record_add_process(f->record, 90, 1, 100, "0-3"))
        return -1;
    act_record_advance(f->record, 10);
    if (!act_record_add_process(f->record, 100, 90, 100, "0-7") || !act_record_clone(f->record, 100, 101))
        return -1;
    act_record_advance(f->record, 10);
    fixture_world_process(f, 100, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    return 0;
}

static void test_threads(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_pin(f->record, 101, "2"));
    assert_true(act_record_clone(f->record, 100, 102));
    fixture_recover(f, 2, 1);
    assert_masks(f, "100=0-7 101=2 102=0-7 90=0-3");

    /* It is no longer in the journal. */
    assert_true(act_record_pin(f->record, 100, "0-3"));
    fixture_recover(f, 0, 0);
    assert_mask(f, 100, "0-3");
}

static void assert_leftover(Fixture *f, size_t n_threads, bool kept)
{
    CLEANUP_FREE char *error = NULL;
    ActOps ops = f->ops;
    ActLeftover leftover;

    ops.changes = false;
    assert_int_equal(act_leftover(&ops, f->record, f->root_fd, f->journal, &leftover, &error), 0);
    assert_int_equal(leftover.n_threads, n_threads);
    assert_int_equal(leftover.n_cgroups, 0);
    assert_int_equal(leftover.kept, kept);
}

/* A reader that changes nothing counts what a restore would put back. */
static void test_leftover(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_clone(f->record, 100, 102));
    assert_true(act_record_pin(f->record, 102, "2"));
    assert_true(act_record_fork(f->record, 100, 200));
    assert_true(act_record_clone(f->record, 200, 201));
    fixture_fork_pinned(f->record, 100, 240, "1");
    assert_int_equal(act_note_kept(f->act, true), 0);
    fixture_crash(f);
    assert_leftover(f, 4, true);
    assert_mask(f, 200, "0-3");

    fixture_start(f);
    assert_true(act_kept(f->act));
    assert_int_equal(act_note_kept(f->act, false), 0);
    assert_leftover(f, 4, false);
    fixture_restore(f, 4, 1);
    assert_leftover(f, 0, false);
    assert_int_equal(unlink(f->journal), 0);
    assert_leftover(f, 0, false);
    assert_int_equal(access(f->journal, F_OK), -1);
}

static void test_children(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 100, 200)); /* a child */
    assert_true(act_record_clone(f->record, 200, 201));
    assert_true(act_record_fork(f->record, 200, 210)); /* a grandchild in a session of its own */
    act_record_detach(f->record, 210);
    assert_true(act_record_fork(f->record, 210, 211)); /* and its child */
    assert_true(act_record_fork(f->record, 100, 220)); /* an orphan of the group */
    act_record_exit(f->record, 220);
    assert_true(act_record_fork(f->record, 200, 230));
    assert_true(act_record_fork(f->record, 100, 240)); /* pinned by its user */
    assert_true(act_record_pin(f->record, 240, "1"));
    assert_true(act_record_add_process(f->record, 300, 1, 300, "0-3")); /* a stranger */

    fixture_recover(f, 5, 0);
    assert_masks(f, "200=0-7 201=0-7 230=0-7 240=1 300=0-3 90=0-3");
    /* Nothing shows where a daemon came from: a known limit. */
    assert_masks(f, "210=0-3 211=0-3");
}

static void test_parent_gone(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 100, 200));
    act_record_advance(f->record, 10);
    act_record_exit(f->record, 100);
    /* The PID is used again, by a process pinned to the same CPUs. */
    assert_true(act_record_add_process(f->record, 100, 1, 100, "0-3"));
    assert_true(act_record_fork(f->record, 100, 501));
    fixture_recover(f, 1, 0);
    assert_masks(f, "200=0-7 100=0-3 501=0-3");
}

static bool is_pid(void *userdata, pid_t pid, const char *workload)
{
    (void)workload;
    return pid == *(const pid_t *)userdata;
}

static void test_one(void **state)
{
    Fixture *f = *state;
    pid_t one = 100;
    const ActSelection selection = {.wants = is_pid, .userdata = &one};
    size_t restored, left;

    assert_true(act_record_add_process(f->record, 400, 1, 400, "0-7"));
    fixture_world_process(f, 400, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 400, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_fork(f->record, 100, 200));
    assert_true(act_record_fork(f->record, 400, 401));
    assert_int_equal(act_restore(f->act, &selection, &restored, &left), 0);
    assert_int_equal(restored, 3);
    assert_int_equal(left, 0);
    assert_masks(f, "100=0-7 200=0-7 400=0-3 401=0-3");
    fixture_recover(f, 2, 0);
    assert_mask(f, 401, "0-7");
}

static void test_failure_stays(void **state)
{
    Fixture *f = *state;

    act_record_fail(f->record, 100, ACT_E_REFUSED, 100);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), -EPERM);
    assert_masks(f, "100=0-3 101=0-7");
    act_record_fail(f->record, 100, ACT_E_RETRY, 1);
    fixture_restart(f);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), -EAGAIN);
    fixture_restore(f, 1, 0);
    assert_mask(f, 100, "0-7");
}

/* The CPUs of its original mask are gone: it gets all instead. */
static void test_original_gone(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_add_process(f->record, 400, 1, 400, "6-7"));
    fixture_world_process(f, 400, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 400, 0, "6-7", "0-3", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_set_cpuset(f->record, 400, "0-5"));
    fixture_restore(f, 3, 0);
    assert_mask(f, 400, "0-5");
}

/* The mask that a kernel before 6.2 shows for a thread restored while CPU 5 was offline. */
static int get_cut_mask(void *context, TaskKey task, hwloc_bitmap_t ret)
{
    int r = act_ops_record.get_mask(context, task, ret);

    return r == 0 && hwloc_bitmap_clr(ret, 5) < 0 ? -ENOMEM : r;
}

static bool wants_anybody(void *userdata, pid_t pid, const char *workload)
{
    (void)workload;
    (void)userdata;
    return pid > 0;
}

/* Released while a CPU is offline, which a kernel before 6.2 takes from the mask for good; or only just
 * online, when it is in the list of online CPUs but not in the cpusets yet. When the CPU is back, the mask is
 * not taken for a user's choice. */
static void test_released_without_a_cpu(void **state)
{
    Fixture *f = *state;

    const ActSelection everybody = {.wants = wants_anybody};

    assert_true(act_record_clone(f->record, 100, 102));
    f->ops.get_mask = get_cut_mask;
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, NULL, NULL, -1), PLAN_OUTCOME_DONE);
    f->ops.get_mask = act_ops_record.get_mask;
    assert_int_equal(act_restore(f->act, &everybody, NULL, NULL), 0);
    assert_true(act_record_pin(f->record, 100, "0-4,6-7"));
    assert_true(act_record_pin(f->record, 101, "0-4,6-7"));
    assert_true(act_record_pin(f->record, 102, "1-4"));
    for (pid_t tid = 100; tid <= 102; tid++)
        assert_int_equal(
            fixture_do(f, PLAN_KIND_SET_HOME, 100, tid, tid == 102 ? "1-4" : "0-4,6-7", "0-3", -1),
            PLAN_OUTCOME_DONE);
    fixture_restore(f, 3, 0);
    assert_masks(f, "100=0-7 101=0-7 102=1-4");
}

/* Restored while the CPUs outside the home are offline: the home then looks like the original. */
static void test_restored_without_other_cpus(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_add_process(f->record, 400, 1, 400, "0-4")); /* pinned by its user */
    fixture_world_process(f, 400, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 400, 0, "0-4", "0-3", -1), PLAN_OUTCOME_DONE);
    act_record_advance(f->record, 10);
    assert_true(act_record_fork(f->record, 100, 200));
    assert_true(act_record_set_online(f->record, "0-3"));
    fixture_recover(f, 0, 0);
    assert_true(act_record_set_online(f->record, "0-7"));
    assert_masks(f, "100=0-7 101=0-7 200=0-7 400=0-4 90=0-3");
}

/* All CPUs of the original are offline, and the kernel shows an empty mask for what sleeps: it may be anybody's. */
static void test_restored_without_its_cpus(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_add_process(f->record, 400, 1, 400, "4-5")); /* pinned by its user */
    assert_true(act_record_clone(f->record, 400, 401));
    assert_true(act_record_pin(f->record, 401, "5"));
    fixture_world_process(f, 400, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 400, 0, "4-5", "4", -1), PLAN_OUTCOME_DONE);
    assert_masks(f, "400=4 401=5");
    assert_true(act_record_set_online(f->record, "0-3"));
    fixture_restart(f);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), -EAGAIN);
    assert_true(act_record_set_online(f->record, "0-7"));
    assert_masks(f, "400=4 401=5");
    fixture_restart(f);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_masks(f, "400=4-5 401=5");
}

/* Only the process that could not be put back stays in the journal: users may choose the masks of the others. */
static void test_only_the_stuck_one_is_kept(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_add_process(f->record, 400, 1, 400, "4-5")); /* pinned by its user */
    fixture_world_process(f, 400, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 400, 0, "4-5", "4", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_set_online(f->record, "0-3,6-7"));
    fixture_restart(f);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), -EAGAIN);
    assert_int_equal(f->act->journal->n_processes, 1);
    assert_int_equal(f->act->journal->processes[0].pid, 400);
    assert_true(act_record_set_online(f->record, "0-7"));
    assert_masks(f, "100=0-7 101=0-7 400=4");
    act_record_advance(f->record, 10);
    assert_true(act_record_pin(f->record, 100, "0-3")); /* by its user */
    assert_true(act_record_fork(f->record, 100, 200));
    fixture_restart(f);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_masks(f, "100=0-3 101=0-7 200=0-3 400=4-5");
    assert_int_equal(f->act->journal->n_processes, 0);
}

/* A child has its mask from the entry of a process that may have ended, and whose entry alone would not stay. */
static void test_all_are_kept_for_a_child(void **state)
{
    Fixture *f = *state;
    Restore restore;
    JournalProcess *entry;

    act_record_advance(f->record, 10);
    assert_true(act_record_fork(f->record, 100, 200));
    act_record_fail(f->record, 200, ACT_E_REFUSED, 1);
    assert_int_equal(restore_begin(f->act, NULL, &restore), 0);
    entry = &f->act->journal->processes[0];
    assert_int_equal(entry->pid, 100);
    assert_int_equal(restore_thread(&restore, entry, act_record_key(f->record, 200)), -EPERM);
    assert_false(entry->stuck);
    assert_int_equal(restore.error, -EPERM);
    assert_int_equal(restore.stuck_error, 0);
    assert_int_equal(restore_finish(&restore), 0);
}

/* It was pinned to what became the home, so with an empty mask it has nothing of ours either. */
static void test_restored_without_the_home(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_add_process(f->record, 400, 1, 400, "0-7"));
    assert_true(act_record_clone(f->record, 400, 401));
    assert_true(act_record_pin(f->record, 401, "5")); /* by its user */
    fixture_world_process(f, 400, "0-7");
    fixture_world_task(f, 400, 401);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 400, 0, "0-7", "5", -1), PLAN_OUTCOME_DONE);
    assert_masks(f, "400=5 401=5");
    assert_true(act_record_set_online(f->record, "0-4,6-7"));
    fixture_restart(f);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_true(act_record_set_online(f->record, "0-7"));
    assert_masks(f, "400=0-7 401=5");
}

/* Whole while four CPUs were offline, and at home on all that there were. */
static void test_restored_with_more_cpus(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_add_process(f->record, 400, 1, 400, "0-7"));
    assert_true(act_record_set_online(f->record, "0-3"));
    fixture_world_process(f, 400, "0-3");
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 400, 0, "0-3", "0-1", -1), PLAN_OUTCOME_DONE);
    assert_true(act_record_set_online(f->record, "0-7"));
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 400, 0, "0-1", "0-3", -1), PLAN_OUTCOME_DONE);
    fixture_recover(f, 2, 0);
    assert_mask(f, 400, "0-7");
}

static void fork_at_each_pass(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    pid_t *next = userdata;

    if (op == ACT_RECORD_LIST_PROCESSES && *next > 0) {
        fixture_fork_pinned(record, 100, *next, "0-3");
        (*next)++;
    }
}

/* Children with our mask keep appearing: the search ends, reports that, and can be repeated. */
static void test_forks_without_end(void **state)
{
    Fixture *f = *state;
    pid_t next = 200;

    act_record_set_hook(f->record, fork_at_each_pass, &next);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), -EAGAIN);
    assert_int_equal(next, 200 + ACT_PASSES_MAX);
    act_record_set_hook(f->record, NULL, NULL);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    for (pid_t pid = 200; pid < next; pid++)
        assert_mask(f, pid, "0-7");
}

static void end_of_fork(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    unsigned *n_asked = userdata;

    if (op != ACT_RECORD_MAY_FORK || ++*n_asked != 3)
        return;
    fixture_fork_pinned(record, 100, 200, "0-3");
    act_record_exit(record, 100);
}

/* A fork was in progress when its process was restored. The child, with the old mask, appears after
 * everything was looked at, and its parent is gone by then. */
static void test_fork_under_way(void **state)
{
    Fixture *f = *state;
    unsigned n_asked = 0;

    act_record_set_fork(f->record, 100, ACT_FORK_RUNNING);
    act_record_set_hook(f->record, end_of_fork, &n_asked);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_in_range(n_asked, 3, 100);
    assert_masks(f, "100=gone 200=0-7");
}

static void end_of_other_fork(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task)
{
    unsigned *n_asked = userdata;

    if (op != ACT_RECORD_MAY_FORK || task.pid != 150 || ++*n_asked != 2)
        return;
    fixture_fork_pinned(record, 150, 200, "0-3");
    act_record_exit(record, 150);
}

/* The same when an earlier daemon restored the process, and was killed while it waited. The journal tells,
 * even if the process is not in it. */
static void test_fork_of_before(void **state)
{
    Fixture *f = *state;
    unsigned n_asked = 0;

    fixture_fork_pinned(f->record, 100, 150, "0-7");
    assert_true(act_record_pin(f->record, 100, "0-7"));
    fixture_restart(f);
    act_record_set_fork(f->record, 150, ACT_FORK_RUNNING);
    act_record_set_hook(f->record, end_of_other_fork, &n_asked);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_masks(f, "150=gone 200=0-7");
}

/* A fork that does not end in time is not reported as restored, and a second attempt does not forget it. */
static void test_fork_too_long(void **state)
{
    Fixture *f = *state;
    size_t n, left;

    f->act->settle_usec = 0;
    act_record_set_fork(f->record, 100, ACT_FORK_RUNNING);
    assert_int_equal(act_restore_persistently(f->act, NULL, &n, &left), -ETIMEDOUT);
    assert_mask(f, 100, "0-7");
    fixture_fork_pinned(f->record, 100, 200, "0-3");
    act_record_exit(f->record, 100);
    assert_int_equal(act_restore_persistently(f->act, NULL, &n, &left), 0);
    assert_mask(f, 200, "0-7");
}

/* A thread blocked in the kernel for an unknown reason is not waited for if it does not come out; one known
 * to be in fork(2) is. */
static void test_hangs(void **state)
{
    Fixture *f = *state;

    f->act->settle_usec = f->act->stuck_usec = 0;
    act_record_set_fork(f->record, 100, ACT_FORK_BLOCKED);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_mask(f, 100, "0-7");
    act_record_set_fork(f->record, 100, ACT_FORK_NO);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
    act_record_set_fork(f->record, 100, ACT_FORK_INSIDE);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), -ETIMEDOUT);
}

/* The next restore waits for a fork that the last one did not see end. */
static void test_fork_twice_too_long(void **state)
{
    Fixture *f = *state;

    f->act->settle_usec = 0;
    act_record_set_fork(f->record, 100, ACT_FORK_RUNNING);
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, "0-3", NULL, -1), PLAN_OUTCOME_RETRY);
    assert_mask(f, 100, "0-7");
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), -ETIMEDOUT);
    fixture_fork_pinned(f->record, 100, 200, "0-3");
    act_record_exit(f->record, 100);
    assert_int_equal(act_restore(f->act, NULL, NULL, NULL), 0);
    assert_mask(f, 200, "0-7");
}

/* A managed child that is not in the journal when its parent is released, and forks before it is released itself. */
static void test_member_not_judged(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 100, 200));
    fixture_world_process(f, 200, "0-7");
    assert_int_equal(fixture_do(f, PLAN_KIND_RELEASE, 100, 0, "0-3", NULL, -1), PLAN_OUTCOME_DONE);
    assert_masks(f, "100=0-7 200=0-3");
    act_record_advance(f->record, 10);
    assert_true(act_record_fork(f->record, 200, 300));
    act_record_exit(f->record, 200);
    fixture_restore(f, 1, 0);
    assert_mask(f, 300, "0-7");
}

static PlanOutcome let_roam(Fixture *f)
{
    f->plan.n_actions = 1;
    f->actions[0] = (PlanAction){.kind = PLAN_KIND_RELEASE,
                                 .rule = PLAN_RULE_ROAMS,
                                 .subject = act_record_key(f->record, 100),
                                 .cpu = CPU_NONE};
    f->actions[0].subject.tid = 0;
    assert_int_equal(act_execute(f->act, &f->world, &f->plan, f->outcomes), 0);
    return f->outcomes[0];
}

/* A group comes to need all nodes: nothing waits for threads that may be in fork(2), and children are
 * restored later. */
static void test_roams(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 101, 200));
    act_record_set_fork(f->record, 101, ACT_FORK_RUNNING);
    f->world.now_usec = 1000000;
    assert_int_equal(let_roam(f), PLAN_OUTCOME_DONE);
    assert_masks(f, "100=0-7 101=0-7 200=0-3");
    /* Its creation had begun before. */
    assert_true(act_record_clone(f->record, 100, 102));
    assert_true(act_record_pin(f->record, 102, "0-3"));
    act_record_set_fork(f->record, 101, ACT_FORK_NO);
    f->world.now_usec += 1999999;
    fixture_tick(f);
    assert_mask(f, 200, "0-3");
    f->world.now_usec++;
    fixture_tick(f);
    assert_masks(f, "200=0-7 102=0-7");

    /* From here on it is like any other release. */
    act_record_advance(f->record, 10);
    assert_true(act_record_pin(f->record, 100, "0-3"));
    fixture_restore(f, 0, 0);
    assert_mask(f, 100, "0-3");
}

/* A thread that appears to be in fork(2) when the search begins, as on machines with very many runnable
 * tasks, is waited for. */
static void test_roams_while_forking(void **state)
{
    Fixture *f = *state;

    assert_int_equal(let_roam(f), PLAN_OUTCOME_DONE);
    act_record_set_fork(f->record, 101, ACT_FORK_RUNNING);
    f->world.now_usec += 2000000;
    for (unsigned i = 0; i < 2 * ACT_PASSES_MAX; i++, f->world.now_usec += 100000)
        fixture_tick(f);
    fixture_fork_pinned(f->record, 101, 200, "0-3");
    act_record_exit(f->record, 100);
    f->world.now_usec += 1000000;
    fixture_tick(f);
    assert_mask(f, 200, "0-7");
}

/* A thread that could not be restored is still known after the search for children. */
static void test_roams_in_vain(void **state)
{
    Fixture *f = *state;

    act_record_fail(f->record, 101, ACT_E_RETRY, 1);
    assert_int_equal(let_roam(f), PLAN_OUTCOME_RETRY);
    f->world.now_usec += 10000000;
    fixture_tick(f);
    assert_mask(f, 101, "0-3");
    fixture_restore(f, 1, 0);
    assert_mask(f, 101, "0-7");
}

/* When a process gets a home again, its children are at home. */
static void test_roamed(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_fork(f->record, 101, 200));
    assert_int_equal(let_roam(f), PLAN_OUTCOME_DONE);
    assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, 100, 0, "0-7", "4-7", -1), PLAN_OUTCOME_DONE);
    f->world.now_usec += 10000000;
    fixture_tick(f);
    assert_masks(f, "100=4-7 200=0-3");
    fixture_restore(f, 3, 0);
    assert_masks(f, "100=0-7 200=0-7");
}

/* Thousands of processes come and go; a child of the first one outlives it and its journal entry. */
static void test_compaction(void **state)
{
    Fixture *f = *state;
    size_t most = 0;

    f->processes[0].gone = true;
    assert_true(act_record_fork(f->record, 100, 200));
    act_record_exit(f->record, 100);
    for (pid_t pid = 1000; pid < 6000; pid++) {
        assert_true(act_record_add_process(f->record, pid, 1, pid, "0-7"));
        assert_int_equal(fixture_do(f, PLAN_KIND_SET_HOME, pid, 0, "0-7", "0-3", -1), PLAN_OUTCOME_DONE);
        act_record_exit(f->record, pid);
        most = MAX(most, f->act->journal->n_processes);
    }
    assert_in_range(most, 100, 1200);

    assert_false(fixture_wrote(f, "pid=100 "));
    assert_true(fixture_wrote(
        f, "\nprocess pid=200 start=1020 group=100 session=100 place=1 since=1020 original=0-7 whole=yes\n"));
    fixture_recover(f, 1, 0);
    assert_mask(f, 200, "0-7");
    assert_true(intern_pool_size(f->act->journal->pool) <= 4);
}

TEST_MAIN(setup, fixture_teardown, test_threads, test_leftover, test_children, test_parent_gone, test_one,
          test_failure_stays, test_original_gone, test_forks_without_end, test_fork_under_way,
          test_fork_of_before, test_fork_too_long, test_fork_twice_too_long, test_hangs,
          test_member_not_judged, test_released_without_a_cpu, test_roams, test_roams_while_forking,
          test_roams_in_vain, test_roamed, test_compaction, test_restored_without_other_cpus,
          test_restored_without_its_cpus, test_only_the_stuck_one_is_kept, test_all_are_kept_for_a_child,
          test_restored_without_the_home, test_restored_with_more_cpus)
