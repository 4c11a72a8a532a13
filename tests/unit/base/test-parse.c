/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/parse.h"
#include "base/util.h"
#include "unit-test.h"

/* Each of these macros runs a parser and checks that a failure leaves the result alone. */
#define CHECK_OK(parser, text, type, value)     \
    do {                                        \
        type _v = 0;                            \
        assert_int_equal(parser(text, &_v), 0); \
        assert_true(_v == (type)(value));       \
    } while (0)

#define CHECK_FAILS(parser, text, type, error)      \
    do {                                            \
        type _v = (type)77;                         \
        assert_int_equal(parser(text, &_v), error); \
        assert_true(_v == (type)77);                \
    } while (0)

static void test_u64(void **state)
{
    CHECK_OK(parse_u64, "0", uint64_t, 0);
    CHECK_OK(parse_u64, " \t42\t ", uint64_t, 42);
    CHECK_OK(parse_u64, "0042", uint64_t, 42);
    CHECK_OK(parse_u64, "18446744073709551615", uint64_t, UINT64_MAX);
    CHECK_FAILS(parse_u64, "18446744073709551616", uint64_t, -ERANGE);
    CHECK_FAILS(parse_u64, "99999999999999999999999", uint64_t, -ERANGE);
    CHECK_FAILS(parse_u64, "99999999999999999999999x", uint64_t, -EINVAL);
    CHECK_FAILS(parse_u64, "", uint64_t, -EINVAL);
    CHECK_FAILS(parse_u64, " ", uint64_t, -EINVAL);
    CHECK_FAILS(parse_u64, "-1", uint64_t, -EINVAL);
    CHECK_FAILS(parse_u64, "+1", uint64_t, -EINVAL);
    CHECK_FAILS(parse_u64, "1 2", uint64_t, -EINVAL);
    CHECK_FAILS(parse_u64, "0x10", uint64_t, -EINVAL);
    CHECK_FAILS(parse_u64, "1\n", uint64_t, -EINVAL);
    CHECK_FAILS(parse_u64, "\xd9\xa1", uint64_t, -EINVAL); /* an Arabic digit */
}

static void test_u32(void **state)
{
    CHECK_OK(parse_u32, "4294967295", uint32_t, UINT32_MAX);
    CHECK_FAILS(parse_u32, "4294967296", uint32_t, -ERANGE);
    CHECK_FAILS(parse_u32, "18446744073709551616", uint32_t, -ERANGE);
    CHECK_FAILS(parse_u32, "x", uint32_t, -EINVAL);
}

static void test_i32(void **state)
{
    CHECK_OK(parse_i32, "-2147483648", int32_t, INT32_MIN);
    CHECK_OK(parse_i32, "+2147483647", int32_t, INT32_MAX);
    CHECK_OK(parse_i32, "-0", int32_t, 0);
    CHECK_OK(parse_i32, " -20 ", int32_t, -20);
    CHECK_FAILS(parse_i32, "-2147483649", int32_t, -ERANGE);
    CHECK_FAILS(parse_i32, "2147483648", int32_t, -ERANGE);
    CHECK_FAILS(parse_i32, "-99999999999999999999", int32_t, -ERANGE);
    CHECK_FAILS(parse_i32, "- 1", int32_t, -EINVAL);
    CHECK_FAILS(parse_i32, "--1", int32_t, -EINVAL);
    CHECK_FAILS(parse_i32, "-", int32_t, -EINVAL);
}

static void test_bool(void **state)
{
    static const char *const yes[] = {"yes", "true", "on", "1", "YES", "True", " on "};
    static const char *const no[] = {"no", "false", "off", "0", "No", "\toff"};
    static const char *const neither[] = {"", " ", "y", "2", "10", "yesno", "yes no", "t", "on\n"};
    bool v;

    for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
        v = false;
        assert_int_equal(parse_bool(yes[i], &v), 0);
        assert_true(v);
    }
    for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
        v = true;
        assert_int_equal(parse_bool(no[i], &v), 0);
        assert_false(v);
    }
    for (size_t i = 0; i < ARRAY_SIZE(neither); i++)
        assert_int_equal(parse_bool(neither[i], &v), -EINVAL);
}

