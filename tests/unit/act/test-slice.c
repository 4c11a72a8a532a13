/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Processes of very many threads: process 10000 and, in some tests, 20000, each with 500 threads more than
 * one call handles. The test itself updates the World after each call. */

#include "fixture.h"

#define N_THREADS (ACT_SLICE_THREADS + 500U)
#define CALLS_MAX 100000U

static int by_number(const void *a, const void *b)
{
    const Task *x = a, *y = b;

    return x->process.i != y->process.i ? x->process.i - y->process.i : x->tid - y->tid;
}

/* Adds a thread to the World, with its present mask. */
static void put_task(Fixture *f, pid_t tid, int process)
{
    World *w = &f->world;

    assert_true(GROW(w->tasks, w->tasks_capacity, w->n_tasks + 1));
    w->tasks[w->n_tasks++] = (Task){
        .process = {process},
        .tid = tid,
        .start_ticks = act_record_key(f->record, tid).start_ticks,
        .allowed = fixture_mask(f, act_record_mask(f->record, tid)),
        .lease = -1,
    };
}

static void add_task(Fixture *f, pid_t pid, pid_t tid, int process)
{
    assert_int_equal(pid, f->processes[process].pid);
    put_task(f, tid, process);
    qsort(f->world.tasks, f->world.n_tasks, sizeof(*f->world.tasks), by_number);
}

static void add_many(Fixture *f, pid_t pid, int process)
{
    assert_true(act_record_add_process(f->record, pid, 1, pid, "0-7"));
    for (pid_t tid = pid + 1; tid < pid + (pid_t)N_THREADS; tid++)
        assert_true(act_record_clone(f->record, pid, tid));
    fixture_world_process(f, pid, "0-7");
    f->processes[process].n_threads = N_THREADS;
    for (pid_t tid = pid; tid < pid + (pid_t)N_THREADS; tid++)
        put_task(f, tid, process);
}

static int setup(void **state)
{
    Fixture *f = fixture_new(state);

    /* Tasks of its own: the fixture has too little room. */
    f->world.tasks = NULL;
    f->world.tasks_capacity = 0;
    fixture_start(f);
    add_many(f, 10000, 0);
    act_record_advance(f->record, 10);
    return 0;
}

static int teardown(void **state)
{
    Fixture *f = *state;

    free(f->world.tasks);
    return fixture_teardown(state);
}

static void set_action(Fixture *f, size_t i, PlanKind kind, pid_t pid, const char *from, const char *to)
{
    f->actions[i] = (PlanAction){
        .kind = kind,
        .subject = {.pid = pid, .start_ticks = act_record_key(f->record, pid).start_ticks},
        .from = fixture_mask(f, from),
        .to = fixture_mask(f, to),
        .cpu = CPU_NONE,
    };
    f->plan.n_actions = i + 1;
}

/* Does to the World what plan_commit_parts() would. */
static void commit(Fixture *f)
{
    size_t n;
    const PlanPart *parts = act_parts(f->act, &n);

    for (size_t i = 0; i < n; i++) {
        const PlanAction *action = &f->actions[parts[i].action];

        for (size_t k = 0; k < f->world.n_tasks; k++) {
            Task *task = &f->world.tasks[k];

            if (task->tid != parts[i].task.tid)
                continue;
            assert_int_equal(task->start_ticks, parts[i].task.start_ticks);
            task->gone |= parts[i].outcome == PLAN_OUTCOME_GONE;
            if (parts[i].outcome != PLAN_OUTCOME_DONE)
                continue;
            if (action->kind == PLAN_KIND_SET_HOME && !task->original)
                task->original = task->allowed;
            task->allowed = action->kind == PLAN_KIND_SET_HOME ? action->to : task->original;
            if (action->kind == PLAN_KIND_RELEASE)
                task->original = NULL;
        }
    }
}

/* Makes one call; returns the number of threads it handled. */
static size_t slice(Fixture *f)
{
    size_t n;

    assert_int_equal(act_execute_slice(f->act, &f->world, &f->plan, f->outcomes), 0);
    (void)act_parts(f->act, &n);
    assert_in_range(n, 0, ACT_SLICE_THREADS);
    commit(f);
    f->world.now_usec += 100000;
    return n;
}

/* Calls until the plan's only action is done. Returns the number of threads. */
static size_t slices(Fixture *f, PlanOutcome last)
{
    size_t n_calls = 0, sum = 0;

    do {
        sum += slice(f);
        assert_true(++n_calls < CALLS_MAX);
        assert_true(act_unfinished(f->act) == (f->outcomes[0] == PLAN_OUTCOME_PARTLY) ||
                    f->outcomes[0] == PLAN_OUTCOME_DONE);
    } while (f->outcomes[0] == PLAN_OUTCOME_PARTLY);
    assert_int_equal(f->outcomes[0], last);
    return sum;
}

