/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of a walk share. */

#include "act/mover/walk.h"

#include <limits.h>
#include <pthread.h>

/* A status the kernel never gives. */
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
    bool again; /* something may yet be moved */
    WalkBlockState state;
    uint64_t refused_bytes[MOVER_REASON_MAX]; /* in this try */
} WalkBlock;

typedef struct WalkRegion {
    uint64_t start, end;
    bool thorough; /* looked at page by page */
} WalkRegion;

/* How far the regions were taken. */
typedef struct WalkPlace {
    size_t region;
    uint64_t at; /* the next address in it; 0: its start */
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
    int error; /* of MOVER_FAILED */
    MoverGuard guard;
    bool hugetlb;         /* it has such pages */
    bool small;           /* it was moved as a whole */
    unsigned n_exhausted; /* the last so many calls found no memory */
    /* Of the lead. Once it has begun, only the place changes: */
    WalkRegion *regions;
    size_t n_regions, regions_capacity;
    size_t share;         /* blocks to take at a time */
    pthread_mutex_t lock; /* over: */
    WalkPlace place;
    WalkBlock *again;
    size_t n_again, again_capacity;
    size_t again_first; /* those before are done */
    uint8_t round;      /* of tries */
    WalkBlock blocks[WALK_BLOCKS];
    size_t n_blocks;
    MoverAccount account;
};

/* mover/begin.c: finds the process and what there is to look at, and moves it at once when it is small. */
MoverOutcome walk_begin(Walk *w);

/* mover/course.c: takes the next blocks, at most `max`, and hands them to nobody else. */
void walk_take(Walk *w, size_t max);

/* mover/pour.c. Functions that return an outcome: MOVER_DONE means go on. */

MoverOutcome walk_fail(Walk *w, int error);
/* What an errno of either call means for the order. */
MoverOutcome walk_judge(Walk *w, int error);
bool walk_go_on(Walk *w);
/* Whether a page with this status is where it should not be. */
bool walk_misplaced(const Walk *w, int status);
/* Appends a page to the *n that the node has noted. */
void walk_put_page(WalkNode *node, size_t *n, uint64_t address, size_t block);
/* Of pages[0..n) and their status[], keeps those that are misplaced, and returns their number. */
size_t walk_keep_misplaced(Walk *w, size_t n);
/* Fills status[first..first + n) for the same of the node's pages. */
MoverOutcome walk_ask(Walk *w, size_t first, size_t n, int *status);
/* Bytes a second that hold for it; 0: no limit. */
uint64_t walk_rate(const Walk *w);
/* How many of `n` pages of `bytes` each may be moved by the next call, waiting for the bucket if there is one. NO_ROOM:
 * none. After DONE and that call comes walk_leave(). */
MoverOutcome walk_admit(Walk *w, size_t n, uint64_t bytes, size_t *ret_n);
void walk_leave(Walk *w);
void walk_count_call(Walk *w, uint64_t took_usec);
/* Moves pages[0..n) of `bytes` each (of huge ones, the first page is named) in as many calls as that takes. Always sets
 * *ret_n: of so many, the first, status[] says what became. */
MoverOutcome walk_pour(Walk *w, size_t n, uint64_t bytes, size_t *ret_n);
