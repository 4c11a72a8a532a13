/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One line of /proc/PID/maps (proc(5)). */

#include <stdbool.h>
#include <stdint.h>

typedef struct ProcMaps {
    uint64_t start, end; /* addresses, start < end */
    bool readable, writable, executable;
    bool shared; /* MAP_SHARED, even if no other process uses the memory */
    uint32_t major, minor;
    uint64_t inode;   /* with the device, identifies a file; 0: no file */
    const char *path; /* points into the line, up to its end; empty if there is none */
} ProcMaps;

/* Parses a line, which ends with the text or a newline. Returns 0, or -EINVAL, with *ret untouched, if malformed. */
int procmaps_parse(const char *line, ProcMaps *ret);
