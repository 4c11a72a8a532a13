/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much is moved at a time, and how much in a second (P20). */

#include "base/bucket.h"

#include <stddef.h>
#include <stdint.h>

/* One call moves so much that it takes this long. Half of the 20 ms it may take: while a page is copied, whoever
 * touches it waits; and what the last call took is only a guess at what the next one will. */
#define MOVER_AIM_USEC 10000U

/* The number of pages for the next call after one of `n` that took `took_usec`: what would have taken MOVER_AIM_USEC,
 * but at most twice `limit`, which was in force; between 1 and `max`. */
uint32_t mover_pace_next(uint32_t limit, size_t n, uint64_t took_usec, uint32_t max);

/* A bucket of bytes. The most that may go at once at a rate of so many bytes a second: a tenth of a second's worth.
 * Source: the rate limit of balancenuma (2012), 128 MB in 100 ms; restated. */
uint64_t mover_bucket_burst(uint64_t rate_bytes);

/* How long to wait until `bytes` (at most the burst) may go: 0 when they may now. */
uint64_t mover_bucket_wait(const Bucket *bucket, uint64_t rate_bytes, uint64_t bytes, uint64_t now_usec);

/* Takes them out. */
void mover_bucket_take(Bucket *bucket, uint64_t rate_bytes, uint64_t bytes, uint64_t now_usec);

/* Puts back what was taken and not used. */
void mover_bucket_return(Bucket *bucket, uint64_t bytes);
