/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P8 and P9: which memory of a process is scanned next (S-VMA, S-SETTLE). */

#include "fixture.h"
#include "plan/scan/scan.h"

#include <inttypes.h>

#define MEGABYTE (UINT64_C(1) << 20)
#define SECOND   UINT64_C(1000000)
#define GAP      (UINT64_C(1) << 40) /* between the starts of regions */

typedef struct Space {
    MemoryRegions regions;
    Scan scan;
    ScanRules rules;
    ScanWindow window;
    uint64_t now_usec;
} Space;

static void space_init(Space *space, bool force_complete)
{
    *space = (Space){
        .rules = {.window_bytes = 256 * MEGABYTE, .force_complete = force_complete},
        .now_usec = 1000 * SECOND,
    };
}

static void space_done(Space *space)
{
    regions_done(&space->regions);
    scan_window_done(&space->window);
}

/* Adds private, readable and writable memory, all of it present as far as is known. */
static MemoryRegion *add(Space *space, uint64_t bytes)
{
    MemoryRegion region = {
        .start = (space->regions.n + 1) * GAP,
        .end = (space->regions.n + 1) * GAP + bytes,
        .kind = REGION_KIND_ANON,
        .readable = true,
        .writable = true,
        .resident_bytes = REGION_RESIDENT_UNKNOWN,
    };

    assert_int_equal(regions_add(&space->regions, &region), 0);
    return &space->regions.list[space->regions.n - 1];
}

static const ScanWindow *step(Space *space, uint64_t after_usec)
{
    space->now_usec += after_usec;
    assert_int_equal(scan_step(&space->scan, &space->regions, &space->rules, space->now_usec, &space->window),
                     0);
    return &space->window;
}

/* Asserts the counts of each reason in the last step, in order, as "1 0 0 0 0 0 0 0". */
static void reasons_are(const Space *space, const char *expected)
{
    char text[128] = "";
    size_t len = 0;

    for (int i = 0; i < SCAN_REASON_MAX; i++)
        len +=
            (size_t)snprintf(text + len, sizeof(text) - len, "%s%" PRIu32, i ? " " : "", space->window.n[i]);
    assert_string_equal(text, expected);
}

static void test_names(void **state)
{
    static const char *const names[] = {"unsuitable",    "shared_ro",    "inaccessible",        "scan_delay",
                                        "seq_completed", "pid_inactive", "ignore_pid_inactive", "forced"};

    for (int i = 0; i < SCAN_REASON_MAX; i++)
        assert_string_equal(scan_reason_names[i], names[i]);
    assert_null(scan_reason_names[SCAN_REASON_MAX]);
}

/* Each region fails its own test and all later ones; the first failure counts. */
static void test_order(void **state)
{
    CLEANUP(space_done) Space space;
    MemoryRegion *region;

    space_init(&space, false);
    (void)add(&space, MEGABYTE); /* a suitable one */
    step(&space, 0);
    assert_true(space.window.ended);

    region = add(&space, MEGABYTE);
    region->kind = REGION_KIND_HUGETLB;
    region->inode = 3;
    region->writable = false;
    region = add(&space, MEGABYTE);
    region->kind = REGION_KIND_DEVICE;
    region->readable = region->writable = false;
    region = add(&space, MEGABYTE);
    region->bound = true;
    region = add(&space, MEGABYTE);
    region->kind = REGION_KIND_FILE;
    region->inode = 4;
    region->writable = false;
    region = add(&space, MEGABYTE);
    region->readable = region->writable = false;
    (void)add(&space, MEGABYTE); /* new */
    step(&space, 0);
    reasons_are(&space, "3 1 1 2 0 0 0 0");
    assert_int_equal(space.window.n_ranges, 0);

    /* After the delay only regions that are never scanned are left out. */
    step(&space, SCAN_DELAY_USEC - 1);
    reasons_are(&space, "3 1 1 2 0 0 0 0");
    step(&space, 1);
    reasons_are(&space, "3 1 1 0 0 0 0 0");
    assert_int_equal(space.window.n_ranges, 2);
    assert_int_equal(space.scan.n[SCAN_REASON_UNSUITABLE], 9);
}

