/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cgroups of version 1 can be renamed, and those below with them. The number of the directory stays, so one that is not
 * at its path any more is looked for in the whole hierarchy. That takes a system call or two for each cgroup there is,
 * and is done once for each that is renamed or removed while it is fenced. */

#include "act/fence/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How often it is looked for while others come and go. */
#define SEARCH_TRIES 4U

/* `path` has PATH_MAX bytes, and is where it was found. Whether it was; -EAGAIN when it may be one that was renamed
 * meanwhile; or -errno where that cannot be said. */
static int search(int root_fd, ActFenceKind kind, uint64_t inode, char *path, unsigned depth)
{
    CLEANUP(closedir_p) DIR *dir = fence_open_directory(root_fd, kind, path);
    size_t len = strlen(path);
    const char *name;
    int r = dir ? false : errno == ENOENT ? -EAGAIN : -errno;

    while (r == 0 && dir && depth < FENCE_DEPTH_MAX && (name = fence_next_directory(dir)))
        if ((size_t)snprintf(path + len, PATH_MAX - len, "/%s", name) < PATH_MAX - len) {
            uint64_t found = fence_inode(root_fd, kind, path);

            r = found == 0 ? -EAGAIN : found == inode ? true : search(root_fd, kind, inode, path, depth + 1);
        }
    if (r <= 0)
        path[len] = '\0';
    return r;
}

int fence_where(int root_fd, ActFenceKind kind, const char *path, uint64_t inode, char *ret)
{
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
    for (unsigned i = 0; r == -EAGAIN && i < SEARCH_TRIES; i++) {
        *ret = '\0';
        r = search(root_fd, kind, inode, ret, 0);
    }
    return r == 0 ? -ENOENT : MIN(r, 0);
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
