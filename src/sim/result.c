/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The results of a run: metrics by name, and the picture. */

#include "sim/sim.h"

const char *const sim_metric_names[] = {
    [SIM_METRIC_OPS] = "ops",
    [SIM_METRIC_THROUGHPUT] = "throughput",
    [SIM_METRIC_MAKESPAN_USEC] = "makespan-usec",
    [SIM_METRIC_RUN] = "run",
    [SIM_METRIC_WAIT] = "wait",
    [SIM_METRIC_BUSY] = "busy",
    [SIM_METRIC_LOCAL] = "local",
    [SIM_METRIC_MOVES] = "moves",
    [SIM_METRIC_MOVES_SMT] = "moves-smt",
    [SIM_METRIC_MOVES_LLC] = "moves-llc",
    [SIM_METRIC_MOVES_NODE] = "moves-node",
    [SIM_METRIC_MOVES_CROSS] = "moves-cross",
    [SIM_METRIC_MOVES_CROSS_LATE] = "moves-cross-late",
    [SIM_METRIC_MOVES_CROSS_WAKE] = "moves-cross-wake",
    [SIM_METRIC_MOVES_CROSS_PULL] = "moves-cross-pull",
    [SIM_METRIC_MOVES_CROSS_DAEMON] = "moves-cross-daemon",
    [SIM_METRIC_NODE_MOST] = "node-most",
    [SIM_METRIC_TOGETHER] = "together",
    [SIM_METRIC_HOMES] = "homes",
    [SIM_METRIC_HOME_CHANGES] = "home-changes",
    [SIM_METRIC_HOME_CHANGES_LATE] = "home-changes-late",
    [SIM_METRIC_HOME_CHANGES_MOST] = "home-changes-most",
    [SIM_METRIC_GROUPS] = "groups",
    [SIM_METRIC_REVERTS] = "reverts",
    [SIM_METRIC_LENDS] = "lends",
    [SIM_METRIC_LENDS_CROSS] = "lends-cross",
    [SIM_METRIC_RECALLS] = "recalls",
    [SIM_METRIC_PUSHES] = "pushes",
    [SIM_METRIC_RELEASES] = "releases",
    [SIM_METRIC_ACTIONS_LATE] = "actions-late",
    [SIM_METRIC_OVERLOADED] = "overloaded",
    [SIM_METRIC_OVERLOADED_MAX] = "overloaded-max",
    [SIM_METRIC_OVERLOADED_MEAN] = "overloaded-mean",
    [SIM_METRIC_TICKS] = "ticks",
    [SIM_METRIC_REFUSALS] = "refusals",
    [SIM_METRIC_VETOES] = "vetoes",
    [SIM_METRIC_PAGES_MOVED] = "pages-moved",
    [SIM_METRIC_SCANS] = "scans",
    [SIM_METRIC_SCAN_WINDOW] = "scan-window",
    [SIM_METRIC_COVERAGE] = "coverage",
    [SIM_METRIC_HINT_FAULTS] = "hint-faults",
    [SIM_METRIC_SKIPS] = "skips",
    [SIM_METRIC_FORKED_MAX] = "forked-max",
    [SIM_METRIC_FORKED_MIN] = "forked-min",
    [SIM_METRIC_EVENTS] = "events",
    [SIM_METRIC_MAX] = NULL,
};

bool sim_metric_is_machine(SimMetric metric)
{
    switch (metric) {
    case SIM_METRIC_BUSY:
    case SIM_METRIC_HOME_CHANGES:
    case SIM_METRIC_HOME_CHANGES_LATE:
    case SIM_METRIC_HOME_CHANGES_MOST:
    case SIM_METRIC_GROUPS:
    case SIM_METRIC_REVERTS:
    case SIM_METRIC_ACTIONS_LATE:
    case SIM_METRIC_OVERLOADED:
    case SIM_METRIC_OVERLOADED_MAX:
    case SIM_METRIC_OVERLOADED_MEAN:
    case SIM_METRIC_TICKS:
    case SIM_METRIC_REFUSALS:
    case SIM_METRIC_VETOES:
    case SIM_METRIC_EVENTS:
        return true;
    default:
        return false;
    }
}

int64_t sim_result_get(const SimResult *result, SimMetric metric, size_t workload)
{
    size_t row = workload == SIZE_MAX ? 0 : workload + 1;

    assert(metric >= 0 && metric < SIM_METRIC_MAX && row <= result->n_workloads);
    return result->values[row * SIM_METRIC_MAX + metric];
}

const uint32_t *sim_result_used(const SimResult *result, size_t tick, uint32_t node)
{
    assert(tick < result->n_ticks && node < result->n_nodes);
    return result->used + (tick * result->n_nodes + node) * result->n_workloads;
}

SimResult *sim_result_free(SimResult *result)
{
    if (!result)
        return NULL;
    for (size_t i = 0; result->workloads && i < result->n_workloads; i++)
        free(result->workloads[i]);
    free(result->workloads);
    free(result->values);
    free(result->ticks);
    free(result->used);
    free(result);
    return NULL;
}
