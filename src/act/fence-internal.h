/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of fences share: fence.c moves them, fence-follow.c decides where they are to be. */

#include "act/fence-place.h"
#include "act/fence.h"

typedef enum FenceState {
    FENCE_DOWN,
    FENCE_RISING,
    FENCE_UP,
    FENCE_FALLING,
} FenceState;

typedef struct Fence {
    ActFenceKind kind;
    char *name, *path;
    FenceState state;
    hwloc_bitmap_t before; /* what the cgroup had; empty: nothing of its own */
    hwloc_bitmap_t outer;  /* what it could use with that */
    hwloc_bitmap_t target; /* what it has when the fence is up */
    uint64_t asked_usec;   /* when the last change was asked for */
    uint64_t rest_usec;    /* not raised before */
    unsigned n_foreign;    /* somebody else's changes */
    int error;             /* -errno of the last change that was refused */
    bool letter;           /* FALLING: it is back in effect, and was asked to be so to the letter */
    bool stale;            /* masks of its threads may have changed since they were last read */

    /* As the World was last. */
    uint64_t group_id;
    pid_t *members; /* ascending */
    size_t n_members, members_capacity;
    ActWhy why; /* not UP: it must be down */
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
    FenceMeans means[ACT_FENCE_MAX];
    struct FenceUnits *units;
    Fence **fences; /* by address: they stay where they are */
    size_t n_fences, fences_capacity;
    FenceGroup *groups; /* ascending id */
    size_t n_groups, groups_capacity;
    hwloc_bitmap_t possible; /* every CPU the kernel could ever have; empty: not known */
    hwloc_bitmap_t online;
    hwloc_bitmap_t scratch, difference; /* the second one of fence_alike() */
};

/* Fences come down for so long after a lend, another home, or somebody else's change: a unit's file is not to be written
 * twice a second. */
#define FENCE_REST_USEC (10U * USEC_PER_SEC)

/* Whether two sets are the same but for CPUs that are offline: from a cpuset of version 1 the kernel takes these, and never
 * gives them back. */
bool fence_alike(const Fences *fences, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b);
Fence *fence_find(const Fences *fences, const char *name);
/* Makes one that is down. 0, -ENOMEM, or another -errno when the cgroup cannot be read. */
int fence_add(Fences *fences, const FencePlace *place, Fence **ret);
/* Reads what the cpuset is, or was before us: it may be another one than when the fence was last up. 0 or -errno. */
int fence_read_before(Fences *fences, Fence *fence);
/* Drops one that is down; notes that. */
void fence_remove(Fences *fences, Fence *fence);
void fence_raise(Fences *fences, Fence *fence);
void fence_lower(Fences *fences, Fence *fence);
