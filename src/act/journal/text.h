/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The lines of the journal: writing one, and taking lines into the index. Format: act/journal/journal.h. */

#include "act/journal/journal.h"

#include <stdio.h>

typedef enum JournalLine {
    JOURNAL_LINE_PROCESS,  /* JournalProcess */
    JOURNAL_LINE_THREAD,   /* JournalThread */
    JOURNAL_LINE_MASK,     /* JournalMask */
    JOURNAL_LINE_PASSAGE,  /* JournalPassage */
    JOURNAL_LINE_RELEASED, /* JournalProcess */
    JOURNAL_LINE_STRANGER, /* JournalStranger */
    JOURNAL_LINE_FENCE,    /* JournalFence */
    JOURNAL_LINE_FENCED,   /* JournalFenced */
    JOURNAL_LINE_UNFENCED, /* JournalFenced, without its set */
    JOURNAL_LINE_MAX,
    JOURNAL_LINE_INVALID = -EINVAL,
} JournalLine;

/* A mask that threads of a process got, and a set that a cgroup got. */
typedef struct JournalMask {
    pid_t pid;
    uint64_t start_ticks;
    hwloc_const_bitmap_t mask;
} JournalMask;

typedef struct JournalFenced {
    const char *name;
    bool memory;
    hwloc_const_bitmap_t set;
} JournalFenced;

/* Writes one line from the value of its kind. */
void journal_text_write(FILE *out, JournalLine line, const void *value);

/* Takes in whole lines just made by this program, without a header. 0, or -ENOMEM with some perhaps taken in. */
int journal_text_take(Journal *journal, const char *text, size_t len);

/* Of journal.c: takes one in at its place. 0 or -ENOMEM. */
int journal_add_stranger(Journal *journal, JournalStranger stranger);

/* The order of Journal.threads. */
int journal_thread_compare(const JournalThread *a, const JournalThread *b);
