/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Carrying out a Plan, and taking everything back. The only room that changes anything on the machine.
 *
 * Every change is in the journal before it is made (I3); what cannot be written down is not done. */

#include "act/orders.h"
#include "plan/plan.h"

#include <stdint.h>

typedef struct Act Act;

/* How effects reach the machine. All functions return 0, a negative errno for what broke, or a positive
 * ActResult. */
typedef enum ActResult {
    ACT_E_GONE = 1, /* the task exited, or its number belongs to another one now */
    ACT_E_REFUSED,  /* for good: EPERM, EACCES, EINVAL */
    ACT_E_RETRY,    /* for now: ENOMEM, EBUSY, EAGAIN */
    ACT_E_CUT,      /* set, but the kernel gave it less than asked: its cpuset is narrower */
    ACT_E_CORRUPT,  /* of act_new() only: the journal was damaged */
} ActResult;

/* How a process is related to others; what a child can have inherited a mask by. */
typedef struct ActProcess {
    pid_t pid, parent, pgrp, session;
    uint64_t start_ticks;
    int32_t cpu; /* where it runs, or ran last */
    bool ended;  /* or about to: it is exiting, or its parent has not asked for its status yet */
} ActProcess;

/* Where a process is: a number that two processes have in common when they are in the same cgroups. */
#define ACT_PLACE_UNKNOWN 0U
#define ACT_PLACE_ROOT    1U /* in the root of every hierarchy */

/* A point in time that tells apart tasks born before and after it. */
typedef struct ActBirthMark {
    uint64_t ticks; /* since boot, in the unit of start times */
    pid_t last;     /* the last task number given out */
} ActBirthMark;

/* A quick walk over all processes. */
typedef struct ActWalk {
    /* Whether a process whose first thread has this mask is of interest. Nothing else is known of it yet: who
     * bears the number now may not be who was listed. */
    bool (*wants)(void *userdata, hwloc_const_bitmap_t mask);
    void (*visit)(void *userdata, const ActProcess *process);
    void *userdata;
    size_t n_gone;       /* set: listed, but gone before they were looked at */
    uint64_t until_usec; /* it is broken off then, by CLOCK_MONOTONIC; 0: never */
} ActWalk;

/* A quick walk over the threads of one process, in as many calls as it takes: of a hundred thousand only those are
 * read whose mask is of interest. Whoever is born or ends between two calls may be missed, and nobody is met twice
 * but for that. */
typedef struct ActThreadWalk {
    pid_t pid;
    uint64_t start_ticks;
    bool (*wants)(void *userdata, hwloc_const_bitmap_t mask);
    void (*visit)(void *userdata, TaskKey task);
    void *userdata;
    size_t n_max; /* looked at in one call; 0: all that are left */
    bool more;    /* set: another call goes on */
    int fd;       /* of the walk; -1 before the first call and when there is no more */
    size_t at;    /* the same, where there are no descriptors */
} ActThreadWalk;

typedef enum ActForkState {
    ACT_FORK_NO,
    ACT_FORK_RUNNING, /* perhaps: it runs or waits for a CPU */
    ACT_FORK_BLOCKED, /* perhaps: it sleeps uninterruptibly */
    ACT_FORK_INSIDE,  /* it does, and waits in the call */
} ActForkState;

/* Whether a thread may be in the middle of making a child. Times in the unit of start times. */
typedef struct ActFork {
    ActForkState state;
    uint64_t ticks; /* CPU time it has used */
    /* More of it than fork(2) takes, with as much memory as it has to copy page tables of. */
    uint64_t most_ticks;
} ActFork;

