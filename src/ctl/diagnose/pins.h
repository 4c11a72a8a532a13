/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who chose the CPUs of a process, as far as can be seen afterwards. */

#include <sys/types.h>

/* The oldest ancestor of a thread's process, or that itself, that has the same CPU mask as the thread: masks are
 * inherited, so it was set there, or by whoever started that. *ret_comm is its name, malloc'd. Returns its pid; 0 when
 * only the thread has this mask, so that the process has set it itself; or -errno. */
pid_t pins_origin(pid_t pid, pid_t tid, char **ret_comm);

/* The highest control group above `cgroup` (or itself) with the same CPUs, malloc'd: its limit is what all below have.
 * NULL when memory is out. */
char *pins_cpuset_origin(const char *cgroup);
