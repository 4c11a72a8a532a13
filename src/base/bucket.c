/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/bucket.h"

#include "base/time.h"
#include "base/util.h"

__extension__ typedef unsigned __int128 Wide;

uint64_t bucket_level(const Bucket *bucket, uint64_t rate, uint64_t burst, uint64_t now_usec)
{
    uint64_t elapsed = now_usec > bucket->updated_usec ? now_usec - bucket->updated_usec : 0;
    Wide level = (Wide)elapsed * rate / USEC_PER_SEC + bucket->level;

    return bucket->updated_usec == 0 || level > burst ? burst : (uint64_t)level;
}

void bucket_take(Bucket *bucket, uint64_t rate, uint64_t burst, uint64_t amount, uint64_t now_usec)
{
    uint64_t level = bucket_level(bucket, rate, burst, now_usec);

    bucket->level = level - MIN(level, amount);
    bucket->updated_usec = MAX(now_usec, 1U);
}