/* An unreadable guard mapping of a file does not count as a read-only file. */
static void test_guard_of_file(void **state)
{
    CLEANUP(space_done) Space space;
    MemoryRegion *region;

    space_init(&space, true);
    region = add(&space, MEGABYTE);
    region->kind = REGION_KIND_FILE;
    region->inode = 4;
    region->readable = region->writable = false;
    step(&space, 0);
    reasons_are(&space, "0 0 1 0 0 0 0 0");
}

static void count_windows(uint64_t rss_mb, uint64_t n_windows)
{
    CLEANUP(space_done) Space space;
    uint64_t at = 0, n = 0;

    space_init(&space, false);
    (void)add(&space, rss_mb / 3 * MEGABYTE);
    (void)add(&space, (rss_mb - rss_mb / 3) * MEGABYTE);
    do {
        step(&space, 0);
        n++;
        assert_true(space.window.present_bytes <= 256 * MEGABYTE + SCAN_ALIGN_BYTES);
        for (size_t i = 0; i < space.window.n_ranges; i++) {
            assert_true(space.window.ranges[i].start >= at);
            at = space.window.ranges[i].end;
        }
    } while (!space.window.ended);
    assert_int_equal(n, n_windows);
    assert_int_equal(space.scan.scanned_bytes, rss_mb * MEGABYTE);
    assert_int_equal(scan_coverage_permille(&space.scan), 1000);
}

/* As many windows as P8 assumes for the period. */
static void test_windows(void **state)
{
    count_windows(100, 1);
    count_windows(1024, 4);
    count_windows(16384, 64);
    count_windows(65536, 256);
}

/* Absent memory costs no budget, but one step covers at most eight windows of addresses. */
static void test_virtual(void **state)
{
    CLEANUP(space_done) Space space;
    MemoryRegion *region;

    space_init(&space, false);
    region = add(&space, 3072 * MEGABYTE);
    region->resident_bytes = 0;
    step(&space, 0);
    assert_int_equal(space.window.virtual_bytes, 2048 * MEGABYTE);
    assert_int_equal(space.window.present_bytes, 0);
    assert_false(space.window.ended);
    step(&space, 0);
    assert_int_equal(space.window.virtual_bytes, 1024 * MEGABYTE);
    assert_true(space.window.ended);

    /* Half of it is present. */
    region->resident_bytes = 1536 * MEGABYTE;
    step(&space, 2 * SECOND);
    assert_int_equal(space.window.virtual_bytes, 512 * MEGABYTE);
    assert_int_equal(space.window.present_bytes, 256 * MEGABYTE);
}

/* Two sequences scan everything. Later ones scan what is used, and one forced region in each step. */
static void test_forced(void **state)
{
    CLEANUP(space_done) Space space;

    space_init(&space, true);
    for (int i = 0; i < 3; i++)
        (void)add(&space, 300 * MEGABYTE);
    space.rules.window_bytes = 1000 * MEGABYTE;
    for (int i = 0; i < 2; i++) {
        step(&space, 2 * SECOND);
        reasons_are(&space, "0 0 0 0 0 0 0 0");
        assert_true(space.window.ended);
    }

    /* A thread is seen in the second region. */
    scan_note_access(&space.regions, 2 * GAP + 4096, 77);
    step(&space, SECOND);
    reasons_are(&space, "0 0 0 0 0 2 0 1");
    assert_int_equal(space.window.n_ranges, 2);
    assert_int_equal(space.window.ranges[0].start, 2 * GAP);
    assert_int_equal(space.window.ranges[1].start, GAP);
    assert_false(space.window.ended);

    /* The second region was scanned; the third remains. */
    step(&space, SECOND);
    reasons_are(&space, "0 0 0 0 1 1 0 1");
    assert_int_equal(space.window.n_ranges, 1);
    assert_int_equal(space.window.ranges[0].start, 3 * GAP);
    assert_true(space.window.ended);
    assert_int_equal(space.scan.n_covered, 3);

    /* Without force the other regions are left out, and the sequence ends at once. */
    space.rules.force_complete = false;
    step(&space, SECOND);
    assert_int_equal(space.window.n_ranges, 1);
    assert_true(space.window.ended);
    assert_int_equal(scan_coverage_permille(&space.scan), 333);
}

