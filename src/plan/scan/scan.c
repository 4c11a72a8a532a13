/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Looking at a region is the only way to learn that it is used, and the scan skips regions that are not used. So a
 * region left out once is left out for good, unless it is forced.
 *
 * The first two sequences look at everything. From then on a region is looked at if the filters say that a thread was
 * there during the last four to eight delays. Example: sixteen regions, one thread in each, and a scan for one thread
 * at a time. Its own region passes, the fifteen others do not, so a sequence sees a sixteenth of the memory. With
 * force_complete each step that comes to the end of the list takes one of the fifteen, and after fifteen such steps
 * the sequence is complete. A scan for all threads leaves out only unused regions, and regions used again after a
 * pause.
 *
 * The budget is present memory. How much of a range is present follows from the last look at its region, evenly
 * spread; without one, everything counts as present. Address space is bounded by eight times the window.
 *
 * Not restated: 6.12 also takes regions left out for more sequences than there are threads (f22cde4371f3). */

#include "plan/scan/scan.h"

#include "base/util.h"

#include <string.h>

const char *const scan_reason_names[] = {
    [SCAN_REASON_UNSUITABLE] = "unsuitable",
    [SCAN_REASON_SHARED_RO] = "shared_ro",
    [SCAN_REASON_INACCESSIBLE] = "inaccessible",
    [SCAN_REASON_SCAN_DELAY] = "scan_delay",
    [SCAN_REASON_SEQ_COMPLETED] = "seq_completed",
    [SCAN_REASON_PID_INACTIVE] = "pid_inactive",
    [SCAN_REASON_IGNORE_PID] = "ignore_pid_inactive",
    [SCAN_REASON_FORCED] = "forced",
    [SCAN_REASON_MAX] = NULL,
};

/* First sequences of a region, in which it is looked at whoever uses it. In the kernel its delay counts among them. */
#define OPEN_SEQUENCES 2U

typedef struct Step {
    Scan *scan;
    MemoryRegions *regions;
    const ScanRules *rules;
    uint64_t now_usec;
    uint64_t present_left, virtual_left;
    ScanWindow *window;
} Step;

void scan_window_done(ScanWindow *window)
{
    free(window->ranges);
    *window = (ScanWindow){0};
}

/*
 * Tests
 */

static bool is_unsuitable(const MemoryRegion *region)
{
    return region->kind == REGION_KIND_DEVICE || region->kind == REGION_KIND_HUGETLB || region->bound;
}

static bool is_shared_ro(const MemoryRegion *region)
{
    return region->inode > 0 && region->readable && !region->writable;
}

static bool is_inaccessible(const MemoryRegion *region)
{
    return !region->readable && !region->writable && !region->executable;
}

/* Why the region is never looked at, or SCAN_REASON_MAX. */
static ScanReason test_nature(const MemoryRegion *region)
{
    if (is_unsuitable(region))
        return SCAN_REASON_UNSUITABLE;
    if (is_shared_ro(region))
        return SCAN_REASON_SHARED_RO;
    return is_inaccessible(region) ? SCAN_REASON_INACCESSIBLE : SCAN_REASON_MAX;
}

static void meet(const Step *step, MemoryRegion *region)
{
    if (region->scan.known)
        return;
    region->scan = (RegionScan){
        .known = true,
        .first_sequence = step->scan->sequence,
        .done_sequence = step->scan->sequence,
        .next_usec = step->now_usec + SCAN_DELAY_USEC,
        .forget_usec = step->now_usec + (uint64_t)(1 + SCAN_FORGET_DELAYS) * SCAN_DELAY_USEC,
    };
}

static bool is_delayed(const Step *step, const MemoryRegion *region)
{
    return step->scan->sequence > 0 && step->now_usec < region->scan.next_usec;
}

/* After two periods without a look nothing is left. */
static void forget(const Step *step, MemoryRegion *region)
{
    const uint64_t period = (uint64_t)SCAN_FORGET_DELAYS * SCAN_DELAY_USEC;
    RegionScan *scan = &region->scan;

    for (int i = 0; i < 2 && step->now_usec >= scan->forget_usec; i++) {
        scan->active[0] = scan->active[1];
        scan->active[1] = 0;
        scan->forget_usec += period;
    }
    if (step->now_usec >= scan->forget_usec)
        scan->forget_usec = step->now_usec + period;
}

