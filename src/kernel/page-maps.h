/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/PID/maps: which memory of a process can be moved, and why the rest cannot.
 *
 * Why not numa_maps: both list the mappings, but numa_maps walks every page of each under the target's lock
 * (3 ms for 256 MiB of small pages, in one piece), and page locations are queried by the block anyway. */

#include "base/util.h"

#include <stdint.h>

/* What backs a mapping. */
typedef enum PageKind {
    PAGE_KIND_ANON,  /* private memory, including [heap], [stack] and private writable mappings of files,
                        which are copied on write; may be moved */
    PAGE_KIND_SHMEM, /* memfd, SysV, shared anonymous, a file of a tmpfs; may be moved */
    PAGE_KIND_FILE,  /* a file: its pages are in the page cache and belong to no one process */
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
    uint64_t device; /* as from makedev(3) */
    PageKind kind;   /* SHMEM or HUGETLB */
} PageMount;

/* File systems that live in memory. */
typedef struct PageMounts {
    uint64_t internal; /* device of memfd, SysV and shared anonymous memory; in no mountinfo */
    PageMount *list;
    size_t n, capacity;
} PageMounts;

void page_mounts_done(PageMounts *mounts);

/* Adds those in the text of /proc/PID/mountinfo. Malformed lines are skipped: a mapping from an unknown file
 * system counts as a file and is not moved. Returns 0 or -ENOMEM. */
int page_mounts_parse(const char *text, PageMounts *mounts);

/* Parses the next line of maps at *text and moves past it. Returns 1; 0 at the end; -EINVAL for a malformed
 * line (*text is past it, *ret untouched). */
int page_maps_next(const char **text, const PageMounts *mounts, PageMapping *ret);
