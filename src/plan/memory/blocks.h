/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which memory of a process moves to its users: the page filter (P13), by blocks (P18).
 * Source: should_numa_migrate_memory() of Linux and numa/core v18 (Ingo Molnar, 2012), restated for samples
 * that name the thread.
 *
 * After each round of samples that counted (world/touches.h), every block gets a verdict: it moves, or why it
 * does not. Blocks that move become ranges of a migration request, even when their destination is full; the
 * mover refuses those. */

#include "plan/memory/tries.h"
#include "world/regions.h"
#include "world/touches.h"

#include <hwloc/bitmap.h>

/* A block is private after this many rounds without another thread, whatever the other blocks are: a weight
 * of TOUCHES_ROUND, halved each round, is gone. A block that two threads share equally looks like that once
 * in 500 times. */
#define BLOCKS_SURE_ROUNDS 10U

/* A block that still lies elsewhere after this many attempts is left alone. */
#define BLOCKS_TRIES 3U

typedef enum BlocksVerdict {
    BLOCKS_MOVE,
    BLOCKS_LOCAL,    /* it lies where it is used */
    BLOCKS_UNKNOWN,  /* its node is unknown, or its users are not known for long enough (TwoStage) */
    BLOCKS_MIXED,    /* used from several nodes */
    BLOCKS_BALANCED, /* shared by threads of one node where so much is shared that this may be chance, and
                        a move would not match memory and use better by a quarter */
    BLOCKS_OUTSIDE,  /* used from a node that its memory may not go to */

    /* The mover would refuse these, too; names that both have are the same. Locked memory moves. */
    BLOCKS_FILE,
    BLOCKS_HUGETLB,
    BLOCKS_DEVICE,
    BLOCKS_BUSY,  /* pinned, as far as can be told: it did not move */
    BLOCKS_BOUND, /* a memory policy chose its nodes; the mover does not check that */
    BLOCKS_GONE,  /* not in any region: unmapped since it was touched */
    BLOCKS_VERDICT_MAX,
    BLOCKS_VERDICT_INVALID = -EINVAL,
} BlocksVerdict;

typedef struct BlocksRules {
    bool two_stage;                /* TwoStage */
    bool any_balance, any_tries;   /* switch off the rules of balance and of attempts (plan/ablation.h) */
    hwloc_const_bitmap_t to_nodes; /* NodeIx; nodes of the home that have memory */
} BlocksRules;

typedef struct BlocksRange {
    uint64_t start, end; /* addresses */
    NodeIx to;
} BlocksRange;

typedef struct Blocks {
    /* Of the last judgement. */
    BlocksRange *moves; /* ascending; adjacent ones for one node are joined */
    size_t n_moves, moves_capacity;
    uint64_t n[BLOCKS_VERDICT_MAX]; /* blocks by verdict, since the start */

    /* Private to blocks.c. */
    uint32_t n_nodes;
    uint64_t *votes;        /* [n_nodes] */
    uint64_t *use, *memory; /* [n_nodes], over all blocks: weights of use from there, and blocks that lie
                               there */
    Tries tries;            /* attempts to move what still lies elsewhere */
} Blocks;

/* Returns 0 or -ENOMEM. */
int blocks_init(Blocks *blocks, uint32_t n_nodes);
void blocks_done(Blocks *blocks);

/* The node a thread lives on; NODE_NONE: not known. For memory it uses `alone` it is enough that it has run
 * on one node for a while. */
typedef struct BlocksThreads {
    NodeIx (*node_of)(void *userdata, pid_t tid, bool alone);
    void *userdata;
} BlocksThreads;

/* Judges all blocks after a round was folded; `touches` has n_nodes, too. A block moves to the node where its
 * owners live, one or several. With two_stage it must have been touched in BLOCKS_SURE_ROUNDS rounds;
 * TOUCHES_ROUNDS_MIN are enough if few blocks of the process are used from several nodes, and one if its
 * threads work apart. Where many blocks are used from several nodes, a block that threads of one node share
 * moves only if that matches memory and use better by a quarter. So threads on different nodes each get their
 * own memory, and what they share stays. Call once per round, and not while moves of the last judgement are
 * in flight: a block still elsewhere counts as tried. Returns 0; or -ENOMEM, and nothing is to be moved. */
int blocks_judge(Blocks *blocks, const Touches *touches, const MemoryRegions *regions,
                 const BlocksRules *rules, const BlocksThreads *threads);

/* Takes back the attempts of the last judgement in [start, end): these blocks were not tried after all. */
void blocks_take_back(Blocks *blocks, uint64_t start, uint64_t end);

/* "move", "local", "hugetlb"; NULL-terminated. Part of the interface: never changed. */
extern const char *const blocks_verdict_names[];