static void test_span(void **state)
{
    CHECK_OK(parse_span_usec, "100ms", uint64_t, 100000);
    CHECK_OK(parse_span_usec, "2s", uint64_t, 2000000);
    CHECK_OK(parse_span_usec, "2", uint64_t, 2000000);
    CHECK_OK(parse_span_usec, "1.5", uint64_t, 1500000);
    CHECK_OK(parse_span_usec, "1min 30s", uint64_t, 90000000);
    CHECK_OK(parse_span_usec, "1min30s", uint64_t, 90000000);
    CHECK_OK(parse_span_usec, "1.5 sec", uint64_t, 1500000);
    CHECK_OK(parse_span_usec, "1h 1m 1s 1ms 1us", uint64_t, 3661001001);
    CHECK_OK(parse_span_usec, "2d", uint64_t, 172800000000);
    CHECK_OK(parse_span_usec, "0.0000019s", uint64_t, 1); /* rounded down */
    CHECK_OK(parse_span_usec, "0.33333333333ms", uint64_t, 333);
    CHECK_OK(parse_span_usec, "0", uint64_t, 0);
    CHECK_OK(parse_span_usec, "18446744073709551615us", uint64_t, UINT64_MAX);
    CHECK_FAILS(parse_span_usec, "18446744073709551616us", uint64_t, -ERANGE);
    CHECK_FAILS(parse_span_usec, "18446744073709551615us 1us", uint64_t, -ERANGE);
    CHECK_FAILS(parse_span_usec, "18446744073709551615", uint64_t, -ERANGE);
    CHECK_FAILS(parse_span_usec, "18446744073709.6s", uint64_t, -ERANGE);
    CHECK_FAILS(parse_span_usec, "999999999999d", uint64_t, -ERANGE);
    CHECK_FAILS(parse_span_usec, "", uint64_t, -EINVAL);
    CHECK_FAILS(parse_span_usec, "1min 30", uint64_t, -EINVAL);
    CHECK_FAILS(parse_span_usec, "5 fortnights", uint64_t, -EINVAL);
    CHECK_FAILS(parse_span_usec, "5 S", uint64_t, -EINVAL);
    CHECK_FAILS(parse_span_usec, "-5s", uint64_t, -EINVAL);
    CHECK_FAILS(parse_span_usec, "5s,", uint64_t, -EINVAL);
    CHECK_FAILS(parse_span_usec, "1.s", uint64_t, -EINVAL);
    CHECK_FAILS(parse_span_usec, ".5s", uint64_t, -EINVAL);
    CHECK_FAILS(parse_span_usec, "s", uint64_t, -EINVAL);
    CHECK_FAILS(parse_span_usec, "99999999999999999999s x", uint64_t, -EINVAL);
}

static void test_bytes(void **state)
{
    CHECK_OK(parse_bytes, "0", uint64_t, 0);
    CHECK_OK(parse_bytes, "4096", uint64_t, 4096);
    CHECK_OK(parse_bytes, "4K", uint64_t, 4096);
    CHECK_OK(parse_bytes, "4 k", uint64_t, 4096);
    CHECK_OK(parse_bytes, "1.5G", uint64_t, 1610612736);
    CHECK_OK(parse_bytes, "0.1T", uint64_t, 109951162777);
    CHECK_OK(parse_bytes, "2M", uint64_t, 2097152);
    CHECK_OK(parse_bytes, "16777215T", uint64_t, 16777215ULL << 40);
    CHECK_FAILS(parse_bytes, "16777216T", uint64_t, -ERANGE);
    CHECK_FAILS(parse_bytes, "18446744073709551616", uint64_t, -ERANGE);
    CHECK_FAILS(parse_bytes, "1.5", uint64_t, -EINVAL);
    CHECK_FAILS(parse_bytes, "1P", uint64_t, -EINVAL);
    CHECK_FAILS(parse_bytes, "1KB", uint64_t, -EINVAL);
    CHECK_FAILS(parse_bytes, "-1K", uint64_t, -EINVAL);
    CHECK_FAILS(parse_bytes, "K", uint64_t, -EINVAL);
    CHECK_FAILS(parse_bytes, "", uint64_t, -EINVAL);
    CHECK_FAILS(parse_bytes, "1 K K", uint64_t, -EINVAL);
}

static void test_permille(void **state)
{
    CHECK_OK(parse_permille, "12%", uint32_t, 120);
    CHECK_OK(parse_permille, "1.5%", uint32_t, 15);
    CHECK_OK(parse_permille, "0.1 %", uint32_t, 1);
    CHECK_OK(parse_permille, "300permille", uint32_t, 300);
    CHECK_OK(parse_permille, "300 permille ", uint32_t, 300);
    CHECK_OK(parse_permille, "429496729.5%", uint32_t, UINT32_MAX);
    CHECK_FAILS(parse_permille, "429496729.6%", uint32_t, -ERANGE);
    CHECK_FAILS(parse_permille, "4294967296permille", uint32_t, -ERANGE);
    CHECK_FAILS(parse_permille, "99999999999999999999%", uint32_t, -ERANGE);
    CHECK_FAILS(parse_permille, "18446744073709551616permille", uint32_t, -ERANGE);
    CHECK_FAILS(parse_permille, "12", uint32_t, -EINVAL);
    CHECK_FAILS(parse_permille, "1.25%", uint32_t, -EINVAL);
    CHECK_FAILS(parse_permille, "1.5permille", uint32_t, -EINVAL);
    CHECK_FAILS(parse_permille, "%", uint32_t, -EINVAL);
    CHECK_FAILS(parse_permille, "12%%", uint32_t, -EINVAL);
    CHECK_FAILS(parse_permille, "-1%", uint32_t, -EINVAL);
}

