/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The journal in this directory says which masks to set on which threads, and a daemon that runs as root
 * believes it. So no other user may have created the directory or be able to write to it. */

#include "daemon/runtime-dir.h"

#include "base/parse.h"
#include "base/util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define HOST_LOCK      "host.lock"
#define HOST_TEXT_SIZE 8192U /* two of the longest paths; further directories are forgotten */

/* Says why the directory could not be opened. For a link, the kernel only says that it is not a directory. */
static int fail_open(const char *path, int error, char **ret_error)
{
    struct stat st;

    if (error == -ENOTDIR && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return format_error(ret_error, error, "the runtime directory %s is a link: expected a directory",
                            path);
    return format_error(ret_error, error, "cannot open the runtime directory %s: %s", path, strerror(-error));
}

int runtime_dir_find(const char *path, char **ret_error)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail_open(path, -errno, ret_error);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return format_error(ret_error, -EPERM,
                            "the runtime directory %s belongs to user %u; expected user %u", path,
                            (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return format_error(ret_error, -EPERM, "the runtime directory %s is writable by others (mode %03o)",
                            path, (unsigned)(st.st_mode & 0777));
    return TAKE_FD(fd);
}

int runtime_dir_open(const char *path, char **ret_error)
{
    int r;

    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return format_error(ret_error, -errno, "cannot create the runtime directory %s: %s", path,
                            strerror(errno));
    r = runtime_dir_find(path, ret_error);
    if (r == -ENOENT)
        return format_error(ret_error, r, "cannot open the runtime directory %s: %s", path, strerror(-r));
    return r;
}

/* The holder of a lock, for messages. It writes its PID and its runtime directory into the file. Before that,
 * and with host_lock_pass(), the file has those of a process that has ended. */
typedef struct Holder {
    uint32_t pid; /* 0: not known */
    char directory[256];
} Holder;

static Holder read_holder(int fd)
{
    char buf[32 + sizeof(((Holder *)0)->directory)], *line;
    ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);
    Holder holder = {0};

    if (n <= 0)
        return holder;
    buf[n] = '\0';
    line = buf + strcspn(buf, "\n");
    if (!*line)
        return holder;
    *line++ = '\0';
    if (parse_u32(buf, &holder.pid) < 0 || (kill((pid_t)holder.pid, 0) < 0 && errno == ESRCH))
        return (Holder){0};
    line[strcspn(line, "\n")] = '\0';
    (void)snprintf(holder.directory, sizeof(holder.directory), "%s", line);
    return holder;
}

/* Only root or this user may open the file: opening it is enough to hold its lock, and to keep every daemon
 * from starting. */
static int open_lock(int dir_fd, const char *name, int flags)
{
    CLEANUP_CLOSE int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | flags, 0600);
    struct stat st;

    if (fd < 0 && errno == EROFS)
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if ((st.st_mode & 077) && fchmod(fd, 0600) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* `paths`: one a line. A full file system must not matter here: what is there is overwritten, and cut after that. */
static void write_holder(int fd, const char *paths)
{
    CLEANUP_FREE char *text = format_text("%d\n%s\n", (int)getpid(), paths);
    size_t len = text ? strlen(text) : 0;

    if (len > 0 && pwrite(fd, text, len, 0) == (ssize_t)len)
        (void)!ftruncate(fd, (off_t)len);
}

int runtime_dir_lock(int dir_fd, const char *path, char **ret_error)
{
    CLEANUP_CLOSE int fd = open_lock(dir_fd, "lock", O_CREAT);

    if (fd < 0)
        return format_error(ret_error, fd, "cannot open %s/lock: %s", path, strerror(-fd));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return format_error(ret_error, -errno, "cannot lock %s/lock: %s", path, strerror(errno));
        return format_error(ret_error, -EBUSY, "another numaplaced (pid %u) is running on %s",
                            read_holder(fd).pid, path);
    }
    write_holder(fd, path);
    return TAKE_FD(fd);
}

static int host_lock(int dir_fd, const char *standard, int flags, int operation, char **ret_error)
{
    CLEANUP_CLOSE int fd = open_lock(dir_fd, HOST_LOCK, flags);
    Holder holder;

    if (fd == -ENOENT)
        return fd;
    if (fd < 0)
        return format_error(ret_error, fd, "cannot open %s/" HOST_LOCK ": %s", standard, strerror(-fd));
    if (flock(fd, operation | LOCK_NB) == 0)
        return TAKE_FD(fd);
    if (errno != EWOULDBLOCK)
        return format_error(ret_error, -errno, "cannot lock %s/" HOST_LOCK ": %s", standard, strerror(errno));
    holder = read_holder(fd);
    if (holder.pid == 0)
        return format_error(ret_error, -EBUSY,
                            "another numaplaced places tasks on this host, or puts them back");
    return format_error(ret_error, -EBUSY,
                        "another numaplaced (pid %u, on %s) places tasks on this host: only one may",
                        holder.pid, holder.directory);
}

int host_lock_take(const char *standard, char **ret_error)
{
    CLEANUP_CLOSE int dir_fd = runtime_dir_open(standard, ret_error);

    return dir_fd < 0 ? dir_fd : host_lock(dir_fd, standard, O_CREAT, LOCK_EX, ret_error);
}

char *host_lock_last(int fd)
{
    char buf[HOST_TEXT_SIZE], *end;
    ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

    if (n < 0)
        return NULL;
    buf[n] = '\0';
    end = strrchr(buf, '\n'); /* of a line cut off, nothing is to be believed */
    if (!end)
        return strdup("");
    *end = '\0';
    end = strchr(buf, '\n');
    return strdup(end ? end + 1 : "");
}

void host_lock_sign(int fd, const char *paths)
{
    write_holder(fd, paths);
}

int host_lock_pass(const char *standard, char **ret_error)
{
    CLEANUP_CLOSE int dir_fd = runtime_dir_find(standard, ret_error);

    return dir_fd < 0 ? dir_fd : host_lock(dir_fd, standard, 0, LOCK_SH, ret_error);
}
