/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the daemon costs where it is wrong: random machines with realistic work (harm-machine.h). Each is run
 * by the kernel with and without its balancing, and by the daemon: with all keys at their defaults, beside
 * kernel balancing, and with groups by process and by cgroup. Work that depends on chance (pauses, jobs)
 * differs by ten percent between seeds, so each machine is run with several seeds and sums are compared.
 *
 *   work       done, divided by the work of the better of the two kernels: mean, 5th percentile, worst
 *   below      share of the machines with less than 0.98
 *   balancing  the kernel with its balancing, the only reference for the daemon beside it
 *   added      beside, divided by balancing: what the daemon adds where the kernel's balancing stays on
 *   ideal      the better kernel if all memory were as near as a node's own, at the same bandwidth: about what
 *              placement can gain, except by spreading memory over controllers
 *   again      the better kernel with other seeds: the effect of chance. It is larger than in the rows above,
 *              whose divisor has the same seeds, so that the same threads work and pause for as long
 *
 * by kind of work and for all. For work that ends, its speed is compared instead of its amount: work by time
 * runnable. The worst machines are listed, and saved as scenarios with --save. With --any, machines and
 * programs are drawn without kinds (harm-any.h). With --misses=N programs have N cache misses outstanding at
 * once (MissOverlap=, default 1); 0: the processor does not count misses. With --firmware=PERCENT the
 * firmware reports that share of each node's bandwidth; by default it reports nothing. */

#include "harm-any.h"
#include "simbench.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BELOW        0.98
#define WORST_LISTED 10U
/* Step from one seed of a machine to the next. No other machine has these seeds. */
#define SEED_STEP 1000000007U

/* These follow the variants of the scenario. */
#define AGAIN HARM_VARIANTS
#define IDEAL (HARM_VARIANTS + 1)
#define ADDED (HARM_VARIANTS + 2)
#define ROWS  (HARM_VARIANTS + 3)

typedef struct Harm {
    uint64_t seed;
    double of[ROWS]; /* work divided by that of the better kernel, except in the first and the last row */
} Harm;

static unsigned arg_machines = 1000, arg_first = 1, arg_seeds = 5, arg_jobs, arg_misses = 1, arg_firmware;
static const char *arg_save;
static bool arg_json, arg_any;

static const char *const variant_names[] = {
    [HARM_BALANCING] = "balancing",
    [HARM_AUTO] = "auto",
    [HARM_AUTO_BESIDE] = "beside",
    [HARM_PROCESS] = "process",
    [HARM_CGROUP] = "cgroup",
    [AGAIN] = "again",
    [IDEAL] = "ideal",
    [ADDED] = "added",
};

static const char *kind_of(uint64_t seed)
{
    return arg_any ? "any" : harm_names[harm_kind(seed)];
}

static char *scenario_of(uint64_t seed, bool near)
{
    return harm_scenario(seed, near, kind_of(seed), arg_any ? harm_any : harm_kinds);
}

static double get(const SimResult *result, SimMetric metric, size_t workload)
{
    return (double)sim_result_get(result, metric, workload);
}

/* What a workload did, over all seeds of a variant. */
typedef struct Done {
    double work, time; /* runnable */
} Done;

/* The measure of a workload: its work, or its speed if its work ends. */
static double quality(const SimWorkload *workload, Done done)
{
    return workload->work_usec > 0 ? done.work / MAX(done.time, 1) : done.work;
}

/* Work done, relative to that of `base`. */
static double work(const SimSpec *spec, const Done *done, const Done *base)
{
    double sum = 0, all = 0;

    for (size_t i = 0; i < spec->n_workloads; i++) {
        double before = quality(&spec->workloads[i], base[i]);

        if (before <= 0)
            continue;
        sum += base[i].work * quality(&spec->workloads[i], done[i]) / before;
        all += base[i].work;
    }
    return all > 0 ? sum / all : 1;
}

/* Runs arg_seeds seeds, beginning with number `first`. */
static int run_seeds(const SimSpec *spec, size_t variant, uint64_t seed, unsigned first, Done *done)
{
    int r = 0;

    for (unsigned i = first; r == 0 && i < first + arg_seeds; i++) {
        SimResult *result = NULL;

        r = simbench_run(spec, variant, seed + (uint64_t)i * SEED_STEP, &result);
        for (size_t w = 0; r == 0 && w < spec->n_workloads; w++) {
            done[w].work += get(result, SIM_METRIC_THROUGHPUT, w);
            done[w].time += get(result, SIM_METRIC_RUN, w) + get(result, SIM_METRIC_WAIT, w);
        }
        sim_result_free(result);
    }
    return r;
}

