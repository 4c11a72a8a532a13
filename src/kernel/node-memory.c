/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lines are "Node 0 MemFree:  9437700 kB", some without a unit. */

#include "kernel/node-memory.h"

#include "base/scan.h"
#include "base/util.h"

#include <string.h>

/* Largest accepted number, in KiB: 2^60 bytes. */
#define KIB_MAX (UINT64_C(1) << 50)

typedef struct Wanted {
    const char *key;
    uint64_t bytes;
    bool found;
} Wanted;

/* The line without "Node N ", or NULL if it does not start with that. */
static const char *line_key(const char *line)
{
    uint64_t node;

    if (!scan_word(&line, "Node ") || !scan_u64(&line, &node) || *line != ' ')
        return NULL;
    return line + strspn(line, " ");
}

/* Stores the number if the line has the wanted key. Returns 0, also for other keys, or -EINVAL. */
static int take(const char *line, Wanted *wanted)
{
    uint64_t kib;

    if (!scan_word(&line, wanted->key) || *line++ != ':')
        return 0;
    line += strspn(line, " ");
    if (!scan_u64(&line, &kib) || kib > KIB_MAX || !scan_word(&line, " kB\n") || wanted->found)
        return -EINVAL;
    wanted->bytes = kib << 10;
    wanted->found = true;
    return 0;
}

int node_memory_parse(const char *text, NodeMemory *ret)
{
    Wanted wanted[] = {{.key = "MemFree"},
                       {.key = "Inactive(file)"},
                       {.key = "Dirty"},
                       {.key = "Writeback"},
                       {.key = "MemTotal"}};

    while (*text) {
        const char *line = line_key(text), *end = strchr(text, '\n');

        if (!line || !end)
            return -EINVAL;
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
            if (take(line, &wanted[i]) < 0)
                return -EINVAL;
        text = end + 1;
    }
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        if (!wanted[i].found)
            return -EINVAL;

    *ret = (NodeMemory){
        .free_bytes = wanted[0].bytes,
        .inactive_bytes = wanted[1].bytes,
        .dirty_bytes = wanted[2].bytes + wanted[3].bytes,
        .total_bytes = wanted[4].bytes,
    };
    return 0;
}

uint64_t node_memory_available(const NodeMemory *memory)
{
    uint64_t clean = memory->inactive_bytes - MIN(memory->inactive_bytes, memory->dirty_bytes);

    return clean + MIN(memory->free_bytes, UINT64_MAX - clean);
}
