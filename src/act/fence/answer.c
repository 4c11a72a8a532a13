/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What fences answer to the code that sets masks and reads cpusets. */

#include "act/fence/internal.h"

#include <string.h>

static Fence *fence_of(const Fences *fences, pid_t pid)
{
    for (size_t i = 0; fences && i < fences->n_fences; i++) {
        Fence *fence = fences->fences[i];

        if (fence_has_member(fence, pid))
            return fence;
    }
    return NULL;
}

bool fences_admit(Fences *fences, pid_t pid, hwloc_const_bitmap_t mask)
{
    Fence *fence = fence_of(fences, pid);
    bool inside;

    if (!fence)
        return true;
    inside = mask && hwloc_bitmap_isincluded(mask, fence->target);
    if (!inside)
        fence_lower(fences, fence);
    if (fences->host.forgets && fence->stale)
        return false;
    return inside || fence->state == FENCE_DOWN;
}

bool fences_hold(const Fences *fences, pid_t pid)
{
    const Fence *fence = fence_of(fences, pid);

    return fence && fence->state != FENCE_DOWN;
}

/* Whether somebody else has changed the cpuset since it was last read. `says`: what it, or one below it, was
 * read to allow. */
static bool is_anothers(const Fences *fences, const Fence *fence, hwloc_const_bitmap_t says)
{
    if (fence_alike(fences, fence->memory, says, fence->target) ||
        fence_alike(fences, fence->memory, says, fence->outer))
        return false;
    return fence_read_now(fences, fence->kind, fence_path(fence), fence->memory, fences->scratch) == 0 &&
           !fence_alike(fences, fence->memory, fences->scratch, fence->target) &&
           !fence_is_back(fences, false, fence->before, fences->scratch);
}

bool fences_bound(const Fences *fences, const char *path, hwloc_bitmap_t ret)
{
    for (size_t i = 0; fences && i < fences->n_fences; i++) {
        const Fence *fence = fences->fences[i];
        const char *place = fence_path(fence);
        size_t len = strlen(place);

        if (!fence->memory && fence->state != FENCE_DOWN && strncmp(path, place, len) == 0 &&
            (path[len] == '\0' || path[len] == '/') && !hwloc_bitmap_iszero(fence->outer))
            return !is_anothers(fences, fence, ret) && hwloc_bitmap_copy(ret, fence->outer) == 0;
    }
    return false;
}

void fences_host(const Fences *fences, ActHost *ret)
{
    *ret = fences ? fences->host : (ActHost){0};
    for (size_t i = 0; fences && i < fences->n_fences; i++) {
        const Fence *fence = fences->fences[i];

        ret->n_known += !fence->memory;
        ret->n_up += !fence->memory && fence->state == FENCE_UP;
        ret->n_memory += fence->memory && fence->state == FENCE_UP;
    }
}
