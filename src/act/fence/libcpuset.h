/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Changes the cpusets at /dev/cpuset (ACT_FENCE_CPUSETFS) through libcpuset. Built without the library, all
 * calls fail with -ENOSYS. */

#include <hwloc/bitmap.h>
#include <stdbool.h>

bool libcpuset_is_built(void);

/* Call this before the other functions and before there are threads: the library works out the sizes of its
 * masks here. 0, or -errno if the library cannot be used with this root directory. -EXDEV: the root has
 * another /dev/cpuset than the real one, which is the only one that the library knows. */
int libcpuset_begin(int root_fd);

/* Changes only the CPUs, or the nodes, of a cpuset. -ENOSPC for an empty set, which the kernel refuses for a
 * cpuset of version 1 in which something runs. */
int libcpuset_set(const char *path, hwloc_const_bitmap_t set, bool memory);
