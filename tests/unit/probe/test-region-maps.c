/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe-test.h"

#include "probe/memory/region-maps.h"

#include <sys/sysmacros.h>

typedef struct Kind {
    const char *rest; /* of the line */
    RegionKind kind;
} Kind;

static void test_kinds(void **state)
{
    static const Kind kinds[] = {
        {"r-xp 00002000 08:01 5                          /usr/bin/cat", REGION_KIND_FILE},
        {"rw-p 00000000 00:00 0", REGION_KIND_ANON},
        {"rw-p 00000000 00:00 0                          [heap]", REGION_KIND_ANON},
        {"rw-p 00000000 00:00 0                          [stack]", REGION_KIND_ANON},
        {"rw-p 00000000 00:00 0                          [anon:jemalloc]", REGION_KIND_ANON},
        {"rw-s 00000000 00:01 7                          [anon_shmem:cache]", REGION_KIND_SHMEM},
        {"rw-s 00000000 00:01 1024                       /memfd:heap (deleted)", REGION_KIND_SHMEM},
        {"rw-s 00000000 00:1a 77                         /dev/shm/PostgreSQL.1", REGION_KIND_SHMEM},
        {"rw-s 00000000 00:01 9                          /dev/zero (deleted)", REGION_KIND_SHMEM},
        {"rw-p 00000000 00:0f 3                          /anon_hugepage (deleted)", REGION_KIND_HUGETLB},
        {"rw-s 00000000 00:05 8                          /dev/dri/card0", REGION_KIND_DEVICE},
        {"rw-s 00000000 00:0e 9                          anon_inode:[io_uring]", REGION_KIND_DEVICE},
        {"r-xp 00000000 00:00 0                          [vdso]", REGION_KIND_DEVICE},
        {"--xp 00000000 00:00 0                          [vsyscall]", REGION_KIND_DEVICE},
    };
    CLEANUP(regions_done) MemoryRegions regions = {0};
    char line[256];

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        (void)snprintf(line, sizeof(line), "%zx000-%zx000 %s", i + 1, i + 2, kinds[i].rest);
        assert_int_equal(region_maps_add(&regions, line), 0);
        assert_int_equal(regions.list[i].kind, kinds[i].kind);
        assert_true(regions.list[i].resident_bytes == REGION_RESIDENT_UNKNOWN);
        assert_false(regions.list[i].bound);
    }
    assert_true(regions.list[0].readable && regions.list[0].executable && !regions.list[0].writable);
    assert_int_equal(regions.list[0].device, makedev(8, 1));
    assert_int_equal(regions.list[0].inode, 5);
    assert_true(regions.list[6].shared && !regions.list[0].shared);

    assert_int_equal(region_maps_add(&regions, "1000-2000 rw-p 0 00:00 0"), -EINVAL);
    assert_int_equal(region_maps_add(&regions, "rubbish"), -EINVAL);
    assert_int_equal(regions.n, ARRAY_SIZE(kinds));
}

static void test_describe(void **state)
{
    CLEANUP(regions_done) MemoryRegions regions = {0};

    for (int i = 1; i <= 4; i++) {
        char line[64];

        (void)snprintf(line, sizeof(line), "%d000000-%d800000 rw-p 0 00:00 0", i, i);
        assert_int_equal(region_maps_add(&regions, line), 0);
    }
    assert_int_equal(region_maps_describe(&regions, "1000000 default anon=3 N0=1 N1=2 kernelpagesize_kB=4"),
                     0);
    assert_int_equal(region_maps_describe(&regions, "2000000 bind:0 anon=1 N0=1 kernelpagesize_kB=4"), 0);
    assert_int_equal(
        region_maps_describe(&regions, "3000000 default huge anon=9 N0=9 kernelpagesize_kB=2048"), 0);
    assert_int_equal(region_maps_describe(&regions, "4000000 bind=balancing:0-1"), 0);
    assert_int_equal(regions.list[0].resident_bytes, 3 * 4096);
    assert_false(regions.list[0].bound);
    assert_true(regions.list[1].bound);
    assert_int_equal(regions.list[2].kind, REGION_KIND_HUGETLB);
    assert_int_equal(regions.list[2].resident_bytes, 0x800000); /* never more than the region has */
    assert_false(regions.list[3].bound);
    assert_int_equal(regions.list[3].resident_bytes, 0);

    assert_int_equal(region_maps_describe(&regions, "4000000 prefer (many):0-1"), 0);
    assert_true(regions.list[3].bound);
    assert_int_equal(region_maps_describe(&regions, "4000000 prefer (many)=balancing:0-1"), 0);
    assert_false(regions.list[3].bound);

    /* "local" is a chosen policy, too; only "default" is none. */
    assert_int_equal(region_maps_describe(&regions, "1000000 local"), 0);
    assert_true(regions.list[0].bound);

    assert_int_equal(region_maps_describe(&regions, "1001000 default"), 1);
    assert_int_equal(region_maps_describe(&regions, "9000000 default"), 1);
    assert_int_equal(region_maps_describe(&regions, "default"), -EINVAL);
    assert_int_equal(region_maps_describe(&regions, "1000000 default N0=1"), -EINVAL);
}

static void test_read(void **state)
{
    MemoryRegions first = {0}, second = {0};
    CLEANUP_CLOSE int dir_fd = -1;
    Bench b = bench_make();

    put(&b, "proc/100/maps", "1000-3000 rw-p 0 00:00 0\n3000-4000 r-xp 0 08:01 5 /bin/true\n");
    put(&b, "proc/100/numa_maps", "1000 default anon=1 N0=1 kernelpagesize_kB=4\n");
    put(&b, "proc/101/maps", "1000-3000 rw-p 0 00:00 0\n");
    put(&b, "proc/102/maps", "%s", "");
    dir_fd = openat(b.root_fd, "proc/100", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(region_maps_read(dir_fd, true, NULL, &first), 0);
    assert_int_equal(first.n, 2);
    assert_int_equal(first.list[0].resident_bytes, 4096);
    first.list[1].scan = (RegionScan){.known = true, .done_sequence = 7};

    put(&b, "proc/100/maps", "1000-3000 rw-p 0 00:00 0\n3000-5000 r-xp 0 08:01 5 /bin/true\n");
    assert_int_equal(region_maps_read(dir_fd, false, &first, &second), 0);
    assert_int_equal(second.list[0].resident_bytes, 4096);
    assert_int_equal(second.list[1].scan.done_sequence, 7);
    regions_done(&first);
    regions_done(&second);
    (void)close(dir_fd);

    /* A kernel without NUMA, and a process without memory. */
    dir_fd = openat(b.root_fd, "proc/101", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(region_maps_read(dir_fd, true, NULL, &first), 0);
    assert_int_equal(first.n, 1);
    regions_done(&first);
    (void)close(dir_fd);
    dir_fd = openat(b.root_fd, "proc/102", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(region_maps_read(dir_fd, true, NULL, &first), -ESRCH);
    assert_int_equal(first.n, 0);
    bench_close(&b);
}

TEST_MAIN(NULL, NULL, test_kinds, test_describe, test_read)
