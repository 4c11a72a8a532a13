/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernel/procmaps.h"
#include "unit-test.h"

#include "base/util.h"

static void test_good(void **state)
{
    ProcMaps maps;

    assert_int_equal(
        procmaps_parse("7f2c00000000-7f2c40000000 rw-s 00010000 1a:0f 1024       /memfd:a b (deleted)",
                       &maps),
        0);
    assert_int_equal(maps.start, 0x7f2c00000000);
    assert_int_equal(maps.end, 0x7f2c40000000);
    assert_true(maps.readable && maps.writable && !maps.executable && maps.shared);
    assert_int_equal(maps.major, 0x1a);
    assert_int_equal(maps.minor, 0xf);
    assert_int_equal(maps.inode, 1024);
    assert_string_equal(maps.path, "/memfd:a b (deleted)");

    assert_int_equal(procmaps_parse("55f5d70bc000-55f5d70c1000 --xp 00000000 00:00 0 ", &maps), 0);
    assert_true(!maps.readable && !maps.writable && maps.executable && !maps.shared);
    assert_string_equal(maps.path, "");
    assert_int_equal(
        procmaps_parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", &maps), 0);
    assert_int_equal(maps.end, 0xffffffffff601000);
    assert_int_equal(procmaps_parse("1000-2000 r--p 00000000 00:00 0\n3000", &maps), 0);
    assert_string_equal(maps.path, "\n3000");
}

static void test_bad(void **state)
{
    static const char *const lines[] = {
        "",
        "7f2c00000000 rw-s 00000000 00:01 1024 /memfd:heap",
        "7f2c00000000-7f2c00000000 rw-s 00000000 00:01 1024 /memfd:heap",
        "7f2c00000000-7f2c40000000 rws 00000000 00:01 1024 /memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 0000000g 00:01 1024 /memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 00000000 0001 1024 /memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 00000000 00:100000000 1024 /memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 00000000 00:01 x /memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 00000000 00:01 1024/memfd:heap",
        "7f2c00000000-7f2c40000000 rw-s 00000000 00:01 18446744073709551616 /memfd:heap",
        "2000-3000 r--p 00000000 00:00\n1 /x",
        "10000000000000000-20000000000000000 rw-s 00000000 00:01 1 /memfd:heap",
    };
    ProcMaps maps = {.inode = 7};

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        assert_int_equal(procmaps_parse(lines[i], &maps), -EINVAL);
    assert_int_equal(maps.inode, 7);
}

TEST_MAIN(NULL, NULL, test_good, test_bad)
