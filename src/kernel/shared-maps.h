/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/PID/maps: which shared memory a process maps, to tell who works together (P12). */

#include "base/scan.h"

#include <stdint.h>

/* Of so many objects of one process it is remembered that it maps them: those with the lowest device and inode. */
#define SHARED_MAPS_MAX 64U

/* Room for all of them as text. */
#define SHARED_MAPS_TEXT_SIZE 4096U

/* What is at least such a part of all that a process may write is much of it. A choice of ours: database servers share
 * most of what they have, and ranks of a parallel program their mailboxes. */
#define SHARED_MAPS_MUCH_PART 4U

typedef struct SharedObject {
    uint32_t major, minor;
    uint64_t inode;
    uint64_t bytes; /* mapped, all mappings together */
} SharedObject;

typedef struct SharedMaps {
    SharedObject objects[SHARED_MAPS_MAX]; /* ascending */
    uint32_t n;
    uint64_t writable_bytes; /* mapped, of any kind */
} SharedMaps;

/* Whether a mapping of this name is of memory that exists only to be shared. A tmpfs elsewhere looks like any
 * directory. */
static inline bool shared_maps_is_memory(const char *path)
{
    return scan_word(&path, "/memfd:") || scan_word(&path, "/SYSV") || scan_word(&path, "/dev/zero") ||
           scan_word(&path, "/dev/shm/") || scan_word(&path, "/anon_hugepage");
}

/* Takes in one line, without its newline; private mappings and files do not count. Returns 0, or -EINVAL when it is
 * not of the form. */
int shared_maps_add(SharedMaps *maps, const char *line);

/* Writes them as words, `sign` behind what is much of all it has: "0:1:1024 0:1a:77+". Returns `buf`. */
char *shared_maps_format(const SharedMaps *maps, char sign, char buf[static SHARED_MAPS_TEXT_SIZE]);

/* Adds all of maps below `dir_fd`, the directory of a process. Returns 0; -errno, and *ret means nothing then; -ESRCH
 * when the process has no memory (any more). */
int shared_maps_read(int dir_fd, SharedMaps *ret);
