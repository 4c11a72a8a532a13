/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of fences share: fence.c moves them, fence/follow.c and fence/memory.c decide where they are to be,
 * and fence/restore.c ends them all. */

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
    char *moved; /* where somebody has renamed the cgroup to; what is ours there is to be put back */
    bool memory; /* around nodes and not CPUs: sets are of these */
    FenceState state;
    uint64_t inode;        /* which cgroup of that path; 0: not known, or a unit */
    hwloc_bitmap_t before; /* what the cgroup had; empty: nothing of its own */
    bool dropin;           /* a unit that had that from a drop-in */
    hwloc_bitmap_t outer;  /* what it could use with that */
    hwloc_bitmap_t target; /* what it has when the fence is up */
    uint64_t asked_usec;   /* when the last change was asked for */
    uint64_t rest_usec;    /* not raised before */
    unsigned n_foreign;    /* somebody else's changes */
    int error;             /* -errno of the last change that was refused */
    bool letter;           /* FALLING: it is back in effect, and was asked to be so to the letter */
    bool stale;            /* masks of its threads may have changed since they were last read */
    bool noted;            /* not of a unit: it is in the journal since it was last raised */

    /* As the World was last. */
    uint64_t group_id;
    pid_t *members; /* ascending */
    size_t n_members, members_capacity;
    ActWhy why;           /* not UP: it must be down */
    hwloc_bitmap_t nodes; /* of the home, for a fence of memory beside it; empty: there is to be none */
    bool gathered;        /* all memory of its processes is there */
} Fence;

/* Why a group has none; of the first of its processes that has not. */
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
    FenceMeans means[2][ACT_FENCE_MAX]; /* by Fence.memory first; so is what follows */
    struct FenceUnits *units[2];
    FenceList lists[2][ACT_FENCE_MAX];
    struct FenceAside *aside[ACT_FENCE_MAX]; /* lists of memory nodes; NULL: of units */
    Fence **fences;                          /* by address: they stay where they are */
    size_t n_fences, fences_capacity;
    FenceGroup *groups; /* ascending id */
    size_t n_groups, groups_capacity;
    hwloc_bitmap_t possible[2];         /* all that the kernel could ever have; empty: not known */
    hwloc_bitmap_t online[2];           /* all, of nodes */
    hwloc_bitmap_t scratch, difference; /* the second one of fence_alike() */
};

/* Fences come down for so long after a lend, another home, or somebody else's change: a unit's file is not to be
 * written twice a second. */
#define FENCE_REST_USEC (10U * USEC_PER_SEC)

/* Changes of FOREIGN_MAX times are somebody's who is not to be fought with. */
#define FENCE_FOREIGN_MAX 3U

/* Whether two sets are the same but for CPUs that are offline: from a cpuset of version 1 the kernel takes these,
 * and never gives them back. */
bool fence_alike(const Fences *fences, bool memory, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b);
Fence *fence_find(const Fences *fences, const char *name, bool memory);
static inline bool fence_has_member(const Fence *fence, pid_t pid)
{
    size_t at = LOWER_BOUND(i, fence->n_members, fence->members[i] < pid);

    return at < fence->n_members && fence->members[at] == pid;
}
/* Where its cgroup is. */
static inline const char *fence_path(const Fence *fence)
{
    return fence->moved ? fence->moved : fence->path;
}
static inline bool fence_is_raised(const Fence *fence)
{
    return fence->state == FENCE_UP || fence->state == FENCE_RISING;
}
/* What it is called by those who change it. */
static inline const char *fence_name(const Fence *fence)
{
    return fence->kind == ACT_FENCE_UNIT ? fence->name : fence_path(fence);
}
/* Makes one that is down. 0, -ENOMEM, or another -errno when the cgroup cannot be read. */
int fence_add(Fences *fences, ActFenceKind kind, const char *name, const char *path, bool memory,
              Fence **ret);

/* What a cgroup has now of its own; 0, -ENOENT when it is gone, or -errno. */
int fence_read_now(const Fences *fences, ActFenceKind kind, const char *path, bool memory,
                   hwloc_bitmap_t ret);
/* What became of the last change. As FenceOps.result(). */
int fence_result(const Fences *fences, ActFenceKind kind, const char *name, bool memory);
/* Whether this is what the cgroup has from us. */
bool fence_is_ours(const Fences *fences, const JournalFence *entry, hwloc_const_bitmap_t set);
/* Whether it is what it was before us, at least in effect; and what is asked for first to get there. */
bool fence_is_back(const Fences *fences, bool memory, hwloc_const_bitmap_t before, hwloc_const_bitmap_t now);
hwloc_const_bitmap_t fence_way_down(const Fences *fences, bool memory, hwloc_const_bitmap_t before);
/* Whether some cgroup below one that is down has these very CPUs or nodes already: its own would not be told from
 * ours. */
bool fence_is_taken_below(Fences *fences, const Fence *fence);
/* Gives those below one that is put back, and that still have what it had from us, what their parents have; it is at
 * `path` now. Returns how many may have it still: because that takes a while, is refused, or cannot be seen. */
size_t fence_release_below(Fences *fences, const JournalFence *entry, const char *path);
/* Finds the cgroup of a fence again, which is not where it was if somebody has renamed it. 0: it is where it was; 1: it
 * is elsewhere, see fence_path(); -ENOMEM; or as fence_where(). */
int fence_look_again(const Fences *fences, Fence *fence);
/* Whether its cgroup was fenced by another name, and is not put back yet: what it has is ours, and not what it was. */
bool fence_is_renamed(const Fences *fences, const Fence *fence);
/* Removes what the service manager keeps of us, of a fence that is put back. */
void fence_tidy(Fences *fences, const JournalFence *entry);
/* Reads which CPUs are online. */
void fence_read_online(Fences *fences);
/* Reads what the cpuset is, or was before us: it may be another one than when the fence was last up. 0; -EBUSY:
 * fence_is_renamed(); or -errno. */
int fence_read_before(Fences *fences, Fence *fence);
/* Drops one that is down; notes that. */
void fence_remove(Fences *fences, Fence *fence);
void fence_raise(Fences *fences, Fence *fence);
void fence_lower(Fences *fences, Fence *fence);

/* NULL: the World had none of that id. */
FenceGroup *fence_group(Fences *fences, uint64_t id);

/* Of fence/memory.c. Notes where the memory of a process is to be kept, and whether it is there, of the next member
 * of a fence; `wanted`: whether the policy has it so. 0 or -ENOMEM. */
int fence_memory_join(Fence *fence, const World *world, const Process *process, bool wanted);
/* Raises and lowers fences of memory, when those of CPUs have been. Returns 0 or -ENOMEM. */
int fence_memory_follow(Fences *fences);
