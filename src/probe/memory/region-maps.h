/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/PID/maps and numa_maps as regions (world/regions.h).
 *
 * maps lists the mappings, and is cheap. numa_maps adds memory policies, reserved huge pages, and how much of
 * each region is resident. It is read seldom, because the kernel walks all page tables for it. Until then
 * nothing is bound, everything may be resident, and huge pages are known only by name. */

#include "world/regions.h"

/* Adds one line of maps, without its newline. 0; -EINVAL: it is malformed, or not behind the line before;
 * -E2BIG, -ENOMEM. */
int region_maps_add(MemoryRegions *regions, const char *line);

/* Takes in one line of numa_maps. 0; 1: no region of the list begins there, because the list is older or
 * newer; -EINVAL. */
int region_maps_describe(MemoryRegions *regions, const char *line);

/* Reads `maps`, and with `described` also `numa_maps`, below the directory of a process. Takes over what
 * `before` (may be NULL) remembers. *ret is empty before, and to be released. 0 or -errno: -ESRCH when the
 * process has no memory (any more). A kernel without numa_maps is no error. */
int region_maps_read(int dir_fd, bool described, const MemoryRegions *before, MemoryRegions *ret);
