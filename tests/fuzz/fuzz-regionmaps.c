/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "probe/memory/region-maps.h"

static void check_regions(const MemoryRegions *regions)
{
    for (size_t i = 0; i < regions->n; i++) {
        const MemoryRegion *region = &regions->list[i];

        if (region->start >= region->end || (i > 0 && region[-1].end > region->start) ||
            (region->resident_bytes != REGION_RESIDENT_UNKNOWN &&
             region->resident_bytes > region->end - region->start) ||
            regions_find(regions, region->start) != region ||
            regions_find(regions, region->end - 1) != region)
            abort();
    }
}

/* Lines of maps, an empty line, and lines of numa_maps. Regions stay in order, and what is remembered of each
 * is found again when the same text is read again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    char *rest = text;
    MemoryRegions regions = {0}, again = {0};
    bool described = false;

    while (rest) {
        const char *line = strsep(&rest, "\n");

        described |= *line == '\0';
        if (described) {
            (void)region_maps_describe(&regions, line);
        } else if (region_maps_add(&regions, line) == 0) {
            regions.list[regions.n - 1].scan = (RegionScan){.known = true, .done_sequence = regions.n};
            (void)region_maps_add(&again, line);
        }
    }
    check_regions(&regions);
    regions_inherit(&again, &regions);
    for (size_t i = 0; i < regions.n; i++)
        if (again.list[i].scan.done_sequence != i + 1 ||
            again.list[i].resident_bytes != regions.list[i].resident_bytes)
            abort();
    regions_done(&regions);
    regions_done(&again);
    return 0;
}
