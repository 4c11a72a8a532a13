/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/PID/maps: which memory of a process can be moved at all, and why the rest cannot.
 *
 * maps and not numa_maps: both name the mappings, but numa_maps looks at every page of each under the target's lock (3
 * ms for 256 MiB of small pages, in one piece), and where pages are is asked by the block anyway. */

#include "base/util.h"

#include <stdint.h>

/* What lies behind a mapping. */
typedef enum MoverKind {
    MOVER_KIND_ANON,  /* private memory, also [heap] and [stack]; may be moved */
    MOVER_KIND_SHMEM, /* memfd, SysV, shared anonymous, a file of a tmpfs; may be moved */
    MOVER_KIND_FILE,  /* a file: its pages are the page cache's, and everybody's */
    MOVER_KIND_HUGETLB,
    MOVER_KIND_DEVICE, /* a device, or pages of the kernel itself: [vdso], io_uring, perf, KVM */
    MOVER_KIND_MAX,
    MOVER_KIND_INVALID = -EINVAL,
} MoverKind;

typedef struct MoverMapping {
    uint64_t start, end;
    MoverKind kind;
    bool accessible; /* false: PROT_NONE, a guard or a reservation */
} MoverMapping;

typedef struct MoverMount {
    uint64_t device; /* as makedev(3) makes them */
    MoverKind kind;  /* SHMEM or HUGETLB */
} MoverMount;

/* File systems that are memory. */
typedef struct MoverMounts {
    uint64_t
        internal; /* the device of memfd, SysV and shared anonymous memory: a mount of the kernel's own, in no list */
    MoverMount *list;
    size_t n, capacity;
} MoverMounts;

void mover_mounts_done(MoverMounts *mounts);

/* Adds those of /proc/PID/mountinfo. Lines that are not of its form are skipped: what is on an unknown file system
 * counts as a file and stays. Returns 0 or -ENOMEM. */
int mover_mounts_parse(const char *text, MoverMounts *mounts);

/* Reads the next line of maps at *text and moves past it. Returns 1; 0 at the end; -EINVAL for a line that is not of
 * its form (*text is past it, *ret untouched). */
int mover_maps_next(const char **text, const MoverMounts *mounts, MoverMapping *ret);
