/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* There is no fsync(2) here. The journal must outlive this process, not the machine: it lies on a tmpfs (/run), and a
 * crash of the machine ends every task that it describes. The next process reads whatever write(2) has accepted.
 *
 * A record is written with one call. If only part of it finds space, that part is cut off again. If even that fails,
 * the tail stays until it is cut off before the next append; a reader drops a last line without an end.
 *
 * A damaged journal is put aside in four steps, and a crash may follow each:
 *
 *   write journal.new --> unlink journal.corrupt --> link journal as journal.corrupt --> rename journal.new to journal
 *
 * Until the rename the damaged journal is the journal, and the next start begins anew: it unlinks a journal.new, and
 * the second name of the journal, which may have only one. */

#include "act/journal/file.h"

#include "base/parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int open_directory(const char *path, const char *name, int *ret, char **ret_error)
{
    CLEANUP_FREE char *parent = name == path ? strdup(".") : strndup(path, (size_t)(name - path));
    CLEANUP_CLOSE int fd = -1;
    struct stat st;

    if (!parent)
        return -ENOMEM;
    fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return format_error(ret_error, -errno, "%s: cannot open its directory: %s", path, strerror(errno));
    if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return format_error(
            ret_error, -EPERM,
            "%s: its directory is writable by others; expected owner %u and mode 0755 or stricter", path,
            geteuid());
    *ret = TAKE_FD(fd);
    return 0;
}

/* Removes the second name that a crash between link and rename has left, and updates *st. Any other second
 * name is somebody else's, and stays. */
