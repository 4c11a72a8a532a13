/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Control groups: where a process is, what systemd calls that, and which CPUs it leaves to it. */

#include "kernel/cgroup/paths.h"
#include "probe/probe.h"

#include <hwloc/bitmap.h>

#define CGROUP_NAME_SIZE 256U /* longest unit name and its terminator */

typedef struct CgroupUnit {
    char unit[CGROUP_NAME_SIZE];  /* "": none */
    char slice[CGROUP_NAME_SIZE]; /* "": none */
} CgroupUnit;

/* The innermost systemd unit that can hold processes (service, scope, socket, mount, swap) and the innermost slice on a
 * path. "/user.slice/user-1000.slice/user@1000.service/app.slice/x.service" is x.service in app.slice. Directories
 * below a unit belong to it. A leading "_" is systemd's escape and is dropped. */
void cgroup_unit(const char *path, CgroupUnit *ret);

/* Finds out what is mounted below sys/fs/cgroup. */
ProbeCgroupLayout cgroup_layout(int root_fd);

/* Fills `ret` with the CPUs the cpuset controller leaves to `path`, from the nearest directory upwards that says so.
 * Returns 0, -ENOMEM, or -ENOENT when no directory says anything (then every online CPU is allowed).
 *
 * With `kept` the file that says so stays open, is asked first the next time, and is looked for again when it says
 * nothing any more; *kept is -1 to begin with, and is to be closed. One that appears nearer later is not seen. */
int cgroup_cpuset(int root_fd, ProbeCgroupLayout layout, CpusetsV1 v1, const char *path, int *kept,
                  hwloc_bitmap_t ret);
