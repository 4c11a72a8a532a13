/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Pacing of scans (P8, P10). Looking holds locks of the target. So a large process is seen in windows, and the limits
 * of the period apply to all windows together: 1 GB in windows of 256 MB is four, 250 ms to 15 s apart. Beyond ten
 * windows the floor holds, which is 2560 MB/s: 16 GB is 64 windows, at least 100 ms apart, 6.4 s for a pass.
 *
 * Adaptation. A tenth of the period, rounded up, is a slot. lr is the share of local accesses in tenths, ps that of
 * private ones. ps >= 7: ps - 7 slots more, at least one. Else lr >= 7: lr - 7 more, at least one. Else 7 - max(lr, ps)
 * slots less. Example, period 1000: all local and private, ps = 10: 1300. All remote and shared, both 0: 300. Half and
 * half, both 5: 800. From the minimum to the maximum of 1 GB it takes 16 windows; back, four.
 *
 * Periods are in microseconds here, in milliseconds in the kernel; both round down. */

#include "plan/scan/period.h"

#include "base/util.h"

#define SCAN_RATE_BYTES  (UINT64_C(2560) << 20) /* never faster than this per second */
#define PERIOD_SLOTS     10U
#define PERIOD_THRESHOLD 7U

ScanPeriodRange scan_period_range(const ScanPeriodLimits *limits, uint64_t rss_bytes)
{
    uint64_t window = MAX(limits->window_bytes, 1U), floor;
    ScanPeriodRange range;

    range.n_windows = MAX(rss_bytes / window + (rss_bytes % window > 0), 1U);
    floor = 1000000 / MAX(SCAN_RATE_BYTES / window, 1U);
    range.min_usec = MAX(floor, limits->min_usec / range.n_windows);
    range.max_usec = MAX(limits->max_usec / range.n_windows, range.min_usec);
    return range;
}

static uint64_t tenths(uint64_t part, uint64_t rest)
{
    return part ? PERIOD_SLOTS * part / (part + rest) : 0;
}

static uint64_t add_slots(uint64_t period_usec, const ScanPeriodSeen *seen)
{
    uint64_t slot = period_usec / PERIOD_SLOTS + (period_usec % PERIOD_SLOTS > 0);
    uint64_t ps = tenths(seen->private_faults, seen->shared_faults), lr = tenths(seen->local, seen->remote);

    if (ps >= PERIOD_THRESHOLD)
        return period_usec + MAX(ps - PERIOD_THRESHOLD, 1U) * slot;
    if (lr >= PERIOD_THRESHOLD)
        return period_usec + MAX(lr - PERIOD_THRESHOLD, 1U) * slot;
    return period_usec - MIN((PERIOD_THRESHOLD - MAX(lr, ps)) * slot, period_usec);
}

uint64_t scan_period_adapt(const ScanPeriodRange *range, uint64_t period_usec, const ScanPeriodSeen *seen)
{
    bool nothing = seen->local + seen->remote + seen->private_faults + seen->shared_faults == 0;

    if (nothing || seen->n_failed > 0)
        return MIN(range->max_usec, period_usec * 2);
    return CLAMP(add_slots(period_usec, seen), range->min_usec, range->max_usec);
}
