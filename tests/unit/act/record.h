/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A machine in memory for act_ops_record: threads whose masks behave as the kernel's do, and a log of the
 * masks that were set. Tests can fork, clone, end and pin threads on it and make changes fail, also in the
 * middle of an operation. */

#include "act/act.h"

typedef struct ActRecord ActRecord;

extern const ActOps act_ops_record;

typedef enum ActRecordOp {
    ACT_RECORD_LIST_THREADS,
    ACT_RECORD_LIST_PROCESSES,
    ACT_RECORD_GET_MASK,
    ACT_RECORD_SET_VIA,  /* before a thread is narrowed to one CPU */
    ACT_RECORD_SET_MASK, /* before its mask is set, and after the narrowing, if there is one */
    ACT_RECORD_MAY_FORK,
    ACT_RECORD_GET_PLACE,
} ActRecordOp;

/* Called before an operation takes effect; may change the machine. */
typedef void (*ActRecordHook)(void *userdata, ActRecord *record, ActRecordOp op, TaskKey task);

/* Returns a machine with CPUs 0 to n_cpus - 1, at tick 1000; NULL: out of memory. It is the context of
 * act_ops_record. */
ActRecord *act_record_new(unsigned n_cpus);
ActRecord *act_record_free(ActRecord *record);
DEFINE_CLEANUP(ActRecord *, act_record_free)

void act_record_set_hook(ActRecord *record, ActRecordHook hook, void *userdata);

/* Advances the clock of start times. */
void act_record_advance(ActRecord *record, uint64_t ticks);

/* These return false when out of memory, or when the number is in use. Masks and cpusets are lists, "0-3". A
 * process begins with one thread of the same number; `pgrp` is its session and process group. */
bool act_record_add_process(ActRecord *record, pid_t pid, pid_t parent, pid_t pgrp, const char *mask);
/* Adds a thread, or a process, created by `creator`: it inherits the mask (and session). */
bool act_record_clone(ActRecord *record, pid_t creator, pid_t tid);
bool act_record_fork(ActRecord *record, pid_t creator, pid_t pid);
/* Sets whether the thread appears to be in fork(2). */
void act_record_set_fork(ActRecord *record, pid_t tid, ActForkState state);
/* Isolates CPUs, as the kernel command line does. */
bool act_record_isolate(ActRecord *record, const char *cpus);
/* Takes CPUs offline, or back. Masks keep them, as those of tasks in the root cpuset do. */
bool act_record_set_online(ActRecord *record, const char *cpus);
bool act_record_set_cpuset(ActRecord *record, pid_t pid, const char *cpuset);
/* Sets session and process group. Its own number: as setsid(2) does. -1: in the midst of exiting, when it has
 * no session any more and its children are not yet adopted. 0: in a PID namespace whose session began outside
 * it; children show the same. */
void act_record_set_session(ActRecord *record, pid_t pid, pid_t session);
/* Makes it exiting, a moment earlier than above: its cgroups cannot be read any more. */
void act_record_set_exiting(ActRecord *record, pid_t pid);
/* Moves a process to other cgroups, or makes it the first of a PID namespace. Processes start in the root
 * cgroups, and children in those of their parent. */
void act_record_set_place(ActRecord *record, pid_t pid, uint64_t place);
void act_record_set_first(ActRecord *record, pid_t pid);
/* Gives it a session of its own and parent 1, as a daemon has. */
void act_record_detach(ActRecord *record, pid_t pid);
/* Ends one thread, or the whole process if `tid` leads it. */
void act_record_exit(ActRecord *record, pid_t tid);
/* Sets the CPU on which the thread runs. */
void act_record_run_on(ActRecord *record, pid_t tid, int32_t cpu);
/* Sets the mask as its user would, with taskset(1). */
bool act_record_pin(ActRecord *record, pid_t tid, const char *mask);
/* Makes the next `times` changes of that thread's mask fail with `result`. */
void act_record_fail(ActRecord *record, pid_t tid, ActResult result, unsigned times);

/* Returns the mask as the kernel would show it, as a list; "gone" when there is no such thread. Valid until
 * the next call. */
const char *act_record_mask(ActRecord *record, pid_t tid);
/* Returns one line for each mask that was set, "TID MASK" or "TID MASK via MASK". */
const char *act_record_log(const ActRecord *record);
TaskKey act_record_key(const ActRecord *record, pid_t tid);