static bool is_completed(const Step *step, const MemoryRegion *region)
{
    return region->scan.done_sequence > step->scan->sequence;
}

/* hash_32(tid, 6) of the kernel: the golden ratio. */
static uint64_t filter_of(pid_t tid)
{
    return UINT64_C(1) << ((uint32_t)tid * 0x61C88647U >> 26);
}

static bool is_active(const Step *step, const MemoryRegion *region)
{
    uint64_t filter = step->rules->tid ? filter_of(step->rules->tid) : UINT64_MAX;

    return step->scan->sequence - region->scan.first_sequence < OPEN_SEQUENCES ||
           ((region->scan.active[0] | region->scan.active[1]) & filter);
}

/* Why a region is left out in its turn, or looked at although no use is known; SCAN_REASON_MAX: it is used. */
static ScanReason test(const Step *step, MemoryRegion *region)
{
    ScanReason reason = test_nature(region);

    if (reason != SCAN_REASON_MAX)
        return reason;
    meet(step, region);
    if (is_delayed(step, region)) {
        region->scan.first_sequence = step->scan->sequence;
        return SCAN_REASON_SCAN_DELAY;
    }
    forget(step, region);
    if (is_completed(step, region))
        return SCAN_REASON_SEQ_COMPLETED;
    if (is_active(step, region))
        return SCAN_REASON_MAX;
    return step->scan->offset > region->start ? SCAN_REASON_IGNORE_PID : SCAN_REASON_PID_INACTIVE;
}

/* Whether the region is still to be looked at in this sequence, if forced. */
static bool is_left(const Step *step, const MemoryRegion *region)
{
    return test_nature(region) == SCAN_REASON_MAX && region->scan.known && !is_delayed(step, region) &&
           !is_completed(step, region);
}

/*
 * Ranges
 */

/* End of a range from `start` with `budget` bytes left; rounded up, so that each step makes progress. */
static uint64_t end_of(const MemoryRegion *region, uint64_t start, uint64_t budget)
{
    uint64_t end;

    if (region->end - start <= budget)
        return region->end;
    end = start + MAX(budget, 1U);
    if (__builtin_add_overflow(end, SCAN_ALIGN_BYTES - 1, &end))
        return region->end;
    return MIN(end & ~(SCAN_ALIGN_BYTES - 1), region->end);
}

__extension__ typedef unsigned __int128 Wide;

/* bytes * part / whole without overflow; `whole` is not 0. */
static uint64_t share(uint64_t bytes, uint64_t part, uint64_t whole)
{
    return (uint64_t)((Wide)bytes * part / whole);
}

static uint64_t present_in(const MemoryRegion *region, uint64_t length)
{
    uint64_t all = region->end - region->start;

    return region->resident_bytes == REGION_RESIDENT_UNKNOWN
               ? length
               : share(MIN(region->resident_bytes, all), length, all);
}

/* Length of addresses that hold `present` bytes, up to `virtual`. */
static uint64_t length_for(const MemoryRegion *region, uint64_t present, uint64_t virtual)
{
    uint64_t all = region->end - region->start, resident = MIN(region->resident_bytes, all);
    Wide length;

    if (region->resident_bytes == REGION_RESIDENT_UNKNOWN)
        return MIN(present, virtual);
    if (resident == 0)
        return virtual;
    length = (Wide)all * present / resident;
    return length < virtual ? (uint64_t)length : virtual;
}

static uint64_t less(uint64_t from, uint64_t n)
{
    return from - MIN(from, n);
}

