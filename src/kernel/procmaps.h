/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One line of /proc/PID/maps (proc(5)). */

#include <stdbool.h>
#include <stdint.h>

typedef struct ProcMaps {
    uint64_t start, end; /* addresses, start < end */
    bool readable, writable, executable;
    bool shared; /* MAP_SHARED; the memory need not be used by others */
    uint32_t major, minor;
    uint64_t inode;   /* with the device, the identity of a file; 0: no file */
    const char *path; /* in the line, to its end; empty without one */
} ProcMaps;

/* Parses a line, which ends with the text or a newline. Returns 0, or -EINVAL when it is not of the form; *ret is then
 * untouched. */
int procmaps_parse(const char *line, ProcMaps *ret);
