/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe-test.h"

#include "kernel/node-memory.h"
#include "probe/memory/numa-maps.h"

#include <sys/mman.h>

#define KB 1024ULL

static NumaMaps maps;

static int set_up(void **state)
{
    maps = (NumaMaps){0};
    return 0;
}

static void test_private(void **state)
{
    assert_int_equal(
        numa_maps_add(&maps, "7f2c00000000 default anon=512 dirty=512 N0=384 N1=128 kernelpagesize_kB=4"), 0);
    assert_int_equal(
        numa_maps_add(&maps, "55f5d70bc000 default heap anon=3 active=0 N1=3 kernelpagesize_kB=4"), 0);
    assert_int_equal(numa_maps_add(&maps, "7ffd00000000 default stack anon=1 N63=1 kernelpagesize_kB=64"), 0);
    assert_int_equal(maps.bytes[0], 384 * 4 * KB);
    assert_int_equal(maps.bytes[1], 131 * 4 * KB);
    assert_int_equal(maps.bytes[63], 64 * KB);
}

static void test_bound(void **state)
{
    assert_int_equal(numa_maps_add(&maps, "7f2c0 default anon=8 N0=8 kernelpagesize_kB=4"), 0);
    assert_int_equal(numa_maps_add(&maps, "7f2c1 local anon=8 N0=8 kernelpagesize_kB=4"), 0);
    assert_int_equal(maps.bound_bytes, 0);
    assert_int_equal(numa_maps_add(&maps, "7f2c2 bind=balancing:0 anon=2 N0=2 kernelpagesize_kB=4"), 0);
    assert_int_equal(numa_maps_add(&maps, "7f2c3 interleave:0-1 anon=2 N0=1 N1=1 kernelpagesize_kB=4"), 0);
    assert_int_equal(numa_maps_add(&maps, "7f2c4 bind:0 file=/x mapped=2 N0=2 kernelpagesize_kB=4"), 0);
    assert_int_equal(maps.bound_bytes, 4 * 4 * KB);
    assert_int_equal(maps.bytes[0], (8 + 8 + 2 + 1) * 4 * KB);
}

static void test_files(void **state)
{
    /* Pages of programs and libraries belong to the page cache. Written pages do not, wherever they are. */
    assert_int_equal(
        numa_maps_add(&maps, "55f5d70bc000 default file=/usr/bin/cat mapped=5 N0=5 kernelpagesize_kB=4"), 0);
    assert_int_equal(maps.bytes[0], 0);
    assert_int_equal(
        numa_maps_add(&maps,
                      "7f2c0 default file=/usr/lib/libc.so.6 anon=2 dirty=2 mapped=8 mapmax=40 N0=5 N1=5 "
                      "kernelpagesize_kB=4"),
        0);
    assert_int_equal(maps.bytes[0], 4 * KB);
    assert_int_equal(maps.bytes[1], 4 * KB);
    /* The name of a file does not matter. */
    assert_int_equal(
        numa_maps_add(&maps, "7f2c0 default file=/x/memfd:\\040N9=9 mapped=9 N0=9 kernelpagesize_kB=4"), 0);
    assert_int_equal(maps.bytes[0], 4 * KB);
    assert_int_equal(maps.bytes[9], 0);
}

static void test_shared(void **state)
{
    static const char *const names[] = {"/memfd:heap\\040(deleted)", "/SYSV00000000\\040(deleted)",
                                        "/dev/zero\\040(deleted)", "/dev/shm/PostgreSQL.1"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char line[256];

        maps = (NumaMaps){0};
        (void)snprintf(line, sizeof(line),
                       "7f2c0 default file=%s dirty=100 mapmax=4 N1=100 kernelpagesize_kB=4", names[i]);
        assert_int_equal(numa_maps_add(&maps, line), 0);
        assert_int_equal(maps.bytes[1], 25 * 4 * KB);
    }
}

