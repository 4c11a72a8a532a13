/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ctl/verbs/report/report.h: the means and shares of a report. */

#include "ctl-test.h"
#include "ctl/verbs/report/report.h"

#define JOB                                                      \
    "{'workload':'job','run_permille':1000,'wait_permille':250," \
    "'runs':[{'node':0,'run_permille':750},{'node':1,'run_permille':249}]}"
#define SLEEPER                                                 \
    "{'workload':'sleeper','run_permille':3,'wait_permille':3," \
    "'runs':[{'node':1,'run_permille':3}]}"

/* 300 minutes. In the first one "job" uses a CPU, for 3.3 thousandths of one in the mean; "sleeper" never uses more
 * than that. */
static Report make_report(void)
{
    Report report = {.steps = json_object_new_array()};

    assert_non_null(report.steps);
    for (int i = 0; i < 300; i++) {
        json_object *step = test_json(i == 0 ? "{'span_usec':60000000,'workloads':[" JOB "," SLEEPER "]}"
                                             : "{'span_usec':60000000,'workloads':[" SLEEPER "]}");

        assert_int_equal(json_object_array_add(report.steps, step), 0);
    }
    return report;
}

static void test_shares(void **state)
{
    CLEANUP(report_done) Report report = make_report();
    const ReportWorkload *job = NULL, *sleeper = NULL;

    assert_int_equal(report_sum_up(&report), CTL_EXIT_OK);
    assert_int_equal(report.n_workloads, 2);
    assert_int_equal(report.n_nodes, 2);
    job = &report.workloads[0];
    sleeper = &report.workloads[1];
    assert_string_equal(job->name, "job");
    assert_float_equal(job->run, 1.0 / 300.0, 1e-6);
    assert_float_equal(job->waits, 0.2, 1e-6);
    assert_float_equal(job->nodes[0] / job->on_nodes, 750.0 / 999.0, 1e-6);
    assert_string_equal(sleeper->name, "sleeper");
    assert_float_equal(sleeper->run, 0.003, 1e-6);
    assert_true(sleeper->waits < 0.0);
    assert_true(sleeper->on_nodes == 0.0);
}

/* Ten minutes in which the machine was suspended for an hour, or the clock was set, after the first five. */
static void test_times(void **state)
{
    static const struct {
        uint64_t later, begin, before, after; /* minutes; before and after: at 4 and 6 minutes */
    } rows[] = {{0, 1000, 1004, 1006}, {60, 1000, 1004, 1066}, {(uint64_t)-60, 940, 1004, 946}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(report_done) Report report = {.steps = json_object_new_array()};

        for (uint64_t m = 1; m <= 10; m++) {
            json_object *step = test_json("{'span_usec':60000000,'workloads':[]}");
            uint64_t minutes = 1000 + m + (m > 5 ? rows[i].later : 0);

            assert_int_equal(json_set_number(step, "realtime_usec", minutes * 60000000), 0);
            assert_int_equal(json_object_array_add(report.steps, step), 0);
        }
        assert_int_equal(report_sum_up(&report), CTL_EXIT_OK);
        assert_int_equal(report.begin_usec / 60000000, rows[i].begin);
        assert_int_equal(report.end_usec / 60000000, 1010 + rows[i].later);
        assert_int_equal(report_realtime_usec(&report, 240.0) / 60000000, rows[i].before);
        assert_int_equal(report_realtime_usec(&report, 360.0) / 60000000, rows[i].after);
    }
}

TEST_MAIN(NULL, NULL, test_shares, test_times)
