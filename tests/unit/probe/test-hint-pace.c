/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What write hint faults may cost. */

#include "probe/hints/pace.h"
#include "unit-test.h"

/* A process that uses two CPUs can pay 2.5 ms 25 times a second; one that uses half a CPU, six times. */
static void test_rest(void **state)
{
    assert_int_equal(hint_pace_rest_usec(0, 1000), 0);
    assert_int_equal(hint_pace_rest_usec(2500, 2000), 40000);
    assert_int_equal(hint_pace_rest_usec(2500, 500), 160000);
    assert_int_equal(hint_pace_rest_usec(2500, 100), 800000);
    assert_int_equal(hint_pace_rest_usec(2500, 0), 800000);
    assert_true(hint_pace_rest_usec(UINT64_MAX, 0) >= hint_pace_rest_usec(1000000, 0));
}

TEST_MAIN(NULL, NULL, test_rest)
