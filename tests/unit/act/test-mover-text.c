/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Texts that the mover reads, and its arithmetic: mappings, mounts, room on a node, pace and rate. */

#include "act/mover/pace.h"
#include "act/mover/room.h"
#include "kernel/page-maps.h"
#include "unit-test.h"

#include <inttypes.h>
#include <sys/sysmacros.h>

#define MIB (UINT64_C(1) << 20)

/*
 * Mappings
 */

static const char mountinfo[] = "22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
                                "24 28 0:5 / /dev rw,nosuid shared:2 - devtmpfs udev rw,size=8k\n"
                                "26 24 0:22 / /dev/shm rw,nosuid shared:3 master:1 - tmpfs tmpfs rw\n"
                                "27 24 0:23 / /dev/hugepages rw - hugetlbfs hugetlbfs rw,pagesize=2M\n"
                                "28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                                "29 28 0:24 / /a\\040- rw - tmpfs none rw\n"
                                "30 28 0:25 /tmpfs /b rw - tmpfsx none rw\n"
                                "nonsense\n"
                                "31 28 x:y / /c rw - tmpfs none rw\n"
                                "32 28 0:26 / /d rw";

static PageMounts mounts_of(const char *text)
{
    PageMounts mounts = {.internal = makedev(0, 1)};

    assert_int_equal(page_mounts_parse(text, &mounts), 0);
    return mounts;
}

static void test_mounts(void **state)
{
    CLEANUP(page_mounts_done) PageMounts mounts = mounts_of(mountinfo);

    assert_int_equal(mounts.n, 3);
    assert_int_equal(mounts.list[0].device, makedev(0, 0x16));
    assert_int_equal(mounts.list[0].kind, PAGE_KIND_SHMEM);
    assert_int_equal(mounts.list[1].kind, PAGE_KIND_HUGETLB);
    assert_int_equal(mounts.list[2].device, makedev(0, 24));
}

static void test_no_mounts(void **state)
{
    CLEANUP(page_mounts_done) PageMounts mounts = mounts_of("");

    assert_int_equal(mounts.n, 0);
}

static void test_kinds(void **state)
{
    static const struct {
        const char *device, *path;
        PageKind kind;
    } rows[] = {
        {"00:00 0", "", PAGE_KIND_ANON},
        {"00:00 0", "[heap]", PAGE_KIND_ANON},
        {"00:00 0", "[stack]", PAGE_KIND_ANON},
        {"00:00 0", "[anon:glibc: malloc]", PAGE_KIND_ANON},
        {"00:00 0", "[vdso]", PAGE_KIND_DEVICE},
        {"00:00 0", "[vvar]", PAGE_KIND_DEVICE},
        {"00:00 0", "[uprobes]", PAGE_KIND_DEVICE},
        {"00:01 7", "/memfd:x (deleted)", PAGE_KIND_SHMEM},
        {"00:01 0", "/SYSV00000000 (deleted)", PAGE_KIND_SHMEM},
        {"00:01 3", "/dev/zero (deleted)", PAGE_KIND_SHMEM},
        {"00:01 3", "[anon_shmem:x]", PAGE_KIND_SHMEM},
        {"00:16 9", "/dev/shm/PostgreSQL.1", PAGE_KIND_SHMEM},
        {"00:18 9", "/a - /file", PAGE_KIND_SHMEM},
        {"00:0f 7", "/memfd:x (deleted)", PAGE_KIND_HUGETLB},
        {"00:0f 0", "/SYSV00000000 (deleted)", PAGE_KIND_HUGETLB},
        {"00:0f 8", "/anon_hugepage (deleted)", PAGE_KIND_HUGETLB},
        {"00:17 8", "/dev/hugepages/vm", PAGE_KIND_HUGETLB},
        {"00:05 6", "/dev/mem", PAGE_KIND_DEVICE},
        {"00:16 6", "/dev/nvidia0", PAGE_KIND_DEVICE}, /* the /dev of a container */
        {"00:0e 1", "anon_inode:[perf_event]", PAGE_KIND_DEVICE},
        {"00:08 5", "socket:[12]", PAGE_KIND_DEVICE},
        {"08:01 5", "/usr/lib/libc.so.6", PAGE_KIND_FILE},
        {"00:1a 5", "/d/file", PAGE_KIND_FILE},   /* of a mount whose line is cut off */
        {"00:19 5", "/b/file", PAGE_KIND_FILE},   /* tmpfsx is not tmpfs */
        {"00:2a 5", "/over/lay", PAGE_KIND_FILE}, /* of no mount listed */
    };
    CLEANUP(page_mounts_done) PageMounts mounts = mounts_of(mountinfo);

    static const char *const modes[] = {"rw-p", "rw-s", "r-xp"};

    for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(modes); i++) {
        const char *device = rows[i / ARRAY_SIZE(modes)].device, *path = rows[i / ARRAY_SIZE(modes)].path;
        PageKind kind = rows[i / ARRAY_SIZE(modes)].kind;
        char line[256];
        const char *text = line;
        PageMapping mapping;

        /* Pages of a private writable mapping are the process's own once written. */
        if (i % ARRAY_SIZE(modes) == 0 && kind == PAGE_KIND_FILE)
            kind = PAGE_KIND_ANON;
        (void)snprintf(line, sizeof(line), "7f2c00000000-7f2c40000000 %s 00000000 %s      %s\n",
                       modes[i % ARRAY_SIZE(modes)], device, path);
        assert_int_equal(page_maps_next(&text, &mounts, &mapping), 1);
        if (mapping.kind != kind)
            fail_msg("%s", line);
        assert_int_equal(mapping.start, 0x7f2c00000000);
        assert_int_equal(mapping.end, 0x7f2c40000000);
        assert_true(mapping.accessible);
        assert_int_equal(page_maps_next(&text, &mounts, &mapping), 0);
    }
}

