/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share. */

#include "act/act.h"
#include "act/fence/fence.h"
#include "act/journal/journal.h"
#include "base/parse.h"
#include "base/time.h"

/* Passes over threads or processes that keep multiplying. Each pass finds only what was born of the leftovers
 * of the one before, so three or four do; a program that still gets away after these is tried again later. */
#define ACT_PASSES_MAX 16U

/* How long those that may be in fork(2) are waited for while none of them comes out, and at most. Hundreds that fork
 * and share ancestors or programs queue up for one lock after the other, and those that come to one while it is free
 * take it before those that wait: of six hundred on two CPUs the last came out after more than two minutes. It is less
 * than a service manager gives us to stop. */
#define ACT_SETTLE_USEC  (120U * USEC_PER_SEC)
#define ACT_RESTORE_USEC (300U * USEC_PER_SEC)

/* The same while nobody comes out, of those who sleep in the kernel and are not known to do so in fork(2): they hang
 * there for another reason, on a dead network disk perhaps. */
#define ACT_STUCK_USEC (10U * USEC_PER_SEC)

/* Who was born with a mask of ours, and is not judged yet; of births.c. */
typedef struct ActUndecided {
    TaskKey task;
    uint32_t n_looks; /* discoveries since */
} ActUndecided;

#define ACT_UNDECIDED_MAX 256U
/* While it is searched for children. The highest of a normal task: a real-time class could lock up a machine with
 * one CPU. */
#define ACT_RESTORE_NICE (-20)

struct Search;

/* What is left of the present act_execute_slice(). */
typedef struct ActSlice {
    bool on; /* else there is no limit */
    bool unfinished;
    uint64_t until_usec;
    size_t n_threads; /* gone through */
    size_t n_large;   /* actions still to come that are gone through thread by thread */
    /* Where the one before ended: the next begins behind it, so that a thread that fails keeps nobody waiting. */
    TaskKey last;
    PlanPart *parts;
    size_t n_parts, parts_capacity;
} ActSlice;

/* A thread put back while it may have been making a child: that child got our mask when the call began, and
 * is seen when it ends. */
typedef struct ActSuspect {
    TaskKey task;
    uint64_t until_ticks; /* with so much CPU time it is out of that call */
    uint32_t n_inside;    /* how often it was seen to wait there since its times were read */
} ActSuspect;

struct Act {
    const ActOps *ops;
    void *context;
    int root_fd;
    Journal *journal; /* NULL: ops change nothing */
    Fences *fences;   /* the same */
    Orders *orders;
    ActStatistics statistics;
    uint64_t measured_usec;
    ActUndecided *undecided;
    size_t n_undecided, undecided_capacity;
    uint64_t search_usec;  /* when the children of those that roam are put back; 0: nobody's are to be */
    struct Search *search; /* of those for whom that has begun; see act/undo/search.c */
    int search_error;
    /* Who may be making a child with a mask of ours, and was not waited for to the end: the next putting back does. */
    ActSuspect *suspects;
    size_t n_suspects, suspects_capacity;
    /* What is in the journal was written by a daemon or a --restore that is gone, and may have been putting back. */
    bool inherited;
    uint64_t settle_usec, stuck_usec; /* ACT_SETTLE_USEC and ACT_STUCK_USEC, but for tests */
    ActSlice slice;
    hwloc_bitmap_t all;              /* infinite: every CPU there is */
    hwloc_bitmap_t online, isolated; /* read anew by act_refresh() */
    hwloc_bitmap_t scratch, cpuset;  /* of act_mask_same() and act_mask_ours() */
};

/* Reads which CPUs are online and isolated, at the start of each piece of work. When that fails all CPUs count as
 * online, and none as isolated. */
void act_refresh(Act *act);

/* The process of that number and start in the World (which may be NULL), or NULL. */
static inline const Process *act_known(const World *world, pid_t pid, uint64_t start_ticks)
{
    const Process *process = world ? world_process(world, pid) : NULL;

    return process && process->start_ticks == start_ticks ? process : NULL;
}

/* Whether two masks allow the same online CPUs. The kernel shows a mask without its offline CPUs, and so may
 * what it is compared with; and masks that both allow everything are the same, whatever they say of CPUs that
 * do not exist. */
bool act_mask_same(Act *act, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b);

/* Whether a thread (of `process`, or born of it) can have this mask from us and nobody else: it is one that was
 * given, or what the cpuset of the thread leaves of one. */
bool act_mask_ours(Act *act, const JournalProcess *process, TaskKey task, hwloc_const_bitmap_t mask);
/* Whether it is what the cpuset of the thread leaves of another one that was given; and whether some cpuset could leave
 * that of one. */
