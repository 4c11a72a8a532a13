/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Scenario files. An accepted one holds what its type promises, and its expectations can be judged. fuzz-sim
 * runs them. */

#include "fuzz.h"
#include "sim/scenario/expect.h"
#include "sim/scenario/scenario.h"

static void check_spec(const SimSpec *spec)
{
    check(topology_check(spec->topology) == 0);
    check(spec->n_seeds > 0 && spec->n_seeds <= SIM_SEEDS_MAX && spec->settle_usec <= spec->duration_usec);
    check(spec->n_workloads > 0 && spec->n_variants > 0);
    for (size_t i = 0; i < spec->n_workloads; i++) {
        const SimWorkload *w = &spec->workloads[i];

        check(w->n_processes > 0 && w->n_threads > 0 && w->name && w->comm && w->cgroup);
        check(!w->cpuset || hwloc_bitmap_intersects(w->cpuset, spec->topology->all_cpus));
        check(w->wake == SIM_WAKE_NONE || w->burst.a_usec > 0);
    }
    for (size_t i = 0; i < spec->n_variants; i++)
        check(spec->variants[i].policies && spec->variants[i].workloads);
}

/* Judges the expectations on a table of ones. */
static void judge(const SimSpec *spec)
{
    SimTable table = {.spec = spec, .n_seeds = 2};
    size_t n = spec->n_variants * table.n_seeds * sim_table_row(spec);
    CLEANUP_FREE int64_t *values = calloc(n, sizeof(*values));

    check(values);
    for (size_t i = 0; i < n; i++)
        values[i] = 1;
    table.values = values;
    for (size_t i = 0; i < spec->n_expects; i++) {
        SimVerdict verdict;

        check(sim_expect_judge(&table, &spec->expects[i], &verdict) == 0);
        check(verdict.held == (verdict.n_held == verdict.n_cases));
        check(spec->expects[i].kind != SIM_EXPECT_ORDER || !verdict.held);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    ConfReport report = {0};
    int r = sim_scenario_parse("fuzz", (const char *)data, size, "f", NULL, &spec, &report);

    check(r == 0 || r == -EBADMSG);
    check(!spec == (r < 0) && (report.n_errors > 0) == (r < 0));
    conf_report_done(&report);
    if (!spec)
        return 0;
    check_spec(spec);
    judge(spec);
    return 0;
}
