/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "kernel/node-memory.h"

#include <inttypes.h>
#include <stdio.h>

/* parse(format(x)) == x, and what is available is at least what is free. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    NodeMemory memory, again;
    char line[256];

    if (node_memory_parse(text, &memory) < 0)
        return 0;
    if (node_memory_available(&memory) < memory.free_bytes)
        abort();
    /* The sum of the two kinds of dirty pages may be larger than a number in the text. */
    (void)snprintf(line, sizeof(line),
                   "Node 0 MemFree: %" PRIu64 " kB\nNode 0 Inactive(file): %" PRIu64
                   " kB\nNode 0 Dirty: %" PRIu64 " kB\nNode 0 Writeback: 0 kB\n",
                   memory.free_bytes >> 10, memory.inactive_bytes >> 10, memory.dirty_bytes >> 10);
    if (node_memory_parse(line, &again) < 0 || again.free_bytes != memory.free_bytes ||
        again.inactive_bytes != memory.inactive_bytes || again.dirty_bytes >> 10 != memory.dirty_bytes >> 10)
        abort();
    return 0;
}
