/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What happens next: at most one instant per item, the earliest first, of equals the lowest item. Setting, moving and
 * dropping one costs O(log n). */

#include "base/util.h"

#include <stdint.h>

#define HEAP_NEVER UINT64_MAX

typedef struct HeapEntry {
    uint64_t when;
    uint32_t item;
} HeapEntry;

typedef struct Heap {
    HeapEntry *entries; /* binary heap */
    uint32_t *where;    /* [n_items]: place in `entries`, UINT32_MAX: not there */
    uint32_t n, n_items;
} Heap;

/* For items 0 to n_items - 1, none of which is due. Returns 0 or -ENOMEM. */
int heap_init(Heap *heap, uint32_t n_items);
void heap_done(Heap *heap);

/* Sets when an item is due; HEAP_NEVER: not at all. */
void heap_set(Heap *heap, uint32_t item, uint64_t when);

/* Takes the first item out and returns its instant; HEAP_NEVER when there is none. */
uint64_t heap_pop(Heap *heap, uint32_t *ret_item);
