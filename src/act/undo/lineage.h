/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From which entry a process that is not in the journal can have inherited a mask of ours. */

#include "act/internal.h"

/* Who is whose parent: a snapshot of all processes or, with n 0, read from the machine one by one. */
typedef struct Lineage {
    ActProcess *processes; /* ascending PID */
    uint8_t *reapers;      /* [n]: whether it adopts orphans, as far as known */
    size_t n;
    bool selected; /* consider only selected entries of the journal */
    bool member;   /* the process is in a group that a policy has placed */
    bool near;     /* consider only living ancestors */
} Lineage;

/* Lists all processes. 0 or -errno. */
int lineage_init(Act *act, Lineage *ret);
void lineage_done(Lineage *lineage);

/* The journal entry that a thread of this unjournalled process can have `mask` from, by the rule at the head
 * of lineage.c; with `mask` NULL any related entry. NULL: there is none, so the mask is its user's. */
JournalProcess *lineage_find(Act *act, const Lineage *lineage, const ActProcess *process, TaskKey task,
                             hwloc_const_bitmap_t mask);

/* What the absence of an entry means. */
typedef enum LineageVerdict {
    LINEAGE_UNTOLD,   /* undecided */
    LINEAGE_STRANGER, /* no entry can be of an ancestor */
    LINEAGE_VANISHED, /* a process that could tell ended meanwhile: ask again */
} LineageVerdict;

/* Does the same, and says why there is no entry. */
JournalProcess *lineage_judge(Act *act, const Lineage *lineage, const ActProcess *process, TaskKey task,
                              hwloc_const_bitmap_t mask, LineageVerdict *ret_verdict);

/* The journal entry of a managed process, one of whose threads has this mask. If it has none but inherited
 * the mask, it is entered with its ancestor's original. *ret is NULL if there is no entry after that. 0, or
 * -errno if it could not be recorded. */
int lineage_entry(Act *act, const ActProcess *process, TaskKey task, hwloc_const_bitmap_t mask,
                  JournalProcess **ret);

/* Enters a process as an heir of `from`, from which one of its threads has inherited `mask`. 0 or -errno. */
int lineage_adopt(Act *act, const ActProcess *process, TaskKey task, const JournalProcess *from,
                  hwloc_const_bitmap_t mask);

/* Does the same for all of its threads that have such a mask, if any; overwrites `have`. */
int lineage_adopt_process(Act *act, const Lineage *lineage, const ActProcess *process, hwloc_bitmap_t have);

/* Enters every living process that has inherited a mask from an entry, so that the entries of ended processes
 * can be dropped. */
int lineage_adopt_all(Act *act, const Lineage *lineage);