static size_t count(Fixture *f, pid_t pid, const char *mask)
{
    size_t n = 0;

    for (pid_t tid = pid; tid < pid + (pid_t)N_THREADS; tid++)
        n += strcmp(act_record_mask(f->record, tid), mask) == 0;
    return n;
}

static void test_home(void **state)
{
    Fixture *f = *state;

    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    assert_int_equal(slices(f, PLAN_OUTCOME_DONE), N_THREADS);
    assert_int_equal(count(f, 10000, "0-3"), N_THREADS);
    assert_int_equal(act_statistics(f->act)->n_set_mask, N_THREADS);
    assert_in_range(act_statistics(f->act)->slice_threads_max, 1, ACT_SLICE_THREADS);
    assert_true(act_statistics(f->act)->n_slices >= 1);

    /* The journal needs no more lines than usual. */
    assert_true(fixture_wrote(f, "\nmask pid=10000 start=1000 mask=0-3\n"));
    assert_false(fixture_wrote(f, "thread"));
    fixture_restore(f, N_THREADS, 0);
    assert_int_equal(count(f, 10000, "0-7"), N_THREADS);
}

/* A crash, or a stop, after the first slice: its changes are undone, and nothing else is. */
static void test_crash_between(void **state)
{
    Fixture *f = *state;
    size_t n;

    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    n = slice(f);
    assert_int_equal(f->outcomes[0], PLAN_OUTCOME_PARTLY);
    assert_true(act_unfinished(f->act));
    assert_int_equal(count(f, 10000, "0-3"), n);
    fixture_recover(f, n, 0);
    assert_int_equal(count(f, 10000, "0-7"), N_THREADS);
}

/* Other actions are done in the same slice, although they come later in the plan and the large one uses the
 * slice up. */
static void test_others_first(void **state)
{
    Fixture *f = *state;

    assert_true(act_record_add_process(f->record, 50000, 1, 50000, "0-7"));
    fixture_world_process(f, 50000, "0-7");
    add_task(f, 50000, 50000, 1);
    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    set_action(f, 1, PLAN_KIND_SET_HOME, 50000, "0-7", "0-3");
    assert_int_equal(act_execute_slice(f->act, &f->world, &f->plan, f->outcomes), 0);
    assert_int_equal(f->outcomes[0], PLAN_OUTCOME_PARTLY);
    assert_int_equal(f->outcomes[1], PLAN_OUTCOME_DONE);
    assert_mask(f, 50000, "0-3");
}

/* Between two slices threads end, their user pins one, and others are born of a thread that is at home, and
 * of one that is not. */
static void test_change_between(void **state)
{
    Fixture *f = *state;
    pid_t last = 10000 + (pid_t)N_THREADS - 1;

    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    (void)slice(f);
    act_record_exit(f->record, last);
    assert_true(act_record_pin(f->record, last - 1, "5"));
    assert_true(act_record_clone(f->record, 10001, last + 1));
    assert_true(act_record_clone(f->record, last - 2, last + 2));
    add_task(f, 10000, last + 1, 0);
    add_task(f, 10000, last + 2, 0);

    (void)slices(f, PLAN_OUTCOME_DONE);
    assert_mask(f, last - 1, "5");
    assert_mask(f, last + 1, "0-3");
    assert_mask(f, last + 2, "0-3");
    assert_int_equal(count(f, 10000, "0-3"), N_THREADS - 2);
    fixture_restore(f, N_THREADS, 1);
    assert_mask(f, last - 1, "5");
    assert_mask(f, last + 1, "0-7");
    assert_mask(f, last + 2, "0-7");
}

/* A new thread of a large process costs one change. */
static void test_new_member(void **state)
{
    Fixture *f = *state;
    pid_t tid = 10000 + (pid_t)N_THREADS;

    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    (void)slices(f, PLAN_OUTCOME_DONE);
    assert_true(act_record_clone(f->record, 10000, tid));
    add_task(f, 10000, tid, 0);
    assert_int_equal(slice(f), 1);
    assert_int_equal(f->outcomes[0], PLAN_OUTCOME_DONE);
    assert_false(act_unfinished(f->act));
    assert_int_equal(act_statistics(f->act)->n_set_mask, N_THREADS);
}

