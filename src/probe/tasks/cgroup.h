/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Control groups: the one a process is in, what systemd calls it, and which CPUs it allows. */

#include "kernel/cgroup/paths.h"
#include "probe/probe.h"

#include <hwloc/bitmap.h>

#define CGROUP_NAME_SIZE 256U /* longest unit name and its terminator */

typedef struct CgroupUnit {
    char unit[CGROUP_NAME_SIZE];  /* "": none */
    char slice[CGROUP_NAME_SIZE]; /* "": none */
} CgroupUnit;

/* The innermost systemd unit on a path that can hold processes (service, scope, socket, mount, swap), and the
 * innermost slice. "/user.slice/user-1000.slice/user@1000.service/app.slice/x.service" is x.service in
 * app.slice. Directories below a unit belong to it. A leading "_" is systemd's escape and is dropped. */
void cgroup_unit(const char *path, CgroupUnit *ret);

/* Detects what is mounted below sys/fs/cgroup. */
ProbeCgroupLayout cgroup_layout(int root_fd);

/* Cuts `path` below `directory` to the nearest group that is not threaded, and so holds whole processes, or to "/".
 * What a threaded one says holds for some threads only: libvirt has one for each virtual CPU, and one for the first
 * thread and all others of the emulator, whose group the kernel shows for the process. */
void cgroup_leave_threaded(int root_fd, const char *directory, char *path);

/* Fills `ret` with the CPUs that the cpuset controller allows `path`, from the nearest directory upwards that
 * has a list and, on version 2, is not threaded. Returns 0, -ENOMEM, or -ENOENT when there is none (then every
 * online CPU is allowed).
 *
 * With `kept` that file stays open, is read first the next time, and is searched for again when it has no
 * list any more. *kept is -1 at first, and is to be closed. A nearer file that appears later is not seen. */
int cgroup_cpuset(int root_fd, ProbeCgroupLayout layout, CpusetsV1 v1, const char *path, int *kept,
                  hwloc_bitmap_t ret);