typedef struct ActOps {
    bool changes; /* false: nothing reaches the machine, and nothing is journalled */
    /* CPUs that are online: masks are compared within them, since the kernel shows no others. */
    int (*get_online)(void *context, hwloc_bitmap_t ret);
    /* CPUs that the kernel's command line isolates: in every cpuset, and in nobody's mask who did not ask for them. */
    int (*get_isolated)(void *context, hwloc_bitmap_t ret);
    /* CPUs that its cpuset leaves to a thread; -ENOENT when nothing says so. */
    int (*get_cpuset)(void *context, pid_t tid, hwloc_bitmap_t ret);
    int (*get_mask)(void *context, TaskKey task, hwloc_bitmap_t ret);
    /* Sets the mask of one thread; `via`, unless NULL, is set just before, to force the thread onto those
     * CPUs. When `via` was set and `mask` could not be, `via` stays. An infinite `mask` means all there are.
     */
    int (*set_mask)(void *context, TaskKey task, hwloc_const_bitmap_t via, hwloc_const_bitmap_t mask);
    /* Thread numbers of a process and their start times, malloc'd; ACT_E_GONE when it exited. */
    int (*list_threads)(void *context, pid_t pid, uint64_t start_ticks, TaskKey **ret, size_t *ret_n);
    /* Visits those that are wanted; ACT_E_GONE when the process exited. */
    int (*walk_threads)(void *context, ActThreadWalk *walk);
    /* All processes, ascending pid, malloc'd. */
    int (*list_processes)(void *context, ActProcess **ret, size_t *ret_n);
    /* Visits those that are wanted one by one as they are met, so that little time goes by in between. -ETIMEDOUT when
     * it was broken off. */
    int (*walk)(void *context, ActWalk *walk);
    /* One task by its number; of a thread that leads no process, `pid` is the thread's number, `parent` its
     * process's parent. */
    int (*read_process)(void *context, pid_t pid, ActProcess *ret);
    /* ACT_PLACE_..., or a larger number; ACT_E_GONE of one that is exiting: it is in no cgroup any more. */
    int (*get_place)(void *context, pid_t pid, uint64_t *ret);
    /* Whether it is the first process of a PID namespace, which adopts orphans. */
    bool (*is_first)(void *context, pid_t pid);
    int (*birth_mark)(void *context, ActBirthMark *ret);
    int (*may_fork)(void *context, TaskKey task, ActFork *ret);
    /* Whether the task of this number, the same or a successor, waits in fork(2), as far as that is seen without
     * touching its memory. Who reads the times of one that is exiting may have to take its memory down in its place,
     * which in a storm of forks takes as long as all that wait for the same locks. */
    bool (*waits_in_fork)(void *context, TaskKey task);
} ActOps;

/* The real thing: sched_setaffinity(2) on the tasks below the root's /proc, start time checked before and
 * after. The context is an `int *`, the descriptor of the root; act_new() supplies its own when it is given
 * NULL. */
extern const ActOps act_ops_affinity;
/* Reads masks as above, changes nothing (I11). */
extern const ActOps act_ops_dry_run;

typedef struct ActStatistics {
    uint64_t n_set_mask;        /* mask changes made */
    uint64_t cost_usec;         /* spent in them */
    uint64_t n_left;            /* threads that releases left as somebody else pinned them */
    uint64_t n_slices;          /* calls that left something for the next one */
    uint64_t slice_threads_max; /* threads gone through in one of them */
} ActStatistics;

/* `journal_path` NULL: no journal (only with ops that change nothing; with these the journal is never
 * opened). `root_fd` is borrowed. The journal's directory must exist.
 *
 * Returns 0 or -errno; then, if the journal is the reason, *ret_error is a malloc'd sentence naming the file,
 * else NULL: -EPERM for a file that somebody else could have written or may write. ACT_E_CORRUPT: *ret_error
 * says which line is damaged ("FILE:LINE: expected ..."), the damaged file is kept as FILE.corrupt, and *ret
 * is valid and holds every entry that could be read: call act_restore(), report, and exit. */
int act_new(const ActOps *ops, void *context, int root_fd, const char *journal_path, Act **ret,
            char **ret_error);
/* Who carries out orders to move memory; borrowed, and needed as long as plans are executed. NULL, as at the start:
 * they are skipped. */
void act_set_orders(Act *act, Orders *orders);

/* Whether what is in the journal is to stay when this process has ended (KeepOnStop=): said by the one that stops,
 * taken back by the next that places. act_note_kept() returns 0 or -errno when it could not be written down. */
bool act_kept(const Act *act);
int act_note_kept(Act *act, bool kept);

/* What a daemon that is gone has left in place. */
typedef struct ActLeftover {
    size_t n_threads; /* with a mask of its */
    size_t n_cgroups; /* with a cpuset or memory nodes of its, or perhaps so */
    bool kept;        /* it meant to */
} ActLeftover;

/* How many processes and cgroups a journal has entries of, whether or not they exist: for one that is about another PID
 * namespace. Return as act_leftover(). */
int act_count_journal(int root_fd, const char *journal_path, size_t *ret, char **ret_error);

/* Counts that: reads a journal and the machine, and changes and makes nothing. Without a journal all
 * is 0. `ops` change nothing. 0, or -errno with a sentence in *ret_error or NULL, as act_new(). */
