/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides which blocks a walk takes, alone or with others that share its part.
 *
 * All take from one place, each the next few blocks when it is done with its last ones. Dealing blocks out
 * beforehand, by address, was rejected: of memory that was interleaved in 2 MB blocks over two nodes and is
 * to move to one of them, every second block has to move, and one thread would get all of them.
 *
 * Example: two walks take 16 blocks two at a time, so the last to finish is behind by two at most. They take
 * 100000 blocks four at a time; locating these then costs one call for twenty pages. */

#include "act/mover/walk-internal.h"

/* Most shared blocks to take at a time, and the portions each walk gets if there are enough blocks. */
#define SHARE_MAX      4U
#define SHARE_PORTIONS 4U

/* Moves past the next block of the walk's part; returns false if there is none. */
static bool next_block(const Walk *w, uint64_t page_bytes, WalkPlace *place, WalkBlock *ret)
{
    while (place->region < w->n_regions) {
        const WalkRegion *region = &w->regions[place->region];
        uint64_t start = MAX(place->at, region->start);
        uint64_t bytes = MIN(region->end - start, WALK_BLOCK_BYTES - start % WALK_BLOCK_BYTES);

        place->at = start + bytes;
        if (place->at == region->end)
            *place = (WalkPlace){.region = place->region + 1};
        if (w->order->sent || start / WALK_BLOCK_BYTES % w->n_parts == w->part) {
            *ret = (WalkBlock){
                .start = start, .n_pages = (uint32_t)(bytes / page_bytes), .thorough = region->thorough};
            return true;
        }
    }
    return false;
}

void walk_take(Walk *w, size_t max)
{
    Walk *lead = w->lead;
    size_t n = MIN(max, lead->share);

    (void)pthread_mutex_lock(&lead->lock);
    while (w->n_blocks < n && next_block(lead, w->node->page_bytes, &lead->place, &w->blocks[w->n_blocks]))
        w->n_blocks++;
    (void)pthread_mutex_unlock(&lead->lock);
}

uint32_t walk_share(Walk *lead, uint32_t max)
{
    const size_t enough = (size_t)max * SHARE_MAX * SHARE_PORTIONS;
    WalkPlace place = {0};
    WalkBlock block;
    size_t n = 0;

    if (lead->small)
        return 1;
    while (n < enough && next_block(lead, lead->node->page_bytes, &place, &block))
        n++;
    max = (uint32_t)CLAMP(n, 1U, (size_t)max);
    if (max > 1)
        lead->share = CLAMP(n / max / SHARE_PORTIONS, 1U, SHARE_MAX);
    return max;
}

int walk_join(Walk *lead, Walk **ret)
{
    int r = walk_new(lead->order, lead->accept_os, lead->part, lead->n_parts, ret);

    if (r < 0)
        return r;
    (*ret)->lead = lead;
    (*ret)->process_fd = lead->process_fd;
    (*ret)->memory_pid = lead->memory_pid;
    (*ret)->guard = lead->guard;
    (*ret)->phase = WALK_PHASE_ALL;
    return 0;
}
