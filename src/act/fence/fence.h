/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Fences: the cpuset of a whole cgroup narrowed to the home of what runs in it (Act=unit, Act=cpuset).
 *
 * A fence goes around masks, it does not replace them: every thread has its home as a mask, as without a fence, and
 * lends and recalls are made with masks alone. So a fence is only up or down. It is up while everything in the cgroup
 * is at home, and it comes down, which is nothing but putting back what the cpuset was before, when anything is to run
 * elsewhere: a lend, another home, a release. A recall therefore never waits for a cpuset, a lent CPU is inside the
 * cpuset because there is none of ours then, and what one thread is lent is kept from all others by their masks. What a
 * fence adds is that nothing in the cgroup gets out, whatever it does to its masks, and that a service manager shows
 * it.
 *
 * It comes down, too, for a process that came in from outside and has the home for its mask: inside, all masks show it.
 *
 * Rejected: widening the cpuset by each lent CPU. A lend and a recall would wait for a service manager, and after a
 * crash every cpuset between home and machine would have to be known as ours.
 *
 * Plans know no fences: the probe shows the cpuset of a process as it would be without ours (ProbeCallbacks.bound).
 *
 *     DOWN --raise--> RISING --as asked--> UP --lower--> FALLING --as it was--> DOWN
 *
 * Where cpusets are files, the states in between last no time. A service manager is asked without waiting, and what
 * became of it is seen in the files. Every change is in the journal first (I3).
 *
 * A fence of memory (cpuset.mems) stands beside one of CPUs where the policy has fixed its nodes (Mode=fixed) and names
 * the means. Whoever writes it has all pages that lie elsewhere moved while he waits, and what does not fit in is
 * killed for it one day. So it is raised only when all memory is at home already, which by then has followed in small
 * steps (act/mover/mover.h); it stays up while threads are lent a CPU, and comes down with the home.
 *
 * Before Linux 6.2 a change of the cpuset makes threads forget their masks. So there a fence is only made where the
 * policy names it, and what is in it is not touched between its change and the next discovery. */

#include "act/act.h"
#include "act/journal/journal.h"

/* How cpusets are changed. Names are of units, or paths in the hierarchy of the cpuset controller. */
typedef struct FenceOps {
    /* Asks for these CPUs or nodes; none: no limit of its own any more. 0: asked for, or done; -errno. */
    int (*set)(void *context, const char *name, hwloc_const_bitmap_t set);
    /* What became of the last set(): 0, -EINPROGRESS, or -errno; -ENOENT: there is no such unit or cgroup. */
    int (*result)(void *context, const char *name);
    /* Waits until nothing is in progress, at most that long. NULL: nothing ever is. */
    void (*wait)(void *context, uint64_t usec);
    /* Its result is not asked for any more. May be NULL. */
    void (*forget)(void *context, const char *name);
} FenceOps;

/* `journal` and `root_fd` are borrowed. NULL: out of memory. */
Fences *fences_new(Journal *journal, int root_fd);
Fences *fences_free(Fences *fences);
DEFINE_CLEANUP(Fences *, fences_free)

/* For tests: another way of changing cpusets of a kind, their CPUs or their memory. */
void fences_set_ops(Fences *fences, ActFenceKind kind, bool memory, const FenceOps *ops, void *context);

/* All of these but fences_restore() take NULL: ops that change nothing have no fences. */

/* Where each fence stands. Before the processes are looked at, or the masks seen may be older than the fences. */
void fences_sense(Fences *fences);

/* Raises and lowers by what the World is now. Returns 0 or -ENOMEM. */
int fences_follow(Fences *fences, const World *world, ActWants wants, void *userdata);

/* Whether threads of the process may be given `mask` now (NULL: what they had before us). If not, what stands in the
 * way is on its way down. */
bool fences_admit(Fences *fences, pid_t pid, hwloc_const_bitmap_t mask);

/* Whether a fence is around the process, so that its masks may be cut by it. */
bool fences_hold(const Fences *fences, pid_t pid);

/* The CPUs that the cgroup at `path`, in the hierarchy of the cpuset controller, has without our fence: puts them into
 * `ret`, which has what it is read to leave, and returns true; or false when there is none, or somebody else has
 * changed it since fences_sense(): then what it leaves is what it says. */
bool fences_bound(const Fences *fences, const char *path, hwloc_bitmap_t ret);

/* Puts everything in the journal back, and waits for it some seconds. 0, or -EAGAIN when something is left. */
int fences_restore(Fences *fences);

/* How the home of a group is kept, and what this host has for it. */
ActMeans fences_means(const Fences *fences, uint64_t group_id);
void fences_host(const Fences *fences, ActHost *ret);