/* The last line may lack its newline. Lines that are not understood are reported and skipped. */
static void test_lines(void **state)
{
    const char *text = "1000-2000 ---p 00000000 00:00 0\n"
                       "1000 rw-p 00000000 00:00 0\n"
                       "3000-2000 rw-p 00000000 00:00 0\n"
                       "2000-2000 rw-p 00000000 00:00 0\n"
                       "\n"
                       "2000-3000 rw-p 00000000 00:00\n"
                       "2000-3000 rw 00000000 00:00 0\n"
                       "2000-3000 rw-p 00000000 0000 0\n"
                       "2000-10000000000000000 rw-p 00000000 00:00 0\n"
                       "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n"
                       "2000-3000 r--s 00000000 00:00 0";
    CLEANUP(page_mounts_done) PageMounts mounts = {0};
    PageMapping mapping = {.start = 1};

    assert_int_equal(page_maps_next(&text, &mounts, &mapping), 1);
    assert_false(mapping.accessible);
    for (size_t i = 0; i < 8; i++) {
        mapping.start = 77;
        assert_int_equal(page_maps_next(&text, &mounts, &mapping), -EINVAL);
        assert_int_equal(mapping.start, 77);
    }
    assert_int_equal(page_maps_next(&text, &mounts, &mapping), 1);
    assert_true(mapping.accessible);
    assert_int_equal(mapping.kind, PAGE_KIND_DEVICE);
    assert_int_equal(page_maps_next(&text, &mounts, &mapping), 1);
    assert_int_equal(mapping.end, 0x3000);
    assert_int_equal(page_maps_next(&text, &mounts, &mapping), 0);
}

/*
 * Room
 */

static const char meminfo[] = "Node 1 MemTotal:       16777216 kB\n"
                              "Node 1 MemFree:         2097152 kB\n"
                              "Node 1 MemUsed:        14680064 kB\n"
                              "Node 1 Active(file):    3000000 kB\n"
                              "Node 1 Inactive(file):  1048576 kB\n"
                              "Node 1 Dirty:               512 kB\n"
                              "Node 1 Writeback:           512 kB\n"
                              "Node 1 WritebackTmp:          7 kB\n"
                              "Node 1 HugePages_Total:     0\n";