/* The better of the two kernels when all memory is near. */
static int measure_ideal(uint64_t seed, const Done *base, Harm *ret)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    CLEANUP_FREE char *text = scenario_of(seed, true);
    CLEANUP_FREE Done *done = NULL;
    int r = text ? simbench_parse("machine", text, &spec) : -ENOMEM;

    for (size_t i = 0; r == 0 && i <= HARM_BALANCING; i++) {
        free(done);
        done = calloc(spec->n_workloads + 1, sizeof(*done));
        r = done ? run_seeds(spec, i, seed, 0, done) : -ENOMEM;
        if (r == 0)
            ret->of[IDEAL] = MAX(ret->of[IDEAL], work(spec, done, base));
    }
    return r;
}

static void set_misses(SimSpec *spec)
{
    spec->model.counters = arg_misses > 0;
    for (size_t i = 0; i < spec->n_workloads; i++)
        spec->workloads[i].miss_overlap = MAX(arg_misses, 1U);
}

static void set_firmware(SimSpec *spec)
{
    for (uint32_t i = 0; i < spec->topology->n_nodes; i++)
        spec->topology->nodes[i].bandwidth_mb =
            (uint32_t)(spec->model.node_bandwidth / 100000000 * arg_firmware);
}

static int measure(uint64_t seed, Harm *ret)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    CLEANUP_FREE char *text = scenario_of(seed, false);
    CLEANUP_FREE Done *done = NULL;
    int r = text ? simbench_parse("machine", text, &spec) : -ENOMEM;
    double better;

    if (r < 0)
        return r;
    set_misses(spec);
    set_firmware(spec);
    done = calloc(ROWS * (spec->n_workloads + 1), sizeof(*done));
    if (!done)
        return -ENOMEM;
    ret->seed = seed;
    for (size_t i = 0; r == 0 && i < HARM_VARIANTS; i++) {
        r = run_seeds(spec, i, seed, 0, done + i * spec->n_workloads);
        ret->of[i] = work(spec, done + i * spec->n_workloads, done);
    }
    if (r == 0)
        r = run_seeds(spec, ret->of[HARM_BALANCING] > ret->of[HARM_KERNEL] ? HARM_BALANCING : HARM_KERNEL,
                      seed, arg_seeds, done + AGAIN * spec->n_workloads);
    ret->of[AGAIN] = work(spec, done + AGAIN * spec->n_workloads, done);
    if (r == 0)
        r = measure_ideal(seed, done, ret);
    better = MAX(ret->of[HARM_KERNEL], ret->of[HARM_BALANCING]);
    for (size_t i = HARM_BALANCING; i < ADDED; i++)
        ret->of[i] /= better;
    ret->of[ADDED] = ret->of[HARM_AUTO_BESIDE] / ret->of[HARM_BALANCING];
    return r;
}

/* Measures every arg_jobs-th machine. */
static int measure_part(Harm *all, unsigned first)
{
    int r = 0;

    for (size_t i = first; r == 0 && i < arg_machines; i += arg_jobs)
        r = measure(arg_first + i, &all[i]);
    return r;
}

/* Measures in arg_jobs processes, by default one for each CPU, because a run has one thread. */
static int measure_all(Harm *all)
{
    int r = 0, status;

    for (unsigned i = 0; i < arg_jobs; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(measure_part(all, i) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
        if (pid < 0)
            r = -errno;
    }
    while (wait(&status) > 0)
        if (status != 0)
            r = -EIO;
    return r;
}

static int compare_harm(const void *a, const void *b)
{
    const Harm *x = a, *y = b;

    return compare_doubles(&x->of[HARM_AUTO], &y->of[HARM_AUTO]);
}

static void print(const char *name, HarmVariant variant, const char *metric, double value, size_t n)
{
    (void)printf(
        "{\"bench\":\"harm\",\"case\":\"%s %s\",\"metric\":\"%s\",\"unit\":\"\",\"value\":%.4f,\"baseline\":null,"
        "\"ratio\":null,\"runs\":%zu}\n",
        variant_names[variant], name, metric, value, n);
}

/* Reports on the machines of a kind, or on all with HARM_MAX. */
static int report(const Harm *all, size_t n_all, HarmKind kind, HarmVariant variant)
{
    const char *name = kind < HARM_MAX ? harm_names[kind] : "all";
    CLEANUP_FREE double *of = calloc(n_all + 1, sizeof(*of));
    double sum = 0, n_below = 0;
    size_t n = 0;

    if (!of)
        return -ENOMEM;
    for (size_t i = 0; i < n_all; i++)
        if (kind == HARM_MAX || harm_kind(all[i].seed) == kind)
            of[n++] = all[i].of[variant];
    if (n == 0)
        return 0;
    qsort(of, n, sizeof(*of), compare_doubles);
    for (size_t i = 0; i < n; i++) {
        sum += of[i];
        n_below += of[i] < BELOW;
    }
    if (!arg_json) {
        (void)printf(
            "%-8s %-17s %5zu machines: mean %.3f, 5th percentile %.3f, worst %.3f, %2.0f %% below %.2f\n",
            variant_names[variant], name, n, sum / (double)n, of[n / 20], of[0], 100 * n_below / (double)n,
            BELOW);
        return 0;
    }
    print(name, variant, "work_mean", sum / (double)n, n);
    print(name, variant, "work_p5", of[n / 20], n);
    print(name, variant, "work_worst", of[0], n);
    print(name, variant, "below", n_below / (double)n, n);
    return 0;
}

/* Writes the scenario with what --misses and --firmware have set for it. */
static void put_scenario(FILE *f, char *text, uint64_t node_bandwidth)
{
    char *rest = NULL;

    for (const char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        (void)fprintf(f, "%s\n", line);
        if (!strcmp(line, "[Machine]") && arg_misses == 0)
            (void)fputs("Counters=no\n", f);
        if (!strcmp(line, "[Machine]") && arg_firmware > 0)
            (void)fprintf(f, "FirmwareBandwidth=%" PRIu64 "\n", node_bandwidth / 100 * arg_firmware);
        if (has_prefix(line, "[Workload ") && arg_misses > 1)
            (void)fprintf(f, "MissOverlap=%u\n", arg_misses);
    }
}

static int save(uint64_t seed)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    CLEANUP_FREE char *text = scenario_of(seed, false);
    int r = text ? simbench_parse("machine", text, &spec) : -ENOMEM;
    char path[4096];
    FILE *f;

    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "%s/harm-%" PRIu64 ".scenario", arg_save, seed);
    f = fopen(path, "we");
    if (f)
        put_scenario(f, text, spec->model.node_bandwidth);
    if (!f || ferror(f) || fclose(f) != 0) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -errno;
    }
    return 0;
}

