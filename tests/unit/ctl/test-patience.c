/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The client waits for a daemon that works, and gives up on one that does nothing. */

#include "base/util.h"
#include "ctl/patience.h"
#include "unit-test.h"

#include <unistd.h>

#define SEC 1000000ULL

/* Looks every half second until the client gives up. Returns the seconds until then. */
static uint64_t wait_for(uint64_t works_sec, bool known)
{
    Patience patience;
    uint64_t now = 5 * SEC, left;
    ProcStat stat = {.utime_ticks = 1000, .stime_ticks = 1000};

    patience_begin(&patience, now);
    while ((left = patience_look(&patience, now, known ? &stat : NULL)) > 0) {
        assert_true(left <= PATIENCE_LOOK_USEC);
        now += left;
        stat.stime_ticks += now <= (5 + works_sec) * SEC;
    }
    return now / SEC - 5;
}

static void test_stopped(void **state)
{
    assert_int_equal(wait_for(0, true), PATIENCE_SILENCE_USEC / SEC);
}

static void test_not_known(void **state)
{
    assert_int_equal(wait_for(1000, false), PATIENCE_SILENCE_USEC / SEC);
}

static void test_works(void **state)
{
    assert_int_equal(wait_for(80, true), 80 + PATIENCE_SILENCE_USEC / SEC);
    assert_int_equal(wait_for(100000, true), PATIENCE_MAX_USEC / SEC);
}

static void test_read(void **state)
{
    ProcStat stat;

    assert_int_equal(patience_read(0, &stat), -ESRCH);
    assert_int_equal(patience_read(getpid(), &stat), 0);
    assert_int_equal(stat.pid, getpid());
}

TEST_MAIN(NULL, NULL, test_stopped, test_not_known, test_works, test_read)
