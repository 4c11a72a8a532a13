/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Carrying out a Plan, and undoing everything. The only room that changes the machine.
 *
 * Every change is journalled before it is made (I3). What cannot be recorded is not done. */

#include "act/orders.h"
#include "plan/plan.h"

#include <stdint.h>

typedef struct Act Act;

/* How effects reach the machine. An int result is 0, a negative errno for what broke, or a positive ActResult. */
typedef enum ActResult {
    ACT_E_GONE = 1, /* the task exited, or its ID has been reused */
    ACT_E_REFUSED,  /* permanent: EPERM, EACCES, EINVAL */
    ACT_E_RETRY,    /* transient: ENOMEM, EBUSY, EAGAIN */
    ACT_E_CUT,      /* set, but cut by a narrower cpuset */
    ACT_E_CORRUPT,  /* act_new() only: the journal was damaged */
} ActResult;

/* How a process is related to others, and so from which it can have inherited a mask. */
typedef struct ActProcess {
    pid_t pid, parent, pgrp, session;
    uint64_t start_ticks;
    int32_t cpu; /* where it runs, or last ran */
    bool ended;  /* or about to: it is exiting, or is a zombie */
} ActProcess;

/* A number that is equal for processes in the same cgroups. */
#define ACT_PLACE_UNKNOWN 0U
#define ACT_PLACE_ROOT    1U /* in the root of every hierarchy */

/* A point in time that separates tasks born before it from those born after it. */
typedef struct ActBirthMark {
    uint64_t ticks; /* since boot, in the unit of start times */
    pid_t last;     /* the last task ID allocated */
} ActBirthMark;

/* A fast walk over all processes. */
typedef struct ActWalk {
    /* Whether a process whose first thread has this mask is of interest. Its PID may have been reused since
     * it was listed. */
    bool (*wants)(void *userdata, hwloc_const_bitmap_t mask);
    void (*visit)(void *userdata, const ActProcess *process);
    void *userdata;
    size_t n_gone;       /* set: gone before they were read */
    uint64_t until_usec; /* the walk ends then, CLOCK_MONOTONIC; 0: never */
} ActWalk;

/* A fast walk over the threads of one process, in one or more calls. It reads more than the mask only of
 * wanted threads. If threads start or end between calls, some may be missed or visited twice. */
typedef struct ActThreadWalk {
    pid_t pid;
    uint64_t start_ticks;
    bool (*wants)(void *userdata, hwloc_const_bitmap_t mask);
    void (*visit)(void *userdata, TaskKey task);
    void *userdata;
    size_t n_max; /* threads looked at in one call; 0: all */
    bool more;    /* set: another call continues */
    int fd;       /* of the walk; -1 before the first call and at the end */
    size_t at;    /* position, for ops without a descriptor */
} ActThreadWalk;

typedef enum ActForkState {
    ACT_FORK_NO,
    ACT_FORK_RUNNING, /* perhaps: it runs or waits for a CPU */
    ACT_FORK_BLOCKED, /* perhaps: it sleeps uninterruptibly */
    ACT_FORK_INSIDE,  /* certainly: it sleeps inside the call */
} ActForkState;

/* Whether a thread may be inside fork(2). Times are in the unit of start times. */
typedef struct ActFork {
    ActForkState state;
    uint64_t ticks; /* CPU time used */
    /* Upper bound on the CPU time of one fork(2), by the page tables to copy. */
    uint64_t most_ticks;
} ActFork;

