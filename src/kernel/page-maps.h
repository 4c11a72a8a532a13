/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/PID/maps: which memory of a process can be moved at all, and why the rest cannot.
 *
 * maps and not numa_maps: both name the mappings, but numa_maps looks at every page of each under the target's lock (3
 * ms for 256 MiB of small pages, in one piece), and where pages are is asked by the block anyway. */

#include "base/util.h"

#include <stdint.h>

/* What lies behind a mapping. */
typedef enum PageKind {
    PAGE_KIND_ANON,  /* private memory, also [heap] and [stack], and what may be written of a file without changing it:
                        that is a copy of its own; may be moved */
    PAGE_KIND_SHMEM, /* memfd, SysV, shared anonymous, a file of a tmpfs; may be moved */
    PAGE_KIND_FILE,  /* a file: its pages are the page cache's, and everybody's */
    PAGE_KIND_HUGETLB,
    PAGE_KIND_DEVICE, /* a device, or pages of the kernel itself: [vdso], io_uring, perf, KVM */
    PAGE_KIND_MAX,
    PAGE_KIND_INVALID = -EINVAL,
} PageKind;

typedef struct PageMapping {
    uint64_t start, end;
    PageKind kind;
    bool accessible; /* false: PROT_NONE, a guard or a reservation */
} PageMapping;

typedef struct PageMount {
    uint64_t device; /* as makedev(3) makes them */
    PageKind kind;   /* SHMEM or HUGETLB */
} PageMount;

/* File systems that are memory. */
typedef struct PageMounts {
    uint64_t
        internal; /* the device of memfd, SysV and shared anonymous memory: a mount of the kernel's own, in no list */
    PageMount *list;
    size_t n, capacity;
} PageMounts;

void page_mounts_done(PageMounts *mounts);

/* Adds those of /proc/PID/mountinfo. Lines that are not of its form are skipped: what is on an unknown file system
 * counts as a file and stays. Returns 0 or -ENOMEM. */
int page_mounts_parse(const char *text, PageMounts *mounts);

/* Reads the next line of maps at *text and moves past it. Returns 1; 0 at the end; -EINVAL for a line that is not of
 * its form (*text is past it, *ret untouched). */
int page_maps_next(const char **text, const PageMounts *mounts, PageMapping *ret);
