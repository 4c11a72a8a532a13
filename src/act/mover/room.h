/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much may still come to a node (P19).
 * Source: migrate_balanced_pgdat() of Linux and "OOM-aware page migration" of numa/core v18, restated: pages move into
 * what is free above the high watermark, so that moving wakes no reclaim; and a share of the node stays free
 * besides. */

#include "base/util.h"
#include "kernel/node-memory.h"

#include <stdint.h>

/* The high watermarks of the zones of one node in /proc/zoneinfo, in pages. 0, or -EINVAL when the node has none. */
int mover_zoneinfo_parse(const char *text, uint32_t node, uint64_t *ret_high_pages);

typedef struct MoverGuard {
    uint64_t high_bytes;       /* watermark */
    uint32_t headroom_percent; /* of the node's memory, at most 100 */
    uint64_t reserve_bytes;    /* besides: what the group is expected to grow by */
    bool spend_cache;          /* count file pages that nobody used lately and that are clean as free */
} MoverGuard;

/* Bytes that may be moved to the node now. */
uint64_t mover_room(const NodeMemory *memory, const MoverGuard *guard);
