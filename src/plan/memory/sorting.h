/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sorts the memory of one process by its users (P13, P17, P18): from rounds of samples to migration requests.
 *
 * A round that counted is judged block by block (plan/memory/blocks.h). Memory that moves to users is in one request
 * for all nodes, interleaved memory in another. The next judgement comes only when these are over: a block would count
 * as tried in vain while it waits. Memory that moved rests for MinResidencySec=, and returns to where it was after
 * five seconds at the earliest, and each time after twice as long, up to PingPongSec= (I7). */

#include "plan/ablation.h"
#include "plan/buddies.h"
#include "plan/memory/blocks.h"
#include "plan/plan.h"

/* After so many judgements in a row that moved nothing, its memory counts as sorted. */
#define SORTING_QUIET 3U

typedef struct SortingMove {
    PlanRange range;
    NodeIx from; /* where it lies; NODE_NONE: not known */
    NodeIx to;   /* NODE_NONE: striped over the nodes of its home */
} SortingMove;

typedef struct SortingPast {
    uint64_t block; /* address / TOUCHES_BLOCK_BYTES */
    NodeIx from;
    uint64_t usec;
    uint32_t n_tries; /* moves from there in a row */
    uint32_t n_moves; /* moves from anywhere, none of which was forgotten before the next; tries are one */
} SortingPast;

/* Threads that share memory. */
typedef struct SortingSet {
    size_t n;        /* threads that have not ended */
    uint64_t demand; /* permille of a CPU */
    uint64_t nodes;  /* where most of them live (NodeIx, a bit each), if all live on nodes, and on several; else 0 */
    bool is_free;    /* some live on no node, or it may yet prove to be none */
} SortingSet;

typedef struct Sorting {
    Blocks blocks;
    SortingMove *moves; /* to be ordered, ascending */
    size_t n_moves, moves_capacity;
    SortingPast *past; /* ascending block; the last move of each */
    size_t n_past, past_capacity;
    PlanRange *ranges; /* of the order that was asked for last */
    size_t n_ranges, ranges_capacity;
    bool ranges_striped;
    hwloc_bitmap_t home, from, to; /* NodeIx; home: with memory */
    uint64_t *sums;                /* [n_nodes] */
    SortingSet *sets; /* by place of the first thread in Touches */
    size_t sets_capacity;
    size_t n_threads; /* of all sets */
    uint32_t *lives;  /* [sets * n_nodes]: of how many threads that is the node */
    size_t lives_capacity;
    uint32_t n_nodes;
    uint32_t n_quiet;
    bool striping;      /* what is shared is to be striped */
    bool on_one;        /* its threads ran on one node, */
    uint32_t one_round; /* last as of this round of its touches */
    uint64_t n_resting; /* blocks that were to move, and rest (I7); since the start */
} Sorting;

/* Returns 0 or -ENOMEM. */
int sorting_init(Sorting *sorting, uint32_t n_nodes);
void sorting_done(Sorting *sorting);

/* What is looked at. The World is not changed. */
typedef struct SortingLook {
    World *world;
    const Process *process; /* in it */
    const Policy *policy;
    const Touches *touches; /* after a round that was counted */
    const MemoryRegions *regions;
} SortingLook;

/* Judges a round. To be called when there is nothing to be ordered any more and no order is under way. 0 or -ENOMEM,
 * and nothing is to be moved. */
int sorting_judge(Sorting *sorting, const SortingLook *look);

/* The next order: what goes to users, or is striped, whichever is more. Returns whether there is one; it borrows
 * from `sorting`. */
bool sorting_next(Sorting *sorting, const Process *process, PlanUse *ret);

/* What became of it: it was taken; or it was not, and nothing that was judged is to be ordered any more. 0 or
 * -ENOMEM: then some of what moves now rests no longer than others. */
int sorting_taken(Sorting *sorting, uint64_t now_usec);
void sorting_refused(Sorting *sorting);

/* Of these nodes the one that a striped block goes to, by its address, as the mover does it (MoverOrder.to_nodes). */
NodeIx sorting_stripe_node(hwloc_const_bitmap_t nodes, uint64_t address);

/* By block, then time; for the implementation. */
int sorting_compare_past(const void *a, const void *b);
