/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A token bucket: over any time T at most burst + rate * T is taken. The caller says what a token is, and so the
 * unit of all amounts. Rates and bursts may change from one call to the next: what was saved up is cut to the burst. */

#include <stdint.h>

typedef struct Bucket {
    uint64_t level;
    uint64_t updated_usec; /* 0: never used, counts as full */
} Bucket;

/* What is in it now, rounded down; `rate` is for a second. */
uint64_t bucket_level(const Bucket *bucket, uint64_t rate, uint64_t burst, uint64_t now_usec);

/* Takes so much, or what is left. */
void bucket_take(Bucket *bucket, uint64_t rate, uint64_t burst, uint64_t amount, uint64_t now_usec);
