/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Example: of a node of 16 GiB with 2 GiB free and a high watermark of 100 MiB, 10 % stay free: 2048 - 100 -
 * 1638 = 310 MiB may come.
 *
 * By the kernel's rule the page cache counts as used. Where it fills the node, nothing could come, although
 * the kernel would drop cold, clean pages on demand. The caller may therefore set spend_cache. */

#include "act/mover/room.h"

#include "base/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Larger numbers are rejected: 2^60 bytes. */
#define PAGES_MAX (UINT64_C(1) << 48)

/* Parses the number after "key" and blanks at the start of `line`; a blank or the line's end must follow. */
static bool number_of(const char *line, const char *key, uint64_t max, uint64_t *ret)
{
    if (!scan_word(&line, key) || *line != ' ')
        return false;
    line += strspn(line, " ");
    return scan_u64(&line, ret) && *ret <= max && (*line == ' ' || *line == '\n' || *line == '\0');
}

/* /proc/zoneinfo: "Node 0, zone   Normal", and below it a line "        high     31". */
int mover_zoneinfo_parse(const char *text, uint32_t node, uint64_t *ret_high_pages)
{
    char head[32];
    bool here = false, found = false;
    uint64_t sum = 0;

    (void)snprintf(head, sizeof(head), "Node %" PRIu32 ",", node);
    for (; *text; text = scan_next_line(text)) {
        const char *line = text + strspn(text, " ");
        uint64_t pages;

        if (strncmp(line, "Node ", 5) == 0)
            here = strncmp(line, head, strlen(head)) == 0;
        /* The per-CPU lists have a "high:" too, but with a colon. */
        if (here && number_of(line, "high", PAGES_MAX, &pages)) {
            sum += pages;
            found = true;
        }
        if (sum > PAGES_MAX)
            return -EINVAL;
    }
    if (!found)
        return -EINVAL;
    *ret_high_pages = sum;
    return 0;
}

uint64_t mover_room(const NodeMemory *memory, const MoverGuard *guard)
{
    uint64_t have = guard->spend_cache ? node_memory_available(memory) : memory->free_bytes;
    const uint64_t keep[] = {
        guard->high_bytes,
        /* In this order because a hundred times the memory of a node may overflow. */
        memory->total_bytes / 100 * MIN(guard->headroom_percent, 100U),
        guard->reserve_bytes,
    };

    for (size_t i = 0; i < ARRAY_SIZE(keep); i++)
        have -= MIN(have, keep[i]);
    return have;
}