static void test_meminfo(void **state)
{
    NodeMemory memory;

    assert_int_equal(node_memory_parse(meminfo, &memory), 0);
    assert_int_equal(memory.total_bytes, 16384 * MIB);
    assert_int_equal(memory.free_bytes, 2048 * MIB);
    assert_int_equal(node_memory_available(&memory) - memory.free_bytes, 1023 * MIB);
    assert_int_equal(node_memory_parse("", &memory), -EINVAL);
    assert_int_equal(node_memory_parse("Node 1 MemTotal: 1 kB\nNode 1 MemFree: 1 kB\n", &memory), -EINVAL);
}

/* No value is guessed when one number is wrong. */
static void test_meminfo_broken(void **state)
{
    static const char *const values[] = {"x", "-1", "1x", "", "99999999999999999999", "2000000000000000"};

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        char text[512];
        NodeMemory memory;

        (void)snprintf(
            text, sizeof(text),
            "Node 1 MemTotal: 5 kB\nNode 1 MemFree: %s kB\nNode 1 Inactive(file): 1 kB\nNode 1 Dirty: 1 kB\n"
            "Node 1 Writeback: 1 kB\n",
            values[i]);
        assert_int_equal(node_memory_parse(text, &memory), -EINVAL);
    }
}

static const char zoneinfo[] = "Node 0, zone      DMA\n"
                               "  per-node stats\n"
                               "      nr_inactive_anon 474256\n"
                               "  pages free     3840\n"
                               "        boost    0\n"
                               "        min      21\n"
                               "        low      26\n"
                               "        high     31\n"
                               "        spanned  4095\n"
                               "  pagesets\n"
                               "    cpu: 0\n"
                               "              count:    0\n"
                               "              high:     14\n"
                               "Node 0, zone   Normal\n"
                               "  pages free     3840\n"
                               "        high     1000\n"
                               "Node 1, zone   Normal\n"
                               "  pages free     3840\n"
                               "        high     5000\n"
                               "Node 10, zone   Normal\n"
                               "        high     7\n";

static void test_zoneinfo(void **state)
{
    uint64_t pages;

    assert_int_equal(mover_zoneinfo_parse(zoneinfo, 0, &pages), 0);
    assert_int_equal(pages, 1031);
    assert_int_equal(mover_zoneinfo_parse(zoneinfo, 1, &pages), 0);
    assert_int_equal(pages, 5000);
    assert_int_equal(mover_zoneinfo_parse(zoneinfo, 10, &pages), 0);
    assert_int_equal(pages, 7);
    pages = 99;
    assert_int_equal(mover_zoneinfo_parse(zoneinfo, 2, &pages), -EINVAL);
    assert_int_equal(mover_zoneinfo_parse("", 0, &pages), -EINVAL);
    assert_int_equal(pages, 99);
}

static void test_room(void **state)
{
    const NodeMemory memory = {
        .total_bytes = 1000 * MIB, .free_bytes = 300 * MIB, .inactive_bytes = 50 * MIB};
    MoverGuard guard = {.high_bytes = 20 * MIB};

    assert_int_equal(mover_room(&memory, &guard), 280 * MIB);
    guard.headroom_percent = 10;
    assert_int_equal(mover_room(&memory, &guard), 180 * MIB);
    guard.reserve_bytes = 100 * MIB;
    assert_int_equal(mover_room(&memory, &guard), 80 * MIB);
    guard.spend_cache = true;
    assert_int_equal(mover_room(&memory, &guard), 130 * MIB);
    guard.reserve_bytes = UINT64_MAX;
    assert_int_equal(mover_room(&memory, &guard), 0);
    guard = (MoverGuard){.high_bytes = 301 * MIB};
    assert_int_equal(mover_room(&memory, &guard), 0);
    guard = (MoverGuard){.headroom_percent = 100};
    assert_int_equal(mover_room(&memory, &guard), 0);
}

/*
 * Pace
 */

