/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What one plan costs, in the states of a World that differ most:
 *
 *   homes      a slow tick in which every process is new
 *   calm       every group has a home and no thread waits
 *   crowded    all threads wait, and no CPU is idle
 *   lend       all threads wait, and half of the CPUs outside the home are idle: the full search, up to the budget of
 *              a tick
 *   refused    the same, but every idle CPU is cooling down: the most searches in vain
 *   leased     all these CPUs are lent, to threads that go on waiting
 *   released   the same, but no policy matches any process any more
 *   walk       no plan: one walk over all threads (world_sum()), for comparison
 *
 * First, this is measured for one size. Then its growth is measured: 1,000 to 100,000 threads on 1,024 CPUs
 * in 16 nodes, once as one group and once with each process a group. `ratio` is the cost, divided by what n
 * log n predicts from the cost of 1,000 threads. `growth` is the p of the best fit cost ~ (n log n)^p over
 * all sizes; up to 1 it is no worse than n log n. `last` is the same between the last two sizes alone, where
 * fixed costs (walks over 1,024 CPUs) weigh least.
 *
 * The World is the same in every run. Only CPU time of this thread counts, so other load disturbs little. */

#include "base/time.h"
#include "number.h"
#include "plan/group.h"
#include "plan/plan.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define THREADS_PER_PROCESS 50U
#define GROWTH_CPUS         1024U
#define GROWTH_NODES        16U
#define GROWTH_RUNS_SHARE   5U /* large Worlds take long: a fifth of the runs */

static unsigned arg_threads = 10000;
static unsigned arg_cpus = 256;
static unsigned arg_runs = 101;
static bool arg_json = false;
static bool arg_growth = true;

typedef enum Case {
    CASE_HOMES,
    CASE_CALM,
    CASE_CROWDED,
    CASE_LEND,
    CASE_REFUSED,
    CASE_LEASED,
    CASE_RELEASED,
    CASE_WALK,
    CASE_MAX,
} Case;

static const char *const case_names[CASE_MAX] = {
    [CASE_HOMES] = "homes",     [CASE_CALM] = "calm",     [CASE_CROWDED] = "crowded",   [CASE_LEND] = "lend",
    [CASE_REFUSED] = "refused", [CASE_LEASED] = "leased", [CASE_RELEASED] = "released", [CASE_WALK] = "walk",
};

static const unsigned growth_threads[] = {1000, 3000, 10000, 30000, 100000};
#define N_SIZES ARRAY_SIZE(growth_threads)

typedef struct Shape {
    unsigned threads, cpus, nodes;
    const char *group_by;
    unsigned runs;
} Shape;

typedef struct Result {
    double usec;
    size_t n_actions, n_refusals;
} Result;

typedef struct Bench {
    Shape shape;
    World *world;
    Policy *policy;
    PolicySet policies;
    PlanLimits limits;
    Plan plan;
} Bench;

static int bench_policy(Bench *b)
{
    char text[512];
    ConfReport report = {0};
    int r;

    (void)snprintf(text, sizeof(text),
                   "[Match]\nComm=*\n[Workload]\nGroupBy=%s\n[Placement]\nMode=fixed\nNodes=0-%u\n"
                   "[Steal]\nNodeLimit=%u\nLeaseSec=1h\n"
                   "[Limits]\nNiceTries=0\nCrossNodeMovesPerSec=100000\nCrossNodeBurst=100000\n",
                   b->shape.group_by, b->shape.nodes / 2 - 1, b->shape.nodes);
    r = policy_parse("bench", text, strlen(text), "bench", NULL, &b->policy, &report);
    conf_report_done(&report);
    if (r < 0)
        return r;
    b->policies = (PolicySet){.policies = &b->policy, .n_policies = 1};
    return group_sync_workloads(b->world, &b->policies);
}

