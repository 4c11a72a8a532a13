/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /sys/devices/system/node/nodeN/meminfo: how much memory of a node is to be had. */

#include <stdint.h>

#define NODE_MEMORY_TEXT_SIZE 8192U /* forty lines of some forty bytes, and room for as many again */

typedef struct NodeMemory {
    uint64_t free_bytes;     /* unused; the kernel's reserves are in it */
    uint64_t inactive_bytes; /* file pages nobody used lately */
    uint64_t dirty_bytes;    /* file pages to be written, or being written, before they can be dropped */
    uint64_t total_bytes;
} NodeMemory;

/* Parses one whole file. Returns 0, or -EINVAL when a number that is needed is missing, not of its form or more than
 * 2^60 bytes. */
int node_memory_parse(const char *text, NodeMemory *ret);

/* What may be put on the node at no cost to those who are there: unused pages, and file pages that nobody used
 * lately and that are clean; page migration drops those at once, without waiting for a disk, and misses them least.
 * Not counted: active file pages, which are somebody's working set, and slab, which comes back late and in crumbs.
 * The kernel's balancing is stricter (P19): it moves into what is unused above the high watermark only, as it must
 * not wake kswapd; whoever moves pages has to leave watermarks and headroom. */
uint64_t node_memory_available(const NodeMemory *memory);