/* Looks at a region, from the offset if that is in it, as far as the budget goes. */
static int look(Step *step, MemoryRegion *region)
{
    ScanWindow *window = step->window;
    uint64_t start = MAX(region->start, step->scan->offset), end, present;

    if (!GROW(window->ranges, window->capacity, window->n_ranges + 1))
        return -ENOMEM;
    end = end_of(region, start, length_for(region, step->present_left, step->virtual_left));
    present = present_in(region, end - start);
    window->ranges[window->n_ranges++] = (ScanRange){start, end};
    window->present_bytes += present;
    window->virtual_bytes += end - start;
    step->present_left = less(step->present_left, present);
    step->virtual_left = less(step->virtual_left, end - start);
    step->scan->offset = end;
    step->scan->scanned_bytes += end - start;
    if (end == region->end)
        region->scan.done_sequence = step->scan->sequence + 1;
    return 0;
}

static bool is_spent(const Step *step)
{
    return step->present_left == 0 || step->virtual_left == 0;
}

/*
 * A step
 */

static void count(const Step *step, ScanReason reason)
{
    step->scan->n[reason]++;
    step->window->n[reason]++;
}

/* Returns 1 at the end of the list, 0 if the window is full before, or -ENOMEM. */
static int walk(Step *step)
{
    const MemoryRegions *regions = step->regions;

    for (size_t i = regions_from(regions, step->scan->offset); i < regions->n; i++) {
        MemoryRegion *region = &regions->list[i];
        ScanReason reason;
        int r;

        if (is_spent(step))
            return 0;
        reason = test(step, region);
        if (reason != SCAN_REASON_MAX)
            count(step, reason);
        if (reason < SCAN_REASON_IGNORE_PID)
            continue;
        r = look(step, region);
        if (r < 0)
            return r;
        if (step->scan->offset < region->end)
            return 0;
    }
    return 1;
}

/* Looks at the first region that was left out. */
static int force(Step *step)
{
    for (size_t i = 0; i < step->regions->n; i++) {
        MemoryRegion *region = &step->regions->list[i];

        if (!is_left(step, region))
            continue;
        count(step, SCAN_REASON_FORCED);
        step->scan->offset = region->start;
        return look(step, region);
    }
    return 0;
}

static void end_sequence(Step *step)
{
    Scan *scan = step->scan;

    scan->n_eligible = scan->n_covered = 0;
    for (size_t i = 0; i < step->regions->n; i++) {
        const MemoryRegion *region = &step->regions->list[i];
        bool left = is_left(step, region);

        scan->n_eligible += left || (region->scan.known && is_completed(step, region));
        scan->n_covered += region->scan.known && is_completed(step, region);
    }
    scan->sequence++;
    scan->offset = 0;
    step->window->ended = true;
}

static bool is_any_left(const Step *step)
{
    for (size_t i = 0; i < step->regions->n; i++)
        if (is_left(step, &step->regions->list[i]))
            return true;
    return false;
}

int scan_step(Scan *scan, MemoryRegions *regions, const ScanRules *rules, uint64_t now_usec,
              ScanWindow *window)
{
    Step step = {
        .scan = scan,
        .regions = regions,
        .rules = rules,
        .now_usec = now_usec,
        .present_left = rules->window_bytes,
        .virtual_left = MIN(rules->window_bytes, UINT64_MAX / SCAN_VIRTUAL_FACTOR) * SCAN_VIRTUAL_FACTOR,
        .window = window,
    };
    int r;

    window->n_ranges = 0;
    window->present_bytes = window->virtual_bytes = 0;
    window->ended = false;
    memset(window->n, 0, sizeof(window->n));
    scan->n_windows++;

    r = walk(&step);
    if (r <= 0)
        return r;
    if (rules->force_complete && !is_spent(&step)) {
        r = force(&step);
        if (r < 0)
            return r;
    }
    if (!rules->force_complete || !is_any_left(&step))
        end_sequence(&step);
    return 0;
}

void scan_note_access(MemoryRegions *regions, uint64_t address, pid_t tid)
{
    MemoryRegion *region = regions_find(regions, address);

    if (region)
        region->scan.active[1] |= filter_of(tid);
}

uint32_t scan_coverage_permille(const Scan *scan)
{
    return scan->n_eligible > 0 ? (uint32_t)((uint64_t)scan->n_covered * 1000 / scan->n_eligible) : 0;
}
