/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Carrying out a Plan, and taking everything back. The only room that changes anything on the machine.
 *
 * Every change is in the journal before it is made (I3); what cannot be written down is not done. */

#include "plan/plan.h"

#include <stdint.h>

typedef struct Act Act;

/* How effects reach the machine. All functions take the identity of one thread and return 0, a negative errno for what broke, or
 * a positive ActResult. */
typedef enum ActResult {
    ACT_E_GONE = 1, /* the thread exited, or its number belongs to another one now */
    ACT_E_REFUSED,  /* for good: EPERM, EINVAL */
    ACT_E_RETRY,    /* for now: ENOMEM, EBUSY, EAGAIN */
} ActResult;

typedef struct ActOps {
    const char *name; /* "affinity", "dry-run", "record" */
    bool changes;     /* false: nothing reaches the machine, and nothing is journalled */
    int (*get_mask)(void *context, TaskKey task, hwloc_bitmap_t ret);
    int (*set_mask)(void *context, TaskKey task, hwloc_const_bitmap_t mask);
    /* Thread ids of a process and their start times, malloc'd; ACT_E_GONE when it exited. */
    int (*list_threads)(void *context, pid_t pid, uint64_t start_ticks, TaskKey **ret, size_t *ret_n);
} ActOps;

/* The real thing: sched_setaffinity(2) on the tasks below the root's /proc, start time checked before and after. */
extern const ActOps act_ops_affinity;
/* Reads masks, changes nothing (I11). */
extern const ActOps act_ops_dry_run;
/* For tests: in-memory threads; see act/record.h. */
extern const ActOps act_ops_record;

typedef struct ActStatistics {
    uint64_t n_set_mask; /* mask changes made */
    uint64_t cost_usec;  /* spent in them */
    uint64_t n_outcome[PLAN_OUTCOME_MAX];
} ActStatistics;

/* `journal_path` NULL: no journal (only with ops that change nothing). `root_fd` is borrowed. Returns 0 or -errno; for a journal that cannot be
 * used see act/journal.h. */
int act_new(const ActOps *ops, void *context, int root_fd, const char *journal_path, Act **ret);
/* Closes the journal; does not restore. */
Act *act_free(Act *act);
DEFINE_CLEANUP(Act *, act_free)

/* Carries the plan out in order; writes one outcome per action. Process-wide actions go over the thread directory until a pass
 * finds no thread without the mask, since threads are born meanwhile. Returns 0, or -ENOMEM. */
int act_execute(Act *act, const World *world, const Plan *plan, PlanOutcome *outcomes);

/* Puts back the masks of everything in the journal, or only of one process (pid > 0): also children that inherited ours. Counts
 * threads put back in *ret_restored and threads left as somebody else pinned them in *ret_left (both may be NULL).
 * Returns 0, or -errno when something could not be put back; it stays in the journal then. */
int act_restore(Act *act, pid_t pid, size_t *ret_restored, size_t *ret_left);

/* Mean cost of one mask change so far; measured once on the calling thread by setting its own mask to what it is. */
uint64_t act_cost_usec(const Act *act);
int act_measure(Act *act);

/* Whether this process may change the masks of other users' tasks (CAP_SYS_NICE). */
bool act_permitted(void);

const ActStatistics *act_statistics(const Act *act);
