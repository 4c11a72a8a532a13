/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Expectations: what must come of a scenario, over all seeds.
 *
 *     Value=METRIC [VARIANT] OP NUMBER           the metric of one variant
 *     Ratio=METRIC VARIANT VARIANT OP NUMBER     the first divided by the second, of the same seed
 *     Order=METRIC TERM < TERM < ...             rising from term to term, of the same seed; a TERM is VARIANT, or
 *                                                VARIANT/VARIANT, the quotient of two
 *     Range=METRIC [VARIANT] OP NUMBER           (largest - smallest) / mean over the seeds
 *
 * METRIC is the name of a metric, with (WORKLOAD) behind it when it is that of one workload. OP is <, <=, ==, >= or >.
 * With one variant in the file it need not be named.
 *
 * Every kind comes down to one number per seed and a limit: an order to the smallest quotient of neighbours, which
 * must be above 1. What did not happen is a number too: without an end, makespan-usec is infinite, and 0 / 0 is no
 * number and fulfils nothing. */

#include "sim/scenario/spec.h"

#include <stddef.h>
#include <stdint.h>

/* "Value", "Ratio", "Order", "Range"; NULL-terminated, in the order of SimExpectKind. */
extern const char *const sim_expect_names[];

/* "<", "<=", "==", ">=", ">"; NULL-terminated, in the order of SimCompare. */
extern const char *const sim_compare_names[];

/* Parses "KEY=VALUE" of an [Expect] section; workloads and variants of `spec` must be complete. The result has no
 * line, and holds for every seed. Returns 0, -EINVAL with what was expected as a malloc'd sentence in *ret_error, or
 * -ENOMEM. */
int sim_expect_parse(const SimSpec *spec, const char *key, const char *value, SimExpect *ret,
                     char **ret_error);

/* What came of all runs of a scenario. */
typedef struct SimTable {
    const SimSpec *spec;
    size_t n_seeds;
    const int64_t *values; /* [n_variants][n_seeds][n_workloads + 1][SIM_METRIC_MAX], as SimResult.values */
} SimTable;

/* Numbers in a table of one run. */
static inline size_t sim_table_row(const SimSpec *spec)
{
    return (spec->n_workloads + 1) * SIM_METRIC_MAX;
}

/* One metric of one run; `workload` SIZE_MAX is the machine. INFINITY for a makespan of what did not end. */
double sim_table_get(const SimTable *table, size_t variant, size_t seed, SimMetric metric, size_t workload);

typedef struct SimSummary {
    double low, median, high;
} SimSummary;

/* Over all seeds. The median of an even number is the mean of the middle two. Returns 0 or -ENOMEM. */
int sim_table_summary(const SimTable *table, size_t variant, SimMetric metric, size_t workload,
                      SimSummary *ret);

typedef struct SimVerdict {
    bool held;
    size_t n_held, n_cases; /* seeds; one case for SIM_OVER_MEDIAN and SIM_EXPECT_RANGE */
    SimSummary found;       /* the number that was held against the limit, over the cases */
} SimVerdict;

/* Judges one expectation. Returns 0 or -ENOMEM. */
int sim_expect_judge(const SimTable *table, const SimExpect *expect, SimVerdict *ret);
