/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How the mover reaches the machine. Called in threads of the mover's own, several at a time.
 * Functions that return int give 0 or -errno. */

#include "base/lines.h"
#include "base/util.h"

#include <hwloc/bitmap.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct MoverOps {
    /* A descriptor that stands for this very process, to be closed by the caller. -ESRCH: it is gone, or its number
     * belongs to another one. */
    int (*open_process)(void *context, pid_t pid, uint64_t start_ticks);
    /* Whether it has not exited. As long as that is so, its number is nobody else's. */
    bool (*is_alive)(void *context, int process_fd);
    /* A text file, malloc'd; -EFBIG when it is larger than `max`. */
    int (*read_file)(void *context, const char *path, size_t max, char **ret);
    /* One that may have megabytes, as lines_read() does: several movers read the same at a time, and keep none of
     * it. */
    int (*read_lines)(void *context, const char *path, LinesAdd add, void *userdata);
    /* move_pages(2): `nodes` NULL asks where the pages are. `shared`: also what others map. 0, -errno, or, of moving, a
     * number above 0 when pages were left and not all of `status` was written. */
    long (*move_pages)(void *context, pid_t pid, size_t n, void **pages, const int *nodes, int *status,
                       bool shared);
    /* migrate_pages(2), of memory that nobody else maps. The number of pages that were left, or -errno. */
    long (*migrate_pages)(void *context, pid_t pid, hwloc_const_bitmap_t from_os, uint32_t to_os);
    /* The calling thread's CPUs, and its nice value. */
    int (*set_cpus)(void *context, hwloc_const_bitmap_t cpus);
    int (*set_nice)(void *context, int nice);
    /* The device of memfd and its like, as makedev(3) makes it. */
    int (*memory_device)(void *context, uint64_t *ret);
    uint64_t (*now_usec)(void *context); /* CLOCK_MONOTONIC */
} MoverOps;

/* The context is an `int *`, the descriptor of the root directory. */
extern const MoverOps mover_ops_kernel;