bool act_mask_is_cut(Act *act, const JournalProcess *process, TaskKey task, hwloc_const_bitmap_t mask);
bool act_mask_may_be_cut(const JournalProcess *process, hwloc_const_bitmap_t mask);

/* The masks that processes have from us, each once: homes, and those with a CPU that was lent. */
typedef struct GivenMasks {
    CpuMask *masks;
    size_t n, capacity;
} GivenMasks;

/* Gathers those of all entries of the journal, or only of the selected ones. 0 or -ENOMEM. */
int act_given_gather(Act *act, bool selected, GivenMasks *ret);
/* Whether one of them is the same by act_mask_same(), so after act_refresh(). */
bool act_given_has(Act *act, const GivenMasks *given, hwloc_const_bitmap_t mask);
static inline void act_given_done(GivenMasks *given)
{
    free(given->masks);
}

/* journal_note_change(), with the place of a process that is not entered yet, and since when it is, unless that is
 * known. */
int act_note_change(Act *act, JournalChange *change);

/* ops->set_mask(), counted and timed. */
int act_set_mask(Act *act, TaskKey task, hwloc_const_bitmap_t via, hwloc_const_bitmap_t mask);

/* Gives a thread back what it had. CPUs that it had and that are no more are no reason to fail: then it gets
 * all. Where it had all there were, it gets all there are, but for isolated ones that it did not have. */
int act_set_original(Act *act, TaskKey task, JournalOriginal original);

/* Writes down what the kernel made of our masks in processes whose cpuset is not what it was. 0 or -ENOMEM.
 */
int act_follow_cpusets(Act *act, const World *world);

/* Drops what the journal needs no more, when that pays. */
int act_compact(Act *act);

/* Putting back, in three steps: begin, any number of processes, and finish, which looks for their children
 * once for all of them. Children that are managed themselves in `world` (may be NULL) keep their masks: they
 * have actions of their own. */
typedef struct Restore {
    Act *act;
    const World *world;
    hwloc_bitmap_t have;
    size_t n_restored, n_left;
    bool vanished; /* in this pass: a task was gone before it could be looked at */
    bool later;    /* it is over before anybody looks for children */
    bool late;     /* put back a while ago: who has its own mask may still be in a fork(2) of before */
    bool again;    /* not the first pass over these threads */
    int nice_before;
    int error; /* the first -errno: something could not be put back */
    /* Of the search for children */
    uint64_t begin_usec, now_usec, progress_usec;
    unsigned n_quiet, n_rounds, n_passes; /* passes: with nobody in fork(2) any more */
} Restore;

int restore_begin(Act *act, const World *world, Restore *ret);
/* Puts the threads of one process back and selects its entry. 0, or -errno when some could not be. */
int restore_process(Restore *restore, JournalProcess *entry);
/* Puts the children of the selected entries back, and notes what is released if there was no error at all. */
int restore_finish(Restore *restore);

/* Remembers the first failure and returns it as -errno. That a task exited is none. */
int restore_failed(Restore *restore, int r);
/* Notes a thread just put back, if it may be making a child. 0 or -ENOMEM. */
int restore_suspect(Restore *restore, TaskKey task);
/* Gives one thread back what `entry` says, if its mask is ours. 1: it did; 0: nothing to do, or no more than the
 * pass before did, which does not show; -errno. */
int restore_thread(Restore *restore, const JournalProcess *entry, TaskKey task);

/* A step of restore_finish(), which sleeps between them: 1 when there are more to come, 0 when it is over, or
 * -errno. */
int restore_children_step(Restore *restore, uint64_t *ret_moment_usec);
/* Whether it has its mask from one that is selected, and is put back with it; for the time before the first step. */
/* NULL wants everybody. */
bool restore_wants(const ActSelection *selection, const JournalProcess *entry);
bool restore_is_heir(const Restore *restore, const JournalProcess *entry);
/* The end of it. */
int restore_end(Restore *restore, int r);

/* A walk over the threads of one process that puts back what is ours, in as many calls as walk.n_max makes it. */
typedef struct RestoreWalk {
    ActThreadWalk walk;
    Restore *restore;
    JournalProcess *entry;
    bool own_originals; /* not all of its threads had the same mask before */
    bool changed;       /* by this pass */
    int error;
} RestoreWalk;

/* Goes on with a pass, of which walk.pid and walk.start_ticks are set, and walk.fd -1 at first. 1: something was put
 * back so far; 0: not; or -errno. walk.more says whether the pass is over. */
int restore_walk(Restore *restore, JournalProcess *entry, RestoreWalk *pass);

/* Puts back only the threads of one process, and neither waits for its children nor notes that it was released. 0,
 * -errno, or 1: nothing was put back, because all of it is as somebody else pinned it. */
int restore_threads(Act *act, const World *world, JournalProcess *entry);
