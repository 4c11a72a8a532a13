/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A record of plans that can be computed again: on another machine, with another version, under a debugger. Each entry
 * holds the input of a plan (the World, the limits, the policies, and the memory uses) and its text. */

#include "plan/plan.h"

#include <stdio.h>

/* Bytes of a whole transcript, written or read. A plan for a hundred sleeping threads takes 38 KiB. */
#define TRANSCRIPT_MAX       (256UL << 20)
#define TRANSCRIPT_ENTRY_MAX (128UL << 20) /* the text of the largest World */

typedef struct TranscriptEntry {
    const World *world; /* as it was when the plan was made */
    const PolicySet *policies;
    const PlanLimits *limits;
    bool by_use; /* plan_follow_use(), else plan_compute() */
    const PlanUse *uses;
    size_t n_uses;
    const Plan *plan;
} TranscriptEntry;

/* Writes one entry. *policies is the text of the policies last written (NULL: none yet; malloc'd). They are
 * written again when they have changed. Errors of `out` stay in the stream, see ferror(). 0 or -ENOMEM. */
int transcript_write(FILE *out, char **policies, const TranscriptEntry *entry);

typedef struct TranscriptReader {
    const char *begin, *at, *end; /* borrowed */
    size_t n;                     /* entries read */
    PolicySet *policies;
    char *error;
} TranscriptReader;

typedef struct TranscriptPlan {
    uint64_t tick;
    bool by_use;
    char *recorded, *now; /* texts, malloc'd */
} TranscriptPlan;

TranscriptReader transcript_reader(const char *text, size_t len);
void transcript_reader_done(TranscriptReader *reader);

/* Reads the next entry and plans anew. Returns 1 with *ret, which transcript_plan_done() frees; 0 at the end;
 * -EINVAL with a sentence in reader->error; or -ENOMEM. */
int transcript_next(TranscriptReader *reader, TranscriptPlan *ret);
void transcript_plan_done(TranscriptPlan *plan);

/* Reads the next entry without planning anew: the World, the limits, and the recorded text of the plan,
 * malloc'd. Afterwards reader->policies has its policies. Returns as transcript_next(). */
int transcript_next_world(TranscriptReader *reader, World **ret_world, PlanLimits *ret_limits,
                          char **ret_plan);
