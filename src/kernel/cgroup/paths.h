/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The control groups of a process. */

#include <stdbool.h>
#include <stddef.h>

/* Below the root: where version 2 is mounted, or the hierarchies of version 1 are. */
#define CGROUP_ROOT "sys/fs/cgroup"

/* Room for /proc/PID/cgroup: a path of at most PATH_MAX for each of a few hierarchies. */
#define CGROUP_TEXT_SIZE 16384U

typedef struct CgroupPaths {
    const char *main;   /* shown and matched: unified, else systemd's, else that of the cpu controller; "/" */
    const char *cpuset; /* in the hierarchy with the cpuset controller */
} CgroupPaths;

/* Parses /proc/PID/cgroup; the paths point into the text, whose lines are terminated in place. Every path begins with
 * "/" and has no trailing " (deleted)". Returns 0, or -EINVAL if a line is malformed or there are none. */
int cgroup_parse(char *text, CgroupPaths *ret);

/* Whether the comma-separated `list` of length `len` contains `name`. */
bool cgroup_list_has(const char *list, size_t len, const char *name);

/* Whether a component of a path, of length `len`, ends like the name of a systemd unit that holds processes: a service,
 * scope, socket, mount or swap. */
bool cgroup_is_unit(const char *name, size_t len);
