/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who chose the CPUs of a process, as far as can be seen afterwards. */

#include <sys/types.h>

/* Finds where the CPU mask of a thread was set. Masks are inherited, so it was set by the oldest ancestor with the
 * same mask (or the process itself), or by what started that. *ret_comm is its name, malloc'd. Returns its PID, 0 when
 * the main thread has another mask, so that the process has set this one itself, or -errno. */
pid_t pins_origin(pid_t pid, pid_t tid, char **ret_comm);

/* The highest control group at or above that of the whole process (which is `cgroup`, unless that is threaded) with the
 * same CPUs, malloc'd: its limit applies to all below. That is "/" in a container whose own limit it is. NULL when out
 * of memory. */
char *pins_cpuset_origin(int root_fd, const char *cgroup);
