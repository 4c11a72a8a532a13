/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Fences: cpuset confinement, the cpuset of a whole cgroup narrowed to the home of what runs in it (Act=unit,
 * Act=cpuset).
 *
 * A fence is set in addition to masks. Every thread has its home as a mask as it would without a fence, and
 * lends and recalls change masks only. So a fence is either up or down. It is up while everything in the
 * cgroup is at home. It comes down when anything is to run elsewhere: a lend, another home, a release. Taking
 * it down only restores the cpuset from before. So a recall never waits for a cpuset, a lent CPU is inside
 * the cpuset because the fence is down, and masks keep all other threads off the lent CPU. A fence adds two
 * things: nothing in the cgroup gets out, whatever it does to its masks, and a service manager shows the
 * confinement.
 *
 * It also comes down for a process that came in from outside and whose mask shows the home: inside a fence
 * all masks do, so its own mask can only be read without the fence.
 *
 * Rejected: widening the cpuset by each lent CPU. A lend and a recall would wait for a service manager, and
 * after a crash every cpuset between home and machine would have to be known as ours.
 *
 * Plans know no fences: the probe shows the cpuset of a process as it would be without ours
 * (ProbeCallbacks.bound).
 *
 *     DOWN --raise--> RISING --as asked--> UP --lower--> FALLING --as it was--> DOWN
 *
 * Where cpusets are files, the states in between take no time. A service manager is asked without waiting,
 * and the files show what became of the request. Every change is in the journal first (I3).
 *
 * A memory fence (cpuset.mems) stands beside a CPU fence if the policy has fixed its nodes (Mode=fixed) and
 * names the kind of fence. Writing cpuset.mems blocks until all pages that lie elsewhere are moved, and a
 * process whose memory does not fit is OOM-killed sooner or later. So a memory fence is raised only when all
 * memory is at home already; by then memory has followed in small steps (act/mover/mover.h). It stays up
 * while threads are lent a CPU, and comes down with the home.
 *
 * Before Linux 6.2 a change of the cpuset makes threads forget their masks. There a fence is only made if the
 * policy names it, and threads in it are not touched between a change and the next discovery. */

#include "act/act.h"
#include "act/journal/journal.h"

/* How cpusets are changed. A name is that of a unit, or a path in the hierarchy of the cpuset controller. */
typedef struct FenceOps {
    /* Asks for these CPUs or nodes; the empty set removes the limit. 0: asked for, or done; or -errno. */
    int (*set)(void *context, const char *name, hwloc_const_bitmap_t set);
    /* The result of the last set(): 0, -EINPROGRESS, or -errno; -ENOENT: there is no such unit or cgroup. */
    int (*result)(void *context, const char *name);
    /* Waits until nothing is in progress, for at most `usec`. NULL: nothing ever is. */
    void (*wait)(void *context, uint64_t usec);
    /* Drops the result, which nobody will ask for. May be NULL. */
    void (*forget)(void *context, const char *name);
} FenceOps;

/* `journal` and `root_fd` are borrowed. NULL: out of memory. */
Fences *fences_new(Journal *journal, int root_fd);
Fences *fences_free(Fences *fences);
DEFINE_CLEANUP(Fences *, fences_free)

/* For tests: another way to change the CPUs or the memory nodes of cpusets of a kind. */
void fences_set_ops(Fences *fences, ActFenceKind kind, bool memory, const FenceOps *ops, void *context);

/* All functions below except fences_restore() accept NULL: ops that change nothing have no fences. */

/* Updates the state of each fence. Call it before processes are read, or the masks read may be older than the
 * fences. */
void fences_sense(Fences *fences);

/* Raises and lowers fences to fit the World. Returns 0 or -ENOMEM. */
int fences_follow(Fences *fences, const World *world, ActWants wants, void *userdata);

/* Whether threads of the process may be given `mask` now (NULL: their original masks). If not because a fence
 * is in the way, that fence is already coming down. */
bool fences_admit(Fences *fences, pid_t pid, hwloc_const_bitmap_t mask);

/* Whether there is a fence around the process, so that it may cut masks. */
bool fences_hold(const Fences *fences, pid_t pid);

/* The CPUs that the cgroup at `path`, in the hierarchy of the cpuset controller, has without our fence. On
 * entry `ret` holds the CPUs read for it now. Returns true if `ret` was replaced. Returns false if there is
 * no fence, or if somebody else has changed it since fences_sense(); then `ret` is right as it is. */
bool fences_bound(const Fences *fences, const char *path, hwloc_bitmap_t ret);

/* Restores everything in the journal, and waits some seconds for that. 0, or -EAGAIN if something is left. */
int fences_restore(Fences *fences);

/* How the home of a group is enforced, and what this host can do. */
ActMeans fences_means(const Fences *fences, uint64_t group_id);
void fences_host(const Fences *fences, ActHost *ret);