static void test_pace(void **state)
{
    /* The example in the header of mover/pace.c. */
    assert_int_equal(mover_pace_next(64, 64, 100, 8192), 128);
    assert_int_equal(mover_pace_next(128, 128, 40000, 8192), 32);
    /* Just right. */
    assert_int_equal(mover_pace_next(128, 128, MOVER_AIM_USEC, 8192), 128);
    /* Bounds. */
    assert_int_equal(mover_pace_next(64, 64, 0, 100), 100);
    assert_int_equal(mover_pace_next(1, 1, UINT64_MAX, 8192), 1);
    /* A call with few pages is no reason for longer calls, but may be one for shorter calls. */
    assert_int_equal(mover_pace_next(64, 10, 10, 8192), 64);
    assert_int_equal(mover_pace_next(64, 10, 50000, 8192), 2);
}

/* Calls settle at the time aimed at, whatever a page costs, and never take longer than twice that. */
static void test_pace_settles(void **state)
{
    static const uint64_t costs[] = {1, 3, 40, 150};

    for (size_t i = 0; i < ARRAY_SIZE(costs); i++) {
        uint32_t limit = 64;

        for (size_t k = 0; k < 20; k++) {
            assert_true(limit * costs[i] <= 2ULL * MOVER_AIM_USEC);
            limit = mover_pace_next(limit, limit, limit * costs[i], 65536);
        }
        assert_in_range(limit * costs[i], MOVER_AIM_USEC - costs[i], MOVER_AIM_USEC);
    }
}

#define RATE (UINT64_C(1280) * 1000000)

static void test_bucket(void **state)
{
    Bucket bucket = {0};
    uint64_t now = 1000;

    assert_int_equal(mover_bucket_burst(RATE), 128000000);
    assert_int_equal(mover_bucket_wait(&bucket, RATE, 128000000, now), 0);
    mover_bucket_take(&bucket, RATE, 128000000, now);
    /* 1.28 MB take a millisecond. */
    assert_int_equal(mover_bucket_wait(&bucket, RATE, 1280000, now), 1000);
    assert_int_equal(mover_bucket_wait(&bucket, RATE, 1280000, now + 999), 1);
    assert_int_equal(mover_bucket_wait(&bucket, RATE, 1280000, now + 1000), 0);
    /* It does not fill above the burst, and a clock that goes back adds nothing. */
    assert_int_equal(mover_bucket_wait(&bucket, RATE, 128000000, now + 3600000000), 0);
    assert_int_equal(mover_bucket_wait(&bucket, RATE, 1280000, 0), 1000);
    /* Of what was saved up, a lower rate keeps only its own burst. */
    mover_bucket_take(&bucket, RATE, 0, now + 3600000000);
    mover_bucket_take(&bucket, RATE / 10, 12800000, now + 3600000000);
    assert_int_equal(mover_bucket_wait(&bucket, RATE / 10, 1280, now + 3600000000), 10);
    /* However low the rate, the burst holds one huge page. */
    assert_int_equal(mover_bucket_burst(1), 2 * MIB);
}

/* I5: over any time no more than burst + rate * time. 16 GiB at 1280 MB a second take 13.4 s, minus the burst. */
static void test_bucket_over_time(void **state)
{
    const uint64_t total = 16384 * MIB, one = 2 * MIB;
    Bucket bucket = {0};
    uint64_t began = 1, now = began;

    for (uint64_t gone = 0; gone < total; gone += one) {
        now += mover_bucket_wait(&bucket, RATE, one, now);
        mover_bucket_take(&bucket, RATE, one, now);
        assert_true(gone + one <= mover_bucket_burst(RATE) + RATE / 1000000 * (now - began) + one);
    }
    assert_in_range(now - began, (total - 128000000) / 1280, (total - 128000000) / 1280 + 20000);
}

TEST_MAIN(NULL, NULL, test_mounts, test_no_mounts, test_kinds, test_lines, test_meminfo, test_meminfo_broken,
          test_zoneinfo, test_room, test_pace, test_pace_settles, test_bucket, test_bucket_over_time)
