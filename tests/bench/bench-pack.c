/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What one packing costs: 50, 100 and 200 groups on 4, 8 and 16 nodes, in the states that differ most:
 *
 *   new      no group has a home
 *   shifted  every group had one, then demands and memory changed
 *   settled  the same again, with its result as homes
 *   tight    demand is 105 % of the machine, no group has a home
 *   wide     every group wants to be spread: the most work a step can have
 *
 * Each run is another random problem. Groups differ in size by a factor of ten, have most of their memory on
 * one node, and every eighth needs bandwidth. Only CPU time of this thread counts, and the least of three
 * tries, so other load disturbs little. */

#include "base/time.h"
#include "base/util.h"
#include "number.h"
#include "plan/pack/pack.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define GROUPS_MAX 200U
#define NODES      16U
#define CAPACITY   32000U /* permille, of a node */
#define GIB        (1024ULL * 1024 * 1024)
#define TRIES      3U
#define AIM_USEC   10000.0

static unsigned arg_runs = 101;
static bool arg_json = false;

typedef enum Case {
    CASE_NEW,
    CASE_SHIFTED,
    CASE_SETTLED,
    CASE_TIGHT,
    CASE_WIDE,
    CASE_MAX,
} Case;

static const char *const case_names[CASE_MAX] = {"new", "shifted", "settled", "tight", "wide"};

typedef struct Bench {
    PackNode nodes[NODES];
    uint32_t distances[NODES * NODES];
    PackGroup groups[GROUPS_MAX];
    uint64_t memory[GROUPS_MAX][NODES];
    PackNodes sets[GROUPS_MAX];
    PackProblem problem;
    uint64_t random;
} Bench;

static uint32_t roll(Bench *b, uint32_t below)
{
    b->random ^= b->random >> 12;
    b->random ^= b->random << 25;
    b->random ^= b->random >> 27;
    return (uint32_t)((b->random * 2685821657736338717ULL) >> 33) % MAX(below, 1U);
}

/* Sockets of four nodes; distances are 12 inside, 32 across. */
static void make_machine(Bench *b, uint32_t n_nodes)
{
    for (uint32_t i = 0; i < n_nodes; i++) {
        b->nodes[i] = (PackNode){.capacity_permille = CAPACITY, .free_bytes = 256 * GIB, .key = i};
        for (uint32_t k = 0; k < n_nodes; k++)
            b->distances[i * n_nodes + k] = i == k ? 10 : i / 4 == k / 4 ? 12 : 32;
    }
    b->problem = (PackProblem){.nodes = b->nodes,
                               .distances = b->distances,
                               .n_nodes = n_nodes,
                               .allowed_imbalance_permille = CAPACITY / 8,
                               .groups = b->groups};
}

static void make_loads(Bench *b, uint32_t percent)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < b->problem.n_groups; i++) {
        b->groups[i].demand_permille = 1 + roll(b, 10);
        sum += b->groups[i].demand_permille;
        for (uint32_t k = 0; k < b->problem.n_nodes; k++)
            b->memory[i][k] = roll(b, 4) ? 0 : roll(b, 1000) * GIB / 1000;
        b->memory[i][roll(b, b->problem.n_nodes)] += 4 * GIB;
    }
    for (uint32_t i = 0; i < b->problem.n_groups; i++)
        b->groups[i].demand_permille = (uint32_t)((uint64_t)b->groups[i].demand_permille * CAPACITY *
                                                  b->problem.n_nodes / 100 * percent / sum);
}

static void make_groups(Bench *b, uint32_t n, PackMode mode)
{
    b->problem.n_groups = n;
    for (uint32_t i = 0; i < n; i++)
        b->groups[i] = (PackGroup){.id = i,
                                   .mode = mode,
                                   .private_permille = i % 8 ? 0 : 1000,
                                   .min_gain_permille = 30,
                                   .allowed = (1ULL << b->problem.n_nodes) - 1,
                                   .memory_bytes = b->memory[i]};
}

