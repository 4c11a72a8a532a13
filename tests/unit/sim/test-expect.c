/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Expectations: how they are read, and their verdicts on tables of numbers made here. */

#include "../conf/conf-test.h"
#include "sim/scenario/expect.h"

#include <math.h>

#define N_VARIANTS  3
#define N_SEEDS     4
#define N_WORKLOADS 2

static SimWorkload workloads[N_WORKLOADS] = {{.name = (char *)"jvm"}, {.name = (char *)"db"}};
static SimVariant variants[N_VARIANTS] = {
    {.name = (char *)"none"}, {.name = (char *)"lend"}, {.name = (char *)"bound"}};
static const SimSpec spec = {
    .workloads = workloads, .n_workloads = N_WORKLOADS, .variants = variants, .n_variants = N_VARIANTS};
static const SimSpec spec_single = {
    .workloads = workloads, .n_workloads = N_WORKLOADS, .variants = variants, .n_variants = 1};

static int64_t values[N_VARIANTS][N_SEEDS][N_WORKLOADS + 1][SIM_METRIC_MAX];
static const SimTable table = {.spec = &spec, .n_seeds = N_SEEDS, .values = &values[0][0][0][0]};

static int set_values(void **state)
{
    static const int64_t makespans[N_VARIANTS][N_SEEDS] = {
        {200, 210, 220, 230}, {300, 310, 0, 330}, {100, 110, 120, 130}};

    memset(values, 0, sizeof(values));
    for (size_t v = 0; v < N_VARIANTS; v++)
        for (size_t s = 0; s < N_SEEDS; s++) {
            values[v][s][0][SIM_METRIC_MAKESPAN_USEC] = makespans[v][s];
            values[v][s][0][SIM_METRIC_LENDS] = (int64_t)v;
            values[v][s][2][SIM_METRIC_RUN] = 1000 + (int64_t)s;
        }
    return 0;
}

static SimExpect expect(const SimSpec *of, const char *key, const char *value)
{
    CLEANUP_FREE char *error = NULL;
    SimExpect e;
    int r = sim_expect_parse(of, key, value, &e, &error);

    if (r < 0)
        fail_msg("%s=%s: %s", key, value, error ? error : strerror(-r));
    assert_null(error);
    return e;
}

static SimVerdict judge(const char *key, const char *value, SimOver over)
{
    SimExpect e = expect(&spec, key, value);
    SimVerdict verdict;

    e.over = over;
    assert_int_equal(sim_expect_judge(&table, &e, &verdict), 0);
    assert_int_equal(verdict.held, verdict.n_held == verdict.n_cases);
    free(e.text);
    return verdict;
}

static void test_parse(void **state)
{
    SimExpect e = expect(&spec, "Ratio", "run(db) lend none >= 1.45");

    assert_int_equal(e.kind, SIM_EXPECT_RATIO);
    assert_int_equal(e.metric, SIM_METRIC_RUN);
    assert_int_equal(e.workload, 1);
    assert_int_equal(e.n_variants, 2);
    assert_int_equal(e.variants[0], 1);
    assert_int_equal(e.variants[1], 0);
    assert_int_equal(e.compare, SIM_COMPARE_AT_LEAST);
    assert_true(e.limit == 1.45);
    assert_string_equal(e.text, "Ratio=run(db) lend none >= 1.45");
    free(e.text);

    e = expect(&spec_single, "Value", "lends == 5");
    assert_int_equal(e.n_variants, 1);
    assert_int_equal(e.variants[0], 0);
    assert_int_equal(e.divisors[0], UINT32_MAX);
    assert_int_equal(e.workload, SIZE_MAX);
    free(e.text);
}

static const char *const slips[][3] = {
    {"Mean", "run none == 1", "expected Value=, Ratio=, Order= or Range= in [Expect], not: Mean="},
    {"Value", "", "expected a metric of numaplace.scenario(5), not: the end of the line"},
    {"Value", "(db) none == 1", "expected a metric of numaplace.scenario(5), not: (db)"},
    {"Value", "run() none == 1", "expected METRIC or METRIC(WORKLOAD), not: run()"},
    {"Value", "run", "expected a variant of this scenario, not: the end of the line"},
    {"Value", "run none", "expected <, <=, ==, >= or >, not: the end of the line"},
    {"Value", "runs none == 1", "expected a metric of numaplace.scenario(5), not: runs"},
    {"Value", "run(web) none == 1", "expected a workload of this scenario in METRIC(WORKLOAD), not: web"},
    {"Value", "run(db none == 1", "expected METRIC or METRIC(WORKLOAD), not: run(db"},
    {"Value", "run( none == 1", "expected METRIC or METRIC(WORKLOAD), not: run("},
    {"Value", "busy(db) none == 1",
     "expected no (WORKLOAD) after busy, which is a metric of the machine only"},
    {"Value", "run == 1", "expected a variant of this scenario, not: =="},
    {"Value", "run some == 1", "expected a variant of this scenario, not: some"},
    {"Value", "run none = 1", "expected <, <=, ==, >= or >, not: ="},
    {"Value", "run none ==", "expected a number such as 5 or 1.45, not: the end of the line"},
    {"Value", "run none == -1", "expected a number such as 5 or 1.45, not: -1"},
    {"Value", "run none == 1e3", "expected a number such as 5 or 1.45, not: 1e3"},
    {"Value", "run none == 1.", "expected a number such as 5 or 1.45, not: 1."},
    {"Value", "run none == 1 2", "expected the end of the line, not: 2"},
    {"Ratio", "run none == 1", "expected a variant of this scenario, not: =="},
    {"Order", "run none", "expected < between two variants, not: the end of the line"},
    {"Order", "run none > lend", "expected < between two variants, not: >"},
    {"Order", "run none < lend/", "expected VARIANT or VARIANT/VARIANT, not: lend/"},
    {"Order", "run none < /lend", "expected VARIANT or VARIANT/VARIANT, not: /lend"},
    {"Order", "run none/some < lend", "expected a variant of this scenario, not: some"},
    {"Order", "run none <", "expected a variant of this scenario, not: the end of the line"},
};

