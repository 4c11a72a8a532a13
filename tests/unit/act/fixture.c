/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fixture.h"

#include "../cpu-list.h"
#include "../temp-tree.h"
#include "base/root.h"

#include <fcntl.h>
#include <stdlib.h>

Fixture *fixture_new(void **state)
{
    Fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->directory = test_tree_new();
    (void)snprintf(f->journal, sizeof(f->journal), "%s/journal", f->directory);
    f->root_fd = root_open("/");
    f->pool = intern_pool_new();
    f->record = act_record_new(8);
    f->ops = act_ops_record;
    f->world.processes = f->processes;
    f->world.tasks = f->tasks;
    f->plan.actions = f->actions;
    assert_true(f->root_fd >= 0 && f->pool && f->record);
    *state = f;
    return f;
}

int fixture_setup_threads(void **state)
{
    Fixture *f = fixture_new(state);

    fixture_start(f);
    if (!act_record_add_process(f->record, 100, 1, 100, "0-7") || !act_record_clone(f->record, 100, 101) ||
        !act_record_clone(f->record, 100, 102))
        return -1;
    act_record_advance(f->record, 10);
    fixture_world_process(f, 100, "0-7");
    return 0;
}

int fixture_teardown(void **state)
{
    CLEANUP_FREE Fixture *f = *state;

    act_free(f->act);
    act_record_free(f->record);
    intern_pool_free(f->pool);
    (void)close(f->root_fd);
    test_tree_remove(f->directory);
    return 0;
}

CpuMask fixture_mask(Fixture *f, const char *list)
{
    return test_mask(f->pool, list ? list : "");
}

void fixture_start(Fixture *f)
{
    char *error = NULL;
    int r = act_new(&f->ops, f->record, f->root_fd, f->journal, &f->act, &error);

    if (r != 0)
        fail_msg("act_new: %d, %s", r, error ? error : "no sentence");
    assert_null(error);
}

void fixture_crash(Fixture *f)
{
    f->act = act_free(f->act);
}

void fixture_restart(Fixture *f)
{
    fixture_crash(f);
    fixture_start(f);
}

void fixture_fork_pinned(ActRecord *record, pid_t parent, pid_t child, const char *mask)
{
    assert_true(act_record_fork(record, parent, child));
    assert_true(act_record_pin(record, child, mask));
}

void fixture_world_process(Fixture *f, pid_t pid, const char *cpuset)
{
    size_t at = f->world.n_processes;

    assert_true(f->world.n_processes < ARRAY_SIZE(f->processes));
    while (at > 0 && f->processes[at - 1].pid > pid) {
        f->processes[at] = f->processes[at - 1];
        at--;
    }
    f->processes[at] = (Process){
        .pid = pid,
        .start_ticks = act_record_key(f->record, pid).start_ticks,
        .cpuset = fixture_mask(f, cpuset),
        .workload = {0},
        .group = {0},
    };
    f->world.n_processes++;
}

void fixture_world_task(Fixture *f, pid_t pid, pid_t tid)
{
    int32_t process = 0;

    assert_true(f->world.n_tasks < ARRAY_SIZE(f->tasks));
    while (f->processes[process].pid != pid)
        process++;
    f->tasks[f->world.n_tasks++] = (Task){
        .tid = tid,
        .process = {process},
        .start_ticks = act_record_key(f->record, tid).start_ticks,
        .allowed = fixture_mask(f, act_record_mask(f->record, tid)),
        .lease = -1,
    };
}

PlanOutcome fixture_do(Fixture *f, PlanKind kind, pid_t pid, pid_t tid, const char *from, const char *to,
                       int cpu)
{
    TaskKey subject = act_record_key(f->record, tid ? tid : pid);

    /* A thread that has ended still needs a start time. */
    subject = (TaskKey){.pid = pid, .tid = tid, .start_ticks = subject.start_ticks ? subject.start_ticks : 1};
    f->plan.n_actions = 1;
    f->actions[0] = (PlanAction){
        .kind = kind,
        .subject = subject,
        .from = fixture_mask(f, from),
        .to = fixture_mask(f, to),
        .cpu = {cpu},
    };
    f->outcomes[0] = PLAN_OUTCOME_INVALID;
    assert_int_equal(act_execute(f->act, &f->world, &f->plan, f->outcomes), 0);
    return f->outcomes[0];
}

void fixture_tick(Fixture *f)
{
    f->plan.n_actions = 0;
    assert_int_equal(act_execute(f->act, &f->world, &f->plan, f->outcomes), 0);
}

void fixture_restore(Fixture *f, size_t restored, size_t left)
{
    size_t n_restored = SIZE_MAX, n_left = SIZE_MAX;

    assert_int_equal(act_restore(f->act, NULL, &n_restored, &n_left), 0);
    assert_int_equal(n_restored, restored);
    assert_int_equal(n_left, left);
}

void fixture_recover(Fixture *f, size_t restored, size_t left)
{
    fixture_restart(f);
    fixture_restore(f, restored, left);
}

char *fixture_journal(const Fixture *f)
{
    char *text = NULL;
    size_t len;

    assert_int_equal(root_read_alloc(f->root_fd, f->journal, 128U << 20, &text, &len), 0);
    return text;
}

bool fixture_wrote(const Fixture *f, const char *text)
{
    CLEANUP_FREE char *journal = fixture_journal(f);

    return strstr(journal, text) != NULL;
}

void fixture_write_journal(const Fixture *f, const char *text, size_t len)
{
    int fd = open(f->journal, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    assert_int_equal(close(fd), 0);
}

char *fixture_masks(const Fixture *f, const char *threads)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    for (const char *at = threads, *next; *at; at = next + (*next == ' ')) {
        pid_t tid = (pid_t)strtol(at, NULL, 10);

        next = strchrnul(at, ' ');
        (void)fprintf(out, "%s%d=%s", at > threads ? " " : "", (int)tid, act_record_mask(f->record, tid));
    }
    assert_int_equal(fclose(out), 0);
    return text;
}
