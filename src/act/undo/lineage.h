/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From which entry a process that is not in the journal can have inherited a mask of ours. */

#include "act/internal.h"

/* Parents and children: a snapshot of all processes or, with n 0, the machine, read one process at a time. */
typedef struct Lineage {
    ActProcess *processes; /* ascending PID */
    uint8_t *reapers;      /* [n]: whether it adopts orphans, if known */
    size_t n;
    bool selected; /* consider only selected entries */
    bool member;   /* a policy has placed the process's group */
    bool near;     /* consider only living ancestors */
} Lineage;

/* Lists all processes. 0 or -errno. */
int lineage_init(Act *act, Lineage *ret);
void lineage_done(Lineage *lineage);

/* The entry that a thread of a process without one can have `mask` from, by the rule in lineage.c; with
 * `mask` NULL any related entry. NULL: none, so the mask is its user's. */
JournalProcess *lineage_find(Act *act, const Lineage *lineage, const ActProcess *process, TaskKey task,
                             hwloc_const_bitmap_t mask);

/* What it means that there is no entry. */
typedef enum LineageVerdict {
    LINEAGE_UNTOLD,   /* undecided */
    LINEAGE_STRANGER, /* no ancestor can be ours */
    LINEAGE_VANISHED, /* a process that could tell ended meanwhile: ask again */
} LineageVerdict;

/* The same, and why there is none. */
JournalProcess *lineage_judge(Act *act, const Lineage *lineage, const ActProcess *process, TaskKey task,
                              hwloc_const_bitmap_t mask, LineageVerdict *ret_verdict);

/* The entry of a managed process with a thread that has this mask. If there is none but the mask is
 * inherited, it is made with the ancestor's original. *ret is NULL if there still is none. 0, or -errno if
 * that could not be recorded. */
int lineage_entry(Act *act, const ActProcess *process, TaskKey task, hwloc_const_bitmap_t mask,
                  JournalProcess **ret);

/* Enters a process as an heir of `from`, from which its thread has inherited `mask`. 0 or -errno. */
int lineage_adopt(Act *act, const ActProcess *process, TaskKey task, const JournalProcess *from,
                  hwloc_const_bitmap_t mask);

/* The same for all threads of the process with such a mask, if any; overwrites `have`. */
int lineage_adopt_process(Act *act, const Lineage *lineage, const ActProcess *process, hwloc_bitmap_t have);

/* Enters all living processes with a mask inherited from an entry, so that entries of ended processes can be
 * dropped. */
int lineage_adopt_all(Act *act, const Lineage *lineage);
