/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When to make write hint faults again. */

#include "base/util.h"
#include "probe/hint-pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Three quiet rounds, then 8/5 each time, up to two seconds; what is remote takes it back at once. */
static void test_quiet(void **state)
{
    static const uint64_t expected[] = {100000, 100000,  160000,  256000,  409600,
                                        655360, 1048576, 1677721, 2000000, 2000000};
    HintPace pace = {0};

    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_int_equal(hint_pace_next(&pace, 90, 10), expected[i]);
    assert_int_equal(hint_pace_next(&pace, 89, 11), HINT_PACE_MIN_USEC);
    assert_int_equal(hint_pace_next(&pace, 90, 10), HINT_PACE_MIN_USEC);
    assert_int_equal(hint_pace_next(&pace, 90, 10), HINT_PACE_MIN_USEC);
    assert_int_equal(hint_pace_next(&pace, 90, 10), 160000);
}

/* A round that says nothing changes nothing. */
static void test_silent(void **state)
{
    HintPace pace = {0};

    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(hint_pace_next(&pace, 0, 0), HINT_PACE_MIN_USEC);
    for (unsigned i = 0; i < 3; i++)
        (void)hint_pace_next(&pace, 1, 0);
    assert_int_equal(hint_pace_next(&pace, 0, 0), 160000);
    assert_int_equal(hint_pace_next(&pace, 1, 0), 256000);
}

/* 2.5 ms of a process that uses two CPUs may be spent 25 times a second, of one that uses a half six times. */
static void test_rest(void **state)
{
    assert_int_equal(hint_pace_rest_usec(0, 1000), 0);
    assert_int_equal(hint_pace_rest_usec(2500, 2000), 40000);
    assert_int_equal(hint_pace_rest_usec(2500, 500), 160000);
    assert_int_equal(hint_pace_rest_usec(2500, 100), 800000);
    assert_int_equal(hint_pace_rest_usec(2500, 0), 800000);
    assert_true(hint_pace_rest_usec(UINT64_MAX, 0) >= hint_pace_rest_usec(1000000, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_rest),
    };

    return cmocka_run_group_tests_name("probe/hint-pace", tests, NULL, NULL);
}
