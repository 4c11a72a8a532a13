/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Interned strings and CPU masks: equal values are the same pointer, so ten thousand threads share one mask.
 *
 * Unused entries are dropped by mark and sweep: intern_pool_begin(), then intern_mark_*() for every pointer
 * still held, then intern_pool_sweep(). Values interned after begin() count as marked. Reference counts were
 * the alternative; they would cost eight bytes and a branch at each of the many places that copy a Task. */

#include "base/util.h"

#include <hwloc/bitmap.h>
#include <stddef.h>

typedef struct InternPool InternPool;

/* An interned mask: immutable, compare by pointer within one pool. */
typedef hwloc_const_bitmap_t CpuMask;

InternPool *intern_pool_new(void);
InternPool *intern_pool_free(InternPool *pool);

/* Returns the pool's own copy, or NULL when out of memory. `s` may be NULL, which returns NULL. */
const char *intern_string(InternPool *pool, const char *s);

/* Returns the pool's own copy, or NULL when out of memory. */
CpuMask intern_mask(InternPool *pool, hwloc_const_bitmap_t set);

/* Whether this very pointer is the pool's copy, for checks. False for NULL. */
bool intern_has_string(const InternPool *pool, const char *s);
bool intern_has_mask(const InternPool *pool, CpuMask mask);

/* Mark and sweep, see above. Marking NULL is allowed. Pointers must come from this pool. */
void intern_pool_begin(InternPool *pool);
void intern_mark_string(InternPool *pool, const char *s);
void intern_mark_mask(InternPool *pool, CpuMask mask);
void intern_pool_sweep(InternPool *pool);

/* Number of strings and masks held. */
size_t intern_pool_size(const InternPool *pool);

DEFINE_CLEANUP(InternPool *, intern_pool_free)
