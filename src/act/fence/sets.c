/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Comparing the sets of cgroups. */

#include "act/fence/internal.h"

bool fence_alike(const Fences *fences, bool memory, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b)
{
    if (hwloc_bitmap_iszero(a) != hwloc_bitmap_iszero(b))
        return false;
    return hwloc_bitmap_isequal(a, b) ||
           (hwloc_bitmap_xor(fences->difference, a, b) == 0 &&
            !hwloc_bitmap_intersects(fences->difference, fences->online[memory]));
}

hwloc_const_bitmap_t fence_way_down(const Fences *fences, bool memory, hwloc_const_bitmap_t before)
{
    return hwloc_bitmap_iszero(before) ? fences->possible[memory] : before;
}

bool fence_is_back(const Fences *fences, bool memory, hwloc_const_bitmap_t before, hwloc_const_bitmap_t now)
{
    hwloc_const_bitmap_t possible = fences->possible[memory];

    if (!hwloc_bitmap_iszero(before))
        return fence_alike(fences, memory, before, now);
    return hwloc_bitmap_iszero(now) ||
           (!hwloc_bitmap_iszero(possible) && hwloc_bitmap_isincluded(possible, now));
}

bool fence_is_ours(const Fences *fences, const JournalFence *entry, hwloc_const_bitmap_t set)
{
    for (uint32_t i = 0; i < entry->n_given; i++)
        if (fence_alike(fences, entry->memory, set, entry->given[i]))
            return true;
    return false;
}
