/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe-test.h"

#include "kernel/shared-maps.h"

static void is(const SharedMaps *maps, const char *expected)
{
    char text[SHARED_MAPS_TEXT_SIZE];

    assert_string_equal(shared_maps_format(maps, '+', text), expected);
}

static void test_kinds(void **state)
{
    static const char *const lines[] = {
        "7f2c00000000-7f2c40000000 rw-s 00000000 00:01 1024                       /memfd:heap (deleted)",
        "7f2c00000000-7f2c40000000 rw-s 00010000 00:01 1024                       /memfd:heap (deleted)",
        "7f2c40000000-7f2c50000000 rw-s 00000000 00:1a 77                         /dev/shm/PostgreSQL.1",
        "7f2c50000000-7f2c60000000 r--s 00000000 00:01 12                         /SYSV00000000 (deleted)",
        "7f2c60000000-7f2c70000000 rw-s 00000000 00:01 9                          /dev/zero (deleted)",
        "7f2c70000000-7f2c80000000 rw-s 00000000 00:0f 3                          /anon_hugepage (deleted)",
        /* Not memory, or not shared. */
        "55f5d70bc000-55f5d70c1000 r-xp 00002000 08:01 5                          /usr/bin/cat",
        "55f5d70bc000-55f5d70c1000 rw-s 00002000 08:01 6                          /var/lib/db",
        "55f5d70bc000-55f5d70c1000 rw-p 00002000 00:01 7                          /memfd:heap (deleted)",
        "7f2c80000000-7f2c90000000 rw-p 00000000 00:00 0 ",
        "7f2c80000000-7f2c90000000 rw-p 00000000 00:00 0",
        "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]",
    };
    SharedMaps maps = {0};

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        assert_int_equal(shared_maps_add(&maps, lines[i]), 0);
    /* The heap is mapped twice, and is more than a quarter. */
    is(&maps, "0:1:9 0:1:12 0:1:1024+ 0:f:3 0:1a:77");
}

static void test_bad(void **state)
{
    static const char *const lines[] = {
        "",
        "7f2c00000000 rw-s 00000000 00:01 1024 /memfd:heap",
        "7f2c00000000-7f2c40000000 rws 00000000 00:01 1024 /memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 0000000g 00:01 1024 /memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 00000000 0001 1024 /memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 00000000 100000000:01 1024 /memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 00000000 00:01 x /memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 00000000 00:01 18446744073709551616 /memfd:heap",
    };
    SharedMaps maps = {0};

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        assert_int_equal(shared_maps_add(&maps, lines[i]), -EINVAL);
    assert_int_equal(maps.n, 0);
}

/* If there are more than can be kept, the lowest are kept, in any order of lines: two processes that map the
 * same keep the same. */
static void test_many(void **state)
{
    char line[128], text[2][SHARED_MAPS_TEXT_SIZE];

    for (int k = 0; k < 2; k++) {
        SharedMaps maps = {0};

        for (unsigned i = 0; i < 1000; i++) {
            (void)snprintf(line, sizeof(line), "1-2 rw-s 0 ffffffff:ffffffff %llu /memfd:x",
                           (unsigned long long)UINT64_MAX - (k ? 999 - i : i));
            assert_int_equal(shared_maps_add(&maps, line), 0);
        }
        assert_int_equal(maps.n, SHARED_MAPS_MAX);
        assert_true(maps.objects[0].inode == UINT64_MAX - 999);
        (void)shared_maps_format(&maps, '+', text[k]);
    }
    assert_string_equal(text[0], text[1]);
}

/* A probe that wants this and nothing else. */

static unsigned wants_shared(void *userdata, const World *world, const Process *process)
{
    return PROBE_MEMORY_SHARED;
}

static void test_probe(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    const ProbeCallbacks callbacks = {
        .decide = bench_decide, .assign = bench_assign, .wants_memory = wants_shared, .userdata = &b};

    put_process(&b, &(FakeTask){.pid = 100});
    put(&b, "proc/100/maps",
        "1-2 rw-s 0 00:01 77 /memfd:x (deleted)\n2-3 rw-s 0 00:01 7 /memfd:y (deleted)\n");
    b.world = bench_world();
    b.now = 10 * SEC;
    b.decision = PROBE_DECISION_TAKE;
    assert_int_equal(
        probe_new(&(ProbeOptions){.root_fd = b.root_fd, .max_tasks = 1000}, &callbacks, &b.probe), 0);
    bench_discover(&b);
    assert_string_equal(bench_process(&b, 100)->shared, "0:1:7+ 0:1:77+");
    assert_null(bench_process(&b, 100)->node_bytes);
    assert_false(b.world->nodes[0].free_known);

    /* It stays known while it cannot be read, and ends with the mappings. */
    take_away(&b, "proc/100/maps");
    for (int i = 0; i < 20; i++)
        bench_discover(&b);
    assert_string_equal(bench_process(&b, 100)->shared, "0:1:7+ 0:1:77+");
    put(&b, "proc/100/maps", "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                  [stack]\n");
    for (int i = 0; i < 10; i++)
        bench_discover(&b);
    assert_null(bench_process(&b, 100)->shared);
}

TEST_MAIN(NULL, NULL, test_kinds, test_bad, test_many, test_probe)
