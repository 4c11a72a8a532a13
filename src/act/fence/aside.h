/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes memory nodes of cpusets in a thread set aside for it: on version 2 the kernel migrates pages during
 * the write, and the writer sleeps, for seconds with gigabytes. */

#include "act/fence/fence.h"

typedef struct FenceAside FenceAside;

/* `write` is as FenceOps.set(), and called in the thread with `context`; both must outlive this. The thread
 * starts with the first list; if it cannot, the caller writes. NULL: out of memory. */
FenceAside *fence_aside_new(int (*write)(void *context, const char *name, hwloc_const_bitmap_t set),
                            void *context);

/* Waits for the write in progress; drops those not begun. Returns NULL. */
FenceAside *fence_aside_free(FenceAside *aside);

/* The context is a FenceAside. The last set() of a name is written last, and result() is that of this write. */
extern const FenceOps fence_ops_aside;