static void test_huge(void **state)
{
    assert_int_equal(numa_maps_add(&maps,
                                   "7f2c0 default file=/anon_hugepage\\040(deleted) huge anon=3 dirty=3 N0=1 "
                                   "N1=2 kernelpagesize_kB=2048"),
                     0);
    assert_int_equal(
        numa_maps_add(&maps,
                      "7f2d0 default file=/mnt/huge/guest huge dirty=4 N2=4 kernelpagesize_kB=1048576"),
        0);
    assert_int_equal(maps.bytes[0], 2048 * KB);
    assert_int_equal(maps.bytes[1], 4096 * KB);
    assert_int_equal(maps.bytes[2], 4ULL << 30);
}

/* Some names of memory policies have blanks. */
static void test_policies(void **state)
{
    static const char *const policies[] = {"default",           "bind=static:0-1",         "interleave:0-3",
                                           "prefer (many):0,2", "weighted interleave:0-1", "local"};

    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        char line[256];

        maps = (NumaMaps){0};
        (void)snprintf(line, sizeof(line), "7f2c0 %s anon=1 N0=1 kernelpagesize_kB=4", policies[i]);
        assert_int_equal(numa_maps_add(&maps, line), 0);
        assert_int_equal(maps.bytes[0], 4 * KB);
    }
    assert_int_equal(numa_maps_add(&maps, "7f2c0 default"), 0); /* nothing is resident */
    assert_int_equal(numa_maps_add(&maps, "7f2c0 default anon=0 N0=0"), 0);
    assert_int_equal(maps.bytes[0], 4 * KB);
}

static void test_bad(void **state)
{
    static const char *const lines[] = {
        "",
        "default anon=1 N0=1 kernelpagesize_kB=4",
        "7f2c0",
        "7f2c0 default anon=1 N0=1",
        "7f2c0 default anon=1 N0=1 kernelpagesize_kB=0",
        "7f2c0 default anon=1 N0=1 kernelpagesize_kB=16777217",
        "7f2c0 default anon=1 N0= kernelpagesize_kB=4",
        "7f2c0 default anon=1 N0=1x kernelpagesize_kB=4",
        "7f2c0 default anon=1 N1024=1 kernelpagesize_kB=4",
        "7f2c0 default anon=4294967296 N0=1 kernelpagesize_kB=4",
        "7f2c0 default anon=1 N0=4294967295 N1=1 kernelpagesize_kB=4",
        "7f2c0 default anon=-1 N0=1 kernelpagesize_kB=4",
        "7f2c0 default anon=1 mapmax=0 N0=1 kernelpagesize_kB=4",
    };

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        assert_int_equal(numa_maps_add(&maps, lines[i]), -EINVAL);
    for (size_t i = 0; i < ARRAY_SIZE(maps.bytes); i++)
        assert_int_equal(maps.bytes[i], 0);
}

static void test_too_much(void **state)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            numa_maps_add(&maps, "7f2c0 default anon=4294967290 N0=4294967290 kernelpagesize_kB=16777216"),
            0);
    assert_int_equal(maps.bytes[0], WORLD_MEMORY_MAX);
}

/* Reading */

static int read_text(const char *text, size_t len, NumaMaps *ret)
{
    char *path = test_tree_new();
    int dir_fd = root_open(path), r;

    assert_true(dir_fd >= 0);
    (void)test_write_bytes(path, "numa_maps", text, len);
    r = numa_maps_read(dir_fd, ret);
    assert_int_equal(unlinkat(dir_fd, "numa_maps", 0), 0);
    assert_int_equal(numa_maps_read(dir_fd, ret), -ENOENT);
    (void)close(dir_fd);
    test_tree_remove(path);
    return r;
}

/* Megabytes, so that lines are split between reads in every way. */
static void test_long(void **state)
{
    CLEANUP_FREE char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    NumaMaps sums = {0};

    for (unsigned i = 0; i < 30000; i++)
        (void)fprintf(out, "%x default anon=1%.*s N%u=1 kernelpagesize_kB=4\n", i, (int)(i % 7), " dirty",
                      i % 3);
    assert_int_equal(fclose(out), 0);
    assert_true(size > 1 << 20);
    assert_int_equal(read_text(text, size, &sums), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sums.bytes[i], 10000 * 4 * KB);

    /* A text that is cut off is incomplete. */
    assert_int_equal(read_text(text, size - 1, &sums), -EINVAL);
    assert_int_equal(read_text(text, 0, &sums), -ESRCH);
    memset(text, 'a', size);
    assert_int_equal(read_text(text, size, &sums), -EINVAL);
}

