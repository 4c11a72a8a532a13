/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which memory of a process moves to the threads that use it: the page filter (P13), by blocks (P18).
 * Source: should_numa_migrate_memory() of Linux and numa/core v18 (Ingo Molnar, 2012), restated for samples
 * that name the thread.
 *
 * After each round of samples that counted (world/touches.h), every block gets a verdict: it moves, or why it
 * does not. Blocks that move become ranges of a migration request. That includes blocks bound for a full
 * node, which the mover refuses. */

#include "plan/memory/tries.h"
#include "world/regions.h"
#include "world/touches.h"

#include <hwloc/bitmap.h>

/* Rounds without another thread after which a block is private, whatever the other blocks are: a weight of
 * TOUCHES_ROUND, halved in each round, is gone by then. If two threads share a block equally, that many
 * rounds in a row show the same thread once in 500 times. */
#define BLOCKS_SURE_ROUNDS 10U

/* A block that still lies elsewhere after this many attempts to move it is left alone. */
#define BLOCKS_TRIES 3U

typedef enum BlocksVerdict {
    BLOCKS_MOVE,
    BLOCKS_LOCAL,    /* it lies where it is used */
    BLOCKS_UNKNOWN,  /* its node is not known, or its users not for long enough (TwoStage) */
    BLOCKS_MIXED,    /* used from several nodes */
    BLOCKS_BALANCED, /* shared by threads of one node, in a process that shares so much that this may be
                        chance; moving it would not match memory and use better by a quarter */
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

/* The state of one process. */
typedef struct Blocks {
    /* Of the last judgement. */
    BlocksRange *moves; /* ascending; adjacent ranges to one node are joined */
    size_t n_moves, moves_capacity;
    uint64_t n[BLOCKS_VERDICT_MAX]; /* blocks by verdict, since the start */

    /* Private to blocks.c. */
    uint32_t n_nodes;
    uint64_t *votes;        /* [n_nodes] */
    uint64_t *use, *memory; /* [n_nodes], over all blocks: weights of use from the node, and blocks that
                               lie on it */
    Tries tries;            /* attempts to move blocks that still lie elsewhere */
} Blocks;

/* Returns 0 or -ENOMEM. */
int blocks_init(Blocks *blocks, uint32_t n_nodes);
void blocks_done(Blocks *blocks);

/* Returns the node a thread lives on; NODE_NONE: not known. With `alone`, for memory that no other thread
 * uses, it is enough that the thread has run on one node for a while. */
typedef struct BlocksThreads {
    NodeIx (*node_of)(void *userdata, pid_t tid, bool alone);
    void *userdata;
} BlocksThreads;

/* Judges all blocks after a round was folded. `touches` must have the same n_nodes. A block moves to the node
 * where all its owners live, be it one thread or several. With two_stage it must have been touched in
 * BLOCKS_SURE_ROUNDS rounds; TOUCHES_ROUNDS_MIN are enough if few blocks of the process are used from several
 * nodes, and one if its threads are seen to work apart. In a process that uses many blocks from several
 * nodes, a block that threads of one node share moves there only if that matches memory and use better. So
 * threads on different nodes each get their own memory, and memory they share stays. Call once per round, and
 * not while moves of the last judgement are in flight: a block that is still elsewhere counts as tried.
 * Returns 0; or -ENOMEM, and nothing is to be moved. */
int blocks_judge(Blocks *blocks, const Touches *touches, const MemoryRegions *regions,
                 const BlocksRules *rules, const BlocksThreads *threads);

/* Takes back the attempts of the last judgement in [start, end): these blocks were not even tried. */
void blocks_take_back(Blocks *blocks, uint64_t start, uint64_t end);

/* "move", "local", "hugetlb"; NULL-terminated. Part of the interface: never changed. */
extern const char *const blocks_verdict_names[];
