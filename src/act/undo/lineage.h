/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From whom a process that is not in the journal can have inherited a mask of ours. */

#include "act/internal.h"

/* Who is whose parent: a list taken at one moment or, with n 0, asked of the machine one by one. */
typedef struct Lineage {
    ActProcess *processes; /* ascending pid */
    uint8_t *reapers;      /* [n]: whether it adopts orphans, as far as that was asked already */
    size_t n;
    bool selected; /* consider only journal entries that are selected */
    bool member;   /* the process is of a group that a policy has placed */
    bool near;     /* consider only ancestors that live */
} Lineage;

/* Takes the list of all processes. 0 or -errno. */
int lineage_init(Act *act, Lineage *ret);
void lineage_done(Lineage *lineage);

/* The journal entry that a thread of this unjournalled process can have `mask` from, by the rule at the head of
 * lineage.c; NULL when it can have it from none, so that the mask is its user's. With `mask` NULL any related
 * entry. */
JournalProcess *lineage_find(Act *act, const Lineage *lineage, const ActProcess *process, TaskKey task,
                             hwloc_const_bitmap_t mask);

/* What it means that there is no entry. */
typedef enum LineageVerdict {
    LINEAGE_UNTOLD,   /* nothing tells */
    LINEAGE_STRANGER, /* none can have been an ancestor */
    LINEAGE_VANISHED, /* somebody who would have told ended meanwhile: to be asked again */
} LineageVerdict;

/* The same, and why there is none. */
JournalProcess *lineage_judge(Act *act, const Lineage *lineage, const ActProcess *process, TaskKey task,
                              hwloc_const_bitmap_t mask, LineageVerdict *ret_verdict);

/* The journal entry of a managed process, one of whose threads has this mask; when it has none yet but inherited the
 * mask, it is entered with its ancestor's original. *ret is NULL when the mask is nothing of ours. 0, or -errno when
 * it could not be written down. */
int lineage_entry(Act *act, const ActProcess *process, TaskKey task, hwloc_const_bitmap_t mask,
                  JournalProcess **ret);

/* Enters a process one of whose threads has inherited `mask` from an entry, as its heir. 0 or -errno. */
int lineage_adopt(Act *act, const ActProcess *process, TaskKey task, const JournalProcess *from,
                  hwloc_const_bitmap_t mask);

/* The same with all of its threads that carry such a mask, if any; overwrites `have`. */
int lineage_adopt_process(Act *act, const Lineage *lineage, const ActProcess *process, hwloc_bitmap_t have);

/* Enters every living process that carries a mask inherited from a journalled one, so that the entries of ended
 * processes can be dropped. */
int lineage_adopt_all(Act *act, const Lineage *lineage);