static void test_slips(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(slips); i++) {
        CLEANUP_FREE char *error = NULL;
        SimExpect e;

        assert_int_equal(sim_expect_parse(&spec, slips[i][0], slips[i][1], &e, &error), -EINVAL);
        assert_string_equal(error, slips[i][2]);
    }
}

static void test_value(void **state)
{
    SimVerdict v = judge("Value", "lends lend == 1", SIM_OVER_EVERY);

    assert_true(v.held);
    assert_int_equal(v.n_cases, N_SEEDS);
    /* 1000, 1001, 1002, 1003 */
    v = judge("Value", "run(db) none <= 1001", SIM_OVER_EVERY);
    assert_false(v.held);
    assert_int_equal(v.n_held, 2);
    assert_true(v.found.low == 1000 && v.found.median == 1001.5 && v.found.high == 1003);
    v = judge("Value", "run(db) none <= 1001.5", SIM_OVER_MEDIAN);
    assert_true(v.held);
    assert_int_equal(v.n_cases, 1);
    assert_false(judge("Value", "run(db) none < 1001.5", SIM_OVER_MEDIAN).held);
    assert_true(judge("Value", "run(jvm) none == 0", SIM_OVER_EVERY).held);
}

static void test_ratio(void **state)
{
    SimVerdict v = judge("Ratio", "makespan-usec none bound >= 1.75", SIM_OVER_EVERY);

    assert_true(v.held);
    assert_true(v.found.low == 230.0 / 130 && v.found.high == 2);
    assert_false(judge("Ratio", "makespan-usec none bound > 1.77", SIM_OVER_EVERY).held);
    /* 1 / 0 is above any limit; 0 / 0 satisfies nothing. */
    assert_true(judge("Ratio", "lends lend none > 1000", SIM_OVER_EVERY).held);
    v = judge("Ratio", "lends none none <= 1000", SIM_OVER_EVERY);
    assert_int_equal(v.n_held, 0);
    assert_true(isnan(v.found.median));
}

/* A run that never ended takes longer than any other, whatever its number. */
static void test_order(void **state)
{
    assert_true(judge("Order", "makespan-usec bound < none < lend", SIM_OVER_EVERY).held);
    assert_true(judge("Order", "makespan-usec bound < none < lend", SIM_OVER_MEDIAN).held);
    assert_false(judge("Order", "makespan-usec none < bound < lend", SIM_OVER_EVERY).held);
    assert_false(judge("Order", "makespan-usec none < lend < bound", SIM_OVER_EVERY).held);
    assert_false(judge("Order", "lends(jvm) none < lend", SIM_OVER_EVERY).held);
    assert_true(judge("Order", "lends none < lend < bound", SIM_OVER_EVERY).held);
    /* 1/2 < 1 < 2/1; and about 0.57 < 1.76, of medians 0.53 and 1.87 */
    assert_true(judge("Order", "lends lend/bound < lend < bound/lend", SIM_OVER_EVERY).held);
    assert_true(judge("Order", "makespan-usec bound/none < none/bound", SIM_OVER_EVERY).held);
    assert_true(judge("Order", "makespan-usec bound/none < none/bound", SIM_OVER_MEDIAN).held);
    assert_false(judge("Order", "makespan-usec none/bound < bound/none", SIM_OVER_MEDIAN).held);
}

static void test_range(void **state)
{
    SimVerdict v = judge("Range", "makespan-usec none < 0.14", SIM_OVER_EVERY);

    assert_true(v.held);
    assert_int_equal(v.n_cases, 1);
    assert_true(fabs(v.found.median - 30.0 / 215) < 1e-9);
    assert_false(judge("Range", "makespan-usec none < 0.13", SIM_OVER_EVERY).held);
    assert_false(judge("Range", "makespan-usec lend < 1000000", SIM_OVER_EVERY).held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse), cmocka_unit_test(test_slips), cmocka_unit_test(test_value),
        cmocka_unit_test(test_ratio), cmocka_unit_test(test_order), cmocka_unit_test(test_range),
    };

    return cmocka_run_group_tests_name("sim/expect", tests, set_values, NULL);
}
