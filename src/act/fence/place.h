/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where fences can be: what the host offers, and which cgroup a process is in. Reads only. */

#include "act/act.h"
#include "act/journal/journal.h"

#include <dirent.h>
#include <limits.h>

/* Deeper than any tree of systemd or of container managers. */
#define FENCE_DEPTH_MAX 16U

typedef struct FencePlace {
    ActFenceKind kind;
    char name[PATH_MAX]; /* the unit, or the same as `path` */
    char path[PATH_MAX]; /* in the hierarchy of the cpuset controller */
} FencePlace;

void fence_host_read(int root_fd, ActHost *ret);

/* The cgroup that can be fenced for this process: 0, or an ActWhy. */
ActWhy fence_place(int root_fd, const ActHost *host, const Process *process, ActWish wish, FencePlace *ret);

/* Reads a list file of a cgroup ("cpuset.cpus"); empty or missing: the empty set. 0, -ENOENT if there is no
 * such cgroup, or -errno. */
int fence_read(int root_fd, ActFenceKind kind, const char *path, const char *file, hwloc_bitmap_t ret);

/* The CPUs that its cpuset leaves a process or thread. 0, -ENOENT if that is not known, or -errno. */
int fence_cpuset(int root_fd, pid_t pid, hwloc_bitmap_t ret);

/* The CPUs or memory nodes that a cgroup may use; empty if the controller is not enabled there. As fence_read(). */
int fence_read_effective(int root_fd, ActFenceKind kind, const char *path, bool memory, hwloc_bitmap_t ret);

/* The CPUs that the levels above leave a cgroup; all if unknown. 0 or -ENOMEM. */
int fence_read_above(int root_fd, ActFenceKind kind, const char *path, hwloc_bitmap_t ret);

/* What fence_write() changes: CPUs, or nodes, of cgroups of a kind. */
typedef struct FenceList {
    int root_fd;
    ActFenceKind kind; /* not UNIT */
    bool memory;
} FenceList;

/* Writes one list: FenceOps.set() with a FenceList as its context. */
int fence_write(void *context, const char *path, hwloc_const_bitmap_t set);

/* Whether every process in a cgroup and those below is wanted; -errno if that is not known. */
int fence_all(int root_fd, ActFenceKind kind, const char *path, bool (*wants)(void *userdata, pid_t pid),
              void *userdata);

/* Opens a cgroup's directory for readdir(3); NULL with errno. */
DIR *fence_open_directory(int root_fd, ActFenceKind kind, const char *path);
/* The name of the next cgroup in it, which may begin with a dot; NULL: no more. Valid until the next call. */
const char *fence_next_directory(DIR *dir);

/* Whether the hierarchy of that kind (not UNIT) can be seen. */
bool fence_is_mounted(int root_fd, ActFenceKind kind);

/* The inode number of the directory at this path, which no later one has. 0: there is none, or it is a unit,
 * which stays the same to its manager. */
uint64_t fence_inode(int root_fd, ActFenceKind kind, const char *path);
/* Whether the cgroup of the entry is gone and another one has its path. */
bool fence_is_another(int root_fd, const JournalFence *entry);
/* Where the cgroup of that number is now: at its path, or where somebody has renamed it to (PATH_MAX bytes). Units,
 * and cgroups of unknown number (0), are at their path. 0; -ENOENT: removed; -ENXIO: the hierarchy is not visible, as
 * in a mount namespace without it; -EAGAIN: others are renamed or removed too often to tell; or another -errno. */
int fence_where(int root_fd, ActFenceKind kind, const char *path, uint64_t inode, char *ret);
