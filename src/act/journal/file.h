/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The file the journal is in: trusted or refused, appended to in whole records, replaced in one step. */

#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A journal of this size is not ours: a compacted one holds some hundred bytes per process. */
#define JOURNAL_FILE_MAX (64UL << 20)

typedef struct JournalFile {
    char *path;
    const char *name; /* the part of `path` after the last slash */
    int dir_fd, fd;   /* -1: not open */
    off_t length;     /* of the whole records */
    bool tail;        /* there may be more behind them, to be cut off before the next append */
} JournalFile;

#define JOURNAL_FILE_NULL ((JournalFile){.dir_fd = -1, .fd = -1})

/* Opens the file, or makes it. Only a regular file with one name, owned by this process's user and writable by no
 * other, in a directory that nobody but root and this user can write to, is accepted: its contents decide whose
 * masks get changed. 0, or -errno with a malloc'd sentence in *ret_error (NULL when memory is out); -EPERM: not to
 * be trusted. Without `change` it is opened to read only: -ENOENT, without a sentence, when there is none; and a file
 * of root's is believed by everybody. */
int journal_file_open(const char *path, bool change, JournalFile *ret, char **ret_error);
void journal_file_done(JournalFile *file);

/* Reads it whole: at most JOURNAL_FILE_MAX bytes, *ret_more says whether there were more. Malloc'd and terminated. */
int journal_file_read(JournalFile *file, char **ret, size_t *ret_len, bool *ret_more);

/* Appends text in one write(2). 0, or -errno and the file is as long as before. */
int journal_file_append(JournalFile *file, const char *text, size_t len);

/* Cuts it to the text that it begins with, which needs no room. 0, or -errno and it is as it was; -EBADMSG: it begins
 * otherwise. */
int journal_file_cut(JournalFile *file, const char *text, size_t len);

/* Whether it no longer holds what was written: somebody else has cut it short, or taken it away. */
bool journal_file_is_lost(const JournalFile *file);

/* Puts a new file with this text in its place, all or nothing; with `keep` the old one remains as NAME.corrupt. 0, or
 * -errno and the old file is still in place and open. */
int journal_file_replace(JournalFile *file, const char *text, size_t len, bool keep);