/* Lists the `n` first machines of `all` with the least work. Sorts them. */
static int list_worst(Harm *all, size_t n)
{
    int r = 0;

    qsort(all, n, sizeof(*all), compare_harm);
    for (size_t i = 0; r == 0 && i < MIN(n, WORST_LISTED); i++) {
        const Harm *harm = &all[i];

        if (!arg_json)
            (void)printf("machine %" PRIu64 ", %s: auto %.3f, beside %.3f, process %.3f, cgroup %.3f\n",
                         harm->seed, kind_of(harm->seed), harm->of[HARM_AUTO], harm->of[HARM_AUTO_BESIDE],
                         harm->of[HARM_PROCESS], harm->of[HARM_CGROUP]);
        if (arg_save)
            r = save(harm->seed);
    }
    return r;
}

static bool parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"machines", required_argument, NULL, 'm'}, {"first", required_argument, NULL, 'f'},
        {"seeds", required_argument, NULL, 'r'},    {"jobs", required_argument, NULL, 'p'},
        {"save", required_argument, NULL, 's'},     {"any", no_argument, NULL, 'a'},
        {"misses", required_argument, NULL, 'n'},   {"firmware", required_argument, NULL, 'w'},
        {"json", no_argument, NULL, 'j'},           {NULL, 0, NULL, 0},
    };
    bool good = true;
    int c;

    while (good && (c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (c == 'j')
            arg_json = true;
        else if (c == 'a')
            arg_any = true;
        else if (c == 's')
            arg_save = optarg;
        else
            good = c == 'm'   ? number_between(optarg, 1, 100000, &arg_machines)
                   : c == 'f' ? number_between(optarg, 0, 1000000000, &arg_first)
                   : c == 'r' ? number_between(optarg, 1, 1000, &arg_seeds)
                   : c == 'p' ? number_between(optarg, 1, 1024, &arg_jobs)
                   : c == 'n' ? number_between(optarg, 0, 100, &arg_misses)
                   : c == 'w' ? number_between(optarg, 0, 1000, &arg_firmware)
                              : false;
    }
    if (!good || optind < argc)
        (void)fprintf(stderr,
                      "usage: %s [--any] [--machines=N] [--first=NUMBER] [--seeds=N] [--jobs=N] [--misses=N] "
                      "[--firmware=PERCENT] [--save=DIRECTORY] [--json]\n",
                      argv[0]);
    return good && optind == argc;
}

int main(int argc, char **argv)
{
    Harm *all;
    int r;

    if (!parse(argc, argv))
        return EXIT_FAILURE;
    if (arg_save && access(arg_save, W_OK | X_OK) < 0) {
        (void)fprintf(stderr, "%s: %s\n", arg_save, strerror(errno));
        return EXIT_FAILURE;
    }
    if (arg_jobs == 0)
        arg_jobs = (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    all = mmap(NULL, arg_machines * sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return EXIT_FAILURE;
    r = measure_all(all);
    for (size_t variant = HARM_BALANCING; r == 0 && variant < ROWS; variant++)
        for (int kind = arg_any ? HARM_MAX : 0; r == 0 && kind <= HARM_MAX; kind++)
            r = report(all, arg_machines, kind, variant);
    if (r == 0)
        r = list_worst(all, arg_machines);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
