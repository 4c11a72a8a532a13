/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What relates two processes when nothing else does: their cgroups, and who adopts orphans. */

#include <stdbool.h>
#include <stdint.h>

/* The place that the text of /proc/PID/cgroup describes: ACT_PLACE_ROOT if every path in it is "/",
 * ACT_PLACE_UNKNOWN if there is none, else a number that is equal for equal texts, and for others only by a
 * collision of 63 bits. */
uint64_t place_of_cgroups(const char *text);

/* Whether the text of /proc/PID/status is that of the first process of a PID namespace below ours: it has
 * several PIDs, and the innermost is 1. */
bool place_is_first(const char *text);
