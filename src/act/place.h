/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What two processes have in common when nothing else ties them: cgroups, and who adopts orphans. */

#include <stdbool.h>
#include <stdint.h>

/* The place that /proc/PID/cgroup tells of: ACT_PLACE_ROOT when every path in it is "/", ACT_PLACE_UNKNOWN when
 * there is none, else a number that is the same exactly for the same text, as far as 63 bits go. */
uint64_t place_of_cgroups(const char *text);

/* Whether /proc/PID/status is of the first process of a PID namespace below ours: it has more than one number, and its
 * innermost is 1. */
bool place_is_first(const char *text);
