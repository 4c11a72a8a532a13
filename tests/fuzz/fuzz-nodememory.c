/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "kernel/node-memory.h"

#include <inttypes.h>
#include <stdio.h>

/* parse(format(x)) == x, and at least as much is available as is free. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    NodeMemory memory, again;
    char line[256];
    uint64_t half;

    if (node_memory_parse(text, &memory) < 0)
        return 0;
    if (node_memory_available(&memory) < memory.free_bytes)
        abort();
    /* The sum of the two kinds of dirty pages may exceed one number in the text, so it is written as two halves. */
    half = memory.dirty_bytes >> 11;
    (void)snprintf(line, sizeof(line),
                   "Node 0 MemTotal: %" PRIu64 " kB\nNode 0 MemFree: %" PRIu64
                   " kB\nNode 0 Inactive(file): %" PRIu64 " kB\nNode 0 Dirty: %" PRIu64
                   " kB\nNode 0 Writeback: %" PRIu64 " kB\n",
                   memory.total_bytes >> 10, memory.free_bytes >> 10, memory.inactive_bytes >> 10, half,
                   (memory.dirty_bytes >> 10) - half);
    if (node_memory_parse(line, &again) < 0 || again.total_bytes != memory.total_bytes ||
        again.free_bytes != memory.free_bytes || again.inactive_bytes != memory.inactive_bytes ||
        again.dirty_bytes != memory.dirty_bytes)
        abort();
    return 0;
}
