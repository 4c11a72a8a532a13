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

__extension__ typedef unsigned __int128 Wide;

/* Stretched to the number of tasks that share, by the share of what they share. Saturates. */
static uint64_t for_group(uint64_t period_usec, const ScanPeriodGroup *group)
{
    Wide period = (Wide)period_usec * group->n_tasks;
    uint64_t faults = group->private_faults + group->shared_faults + 1;

    period = MIN(period, UINT64_MAX);
    period = period * (group->shared_faults + 1) / faults;
    return (uint64_t)MIN(period, UINT64_MAX);
}

ScanPeriodRange scan_period_range(const ScanPeriodLimits *limits, uint64_t rss_bytes,
                                  const ScanPeriodGroup *group)
{
    uint64_t window = MAX(limits->window_bytes, 1U), floor;
    ScanPeriodRange range;

    range.n_windows = MAX(rss_bytes / window + (rss_bytes % window > 0), 1U);
    floor = 1000000 / MAX(SCAN_RATE_BYTES / window, 1U);
    range.min_usec = MAX(floor, limits->min_usec / range.n_windows);
    range.start_usec = range.min_usec;
    range.max_usec = limits->max_usec / range.n_windows;
    if (group) {
        range.start_usec = MAX(range.start_usec, for_group(range.start_usec, group));
        range.max_usec = MAX(range.max_usec, for_group(range.max_usec, group));
    }
    range.max_usec = MAX(range.max_usec, range.min_usec);
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

uint64_t scan_period_adapt(const ScanPeriodRange *range, uint64_t period_usec, const ScanPeriodSeen *seen,
                           bool strict_kernel)
{
    bool nothing = seen->local == 0 && seen->shared_faults == 0;

    if (!strict_kernel)
        nothing = nothing && seen->remote == 0 && seen->private_faults == 0;
    if (nothing || seen->n_failed > 0)
        return MIN(range->max_usec, period_usec * 2);
    return CLAMP(add_slots(period_usec, seen), range->min_usec, range->max_usec);
}
