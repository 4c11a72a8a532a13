/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counting several processes at the same time, with the real perf_event_open(2), by software events. */

#include "probe-test.h"

#include "probe/counting.h"

#include <linux/perf_event.h>
#include <unistd.h>

static const ProgressEvents faults = {
    .type = PERF_TYPE_SOFTWARE,
    .instructions = PERF_COUNT_SW_PAGE_FAULTS,
    .cycles = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
    .misses = PERF_COUNT_SW_PAGE_FAULTS_MIN,
};

static const TaskKey first = {.pid = 100, .start_ticks = 7}, second = {.pid = 200, .start_ticks = 8};

static bool is_forbidden(int r)
{
    return r == -EACCES || r == -EPERM || r == -ENOSYS;
}

static void test_several(void **state)
{
    CLEANUP(counting_free_p) Counting *counting = counting_new(&faults);
    const pid_t tids[] = {getpid(), INT32_MAX}, gone = INT32_MAX;
    CountingNews news;
    int r;

    assert_non_null(counting);
    r = counting_begin(counting, first, tids, 1, 1000);
    if (is_forbidden(r))
        skip();
    assert_int_equal(r, 0);
    assert_int_equal(counting_begin(counting, second, tids, 2, 2000), 0);
    assert_int_equal(counting_begin(counting, second, &gone, 1, 2000), -ESRCH);
    assert_int_equal(counting_n_threads(counting), 3);
    assert_true(counting_look(counting, 0, &news));
    assert_int_equal(news.subject.pid, 100);
    assert_int_equal(news.subject.start_ticks, 7);
    assert_int_equal(news.begun_usec, 1000);
    assert_int_equal(news.counts.n_threads, 1);
    assert_true(news.counts.misses_known);
    assert_false(counting_look(counting, 2, &news));

    counting_end(counting, 0);
    assert_int_equal(counting_n_threads(counting), 2);
    assert_true(counting_look(counting, 0, &news));
    assert_int_equal(news.subject.pid, 200);
    assert_int_equal(news.begun_usec, 2000);
    assert_false(counting_look(counting, 1, &news));
}

/* Without misses it is not known which threads wait for memory. */
static void test_no_misses(void **state)
{
    ProgressEvents events = faults;
    CLEANUP(counting_free_p) Counting *counting = NULL;
    const pid_t self = getpid();
    CountingNews news;
    int r;

    events.misses = 9999;
    counting = counting_new(&events);
    assert_non_null(counting);
    r = counting_begin(counting, first, &self, 1, 1000);
    if (is_forbidden(r))
        skip();
    assert_int_equal(r, -ENOENT);
    assert_false(counting_look(counting, 0, &news));
    assert_int_equal(counting_n_threads(counting), 0);
}

TEST_MAIN(NULL, NULL, test_several, test_no_misses)
