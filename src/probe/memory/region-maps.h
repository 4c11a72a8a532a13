/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/PID/maps and numa_maps as regions (world/regions.h).
 *
 * maps says what there is, and is cheap. numa_maps adds what has a memory policy, what is of huge pages that were
 * set aside, and how much of each region is present; the kernel walks all page tables for it, so it is read seldom.
 * Until it was, nothing is bound, everything may be present, and huge pages are known by their names only. */

#include "world/regions.h"

/* Adds one line of maps, without its newline. 0; -EINVAL: it is not of the form, or not behind the one before; -E2BIG,
 * -ENOMEM. */
int region_maps_add(MemoryRegions *regions, const char *line);

/* Takes in one line of numa_maps. 0; 1: it is of no region that is in the list, which is older or newer; -EINVAL. */
int region_maps_describe(MemoryRegions *regions, const char *line);

/* Reads `maps`, and `numa_maps` with `described`, below the directory of a process. What `before` (may be NULL)
 * remembers is taken over. *ret is empty before, and to be released. 0 or -errno: -ESRCH when the process has no
 * memory (any more). A kernel without numa_maps leaves out what that would say. */
int region_maps_read(int dir_fd, bool described, const MemoryRegions *before, MemoryRegions *ret);
