/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Control groups of version 2 for tests, below a group that keeps the controllers enabled. */

#include "support.h"

#define GROUPS_ROOT "/sys/fs/cgroup/contract"

/* Makes GROUPS_ROOT with the cpuset and cpu controllers for its children. Skips the test outside a guest, and
 * where version 2 has no cpuset. Call at the beginning of a test. */
void groups_begin(void);
/* Kills the children of the test and removes its groups. For cmocka's teardown. */
int groups_teardown(void **state);

/* Makes a group. Names may have several parts; parents must exist. */
void group_make(const char *name);
/* Puts a process with all its threads into it. Returns 0 or -errno. */
int group_join(const char *name, pid_t pid);
/* Writes one of its files. Returns 0 or -errno. */
int group_write(const char *name, const char *file, const char *text);
/* Writes bits as a list. Returns 0 or -errno. */
int group_write_list(const char *name, const char *file, uint64_t bits);
uint64_t group_list(const char *name, const char *file);
