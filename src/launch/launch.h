/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a process can set for itself before it executes the command that inherits it. */

#include <hwloc/bitmap.h>

/* Interleaves new memory of this process and its descendants over nodes (operating-system numbers): P17, interleaving.
 * The nodes are set by their rank in the cpuset, so the kernel follows when that changes. Nodes that are not allowed
 * are left out; with fewer than two left, nothing is done. Returns 1 if memory is interleaved, 0 if not, or -errno. */
int launch_stripe(hwloc_const_bitmap_t nodes);

/* Confines this thread and its descendants to those of `cpus` that it may use now. Returns 0, -ERANGE if it
 * may use none of them, or -errno. */
int launch_bind(hwloc_const_bitmap_t cpus);
