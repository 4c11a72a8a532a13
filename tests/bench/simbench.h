/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs of scenarios for benchmarks. */

#include "../unit/sim/random-machine.h"
#include "base/time.h"
#include "number.h"
#include "sim/scenario/scenario.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

typedef struct SimbenchOptions {
    unsigned runs;     /* seeds of each scenario */
    unsigned machines; /* random ones in addition */
    bool json;
} SimbenchOptions;

/* Options that are not given stay as they are. Returns false on a bad one, after a message. */
static inline bool simbench_options(int argc, char **argv, SimbenchOptions *ret)
{
    static const struct option options[] = {
        {"runs", required_argument, NULL, 'r'},
        {"machines", required_argument, NULL, 'm'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    bool good = true;
    int c;

    while (good && (c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (c == 'j')
            ret->json = true;
        else
            good = c == 'r'   ? number_between(optarg, 1, SIM_SEEDS_MAX, &ret->runs)
                   : c == 'm' ? number_between(optarg, 0, SIM_SEEDS_MAX, &ret->machines)
                              : false;
    }
    if (!good)
        (void)fprintf(stderr, "usage: %s [--runs=N] [--machines=N] [--json] [SCENARIO..]\n", argv[0]);
    return good;
}

static inline int simbench_run(const SimSpec *spec, size_t variant, uint64_t seed, SimResult **ret)
{
    const SimHooks hooks = {.clock_nsec = time_thread_cpu_nsec};
    CLEANUP_FREE char *error = NULL;
    int r = sim_run(spec, variant, seed, &hooks, ret, &error);

    if (r < 0)
        (void)fprintf(stderr, "%s, seed %" PRIu64 ": %s\n", spec->name, seed, error ? error : strerror(-r));
    return r;
}

/* Work with a daemon relative to work without: by how much sooner all is done or, if it never ends, by the
 * amount done. */
static inline double simbench_work(const SimResult *with, const SimResult *without)
{
    double a = (double)sim_result_get(with, SIM_METRIC_MAKESPAN_USEC, SIZE_MAX);
    double b = (double)sim_result_get(without, SIM_METRIC_MAKESPAN_USEC, SIZE_MAX);

    if (a > 0 && b > 0)
        return b / a;
    return (double)sim_result_get(with, SIM_METRIC_THROUGHPUT, SIZE_MAX) /
           (double)MAX(sim_result_get(without, SIM_METRIC_THROUGHPUT, SIZE_MAX), 1);
}

/* Parses a scenario from `text` or, if that is NULL, from the file `name`. */
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
