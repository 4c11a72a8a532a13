/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the homes that are found are worth in the simulator, and what finding them costs.
 *
 *   work      done with homes, divided by that of the same seed in the first variant without a daemon: mean, worst
 *   changes   of homes after the scenario's settle time, per group and minute: mean, and worst group
 *   plan      CPU time of plan_compute() in slow ticks, which search for homes: p50, p99, worst
 *
 * This is measured for each variant with a daemon, and for the same workloads, of each scenario named, with
 * --runs seeds each. It is also measured for --machines random machines, where homes have no reason to be
 * better: memory does not follow, and many of the machines are too full. Only CPU time of this thread counts,
 * so other load disturbs little. */

#include "simbench.h"

#define AIM_USEC 10000.0 /* of a plan */

static SimbenchOptions arg = {.runs = 5, .machines = 100};

typedef struct Case {
    double *work; /* relative to the variant without a daemon */
    size_t n_work, work_capacity;
    double *plan_usec;
    size_t n_plans, plan_capacity;
    double changes_sum, changes_most;
    uint32_t n_groups, n_nodes; /* of the last run */
} Case;

static void case_done(Case *c)
{
    free(c->work);
    free(c->plan_usec);
}

/* A row of the result is one tick, unless the scenario is so long that several ticks share one. */
static int take_plans(const SimSpec *spec, const SimResult *result, Case *c)
{
    size_t step = (size_t)(spec->model.slow_tick_usec / spec->model.fast_tick_usec);
    size_t n = MIN((size_t)sim_result_get(result, SIM_METRIC_TICKS, SIZE_MAX), result->n_ticks);

    for (size_t i = 0; i < n; i += step) {
        if (!GROW(c->plan_usec, c->plan_capacity, c->n_plans + 1))
            return -ENOMEM;
        c->plan_usec[c->n_plans++] = (double)result->ticks[i].plan_nsec / 1e3;
    }
    return 0;
}

static int take(const SimSpec *spec, const SimResult *with, const SimResult *without, Case *c)
{
    double minutes = (double)(with->duration_usec - MIN(spec->settle_usec, with->duration_usec)) / 60e6;
    double groups = (double)MAX(sim_result_get(with, SIM_METRIC_GROUPS, SIZE_MAX), 1);
    double changes = (double)sim_result_get(with, SIM_METRIC_HOME_CHANGES_LATE, SIZE_MAX);
    double most = (double)sim_result_get(with, SIM_METRIC_HOME_CHANGES_MOST, SIZE_MAX);

    if (!GROW(c->work, c->work_capacity, c->n_work + 1))
        return -ENOMEM;
    c->work[c->n_work++] = simbench_work(with, without);
    c->changes_sum += minutes > 0 ? changes / groups / minutes : 0;
    c->changes_most = MAX(c->changes_most, minutes > 0 ? most / minutes : 0);
    c->n_groups = (uint32_t)groups;
    c->n_nodes = spec->topology->n_nodes;
    return take_plans(spec, with, c);
}

/* A `baseline` of 0 means none. */
static void print_figure(const Case *c, const char *name, const char *metric, const char *unit, double value,
                         double baseline)
{
    (void)printf("{\"bench\":\"homes\",\"case\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\",\"value\":%.3f,",
                 name, metric, unit, value);
    if (baseline > 0)
        (void)printf("\"baseline\":%.3f,\"ratio\":%.4f,", baseline, value / baseline);
    else
        (void)printf("\"baseline\":null,\"ratio\":null,");
    (void)printf("\"runs\":%zu,\"groups\":%" PRIu32 ",\"nodes\":%" PRIu32 "}\n", c->n_work, c->n_groups,
                 c->n_nodes);
}

