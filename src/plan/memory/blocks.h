/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which memory of a process goes to its users: the page filter (P13) over blocks (P18).
 * Source: should_numa_migrate_memory() of Linux and numa/core v18 (Ingo Molnar, 2012), restated for samples of which it
 * is known whose they are.
 *
 * Judged is what is known after a round of samples (world/touches.h) was counted: for each block whether it moves, and
 * why not. Blocks that move become ranges of a request to the mover. That includes blocks of a full node, which the
 * mover refuses. */

#include "plan/memory/tries.h"
#include "world/regions.h"
#include "world/touches.h"

#include <hwloc/bitmap.h>

/* After so many rounds without another thread a block is private whatever the others are: a weight of TOUCHES_ROUND,
 * halved in each round, is gone. Of two threads that share a block each is the only one there so often once in five
 * hundred times. */
#define BLOCKS_SURE_ROUNDS 10U

/* A block that was to move so often, and is elsewhere still, is let be. */
#define BLOCKS_TRIES 3U

typedef enum BlocksVerdict {
    BLOCKS_MOVE,
    BLOCKS_LOCAL,   /* it lies where it is used */
    BLOCKS_UNKNOWN, /* it is not known where it lies, or not for long enough who uses it (TwoStage) */
    BLOCKS_MIXED,   /* used from several nodes */
    BLOCKS_BALANCED, /* shared by threads of one node, where so much is shared that this may be chance, and it would
                          not match memory and use better by a quarter */
    BLOCKS_OUTSIDE, /* used from a node that its memory may not go to */

    /* Refused by the words of the mover, which would refuse it too. Locked memory moves. */
    BLOCKS_FILE,
    BLOCKS_HUGETLB,
    BLOCKS_DEVICE,
    BLOCKS_BUSY,  /* pinned, as far as one can see: it did not go */
    BLOCKS_BOUND, /* a memory policy chose its nodes; the mover does not look at those */
    BLOCKS_GONE,  /* not in any region: unmapped since it was touched */
    BLOCKS_VERDICT_MAX,
    BLOCKS_VERDICT_INVALID = -EINVAL,
} BlocksVerdict;

typedef struct BlocksRules {
    bool two_stage;                /* TwoStage */
    bool any_balance, any_tries;   /* without the rules of balance and of tries (plan/ablation.h) */
    hwloc_const_bitmap_t to_nodes; /* NodeIx; nodes of its home, those with memory */
} BlocksRules;

typedef struct BlocksRange {
    uint64_t start, end; /* addresses, in one region each */
    NodeIx to;
} BlocksRange;

/* Of one process. */
typedef struct Blocks {
    /* Of the last round. */
    BlocksRange *moves; /* ascending, neighbours of one destination joined */
    size_t n_moves, moves_capacity;
    uint64_t n[BLOCKS_VERDICT_MAX]; /* blocks judged, since the start */

    /* Private to blocks.c. */
    uint32_t n_nodes;
    uint64_t *votes;        /* [n_nodes] */
    uint64_t *use, *memory; /* [n_nodes]: of all blocks: from where they are used, and where they lie */
    Tries tries;            /* moves of blocks that are elsewhere still */
} Blocks;

/* Returns 0 or -ENOMEM. */
int blocks_init(Blocks *blocks, uint32_t n_nodes);
void blocks_done(Blocks *blocks);

/* On which node a thread lives; NODE_NONE: not known. For what it uses alone it is enough that it has run on one node
 * for a while. */
typedef struct BlocksThreads {
    NodeIx (*node_of)(void *userdata, pid_t tid, bool alone);
    void *userdata;
} BlocksThreads;

/* Judges what is known after a round was folded: all blocks, by who owns them; `touches` has n_nodes, too. A block
 * goes where all its owners live, be it one thread or all that share it; with two_stage once it was touched in
 * TOUCHES_ROUNDS_MIN rounds, or once in a process the threads of which are seen to work apart. In a process of
 * which much is used from several nodes, what threads of one node share goes there only as far as that matches
 * memory and use. Threads of one process on different nodes so get their own memory, and what they share stays. To
 * be asked once per round, and not while what it said last is under way: a block that is still elsewhere counts as
 * tried. 0; or -ENOMEM, and nothing is to be moved. */
int blocks_judge(Blocks *blocks, const Touches *touches, const MemoryRegions *regions,
                 const BlocksRules *rules, const BlocksThreads *threads);

/* Of the last judgement, what lies in [start, end) was not even tried: it does not count as that. */
void blocks_take_back(Blocks *blocks, uint64_t start, uint64_t end);

/* "move", "other-node", "hugetlb"; NULL-terminated. Part of the interface: never changed. */
extern const char *const blocks_verdict_names[];
