/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share. A mask is "ours" if the daemon gave it, or if the kernel derived it from
 * one that the daemon gave. */

#include "act/act.h"
#include "act/fence/fence.h"
#include "act/journal/journal.h"
#include "base/parse.h"
#include "base/time.h"

/* Most passes over threads or processes that keep multiplying. Each finds only what the leftovers of the last
 * one forked, so three or four do. A program that outruns them all is tried again later. */
#define ACT_PASSES_MAX 16U

/* How long to wait for tasks that may be inside fork(2): while none comes out, and in all. Hundreds that fork and
 * share ancestors or programs queue for one lock after the other, and late comers take a free lock first. Of six
 * hundred on two CPUs the last came out after more than two minutes. A service manager gives us longer to stop. */
#define ACT_SETTLE_USEC  (120U * USEC_PER_SEC)
#define ACT_RESTORE_USEC (300U * USEC_PER_SEC)

/* The same, while none comes out, for tasks in uninterruptible sleep that are not known to be inside fork(2).
 * They hang for another reason, perhaps a dead network disk. */
#define ACT_STUCK_USEC (10U * USEC_PER_SEC)

/* A process born with a mask of ours and not judged yet (masks/births.c). */
typedef struct ActUndecided {
    TaskKey task;
    uint32_t n_looks; /* discoveries since then */
} ActUndecided;

#define ACT_UNDECIDED_MAX 256U
/* During the search for children. The highest priority of a normal task: a real-time class could lock up a
 * machine with one CPU. */
#define ACT_RESTORE_NICE (-20)

struct Search;

/* What is left of the current act_execute_slice(). */
typedef struct ActSlice {
    bool on; /* false: no limits apply */
    bool unfinished;
    uint64_t until_usec;
    size_t n_threads; /* threads handled */
    size_t n_large;   /* actions still to come that are handled thread by thread */
    /* Where the previous slice ended. The next one begins behind it, so that a failing thread delays no other. */
    TaskKey last;
    PlanPart *parts;
    size_t n_parts, parts_capacity;
} ActSlice;

/* A thread that may have been inside fork(2) when it was restored. Its child got our mask when the call
 * began, and shows when it ends. */
typedef struct ActSuspect {
    TaskKey task;
    uint64_t until_ticks; /* CPU time by which it is out of that call */
    uint32_t n_inside;    /* times in a row that it was seen inside fork(2) */
} ActSuspect;

struct Act {
    const ActOps *ops;
    void *context;
    int root_fd;
    Journal *journal; /* NULL if ops change nothing */
    Fences *fences;   /* the same */
    Orders *orders;
    ActStatistics statistics;
    uint64_t measured_usec;
    ActUndecided *undecided;
    size_t n_undecided, undecided_capacity;
    uint64_t search_usec;  /* when to restore children of processes that roam; 0: no such children */
    struct Search *search; /* the search for them, once begun; see act/undo/search.c */
    int search_error;
    /* Tasks that may yield a child with our mask, not waited for to the end. The next restore does so. */
    ActSuspect *suspects;
    size_t n_suspects, suspects_capacity;
    /* The journal is of a daemon or --restore that is gone and may have been restoring. */
    bool inherited;
    uint64_t settle_usec, stuck_usec; /* ACT_SETTLE_USEC and ACT_STUCK_USEC, except in tests */
    ActSlice slice;
    hwloc_bitmap_t all;              /* infinite: every CPU there is */
    hwloc_bitmap_t online, isolated; /* read by act_refresh() */
    hwloc_bitmap_t scratch, cpuset;  /* for act_mask_same() and act_mask_ours() */
};

/* Reads which CPUs are online and isolated; called before each piece of work. On failure all count as online,
 * and none as isolated. */
void act_refresh(Act *act);

/* The process in the World (which may be NULL), or NULL. */
static inline const Process *act_known(const World *world, pid_t pid, uint64_t start_ticks)
{
    const Process *process = world ? world_process(world, pid) : NULL;

    return process && process->start_ticks == start_ticks ? process : NULL;
}

/* Whether two masks allow the same online CPUs. The kernel shows masks without offline CPUs. Two masks that
 * allow everything are the same, whatever they say of CPUs that do not exist. */
bool act_mask_same(Act *act, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b);

/* Whether a thread of `process`, or one born of it, can have this mask only from us: it was given, or is what
 * the thread's cpuset leaves of one given. */
bool act_mask_ours(Act *act, const JournalProcess *process, TaskKey task, hwloc_const_bitmap_t mask);
/* Whether the mask is what the thread's cpuset leaves of a different mask given, and whether some cpuset
 * could leave it of one given. */
bool act_mask_is_cut(Act *act, const JournalProcess *process, TaskKey task, hwloc_const_bitmap_t mask);
bool act_mask_may_be_cut(const JournalProcess *process, hwloc_const_bitmap_t mask);
/* Whether a mask that looks like the original may be one given: the two differ in CPUs that are offline, or the
 * original was all that there was. */
