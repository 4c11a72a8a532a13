/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where fences can be: what the host has, and which cgroup a process is in. Reads only. */

#include "act/act.h"
#include "act/journal/journal.h"

#include <dirent.h>
#include <limits.h>

/* Deeper trees than systemd's and container managers', and of no use. */
#define FENCE_DEPTH_MAX 16U

typedef struct FencePlace {
    ActFenceKind kind;
    char name[PATH_MAX]; /* the unit, or the path once more */
    char path[PATH_MAX]; /* in the hierarchy of the cpuset controller */
} FencePlace;

void fence_host_read(int root_fd, ActHost *ret);

/* The cgroup that can be fenced for this process, or why there is none: 0 or an ActWhy. */
ActWhy fence_place(int root_fd, const ActHost *host, const Process *process, ActWish wish, FencePlace *ret);

/* One list file of a cgroup ("cpuset.cpus"); an empty or missing one is the empty set. 0, -ENOENT when there is no such
 * cgroup, or -errno. */
int fence_read(int root_fd, ActFenceKind kind, const char *path, const char *file, hwloc_bitmap_t ret);

/* The CPUs that the cpuset of a process or thread leaves to it. 0, -ENOENT when nothing says so, or -errno. */
int fence_cpuset(int root_fd, pid_t pid, hwloc_bitmap_t ret);

/* What a cgroup may use, of CPUs or of nodes of memory; empty when the controller is not switched on there. As
 * fence_read(). */
int fence_read_effective(int root_fd, ActFenceKind kind, const char *path, bool memory, hwloc_bitmap_t ret);

/* The CPUs that the levels above leave to a cgroup; everything when they do not say. 0 or -ENOMEM. */
int fence_read_above(int root_fd, ActFenceKind kind, const char *path, hwloc_bitmap_t ret);

/* The lists of CPUs, or of nodes, of all cgroups of a kind. */
typedef struct FenceList {
    int root_fd;
    ActFenceKind kind; /* not a unit */
    bool memory;
} FenceList;

/* Writes one of them: FenceOps.set() whose context is a FenceList. */
int fence_write(void *context, const char *path, hwloc_const_bitmap_t set);

/* Whether every process in a cgroup, or in one below it, is wanted. -errno when that cannot be said. */
int fence_all(int root_fd, ActFenceKind kind, const char *path, bool (*wants)(void *userdata, pid_t pid),
              void *userdata);

/* Opens a cgroup's directory for readdir(3), or returns NULL with errno. */
DIR *fence_open_directory(int root_fd, ActFenceKind kind, const char *path);
/* The name of the next cgroup in it, which may begin with a dot; NULL: there are no more. Valid until the next call. */
const char *fence_next_directory(DIR *dir);

/* Whether the hierarchy of that kind, which is none of units, can be seen. */
bool fence_is_mounted(int root_fd, ActFenceKind kind);

/* Which cgroup of this path there is: the number of its directory, which no later one of the path has. 0: there is
 * none, or it is a unit's, which stays the same to its manager. */
uint64_t fence_inode(int root_fd, ActFenceKind kind, const char *path);
/* Whether the cgroup that the entry speaks of is not there, and another one of its name is. */
bool fence_is_another(int root_fd, const JournalFence *entry);
/* Where the cgroup of that number is now: at its path, or where somebody has renamed it to (PATH_MAX bytes). A unit,
 * and one whose number is not known (0), are at their path. 0; -ENOENT: it has been removed; -ENXIO: the hierarchy
 * cannot be seen from here, as in a mount namespace without it; -EAGAIN: others are renamed or removed so often that
 * this cannot be said; or another -errno. */
int fence_where(int root_fd, ActFenceKind kind, const char *path, uint64_t inode, char *ret);