static int bench_tasks(Bench *b)
{
    World *w = b->world;
    CpuMask all = intern_mask(w->pool, w->topology->all_cpus);

    if (!all)
        return -ENOMEM;
    for (unsigned i = 0; i < b->shape.threads; i++) {
        pid_t pid = (pid_t)(1 + i - i % THREADS_PER_PROCESS);
        Task task = {
            .tid = (pid_t)(1 + i),
            .start_ticks = 1,
            .comm = "bench",
            .last_cpu = {(int32_t)(i % (b->shape.cpus / 2))},
            .run_permille = 10,
            .allowed = all,
            .lease = -1,
        };
        int r;

        if (i % THREADS_PER_PROCESS == 0) {
            Process process = {
                .pid = pid, .start_ticks = 1, .comm = intern_string(w->pool, "bench"), .cpuset = all};

            process.cgroup = intern_string(w->pool, "/");
            if (!process.comm || !process.cgroup || group_assign(w, &b->policies, &process, 0) < 0 ||
                world_add_process(w, &process) < 0)
                return -ENOMEM;
        }
        task.process.i = (int32_t)w->n_processes - 1;
        r = world_add_task(w, &task);
        if (r < 0)
            return r;
    }
    return 0;
}

static int bench_make(Bench *b)
{
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP_FREE char *error = NULL;
    char synthetic[64];
    int r;

    (void)snprintf(synthetic, sizeof(synthetic), "numa:%u l3:1 core:%u pu:1", b->shape.nodes,
                   b->shape.cpus / b->shape.nodes);
    r = topology_load(&(TopologyOptions){.synthetic = synthetic}, &topology, &error);
    if (r < 0)
        return r;
    r = world_new(topology, &b->world);
    if (r < 0)
        return r;
    b->world->now_usec = 1000000000;
    b->world->tick = 1000;
    b->world->interval_usec = 100000;
    b->limits = (PlanLimits){.cross_node_moves_per_sec = 100000, .cross_node_burst = 100000};
    r = bench_policy(b);
    return r < 0 ? r : bench_tasks(b);
}

static void bench_done(Bench *b)
{
    plan_done(&b->plan);
    b->world = world_free(b->world);
    policy_free(b->policy);
}

/* The CPUs of the home are busy. Of the rest the first half is as the arguments say, the other half busy. */
static void set_cpus(World *w, bool idle, bool cooling)
{
    uint32_t n = w->topology->cpu_limit;

    for (uint32_t i = 0; i < n; i++) {
        bool is_idle = idle && i >= n / 2 && i < n * 3 / 4;

        w->cpus[i] = (CpuLoad){
            .online = true,
            .usable = true,
            .wait_known = true,
            .busy_permille = is_idle ? 0 : 1000,
            .busy_before_permille = is_idle ? 0 : 1000,
            .idle_since_usec = is_idle ? 1 : 0,
            .cooldown_until_usec = cooling ? UINT64_MAX : 0,
        };
    }
}

static void set_waits(World *w, uint16_t wait)
{
    for (size_t i = 0; i < w->n_tasks; i++) {
        /* Different values, so that there is something to sort. */
        w->tasks[i].wait_permille = wait ? (uint16_t)(wait + (i * 7919) % 400) : 0;
        w->tasks[i].wait_before_permille = w->tasks[i].wait_permille;
    }
    world_sum(w);
}

/* Measures one plan on the World as it is; without policies, a walk over it. */
static int measure(Bench *b, const PolicySet *policies, bool slow, Result *ret)
{
    CLEANUP_FREE double *usec = calloc(b->shape.runs, sizeof(*usec));

    if (!usec)
        return -ENOMEM;
    b->limits.slow_tick = slow;
    for (unsigned i = 0; i < b->shape.runs; i++) {
        uint64_t start = time_thread_cpu_nsec();
        int r = 0;

        if (policies)
            r = plan_compute(b->world, policies, &b->limits, &b->plan);
        else
            world_sum(b->world);
        if (r < 0)
            return r;
        usec[i] = (double)(time_thread_cpu_nsec() - start) / 1e3;
    }
    qsort(usec, b->shape.runs, sizeof(*usec), compare_doubles);
    *ret = (Result){
        .usec = usec[b->shape.runs / 2],
        .n_actions = policies ? b->plan.n_actions : 0,
        .n_refusals = policies ? b->plan.n_refusals : 0,
    };
    return 0;
}

