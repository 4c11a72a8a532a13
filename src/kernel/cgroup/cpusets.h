/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where the cpuset controller of version 1 is mounted, and what cpusets of old kernels do to masks. */

#include <stdbool.h>

typedef enum CpusetsV1 {
    CPUSETS_V1_NONE,   /* nowhere: the controller is on version 2, or there is none */
    CPUSETS_V1_CGROUP, /* at sys/fs/cgroup/cpuset, with files named cpuset.cpus */
    CPUSETS_V1_DEV,    /* at dev/cpuset, with files named cpus: the cpuset file system from before cgroups */
} CpusetsV1;

CpusetsV1 cpusets_v1(int root_fd);

/* Whether a thread gets all of its cpuset whenever that is touched: also when the controller is switched on, or when
 * the process moves to a cgroup with the same CPUs. Since 6.2 the kernel remembers the mask that was asked for and cuts
 * it to the cpuset (commit 8f9ea86fdf99). */
bool cpusets_forget_masks(int root_fd);

/* Whether a line of /proc/PID/mountinfo, without its newline, mounts the cpuset file system at /dev/cpuset: 1
 * if so; 0 if it mounts something else there; -ENOENT if it is about another place or malformed. */
int cpusets_parse_mount(const char *line);
