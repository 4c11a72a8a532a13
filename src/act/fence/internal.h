/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of fences share. fence.c moves fences, fence/follow.c and fence/memory.c decide where they
 * are to be, fence/restore.c ends them all. */

#include "act/fence/fence.h"
#include "act/fence/place.h"

typedef enum FenceState {
    FENCE_DOWN,
    FENCE_RISING,
    FENCE_UP,
    FENCE_FALLING,
} FenceState;

typedef struct Fence {
    ActFenceKind kind;
    char *name, *path;
    char *moved; /* where somebody has moved the cgroup; it is restored there */
    bool memory; /* sets are of memory nodes, not of CPUs */
    FenceState state;
    uint64_t inode;        /* of the cgroup; 0: not known, or a unit */
    hwloc_bitmap_t before; /* the cgroup's own set before us; empty: none */
    bool dropin;           /* `before` is from a drop-in of the unit */
    hwloc_bitmap_t outer;  /* what it could use with `before` */
    hwloc_bitmap_t target; /* what it has while up */
    hwloc_bitmap_t away;   /* CPUs of it that were offline at the last look */
    uint64_t asked_usec;   /* when the last change was asked for */
    uint64_t rest_usec;    /* not raised before this time */
    unsigned n_foreign;    /* changes by somebody else */
    int error;             /* -errno of the last change refused */
    bool letter;           /* FALLING: restored in effect, the literal `before` asked for */
    bool stale;            /* masks of its threads may have changed since last read */
    bool noted;            /* in the journal since it was last raised; not for units */

    /* From the last World. */
    uint64_t group_id;
    pid_t *members; /* ascending */
    size_t n_members, members_capacity;
    ActWhy why;           /* not UP: it must be down */
    hwloc_bitmap_t nodes; /* of the home, for a memory fence; empty: none wanted */
    bool gathered;        /* all memory of its processes is there */
} Fence;

/* How the home of a group is enforced. If its processes differ, the state of a fence prevails, and otherwise
 * the last process. */
typedef struct FenceGroup {
    uint64_t id;
    ActMeans means;
} FenceGroup;

typedef struct FenceMeans {
    const FenceOps *ops;
    void *context;
} FenceMeans;

struct Fences {
    Journal *journal;
    int root_fd;
    ActHost host;
    FenceMeans means[2][ACT_FENCE_MAX]; /* [memory][kind], like the next members */
    struct FenceUnits *units[2];
    FenceList lists[2][ACT_FENCE_MAX];
    struct FenceAside *aside[ACT_FENCE_MAX]; /* writers of memory nodes; NULL for units */
    Fence **fences;                          /* pointers: a fence stays where it is */
    size_t n_fences, fences_capacity;
    FenceGroup *groups; /* ascending ID */
    size_t n_groups, groups_capacity;
    hwloc_bitmap_t possible[2];         /* all that the kernel could have; empty: not known */
    hwloc_bitmap_t online[2];           /* of nodes: all */
    hwloc_bitmap_t scratch, difference; /* `difference` is for fence_alike() */
};

/* How long a fence stays down after a lend, another home, or somebody else's change: a unit's file is not to
 * be written twice a second. */
#define FENCE_REST_USEC (10U * USEC_PER_SEC)

/* After so many changes by somebody else a fence stays down. */
#define FENCE_FOREIGN_MAX 3U

/* Whether two sets differ at most in offline CPUs, which the kernel takes from cpusets of version 1 and never
 * gives back. */
bool fence_alike(const Fences *fences, bool memory, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b);
Fence *fence_find(const Fences *fences, const char *name, bool memory);
static inline bool fence_has_member(const Fence *fence, pid_t pid)
{
    size_t at = LOWER_BOUND(i, fence->n_members, fence->members[i] < pid);

    return at < fence->n_members && fence->members[at] == pid;
}
/* Where the cgroup is now. */
static inline const char *fence_path(const Fence *fence)
{
    return fence->moved ? fence->moved : fence->path;
}
static inline bool fence_is_raised(const Fence *fence)
{
    return fence->state == FENCE_UP || fence->state == FENCE_RISING;
}
/* The name that FenceOps take. */
static inline const char *fence_name(const Fence *fence)
{
    return fence->kind == ACT_FENCE_UNIT ? fence->name : fence_path(fence);
}
/* Makes a fence that is down. 0, -ENOMEM, or another -errno if the cgroup cannot be read. */
int fence_add(Fences *fences, ActFenceKind kind, const char *name, const char *path, bool memory,
              Fence **ret);

/* The cgroup's own set now. 0, -ENOENT if it is gone, or -errno. */
int fence_read_now(const Fences *fences, ActFenceKind kind, const char *path, bool memory,
                   hwloc_bitmap_t ret);
/* The result of the last change, as FenceOps.result(). */
int fence_result(const Fences *fences, ActFenceKind kind, const char *name, bool memory);
/* Whether the service manager went away, or was slow, before it answered: it may have done what it was asked for, or
 * may be about to. */
static inline bool fence_is_lost(int result)
{
    return result == -ETIMEDOUT || result == -ECONNRESET || result == -ENOTCONN || result == -EPIPE;
}
/* Whether `set` is one that the cgroup got from us. */
bool fence_is_ours(const Fences *fences, const JournalFence *entry, hwloc_const_bitmap_t set);
/* Whether `now` is what it was before us, at least in effect; and what to ask for first to get there. */
bool fence_is_back(const Fences *fences, bool memory, hwloc_const_bitmap_t before, hwloc_const_bitmap_t now);
hwloc_const_bitmap_t fence_way_down(const Fences *fences, bool memory, hwloc_const_bitmap_t before);
/* Whether a cgroup below a fence that is down has these CPUs or nodes already, which could not be told from ours. */
bool fence_is_taken_below(Fences *fences, const Fence *fence);
/* Gives each cgroup below a restored one, now at `path`, its parent's set if it still has one of ours.
 * Returns how many may still have it: that takes a while, is refused, or cannot be seen. */
size_t fence_release_below(Fences *fences, const JournalFence *entry, const char *path);
/* Finds the cgroup of a fence, which somebody may have renamed. 0: where it was; 1: elsewhere, see
 * fence_path(); -ENOMEM; or as fence_where(). */
int fence_look_again(const Fences *fences, Fence *fence);
/* Whether the cgroup was fenced under another name and is not restored yet, so that its set is ours. */
bool fence_is_renamed(const Fences *fences, const Fence *fence);
/* Removes the drop-in of a restored fence. */
void fence_tidy(Fences *fences, const JournalFence *entry);
void fence_read_online(Fences *fences);
/* Sets fence->before to what the cgroup has now or, if that is ours, to what it had before us. That may
 * differ from the last time. 0; -EBUSY: fence_is_renamed(); or -errno. */
int fence_read_before(Fences *fences, Fence *fence);
/* Drops a fence that is down, also from the journal. */
void fence_remove(Fences *fences, Fence *fence);
void fence_raise(Fences *fences, Fence *fence);
void fence_lower(Fences *fences, Fence *fence);

/* NULL: the World had no group of that ID. */
FenceGroup *fence_group(Fences *fences, uint64_t id);

/* Of fence/memory.c. Notes the nodes for the memory of the next member of a CPU fence, and whether the memory
 * is there. `wanted`: the policy asks for it. 0 or -ENOMEM. */
int fence_memory_join(Fence *fence, const World *world, const Process *process, bool wanted);
/* Raises and lowers memory fences, after CPU fences. 0 or -ENOMEM. */
int fence_memory_follow(Fences *fences);