/* Carries out plans, tick after tick and budget by budget, until nothing is left to do. */
static int settle(Bench *b, bool slow)
{
    b->limits.slow_tick = slow;
    for (;;) {
        int r = plan_compute(b->world, &b->policies, &b->limits, &b->plan);

        if (r < 0 || b->plan.n_actions == 0)
            return r;
        r = plan_commit(b->world, &b->policies, &b->limits, &b->plan, NULL);
        if (r < 0)
            return r;
        b->world->tick++;
        b->world->now_usec += b->world->interval_usec;
    }
}

static int run_cases(Bench *b, Result results[CASE_MAX])
{
    PolicySet nobody = {0};
    int r = bench_make(b);

    if (r < 0)
        return r;
    set_cpus(b->world, false, false);
    r = measure(b, &b->policies, true, &results[CASE_HOMES]);
    if (r == 0)
        r = settle(b, true);
    if (r == 0)
        r = measure(b, &b->policies, false, &results[CASE_CALM]);
    if (r == 0) {
        set_waits(b->world, 300);
        r = measure(b, &b->policies, false, &results[CASE_CROWDED]);
    }
    if (r == 0) {
        set_cpus(b->world, true, false);
        r = measure(b, &b->policies, false, &results[CASE_LEND]);
    }
    if (r == 0) {
        set_cpus(b->world, true, true);
        r = measure(b, &b->policies, false, &results[CASE_REFUSED]);
    }
    if (r == 0) {
        set_cpus(b->world, true, false);
        r = settle(b, false);
    }
    if (r == 0)
        r = measure(b, &b->policies, false, &results[CASE_LEASED]);
    if (r == 0)
        r = measure(b, &nobody, false, &results[CASE_RELEASED]);
    return r == 0 ? measure(b, NULL, false, &results[CASE_WALK]) : r;
}

static int run_shape(const Shape *shape, Result results[CASE_MAX])
{
    CLEANUP(bench_done) Bench b = {.shape = *shape};
    int r = run_cases(&b, results);

    return r;
}

/* One size */

static int run_size(void)
{
    Shape shape = {arg_threads, arg_cpus, 2, "workload", arg_runs};
    Result results[CASE_MAX];
    int r = run_shape(&shape, results);

    if (r < 0)
        return r;
    for (int i = 0; i < CASE_MAX; i++)
        if (arg_json)
            (void)printf("{\"bench\":\"plan\",\"case\":\"%s\",\"metric\":\"plan_usec\",\"unit\":\"us\","
                         "\"value\":%.1f,\"baseline\":null,\"ratio\":null,\"runs\":%u,"
                         "\"threads\":%u,\"cpus\":%u,\"nodes\":2,\"group_by\":\"workload\"}\n",
                         case_names[i], results[i].usec, arg_runs, arg_threads, arg_cpus);
        else
            (void)printf("%-10s %10.1f us  %4zu actions  %4zu refusals kept\n", case_names[i],
                         results[i].usec, results[i].n_actions, results[i].n_refusals);
    return 0;
}

/* Growth */

static double n_log_n(unsigned n)
{
    return n * log2(n);
}

