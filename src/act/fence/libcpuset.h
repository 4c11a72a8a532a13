/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Changing the cpusets at /dev/cpuset (ACT_FENCE_CPUSETFS) through libcpuset. Built without the library, all of it
 * fails with -ENOSYS. */

#include <hwloc/bitmap.h>
#include <stdbool.h>

bool libcpuset_is_built(void);

/* To be called before the rest, and before there are threads: the library works out the sizes of its masks then. 0, or
 * -errno when it cannot be used on this root directory: -EXDEV when that has another /dev/cpuset than the real one, the
 * only one that the library knows. */
int libcpuset_begin(int root_fd);

/* Of the attributes of a cpuset only its CPUs, or its nodes, are changed. -ENOSPC for none at all, which the kernel
 * gives no cpuset of version 1 in which something runs. */
int libcpuset_set(const char *path, hwloc_const_bitmap_t set, bool memory);
