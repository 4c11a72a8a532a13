/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Changes the cpusets at /dev/cpuset (ACT_FENCE_CPUSETFS) through libcpuset. Without the library all of it
 * fails with -ENOSYS. */

#include <hwloc/bitmap.h>
#include <stdbool.h>

bool libcpuset_is_built(void);

/* To be called first, and before there are threads: the library works out the sizes of its masks. 0, or
 * -errno if it cannot serve this root directory. -EXDEV: that has another /dev/cpuset than the real one, the
 * only one the library knows. */
int libcpuset_begin(int root_fd);

/* Changes only the CPUs, or the nodes, of a cpuset. -ENOSPC for an empty set, which the kernel refuses on
 * version 1 while something runs there. */
int libcpuset_set(const char *path, hwloc_const_bitmap_t set, bool memory);
