/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs of scenarios for benchmarks. */

#include "../unit/sim/random-machine.h"
#include "base/time.h"
#include "sim/scenario/scenario.h"

#include <inttypes.h>
#include <string.h>

static inline int simbench_run(const SimSpec *spec, size_t variant, uint64_t seed, SimResult **ret)
{
    const SimHooks hooks = {.clock_nsec = time_thread_cpu_nsec};
    CLEANUP_FREE char *error = NULL;
    int r = sim_run(spec, variant, seed, &hooks, ret, &error);

    if (r < 0)
        (void)fprintf(stderr, "%s, seed %" PRIu64 ": %s\n", spec->name, seed, error ? error : strerror(-r));
    return r;
}

/* How much sooner all was done, or where it never is, how much more. */
static inline double simbench_work(const SimResult *with, const SimResult *without)
{
    double a = (double)sim_result_get(with, SIM_METRIC_MAKESPAN_USEC, SIZE_MAX);
    double b = (double)sim_result_get(without, SIM_METRIC_MAKESPAN_USEC, SIZE_MAX);

    if (a > 0 && b > 0)
        return b / a;
    return (double)sim_result_get(with, SIM_METRIC_THROUGHPUT, SIZE_MAX) /
           (double)MAX(sim_result_get(without, SIM_METRIC_THROUGHPUT, SIZE_MAX), 1);
}

/* From its text, or with NULL from its file. */
static inline int simbench_parse(const char *name, const char *text, SimSpec **ret)
{
    CLEANUP(conf_report_done) ConfReport messages = {0};
    int r = text ? sim_scenario_parse("machine", text, strlen(text), name, NULL, ret, &messages)
                 : sim_scenario_load(name, NULL, ret, &messages);

    for (size_t i = 0; i < messages.n_messages; i++) {
        CLEANUP_FREE char *line = conf_message_format(&messages.messages[i]);

        (void)fprintf(stderr, "%s\n", line ? line : strerror(ENOMEM));
    }
    return r;
}
