/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Expectations: the required results of a scenario over all seeds.
 *
 *     Value=METRIC [VARIANT] OP NUMBER           the metric of one variant
 *     Ratio=METRIC VARIANT VARIANT OP NUMBER     the first divided by the second, of the same seed
 *     Order=METRIC TERM < TERM < ...             rising from term to term, of the same seed; a TERM is VARIANT, or
 *                                                VARIANT/VARIANT, the quotient of two
 *     Range=METRIC [VARIANT] OP NUMBER           (largest - smallest) / mean over the seeds
 *
 * METRIC is the name of a metric, followed by (WORKLOAD) if it is that of one workload. OP is <, <=, ==, >= or >. The
 * variant may be omitted if the file has only one.
 *
 * Every kind is reduced to one number per seed and a limit; for an order it is the smallest quotient of neighbours,
 * which must be above 1. Without an end, makespan-usec is infinite. 0 / 0 is not a number and fulfils nothing. */

#include "sim/scenario/spec.h"

#include <stddef.h>
#include <stdint.h>

/* "Value", "Ratio", "Order", "Range"; NULL-terminated, in the order of SimExpectKind. */
extern const char *const sim_expect_names[];

/* "<", "<=", "==", ">=", ">"; NULL-terminated, in the order of SimCompare. */
extern const char *const sim_compare_names[];

/* Parses "KEY=VALUE" of an [Expect] section; workloads and variants of `spec` must be complete. The result
 * holds for every seed (SIM_OVER_EVERY), and its line is not set. Returns 0, -EINVAL with a malloc'd sentence
 * in *ret_error that says what was expected, or -ENOMEM. */
int sim_expect_parse(const SimSpec *spec, const char *key, const char *value, SimExpect *ret,
                     char **ret_error);

/* The results of all runs of a scenario. */
typedef struct SimTable {
    const SimSpec *spec;
    size_t n_seeds;
    const int64_t *values; /* [n_variants][n_seeds][n_workloads + 1][SIM_METRIC_MAX], as SimResult.values */
} SimTable;

/* Numbers that a table has for one run. */
static inline size_t sim_table_row(const SimSpec *spec)
{
    return (spec->n_workloads + 1) * SIM_METRIC_MAX;
}

/* One metric of one run; `workload` SIZE_MAX is the machine. INFINITY for the makespan of a run that did not end. */
double sim_table_get(const SimTable *table, size_t variant, size_t seed, SimMetric metric, size_t workload);

typedef struct SimSummary {
    double low, median, high;
} SimSummary;

/* Summary over all seeds. The median of an even number is the mean of the middle two. Returns 0 or -ENOMEM. */
int sim_table_summary(const SimTable *table, size_t variant, SimMetric metric, size_t workload,
                      SimSummary *ret);

typedef struct SimVerdict {
    bool held;
    size_t n_held, n_cases; /* seeds; one case for SIM_OVER_MEDIAN and SIM_EXPECT_RANGE */
    SimSummary found;       /* the number compared with the limit, over the cases */
} SimVerdict;

/* Judges one expectation. Returns 0 or -ENOMEM. */
int sim_expect_judge(const SimTable *table, const SimExpect *expect, SimVerdict *ret);