/* `text` is a list, and formats as `formatted`. */
static void check_list(const char *text, unsigned max, const char *formatted)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc_full();
    CLEANUP_FREE char *again = NULL;

    assert_int_equal(parse_list(text, max, set), 0);
    again = format_list(set, max);
    assert_string_equal(again, formatted);
}

static void check_list_fails(const char *text, unsigned max, int error)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(hwloc_bitmap_set(set, 3), 0);
    assert_int_equal(parse_list(text, max, set), error);
    assert_int_equal(hwloc_bitmap_weight(set), 1); /* untouched */
    assert_true(hwloc_bitmap_isset(set, 3));
}

static void test_list(void **state)
{
    check_list("", 7, "");
    check_list("\n", 7, "");
    check_list("0", 0, "0");
    check_list("0-3,8,10-11", 63, "0-3,8,10-11");
    check_list("0-3,8,10-11\n", 63, "0-3,8,10-11");
    check_list("8, 0-3 ,4", 63, "0-4,8");
    check_list("5-5", 63, "5");
    check_list("0-65535", PARSE_CPU_MAX, "0-65535");
    check_list_fails("0-65536", PARSE_CPU_MAX, -ERANGE);
    check_list_fails("64", 63, -ERANGE);
    check_list_fails("18446744073709551616", 63, -ERANGE);
    check_list_fails("0-18446744073709551616", 63, -ERANGE);
    check_list_fails("4294967296", 63, -ERANGE);
    check_list_fails("99,x", 63, -EINVAL);
    check_list_fails("3-1", 63, -EINVAL);
    check_list_fails("0-", 63, -EINVAL);
    check_list_fails("-3", 63, -EINVAL);
    check_list_fails("0,", 63, -EINVAL);
    check_list_fails(",0", 63, -EINVAL);
    check_list_fails("0,,1", 63, -EINVAL);
    check_list_fails("0 1", 63, -EINVAL);
    check_list_fails("0-1-2", 63, -EINVAL);
    check_list_fails("0-31:2/4", 63, -EINVAL); /* the kernel reads this form and never writes it */
    check_list_fails("0x3", 63, -EINVAL);
    check_list_fails("0\n1", 63, -EINVAL);
    check_list_fails("all", 63, -EINVAL);
}

static void test_format_list_infinite(void **state)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc_full();
    CLEANUP_FREE char *text = NULL, *all = NULL;

    assert_int_equal(hwloc_bitmap_clr(set, 2), 0);
    text = format_list(set, 7);
    assert_string_equal(text, "0-1,3-7");
    assert_int_equal(hwloc_bitmap_last(set), -1); /* the set itself is still infinite */
    hwloc_bitmap_fill(set);
    all = format_list(set, PARSE_CPU_MAX);
    assert_string_equal(all, "0-65535");
}

/* Any bitmap within the limit survives format and parse. */
static void test_list_round_trip(void **state)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc(), again = hwloc_bitmap_alloc();
    uint32_t seed = 1;

    for (int round = 0; round < 200; round++) {
        CLEANUP_FREE char *text = NULL;

        hwloc_bitmap_zero(set);
        for (int i = 0; i < round; i++) {
            seed = seed * 1664525 + 1013904223;
            assert_int_equal(hwloc_bitmap_set(set, (seed >> 8) % 2048), 0);
        }
        text = format_list(set, 2047);
        assert_int_equal(parse_list(text, 2047, again), 0);
        assert_true(hwloc_bitmap_isequal(set, again));
    }
}

static void check_span(uint64_t usec, const char *expected)
{
    char buf[64];
    uint64_t again = 1;

    assert_ptr_equal(format_span(usec, buf, sizeof(buf)), buf);
    if (expected)
        assert_string_equal(buf, expected);
    assert_int_equal(parse_span_usec(buf, &again), 0);
    assert_true(again == usec);
}

static void test_format_span(void **state)
{
    uint64_t usec = 1;

    check_span(0, "0s");
    check_span(150000, "150ms");
    check_span(90000000, "1min 30s");
    check_span(3661001001, "1h 1min 1s 1ms 1us");
    check_span(86400000000, "1d");
    check_span(UINT64_MAX, NULL);
    for (int i = 0; i < 500; i++) {
        usec = usec * 6364136223846793005ULL + 1442695040888963407ULL;
        check_span(usec >> (i % 64), NULL);
    }
}

/* A text that does not fit is cut, terminated and never written past the end. */
static void test_format_span_short(void **state)
{
    for (size_t size = 1; size < 12; size++) {
        char buf[16];

        memset(buf, '#', sizeof(buf));
        (void)format_span(90000000, buf, size); /* "1min 30s" */
        assert_int_equal(strnlen(buf, sizeof(buf)), MIN(size - 1, (size_t)8));
        assert_memory_equal(buf, "1min 30s", MIN(size - 1, (size_t)8));
        assert_int_equal(buf[size], '#');
    }
}

TEST_MAIN(NULL, NULL, test_u64, test_u32, test_i32, test_bool, test_span, test_bytes, test_permille,
          test_list, test_format_list_infinite, test_list_round_trip, test_format_span,
          test_format_span_short)
