/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the tests of this room start from: a machine in memory with eight CPUs, a directory of their own for the
 * journal, and a plan that is filled in action by action. */

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

/* For cmocka's set-up; its state from then on. */
Fixture *fixture_new(void **state);
/* cmocka's set-up and tear-down: started, with process 100 and its threads 100, 101 and 102, which may use all of the
 * eight CPUs. */
int fixture_setup_threads(void **state);
int fixture_teardown(void **state);

/* A mask that lives as long as the fixture. */
CpuMask fixture_mask(Fixture *f, const char *list);

/* Opens the journal (again): the act of a new process, after one that ended without a word. */
void fixture_start(Fixture *f);
void fixture_crash(Fixture *f);
void fixture_restart(Fixture *f); /* both */

/* `parent` has a child, which then gets a mask of its own. */
void fixture_fork_pinned(ActRecord *record, pid_t parent, pid_t child, const char *mask);

/* Puts a process into the World. */
void fixture_world_process(Fixture *f, pid_t pid, const char *cpuset);

/* Puts a thread of it into the World, with the mask that it has now; in ascending order. */
void fixture_world_task(Fixture *f, pid_t pid, pid_t tid);

/* Carries out one action and returns its outcome. `tid` 0: the whole process. `from`, `to` NULL: none. */
PlanOutcome fixture_do(Fixture *f, PlanKind kind, pid_t pid, pid_t tid, const char *from, const char *to,
                       int cpu);
/* A tick without any action. */
void fixture_tick(Fixture *f);

/* act_restore() of everything, which must succeed. */
void fixture_restore(Fixture *f, size_t restored, size_t left);
void fixture_recover(Fixture *f, size_t restored, size_t left); /* after fixture_restart() */

/* The journal's text; malloc'd. */
char *fixture_journal(const Fixture *f);
bool fixture_wrote(const Fixture *f, const char *text); /* whether that is in it */
void fixture_write_journal(const Fixture *f, const char *text, size_t len);

#define assert_mask(f, tid, list) assert_string_equal(act_record_mask((f)->record, tid), list)

/* What the threads named in "100=0-3 101=gone" have, in the same form; malloc'd. */
char *fixture_masks(const Fixture *f, const char *threads);

/* The masks of several threads. */
#define assert_masks(f, masks)                               \
    do {                                                     \
        CLEANUP_FREE char *_found = fixture_masks(f, masks); \
        assert_string_equal(_found, masks);                  \
    } while (0)
