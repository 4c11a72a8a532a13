/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much memory may still be moved to a node (P19, OOM guard). Source: migrate_balanced_pgdat() of Linux and
 * "OOM-aware page migration" of numa/core v18, restated: pages are moved only into memory that is free above the high
 * watermark, so that moving wakes no reclaim. In addition, a share of the node is kept free. */

#include "base/util.h"
#include "kernel/node-memory.h"

#include <stdint.h>

/* Sums the high watermarks of the zones of one node in /proc/zoneinfo, in pages. 0, or -EINVAL if the node
 * has none. */
int mover_zoneinfo_parse(const char *text, uint32_t node, uint64_t *ret_high_pages);

typedef struct MoverGuard {
    uint64_t high_bytes;       /* watermark */
    uint32_t headroom_percent; /* of the node's memory, at most 100 */
    uint64_t reserve_bytes;    /* kept in addition: expected growth of the group */
    bool spend_cache;          /* count clean file pages not used lately as free */
} MoverGuard;

/* Returns the bytes that may be moved to the node now. */
uint64_t mover_room(const NodeMemory *memory, const MoverGuard *guard);
