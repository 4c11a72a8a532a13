/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What one plan costs, for a World of many threads on a machine of two nodes, in the states that differ most:
 *
 *   calm       everybody has a home and nobody waits
 *   crowded    all threads wait, and no CPU is idle
 *   lend       all threads of node 0 wait, and half of node 1 is idle: the full search, up to the budget of a tick
 *   refused    the same, but every idle CPU is cooling down: as many searches in vain as are made
 *   homes      a slow tick in which every process is new
 *
 * There is nothing to compare with: a plan's cost is its own. The World is the same in every run. */

#include "plan/group.h"
#include "plan/plan.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define THREADS_PER_PROCESS 50U

static unsigned arg_threads = 10000;
static unsigned arg_cpus = 256;
static unsigned arg_runs = 101;
static bool arg_json = false;

typedef struct Bench {
    World *world;
    Policy *policy;
    PolicySet policies;
    PlanLimits limits;
    Plan plan;
} Bench;

static double now_usec(void)
{
    struct timespec ts = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int bench_policy(Bench *b)
{
    static const char text[] = "[Match]\nComm=*\n[Workload]\nGroupBy=workload\n"
                               "[Placement]\nMode=fixed\nNodes=0\n[Limits]\nNiceTries=0\n"
                               "CrossNodeMovesPerSec=100000\nCrossNodeBurst=100000\n";
    ConfReport report = {0};
    int r;

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
    for (unsigned i = 0; i < arg_threads; i++) {
        pid_t pid = (pid_t)(1 + i - i % THREADS_PER_PROCESS);
        Task task = {
            .tid = (pid_t)(1 + i),
            .start_ticks = 1,
            .comm = "bench",
            .last_cpu = {(int32_t)(i % (arg_cpus / 2))},
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

    (void)snprintf(synthetic, sizeof(synthetic), "numa:2 l3:1 core:%u pu:1", arg_cpus / 2);
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

/* Node 0 busy; of node 1 the first half as said, the rest busy. */
static void set_cpus(World *w, bool idle, bool cooling)
{
    for (uint32_t i = 0; i < w->topology->cpu_limit; i++) {
        bool is_idle = idle && i >= arg_cpus / 2 && i < arg_cpus * 3 / 4;

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
        /* Different, so that there is something to sort. */
        w->tasks[i].wait_permille = wait ? (uint16_t)(wait + (i * 7919) % 400) : 0;
        w->tasks[i].wait_before_permille = w->tasks[i].wait_permille;
    }
    world_sum(w);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static int run_case(Bench *b, const char *name, bool slow)
{
    CLEANUP_FREE double *usec = calloc(arg_runs, sizeof(*usec));
    double median;

    if (!usec)
        return -ENOMEM;
    b->limits.slow_tick = slow;
    for (unsigned i = 0; i < arg_runs; i++) {
        double start = now_usec();
        int r = plan_compute(b->world, &b->policies, &b->limits, &b->plan);

        if (r < 0)
            return r;
        usec[i] = now_usec() - start;
    }
    qsort(usec, arg_runs, sizeof(*usec), compare_doubles);
    median = usec[arg_runs / 2];
    if (arg_json)
        (void)printf(
            "{\"bench\":\"plan\",\"case\":\"%s\",\"metric\":\"plan_usec\",\"unit\":\"us\",\"value\":%.1f,"
            "\"baseline\":null,\"ratio\":null,\"runs\":%u}\n",
            name, median, arg_runs);
    else
        (void)printf("%-10s %10.1f us  %4zu actions  %4zu refusals kept\n", name, median, b->plan.n_actions,
                     b->plan.n_refusals);
    return 0;
}

static int run(Bench *b)
{
    int r = bench_make(b);

    if (r < 0)
        return r;
    set_cpus(b->world, false, false);
    r = run_case(b, "homes", true);

    /* Confine everybody, budget by budget. */
    while (r == 0 && b->plan.n_actions > 0) {
        r = plan_commit(b->world, &b->policies, &b->limits, &b->plan, NULL);
        if (r == 0)
            r = plan_compute(b->world, &b->policies, &b->limits, &b->plan);
    }
    b->world->groups[0].last_home_usec = 0;
    if (r == 0)
        r = run_case(b, "calm", false);
    if (r == 0) {
        set_waits(b->world, 300);
        r = run_case(b, "crowded", false);
    }
    if (r == 0) {
        set_cpus(b->world, true, false);
        r = run_case(b, "lend", false);
    }
    if (r == 0) {
        set_cpus(b->world, true, true);
        r = run_case(b, "refused", false);
    }
    return r;
}

static bool parse_count(const char *text, unsigned least, unsigned most, unsigned *ret)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);

    if (*end || end == text || v < least || v > most)
        return false;
    *ret = (unsigned)v;
    return true;
}

static bool parse_options(int argc, char **argv)
{
    static const struct option options[] = {
        {"threads", required_argument, NULL, 't'},
        {"cpus", required_argument, NULL, 'c'},
        {"runs", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    bool ok = true;
    int c;

    while (ok && (c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (c == 'j')
            arg_json = true;
        else
            ok = c == 't'   ? parse_count(optarg, 1, 1000000, &arg_threads)
                 : c == 'c' ? parse_count(optarg, 4, 4096, &arg_cpus)
                 : c == 'r' ? parse_count(optarg, 1, 100000, &arg_runs)
                            : false;
    }
    return ok && optind == argc;
}

int main(int argc, char **argv)
{
    Bench b = {0};
    int r;

    if (!parse_options(argc, argv)) {
        (void)fprintf(stderr, "usage: %s [--threads=N] [--cpus=N] [--runs=N] [--json]\n", argv[0]);
        return EXIT_FAILURE;
    }
    r = run(&b);
    bench_done(&b);
    if (r < 0)
        (void)fprintf(stderr, "bench plan: %s\n", strerror(-r));
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
