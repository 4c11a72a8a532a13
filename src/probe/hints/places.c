/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A block is asked for by the page that was touched last. Where a block lies that nobody touched is asked only when
 * somebody wants to know: with 128 GiB of them it takes 16 ms. maps is read each time, numa_maps, for which the
 * kernel walks all page tables, seldom. */

#include "probe/hints/places.h"

#include "base/time.h"
#include "probe/memory/region-maps.h"

#include <sys/syscall.h>

/* numa_maps is read so seldom that it takes no more than one part in so many of a CPU, and no sooner than this. */
#define DESCRIBE_SHARE    100U
#define DESCRIBE_MIN_USEC (10 * USEC_PER_SEC)

static int locate_some(HintPlaces *places, const EvidenceTarget *target, Touches *touches, size_t n)
{
    for (size_t i = 0; i < n; i++)
        places->pages[i] = (void *)(uintptr_t)touches->blocks[places->asked[i]]
                               .address; /* NOLINT(performance-no-int-to-ptr) */
    if (n > 0 && syscall(SYS_move_pages, target->pid, n, places->pages, NULL, places->status, 0) < 0)
        return errno == ESRCH ? EVIDENCE_E_GONE : -errno;
    for (size_t i = 0; i < n; i++)
        touches->blocks[places->asked[i]].node =
            places->status[i] < 0 ? NODE_NONE
                                  : topology_node_by_os(target->topology, (uint32_t)places->status[i]);
    return 0;
}

/* Whether a block was touched in this round, or is in what was asked for. Blocks, samples and ranges ascend. */
static bool is_asked(const EvidenceFinds *finds, const TouchBlock *block, size_t *sample, size_t *range)
{
    const uint64_t number = block->address / TOUCHES_BLOCK_BYTES;
    const Touches *touches = &finds->touches;

    while (*sample < touches->n_samples && touches->samples[*sample].address / TOUCHES_BLOCK_BYTES < number)
        (*sample)++;
    while (*range < finds->n_asked && finds->asked[*range].end <= block->address)
        (*range)++;
    return (*sample < touches->n_samples &&
            touches->samples[*sample].address / TOUCHES_BLOCK_BYTES == number) ||
           (*range < finds->n_asked && finds->asked[*range].start <= block->address);
}

/* Those that are not asked about may have been moved since they were. */
static int locate(HintPlaces *places, const EvidenceTarget *target, EvidenceFinds *finds)
{
    Touches *touches = &finds->touches;
    size_t n = 0, sample = 0, range = 0;

    /* Pretend nodes have no memory of their own. */
    if (target->topology->rehearsal > 0)
        return 0;
    for (size_t i = 0; i < touches->n_blocks; i++) {
        touches->blocks[i].node = NODE_NONE;
        if (!is_asked(finds, &touches->blocks[i], &sample, &range))
            continue;
        places->asked[n++] = (uint32_t)i;
        if (n == HINT_PLACES_PER_CALL) {
            int r = locate_some(places, target, touches, n);

            if (r != 0)
                return r;
            n = 0;
        }
    }
    return locate_some(places, target, touches, n);
}

/* What cannot be read is not known, and nothing of it is moved then (I10). */
static int find_regions(HintPlaces *places, int proc_fd, uint64_t now_usec, MemoryRegions *known)
{
    bool described = now_usec >= places->describe_usec;
    uint64_t begin = time_now_usec();
    MemoryRegions regions = {0};
    int r = region_maps_read(proc_fd, described, known, &regions);

    if (r == -ESRCH || r == -ENOENT)
        return EVIDENCE_E_GONE;
    if (r == -ENOMEM)
        return r;
    regions_done(known);
    *known = regions;
    if (described)
        places->describe_usec = now_usec + MAX((time_now_usec() - begin) * DESCRIBE_SHARE, DESCRIBE_MIN_USEC);
    return 0;
}

int hint_places_find(HintPlaces *places, int proc_fd, const EvidenceTarget *target, uint64_t now_usec,
                     EvidenceFinds *finds)
{
    int r = locate(places, target, finds);

    return r == 0 ? find_regions(places, proc_fd, now_usec, &finds->regions) : r;
}
