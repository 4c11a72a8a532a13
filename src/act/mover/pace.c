/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Pacing. Example: if 64 pages took 100 us, 6400 would take 10 ms. But the limit only doubles, to 128,
 * because the first pages may have been the cheap ones. If those take 40 ms, 32 are next.
 *
 * The bucket: at 1280 MB per second, 128 MB may go at once, and after that 1.28 MB each millisecond. Over any
 * time T, no more than burst + rate * T goes (I5). The daemon's own rate changes with the
 * pressure on memory; what was saved up at a higher rate is cut to the burst of the lower one. */

#include "act/mover/pace.h"

#include "base/time.h"
#include "base/util.h"

__extension__ typedef unsigned __int128 Wide;

#define BURSTS_PER_SEC 10U

/* A huge page cannot be moved in parts. */
#define BURST_MIN_BYTES (UINT64_C(2) << 20)

uint32_t mover_pace_next(uint32_t limit, size_t n, uint64_t took_usec, uint32_t max)
{
    uint64_t fits = took_usec == 0 ? UINT64_MAX : (uint64_t)n * MOVER_AIM_USEC / took_usec;

    /* A call with fewer pages than allowed says nothing about more. */
    if (fits > limit && n < limit)
        fits = limit;
    return (uint32_t)CLAMP(MIN(fits, (uint64_t)limit * 2), 1U, (uint64_t)max);
}

uint64_t mover_bucket_burst(uint64_t rate_bytes)
{
    return MAX(rate_bytes / BURSTS_PER_SEC, BURST_MIN_BYTES);
}

uint64_t mover_bucket_wait(const Bucket *bucket, uint64_t rate_bytes, uint64_t bytes, uint64_t now_usec)
{
    uint64_t level = bucket_level(bucket, rate_bytes, mover_bucket_burst(rate_bytes), now_usec);

    if (bytes <= level || rate_bytes == 0)
        return 0;
    return (uint64_t)(((Wide)(bytes - level) * USEC_PER_SEC + rate_bytes - 1) / rate_bytes);
}

void mover_bucket_take(Bucket *bucket, uint64_t rate_bytes, uint64_t bytes, uint64_t now_usec)
{
    bucket_take(bucket, rate_bytes, mover_bucket_burst(rate_bytes), bytes, now_usec);
}

/* The next look cuts it to the burst. */
void mover_bucket_return(Bucket *bucket, uint64_t bytes)
{
    bucket->level += MIN(bytes, UINT64_MAX - bucket->level);
}
