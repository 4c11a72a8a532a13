/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs scenarios from text. */

#include "../conf/conf-test.h"
#include "sim/model/engine.h"
#include "sim/scenario/scenario.h"
#include "sim/sim.h"

#define ENGINE_SEEDS 20U

static inline SimSpec *engine_parse(const char *text)
{
    ConfReport report = {0};
    SimSpec *spec = NULL;
    int r = sim_scenario_parse("t", text, strlen(text), "t", NULL, &spec, &report);

    assert_report(&report, "");
    assert_int_equal(r, 0);
    return spec;
}

static inline SimResult *engine_run(const SimSpec *spec, size_t variant, uint64_t seed)
{
    SimResult *result = NULL;
    CLEANUP_FREE char *error = NULL;

    assert_int_equal(sim_run(spec, variant, seed, NULL, &result, &error), 0);
    assert_null(error);
    return result;
}

/* A metric of the machine. */
static inline int64_t engine_value(const SimResult *result, SimMetric metric)
{
    return sim_result_get(result, metric, SIZE_MAX);
}

/* The engine before its first event. It must not be copied. */
static inline void engine_build(const SimSpec *spec, size_t variant, uint64_t seed, Engine *ret)
{
    CLEANUP_FREE char *error = NULL;

    *ret = (Engine){
        .spec = spec,
        .variant = &spec->variants[variant],
        .constants = &spec->model,
        .topology = spec->topology,
        .kernel = &spec->variants[variant].kernel,
        .seed = seed,
    };
    assert_int_equal(build_engine(ret, &error), 0);
}
