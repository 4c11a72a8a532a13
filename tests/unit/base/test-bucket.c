/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A token bucket: its level, what is taken, and that no window of time gives more than burst and rate allow. */

#include "base/bucket.h"
#include "base/time.h"
#include "base/util.h"
#include "unit-test.h"

static void test_levels(void **state)
{
    Bucket bucket = {0};

    assert_int_equal(bucket_level(&bucket, 10, 50, 123), 50); /* never used: full */
    bucket_take(&bucket, 10, 50, 45, USEC_PER_SEC);
    assert_int_equal(bucket_level(&bucket, 10, 50, USEC_PER_SEC), 5);
    assert_int_equal(bucket_level(&bucket, 10, 50, USEC_PER_SEC + 199999), 6); /* rounded down */
    assert_int_equal(bucket_level(&bucket, 10, 50, 3 * USEC_PER_SEC), 25);
    assert_int_equal(bucket_level(&bucket, 10, 20, 3 * USEC_PER_SEC), 20); /* a smaller burst cuts it */
    assert_int_equal(bucket_level(&bucket, 10, 50, 0), 5); /* a clock that went back adds nothing */
    bucket_take(&bucket, 10, 50, 100, 2 * USEC_PER_SEC);   /* more than is left */
    assert_int_equal(bucket_level(&bucket, 10, 50, 2 * USEC_PER_SEC), 0);
    /* After a very long time, at any rate. */
    assert_int_equal(bucket_level(&bucket, UINT64_MAX, 50, UINT64_MAX), 50);
    /* Use at instant 0 counts, too. */
    bucket = (Bucket){0};
    bucket_take(&bucket, 0, 50, 10, 0);
    assert_int_equal(bucket_level(&bucket, 0, 50, 100), 40);
}

/* I4: over any window at most burst + rate * time. */
static void test_windows(void **state)
{
    const uint64_t rate = 1000, burst = 300;
    Bucket bucket = {0};
    uint64_t random = 7, now = 1, taken[1000], at[1000];

    for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
        uint64_t wanted, level;

        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        now += (random >> 40) % 400000;
        wanted = (random >> 33) % 500;
        level = bucket_level(&bucket, rate, burst, now);
        at[i] = now;
        taken[i] = MIN(wanted, level);
        bucket_take(&bucket, rate, burst, taken[i], now);
    }
    for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
        for (size_t k = i, sum = 0; k < ARRAY_SIZE(taken); k++) {
            sum += taken[k];
            assert_true(sum <= burst + rate * (at[k] - at[i]) / USEC_PER_SEC);
        }
}

TEST_MAIN(NULL, NULL, test_levels, test_windows)
