/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the CPUs of a cache of level 3 have read and written beyond it, where the processor counts that (Intel RDT MBM,
 * AMD PQoS) and somebody has mounted resctrl at /sys/fs/resctrl. Read only: no group is made, and nothing is mounted.
 *
 * All groups for control are summed up; each counts what is in its groups for monitoring as well. See
 * Documentation/filesystems/resctrl.rst. */

#include "topo/topology.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct BandwidthDomain {
    uint32_t cache;       /* id of the cache, as the kernel numbers them */
    hwloc_bitmap_t nodes; /* NodeIx, of its CPUs */
    uint32_t n_groups, n_local; /* that were summed up, and of which it is known what is local */
    uint64_t total_bytes, local_bytes; /* since some time before; `local` to the node of the CPU */
} BandwidthDomain;

typedef struct Bandwidth {
    BandwidthDomain *domains; /* ascending `cache` */
    size_t n, capacity;
} Bandwidth;

void bandwidth_done(Bandwidth *bandwidth);

/* Whether `local_bytes` is known of all. */
static inline bool bandwidth_local_known(const BandwidthDomain *domain)
{
    return domain->n_local == domain->n_groups;
}

/* Reads all counters. Returns 0; -ENOENT: there are none; -errno. Domains that have no number at present, and those of
 * no CPU of `topology`, are left out. */
int bandwidth_read(int root_fd, const Topology *topology, Bandwidth *ret);

/* Makes of a reading what was counted since `before`, in bytes per second. Domains of which other groups were read
 * then, or whose counter has become less, are dropped. */
void bandwidth_rate(Bandwidth *bandwidth, const Bandwidth *before, uint64_t usec);
