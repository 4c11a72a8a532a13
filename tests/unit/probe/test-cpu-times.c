/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Idle times in /proc/stat, and the busy time computed from them. */

#include "base/util.h"
#include "kernel/cpu-times.h"
#include "unit-test.h"

#define MSEC 1000000ULL
#define STEP (10 * MSEC)

static void test_parse(void **state)
{
    static const char text[] = "cpu  1 2 3 4 5 6 7 8 9 10\n"
                               "cpu0 1 2 3 40 50 6 7 8 9 10\n"
                               "cpu17 1 2 3 7 0\n" /* Linux 2.6.0 */
                               "intr 12 34 56 cut he";
    CLEANUP(cpu_times_done) CpuTimes times = {0};

    assert_int_equal(cpu_times_parse(text, &times), 0);
    assert_int_equal(times.n_cpus, 2);
    assert_int_equal(times.cpus[0].cpu, 0);
    assert_int_equal(times.cpus[0].idle_ticks, 90);
    assert_int_equal(times.cpus[1].cpu, 17);
    assert_int_equal(times.cpus[1].idle_ticks, 7);
}

static void test_parse_bad(void **state)
{
    static const char *const bad[] = {
        "",
        "intr 1\n",
        "cpu  1 2 3 4 5\n",
        "cpu  1 2 3 4 5\nintr 1\n",
        "cpu  1 2 3",
        "cpu0 1 2 3 4\nintr 1\n",
        "cpu0 1 2 3 4 5",
        "cpu0 1 2 3 4 5\n", /* perhaps more CPUs were cut off */
        "cpu0 1 2 3 4 x\nintr 1\n",
        "cpu0 1 2 3 18446744073709551615 1\nintr 1\n",
        "cpu70000 1 2 3 4 5\nintr 1\n",
        "cpux 1 2 3 4 5\nintr 1\n",
    };
    CLEANUP(cpu_times_done) CpuTimes times = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (cpu_times_parse(bad[i], &times) != -EINVAL)
            fail_msg("taken: '%s'", bad[i]);
}

/* An idle CPU is exactly idle, however ticks fall on the steps of the counter. */
static void test_idle_is_zero(void **state)
{
    static const uint64_t intervals[] = {100 * MSEC, 109 * MSEC,  101 * MSEC + 7,
                                         53 * MSEC,  2000 * MSEC, 9 * MSEC};

    for (size_t i = 0; i < ARRAY_SIZE(intervals); i++)
        for (uint64_t phase = 0; phase < STEP; phase += MSEC / 2) {
            CpuBusy busy = {0};
            uint64_t now = 5000 * MSEC, idle = 777 * MSEC + phase;

            for (int tick = 0; tick < 200; tick++) {
                assert_int_equal(cpu_busy_update(&busy, now, idle / STEP, STEP), 0);
                now += intervals[i];
                idle += intervals[i];
            }
        }
}

/* A CPU with a constant load: the result lags by less than two steps, and over time nothing is lost or invented. */
static void test_busy_adds_up(void **state)
{
    for (uint64_t percent = 0; percent <= 100; percent++) {
        CpuBusy busy = {0};
        uint64_t now = 0, idle = 3 * MSEC, sum = 0, truth = 0;

        (void)cpu_busy_update(&busy, now, idle / STEP, STEP);
        for (int tick = 0; tick < 300; tick++) {
            uint64_t interval = (95 + (uint64_t)tick % 11) * MSEC;

            now += interval;
            idle += interval * (100 - percent) / 100;
            truth += interval * percent / 100;
            sum += cpu_busy_update(&busy, now, idle / STEP, STEP);
            assert_true(sum <= truth + STEP);
            assert_true(sum + 2 * STEP > truth);
        }
    }
}

static void test_worked_example(void **state)
{
    static const struct {
        uint64_t now, idle, busy;
    } rows[] = {{0, 0, 0}, {109, 100, 0}, {218, 210, 0}, {318, 220, 88}, {418, 220, 100}};
    CpuBusy busy = {0};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(cpu_busy_update(&busy, rows[i].now * MSEC, rows[i].idle * MSEC / STEP, STEP),
                         rows[i].busy * MSEC);
}

/* iowait may decrease, which gives neither negative busy time nor a busy period later. */
static void test_counter_goes_back(void **state)
{
    CpuBusy busy = {0};

    assert_int_equal(cpu_busy_update(&busy, 0, 1000, STEP), 0);
    assert_int_equal(cpu_busy_update(&busy, 100 * MSEC, 1010, STEP), 0);
    assert_true(cpu_busy_update(&busy, 200 * MSEC, 1005, STEP) >= 100 * MSEC);
    assert_int_equal(cpu_busy_update(&busy, 300 * MSEC, 1030, STEP), 0);
    assert_int_equal(cpu_busy_update(&busy, 400 * MSEC, 1040, STEP), 0);
}

TEST_MAIN(NULL, NULL, test_parse, test_parse_bad, test_idle_is_zero, test_busy_adds_up, test_worked_example,
          test_counter_goes_back)