typedef struct ActOps {
    bool changes; /* false: nothing reaches the machine or the journal */
    /* Online CPUs. Masks are compared within them, since the kernel shows no others. */
    int (*get_online)(void *context, hwloc_bitmap_t ret);
    /* CPUs that the kernel's command line isolates. Every cpuset includes them, but a mask only if somebody
     * asked for them. */
    int (*get_isolated)(void *context, hwloc_bitmap_t ret);
    /* The CPUs that its cpuset leaves a thread; -ENOENT if that is not known. */
    int (*get_cpuset)(void *context, pid_t tid, hwloc_bitmap_t ret);
    int (*get_mask)(void *context, TaskKey task, hwloc_bitmap_t ret);
    /* Sets the mask of one thread. `via`, unless NULL, is set just before, to force the thread onto those
     * CPUs; it stays if `mask` then fails. An infinite `mask` means all CPUs. */
    int (*set_mask)(void *context, TaskKey task, hwloc_const_bitmap_t via, hwloc_const_bitmap_t mask);
    /* TIDs and start times of a process's threads, malloc'd; ACT_E_GONE if it exited. Not of those whose masks the
     * kernel refuses to change: what they have is its choice, even if it looks like ours. */
    int (*list_threads)(void *context, pid_t pid, uint64_t start_ticks, TaskKey **ret, size_t *ret_n);
    /* Visits the wanted ones of these threads; ACT_E_GONE if the process exited. */
    int (*walk_threads)(void *context, ActThreadWalk *walk);
    /* All processes by ascending PID, malloc'd. */
    int (*list_processes)(void *context, ActProcess **ret, size_t *ret_n);
    /* Visits each wanted process as soon as it is listed. -ETIMEDOUT if `until_usec` has passed. */
    int (*walk)(void *context, ActWalk *walk);
    /* One task by its ID. For a thread that is not the first of its process, `pid` is its TID, and `parent`
     * that of its process. */
    int (*read_process)(void *context, pid_t pid, ActProcess *ret);
    /* ACT_PLACE_..., or a larger number; ACT_E_GONE for an exiting process, which is in no cgroup any more. */
    int (*get_place)(void *context, pid_t pid, uint64_t *ret);
    /* Whether this is the first process of a PID namespace, which adopts orphans. */
    bool (*is_first)(void *context, pid_t pid);
    int (*birth_mark)(void *context, ActBirthMark *ret);
    int (*may_fork)(void *context, TaskKey task, ActFork *ret);
    /* Whether the task with this ID, possibly a successor, sleeps inside fork(2), as far as that shows
     * without touching its memory. Reading the times of an exiting task may leave the reader to tear down its
     * memory; in a fork storm that waits for contended locks. */
    bool (*waits_in_fork)(void *context, TaskKey task);
} ActOps;

/* The real machine: sched_setaffinity(2) on the tasks in the root's /proc, with start times checked before
 * and after. The context is an `int *`, the descriptor of the root; for NULL act_new() supplies its own. */
extern const ActOps act_ops_affinity;
/* Reads masks as above, and changes nothing (I11). */
extern const ActOps act_ops_dry_run;

typedef struct ActStatistics {
    uint64_t n_set_mask;        /* masks changed */
    uint64_t cost_usec;         /* time spent on them */
    uint64_t n_left;            /* threads that releases left as somebody else pinned them */
    uint64_t n_unchecked;       /* task numbers since forced migrations that were too many to look at */
    uint64_t n_slices;          /* slices that left work for the next one */
    uint64_t slice_threads_max; /* most threads handled in one slice */
} ActStatistics;

/* `journal_path` NULL: no journal, only with ops that change nothing; these never open one. `root_fd` is
 * borrowed. The journal's directory must exist.
 *
 * Returns 0 or -errno; *ret_error is then NULL, or a malloc'd sentence naming the journal if that is the
 * reason. -EPERM: somebody else could have written the file, or may. ACT_E_CORRUPT: *ret_error says which
 * line is damaged ("FILE:LINE: expected ..."), the file is kept as FILE.corrupt, and *ret is valid, with
 * every entry that could be read. Call act_restore(), report, and exit. */
int act_new(const ActOps *ops, void *context, int root_fd, const char *journal_path, Act **ret,
            char **ret_error);
/* Where migration requests go. `orders` is borrowed, and needed while plans are executed. NULL, the initial
 * value: requests are skipped. */
void act_set_orders(Act *act, Orders *orders);

/* Whether the changes in the journal are to outlive this process (KeepOnStop=). The stopping daemon says so,
 * and the next that places revokes it. act_note_kept() returns 0, or -errno if that could not be written. */
bool act_kept(const Act *act);
int act_note_kept(Act *act, bool kept);

/* What a dead daemon has left in place. */
typedef struct ActLeftover {
    size_t n_threads; /* with one of its masks */
    size_t n_cgroups; /* perhaps still with a cpuset or memory nodes from it */
    bool kept;        /* left on purpose */
} ActLeftover;

/* Counts the processes and cgroups in a journal, existing or not: for a journal about another PID namespace.
 * Returns as act_leftover(). */
int act_count_journal(int root_fd, const char *journal_path, size_t *ret, char **ret_error);

/* Counts what is left, by reading a journal and the machine. Changes nothing, and neither may `ops`. Without
 * a journal all is 0. Returns 0, or -errno with *ret_error as in act_new(). */