/* A forced region larger than the window is continued in the next step. */
static void test_forced_large(void **state)
{
    CLEANUP(space_done) Space space;

    space_init(&space, true);
    (void)add(&space, 600 * MEGABYTE);
    (void)add(&space, MEGABYTE);
    for (int i = 0; i < 2; i++)
        do
            step(&space, SECOND);
        while (!space.window.ended);

    step(&space, SECOND);
    reasons_are(&space, "0 0 0 0 0 2 0 1");
    step(&space, SECOND);
    reasons_are(&space, "0 0 0 0 0 0 1 0");
    assert_int_equal(space.window.ranges[0].start, GAP + 256 * MEGABYTE);
    step(&space, SECOND);
    reasons_are(&space, "0 0 0 0 0 1 1 1");
    assert_true(space.window.ended);
    assert_int_equal(space.scan.n_covered, 2);
}

/* A user is forgotten after four to eight delays; a scan for one thread covers what that thread used. */
static void test_filter(void **state)
{
    CLEANUP(space_done) Space space;

    space_init(&space, false);
    (void)add(&space, MEGABYTE);
    step(&space, SECOND);
    step(&space, SECOND);
    scan_note_access(&space.regions, GAP, 77);
    space.rules.tid = 78;
    step(&space, SECOND);
    assert_int_equal(space.window.n_ranges, 0);
    space.rules.tid = 77;
    step(&space, SECOND);
    assert_int_equal(space.window.n_ranges, 1);
    step(&space, 4 * SECOND); /* one ageing step */
    assert_int_equal(space.window.n_ranges, 1);
    step(&space, 4 * SECOND);
    assert_int_equal(space.window.n_ranges, 0);

    scan_note_access(&space.regions, GAP, 77);
    step(&space, 3600 * SECOND);
    assert_int_equal(space.window.n_ranges, 0);
    scan_note_access(&space.regions, 5 * GAP, 77); /* in no region */
}

/* The address space changes during a scan. */
static void test_changes(void **state)
{
    CLEANUP(space_done) Space space;
    MemoryRegions old;

    space_init(&space, true);
    (void)add(&space, 600 * MEGABYTE);
    step(&space, 0);
    old = space.regions;
    space.regions = (MemoryRegions){0};
    (void)add(&space, 100 * MEGABYTE); /* the scan's position no longer exists */
    (void)add(&space, 100 * MEGABYTE);
    regions_inherit(&space.regions, &old);
    regions_done(&old);
    step(&space, 0);
    assert_int_equal(space.window.n_ranges, 2);
    assert_int_equal(space.window.ranges[0].start, 2 * GAP);
    assert_int_equal(space.window.ranges[1].start, GAP);
    assert_true(space.window.ended);

    regions_done(&space.regions);
    step(&space, 0);
    assert_true(space.window.ended);
    assert_int_equal(space.window.n_ranges, 0);
    assert_int_equal(scan_coverage_permille(&space.scan), 0);
}

/*
 * S-VMA
 */

#define THREADS 16U

/* Runs a process of sixteen threads that each use one region all the time. Each scan is for a thread drawn at
 * random. Returns the mean coverage of sequences 3 to `n`. */
static uint32_t run_vma(uint64_t seed, bool force_complete, uint64_t n)
{
    uint64_t sum = 0;
    Space space;

    space_init(&space, force_complete);
    for (uint32_t i = 0; i < THREADS; i++)
        (void)add(&space, 192 * MEGABYTE);
    while (space.scan.sequence < n) {
        space.rules.tid = 100 + (pid_t)lcg_below(&seed, THREADS);
        step(&space, SECOND / 10);
        for (size_t i = 0; i < space.window.n_ranges; i++) {
            uint64_t start = space.window.ranges[i].start;

            scan_note_access(&space.regions, start, 99 + (pid_t)(start / GAP));
        }
        if (space.window.ended && space.scan.sequence > 2)
            sum += scan_coverage_permille(&space.scan);
    }
    space_done(&space);
    return (uint32_t)(sum / (n - 2));
}

