/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The address space of a process, in regions that are each scanned and moved as a whole (P9), and what is remembered
 * of each.
 *
 * A mapping has no name. It counts as the same as before if it overlaps with one of the same device and inode. So it
 * may grow, shrink, be split by mprotect(2) or be joined with a neighbour, and keeps what is known of it. Memory that
 * was unmapped and mapped anew at the same place in between cannot be told apart from it. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* More than any process has: vm.max_map_count is 65530, and some databases ask for four times as much. */
#define REGIONS_MAX (1U << 19)

#define REGION_RESIDENT_UNKNOWN UINT64_MAX

typedef enum RegionKind {
    REGION_KIND_ANON,  /* private memory */
    REGION_KIND_SHMEM, /* memory that exists to be shared: memfd, SysV, shared anonymous, /dev/shm */
    REGION_KIND_FILE,
    REGION_KIND_HUGETLB,
    REGION_KIND_DEVICE, /* a device, or pages of the kernel itself */
    REGION_KIND_MAX,
    REGION_KIND_INVALID = -EINVAL,
} RegionKind;

/* What a scan remembers of a region; plan/scan/scan.h has the rules. All zero: no scan has met it yet. */
typedef struct RegionScan {
    bool known;
    uint64_t first_sequence; /* the first one in which it could have been scanned */
    uint64_t done_sequence;  /* one more than the last one in which it was scanned to its end; 0: never */
    uint64_t next_usec;      /* not scanned before */
    uint64_t forget_usec;    /* when the filters age */
    uint64_t active[2];      /* filters of threads seen there: before, and since the last ageing */
} RegionScan;

typedef struct MemoryRegion {
    uint64_t start, end; /* addresses */
    uint64_t device, inode;
    RegionKind kind;
    bool readable, writable, executable;
    bool shared;             /* MAP_SHARED */
    bool bound;              /* it has a memory policy: somebody chose its nodes */
    uint64_t resident_bytes; /* or REGION_RESIDENT_UNKNOWN */
    RegionScan scan;
} MemoryRegion;

/* Ascending and disjoint. All zero: none. */
typedef struct MemoryRegions {
    MemoryRegion *list;
    size_t n, capacity;
} MemoryRegions;

void regions_done(MemoryRegions *regions);

/* Appends a region. 0; -EINVAL: it is empty, or not behind the last one; -E2BIG: more than REGIONS_MAX; -ENOMEM. */
int regions_add(MemoryRegions *regions, const MemoryRegion *region);

/* Takes over into `now` what `before` remembers, by overlap. If several parts are joined, the part scanned least
 * counts for progress, and the threads seen in all of them are united. Residency, and what was read with it (kind, and
 * whether the region is bound), is taken over if `now` does not know it and the region has the same bounds. */
void regions_inherit(MemoryRegions *now, const MemoryRegions *before);

/* The region that an address is in, or NULL. */
MemoryRegion *regions_find(const MemoryRegions *regions, uint64_t address);

/* The first region that ends behind an address: its index, n when there is none. */
size_t regions_from(const MemoryRegions *regions, uint64_t address);

/* "anon", "shmem", "file", "hugetlb", "device"; NULL-terminated. The last three are also the mover's words
 * for refusals. */
extern const char *const region_kind_names[];
