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
    uint32_t cache;             /* id of the cache, as the kernel numbers them */
    uint32_t llc;               /* the same as an index into Topology.llcs */
    uint32_t n_groups, n_local; /* that were summed up, and of which it is known what is local; 0: no number */
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
    return domain->n_groups > 0 && domain->n_local == domain->n_groups;
}

/* Whether there is anything to be found: mostly it is not mounted. */
bool bandwidth_mounted(int root_fd);

/* Finds the caches of `topology` that are counted, and counts nothing yet. Returns 0; -ENOENT: there are none;
 * -ENOMEM. */
int bandwidth_find(int root_fd, const Topology *topology, Bandwidth *ret);

/* Reads all counters, for which newer kernels wake a thread of a CPU of each cache, and wait for it: one that never
 * yields its CPU to others can make that last. Returns 0; -ENOENT: there is none; -E2BIG: more than `most_groups`, and
 * what was read is of no use; -errno. */
int bandwidth_count(int root_fd, Bandwidth *bandwidth, size_t most_groups);

/* What was counted from one reading to another, `usec` later, in bytes per second. Domains of which other groups were
 * read then, or whose counter has become less, are left out. *ret may be one used before. Returns 0 or -ENOMEM. */
int bandwidth_rate(const Bandwidth *before, const Bandwidth *after, uint64_t usec, Bandwidth *ret);

/* The sum of a rate over the caches of a node. False: not known, as where the nodes of one socket share a cache. */
bool bandwidth_of_node(const Bandwidth *rate, const Topology *topology, uint32_t node, uint64_t *ret_bytes);
