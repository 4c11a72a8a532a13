/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sorts the memory of one process by its users (P13, P17, P18): from rounds of samples to migration requests.
 *
 * Each round that counted is judged block by block (plan/memory/blocks.h). Memory that moves to its users is in
 * one request for all nodes, interleaved memory in another. The next judgement waits until both are over: a block
 * that waits would count as tried in vain. Memory that moved rests for MinResidencySec=. It returns to where it
 * was after five seconds at the earliest, and each time after twice as long, up to PingPongSec= (I7). */

#include "plan/ablation.h"
#include "plan/buddies.h"
#include "plan/memory/blocks.h"
#include "plan/memory/follow.h"
#include "plan/plan.h"

/* Judgements in a row without a move after which the memory counts as sorted. */
#define SORTING_QUIET 3U

typedef struct SortingMove {
    PlanRange range;
    NodeIx from; /* where it lies; NODE_NONE: not known */
    NodeIx to;   /* NODE_NONE: interleaved over the home */
    bool judged; /* by blocks_judge(), which counts attempts */
} SortingMove;

typedef struct SortingPast {
    uint64_t block; /* address / TOUCHES_BLOCK_BYTES */
    NodeIx from;
    uint64_t usec;
    uint32_t n_tries; /* moves from there in a row */
    uint32_t n_moves; /* moves from any node since the last pause long enough to forget them; tries count
                         once */
} SortingPast;

/* Threads that share memory. */
typedef struct SortingSet {
    size_t n;        /* threads that have not ended */
    uint64_t demand; /* permille of a CPU */
    uint64_t nodes;  /* where most live (NodeIx, a bit each), if all live on nodes, and on several; else 0 */
    bool is_free;    /* some live on no node, or the set is not confirmed yet */
} SortingSet;

typedef struct Sorting {
    Blocks blocks;
    SortingMove *moves; /* yet to be requested, ascending */
    size_t n_moves, moves_capacity;
    SortingPast *past; /* last move of each block, ascending */
    size_t n_past, past_capacity;
    PlanRange *ranges; /* of the request returned last */
    size_t n_ranges, ranges_capacity;
    bool ranges_striped;
    PlanRange *tried; /* judged memory of the request accepted last, until that is over */
    size_t n_tried, tried_capacity;
    hwloc_bitmap_t home, from, to; /* NodeIx; home: nodes with memory */
    uint64_t *sums;                /* [n_nodes] */
    SortingSet *sets;              /* by place of the set's first thread in Touches */
    size_t sets_capacity;
    size_t n_threads; /* of all sets */
    uint32_t *lives;  /* [sets * n_nodes]: threads that live there */
    size_t lives_capacity;
    uint32_t n_nodes;
    uint32_t n_quiet;
    bool striping;      /* shared memory is being interleaved */
    bool on_one;        /* its threads ran on one node, */
    uint32_t one_round; /* last as of this round of its touches */
    uint64_t n_resting; /* moves prevented by rest (I7), since the start */
} Sorting;

/* Returns 0 or -ENOMEM. */
int sorting_init(Sorting *sorting, uint32_t n_nodes);
void sorting_done(Sorting *sorting);

/* Input of a judgement; not changed. */
typedef struct SortingLook {
    World *world;
    const Process *process; /* in it */
    const Policy *policy;
    const Touches *touches; /* after a round that counted */
    const MemoryRegions *regions;
} SortingLook;

/* Judges a round. Call with nothing left to request and no request in flight. Returns 0; or -ENOMEM, and
 * nothing is to be moved. */
int sorting_judge(Sorting *sorting, const SortingLook *look);

/* Returns whether there is another request, for memory that goes to users or is interleaved, whichever is
 * more. *ret borrows from `sorting`. */
bool sorting_next(Sorting *sorting, const Process *process, PlanUse *ret);

/* sorting_taken(): the request was accepted. Returns 0; or -ENOMEM, and some memory that moves now will not
 * rest. sorting_refused(): it was not, and all moves of the judgement are dropped. */
int sorting_taken(Sorting *sorting, uint64_t now_usec);
void sorting_refused(Sorting *sorting);

/* A request for memory of the process is over. Unless it looked at everything, or cannot be carried out, what did
 * not move was not tried. */
void sorting_over(Sorting *sorting, FollowEnd end);

/* The node of `nodes` for an interleaved block, by its address, as the mover computes it (MoverOrder.to_nodes). */
NodeIx sorting_stripe_node(hwloc_const_bitmap_t nodes, uint64_t address);

/* Orders by block, then time; for the implementation. */
int sorting_compare_past(const void *a, const void *b);
