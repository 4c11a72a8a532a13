/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes lists of memory nodes to cpusets in a thread of its own. On version 2 the kernel then migrates pages
 * that lie elsewhere, and the writer sleeps until that is done, which takes seconds for gigabytes. */

#include "act/fence/fence.h"

typedef struct FenceAside FenceAside;

/* `write` has the contract of FenceOps.set(). The thread calls it with `context`; both must outlive this
 * object. The thread starts with the first list; if it cannot start, the caller of set() writes. NULL: out of
 * memory. */
FenceAside *fence_aside_new(int (*write)(void *context, const char *name, hwloc_const_bitmap_t set),
                            void *context);

/* Waits for the write in progress and drops those not begun. Returns NULL. */
FenceAside *fence_aside_free(FenceAside *aside);

/* The context is a FenceAside. The last set asked for under a name is the last one written, and result() is
 * that of this write. */
extern const FenceOps fence_ops_aside;