static void report(Case *c, const char *name)
{
    double sum = 0, changes, p50, p99, worst;

    assert(c->n_work > 0 && c->n_plans > 0);
    qsort(c->work, c->n_work, sizeof(*c->work), compare_doubles);
    qsort(c->plan_usec, c->n_plans, sizeof(*c->plan_usec), compare_doubles);
    for (size_t i = 0; i < c->n_work; i++)
        sum += c->work[i];
    changes = c->changes_sum / (double)c->n_work;
    p50 = c->plan_usec[c->n_plans / 2];
    p99 = c->plan_usec[c->n_plans * 99 / 100];
    worst = c->plan_usec[c->n_plans - 1];
    if (!arg.json) {
        (void)printf("%-24s work %6.3f worst %6.3f  changes %5.2f most %4.1f /min  plan p50 %6.0f p99 %6.0f "
                     "worst %6.0f us\n",
                     name, sum / (double)c->n_work, c->work[0], changes, c->changes_most, p50, p99, worst);
        return;
    }
    print_figure(c, name, "work_ratio_mean", "", sum / (double)c->n_work, 1);
    print_figure(c, name, "work_ratio_worst", "", c->work[0], 1);
    print_figure(c, name, "changes_per_group_minute", "", changes, 0);
    print_figure(c, name, "changes_per_minute_most", "", c->changes_most, 0);
    print_figure(c, name, "plan_usec_p50", "us", p50, AIM_USEC);
    print_figure(c, name, "plan_usec_p99", "us", p99, AIM_USEC);
    print_figure(c, name, "plan_usec_worst", "us", worst, AIM_USEC);
}

static int run_case(const SimSpec *spec, size_t base, size_t variant)
{
    CLEANUP(case_done) Case c = {0};
    char name[2 * SIM_NAME_MAX + 2];
    int r = 0;

    for (unsigned seed = 1; r == 0 && seed <= arg.runs; seed++) {
        CLEANUP(sim_result_free_p) SimResult *without = NULL;
        CLEANUP(sim_result_free_p) SimResult *with = NULL;

        r = simbench_run(spec, base, seed, &without);
        if (r == 0)
            r = simbench_run(spec, variant, seed, &with);
        if (r == 0)
            r = take(spec, with, without, &c);
    }
    (void)snprintf(name, sizeof(name), "%s %s", spec->name, spec->variants[variant].name);
    if (r == 0)
        report(&c, name);
    return r;
}

static int run_scenario(const char *path)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    size_t base = 0;
    int r = simbench_parse(path, NULL, &spec);

    if (r < 0)
        return r;
    while (base < spec->n_variants && spec->variants[base].daemon)
        base++;
    if (base == spec->n_variants) {
        (void)fprintf(stderr, "%s: expected a variant with Daemon=no\n", path);
        return -EINVAL;
    }
    for (size_t i = 0; r == 0 && i < spec->n_variants; i++)
        if (spec->variants[i].daemon && !memcmp(spec->variants[i].workloads, spec->variants[base].workloads,
                                                spec->n_workloads * sizeof(bool)))
            r = run_case(spec, base, i);
    return r;
}

static int run_machine(uint64_t seed, Case *c)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    CLEANUP(sim_result_free_p) SimResult *without = NULL;
    CLEANUP(sim_result_free_p) SimResult *with = NULL;
    CLEANUP_FREE char *text = random_machine(seed, true);
    int r = text ? simbench_parse("machine", text, &spec) : -ENOMEM;

    if (r == 0)
        r = simbench_run(spec, RANDOM_MACHINE_NONE, seed, &without);
    if (r == 0)
        r = simbench_run(spec, RANDOM_MACHINE_HOMES, seed, &with);
    return r == 0 ? take(spec, with, without, c) : r;
}

static int run_machines(void)
{
    CLEANUP(case_done) Case c = {0};
    int r = 0;

    for (uint64_t seed = 1; r == 0 && seed <= arg.machines; seed++)
        r = run_machine(seed, &c);
    if (r == 0 && arg.machines > 0)
        report(&c, "random machines");
    return r;
}

int main(int argc, char **argv)
{
    int r = 0;

    if (!simbench_options(argc, argv, &arg))
        return EXIT_FAILURE;
    for (int i = optind; r == 0 && i < argc; i++)
        r = run_scenario(argv[i]);
    if (r == 0)
        r = run_machines();
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
