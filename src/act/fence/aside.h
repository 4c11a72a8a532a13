/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writing lists of memory nodes to cpusets in a thread set aside for it: on version 2 the kernel moves what lies
 * elsewhere, and whoever writes sleeps until that is done, which takes seconds for gigabytes. */

#include "act/fence/fence.h"

typedef struct FenceAside FenceAside;

/* `write` is as FenceOps.set(), and called in the thread, with `context`; both must outlive this. The thread begins
 * with the first list; where it cannot, the caller writes. NULL: out of memory. */
FenceAside *fence_aside_new(int (*write)(void *context, const char *name, hwloc_const_bitmap_t set),
                            void *context);

/* Waits for the write under way; those not begun are dropped. Returns NULL. */
FenceAside *fence_aside_free(FenceAside *aside);

/* The context is a FenceAside. What is set last of one name is what is written last; result() is of that. */
extern const FenceOps fence_ops_aside;
