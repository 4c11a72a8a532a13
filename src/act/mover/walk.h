/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One order's way through the memory of a process, to one node; what threads there are is for others to know. */

#include "act/mover/gate.h"
#include "act/mover/mover.h"
#include "act/mover/room.h"

/* Moved as one when they are a huge page, and looked at by samples when they are not (P18). */
#define WALK_BLOCK_BYTES (UINT64_C(2) << 20)

/* So many are looked at in one step. */
#define WALK_BLOCKS 16U

/* A block that refuses in part is tried so many times in all, this long apart: what is under I/O is free again by then,
 * and what is pinned never will be. */
#define WALK_TRIES      3U
#define WALK_AGAIN_USEC 20000U

/* Blocks that are to be tried again; more are given up at once. */
#define WALK_AGAIN_MAX 65536U

/* Who runs a walk. Called between any two calls that may take long. */
typedef struct WalkHost {
    /* False: stop. `account` is what was done so far. */
    bool (*go_on)(void *userdata, const MoverAccount *account);
    /* Waits, less when the walk is to stop. */
    void (*pause)(void *userdata, uint64_t usec);
    void *userdata;
} WalkHost;

/* What walks to one node hand on to the next, in one thread: what they learned of the cost of moving, and room to work
 * in. One step at a time. */
typedef struct WalkNode {
    const MoverOps *ops;
    void *context;
    MoverGate *gate; /* the node's */
    NodeIx node;
    uint32_t os_index;
    uint64_t page_bytes;
    uint64_t memory_device;             /* MoverOps.memory_device() */
    uint64_t vast_bytes;                /* mappings larger than this are refused */
    uint64_t rate_bytes;                /* of the host; may be changed between steps */
    uint32_t pages_limit, blocks_limit; /* how many small pages, or huge ones, one call may move now */
    uint32_t blocks_next;               /* the latter, as the last call would have it */
    MoverPass pass;
    size_t capacity; /* pages in a step */
    void **pages;
    int *nodes, *status, *where;
    uint8_t *owner; /* of each page: which block of the step */
} WalkNode;

/* Fills in what begins with a value of its own, and allocates. The members up to vast_bytes must be set. 0 or
 * -ENOMEM. */
int walk_node_init(WalkNode *node);
void walk_node_done(WalkNode *node);

typedef struct Walk Walk;

/* `order` and `accept_os` are borrowed for the life of the walk. Only the blocks whose address divided by their size
 * leaves `part` when divided by `n_parts` are moved, or, when the order says where each range goes, those sent to
 * the node of the steps; what lies on one of accept_os stays. 0 or -ENOMEM. */
int walk_new(const MoverOrder *order, hwloc_const_bitmap_t accept_os, uint32_t part, uint32_t n_parts,
             Walk **ret);
/* How many walks, itself included, the work of one that has taken its first step is worth, at most `max`: not more than
 * it has blocks. From now on it takes them in portions small enough for so many. Not during a step. */
uint32_t walk_share(Walk *lead, uint32_t max);
/* One more that takes its blocks from those of `lead`, and counts what it does with them alone; what is told of whole
 * mappings `lead` has counted. To be freed before `lead`; they may take steps at the same time. 0 or -ENOMEM. */
int walk_join(Walk *lead, Walk **ret);
Walk *walk_free(Walk *walk);

/* Does a part of it, some ten or twenty milliseconds long unless the kernel or the rate takes longer; `node` and `host`
 * may be others in each step. Returns whether there is more to do; if not, *ret_outcome says how it ended and
 * *ret_error is its error. */
bool walk_step(Walk *walk, WalkNode *node, const WalkHost *host, MoverOutcome *ret_outcome, int *ret_error);

const MoverAccount *walk_account(const Walk *walk);