/* The least of some tries, which differ only by other load on the machine. The result becomes the homes. */
static int pack(Bench *b, double *ret_usec)
{
    double least = 0;

    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t start = time_thread_cpu_nsec();
        int r = pack_solve(&b->problem, b->sets);
        double usec = (double)(time_thread_cpu_nsec() - start) / 1e3;

        if (r < 0)
            return r;
        least = i == 0 ? usec : MIN(least, usec);
    }
    for (uint32_t i = 0; i < b->problem.n_groups; i++)
        b->groups[i].home = b->sets[i];
    *ret_usec = least;
    return 0;
}

static int run_case(Bench *b, Case which, uint32_t n_groups, double *ret_usec)
{
    int r = 0;

    make_groups(b, n_groups, which == CASE_WIDE ? PACK_MODE_SPREAD : PACK_MODE_AUTO);
    make_loads(b, which == CASE_TIGHT ? 105 : 70);
    if (which == CASE_SHIFTED || which == CASE_SETTLED)
        r = pack(b, ret_usec);
    if (r == 0 && which == CASE_SHIFTED)
        make_loads(b, 70);
    return r < 0 ? r : pack(b, ret_usec);
}

static void print_figure(Case which, const Bench *b, const char *quantile, double usec)
{
    (void)printf(
        "{\"bench\":\"pack\",\"case\":\"%s\",\"metric\":\"pack_usec_%s\",\"unit\":\"us\",\"value\":%.1f,"
        "\"baseline\":%.1f,\"ratio\":%.4f,\"runs\":%u,\"groups\":%u,\"nodes\":%u}\n",
        case_names[which], quantile, usec, AIM_USEC, usec / AIM_USEC, arg_runs, b->problem.n_groups,
        b->problem.n_nodes);
}

static int run_size(Bench *b, Case which, uint32_t n_groups)
{
    CLEANUP_FREE double *usec = calloc(arg_runs, sizeof(*usec));
    double p50, p99, worst;

    if (!usec)
        return -ENOMEM;
    for (unsigned i = 0; i < arg_runs; i++) {
        int r = run_case(b, which, n_groups, &usec[i]);

        if (r < 0)
            return r;
    }
    qsort(usec, arg_runs, sizeof(*usec), compare_doubles);
    p50 = usec[arg_runs / 2];
    p99 = usec[(size_t)arg_runs * 99 / 100];
    worst = usec[arg_runs - 1];
    if (!arg_json) {
        (void)printf("%-8s %3u groups %2u nodes  p50 %8.0f  p99 %8.0f  worst %8.0f us\n", case_names[which],
                     n_groups, b->problem.n_nodes, p50, p99, worst);
        return 0;
    }
    print_figure(which, b, "p50", p50);
    print_figure(which, b, "p99", p99);
    print_figure(which, b, "worst", worst);
    return 0;
}

static int run(void)
{
    static const uint32_t n_groups[] = {50, 100, 200}, n_nodes[] = {4, 8, 16};
    static Bench b = {.random = 4711};

    for (int which = 0; which < CASE_MAX; which++)
        for (size_t i = 0; i < ARRAY_SIZE(n_nodes); i++)
            for (size_t k = 0; k < ARRAY_SIZE(n_groups); k++) {
                int r;

                make_machine(&b, n_nodes[i]);
                r = run_size(&b, (Case)which, n_groups[k]);
                if (r < 0)
                    return r;
            }
    return 0;
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
        else if (c == '?' || !number_between(optarg, 1, 100000, &arg_runs))
            return false;
    return optind == argc;
}

int main(int argc, char **argv)
{
    int r;

    if (!parse_options(argc, argv)) {
        (void)fprintf(stderr, "usage: %s [--runs=N] [--json]\n", argv[0]);
        return EXIT_FAILURE;
    }
    r = run();
    if (r < 0)
        (void)fprintf(stderr, "bench pack: %s\n", strerror(-r));
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
