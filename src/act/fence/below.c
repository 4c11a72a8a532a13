/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cgroups below a fenced one. On version 1 each has a list of its own. One made with cgroup.clone_children
 * starts with its parent's list, as does one whose list a container manager copies. While a fence is up, that
 * list is ours. So when a fence is down, each cgroup below that still has a list of ours gets its parent's. A
 * list that a user chose looks the same: a fence is not raised while a cgroup below has these very CPUs, and
 * a cgroup that is given them later is widened with it. On version 2 a new cgroup has no list. */

#include "act/fence/internal.h"
#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What is done with each cgroup below, and the set it has. visit() returns whether to go on. */
typedef struct Below {
    Fences *fences;
    ActFenceKind kind;
    bool memory;
    bool (*visit)(struct Below *below, const char *path, hwloc_const_bitmap_t set);
    const JournalFence *entry;   /* for release() */
    size_t n_left;               /* cgroups not known to be released */
    hwloc_const_bitmap_t target; /* for look() */
    bool found;
} Below;

static bool walk(Below *below, const char *path, unsigned depth)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();
    CLEANUP(closedir_p) DIR *dir = fence_open_directory(below->fences->root_fd, below->kind, path);
    const char *name;

    below->n_left += !set || (!dir && errno != ENOENT);
    while (set && dir && depth < FENCE_DEPTH_MAX && (name = fence_next_directory(dir))) {
        char child[PATH_MAX];
        int r;

        if ((size_t)snprintf(child, sizeof(child), "%s/%s", path, name) >= sizeof(child))
            continue;
        r = fence_read_now(below->fences, below->kind, child, below->memory, set);
        if (r == 0 && !below->visit(below, child, set))
            return false;
        below->n_left += r < 0 && r != -ENOENT;
        if (!walk(below, child, depth + 1))
            return false;
    }
    return true;
}

static bool has_lists(ActFenceKind kind)
{
    return kind == ACT_FENCE_CGROUP1 || kind == ACT_FENCE_CPUSETFS;
}

static bool look(Below *below, const char *path, hwloc_const_bitmap_t set)
{
    (void)path;
    below->found = fence_alike(below->fences, below->memory, set, below->target);
    return !below->found;
}

bool fence_is_taken_below(Fences *fences, const Fence *fence)
{
    Below below = {.fences = fences,
                   .kind = fence->kind,
                   .memory = fence->memory,
                   .visit = look,
                   .target = fence->target};

    if (has_lists(fence->kind))
        (void)walk(&below, fence->path, 0);
    return below.found;
}

/* Its parent was visited before. */
static bool release(Below *below, const char *path, hwloc_const_bitmap_t set)
{
    const FenceMeans *means = &below->fences->means[below->memory][below->kind];
    CLEANUP_BITMAP hwloc_bitmap_t now = hwloc_bitmap_alloc();
    char parent[PATH_MAX];
    int r;

    if (!now || !fence_is_ours(below->fences, below->entry, set))
        return true;
    (void)snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
    if (fence_read_now(below->fences, below->kind, parent, below->memory, now) == 0 &&
        !fence_is_ours(below->fences, below->entry, now)) {
        (void)means->ops->set(means->context, path, now);
        if (means->ops->forget)
            means->ops->forget(means->context, path);
    }
    /* Those below it wait for it. */
    r = fence_read_now(below->fences, below->kind, path, below->memory, now);
    below->n_left += r == 0 ? fence_is_ours(below->fences, below->entry, now) : r != -ENOENT;
    return true;
}

size_t fence_release_below(Fences *fences, const JournalFence *entry, const char *path)
{
    Below below = {
        .fences = fences, .kind = entry->kind, .memory = entry->memory, .visit = release, .entry = entry};

    if (has_lists(entry->kind))
        (void)walk(&below, path, 0);
    return below.n_left;
}
