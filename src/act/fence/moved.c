/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cgroups of version 1 can be renamed, and those below move with them. The inode number stays, so a cgroup
 * that is not at its path is searched for in the whole hierarchy, at a few system calls for each cgroup. One
 * search finds a renamed cgroup. A removed one takes at least two: a listing may miss a directory that is
 * renamed meanwhile, and is then one short of the link count. */

#include "act/fence/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* So many searches in a row must find nothing, out of so many at most; choices of ours. */
#define SEARCHES_EMPTY 2U
#define SEARCHES_MAX   64U

/* Whether a directory has no more than `n_names` subdirectories. Its link count is then n_names + 2, or 1 if
 * the file system does not count them. */
static bool is_complete(DIR *dir, uint64_t n_names)
{
    struct stat st;

    return fstat(dirfd(dir), &st) == 0 && (st.st_nlink == n_names + 2 || st.st_nlink == 1);
}

/* Searches below `path` (PATH_MAX bytes), which becomes the path found. Returns whether the cgroup was found;
 * -EAGAIN if it may have been renamed meanwhile; or -errno if that is not known. */
static int search(int root_fd, ActFenceKind kind, uint64_t inode, char *path, unsigned depth)
{
    CLEANUP(closedir_p) DIR *dir = fence_open_directory(root_fd, kind, path);
    size_t len = strlen(path);
    const char *name;
    uint64_t n = 0;
    int r = dir ? false : errno == ENOENT ? -EAGAIN : -errno;

    while (r == 0 && dir && depth < FENCE_DEPTH_MAX && (name = fence_next_directory(dir))) {
        n++;
        if ((size_t)snprintf(path + len, PATH_MAX - len, "/%s", name) < PATH_MAX - len) {
            uint64_t found = fence_inode(root_fd, kind, path);

            r = found == 0 ? -EAGAIN : found == inode ? true : search(root_fd, kind, inode, path, depth + 1);
        }
    }
    if (r == 0 && depth < FENCE_DEPTH_MAX && !is_complete(dir, n))
        r = -EAGAIN;
    if (r <= 0)
        path[len] = '\0';
    return r;
}

int fence_where(int root_fd, ActFenceKind kind, const char *path, uint64_t inode, char *ret)
{
    unsigned n_empty = 0;
    int r = -EAGAIN;

    (void)snprintf(ret, PATH_MAX, "%s", path);
    if (kind == ACT_FENCE_UNIT || (inode != 0 && fence_inode(root_fd, kind, path) == inode))
        return 0;
    if (!fence_is_mounted(root_fd, kind))
        return -ENXIO;
    if (inode == 0)
        return 0;
    if (kind == ACT_FENCE_CGROUP2)
        return -ENOENT;
    for (unsigned i = 0; (r == 0 || r == -EAGAIN) && n_empty < SEARCHES_EMPTY && i < SEARCHES_MAX; i++) {
        *ret = '\0';
        r = search(root_fd, kind, inode, ret, 0);
        n_empty = r == 0 ? n_empty + 1 : 0;
    }
    return n_empty == SEARCHES_EMPTY ? -ENOENT : r == 0 ? -EAGAIN : MIN(r, 0);
}

int fence_look_again(const Fences *fences, Fence *fence)
{
    char now[PATH_MAX];
    int r = fence_where(fences->root_fd, fence->kind, fence_path(fence), fence->inode, now);
    char *moved;

    if (r < 0 || strcmp(now, fence_path(fence)) == 0)
        return r;
    moved = strdup(now);
    if (!moved)
        return -ENOMEM;
    free(fence->moved);
    fence->moved = moved;
    return 1;
}

bool fence_is_renamed(const Fences *fences, const Fence *fence)
{
    for (size_t i = 0; i < fences->journal->n_fences; i++) {
        const JournalFence *entry = &fences->journal->fences[i];

        if (entry->kind == fence->kind && entry->memory == fence->memory && entry->inode == fence->inode &&
            fence->inode != 0 && strcmp(entry->name, fence->name) != 0)
            return true;
    }
    return false;
}
