/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A binary heap that records the index of each item. A calendar queue would be O(1), but no bucket width
 * suits bursts of microseconds and of minutes alike; with some thousand items a heap is ten levels deep. */

#include "sim/model/heap.h"

#define NOWHERE UINT32_MAX

int heap_init(Heap *heap, uint32_t n_items)
{
    *heap = (Heap){
        .entries = calloc(MAX(n_items, 1U), sizeof(*heap->entries)),
        .where = malloc(MAX(n_items, 1U) * sizeof(*heap->where)),
        .n_items = n_items,
    };
    if (!heap->entries || !heap->where) {
        heap_done(heap);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n_items; i++)
        heap->where[i] = NOWHERE;
    return 0;
}

void heap_done(Heap *heap)
{
    free(heap->entries);
    free(heap->where);
    *heap = (Heap){0};
}

static bool is_before(HeapEntry a, HeapEntry b)
{
    return a.when != b.when ? a.when < b.when : a.item < b.item;
}

static void put(Heap *heap, uint32_t at, HeapEntry entry)
{
    heap->entries[at] = entry;
    heap->where[entry.item] = at;
}

/* Puts an entry in its place; `at` is the initial hole. */
static void sift(Heap *heap, uint32_t at, HeapEntry entry)
{
    while (at > 0 && is_before(entry, heap->entries[(at - 1) / 2])) {
        put(heap, at, heap->entries[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < heap->n && is_before(heap->entries[child + 1], heap->entries[child]))
            child++;
        if (child >= heap->n || !is_before(heap->entries[child], entry))
            break;
        put(heap, at, heap->entries[child]);
        at = child;
    }
    put(heap, at, entry);
}

static void drop(Heap *heap, uint32_t at)
{
    HeapEntry last = heap->entries[--heap->n];

    heap->where[heap->entries[at].item] = NOWHERE;
    if (at < heap->n)
        sift(heap, at, last);
}

void heap_set(Heap *heap, uint32_t item, uint64_t when)
{
    uint32_t at = heap->where[item];

    assert(item < heap->n_items);
    if (when == HEAP_NEVER) {
        if (at != NOWHERE)
            drop(heap, at);
        return;
    }
    if (at == NOWHERE)
        at = heap->n++;
    sift(heap, at, (HeapEntry){.when = when, .item = item});
}

uint64_t heap_pop(Heap *heap, uint32_t *ret_item)
{
    HeapEntry first;

    if (heap->n == 0)
        return HEAP_NEVER;
    first = heap->entries[0];
    drop(heap, 0);
    *ret_item = first.item;
    return first.when;
}
