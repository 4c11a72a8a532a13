/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the files that sort memory by its users. */

#include "plan/memory/sorting.h"

/* A thread without a node stays on one where it was seen in at least this many rounds. A choice of ours. */
#define SORTING_STAYS_ROUNDS 4U

/* Where the threads of a process live. */
typedef struct SortingPlace {
    const SortingLook *look;
    NodeIx only;            /* the only node of the home; NODE_NONE: there are several */
    const SortingSet *sets; /* Sorting.sets */
    size_t n_threads;       /* Sorting.n_threads */
    uint64_t largest;       /* capacity of the largest node of the home, permille of one CPU */
    bool few_apart;         /* memory that few share is not interleaved */
} SortingPlace;

/* Call after sorting_sum_sets(). */
SortingPlace sorting_place_of(const Sorting *sorting, const SortingLook *look);
/* Returns the node a thread lives on, or NODE_NONE. For memory it uses `alone`, one without a home node may
 * live where it stays. */
NodeIx sorting_node_of(void *place, pid_t tid, bool alone);

/* Whether a block rests (I7): it moved recently, would return to where it came from, or failed to move
 * several times. */
bool sorting_rests(const Sorting *sorting, const SortingLook *look, uint64_t block, NodeIx from, NodeIx to);
/* Returns 0 or -ENOMEM. */
int sorting_add_move(Sorting *sorting, const SortingMove *move);

/* Fills in Sorting.sets: what each set wants and where its threads live. Returns 0 or -ENOMEM. */
int sorting_sum_sets(Sorting *sorting, const SortingLook *look);
/* Add moves of memory that few threads (P14) or many (P17) share. Return 0 or -ENOMEM. */
int sorting_add_few(Sorting *sorting, const SortingLook *look);
int sorting_stripe(Sorting *sorting, const SortingLook *look);
