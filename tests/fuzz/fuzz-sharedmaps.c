/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "kernel/shared-maps.h"

#include <inttypes.h>
#include <stdio.h>

/* The mappings found are found again in a text that lists them in another order, and always have the same format. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    char first[SHARED_MAPS_TEXT_SIZE], second[SHARED_MAPS_TEXT_SIZE], line[128], *rest = text;
    SharedMaps maps = {0}, again = {0};

    while (rest)
        (void)shared_maps_add(&maps, strsep(&rest, "\n"));
    for (uint32_t i = maps.n; i > 0; i--) {
        const SharedObject *object = &maps.objects[i - 1];

        (void)snprintf(line, sizeof(line),
                       "0-%" PRIx64 " rw-s 0 %" PRIx32 ":%" PRIx32 " %" PRIu64 " /memfd:x",
                       MAX(object->bytes, 1), object->major, object->minor, object->inode);
        if (shared_maps_add(&again, line) < 0)
            abort();
    }
    again.writable_bytes = maps.writable_bytes;
    if (strcmp(shared_maps_format(&maps, '+', first), shared_maps_format(&again, '+', second)) != 0)
        abort();
    return 0;
}
