/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A walk moves memory of one process to one node for one migration request. It knows nothing of threads. */

#include "act/mover/gate.h"
#include "act/mover/mover.h"
#include "act/mover/room.h"

/* A block moves as one page if it is huge, and is located by samples (P18, 2 MB clusters). */
#define WALK_BLOCK_BYTES (UINT64_C(2) << 20)

/* Blocks handled in one step. */
#define WALK_BLOCKS 16U

/* How often a block is tried if some pages could not be moved, and the time in between. By then, pages under
 * I/O are free again; pinned ones never will be. */
#define WALK_TRIES      3U
#define WALK_AGAIN_USEC 20000U

/* Most blocks waiting for another attempt; further ones are given up at once. */
#define WALK_AGAIN_MAX 65536U

/* The caller's side of a walk. Called between any two calls that may take long. */
typedef struct WalkHost {
    /* Returns false to stop. `account` is what was done so far. */
    bool (*go_on)(void *userdata, const MoverAccount *account);
    /* Waits, or returns early if the walk should stop. */
    void (*pause)(void *userdata, uint64_t usec);
    void *userdata;
} WalkHost;

/* State that the walks of one thread to one node hand on to each other: the learned cost of moving, and
 * buffers. Used by one step at a time. */
typedef struct WalkNode {
    const MoverOps *ops;
    void *context;
    MoverGate *gate; /* the node's */
    NodeIx node;
    uint32_t os_index;
    uint64_t page_bytes;
    uint64_t memory_device;             /* MoverOps.memory_device() */
    uint64_t vast_bytes;                /* mappings larger than this are refused */
    uint64_t rate_bytes;                /* the host's; WalkHost.go_on() may change it */
    uint32_t pages_limit, blocks_limit; /* small and huge pages one call may move now */
    uint32_t blocks_next;               /* blocks_limit as the last call would set it */
    MoverPass pass;
    size_t capacity; /* pages in a step */
    void **pages;
    int *nodes, *status, *where;
    uint8_t *owner; /* of each page: its block in the step */
} WalkNode;

/* Sets the limits and allocates the arrays. The members up to vast_bytes must be set. 0 or -ENOMEM. */
int walk_node_init(WalkNode *node);
void walk_node_done(WalkNode *node);

typedef struct Walk Walk;

/* `order` and `accept_os` are borrowed for the life of the walk. The walk moves only the blocks whose number
 * (address / WALK_BLOCK_BYTES) modulo `n_parts` is `part` or, if the request is `sent`, the ranges sent to
 * the node of the steps. Memory on one of accept_os stays. 0 or -ENOMEM. */
int walk_new(const MoverOrder *order, hwloc_const_bitmap_t accept_os, uint32_t part, uint32_t n_parts,
             Walk **ret);
/* Returns how many walks, `lead` included, should share the work of `lead`, which has taken its first step:
 * at most `max`, and no more than it has blocks. From now on its blocks are taken in portions small enough
 * for that many. Not to be called during a step. */
uint32_t walk_share(Walk *lead, uint32_t max);
/* Creates a walk that takes its blocks from those of `lead`. It counts only what it does with them; what
 * concerns whole mappings, `lead` has counted. It must be freed before `lead`; both may take steps at the
 * same time. 0 or -ENOMEM. */
int walk_join(Walk *lead, Walk **ret);
Walk *walk_free(Walk *walk);

/* Does part of the work, for ten or twenty milliseconds unless the kernel or the rate takes longer. `node`
 * and `host` may differ between steps. Returns whether there is more to do; if not, *ret_outcome says how the
 * walk ended and *ret_error is its error. */
bool walk_step(Walk *walk, WalkNode *node, const WalkHost *host, MoverOutcome *ret_outcome, int *ret_error);

const MoverAccount *walk_account(const Walk *walk);
