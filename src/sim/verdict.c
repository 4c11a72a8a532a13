/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Judges expectations by the numbers of all runs. Example: Order=makespan-usec a < b < c, where one seed gave 10, 12
 * and 18 s. The quotients are 1.2 and 1.5; the smallest, 1.2, is above 1, so the order held for that seed. */

#include "sim/scenario/expect.h"

#include <math.h>

double sim_table_get(const SimTable *table, size_t variant, size_t seed, SimMetric metric, size_t workload)
{
    size_t row = workload == SIZE_MAX ? 0 : workload + 1;
    int64_t v;

    assert(variant < table->spec->n_variants && seed < table->n_seeds && row <= table->spec->n_workloads);
    v = table->values[(variant * table->n_seeds + seed) * sim_table_row(table->spec) + row * SIM_METRIC_MAX +
                      metric];
    return metric == SIM_METRIC_MAKESPAN_USEC && v == 0 ? INFINITY : (double)v;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts `values`, none of which is NAN. */
static SimSummary summarize(double *values, size_t n)
{
    assert(n > 0);
    qsort(values, n, sizeof(double), compare_doubles);
    return (SimSummary){
        .low = values[0],
        /* No mean of equal values, because that of two infinities is undefined. */
        .median =
            values[(n - 1) / 2] == values[n / 2] ? values[n / 2] : (values[(n - 1) / 2] + values[n / 2]) / 2,
        .high = values[n - 1],
    };
}

int sim_table_summary(const SimTable *table, size_t variant, SimMetric metric, size_t workload,
                      SimSummary *ret)
{
    CLEANUP_FREE double *values = calloc(table->n_seeds, sizeof(double));

    if (!values)
        return -ENOMEM;
    for (size_t i = 0; i < table->n_seeds; i++)
        values[i] = sim_table_get(table, variant, i, metric, workload);
    *ret = summarize(values, table->n_seeds);
    return 0;
}

/* The number to compare with the limit, from one metric per variant. */
static double combine(const SimExpect *e, const double *v)
{
    double smallest = INFINITY;

    if (e->kind == SIM_EXPECT_VALUE)
        return v[0];
    if (e->kind == SIM_EXPECT_RATIO)
        return v[0] / v[1];
    for (size_t i = 1; i < e->n_variants; i++) {
        double quotient = v[i] / v[i - 1];

        if (isnan(quotient))
            return NAN;
        smallest = MIN(smallest, quotient);
    }
    return smallest;
}

static bool fulfils(const SimExpect *e, double found)
{
    switch (e->compare) {
    case SIM_COMPARE_LESS:
        return found < e->limit;
    case SIM_COMPARE_AT_MOST:
        return found <= e->limit;
    case SIM_COMPARE_EQUAL:
        return found == e->limit;
    case SIM_COMPARE_AT_LEAST:
        return found >= e->limit;
    default:
        return found > e->limit;
    }
}

static int judge_median(const SimTable *table, const SimExpect *e, double *ret)
{
    double v[SIM_TERMS_MAX] = {0};

    for (size_t i = 0; i < e->n_variants; i++) {
        SimSummary s, divisor = {.median = 1};
        int r = sim_table_summary(table, e->variants[i], e->metric, e->workload, &s);

        if (r == 0 && e->divisors[i] != UINT32_MAX)
            r = sim_table_summary(table, e->divisors[i], e->metric, e->workload, &divisor);
        if (r < 0)
            return r;
        v[i] = s.median / divisor.median;
    }
    *ret = combine(e, v);
    return 0;
}

static double judge_seed(const SimTable *table, const SimExpect *e, size_t seed)
{
    double v[SIM_TERMS_MAX] = {0};

    for (size_t i = 0; i < e->n_variants; i++) {
        v[i] = sim_table_get(table, e->variants[i], seed, e->metric, e->workload);
        if (e->divisors[i] != UINT32_MAX)
            v[i] /= sim_table_get(table, e->divisors[i], seed, e->metric, e->workload);
    }
    return combine(e, v);
}

static double judge_range(const SimTable *table, const SimExpect *e)
{
    double low = INFINITY, high = 0, sum = 0;

    for (size_t i = 0; i < table->n_seeds; i++) {
        double v = sim_table_get(table, e->variants[0], i, e->metric, e->workload);

        low = MIN(low, v);
        high = MAX(high, v);
        sum += v;
    }
    return (high - low) / (sum / (double)table->n_seeds);
}

int sim_expect_judge(const SimTable *table, const SimExpect *e, SimVerdict *ret)
{
    bool each = e->kind != SIM_EXPECT_RANGE && e->over == SIM_OVER_EVERY;
    size_t n = each ? table->n_seeds : 1, n_numbers = 0;
    CLEANUP_FREE double *found = calloc(n, sizeof(double));
    SimVerdict verdict = {.n_cases = n, .found = {NAN, NAN, NAN}};
    int r = 0;

    if (!found)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        double v = NAN;

        if (e->kind == SIM_EXPECT_RANGE)
            v = judge_range(table, e);
        else if (each)
            v = judge_seed(table, e, i);
        else
            r = judge_median(table, e, &v);
        if (r < 0)
            return r;
        verdict.n_held += fulfils(e, v);
        if (!isnan(v))
            found[n_numbers++] = v;
    }
    if (n_numbers > 0)
        verdict.found = summarize(found, n_numbers);
    verdict.held = verdict.n_held == n;
    *ret = verdict;
    return 0;
}
