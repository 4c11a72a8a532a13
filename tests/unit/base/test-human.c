/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Numbers as an administrator reads them. */

#include "base/human.h"
#include "base/time.h"
#include "unit-test.h"

static void check_span(uint64_t usec, const char *expected)
{
    char buf[64];

    assert_string_equal(human_span(usec, buf, sizeof(buf)), expected);
}

static void test_spans(void **state)
{
    check_span(0, "0 us");
    check_span(12, "12 us");
    check_span(1500, "1.5 ms");
    check_span(100 * USEC_PER_MSEC, "100 ms");
    check_span(USEC_PER_SEC, "1 s");
    check_span(1500 * USEC_PER_MSEC, "1.5 s");
    check_span(59 * USEC_PER_SEC, "59 s");
    check_span(90 * USEC_PER_SEC, "1 min 30 s");
    check_span(3600 * USEC_PER_SEC, "1 h 0 min");
    check_span((2 * 86400 + 5 * 3600) * USEC_PER_SEC, "2 d 5 h");
}

/* A number just below the next unit must not be rounded up to that unit. */
static void test_span_just_below_a_unit(void **state)
{
    check_span(999999, "999 ms");
    check_span(59999999, "59 s");
    check_span(9999999, "9.9 s");
}

static void check_bytes(uint64_t bytes, const char *expected)
{
    char buf[64];

    assert_string_equal(human_bytes(bytes, buf, sizeof(buf)), expected);
}

static void test_bytes(void **state)
{
    check_bytes(0, "0 B");
    check_bytes(1023, "1023 B");
    check_bytes(1024, "1.0 KiB");
    check_bytes(1536, "1.5 KiB");
    check_bytes(200ULL << 20, "200 MiB");
    check_bytes(UINT64_MAX, "16.0 EiB");
}

static void test_nouns(void **state)
{
    assert_string_equal(human_noun(0, "CPU", "CPUs"), "CPUs");
    assert_string_equal(human_noun(1, "CPU", "CPUs"), "CPU");
    assert_string_equal(human_noun(2, "CPU", "CPUs"), "CPUs");
}

TEST_MAIN(NULL, NULL, test_spans, test_span_just_below_a_unit, test_bytes, test_nouns)
