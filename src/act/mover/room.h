/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much may still come to a node (P19).
 * Source: migrate_balanced_pgdat() of Linux and "OOM-aware page migration" of numa/core v18, restated: pages move into
 * what is free above the high watermark, so that moving wakes no reclaim; and a share of the node stays free
 * besides. */

#include "base/util.h"

#include <stdint.h>

#define MOVER_MEMINFO_SIZE 8192U /* forty lines of some forty bytes, and room for as many again */

/* What nodeN/meminfo says. */
typedef struct MoverMeminfo {
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t cache_bytes; /* file pages that nobody used lately and that are clean */
} MoverMeminfo;

/* Parses one whole /sys/devices/system/node/nodeN/meminfo. 0, or -EINVAL when a number is missing or not of its
 * form. */
int mover_meminfo_parse(const char *text, MoverMeminfo *ret);

/* The high watermarks of the zones of one node in /proc/zoneinfo, in pages. 0, or -EINVAL when the node has none. */
int mover_zoneinfo_parse(const char *text, uint32_t node, uint64_t *ret_high_pages);

typedef struct MoverGuard {
    uint64_t high_bytes;       /* watermark */
    uint32_t headroom_percent; /* of the node's memory, at most 100 */
    uint64_t reserve_bytes;    /* besides: what the group is expected to grow by */
    bool spend_cache;          /* count cache_bytes as free */
} MoverGuard;

/* Bytes that may be moved to the node now. */
uint64_t mover_room(const MoverMeminfo *memory, const MoverGuard *guard);
