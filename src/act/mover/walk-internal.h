/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of a walk share. */

#include "act/mover/walk.h"

#include <limits.h>
#include <pthread.h>

/* A status that the kernel never returns. */
#define WALK_UNSAID INT_MIN

typedef enum WalkBlockState {
    WALK_BLOCK_PLACED, /* nothing to do */
    WALK_BLOCK_WHOLE,  /* perhaps a huge page */
    WALK_BLOCK_PAGES,
} WalkBlockState;

typedef struct WalkBlock {
    uint64_t start;
    uint32_t n_pages;
    uint8_t tries; /* finished ones */
    bool thorough;
    bool again; /* another attempt may move more */
    WalkBlockState state;
    uint64_t refused_bytes[MOVER_REASON_MAX]; /* in this attempt */
} WalkBlock;

typedef struct WalkRegion {
    uint64_t start, end;
    bool thorough; /* examined page by page */
} WalkRegion;

/* How far the blocks of the regions have been taken. */
typedef struct WalkPlace {
    size_t region;
    uint64_t at; /* next address in it; 0: its start */
} WalkPlace;

typedef enum WalkPhase {
    WALK_PHASE_BEGIN,
    WALK_PHASE_ALL,
    WALK_PHASE_AGAIN,
} WalkPhase;

struct Walk {
    Walk *lead; /* itself, or the one whose process, guard, regions and place it shares */
    WalkNode *node;
    const MoverOrder *order;
    hwloc_const_bitmap_t accept_os;
    uint32_t part, n_parts;
    const WalkHost *host; /* of this step */
    WalkPhase phase;
    int process_fd;
    pid_t memory_pid; /* see MoverOps.open_process */
    int error; /* of MOVER_FAILED */
    MoverGuard guard;
    bool hugetlb;         /* the process has such pages */
    bool small;           /* the process was moved as a whole */
    unsigned n_exhausted; /* calls in a row that found no memory */
    /* Used in the lead only. Once the walk has begun, only the place changes: */
    WalkRegion *regions;
    size_t n_regions, regions_capacity;
    size_t share;         /* blocks to take at a time */
    pthread_mutex_t lock; /* guards: */
    WalkPlace place;
    WalkBlock *again;
    size_t n_again, again_capacity;
    size_t again_first; /* those before it are done */
    uint8_t round;      /* of attempts */
    WalkBlock blocks[WALK_BLOCKS];
    size_t n_blocks;
    MoverAccount account;
};

/* mover/begin.c: checks the process, finds what to examine, and moves a small process at once. */
MoverOutcome walk_begin(Walk *w);

/* mover/course.c: takes the next blocks, at most `max`, exclusively. */
void walk_take(Walk *w, size_t max);

/* mover/pour.c. Functions that return an outcome: MOVER_DONE means go on. */

MoverOutcome walk_fail(Walk *w, int error);
/* Maps the errno of a failed call to the outcome of the request. */
MoverOutcome walk_judge(Walk *w, int error);
bool walk_go_on(Walk *w);
/* Whether a page with this status is on a wrong node. */
bool walk_misplaced(const Walk *w, int status);
/* Appends a page to the first *n of the node's arrays, and counts it. */
void walk_put_page(WalkNode *node, size_t *n, uint64_t address, size_t block);
/* Keeps those of pages[0..n) that are misplaced according to status[], and returns their number. */
size_t walk_keep_misplaced(Walk *w, size_t n);
/* Fills status[first..first + n) with the location of the node's pages[first..first + n). */
MoverOutcome walk_ask(Walk *w, size_t first, size_t n, int *status);
/* Returns the rate limit that applies, in bytes per second; 0: no limit. */
uint64_t walk_rate(const Walk *w);
/* Waits for the rate limit, if any, and for room. *ret_n is how many of `n` pages of `bytes` each the next
 * call may move. NO_ROOM: none. After DONE, the caller makes that call and then calls walk_leave(). */
MoverOutcome walk_admit(Walk *w, size_t n, uint64_t bytes, size_t *ret_n);
void walk_leave(Walk *w);
/* Gives back to the rate limit what was admitted and not tried. Without a limit nothing was taken from it. */
void walk_return(Walk *w, uint64_t bytes);
void walk_count_call(Walk *w, uint64_t took_usec);
/* Moves pages[0..n) of `bytes` each (a huge page is named by its first page) in as many calls as needed.
 * Always sets *ret_n: status[] is valid for that many pages, from the first. */
MoverOutcome walk_pour(Walk *w, size_t n, uint64_t bytes, size_t *ret_n);