/* This very process, on any machine: the sum grows by what is mapped. The kernel touches the memory, because
 * with a sanitizer the test's own writing would touch as much again elsewhere, or several times as much. */
static void test_self(void **state)
{
    const size_t size = 8 << 20;
    uint64_t sum[2] = {0};
    char *memory = NULL;

    for (int k = 0; k < 2; k++) {
        int dir_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        NumaMaps sums = {0};
        int r = numa_maps_read(dir_fd, &sums);

        (void)close(dir_fd);
        if (r == -ENOENT)
            skip(); /* a kernel without NUMA */
        assert_int_equal(r, 0);
        for (size_t i = 0; i < NUMA_MAPS_NODES_MAX; i++)
            sum[k] += sums.bytes[i];
        if (k == 0) {
            memory =
                mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
            assert_ptr_not_equal(memory, MAP_FAILED);
        }
    }
    (void)munmap(memory, size);
    assert_in_range(sum[1] - sum[0], size, size + (4 << 20));
}

/* Nodes */

#define HEAD  "Node 1 MemTotal:       12282072 kB\nNode 1 MemFree:         9437700 kB\n"
#define FILES "Node 1 Inactive(anon):  1910672 kB\nNode 1 Inactive(file):    74024 kB\n"
#define TAIL  "Node 1 HugePages_Total:     0\nNode 1 HugePages_Free:      0\n"

static void test_node(void **state)
{
    NodeMemory memory;

    assert_int_equal(
        node_memory_parse(HEAD FILES "Node 1 Dirty:    204 kB\nNode 1 Writeback:   1 kB\n" TAIL, &memory), 0);
    assert_int_equal(memory.total_bytes, 12282072 * KB);
    assert_int_equal(memory.free_bytes, 9437700 * KB);
    assert_int_equal(memory.inactive_bytes, 74024 * KB);
    assert_int_equal(memory.dirty_bytes, 205 * KB);
    assert_int_equal(node_memory_available(&memory), (9437700 + 74024 - 205) * KB);
    assert_int_equal(node_memory_available(&(NodeMemory){5, 6, 7}), 5);
    assert_int_equal(node_memory_available(&(NodeMemory){UINT64_MAX, 6, 5}), UINT64_MAX);
}

static void test_bad_node(void **state)
{
    static const char *const texts[] = {
        "",
        "Node 1 MemFree: 9 kB\n" FILES "Node 1 Dirty:    204 kB\nNode 1 Writeback:   1 kB\n",
        HEAD FILES TAIL,
        HEAD FILES "Node 1 Dirty:    204 kB\nNode 1 Writeback:   1 MB\n",
        HEAD FILES "Node 1 Dirty:    204 kB\nNode 1 Writeback:   1 kB",
        HEAD FILES "Node 1 Dirty:    204 kB\nNode 1 Writeback:   1 kB\nWritebackTmp: 0 kB\n",
        HEAD FILES "Node 1 Dirty:    204 kB\nNode 1 Writeback:   18014398509481984 kB\n",
        HEAD FILES "Node 1 Dirty:    204 kB\nNode 1 Writeback:   1 kB\nNode 1 Dirty:    204 kB\n",
    };
    NodeMemory memory;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_int_equal(node_memory_parse(texts[i], &memory), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_private, set_up),
        cmocka_unit_test_setup(test_bound, set_up),
        cmocka_unit_test_setup(test_files, set_up),
        cmocka_unit_test_setup(test_shared, set_up),
        cmocka_unit_test_setup(test_huge, set_up),
        cmocka_unit_test_setup(test_policies, set_up),
        cmocka_unit_test_setup(test_bad, set_up),
        cmocka_unit_test_setup(test_too_much, set_up),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_self),
        cmocka_unit_test(test_node),
        cmocka_unit_test(test_bad_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