static int drop_second_name(const JournalFile *file, struct stat *st)
{
    CLEANUP_FREE char *corrupt = NULL;
    struct stat other;

    if (asprintf(&corrupt, "%s.corrupt", file->name) < 0)
        return -ENOMEM;
    if (fstatat(file->dir_fd, corrupt, &other, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (other.st_dev != st->st_dev || other.st_ino != st->st_ino)
        return 0;
    return unlinkat(file->dir_fd, corrupt, 0) < 0 || fstat(file->fd, st) < 0 ? -errno : 0;
}

/* `change`: to be written, too. */
static int check_file(const char *path, const struct stat *st, bool change, char **ret_error)
{
    if (!S_ISREG(st->st_mode))
        return format_error(ret_error, -EPERM, "%s: not a regular file", path);
    if (st->st_uid != geteuid() && (change || st->st_uid != 0))
        return format_error(ret_error, -EPERM, "%s: owned by user %u; expected user %u", path, st->st_uid,
                            geteuid());
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return format_error(ret_error, -EPERM, "%s: mode %04o; expected a file that only its owner can write",
                            path, st->st_mode & 07777);
    if (st->st_nlink != 1 && change)
        return format_error(ret_error, -EPERM, "%s: has %lu hard links; expected one", path,
                            (unsigned long)st->st_nlink);
    return 0;
}

int journal_file_open(const char *path, bool change, JournalFile *ret, char **ret_error)
{
    const int flags = change ? O_RDWR | O_APPEND | O_CREAT : O_RDONLY;
    CLEANUP(journal_file_done) JournalFile file = JOURNAL_FILE_NULL;
    const char *slash;
    struct stat st;
    int r;

    *ret_error = NULL;
    file.path = strdup(path);
    if (!file.path)
        return -ENOMEM;
    slash = strrchr(file.path, '/');
    file.name = slash ? slash + 1 : file.path;

    r = open_directory(file.path, file.name, &file.dir_fd, ret_error);
    if (r < 0)
        return r;
    /* O_NONBLOCK: a FIFO must not block before it is found to be no regular file. */
    file.fd = openat(file.dir_fd, file.name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    /* As on a full disk: its contents can be restored. */
    if (file.fd < 0 && errno == EROFS)
        file.fd = openat(file.dir_fd, file.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file.fd < 0 && errno == ENOENT && !change)
        return -ENOENT;
    if (file.fd < 0 && errno == ELOOP)
        return format_error(ret_error, -EPERM, "%s: a symbolic link; expected a regular file", path);
    if (file.fd < 0 || fstat(file.fd, &st) < 0)
        return format_error(ret_error, -errno, "%s: cannot open it: %s", path, strerror(errno));
    r = change && st.st_nlink == 2 ? drop_second_name(&file, &st) : 0;
    if (r < 0)
        return r;
    r = check_file(path, &st, change, ret_error);
    if (r < 0)
        return r;

    *ret = (JournalFile){
        .path = TAKE_PTR(file.path),
        .name = file.name,
        .dir_fd = TAKE_FD(file.dir_fd),
        .fd = TAKE_FD(file.fd),
        .length = st.st_size,
    };
    return 0;
}

void journal_file_done(JournalFile *file)
{
    close_p(&file->fd);
    close_p(&file->dir_fd);
    free(file->path);
    *file = JOURNAL_FILE_NULL;
}

int journal_file_read(JournalFile *file, char **ret, size_t *ret_len, bool *ret_more)
{
    size_t want = MIN((size_t)file->length, JOURNAL_FILE_MAX), len = 0;
    CLEANUP_FREE char *text = malloc(want + 1);

    if (!text)
        return -ENOMEM;
    while (len < want) {
        ssize_t n = TEMP_FAILURE_RETRY(pread(file->fd, text + len, want - len, (off_t)len));

        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }

    text[len] = '\0';
    *ret = TAKE_PTR(text);
    *ret_len = len;
    *ret_more = (size_t)file->length > JOURNAL_FILE_MAX;
    return 0;
}

/* One call, so that a crash leaves at most one record in two pieces. */
static int write_whole(int fd, const char *text, size_t len)
{
    ssize_t n = write(fd, text, len);

    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -ENOSPC;
}

int journal_file_append(JournalFile *file, const char *text, size_t len)
{
    int r;

    if (file->fd < 0)
        return -EBADF;
    if ((size_t)file->length + len > JOURNAL_FILE_MAX)
        return -EFBIG;
    if (file->tail && ftruncate(file->fd, file->length) < 0)
        return -errno;
    file->tail = false;

    r = write_whole(file->fd, text, len);
    if (r < 0) {
        file->tail = ftruncate(file->fd, file->length) < 0;
        return r;
    }
    file->length += (off_t)len;
    return 0;
}

int journal_file_cut(JournalFile *file, const char *text, size_t len)
{
    CLEANUP_FREE char *begin = malloc(len);
    ssize_t n;

    if (!begin)
        return -ENOMEM;
    n = pread(file->fd, begin, len, 0);
    if (n < 0)
        return -errno;
    if ((size_t)n != len || memcmp(begin, text, len) != 0)
        return -EBADMSG;
    if (ftruncate(file->fd, (off_t)len) < 0)
        return -errno;
    file->length = (off_t)len;
    file->tail = false;
    return 0;
}

bool journal_file_is_lost(const JournalFile *file)
{
    struct stat st;

    return file->fd >= 0 && fstat(file->fd, &st) == 0 && (st.st_nlink == 0 || st.st_size < file->length);
}

/* Gives the present file its second name; not by rename(2), so that a journal exists at every moment. */
static int keep_corrupt(JournalFile *file, const char *name)
{
    if (unlinkat(file->dir_fd, name, 0) < 0 && errno != ENOENT)
        return -errno;
    return linkat(file->dir_fd, file->name, file->dir_fd, name, 0) < 0 ? -errno : 0;
}

int journal_file_replace(JournalFile *file, const char *text, size_t len, bool keep)
{
    CLEANUP_FREE char *fresh = NULL, *corrupt = NULL;
    CLEANUP_CLOSE int fd = -1;
    int r;

    if (asprintf(&fresh, "%s.new", file->name) < 0 || asprintf(&corrupt, "%s.corrupt", file->name) < 0)
        return -ENOMEM;
    if (len > JOURNAL_FILE_MAX)
        return -EFBIG;

    /* Left by an earlier crash. */
    if (unlinkat(file->dir_fd, fresh, 0) < 0 && errno != ENOENT)
        return -errno;
    fd = openat(file->dir_fd, fresh, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = write_whole(fd, text, len);
    if (r == 0 && keep)
        r = keep_corrupt(file, corrupt);
    if (r == 0 && renameat(file->dir_fd, fresh, file->dir_fd, file->name) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlinkat(file->dir_fd, fresh, 0);
        return r;
    }

    close_p(&file->fd);
    file->fd = TAKE_FD(fd);
    file->length = (off_t)len;
    file->tail = false;
    return 0;
}
