/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P12: active nodes, by the rule of one third (S-GRP). */

#include "base/util.h"
#include "plan/home/active.h"
#include "unit-test.h"

#define assert_active(expected, ...)                                          \
    do {                                                                      \
        const uint64_t used[] = {__VA_ARGS__};                                \
        hwloc_bitmap_t set = hwloc_bitmap_alloc();                            \
                                                                              \
        assert_non_null(set);                                                 \
        assert_int_equal(hwloc_bitmap_set(set, 63), 0); /* must be cleared */ \
        assert_int_equal(active_nodes(used, ARRAY_SIZE(used), set), 0);       \
        assert_int_equal(hwloc_bitmap_to_ulong(set), expected);               \
        hwloc_bitmap_free(set);                                               \
    } while (0)

static void test_third(void **state)
{
    assert_active(0x3, 60, 25, 15);
    assert_active(0x6, 15, 25, 60);
    assert_active(0x1, 60, 20, 20); /* a third is not enough */
    assert_active(0x7, 60, 21, 21);
    assert_active(0xf, 5, 5, 5, 5);
    assert_active(0x4, 0, 0, 1);
    assert_active(0x0, 0, 0, 0);
}

static void test_local(void **state)
{
    hwloc_bitmap_t active = hwloc_bitmap_alloc();
    const NodeIx a = {0}, b = {1}, c = {2};

    assert_non_null(active);
    assert_int_equal(hwloc_bitmap_set_range(active, 0, 1), 0);
    assert_true(active_is_local(active, FAULTS_KIND_PRIVATE, c, c));
    assert_true(active_is_local(active, FAULTS_KIND_SHARED, a, b));
    assert_false(active_is_local(active, FAULTS_KIND_PRIVATE, a, b));
    assert_false(active_is_local(active, FAULTS_KIND_SHARED, a, c));
    assert_false(active_is_local(active, FAULTS_KIND_SHARED, c, a));
    hwloc_bitmap_free(active);
}

TEST_MAIN(NULL, NULL, test_third, test_local)