int act_leftover(const ActOps *ops, void *context, int root_fd, const char *journal_path, ActLeftover *ret,
                 char **ret_error);

/* Closes the journal; does not restore. */
Act *act_free(Act *act);
DEFINE_CLEANUP(Act *, act_free)

/* Carries the plan out in order; writes one outcome per action. Process-wide actions go over the thread
 * directory until a pass finds no thread without the mask, since threads are born meanwhile; a thread whose
 * mask is neither `from` nor one of ours is somebody else's and left alone, and FOREIGN is the outcome only
 * if all of them are. Call it in every tick, also with an empty plan: it looks after what earlier moves left
 * behind (act/masks/passage.h). Returns 0, or -ENOMEM (every action that was not tried has outcome RETRY then). */
int act_execute(Act *act, const World *world, const Plan *plan, PlanOutcome *outcomes);

/* The same, as far as a tick can spare the time: until ACT_SLICE_TICK_USEC after it began (World.now), but for
 * ACT_SLICE_USEC, and for ACT_SLICE_THREADS threads at most. What is not begun is RETRY. A process of more than
 * ACT_SLICE_LARGE threads is gone through thread by thread, of those that the World says the action is for; what
 * became of these says act_parts(), and as long as there are more the outcome is PARTLY. Nothing is remembered of
 * it: the next plan asks for the rest, or for something else. Children of released processes are put back by later
 * calls, a step in each. */
#define ACT_SLICE_TICK_USEC 50000U
#define ACT_SLICE_USEC      15000U
#define ACT_SLICE_THREADS   2048U
#define ACT_SLICE_LARGE     256U
int act_execute_slice(Act *act, const World *world, const Plan *plan, PlanOutcome *outcomes);

/* Of the last act_execute_slice(): for plan_commit_parts(). Valid until the next. */
const PlanPart *act_parts(const Act *act, size_t *ret_n);
/* Whether it left something for the next one, which is to come soon and to look at homes, too. */
bool act_unfinished(const Act *act);
/* Judges processes that have begun since the last call, by the rule at the head of act/undo/lineage.c: those that
 * were born with a mask of ours are written down as heirs of the ones they have it from, those whose user chose the
 * same mask as strangers. Call it after each discovery. Returns 0 or -ENOMEM. */
int act_follow_births(Act *act, const TaskKey *processes, size_t n);

/* Whose masks are put back. */
typedef struct ActSelection {
    /* `workload`: the one that it, or whoever it has its mask from, was placed for, as far as that is known. */
    bool (*wants)(void *userdata, pid_t pid, const char *workload);
    void *userdata;
} ActSelection;

/* Puts back the masks of everything in the journal, or only of selected processes (`selection` not NULL): also of
 * children that inherited theirs. Counts threads put back in *ret_restored and threads left as somebody else pinned
 * them in *ret_left (both may be NULL). Returns 0, or -errno when something could not be put back, -ETIMEDOUT when a
 * task stayed in a call that may bear a child with a mask of ours: it stays in the journal then. */
int act_restore(Act *act, const ActSelection *selection, size_t *ret_restored, size_t *ret_left);

/* The same and, as long as it says that tasks were born faster than it could look, again. Of
 * several tries the threads put back are added up, and those left are the last try's. */
int act_restore_persistently(Act *act, const ActSelection *selection, size_t *ret_restored, size_t *ret_left);

/* The same for processes of very many threads, step by step with each act_execute_slice(): begins with all fences,
 * and goes on with the threads and children of the selected processes. To be called when nothing in the World is
 * under our masks any more; over when act_is_restoring() says no. Returns 0, or -errno when some fence could not be
 * taken down. */
int act_restore_slowly(Act *act, const ActSelection *selection);
/* The same without fences. */
void act_search(Act *act, const ActSelection *selection);
bool act_is_restoring(const Act *act, const ActSelection *selection);
/* The first -errno of what could not be put back that way since the last call, or 0. */
int act_restoring_error(Act *act);

/* Fences: cpusets of whole cgroups around what the masks say; see act/fence/fence.h. */