/* Without force a sequence covers the regions whose user happens to scan: a sixteenth, slightly more because threads
 * share bits. It shrinks with time, because a user that has not scanned for long is forgotten for good. */
static void test_vma(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint32_t early = run_vma(seed, false, 40), late = run_vma(seed, false, 2000);

        assert_int_equal(run_vma(seed, true, 20), 1000);
        assert_in_range(early, 62, 125);
        assert_true(late < early / 2);
    }
}

/*
 * Random spaces
 */

static MemoryRegion random_region(uint64_t *seed, uint64_t start)
{
    uint64_t bytes = (1 + lcg_below(seed, 600)) * MEGABYTE;

    return (MemoryRegion){
        .start = start,
        .end = start + bytes,
        .kind = (RegionKind)lcg_below(seed, REGION_KIND_MAX),
        .inode = lcg_below(seed, 3),
        .readable = lcg_below(seed, 4) > 0,
        .writable = lcg_below(seed, 4) > 0,
        .bound = lcg_below(seed, 8) == 0,
        .resident_bytes = lcg_below(seed, 2) ? REGION_RESIDENT_UNKNOWN : lcg_below(seed, 600) * MEGABYTE,
    };
}

/* Mappings are added, removed and changed. */
static void change(Space *space, uint64_t *seed)
{
    CLEANUP(regions_done) MemoryRegions before = space->regions;

    space->regions = (MemoryRegions){0};
    for (uint64_t start = GAP, i = 0; i < 12; i++) {
        MemoryRegion region = random_region(seed, start);
        const MemoryRegion *old = regions_find(&before, start);

        if (old && lcg_below(seed, 4) > 0) {
            region.kind = old->kind;
            region.inode = old->inode;
            region.bound = old->bound;
        }
        if (lcg_below(seed, 6) > 0)
            assert_int_equal(regions_add(&space->regions, &region), 0);
        start = region.end + lcg_below(seed, 3) * MEGABYTE;
    }
    regions_inherit(&space->regions, &before);
}

/* Every range lies in one suitable region, is not empty, and ends at a huge page or at the end of the region.
 * A step takes no more than its budget and one huge page of each region it ends in. */
static void check_window(const Space *space)
{
    const ScanWindow *window = &space->window;
    uint64_t sum = 0;

    for (size_t i = 0; i < window->n_ranges; i++) {
        const ScanRange *range = &window->ranges[i];
        const MemoryRegion *region = regions_find(&space->regions, range->start);

        assert_non_null(region);
        assert_true(range->start < range->end && range->end <= region->end);
        assert_true(range->end == region->end || range->end % SCAN_ALIGN_BYTES == 0);
        assert_true(region->kind != REGION_KIND_HUGETLB && region->kind != REGION_KIND_DEVICE &&
                    !region->bound);
        assert_true(region->readable || region->writable || region->executable);
        sum += range->end - range->start;
    }
    assert_int_equal(sum, window->virtual_bytes);
    assert_true(window->present_bytes <= space->rules.window_bytes + SCAN_ALIGN_BYTES);
    assert_true(sum <= space->rules.window_bytes * SCAN_VIRTUAL_FACTOR + SCAN_ALIGN_BYTES);
}

/* A forced sequence ends, and has covered everything. */
static void test_random(void **state)
{
    for (uint64_t i = 1; i <= 300; i++) {
        uint64_t seed = i;
        uint32_t n_since = 0;
        CLEANUP(space_done) Space space;

        space_init(&space, true);
        for (int round = 0; round < 300; round++) {
            if (round < 100 && round % 10 == 0)
                change(&space, &seed);
            if (lcg_below(&seed, 2))
                scan_note_access(&space.regions, GAP + lcg_below(&seed, 4000) * MEGABYTE, 100);
            step(&space, SECOND / 10);
            check_window(&space);
            if (space.window.ended)
                assert_int_equal(space.scan.n_covered, space.scan.n_eligible);
            n_since = space.window.ended ? 0 : n_since + 1;
            assert_true(n_since < 100);
        }
    }
}

TEST_MAIN(NULL, NULL, test_names, test_order, test_guard_of_file, test_windows, test_virtual, test_forced,
          test_forced_large, test_filter, test_changes, test_vma, test_random)
