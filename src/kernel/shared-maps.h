/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/PID/maps: which shared memory a process maps, to find processes that work together (P12, groups). */

#include "base/scan.h"

#include <stdint.h>

/* Most objects remembered for one process: those with the lowest device and inode. */
#define SHARED_MAPS_MAX 64U

/* Room for all of them as text. */
#define SHARED_MAPS_TEXT_SIZE 4096U

/* An object is "much" if it is at least 1/4 of all that the process maps writable. A choice of ours: database
 * servers share most of their memory, ranks of a parallel program only their mailboxes. */
#define SHARED_MAPS_MUCH_PART 4U

typedef struct SharedObject {
    uint32_t major, minor;
    uint64_t inode;
    uint64_t bytes; /* mapped, over all mappings */
} SharedObject;

typedef struct SharedMaps {
    SharedObject objects[SHARED_MAPS_MAX]; /* ascending */
    uint32_t n;
    uint64_t writable_bytes; /* mapped writable, of any kind */
} SharedMaps;

/* Whether a mapping of this name is memory that exists only to be shared. A tmpfs mounted elsewhere looks
 * like any directory and is not recognized. */
static inline bool shared_maps_is_memory(const char *path)
{
    return scan_word(&path, "/memfd:") || scan_word(&path, "/SYSV") || scan_word(&path, "/dev/zero") ||
           scan_word(&path, "/dev/shm/") || scan_word(&path, "/anon_hugepage");
}

/* Adds one line, without its newline; private mappings and files are not remembered. 0, or -EINVAL if malformed. */
int shared_maps_add(SharedMaps *maps, const char *line);

/* Formats the objects as words, with `sign` after those that are much: "0:1:1024 0:1a:77+". Returns `buf`. */
char *shared_maps_format(const SharedMaps *maps, char sign, char buf[static SHARED_MAPS_TEXT_SIZE]);

/* Adds all lines of maps in `dir_fd`, the directory of a process. Returns 0 or -errno, after which *ret is
 * invalid; -ESRCH if the process has no memory (any more). */
int shared_maps_read(int dir_fd, SharedMaps *ret);
