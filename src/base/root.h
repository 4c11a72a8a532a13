/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reading files below a root directory handle, so that a captured /proc and /sys replay as a fixture. */

#include <dirent.h>
#include <stddef.h>
#include <sys/types.h>

/* Opens the directory all kernel paths are relative to; "/" is the live machine. Returns a descriptor
 * (O_CLOEXEC) or -errno. */
int root_open(const char *path);

/* Opens `path` (relative, no leading slash; one is skipped) below `root_fd` for reading. Returns a descriptor or
 * -errno; -ENOENT and -ESRCH both mean "it is gone or was never there". */
int root_open_file(int root_fd, const char *path);

/* Opens the directory `path`, relative to `root_fd`, for readdir(3). NULL, and errno, when that fails. */
DIR *root_open_directory(int root_fd, const char *path);

/* Reads up to `size - 1` bytes of an open file from its start into `buf` and terminates them. Returns the length
 * or -errno; -EFBIG when the file did not fit. Works on kept-open /proc descriptors (pread at 0); -ESRCH when
 * the task behind one is gone. */
ssize_t root_pread(int fd, char *buf, size_t size);

/* root_open_file() + root_pread() + close. */
ssize_t root_read(int root_fd, const char *path, char *buf, size_t size);

/* Reads a whole file of at most `max` bytes into a malloc'd, terminated buffer. Returns 0 or -errno; -EFBIG when
 * it is larger. */
int root_read_alloc(int root_fd, const char *path, size_t max, char **ret, size_t *ret_len);

/* The same from an open descriptor, from where it stands to its end. */
int root_read_fd(int fd, size_t max, char **ret, size_t *ret_len);