int act_leftover(const ActOps *ops, void *context, int root_fd, const char *journal_path, ActLeftover *ret,
                 char **ret_error);

/* Closes the journal. Does not restore. */
Act *act_free(Act *act);
DEFINE_CLEANUP(Act *, act_free)

/* Carries out the plan in order and writes one outcome per action. A process-wide action makes passes over
 * the thread directory until one changes nothing, since threads are born meanwhile. A thread whose mask is
 * neither `from` nor ours is somebody else's and is left alone; the outcome is FOREIGN only if all are. Call
 * it in every tick, also with an empty plan: it cleans up after earlier moves (act/masks/passage.h). 0, or
 * -ENOMEM, with outcome RETRY for every action not tried. */
int act_execute(Act *act, const World *world, const Plan *plan, PlanOutcome *outcomes);

/* The same within one slice of time: until ACT_SLICE_TICK_USEC after the tick began (World.now), but at least for
 * ACT_SLICE_USEC, and for at most ACT_SLICE_THREADS threads. Actions not begun are RETRY. In a process of more than
 * ACT_SLICE_LARGE threads only those are handled that the World knows and the action is for, one by one. act_parts()
 * has their outcomes; the action's is PARTLY while threads remain. Nothing is remembered: the next plan asks for the
 * rest, or for something else. Later calls restore children of released processes, a step each. */
#define ACT_SLICE_TICK_USEC 50000U
#define ACT_SLICE_USEC      15000U
#define ACT_SLICE_THREADS   2048U
#define ACT_SLICE_LARGE     256U
int act_execute_slice(Act *act, const World *world, const Plan *plan, PlanOutcome *outcomes);

/* Outcomes by thread of the last act_execute_slice(), for plan_commit_parts(). Of a process that is not large, only
 * threads that got their mask although the action failed. Valid until the next one. */
const PlanPart *act_parts(const Act *act, size_t *ret_n);
/* Whether it left work. The next one should then come soon, and plan homes, too. */
bool act_unfinished(const Act *act);
/* Judges processes that have begun since the last call, by the rule in act/undo/lineage.c. A process born
 * with a mask of ours is recorded as an heir of the process that it inherited the mask from, or as a stranger
 * if its user chose that mask. Call it after each discovery. Returns 0 or -ENOMEM. */
int act_follow_births(Act *act, const TaskKey *processes, size_t n);

/* The processes to restore. */
typedef struct ActSelection {
    /* `workload`: the workload that the process, or the one it inherited its mask from, was placed for; NULL
     * if not known. */
    bool (*wants)(void *userdata, pid_t pid, const char *workload);
    void *userdata;
} ActSelection;

/* Restores the masks of everything in the journal, or of selected processes (`selection` not NULL), and of
 * children that inherited theirs. Counts threads restored in *ret_restored and threads left as somebody else
 * pinned them in *ret_left (both may be NULL). 0, or -errno if something could not be restored. -ETIMEDOUT: a
 * task stayed in a call that may yield a child with a mask of ours; the journal then keeps its entries. */
int act_restore(Act *act, const ActSelection *selection, size_t *ret_restored, size_t *ret_left);

/* Calls act_restore(), and once more if that soon returns -EAGAIN, as when tasks are born faster than it can
 * look. *ret_restored counts both tries, *ret_left the last; neither may be NULL. */
int act_restore_persistently(Act *act, const ActSelection *selection, size_t *ret_restored, size_t *ret_left);

/* Restores processes of very many threads step by step. This call takes down all fences. Each act_execute_slice() then
 * does one step for the selected processes and their children, until act_is_restoring() returns false. Call it when no
 * task of the World has a mask of ours. Returns 0, or -errno if a fence could not be taken down. */
int act_restore_slowly(Act *act, const ActSelection *selection);
/* The same without fences. */
void act_search(Act *act, const ActSelection *selection);
bool act_is_restoring(const Act *act, const ActSelection *selection);
/* The first -errno of such a restore since the last call, or 0. */
int act_restoring_error(Act *act);

/* Fences: cpuset confinement of whole cgroups, beside masks; see act/fence/fence.h. */

typedef enum ActFenceKind {
    ACT_FENCE_NONE,
    ACT_FENCE_UNIT,    /* AllowedCPUs= of a unit, by its service manager */
    ACT_FENCE_CGROUP2, /* cpuset.cpus of a cgroup that nobody else manages */
    ACT_FENCE_CGROUP1,
    ACT_FENCE_CPUSETFS, /* the cpuset file system that predates cgroups, by libcpuset */
    ACT_FENCE_MAX,
    ACT_FENCE_INVALID = -EINVAL,
} ActFenceKind;

