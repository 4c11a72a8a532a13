/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The queue of events: at most one instant per item, the earliest first, ties to the lowest item. Setting,
 * moving and dropping one costs O(log n). */

#include "base/util.h"

#include <stdint.h>

#define HEAP_NEVER UINT64_MAX

typedef struct HeapEntry {
    uint64_t when;
    uint32_t item;
} HeapEntry;

typedef struct Heap {
    HeapEntry *entries; /* binary heap */
    uint32_t *where;    /* [n_items]: index in `entries`; UINT32_MAX: not in it */
    uint32_t n, n_items;
} Heap;

/* Makes a heap for items 0 to n_items - 1, none of them due. Returns 0 or -ENOMEM. */
int heap_init(Heap *heap, uint32_t n_items);
void heap_done(Heap *heap);

/* Sets when an item is due; HEAP_NEVER: never. */
void heap_set(Heap *heap, uint32_t item, uint64_t when);

/* Removes the first item and returns its instant; HEAP_NEVER if there is none. */
uint64_t heap_pop(Heap *heap, uint32_t *ret_item);
