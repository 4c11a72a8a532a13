/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The file of the journal: trusted or refused, appended to in whole records, replaced in one step. */

#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A larger journal is not ours: a compacted one holds some hundred bytes per process. */
#define JOURNAL_FILE_MAX (64UL << 20)

typedef struct JournalFile {
    char *path;
    const char *name; /* the part of `path` after the last slash */
    int dir_fd, fd;   /* -1: not open */
    off_t length;     /* of the whole records */
    bool tail;        /* there may be more behind them, to be cut off before the next append */
} JournalFile;

#define JOURNAL_FILE_NULL ((JournalFile){.dir_fd = -1, .fd = -1})

/* Opens or creates the file. Its contents decide whose masks are changed. So it must be a regular file with
 * one name, owned by this process's user and writable by no other, in a directory that only root and this
 * user can write to. 0, or -errno with a malloc'd sentence in *ret_error (NULL when out of memory); -EPERM:
 * not to be trusted. Without `change` it is opened for reading only: a file of root is then accepted, too,
 * and -ENOENT, without a sentence, means that there is none. */
int journal_file_open(const char *path, bool change, JournalFile *ret, char **ret_error);
void journal_file_done(JournalFile *file);

/* Reads the whole file, at most JOURNAL_FILE_MAX bytes. *ret_more says whether there were more. Malloc'd and
 * terminated. */
int journal_file_read(JournalFile *file, char **ret, size_t *ret_len, bool *ret_more);

/* Appends text in one write(2). 0, or -errno with the file as long as before. */
int journal_file_append(JournalFile *file, const char *text, size_t len);

/* Cuts the file to `text`, with which it must begin. That needs no space. 0, or -errno with the file
 * unchanged; -EBADMSG: it does not begin like that. */
int journal_file_cut(JournalFile *file, const char *text, size_t len);

/* Whether the file no longer holds what was written, because somebody else has truncated or removed it. */
bool journal_file_is_lost(const JournalFile *file);

/* Replaces the file with a new one holding this text, all or nothing. With `keep` the old file remains as
 * NAME.corrupt. 0, or -errno with the old file still in place and open. */
int journal_file_replace(JournalFile *file, const char *text, size_t len, bool keep);
