/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/PID/numa_maps: on which nodes the resident memory of a process lies, as far as placement can and
 * should follow it. Counted are
 *   - anonymous pages: heap, stacks, and written pages of private file mappings;
 *   - shared memory: memfd, SysV, /dev/zero, /dev/shm and huge pages. A page that n processes map counts as
 *     one nth in each, so that the sum over a group is what there is; n is that of the most mapped page of
 *     the mapping.
 * The page cache is not counted: programs, libraries and data files are shared with all processes and lie where
 * they are first read. Nor are pages of a tmpfs elsewhere, which nothing here tells from those of a disk. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMA_MAPS_NODES_MAX 1024U /* CONFIG_NODES_SHIFT is at most 10 */

typedef struct NumaMaps {
    uint64_t bytes[NUMA_MAPS_NODES_MAX]; /* by operating-system node number, up to WORLD_MEMORY_MAX */
    uint64_t bound_bytes;                /* the part of them whose memory policy names nodes */
} NumaMaps;

typedef struct NumaMapsLine {
    uint64_t address;  /* its start */
    const char *words; /* the text behind the address */
    uint64_t pages;    /* on all nodes */
    uint64_t anon;     /* those that are of no file */
    uint64_t n_maps;   /* of the page that is mapped most */
    uint64_t page_bytes;
    bool bound;  /* it, or its process, has a memory policy under which the kernel does not balance it */
    bool chosen; /* its policy names nodes */
    bool shared; /* memory that exists only to be shared: all of it counts */
    bool huge;   /* of hugetlbfs */
} NumaMapsLine;

/* Parses one line, without its newline. Returns 0, or -EINVAL when it is malformed; *ret is then untouched. */
int numa_maps_parse(const char *line, NumaMapsLine *ret);

/* Adds one line, without its newline. Returns 0, or -EINVAL when it is malformed (nothing is added). */
int numa_maps_add(NumaMaps *maps, const char *line);

/* Adds all of numa_maps below `dir_fd`, the directory of a process, in pieces: the text may have megabytes.
 * Returns 0; -errno, and *ret is then useless; -ESRCH when the process has no memory (any more). A process
 * that runs another program meanwhile may look smaller. */
int numa_maps_read(int dir_fd, NumaMaps *ret);