/* What a policy asks for (Act=). */
typedef enum ActWish {
    ACT_WISH_AFFINITY, /* no fence */
    ACT_WISH_AUTO,     /* if that is safe and nobody else manages the cgroup */
    ACT_WISH_UNIT,
    ACT_WISH_CPUSET,
} ActWish;

/* Why a group has no fence, or has it down. act_why_text() says the same in sentences. */
typedef enum ActWhy {
    ACT_WHY_UP,        /* it is up */
    ACT_WHY_OBSERVE,   /* ops change nothing */
    ACT_WHY_POLICY,    /* Act=affinity */
    ACT_WHY_NO_HOME,   /* nothing to confine it to */
    ACT_WHY_PAUSED,    /* masks alone keep its home */
    ACT_WHY_HOST,      /* no cpuset controller, or no service manager that uses it */
    ACT_WHY_NO_UNIT,   /* not in a unit */
    ACT_WHY_NESTED,    /* the unit belongs to another manager: a user's, or one inside a container */
    ACT_WHY_CONTAINER, /* in a container, and the policy names no kind of fence */
    ACT_WHY_ROOT,      /* in the root cgroup */
    ACT_WHY_MANAGED,   /* the service manager owns the cgroup */
    ACT_WHY_FORGETS,   /* the kernel forgets masks, and the policy names no kind of fence */
    ACT_WHY_SHARED,    /* the cgroup has other processes, or one below it has the home's CPUs */
    ACT_WHY_HANDS,     /* a thread in it must be left alone */
    ACT_WHY_SETTLING,  /* some thread is not at home yet */
    ACT_WHY_WIDE,      /* its home is all that it may use */
    ACT_WHY_BORROWS,   /* it borrows a CPU, or its fence came down a moment ago */
    ACT_WHY_CHANGING,  /* going up or down */
    ACT_WHY_FOREIGN,   /* somebody else changed the cpuset, just now or repeatedly */
    ACT_WHY_REFUSED,   /* see `error` */
    ACT_WHY_MAX,
    ACT_WHY_INVALID = -EINVAL,
} ActWhy;

/* How the home of a group is enforced: by masks always, and by a fence of this kind if `why` is UP. */
typedef struct ActMeans {
    ActFenceKind kind;
    ActWhy why;
    int error;   /* REFUSED: errno */
    bool memory; /* a fence also confines its memory */
} ActMeans;

/* What can be fenced on this host. */
typedef struct ActHost {
    bool systemd;      /* systemd runs, and `cpuset2` */
    bool cpuset2;      /* the cpuset controller is on cgroup v2 */
    bool cpuset1;      /* or on v1, at /sys/fs/cgroup/cpuset */
    bool cpusetfs;     /* or on v1, at /dev/cpuset, where libcpuset changes it */
    bool libcpuset;    /* built in */
    bool forgets;      /* the kernel forgets masks when a cpuset changes */
    uint32_t n_up;     /* CPU fences that are up */
    uint32_t n_known;  /* all CPU fences */
    uint32_t n_memory; /* memory fences that are up */
} ActHost;

/* *ret_memory: whether to confine its memory as well. */
typedef ActWish (*ActWants)(void *userdata, const World *world, WorkloadIx workload, bool *ret_memory);

/* Operated by the owner of the Act (act/fence/fence.h). NULL if ops change nothing. */
typedef struct Fences Fences;
Fences *act_fences(const Act *act);
const char *act_fence_name(ActFenceKind kind); /* "affinity", "unit", "cgroup2", "cgroup1", "cpusetfs" */
const char *act_why_name(ActWhy why);
const char *act_why_text(ActWhy why);

/* Mean cost of one mask change so far, at least 1 once known. Before the first change, what act_measure() found by
 * setting the calling thread's mask to its present value. Ops that change nothing measure nothing: 0, not known. */
uint64_t act_cost_usec(const Act *act);
int act_measure(Act *act);

/* Why this process may not change masks of other users' tasks, as part of a sentence; NULL: it may. It needs
 * CAP_SYS_NICE, and to see them: if /proc is mounted with hidepid=, CAP_SYS_PTRACE or the group of gid=. */
const char *act_forbidden(int root_fd);

const ActStatistics *act_statistics(const Act *act);
