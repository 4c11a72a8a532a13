/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /sys/devices/system/node/nodeN/meminfo: how much memory of a node is available. */

#include <stdint.h>

#define NODE_MEMORY_TEXT_SIZE 8192U /* forty lines of about forty bytes, and room for as many again */

typedef struct NodeMemory {
    uint64_t free_bytes;     /* unused, including the kernel's reserves */
    uint64_t inactive_bytes; /* file pages not used lately */
    uint64_t dirty_bytes;    /* file pages waiting for or under writeback, which cannot be dropped yet */
    uint64_t total_bytes;
} NodeMemory;

/* Parses a whole file. Returns 0, or -EINVAL if a needed number is missing, malformed or above 2^60 bytes. */
int node_memory_parse(const char *text, NodeMemory *ret);

/* Returns how much can be put on the node without hurting its present users: unused pages, plus file pages
 * that are inactive and clean. Page migration drops such file pages at once, without waiting for a disk, and
 * they are missed least. Active file pages are not counted, because they are somebody's working set. Nor is
 * slab, which is reclaimed late and in small pieces. The kernel's NUMA balancing is stricter (P19, OOM
 * guard): it uses only unused pages above the high watermark, since it must not wake kswapd. Callers that
 * move pages have to leave watermarks and headroom free. */
uint64_t node_memory_available(const NodeMemory *memory);
