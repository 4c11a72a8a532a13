/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/root.h"

#include "base/parse.h"
#include "base/util.h"

#include <fcntl.h>

/* A list of 8192 CPUs, every second one, of at most five characters each. */
#define LIST_SIZE 24576U

int root_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int root_open_file(int root_fd, const char *path)
{
    int fd;

    while (*path == '/')
        path++;
    fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

DIR *root_open_directory(int root_fd, const char *path)
{
    CLEANUP_CLOSE int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir)
        fd = -1;
    return dir;
}

ssize_t root_pread(int fd, char *buf, size_t size)
{
    size_t len = 0;

    assert(size > 1);
    for (;;) {
        ssize_t n = TEMP_FAILURE_RETRY(pread(fd, buf + len, size - len, (off_t)len));

        if (n < 0)
            return -errno;
        len += (size_t)n;
        if (len == size)
            return -EFBIG;
        /* Reading until end of file would cost another system call per file and tick. The kernel returns as many whole
         * records as fit in a page, and the records of the files read here are far shorter than half a page. So a read
         * of less than half a page returned the whole file. Longer files are read until end of file. */
        if (n == 0 || len < 2048)
            break;
    }

    buf[len] = '\0';
    return (ssize_t)len;
}

ssize_t root_read(int root_fd, const char *path, char *buf, size_t size)
{
    CLEANUP_CLOSE int fd = root_open_file(root_fd, path);

    if (fd < 0)
        return fd;
    return root_pread(fd, buf, size);
}

int root_pread_list(int fd, hwloc_bitmap_t ret)
{
    char list[LIST_SIZE];
    ssize_t n = fd < 0 ? fd : root_pread(fd, list, sizeof(list));

    return n < 0 ? (int)n : parse_list(list, PARSE_CPU_MAX, ret);
}

int root_read_list(int root_fd, const char *path, hwloc_bitmap_t ret)
{
    CLEANUP_CLOSE int fd = root_open_file(root_fd, path);

    return root_pread_list(fd, ret);
}

bool root_has(int root_fd, const char *path)
{
    return faccessat(root_fd, path, F_OK, 0) == 0;
}

int root_read_fd(int fd, size_t max, char **ret, size_t *ret_len)
{
    CLEANUP_FREE char *buf = NULL;
    size_t capacity = 0, len = 0;

    for (;;) {
        ssize_t n;

        if (!GROW(buf, capacity, len + 4096 + 1))
            return -ENOMEM;
        n = TEMP_FAILURE_RETRY(read(fd, buf + len, capacity - len - 1));
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
        if (len > max)
            return -EFBIG;
    }

    buf[len] = '\0';
    *ret = TAKE_PTR(buf);
    *ret_len = len;
    return 0;
}

int root_read_alloc(int root_fd, const char *path, size_t max, char **ret, size_t *ret_len)
{
    CLEANUP_CLOSE int fd = root_open_file(root_fd, path);

    if (fd < 0)
        return fd;
    return root_read_fd(fd, max, ret, ret_len);
}

int root_read_path(const char *path, size_t max, char **ret, size_t *ret_len)
{
    /* O_NONBLOCK: does not wait until a FIFO has a writer. */
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return -errno;
    return root_read_fd(fd, max, ret, ret_len);
}
