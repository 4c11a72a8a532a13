/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which task works on the same memory as another, and whether a task's memory is mostly private or shared (P14).
 * Source: numa/core v17 and v18 (Ingo Molnar, 2012), restated. Sensing fills it in, like the fault averages. */

#include "world/world.h"

typedef enum BuddyClass {
    BUDDY_CLASS_UNKNOWN, /* nothing was seen yet */
    BUDDY_CLASS_PRIVATE,
    BUDDY_CLASS_SHARED,
    BUDDY_CLASS_MAX,
    BUDDY_CLASS_INVALID = -EINVAL,
} BuddyClass;

/* Of one task. All zero: nothing seen. Counts are below 2^59. */
typedef struct Buddy {
    TaskKey buddy;     /* tid 0: none */
    uint64_t faults;   /* accesses shared with it; each scan keeps 3/4 of them */
    TaskKey candidate; /* in the present scan; tid 0: none */
    uint64_t candidate_faults;
    BuddyClass class;
    /* Per scan: 15/16 of the old value and 1/16 of the new one, rounded down. So a rising average stops up to
     * 15 below the true mean. */
    uint64_t private_average, shared_average;
} Buddy;

/* Counts that `self` accessed memory last accessed by `other`. v17 counts only memory on the node of `self`,
 * expecting the rest to move there. Here memory on all nodes counts, so that a task on the wrong node finds
 * its buddy too. Only a task before `self` in the order of pid and tid can be its buddy, and the last of
 * these in that order is. So buddies form a chain, and no two tasks pick each other in turns. */
void buddy_accessed(Buddy *b, TaskKey self, TaskKey other, uint64_t n);

/* Ends a scan of all memory of the task, which saw this many private and shared accesses. */
void buddy_fold(Buddy *b, uint64_t private_faults, uint64_t shared_faults);

/* The class that follows `before`. The first class is shared if at least half of the accesses are. Later only
 * twice as many of the other kind change it. */
BuddyClass buddy_classify(BuddyClass before, uint64_t private_average, uint64_t shared_average);
