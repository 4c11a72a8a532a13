/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A token bucket: over any time T, at most burst + rate * T is taken. The caller chooses what a token is, and
 * so the unit of all amounts. Rate and burst may change between calls; a level above the new burst is cut. */

#include <stdint.h>

typedef struct Bucket {
    uint64_t level;
    uint64_t updated_usec; /* 0: never used, counts as full */
} Bucket;

/* Returns the current level, rounded down. `rate` is per second. */
uint64_t bucket_level(const Bucket *bucket, uint64_t rate, uint64_t burst, uint64_t now_usec);

/* Takes `amount`, or everything if less is left. */
void bucket_take(Bucket *bucket, uint64_t rate, uint64_t burst, uint64_t amount, uint64_t now_usec);
