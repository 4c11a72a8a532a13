/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who works on the same memory as a task, and whether its memory is mostly its own or shared (P14).
 * Source: numa/core v17 and v18 (Ingo Molnar, 2012), restated. Sensing fills it in, as it does the fault averages. */

#include "world/world.h"

typedef enum BuddyClass {
    BUDDY_CLASS_UNKNOWN, /* nothing seen yet */
    BUDDY_CLASS_PRIVATE,
    BUDDY_CLASS_SHARED,
    BUDDY_CLASS_MAX,
    BUDDY_CLASS_INVALID = -EINVAL,
} BuddyClass;

/* Of one task. All zero: nothing seen. Counts are below 2^59. */
typedef struct Buddy {
    TaskKey buddy;     /* tid 0: none */
    uint64_t faults;   /* accesses shared with it, 3/4 of which are kept per scan */
    TaskKey candidate; /* of the present scan; tid 0: none */
    uint64_t candidate_faults;
    BuddyClass class;
    uint64_t private_average,
        shared_average; /* per scan; 15/16 of the old value and 1/16 of the new one, rounded
                                                 down, so a rising one stops up to 15 below the true mean */
} Buddy;

/* `self` accessed memory that `other` accessed last. v17 counts that only on the node of `self`, to which the rest is
 * on its way; here it counts everywhere, so that who runs on the wrong node finds its buddy. Only a task before
 * `self` in the order of pid and tid can be its buddy, and the last of these in that order is: so buddies are a chain,
 * and no two pick each other in turns. */
void buddy_accessed(Buddy *b, TaskKey self, TaskKey other, uint64_t n);

/* Ends a scan of all memory of the task, in which it made so many private and shared accesses. */
void buddy_fold(Buddy *b, uint64_t private_faults, uint64_t shared_faults);

/* The class after `before`: at first shared when at least half is; later only twice as much of the other kind
 * changes it. */
BuddyClass buddy_classify(BuddyClass before, uint64_t private_average, uint64_t shared_average);