/* The slope of log(cost) over log(n log n), by least squares, over the sizes from `first` on. */
static double fit(const Result results[N_SIZES][CASE_MAX], Case which, size_t first)
{
    size_t n_sizes = N_SIZES - first;
    double n = (double)n_sizes, sx = 0, sy = 0, sxx = 0, sxy = 0;

    for (size_t i = first; i < N_SIZES; i++) {
        double x = log(n_log_n(growth_threads[i])), y = log(results[i][which].usec);

        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

/* Cost divided by n log n, relative to that of the smallest World. */
static double ratio(const Result results[N_SIZES][CASE_MAX], Case which, size_t size)
{
    return results[size][which].usec / n_log_n(growth_threads[size]) /
           (results[0][which].usec / n_log_n(growth_threads[0]));
}

static void print_growth_json(const Shape *shape, const Result results[N_SIZES][CASE_MAX], Case which)
{
    double all = fit(results, which, 0), last = fit(results, which, N_SIZES - 2);

    for (size_t i = 0; i < N_SIZES; i++)
        (void)printf("{\"bench\":\"plan\",\"case\":\"%s\",\"metric\":\"plan_usec\",\"unit\":\"us\","
                     "\"value\":%.1f,\"baseline\":%.1f,\"ratio\":%.3f,\"runs\":%u,"
                     "\"threads\":%u,\"cpus\":%u,\"nodes\":%u,\"group_by\":\"%s\"}\n",
                     case_names[which], results[i][which].usec,
                     results[0][which].usec * n_log_n(growth_threads[i]) / n_log_n(growth_threads[0]),
                     ratio(results, which, i), shape->runs, growth_threads[i], shape->cpus, shape->nodes,
                     shape->group_by);
    (void)printf(
        "{\"bench\":\"plan\",\"case\":\"%s\",\"metric\":\"growth\",\"unit\":\"power of n log n\","
        "\"value\":%.3f,\"baseline\":1.0,\"ratio\":%.3f,\"runs\":%u,\"last\":%.3f,\"group_by\":\"%s\","
        "\"no_worse_than_nlogn\":%s}\n",
        case_names[which], all, all, shape->runs, last, shape->group_by, all <= 1.0 ? "true" : "false");
}

static void print_growth(const Shape *shape, const Result results[N_SIZES][CASE_MAX], Case which)
{
    (void)printf("%-9s %-10s", shape->group_by, case_names[which]);
    for (size_t i = 0; i < N_SIZES; i++)
        (void)printf(" %9.0f (%4.2f)", results[i][which].usec, ratio(results, which, i));
    (void)printf("  %5.2f %5.2f\n", fit(results, which, 0), fit(results, which, N_SIZES - 2));
}

static int run_growth(const char *group_by)
{
    Shape shape = {0, GROWTH_CPUS, GROWTH_NODES, group_by, MAX(arg_runs / GROWTH_RUNS_SHARE, 1U)};
    static Result results[N_SIZES][CASE_MAX];

    for (size_t i = 0; i < N_SIZES; i++) {
        int r;

        shape.threads = growth_threads[i];
        r = run_shape(&shape, results[i]);
        if (r < 0)
            return r;
    }
    for (int i = 0; i < CASE_MAX; i++)
        (arg_json ? print_growth_json : print_growth)(&shape, results, (Case)i);
    return 0;
}

static int run(void)
{
    int r = run_size();

    if (r < 0 || !arg_growth)
        return r;
    if (!arg_json) {
        (void)printf("\n%-9s %-10s", "GroupBy=", "us (ratio)");
        for (size_t i = 0; i < N_SIZES; i++)
            (void)printf(" %9u threads", growth_threads[i]);
        (void)printf("\n");
    }
    r = run_growth("workload");
    return r < 0 ? r : run_growth("process");
}

static bool parse_options(int argc, char **argv)
{
    static const struct option options[] = {
        {"threads", required_argument, NULL, 't'}, {"cpus", required_argument, NULL, 'c'},
        {"runs", required_argument, NULL, 'r'},    {"json", no_argument, NULL, 'j'},
        {"no-growth", no_argument, NULL, 'g'},     {NULL, 0, NULL, 0},
    };
    bool ok = true;
    int c;

    while (ok && (c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (c == 'j')
            arg_json = true;
        else if (c == 'g')
            arg_growth = false;
        else
            ok = c == 't'   ? number_between(optarg, 1, 1000000, &arg_threads)
                 : c == 'c' ? number_between(optarg, 4, 4096, &arg_cpus)
                 : c == 'r' ? number_between(optarg, 1, 100000, &arg_runs)
                            : false;
    }
    return ok && optind == argc;
}

int main(int argc, char **argv)
{
    int r;

    if (!parse_options(argc, argv)) {
        (void)fprintf(stderr, "usage: %s [--threads=N] [--cpus=N] [--runs=N] [--no-growth] [--json]\n",
                      argv[0]);
        return EXIT_FAILURE;
    }
    r = run();
    if (r < 0)
        (void)fprintf(stderr, "bench plan: %s\n", strerror(-r));
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