/* Released while it was being placed: its threads, one that is not in the World, and a child. */
static void test_release_between(void **state)
{
    Fixture *f = *state;
    pid_t tid = 10000 + (pid_t)N_THREADS;
    size_t n;

    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    n = slice(f);
    assert_true(act_record_clone(f->record, 10000, tid));
    assert_true(act_record_fork(f->record, 10000, 30000));
    assert_mask(f, tid, "0-3");

    set_action(f, 0, PLAN_KIND_RELEASE, 10000, NULL, NULL);
    for (size_t i = 0; f->outcomes[0] != PLAN_OUTCOME_DONE; i++) {
        (void)slice(f);
        assert_true(i < CALLS_MAX);
    }
    assert_int_equal(act_statistics(f->act)->n_set_mask, 2 * n);
    assert_int_equal(count(f, 10000, "0-7"), N_THREADS);
    assert_mask(f, tid, "0-3");
    assert_true(act_is_restoring(f->act, NULL));

    /* After a crash the journal would have all of them; without one the search finds them. */
    f->plan.n_actions = 0;
    for (size_t i = 0; act_is_restoring(f->act, NULL); i++) {
        (void)slice(f);
        assert_true(i < CALLS_MAX);
    }
    assert_mask(f, tid, "0-7");
    assert_mask(f, 30000, "0-7");
    assert_int_equal(act_restoring_error(f->act), 0);
    assert_int_equal(act_statistics(f->act)->n_set_mask, 2 * n + 2);

    /* The release is over: a thread that somebody else gives that mask now keeps it. */
    act_record_advance(f->record, 10);
    assert_true(act_record_pin(f->record, tid, "0-3"));
    fixture_restore(f, 0, 0);
    assert_mask(f, tid, "0-3");
}

/* Placed again while its children are searched for: it keeps its new home, and is restored with everything else. */
static void test_home_in_a_search(void **state)
{
    Fixture *f = *state;
    pid_t tid = 10000 + (pid_t)N_THREADS;

    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    (void)slices(f, PLAN_OUTCOME_DONE);
    /* One more thread, which the search finds and waits for, because it may be in fork(2). */
    assert_true(act_record_clone(f->record, 10000, tid));
    act_record_set_fork(f->record, tid, ACT_FORK_RUNNING);
    set_action(f, 0, PLAN_KIND_RELEASE, 10000, "0-3", "0-7");
    (void)slices(f, PLAN_OUTCOME_DONE);
    f->plan.n_actions = 0;
    for (size_t i = 0; strcmp(act_record_mask(f->record, tid), "0-7") != 0; i++) {
        (void)slice(f);
        assert_true(i < CALLS_MAX);
    }
    assert_true(act_is_restoring(f->act, NULL));

    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    (void)slices(f, PLAN_OUTCOME_DONE);
    act_record_exit(f->record, tid);
    f->plan.n_actions = 0;
    for (unsigned i = 0; i < 20; i++) /* two seconds */
        (void)slice(f);
    assert_int_equal(count(f, 10000, "0-3"), N_THREADS);
    fixture_restore(f, N_THREADS, 0);
    assert_int_equal(count(f, 10000, "0-7"), N_THREADS);
}

/* Two large actions share each slice. */
static void test_shared(void **state)
{
    Fixture *f = *state;
    size_t n, n_of[2] = {0};
    const PlanPart *parts;

    add_many(f, 20000, 1);
    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    set_action(f, 1, PLAN_KIND_SET_HOME, 20000, "0-7", "4-7");
    assert_int_equal(act_execute_slice(f->act, &f->world, &f->plan, f->outcomes), 0);
    assert_int_equal(f->outcomes[0], PLAN_OUTCOME_PARTLY);
    assert_int_equal(f->outcomes[1], PLAN_OUTCOME_PARTLY);
    parts = act_parts(f->act, &n);
    for (size_t i = 0; i < n; i++)
        n_of[parts[i].action]++;
    assert_in_range(n_of[0], 1, ACT_SLICE_THREADS / 2);
    assert_in_range(n_of[1], 1, ACT_SLICE_THREADS - n_of[0]);
}

/* Threads that fail for now do not keep the others from their turn. */
static void test_failing(void **state)
{
    Fixture *f = *state;

    for (pid_t tid = 10000; tid < 10000 + (pid_t)ACT_SLICE_THREADS; tid++)
        act_record_fail(f->record, tid, ACT_E_RETRY, UINT32_MAX);
    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    for (size_t i = 0; count(f, 10000, "0-3") < N_THREADS - ACT_SLICE_THREADS; i++) {
        (void)slice(f);
        assert_true(i < CALLS_MAX);
    }
    assert_int_equal(count(f, 10000, "0-7"), ACT_SLICE_THREADS);
}

/* A stop ignores slices, and so does a plan whose caller waits for it. */
static void test_whole(void **state)
{
    Fixture *f = *state;

    set_action(f, 0, PLAN_KIND_SET_HOME, 10000, "0-7", "0-3");
    assert_int_equal(act_execute(f->act, &f->world, &f->plan, f->outcomes), 0);
    assert_int_equal(f->outcomes[0], PLAN_OUTCOME_DONE);
    assert_int_equal(count(f, 10000, "0-3"), N_THREADS);
    fixture_restore(f, N_THREADS, 0);
}

TEST_MAIN(setup, teardown, test_home, test_others_first, test_crash_between, test_change_between,
          test_new_member, test_release_between, test_shared, test_failing, test_whole, test_home_in_a_search)
