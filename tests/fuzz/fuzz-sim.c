/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs a scenario. Whatever an accepted one asks for, a run ends, by itself or at the limit of its events,
 * and a second run has the same numbers. */

#include "fuzz.h"
#include "sim/scenario/scenario.h"
#include "sim/sim.h"

#define EVENTS_MAX 2000U

/* Returns NULL when the run reached the limit. */
static SimResult *run(const SimSpec *spec)
{
    const SimHooks hooks = {.events_max = EVENTS_MAX};
    CLEANUP_FREE char *error = NULL;
    SimResult *result = NULL;
    int r = sim_run(spec, 0, 1, &hooks, &result, &error);

    check(r == 0 || ((r == -EOVERFLOW || r == -EINVAL) && error));
    check(!result == (r < 0));
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    CLEANUP(sim_result_free_p) SimResult *first = NULL;
    CLEANUP(sim_result_free_p) SimResult *second = NULL;
    ConfReport report = {0};
    int r = sim_scenario_parse("fuzz", (const char *)data, size, "f", NULL, &spec, &report);

    conf_report_done(&report);
    if (r < 0)
        return 0;
    first = run(spec);
    second = run(spec);
    check(!first == !second);
    if (first)
        check(memcmp(first->values, second->values,
                     (first->n_workloads + 1) * SIM_METRIC_MAX * sizeof(*first->values)) == 0);
    return 0;
}
