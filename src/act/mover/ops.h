/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The mover's access to the machine. Called in the mover's own threads, several at a time. Functions that
 * return int return 0 or -errno. */

#include "base/lines.h"
#include "base/util.h"

#include <hwloc/bitmap.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct MoverOps {
    /* Returns a descriptor for exactly this process, to be closed by the caller, and the PID by which its memory can
     * be read and moved. That is `pid` or, if the first thread has ended before the others, the TID of one of these.
     * -ESRCH: the process has exited, or its PID belongs to another one. */
    int (*open_process)(void *context, pid_t pid, uint64_t start_ticks, pid_t *ret_memory_pid);
    /* Whether the process has not exited, and neither has the thread of a TID. Until then, that PID is not reused. */
    bool (*is_alive)(void *context, int process_fd);
    /* Reads a text file, malloc'd; -EFBIG if it is larger than `max`. */
    int (*read_file)(void *context, const char *path, size_t max, char **ret);
    /* Reads a file that may have megabytes, as lines_read() does: several threads read the same file at a
     * time, and keep none of it. */
    int (*read_lines)(void *context, const char *path, LinesAdd add, void *userdata);
    /* move_pages(2). `nodes` NULL queries where the pages are. `shared`: also move pages that others map. Returns 0,
     * -errno or, when moving, a number above 0 if some pages were not moved and not all of `status` was written. */
    long (*move_pages)(void *context, pid_t pid, size_t n, void **pages, const int *nodes, int *status,
                       bool shared);
    /* migrate_pages(2), only of memory that nobody else maps. Returns the number of pages not moved, or -errno. */
    long (*migrate_pages)(void *context, pid_t pid, hwloc_const_bitmap_t from_os, uint32_t to_os);
    /* Set the CPUs and the nice value of the calling thread. */
    int (*set_cpus)(void *context, hwloc_const_bitmap_t cpus);
    int (*set_nice)(void *context, int nice);
    /* The device of memfd and similar memory, as from makedev(3). */
    int (*memory_device)(void *context, uint64_t *ret);
    uint64_t (*now_usec)(void *context); /* CLOCK_MONOTONIC */
} MoverOps;

/* Their context is an `int *`, the descriptor of the root directory. */
extern const MoverOps mover_ops_kernel;
