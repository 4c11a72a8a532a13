/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A machine in memory for act_ops_record: threads with masks that behave as the kernel's do, and a log of what was
 * done to them. Tests make it bear threads, let them exit, pin them and refuse, also in the middle of somebody's
 * work. */

#include "act/act.h"

typedef struct ActRecord ActRecord;

extern const ActOps act_ops_record;

typedef enum ActRecordOp {
    ACT_RECORD_LIST_THREADS,
    ACT_RECORD_LIST_PROCESSES,
    ACT_RECORD_GET_MASK,
    ACT_RECORD_SET_VIA,  /* before a thread is narrowed */
    ACT_RECORD_SET_MASK, /* before its mask is set; after the narrowing, if there is one */
    ACT_RECORD_MAY_FORK,
    ACT_RECORD_GET_PLACE,
} ActRecordOp;

/* Called before an operation takes effect; may change the machine. */
typedef void (*ActRecordHook)(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task);

/* A machine with CPUs 0 to n_cpus - 1, at tick 1000. NULL: out of memory. The context of act_ops_record. */
ActRecord *act_record_new(unsigned n_cpus);
ActRecord *act_record_free(ActRecord *record);
DEFINE_CLEANUP(ActRecord *, act_record_free)

void act_record_set_hook(ActRecord *record, ActRecordHook hook, void *userdata);

/* Moves the clock that births are told by. */
void act_record_advance(ActRecord *record, uint64_t ticks);

/* What comes back is false when memory is out or a number is taken; masks and cpusets are lists, "0-3". A process
 * begins with one thread of its own number, whole session and group `pgrp`. */
bool act_record_add_process(ActRecord *record, pid_t pid, pid_t parent, pid_t pgrp, const char *mask);
/* A thread or process born of a thread: mask (and session) are inherited. */
bool act_record_clone(ActRecord *record, pid_t creator, pid_t tid);
bool act_record_fork(ActRecord *record, pid_t creator, pid_t pid);
/* Makes the thread look as if it might be making a child, or not any more. */
void act_record_set_fork(ActRecord *record, pid_t tid, ActForkState state);
/* As the kernel's command line would. */
bool act_record_isolate(ActRecord *record, const char *cpus);
bool act_record_set_cpuset(ActRecord *record, pid_t pid, const char *cpuset);
/* Its session and group: its own number, as by setsid(2); -1, in the midst of exiting, when it has none any more, and
 * its children have not been adopted yet; 0, as that of a process in a PID namespace, whose session began outside,
 * where children are of the same. */
void act_record_set_session(ActRecord *record, pid_t pid, pid_t session);
/* In the midst of exiting, but a moment before: it is in no cgroup that tells any more. */
void act_record_set_exiting(ActRecord *record, pid_t pid);
/* Moves a process to other cgroups, or makes it the first of a PID namespace; children are born where their parent
 * is. At first all are in the roots. */
void act_record_set_place(ActRecord *record, pid_t pid, uint64_t place);
void act_record_set_first(ActRecord *record, pid_t pid);
/* The new session of a daemon: its parent is 1 then. */
void act_record_detach(ActRecord *record, pid_t pid);
/* One thread, or, when it leads a process, all of it. */
void act_record_exit(ActRecord *record, pid_t tid);
/* Where the thread runs. */
void act_record_run_on(ActRecord *record, pid_t tid, int32_t cpu);
/* As its user would, with taskset(1). */
bool act_record_pin(ActRecord *record, pid_t tid, const char *mask);
/* Makes the next `times` changes of that thread's mask fail with this result. */
void act_record_fail(ActRecord *record, pid_t tid, ActResult result, unsigned times);

/* The mask of a thread as the kernel would show it, as a list; "gone" when there is no such thread. Valid until the
 * next call. */
const char *act_record_mask(ActRecord *record, pid_t tid);
/* One line per mask that was set, "TID MASK" or "TID MASK via MASK". */
const char *act_record_log(const ActRecord *record);
TaskKey act_record_key(const ActRecord *record, pid_t tid);
