/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P9, completing scans: what is remembered of an address space that changes. */

#include "base/util.h"
#include "unit-test.h"
#include "world/regions.h"

#define PAGE  UINT64_C(4096)
#define PAGES 64U

static MemoryRegion region(uint64_t start, uint64_t end, uint64_t inode)
{
    return (MemoryRegion){
        .start = start * PAGE,
        .end = end * PAGE,
        .inode = inode,
        .readable = true,
        .writable = true,
        .resident_bytes = REGION_RESIDENT_UNKNOWN,
    };
}

static void add(MemoryRegions *regions, MemoryRegion one)
{
    assert_int_equal(regions_add(regions, &one), 0);
}

static MemoryRegion known(uint64_t start, uint64_t end, uint64_t inode, uint64_t done, uint64_t filter)
{
    MemoryRegion one = region(start, end, inode);

    one.resident_bytes = PAGE;
    one.scan = (RegionScan){
        .known = true,
        .first_sequence = done - 1,
        .done_sequence = done,
        .next_usec = 100 * done,
        .forget_usec = 1000 * done,
        .active = {filter, filter << 8},
    };
    return one;
}

static void test_order(void **state)
{
    MemoryRegions regions = {0};
    MemoryRegion bad[] = {region(9, 12, 0), region(12, 12, 0), region(13, 12, 0)};

    add(&regions, region(1, 10, 0));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(regions_add(&regions, &bad[i]), -EINVAL);
    add(&regions, region(10, 11, 0));
    add(&regions, region(20, 30, 0));
    assert_int_equal(regions.n, 3);

    assert_null(regions_find(&regions, 0));
    assert_ptr_equal(regions_find(&regions, 1 * PAGE), &regions.list[0]);
    assert_ptr_equal(regions_find(&regions, 10 * PAGE - 1), &regions.list[0]);
    assert_ptr_equal(regions_find(&regions, 10 * PAGE), &regions.list[1]);
    assert_null(regions_find(&regions, 11 * PAGE));
    assert_null(regions_find(&regions, 30 * PAGE));
    assert_int_equal(regions_from(&regions, 11 * PAGE), 2);
    assert_int_equal(regions_from(&regions, 30 * PAGE), 3);
    regions_done(&regions);
    assert_int_equal(regions_from(&regions, 0), 0);
}

static void test_inherit(void **state)
{
    MemoryRegions before = {0}, now = {0};
    MemoryRegion *list;

    add(&before, known(0, 10, 0, 5, 1));   /* split, and the second half grows */
    add(&before, known(20, 30, 0, 6, 2));  /* joined */
    add(&before, known(30, 40, 0, 4, 4));  /* with this one */
    add(&before, known(50, 60, 7, 6, 8));  /* unmapped; a file is mapped there */
    add(&before, known(70, 80, 7, 6, 16)); /* stays */
    add(&before, region(90, 95, 0));       /* never seen by a scan */

    add(&now, region(0, 5, 0));
    add(&now, region(5, 15, 0));
    add(&now, region(20, 40, 0));
    add(&now, region(50, 60, 8));
    add(&now, region(70, 80, 7));
    add(&now, region(90, 95, 0));
    add(&now, region(97, 98, 0));
    regions_inherit(&now, &before);
    list = now.list;

    for (int i = 0; i < 2; i++) {
        assert_true(list[i].scan.known);
        assert_int_equal(list[i].scan.done_sequence, 5);
        assert_int_equal(list[i].scan.active[0], 1);
        assert_true(list[i].resident_bytes == REGION_RESIDENT_UNKNOWN);
    }
    assert_int_equal(list[2].scan.done_sequence, 4);
    assert_int_equal(list[2].scan.first_sequence, 3);
    assert_int_equal(list[2].scan.next_usec, 400);
    assert_int_equal(list[2].scan.forget_usec, 4000);
    assert_int_equal(list[2].scan.active[0], 6);
    assert_int_equal(list[2].scan.active[1], 0x600);
    assert_false(list[3].scan.known);
    assert_int_equal(list[4].scan.active[0], 16);
    assert_int_equal(list[4].resident_bytes, PAGE);
    assert_false(list[5].scan.known || list[6].scan.known);
    regions_done(&before);
    regions_done(&now);
}

/* A random address space of regions with gaps. */
static void make(uint64_t *seed, MemoryRegions *ret, bool scanned)
{
    for (uint64_t at = lcg_below(seed, 4); at < PAGES;) {
        uint64_t end = MIN(at + 1 + lcg_below(seed, 9), PAGES), inode = lcg_below(seed, 2);

        add(ret, scanned && lcg_below(seed, 4) > 0
                     ? known(at, end, inode, 2 + lcg_below(seed, 9), 1 + lcg_below(seed, 255))
                     : region(at, end, inode));
        at = end + lcg_below(seed, 3);
    }
}

/* Checks the result, page by page. */
static void check(const MemoryRegion *one, const MemoryRegions *before)
{
    uint64_t done = UINT64_MAX, filter = 0;

    for (uint64_t page = one->start; page < one->end; page += PAGE) {
        const MemoryRegion *old = regions_find(before, page);

        if (!old || !old->scan.known || old->inode != one->inode)
            continue;
        done = MIN(done, old->scan.done_sequence);
        filter |= old->scan.active[0];
    }
    assert_int_equal(one->scan.known, done != UINT64_MAX);
    if (one->scan.known)
        assert_int_equal(one->scan.done_sequence, done);
    assert_int_equal(one->scan.active[0], filter);
}

static void test_random(void **state)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        MemoryRegions before = {0}, now = {0};
        uint64_t s = seed;

        make(&s, &before, true);
        make(&s, &now, false);
        regions_inherit(&now, &before);
        for (size_t i = 0; i < now.n; i++)
            check(&now.list[i], &before);
        regions_done(&before);
        regions_done(&now);
    }
}

TEST_MAIN(NULL, NULL, test_order, test_inherit, test_random)
