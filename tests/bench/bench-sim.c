/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the simulator costs, and what plans cost in it: runs of one scenario, each with another seed and its
 * first variant.
 *
 *   run    CPU time of a run; the aim is one second for each simulated second
 *   plan   CPU time of plan_compute() in each tick of all runs: mean, p99 and worst
 *
 * Only CPU time of this thread counts, so other load disturbs little. With assertions, plans are checked
 * after each tick, which counts for the run and not for the plan. */

#include "simbench.h"

static unsigned arg_runs = 5;
static bool arg_json = false;

typedef struct Bench {
    SimSpec *spec;
    double *run_sec; /* [arg_runs] */
    double *plan_usec;
    size_t n_plans, plan_capacity;
    int64_t n_events, n_threads;
} Bench;

/* A row of the result is one tick, unless the scenario is so long that several ticks share one. */
static int take_plans(Bench *b, const SimResult *result)
{
    int64_t n_ticks = sim_result_get(result, SIM_METRIC_TICKS, SIZE_MAX);

    if (n_ticks == 0 || result->n_ticks < (size_t)n_ticks) {
        (void)fprintf(stderr,
                      "bench sim: %zu rows for %" PRId64 " ticks: expected a daemon, and one for each tick\n",
                      result->n_ticks, n_ticks);
        return -EINVAL;
    }
    if (!GROW(b->plan_usec, b->plan_capacity, b->n_plans + (size_t)n_ticks))
        return -ENOMEM;
    for (size_t i = 0; i < (size_t)n_ticks; i++)
        b->plan_usec[b->n_plans++] = (double)result->ticks[i].plan_nsec / 1e3;
    return 0;
}

static int run_seed(Bench *b, unsigned seed)
{
    CLEANUP(sim_result_free_p) SimResult *result = NULL;
    uint64_t start = time_thread_cpu_nsec();
    int r = simbench_run(b->spec, 0, seed, &result);

    if (r < 0)
        return r;
    b->run_sec[seed - 1] = (double)(time_thread_cpu_nsec() - start) / 1e9;
    b->n_events += sim_result_get(result, SIM_METRIC_EVENTS, SIZE_MAX);
    return take_plans(b, result);
}

/* A `baseline` of 0 means none. */
static void print_figure(const Bench *b, const char *metric, const char *unit, double value, double baseline,
                         size_t runs)
{
    if (!arg_json) {
        (void)printf("%-16s %14.1f %s  (%zu runs)\n", metric, value, unit, runs);
        return;
    }
    (void)printf("{\"bench\":\"sim\",\"case\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\",\"value\":%.3f,",
                 b->spec->name, metric, unit, value);
    if (baseline > 0)
        (void)printf("\"baseline\":%.3f,\"ratio\":%.4f,", baseline, value / baseline);
    else
        (void)printf("\"baseline\":null,\"ratio\":null,");
    (void)printf("\"runs\":%zu,\"threads\":%" PRId64 ",\"cpus\":%" PRIu32 ",\"nodes\":%" PRIu32 "}\n", runs,
                 b->n_threads, b->spec->topology->n_cpus, b->spec->topology->n_nodes);
}

static void report(Bench *b)
{
    double aim_sec = (double)b->spec->duration_usec / 1e6, sum = 0;

    assert(b->n_plans > 0);
    qsort(b->run_sec, arg_runs, sizeof(*b->run_sec), compare_doubles);
    qsort(b->plan_usec, b->n_plans, sizeof(*b->plan_usec), compare_doubles);
    for (size_t i = 0; i < b->n_plans; i++)
        sum += b->plan_usec[i];
    print_figure(b, "run_sec", "s", b->run_sec[arg_runs / 2], aim_sec, arg_runs);
    print_figure(b, "run_sec_worst", "s", b->run_sec[arg_runs - 1], aim_sec, arg_runs);
    print_figure(b, "events", "", (double)b->n_events / arg_runs, 0, arg_runs);
    print_figure(b, "plan_usec_mean", "us", sum / (double)b->n_plans, 0, b->n_plans);
    print_figure(b, "plan_usec_p99", "us", b->plan_usec[b->n_plans * 99 / 100], 0, b->n_plans);
    print_figure(b, "plan_usec_worst", "us", b->plan_usec[b->n_plans - 1], 0, b->n_plans);
}

static int run(const char *path)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    CLEANUP_FREE double *run_sec = calloc(arg_runs, sizeof(*run_sec));
    Bench b = {.run_sec = run_sec};
    int r = run_sec ? simbench_parse(path, NULL, &spec) : -ENOMEM;

    b.spec = spec;
    for (size_t i = 0; r == 0 && i < spec->n_workloads; i++)
        b.n_threads += (int64_t)spec->workloads[i].n_processes * spec->workloads[i].n_threads;
    for (unsigned seed = 1; r == 0 && seed <= arg_runs; seed++)
        r = run_seed(&b, seed);
    if (r == 0)
        report(&b);
    free(b.plan_usec);
    return r;
}

static bool parse_options(int argc, char **argv)
{
    static const struct option options[] = {
        {"runs", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
        if (c == 'j')
            arg_json = true;
        else if (c == '?' || !number_between(optarg, 1, SIM_SEEDS_MAX, &arg_runs))
            return false;
    return optind + 1 == argc;
}

int main(int argc, char **argv)
{
    if (!parse_options(argc, argv)) {
        (void)fprintf(stderr, "usage: %s [--runs=N] [--json] SCENARIO\n", argv[0]);
        return EXIT_FAILURE;
    }
    return run(argv[optind]) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
