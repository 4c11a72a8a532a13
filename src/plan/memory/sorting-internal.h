/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files that sort memory by its users need of each other. */

#include "plan/memory/sorting.h"

/* A thread without a node stays on one that it was seen on in so many rounds at least. A choice of ours. */
#define SORTING_STAYS_ROUNDS 4U

/* Where the threads of a process live. */
typedef struct SortingPlace {
    const SortingLook *look;
    NodeIx only;            /* node of the home; NODE_NONE: it has several */
    const SortingSet *sets; /* Sorting.sets */
    size_t n_threads;       /* Sorting.n_threads */
    uint64_t largest;       /* node of the home, in permille of a CPU */
    bool few_apart;         /* what few share need not be dealt out */
} SortingPlace;

/* After sorting_sum_sets(). */
SortingPlace sorting_place_of(const Sorting *sorting, const SortingLook *look);
/* The node of a thread, or NODE_NONE. One without may stay on one, for what it uses `alone`. */
NodeIx sorting_node_of(void *place, pid_t tid, bool alone);

/* Whether a block rests (I7): it moved a while ago, or did not move though it was to several times. */
bool sorting_rests(const Sorting *sorting, const SortingLook *look, uint64_t block, NodeIx from, NodeIx to);
/* Returns 0 or -ENOMEM. */
int sorting_add_move(Sorting *sorting, const SortingMove *move);

/* Sorting.sets. Returns 0 or -ENOMEM. */
int sorting_sum_sets(Sorting *sorting, const SortingLook *look);
/* Adds moves: of what few share (P14), and of what many do (P17). Returns 0 or -ENOMEM. */
int sorting_add_few(Sorting *sorting, const SortingLook *look);
int sorting_stripe(Sorting *sorting, const SortingLook *look);
