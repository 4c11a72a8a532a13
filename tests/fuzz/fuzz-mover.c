/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "act/mover/room.h"
#include "fuzz.h"
#include "kernel/page-maps.h"

#include <inttypes.h>
#include <stdio.h>

/* A mapping that was parsed is a range of addresses, and means the same when it is written anew. */
static void check_mapping(const PageMapping *mapping)
{
    PageMounts none = {0};
    PageMapping again;
    char line[128];
    const char *text = line;

    check(mapping->start < mapping->end && mapping->kind >= 0 && mapping->kind < PAGE_KIND_MAX);
    (void)snprintf(line, sizeof(line), "%" PRIx64 "-%" PRIx64 " %s 00000000 00:00 0\n", mapping->start,
                   mapping->end, mapping->accessible ? "rw-p" : "---p");
    check(page_maps_next(&text, &none, &again) == 1 && *text == '\0');
    check(again.start == mapping->start && again.end == mapping->end &&
          again.accessible == mapping->accessible);
}

static void check_maps(const char *text)
{
    CLEANUP(page_mounts_done) PageMounts mounts = {.internal = 1};
    const char *at = text, *before = text;
    PageMapping mapping;
    int r;

    if (page_mounts_parse(text, &mounts) < 0)
        return;
    for (size_t i = 0; i < mounts.n; i++)
        check(mounts.list[i].kind == PAGE_KIND_SHMEM || mounts.list[i].kind == PAGE_KIND_HUGETLB);
    while ((r = page_maps_next(&at, &mounts, &mapping)) != 0) {
        check(at > before && at <= text + strlen(text));
        before = at;
        if (r > 0)
            check_mapping(&mapping);
    }
}

static void check_room(const char *text)
{
    NodeMemory memory;
    uint64_t high;

    if (mover_zoneinfo_parse(text, 0, &high) == 0)
        check(high <= UINT64_C(1) << 48);
    if (node_memory_parse(text, &memory) == 0) {
        const MoverGuard guard = {.headroom_percent = 10, .high_bytes = 4096, .spend_cache = true};

        check(mover_room(&memory, &guard) <= node_memory_available(&memory));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);

    check_maps(text);
    check_room(text);
    return 0;
}
