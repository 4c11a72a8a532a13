/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The journal's file: trusted or refused, appended to in whole records, replaced in one step. */

#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A larger file is not ours: a compacted journal holds some hundred bytes per process. */
#define JOURNAL_FILE_MAX (64UL << 20)

typedef struct JournalFile {
    char *path;
    const char *name; /* the part of `path` after the last slash */
    int dir_fd, fd;   /* -1: not open */
    off_t length;     /* of the whole records */
    bool tail;        /* there may be more behind them, to be cut off before the next append */
} JournalFile;

#define JOURNAL_FILE_NULL ((JournalFile){.dir_fd = -1, .fd = -1})

/* Opens or creates the file. Its contents decide whose masks are changed, so it must be a regular file with
 * one name, owned by this process's user and writable by no other, in a directory that only root and this
 * user can write to. 0, or -errno with a malloc'd sentence in *ret_error (NULL when out of memory); -EPERM:
 * not to be trusted. Without `change` it is only read: a file of root's is trusted, too, and -ENOENT, without
 * a sentence, means that there is none. */
int journal_file_open(const char *path, bool change, JournalFile *ret, char **ret_error);
void journal_file_done(JournalFile *file);

/* Reads at most JOURNAL_FILE_MAX bytes; *ret_more: there were more. Malloc'd and terminated. */
int journal_file_read(JournalFile *file, char **ret, size_t *ret_len, bool *ret_more);

/* Appends text in one write(2). 0, or -errno and the length is as before. */
int journal_file_append(JournalFile *file, const char *text, size_t len);

/* Cuts the file to `text`, which it begins with; that needs no space. 0, or -errno and it is as before;
 * -EBADMSG: it begins otherwise. */
int journal_file_cut(JournalFile *file, const char *text, size_t len);

/* Whether somebody else has truncated or removed what was written. */
bool journal_file_is_lost(const JournalFile *file);

/* Replaces the file by one with this text, all or nothing; with `keep` the old one remains as NAME.corrupt.
 * 0, or -errno and the old file is still in place and open. */
int journal_file_replace(JournalFile *file, const char *text, size_t len, bool keep);
