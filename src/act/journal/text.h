/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The lines of the journal: writing one, and taking lines into the index. The format is described in
 * act/journal/journal.h. */

#include "act/journal/journal.h"

#include <stdio.h>

void journal_text_process(FILE *out, const JournalProcess *process);
void journal_text_thread(FILE *out, const JournalThread *thread);
void journal_text_mask(FILE *out, pid_t pid, uint64_t start_ticks, hwloc_const_bitmap_t mask);
void journal_text_passage(FILE *out, const JournalPassage *passage);
void journal_text_released(FILE *out, const JournalProcess *process);
void journal_text_stranger(FILE *out, const JournalStranger *stranger);
void journal_text_fence(FILE *out, const JournalFence *fence);
void journal_text_fenced(FILE *out, const char *name, bool memory, hwloc_const_bitmap_t set);
void journal_text_unfenced(FILE *out, const char *name, bool memory);

/* Takes in whole lines that this program made just now (no header). 0 or -ENOMEM; some may be taken in then. */
int journal_text_take(Journal *journal, const char *text, size_t len);

/* Takes one in, at its place; of journal.c. 0 or -ENOMEM. */
int journal_add_stranger(Journal *journal, JournalStranger stranger);

/* Order of Journal.threads. */
int journal_thread_compare(const JournalThread *a, const JournalThread *b);
