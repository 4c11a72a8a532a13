/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "probe/memory/numa-maps.h"
#include "world/world.h"

#include <inttypes.h>
#include <stdio.h>

static NumaMaps maps, again;

/* Sums stay in bounds, and read back the same from a line that states them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    char line[256], *rest = text;

    maps = again = (NumaMaps){0};
    while (rest)
        (void)numa_maps_add(&maps, strsep(&rest, "\n"));

    for (size_t i = 0; i < NUMA_MAPS_NODES_MAX; i++) {
        uint64_t kb = maps.bytes[i] >> 10;

        if (maps.bytes[i] > WORLD_MEMORY_MAX || maps.bytes[i] % 1024 != 0)
            abort();
        if (kb == 0 || kb > UINT32_MAX)
            continue;
        (void)snprintf(line, sizeof(line), "0 default anon=%" PRIu64 " N%zu=%" PRIu64 " kernelpagesize_kB=1",
                       kb, i, kb);
        if (numa_maps_add(&again, line) < 0 || again.bytes[i] != maps.bytes[i])
            abort();
    }
    return 0;
}
