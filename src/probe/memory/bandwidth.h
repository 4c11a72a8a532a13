/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the CPUs of a level 3 cache have read and written beyond it, where the processor counts that (Intel
 * RDT MBM, AMD PQoS) and resctrl is mounted at /sys/fs/resctrl. Read only: makes no group and mounts nothing.
 *
 * Sums up all control groups, each of which includes its monitoring groups. See
 * Documentation/filesystems/resctrl.rst. */

#include "topo/topology.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct BandwidthDomain {
    uint32_t cache;                    /* the kernel's id of the cache */
    uint32_t llc;                      /* the same as an index into Topology.llcs */
    uint32_t n_groups, n_local;        /* groups summed up, and those with a number for local; 0: no number */
    uint64_t total_bytes, local_bytes; /* since some time before; `local` to the node of the CPU */
} BandwidthDomain;

typedef struct Bandwidth {
    BandwidthDomain *domains; /* ascending `cache` */
    size_t n, capacity;
} Bandwidth;

void bandwidth_done(Bandwidth *bandwidth);

/* Whether `local_bytes` is known of all groups. */
static inline bool bandwidth_local_known(const BandwidthDomain *domain)
{
    return domain->n_groups > 0 && domain->n_local == domain->n_groups;
}

/* Whether anything can be found; mostly resctrl is not mounted. */
bool bandwidth_mounted(int root_fd);

/* Finds the level 3 caches of `topology`, and counts nothing yet. Returns 0; -ENOENT: there are none, or
 * resctrl is not mounted; -ENOMEM. */
int bandwidth_find(int root_fd, const Topology *topology, Bandwidth *ret);

/* Reads all counters. For that, newer kernels wake a thread on a CPU of each cache and wait for it; a task
 * that never yields its CPU can make that last. Returns 0; -ENOENT: there is no counter; -E2BIG: there are
 * more than `most_groups`, and the counts are useless; -errno. */
int bandwidth_count(int root_fd, Bandwidth *bandwidth, size_t most_groups);

/* The rate between two readings `usec` apart, in bytes per second. Leaves out domains whose number of groups
 * differs or whose counters have decreased. *ret may be one used before. Returns 0 or -ENOMEM. */
int bandwidth_rate(const Bandwidth *before, const Bandwidth *after, uint64_t usec, Bandwidth *ret);

/* The sum of a rate over the caches of a node. False: not known, for example where the nodes of one socket
 * share a cache. */
bool bandwidth_of_node(const Bandwidth *rate, const Topology *topology, uint32_t node, uint64_t *ret_bytes);
