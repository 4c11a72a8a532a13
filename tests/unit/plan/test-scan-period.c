/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P8 and P10: windows and periods of scans (S-SETTLE). */

#include "fixture.h"
#include "plan/scan/period.h"

#define MEGABYTE (UINT64_C(1) << 20)

static const ScanPeriodLimits kernel = {1000000, 60000000, 256 * MEGABYTE};

static void check_range(uint64_t rss_mb, uint64_t n_windows, uint64_t min_msec, uint64_t max_msec)
{
    ScanPeriodRange range = scan_period_range(&kernel, rss_mb * MEGABYTE);

    assert_int_equal(range.n_windows, n_windows);
    assert_int_equal(range.min_usec / 1000, min_msec);
    assert_int_equal(range.max_usec / 1000, max_msec);
}

static void test_range(void **state)
{
    ScanPeriodLimits limits = kernel;

    check_range(0, 1, 1000, 60000);
    check_range(100, 1, 1000, 60000);
    check_range(256, 1, 1000, 60000);
    check_range(1024, 4, 250, 15000);
    check_range(16384, 64, 100, 937);
    check_range(65536, 256, 100, 234);

    /* The fastest pass over 16 GB is 6.4 s, over 64 GB 25.6 s. */
    for (uint64_t gb = 16; gb <= 64; gb += 48) {
        ScanPeriodRange range = scan_period_range(&kernel, gb * 1024 * MEGABYTE);

        assert_int_equal(range.n_windows * range.min_usec, gb == 16 ? 6400000 : 25600000);
    }

    /* Never below the minimum, which for large windows is a second. */
    check_range(1 << 20, 4096, 100, 100);
    limits.window_bytes = 4096 * MEGABYTE;
    assert_int_equal(scan_period_range(&limits, UINT64_MAX).min_usec, 1000000);
    limits.window_bytes = 197 * MEGABYTE;
    assert_int_equal(scan_period_range(&limits, 1 << 30).min_usec, 1000000 / 6);
    assert_int_equal(scan_period_range(&limits, UINT64_C(1) << 40).min_usec, 1000000 / 12);
    limits.window_bytes = 1;
    assert_int_equal(scan_period_range(&limits, UINT64_MAX).n_windows, UINT64_MAX);
}

/* Adapts a period; milliseconds, in the order of the kernel's vectors: remote, local, failed, private, shared. */
static uint64_t adapt(uint64_t period_msec, uint64_t remote, uint64_t local, uint64_t failed,
                      uint64_t private, uint64_t shared)
{
    const ScanPeriodRange range = {.n_windows = 4, .min_usec = 250000, .max_usec = 15000000};
    const ScanPeriodSeen seen = {.local = local,
                                 .remote = remote,
                                 .private_faults = private,
                                 .shared_faults = shared,
                                 .n_failed = failed};
    uint64_t usec = scan_period_adapt(&range, period_msec * 1000, &seen);

    assert_int_equal(usec % 1000, 0);
    return usec / 1000;
}

static void test_adapt(void **state)
{
    const ScanPeriodRange odd = {.n_windows = 1, .min_usec = 1, .max_usec = 9999};

    assert_int_equal(adapt(1000, 0, 1000, 0, 1000, 0), 1300);
    assert_int_equal(adapt(1000, 1000, 0, 0, 0, 1000), 300);
    assert_int_equal(adapt(1000, 500, 500, 0, 500, 500), 800);
    assert_int_equal(adapt(1000, 300, 700, 0, 500, 500), 1100);
    assert_int_equal(adapt(1000, 900, 100, 0, 200, 800), 500);
    assert_int_equal(adapt(1000, 900, 100, 1, 200, 800), 2000);
    assert_int_equal(adapt(1000, 0, 0, 0, 0, 0), 2000); /* asleep */
    assert_int_equal(adapt(9000, 0, 0, 0, 0, 0), 15000);
    assert_int_equal(adapt(14000, 0, 1000, 0, 1000, 0), 15000);
    assert_int_equal(adapt(300, 1000, 0, 0, 0, 1000), 250);
    assert_int_equal(adapt(1000, 0, 1000, 0, 0, 1000), 1300); /* local decides even if shared */
    assert_int_equal(adapt(1000, 600, 400, 0, 700, 300), 1100);

    /* A slot is rounded up. */
    assert_int_equal(scan_period_adapt(&odd, 1001, &(ScanPeriodSeen){.local = 1, .private_faults = 1}), 1304);

    /* All remote and private: the kernel takes this for no faults at all. */
    assert_int_equal(adapt(1000, 1000, 0, 0, 1000, 0), 1300);
}

/* Adapts the period of a task whose accesses are all as `seen`. Returns the number of windows until it is
 * `end_usec`. */
static unsigned windows_until(const ScanPeriodRange *range, uint64_t *period_usec, const ScanPeriodSeen *seen,
                              uint64_t end_usec)
{
    unsigned n = 0;

    while (*period_usec != end_usec && n < 100) {
        *period_usec = scan_period_adapt(range, *period_usec, seen);
        n++;
    }
    return n;
}

/* S-SETTLE: a converged load reaches the longest period within 20 windows, a new phase the shortest within four. */
static void test_s_settle(void **state)
{
    const ScanPeriodSeen converged = {.local = 1000, .private_faults = 1000};
    const ScanPeriodSeen phase = {.remote = 1000, .shared_faults = 1000};

    for (uint64_t mb = 256; mb <= 16384; mb *= 4) {
        ScanPeriodRange range = scan_period_range(&kernel, mb * MEGABYTE);
        uint64_t period = range.min_usec;

        assert_in_range(windows_until(&range, &period, &converged, range.max_usec), 1, 20);
        assert_int_equal(scan_period_adapt(&range, period, &converged), range.max_usec);
        assert_in_range(windows_until(&range, &period, &phase, range.min_usec), 1, 4);
    }
}

TEST_MAIN(NULL, NULL, test_range, test_adapt, test_s_settle)
