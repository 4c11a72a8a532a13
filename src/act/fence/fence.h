/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Fences: cpuset confinement, the cpuset of a whole cgroup narrowed to the home of what runs in it (Act=unit,
 * Act=cpuset).
 *
 * A fence does not replace masks. Every thread has its home as a mask as well, and lends and recalls change only
 * masks. So a fence is either up or down. It is up while everything in the cgroup is at home. It comes down, which
 * only restores the cpuset, when anything is to run elsewhere: a lend, another home, a release. So a recall never
 * waits for a cpuset, a lent CPU is inside the cpuset because no fence is up, and masks keep all other threads off it.
 * What a fence adds: nothing in the cgroup gets out, whatever it does to its masks, and a service manager shows it.
 *
 * It also comes down for a process that came in from outside and shows the home as its mask: inside, all masks do.
 *
 * Rejected: widening the cpuset by each lent CPU. Lends and recalls would wait for a service manager, and after a
 * crash every cpuset between home and machine would have to be known as ours.
 *
 * Plans know no fences: the probe shows the cpuset of a process as it would be without ours (ProbeCallbacks.bound).
 *
 *     DOWN --raise--> RISING --as asked--> UP --lower--> FALLING --as it was--> DOWN
 *
 * Where cpusets are files, the states in between take no time. A service manager is asked without waiting, and the
 * files show the result. Every change is in the journal first (I3).
 *
 * A memory fence (cpuset.mems) stands beside a CPU fence if the policy fixes its nodes (Mode=fixed) and names the kind
 * of fence. Writing cpuset.mems blocks until all pages elsewhere are moved, and a process whose memory does not fit is
 * OOM-killed sooner or later. So a memory fence is raised only when all memory is at home, where it followed in small
 * steps (act/mover/mover.h). It stays up during lends, and comes down with the home.
 *
 * Before Linux 6.2 a change of the cpuset makes threads forget their masks. There a fence needs a policy that names
 * it, and its threads are not touched between a change and the next discovery. */

#include "act/act.h"
#include "act/journal/journal.h"

/* How cpusets are changed. Names are of units, or paths in the hierarchy of the cpuset controller. */
typedef struct FenceOps {
    /* Asks for these CPUs or nodes; empty: no own limit any more. 0: asked for, or done; -errno. */
    int (*set)(void *context, const char *name, hwloc_const_bitmap_t set);
    /* The result of the last set(): 0, -EINPROGRESS, or -errno; -ENOENT: no such unit or cgroup. */
    int (*result)(void *context, const char *name);
    /* Waits until nothing is in progress, for at most `usec`. NULL: nothing ever is. */
    void (*wait)(void *context, uint64_t usec);
    /* Drops its result. May be NULL. */
    void (*forget)(void *context, const char *name);
} FenceOps;

/* `journal` and `root_fd` are borrowed. NULL: out of memory. */
Fences *fences_new(Journal *journal, int root_fd);
Fences *fences_free(Fences *fences);
DEFINE_CLEANUP(Fences *, fences_free)

/* For tests: another way to change CPUs or memory of a kind. */
void fences_set_ops(Fences *fences, ActFenceKind kind, bool memory, const FenceOps *ops, void *context);

/* All of these but fences_restore() accept NULL: ops that change nothing have no fences. */

/* Updates the state of each fence. To be called before processes are read, or the masks seen may be older
 * than the fences. */
void fences_sense(Fences *fences);

/* Raises and lowers fences to fit the World. 0 or -ENOMEM. */
int fences_follow(Fences *fences, const World *world, ActWants wants, void *userdata);

/* Whether threads of the process may be given `mask` now (NULL: their originals). If a fence is in the way,
 * it is coming down. */
bool fences_admit(Fences *fences, pid_t pid, hwloc_const_bitmap_t mask);

/* Whether a fence is around the process, which may cut the masks of its threads. */
bool fences_hold(const Fences *fences, pid_t pid);

/* What the cgroup at `path`, in the hierarchy of the cpuset controller, may use without our fence. `ret`
 * holds what was read for it now. True: `ret` is replaced. False: it is right, since there is no fence, or
 * somebody else changed it since fences_sense(). */
bool fences_bound(const Fences *fences, const char *path, hwloc_bitmap_t ret);

/* Restores everything in the journal, waiting some seconds. 0, or -EAGAIN if something is left. */
int fences_restore(Fences *fences);

/* How the home of a group is enforced, and what this host offers. */
ActMeans fences_means(const Fences *fences, uint64_t group_id);
void fences_host(const Fences *fences, ActHost *ret);
