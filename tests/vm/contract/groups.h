/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Control groups of version 2 to try things in, below one of our own that keeps the controllers enabled. */

#include "support.h"

#define GROUPS_ROOT "/sys/fs/cgroup/contract"

/* Makes GROUPS_ROOT with the cpuset and cpu controllers for its children. Skips the test outside a guest, and
 * where there is no version 2 with cpuset. For the beginning of a test. */
void groups_begin(void);
/* Kills the children of the test and removes its groups. For cmocka's teardown. */
int groups_teardown(void **state);

/* Makes a group; names may have several parts, parents come first. */
void group_make(const char *name);
/* Puts a process into it (all its threads). 0 or -errno. */
int group_join(const char *name, pid_t pid);
/* Writes one of its files. 0 or -errno. */
int group_write(const char *name, const char *file, const char *text);
/* Writes a list of bits. */
int group_write_list(const char *name, const char *file, uint64_t bits);
uint64_t group_list(const char *name, const char *file);
