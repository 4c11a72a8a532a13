/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/PID/numa_maps: on which nodes the resident memory of a process lies, as far as placement can and should follow
 * it (evidence D). Counted are
 *   - anonymous pages: heap, stacks, and what was written of private mappings of files;
 *   - shared memory: memfd, SysV, /dev/zero, /dev/shm and huge pages. A page that n processes map counts as an nth in
 *     each, so that the sum over a group is what there is; n is that of the page of the mapping that most map.
 * Not counted is the page cache: programs, libraries and data files are shared with everybody, and their pages go where
 * they are read first. Nor are pages of a tmpfs elsewhere: nothing in this file tells them from a disk's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMA_MAPS_NODES_MAX 1024U /* CONFIG_NODES_SHIFT is at most 10 */

typedef struct NumaMaps {
    uint64_t bytes[NUMA_MAPS_NODES_MAX]; /* by operating-system node number, up to WORLD_MEMORY_MAX */
    uint64_t bound_bytes;                /* of them all, with a memory policy that names nodes */
} NumaMaps;

/* What one line says of a mapping. */
typedef struct NumaMapsLine {
    uint64_t address;  /* its start */
    const char *words; /* behind the address */
    uint64_t pages;    /* on all nodes */
    uint64_t anon;     /* of them, not of a file */
    uint64_t n_maps;   /* of the page that most map */
    uint64_t page_bytes;
    bool bound;  /* a memory policy was set for it, or for its process, other than the kernel's default */
    bool chosen; /* and it names nodes */
    bool shared; /* memory that exists only to be shared: all of it counts */
    bool huge;   /* of hugetlbfs */
} NumaMapsLine;

/* Parses one line, without its newline. Returns 0, or -EINVAL when it is not of the form; *ret is then untouched. */
int numa_maps_parse(const char *line, NumaMapsLine *ret);

/* Adds one line, without its newline. Returns 0, or -EINVAL when it is not of the form (nothing is added). */
int numa_maps_add(NumaMaps *maps, const char *line);

/* Adds all of numa_maps below `dir_fd`, the directory of a process, in pieces: the text may have megabytes. Returns 0;
 * -errno, and *ret means nothing then; -ESRCH when the process has no memory (any more). A process that runs another
 * program meanwhile may look smaller than it was. */
int numa_maps_read(int dir_fd, NumaMaps *ret);