bool act_mask_may_hide(Act *act, const JournalProcess *process, JournalOriginal original,
                       hwloc_const_bitmap_t mask);

/* The distinct masks that processes have from us: homes, with or without a lent CPU. */
typedef struct GivenMasks {
    CpuMask *masks;
    size_t n, capacity;
} GivenMasks;

/* Collects the masks of all entries of the journal, or of selected ones. 0 or -ENOMEM. */
int act_given_gather(Act *act, bool selected, GivenMasks *ret);
/* Whether one of them is the same by act_mask_same(). Call act_refresh() first. */
bool act_given_has(Act *act, const GivenMasks *given, hwloc_const_bitmap_t mask);
static inline void act_given_done(GivenMasks *given)
{
    free(given->masks);
}

/* Calls journal_note_change(). If the process has no valid entry, first fills in its place and, unless known,
 * the time since when it has our masks. */
int act_note_change(Act *act, JournalChange *change);

/* Calls ops->set_mask(), counted and timed. */
int act_set_mask(Act *act, TaskKey task, hwloc_const_bitmap_t via, hwloc_const_bitmap_t mask);

/* Restores a thread's original mask. If none of its CPUs exists any more, the thread gets all CPUs. If the
 * original was all CPUs, it gets all that exist now, except isolated ones that it did not have. */
int act_set_original(Act *act, TaskKey task, JournalOriginal original);

/* Records what the kernel made of our masks where a cpuset has changed. 0 or -ENOMEM. */
int act_follow_cpusets(Act *act, const World *world);

/* Compacts the journal if that pays. */
int act_compact(Act *act);

/* A restore in three steps: begin, any number of processes, and finish, which searches for the children of all at
 * once. Children managed in `world` (may be NULL) keep their masks, since they have actions of their own. */
typedef struct Restore {
    Act *act;
    const World *world;
    hwloc_bitmap_t have;
    size_t n_restored, n_left;
    bool vanished; /* in this pass: a task was gone before it could be read */
    bool later;    /* a later search looks for children */
    bool late;     /* restored a while ago: a thread with its own mask may still be in an older fork(2) */
    bool again;    /* not the first pass over these threads */
    int nice_before;
    int error;       /* the first -errno */
    int stuck_error; /* the same of single threads, whose processes alone stay in the journal */
    /* Of the search for children. */
    uint64_t begin_usec, now_usec, progress_usec;
    unsigned n_quiet, n_rounds, n_passes; /* passes: those with no suspect left */
} Restore;

int restore_begin(Act *act, const World *world, Restore *ret);
/* Restores the threads of one process and selects its entry. 0, or -errno if some could not be restored. */
int restore_process(Restore *restore, JournalProcess *entry);
/* Restores the children of selected entries, and records these as released if nothing failed, but not those with
 * threads that could not be restored. */
int restore_finish(Restore *restore);
/* 0, or the first -errno of all of that. */
int restore_result(const Restore *restore);

/* Remembers the first failure and returns it as -errno. A task that exited is no failure: 0. */
int restore_failed(Restore *restore, int r);
/* Notes a thread just restored if it may be inside fork(2). 0 or -ENOMEM. */
int restore_suspect(Restore *restore, TaskKey task);
/* Restores one thread if its mask is ours. 1: it did; 0: nothing to do, or nothing that shows after an
 * earlier pass; -errno. */
int restore_thread(Restore *restore, JournalProcess *entry, TaskKey task);

/* One step of restore_finish(), which sleeps for *ret_moment_usec in between. 1: there are more; 0: it is
 * over; -errno. */
int restore_children_step(Restore *restore, uint64_t *ret_moment_usec);
/* Whether the selection (NULL: everything) wants this entry. */
bool restore_wants(const ActSelection *selection, const JournalProcess *entry);
/* Whether the process inherited its mask from a selected one, and is restored with it. Ask before the first step. */
bool restore_is_heir(const Restore *restore, const JournalProcess *entry);
/* Records releases unless something failed, frees what restore_begin() made, and returns `r`. */
int restore_end(Restore *restore, int r);

/* A walk over the threads of one process that restores them, walk.n_max threads in each call. */
typedef struct RestoreWalk {
    ActThreadWalk walk;
    Restore *restore;
    JournalProcess *entry;
    bool own_originals; /* some threads had another mask than the process */
    bool changed;       /* by this pass */
    int error;
} RestoreWalk;

/* Continues a pass. Set walk.pid and walk.start_ticks, and walk.fd to -1 at first. 1: something was restored
 * so far; 0: not; or -errno. walk.more says whether the pass continues. */
int restore_walk(Restore *restore, JournalProcess *entry, RestoreWalk *pass);

/* Restores only the threads of one process. Neither waits for its children nor records a release. 0, -errno,
 * or 1: nothing was restored, because somebody else had pinned all of them. */
int restore_threads(Act *act, const World *world, JournalProcess *entry);
