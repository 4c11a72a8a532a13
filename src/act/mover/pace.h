/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much is moved in one call, and how much per second (P20, rate limit). */

#include "base/bucket.h"

#include <stddef.h>
#include <stdint.h>

/* The duration at which calls aim. It is half of the 20 ms a call may take: while a page is copied, any
 * thread that touches it waits, and the last call only hints at the next. */
#define MOVER_AIM_USEC 10000U

/* Returns the number of pages for the next call, after one of `n` pages that took `took_usec`: as many as
 * would have taken MOVER_AIM_USEC, but at most twice `limit`, the limit of that call; between 1 and `max`. */
uint32_t mover_pace_next(uint32_t limit, size_t n, uint64_t took_usec, uint32_t max);

/* The burst of a bucket of bytes: a tenth of a second's worth of the rate, which is in bytes per second.
 * Source: the rate limit of balancenuma (2012), 128 MB in 100 ms; restated. */
uint64_t mover_bucket_burst(uint64_t rate_bytes);

/* Returns how long to wait until `bytes` (at most the burst) may be taken; 0: now. */
uint64_t mover_bucket_wait(const Bucket *bucket, uint64_t rate_bytes, uint64_t bytes, uint64_t now_usec);

void mover_bucket_take(Bucket *bucket, uint64_t rate_bytes, uint64_t bytes, uint64_t now_usec);

/* Puts back what was taken and not used. */
void mover_bucket_return(Bucket *bucket, uint64_t bytes);
