/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads files below a root directory handle, so that a captured /proc and /sys replay as a fixture. */

#include <dirent.h>
#include <hwloc/bitmap.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Opens the directory to which all kernel paths are relative; "/" is the live machine. Returns a descriptor
 * (O_CLOEXEC) or -errno. */
int root_open(const char *path);

/* Opens `path` below `root_fd` for reading. `path` is relative; leading slashes are skipped. Returns a
 * descriptor or -errno; -ENOENT and -ESRCH both mean that the file is gone or never existed. */
int root_open_file(int root_fd, const char *path);

/* Opens the directory `path`, relative to `root_fd`, for readdir(3). NULL, with errno set, on failure. */
DIR *root_open_directory(int root_fd, const char *path);

/* Reads up to `size - 1` bytes of an open file from its start into `buf` and terminates them with a NUL.
 * Returns the length or -errno; -EFBIG if the file does not fit. Works on /proc descriptors that are kept
 * open (pread at 0); returns -ESRCH when the task behind one is gone. */
ssize_t root_pread(int fd, char *buf, size_t size);

/* root_open_file() + root_pread() + close. */
ssize_t root_read(int root_fd, const char *path, char *buf, size_t size);

/* Reads a list of CPUs or nodes from an open file, or returns `fd` if that is -errno. Returns 0, or -errno with `ret`
 * unchanged. */
int root_pread_list(int fd, hwloc_bitmap_t ret);

/* root_open_file() + root_pread_list() + close. */
int root_read_list(int root_fd, const char *path, hwloc_bitmap_t ret);

/* Whether there is a file or directory `path` below the root. */
bool root_has(int root_fd, const char *path);

/* Reads a whole file of at most `max` bytes into a malloc'd, NUL-terminated buffer. Returns 0 or -errno;
 * -EFBIG if it is larger. */
int root_read_alloc(int root_fd, const char *path, size_t max, char **ret, size_t *ret_len);

/* Like root_read_alloc(), but reads an open descriptor from its current offset to the end. */
int root_read_fd(int fd, size_t max, char **ret, size_t *ret_len);

/* Like root_read_alloc(), but reads a file that the user names, and waits for what a pipe still gets. A FIFO that
 * nobody has open for writing reads as empty. */
int root_read_path(const char *path, size_t max, char **ret, size_t *ret_len);
