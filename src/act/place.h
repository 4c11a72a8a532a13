/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What relates two processes when nothing else does: cgroups, and processes that adopt orphans. */

#include <stdbool.h>
#include <stdint.h>

/* The place in /proc/PID/cgroup: ACT_PLACE_ROOT if every path is "/", ACT_PLACE_UNKNOWN if there is none,
 * else a number that only equal texts share, as far as 63 bits go. */
uint64_t place_of_cgroups(const char *text);

/* Whether /proc/PID/status is of the first process of a PID namespace below ours: it has several PIDs, the
 * innermost 1. */
bool place_is_first(const char *text);
