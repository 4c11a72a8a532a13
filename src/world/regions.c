/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Both lists are in order, so inheriting is one walk over both:
 *
 *     before   |---- A ----|      |---- B ----|---- C ----|
 *     now      |-- A --|-- A --|  |------- B and C -------|  |-- new --|
 *
 * Both halves of A inherit what A knew, also where they grew. The joined region counts as scanned when the
 * less recently scanned of B and C was, and unites both filters. */

#include "world/regions.h"

#include "base/util.h"

const char *const region_kind_names[] = {
    [REGION_KIND_ANON] = "anon",       [REGION_KIND_SHMEM] = "shmem",   [REGION_KIND_FILE] = "file",
    [REGION_KIND_HUGETLB] = "hugetlb", [REGION_KIND_DEVICE] = "device", [REGION_KIND_MAX] = NULL,
};

void regions_done(MemoryRegions *regions)
{
    free(regions->list);
    *regions = (MemoryRegions){0};
}

int regions_add(MemoryRegions *regions, const MemoryRegion *region)
{
    uint64_t last = regions->n > 0 ? regions->list[regions->n - 1].end : 0;

    if (region->start < last || region->start >= region->end)
        return -EINVAL;
    if (regions->n >= REGIONS_MAX)
        return -E2BIG;
    return APPEND(regions->list, regions->capacity, regions->n, *region);
}

static bool is_same(const MemoryRegion *a, const MemoryRegion *b)
{
    return a->start < b->end && b->start < a->end && a->device == b->device && a->inode == b->inode;
}

static void take_over(MemoryRegion *now, const MemoryRegion *before)
{
    RegionScan *scan = &now->scan;
    const RegionScan *old = &before->scan;

    if (now->resident_bytes == REGION_RESIDENT_UNKNOWN && now->start == before->start &&
        now->end == before->end) {
        now->resident_bytes = before->resident_bytes;
        now->bound = before->bound;
        now->kind = before->kind;
    }
    if (!old->known)
        return;
    if (!scan->known) {
        *scan = *old;
        return;
    }
    scan->first_sequence = MIN(scan->first_sequence, old->first_sequence);
    scan->done_sequence = MIN(scan->done_sequence, old->done_sequence);
    scan->next_usec = MIN(scan->next_usec, old->next_usec);
    scan->forget_usec = MIN(scan->forget_usec, old->forget_usec);
    scan->active[0] |= old->active[0];
    scan->active[1] |= old->active[1];
}

void regions_inherit(MemoryRegions *now, const MemoryRegions *before)
{
    size_t first = 0;

    for (size_t i = 0; i < now->n; i++) {
        MemoryRegion *region = &now->list[i];

        while (first < before->n && before->list[first].end <= region->start)
            first++;
        for (size_t k = first; k < before->n && before->list[k].start < region->end; k++)
            if (is_same(region, &before->list[k]))
                take_over(region, &before->list[k]);
    }
}

size_t regions_from(const MemoryRegions *regions, uint64_t address)
{
    return LOWER_BOUND(i, regions->n, regions->list[i].end <= address);
}

MemoryRegion *regions_find(const MemoryRegions *regions, uint64_t address)
{
    size_t i = regions_from(regions, address);

    return i < regions->n && regions->list[i].start <= address ? &regions->list[i] : NULL;
}