typedef enum ActFenceKind {
    ACT_FENCE_NONE,
    ACT_FENCE_UNIT,    /* AllowedCPUs= of a unit, by its service manager */
    ACT_FENCE_CGROUP2, /* cpuset.cpus of a cgroup nobody else manages */
    ACT_FENCE_CGROUP1,
    ACT_FENCE_CPUSETFS, /* the cpuset file system of before cgroups, by libcpuset */
    ACT_FENCE_MAX,
    ACT_FENCE_INVALID = -EINVAL,
} ActFenceKind;

/* What a policy asks for (Act=). */
typedef enum ActWish {
    ACT_WISH_AFFINITY, /* no fence */
    ACT_WISH_AUTO,     /* where that is safe, and the cgroup nobody else's */
    ACT_WISH_UNIT,
    ACT_WISH_CPUSET,
} ActWish;

/* Why a group has no fence, or has it down. */
typedef enum ActWhy {
    ACT_WHY_UP,        /* it is up */
    ACT_WHY_POLICY,    /* Act=affinity */
    ACT_WHY_NO_HOME,   /* nothing to keep it in */
    ACT_WHY_PAUSED,    /* its home is left as it is, by the masks of its threads */
    ACT_WHY_HOST,      /* no cpuset controller, or no service manager that uses it */
    ACT_WHY_NO_UNIT,   /* not in a unit */
    ACT_WHY_NESTED,    /* a unit of another manager: of a user, or inside a container */
    ACT_WHY_CONTAINER, /* of a container, and not asked for */
    ACT_WHY_ROOT,      /* in the root cgroup */
    ACT_WHY_MANAGED,   /* the cgroup is the service manager's */
    ACT_WHY_FORGETS,   /* a kernel that forgets masks, and not asked for */
    ACT_WHY_SHARED,    /* the cgroup holds others, too, or one below has the CPUs of the home */
    ACT_WHY_HANDS,     /* a thread in it must be left alone */
    ACT_WHY_SETTLING,  /* some thread is not at home yet */
    ACT_WHY_WIDE,      /* its home is all it may use anyway */
    ACT_WHY_BORROWS,   /* it borrows, or did a moment ago */
    ACT_WHY_CHANGING,  /* on its way up or down */
    ACT_WHY_FOREIGN,   /* somebody else changed the cpuset again and again */
    ACT_WHY_REFUSED,   /* it could not be changed: see `error` */
    ACT_WHY_MAX,
    ACT_WHY_INVALID = -EINVAL,
} ActWhy;

/* How the home of a group is kept: with masks always, and with a fence of this kind if `why` is UP. */
typedef struct ActMeans {
    ActFenceKind kind;
    ActWhy why;
    int error;   /* REFUSED: errno */
    bool memory; /* its memory is kept in by a fence, too */
} ActMeans;

/* What can be fenced on this host. */
typedef struct ActHost {
    bool systemd;      /* it is the service manager, and uses cgroup v2 with cpusets */
    bool cpuset2;      /* the cpuset controller is on version 2 */
    bool cpuset1;      /* or on version 1 */
    bool cpusetfs;     /* on version 1 at /dev/cpuset, where libcpuset changes it */
    bool libcpuset;    /* this program is built with it */
    bool forgets;      /* the kernel forgets masks when a cpuset changes */
    uint32_t n_up;     /* fences that are up */
    uint32_t n_known;  /* all of them */
    uint32_t n_memory; /* fences of memory beside them that are up */
} ActHost;

/* *ret_memory: whether its memory is to be kept at home as well. */
typedef ActWish (*ActWants)(void *userdata, const World *world, WorkloadIx workload, bool *ret_memory);

/* They are looked after by who owns the Act (act/fence/fence.h). NULL: ops that change nothing have none. */
typedef struct Fences Fences;
Fences *act_fences(const Act *act);
const char *act_fence_name(ActFenceKind kind); /* "affinity", "unit", "cgroup2", "cgroup1", "cpusetfs" */
const char *act_why_name(ActWhy why);
const char *act_why_text(ActWhy why);

/* Mean cost of one mask change so far, at least 1 once known; before the first one, what act_measure() found
 * by setting the calling thread's mask to what it is. Ops that change nothing measure nothing: 0, not known.
 */
uint64_t act_cost_usec(const Act *act);
int act_measure(Act *act);

/* Why this process may not change the masks of other users' tasks, as part of a sentence; NULL: it may. It needs
 * CAP_SYS_NICE, and to see them: where /proc is mounted with hidepid=, CAP_SYS_PTRACE or the group of gid=. */
const char *act_forbidden(int root_fd);

const ActStatistics *act_statistics(const Act *act);
