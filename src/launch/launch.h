/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a process can give itself before it becomes the command that is to have it. */

#include <hwloc/bitmap.h>

/* Has new memory of this process, and of what it starts, interleaved over nodes (operating-system numbers): P17.
 * They are named by their place among the nodes its cpuset allows, so that the kernel follows when that changes.
 * Nodes that are not allowed are left out; with fewer than two left nothing is done. Returns 1 when it is
 * interleaved, 0 when not, or -errno. */
int launch_stripe(hwloc_const_bitmap_t nodes);

/* Confines this thread, and what it starts, to CPUs, as far as it is allowed them now. Returns 0, -ERANGE when it is
 * allowed none of them, or -errno. */
int launch_bind(hwloc_const_bitmap_t cpus);
