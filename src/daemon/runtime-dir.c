/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The journal in this directory says which masks to set on which threads, and a daemon running as root
 * believes it. So the directory must not be one that somebody else made or may write to. */

#include "daemon/runtime-dir.h"

#include "base/parse.h"
#include "base/util.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

static int fail(int error, char **ret_error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(int error, char **ret_error, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if (vasprintf(ret_error, format, ap) < 0)
        *ret_error = NULL;
    va_end(ap);
    return error;
}

int runtime_dir_open(const char *path, char **ret_error)
{
    CLEANUP_CLOSE int fd = -1;
    struct stat st;

    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return fail(-errno, ret_error, "cannot make the runtime directory %s: %s", path, strerror(errno));

    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(-errno, ret_error, "cannot open the runtime directory %s: %s", path, strerror(errno));
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return fail(-EPERM, ret_error, "the runtime directory %s belongs to user %u, not to this one (%u)",
                    path, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return fail(-EPERM, ret_error, "the runtime directory %s may be written by others (mode %03o)", path,
                    (unsigned)(st.st_mode & 0777));
    return TAKE_FD(fd);
}

/* Whom to name: the holder writes its pid into the file, but may not have got there yet. */
static uint32_t read_holder(int fd)
{
    char buf[32];
    ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);
    uint32_t pid = 0;

    if (n <= 0)
        return 0;
    buf[n] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
    return parse_u32(buf, &pid) < 0 ? 0 : pid;
}

int runtime_dir_lock(int dir_fd, const char *path, char **ret_error)
{
    CLEANUP_CLOSE int fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0644);
    char buf[32];
    int len;

    if (fd < 0)
        return fail(-errno, ret_error, "cannot open %s/lock: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return fail(-errno, ret_error, "cannot lock %s/lock: %s", path, strerror(errno));
        return fail(-EBUSY, ret_error, "another numaplaced (pid %u) is running on %s", read_holder(fd), path);
    }

    /* The pid is only for that message: a full file system must not matter here. */
    len = snprintf(buf, sizeof(buf), "%d\n", (int)getpid());
    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, buf, (size_t)len, 0);
    return TAKE_FD(fd);
}
