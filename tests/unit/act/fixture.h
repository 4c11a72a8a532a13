/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Common fixture of this room: a machine in memory with eight CPUs, a temporary directory for the journal,
 * and a plan that is filled in action by action. */

#include "act/act.h"
#include "record.h"
#include "unit-test.h"

#include <limits.h>

#define FIXTURE_ACTIONS 64U

typedef struct Fixture {
    char *directory;
    char journal[PATH_MAX];
    int root_fd;
    InternPool *pool;
    ActRecord *record;
    ActOps ops;
    Act *act;
    World world;
    Process processes[16];
    Task tasks[16];
    Plan plan;
    PlanAction actions[FIXTURE_ACTIONS];
    PlanOutcome outcomes[FIXTURE_ACTIONS];
} Fixture;

/* For cmocka set-ups: the fixture, which becomes their state. */
Fixture *fixture_new(void **state);
/* cmocka set-up and tear-down: started, with process 100, whose threads 100, 101 and 102 may use all eight CPUs. */
int fixture_setup_threads(void **state);
int fixture_teardown(void **state);

/* Returns a mask that lives as long as the fixture. */
CpuMask fixture_mask(Fixture *f, const char *list);

/* Open the journal (again) as a new process would; end as a crash would; or both. */
void fixture_start(Fixture *f);
void fixture_crash(Fixture *f);
void fixture_restart(Fixture *f);

/* `parent` forks, and its child then gets a mask of its own. */
void fixture_fork_pinned(ActRecord *record, pid_t parent, pid_t child, const char *mask);

/* Adds a process to the World. */
void fixture_world_process(Fixture *f, pid_t pid, const char *cpuset);

/* Adds one of its threads to the World, with its present mask. Call in ascending order. */
void fixture_world_task(Fixture *f, pid_t pid, pid_t tid);

/* Carries out one action and returns its outcome. `tid` 0: the whole process. `from`, `to` NULL: none. */
PlanOutcome fixture_do(Fixture *f, PlanKind kind, pid_t pid, pid_t tid, const char *from, const char *to,
                       int cpu);
/* A tick without any action. */
void fixture_tick(Fixture *f);

/* act_restore() of everything. It must succeed, with these counts. */
void fixture_restore(Fixture *f, size_t restored, size_t left);
void fixture_recover(Fixture *f, size_t restored, size_t left); /* after fixture_restart() */

/* The journal's text; malloc'd. */
char *fixture_journal(const Fixture *f);
bool fixture_wrote(const Fixture *f, const char *text); /* whether the journal contains it */
void fixture_write_journal(const Fixture *f, const char *text, size_t len);

#define assert_mask(f, tid, list) assert_string_equal(act_record_mask((f)->record, tid), list)

/* Returns the masks of the threads named in "100=0-3 101=gone", in the same form; malloc'd. */
char *fixture_masks(const Fixture *f, const char *threads);

/* Asserts the masks of several threads. */
#define assert_masks(f, masks)                               \
    do {                                                     \
        CLEANUP_FREE char *_found = fixture_masks(f, masks); \
        assert_string_equal(_found, masks);                  \
    } while (0)
