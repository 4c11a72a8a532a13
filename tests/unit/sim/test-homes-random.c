/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes on random machines: under a load that stays the same no group goes back and forth. Without the guards (P7) some do.
 * Every plan is checked while these run: plan_check(). */

#include "engine-test.h"

#include <stdio.h>

#define N_MACHINES   40U
#define SETTLE_SEC   5U
#define DURATION_SEC 65U

/* In a minute: four, after which a group is left alone for PingPongSec=, and one that is taken back. */
#define CHANGES_MAX 5

static const char *pick(Random *random, const char *const *words, uint32_t n)
{
    return words[random_below(random, n)];
}

static void write_machine(FILE *f, Random *random, uint32_t n_nodes, uint32_t n_cpus)
{
    uint32_t far = 20 + random_below(random, 3) * 6, block = random_below(random, 2) ? n_nodes / 2 : n_nodes;

    (void)fprintf(f, "[Machine]\nSynthetic=numa:%u l3:1 core:%u pu:1 distances=", n_nodes, n_cpus);
    for (uint32_t i = 0; i < n_nodes * n_nodes; i++) {
        uint32_t a = i / n_nodes, b = i % n_nodes;

        (void)fprintf(f, "%s%u", i > 0 ? "," : "", a == b ? 10 : a / block == b / block ? 16 : far);
    }
    (void)fprintf(f, "\n[Kernel]\nNumaBalancing=%s\n", random_below(random, 3) ? "no" : "yes");
}

static void write_workload(FILE *f, Random *random, uint32_t index, uint32_t n_processes, uint32_t n_threads)
{
    static const char *const bursts[] = {"", "BurstSec=exponential 20ms\nSleepSec=exponential 10ms\n",
                                         "BurstSec=uniform 200ms 300ms\nSleepSec=uniform 100ms 500ms\n"};
    static const char pairs[] = "Wake=pair\nBurstSec=exponential 2ms\n";
    static const char *const touches[] = {"thread", "process", "interleave"};

    (void)fprintf(f, "[Workload w%u]\nProcesses=%u\nThreads=%u\nPrivateMemory=%uM\nMemoryBound=%u%%\n", index,
                  n_processes, n_threads, 1 + random_below(random, 3) * 8, random_below(random, 70));
    (void)fprintf(f, "FirstTouch=%s\n%s", pick(random, touches, ARRAY_SIZE(touches)),
                  n_threads % 2 || random_below(random, 2) ? pick(random, bursts, ARRAY_SIZE(bursts))
                                                           : pairs);
    if (random_below(random, 2))
        (void)fprintf(f, "SharedMemory=%uM\nSharedAccess=%u%%\n", 1 + random_below(random, 100),
                      random_below(random, 100));
    if (random_below(random, 4) == 0)
        (void)fprintf(f, "Bandwidth=%uG\n", 1 + random_below(random, 12));
}

static void write_policy(FILE *f, Random *random, uint32_t index, bool guarded)
{
    static const char *const modes[] = {"auto", "auto", "compress", "spread", "interleave"};
    static const char *const groups[] = {"process", "workload"};

    (void)fprintf(f,
                  "[Policy p%u Match]\nComm=w%u\n[Policy p%u Workload]\nGroupBy=%s\n"
                  "[Policy p%u Placement]\nMode=%s\n%s",
                  index, index, index, pick(random, groups, ARRAY_SIZE(groups)), index,
                  pick(random, modes, ARRAY_SIZE(modes)),
                  guarded ? "" : "MinGainPermille=0\nMinResidencySec=0\nPingPongSec=0\nSettleSec=0\n");
}

/* Up to twice as many threads as CPUs. */
static char *write_scenario(uint64_t seed, bool guarded)
{
    static const uint32_t nodes[] = {2, 2, 4, 4, 8}, cpus[] = {1, 2, 4, 8};
    Random random = random_split(seed, 0);
    uint32_t n_nodes = nodes[random_below(&random, ARRAY_SIZE(nodes))];
    uint32_t n_cpus = cpus[random_below(&random, ARRAY_SIZE(cpus))], left = n_nodes * n_cpus, n;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    (void)fprintf(f, "[Scenario]\nDurationSec=%us\nSettleSec=%us\n", DURATION_SEC, SETTLE_SEC);
    write_machine(f, &random, n_nodes, n_cpus);
    left = 1 + random_below(&random, 2 * left);
    for (n = 0; n < 6 && left > 0; n++) {
        uint32_t n_processes = 1 + random_below(&random, 4),
                 n_threads = 1 + random_below(&random, 2 * n_cpus);

        write_workload(f, &random, n, n_processes, n_threads);
        left -= MIN(left, n_processes * n_threads);
    }
    for (uint32_t i = 0; i < n; i++)
        if (random_below(&random, 6)) /* others are nobody's to place */
            write_policy(f, &random, i, guarded);
    assert_int_equal(fclose(f), 0);
    return text;
}

static int64_t most_changes(uint64_t seed, bool guarded)
{
    CLEANUP_FREE char *text = write_scenario(seed, guarded);
    CLEANUP(sim_spec_free_p) SimSpec *spec = engine_parse(text);
    CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, seed);
    int64_t most = engine_value(result, SIM_METRIC_HOME_CHANGES_MOST);

    if (guarded && most > CHANGES_MAX)
        fail_msg("seed %u: a group changed its home %d times:\n%s", (unsigned)seed, (int)most, text);
    return most;
}

static void test_ping_pong(void **state)
{
    for (uint64_t seed = 1; seed <= N_MACHINES; seed++)
        (void)most_changes(seed, true);
}

static void test_without_guards(void **state)
{
    int64_t most = 0;

    for (uint64_t seed = 1; seed <= N_MACHINES && most <= CHANGES_MAX; seed++)
        most = most_changes(seed, false);
    assert_true(most > CHANGES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ping_pong),
        cmocka_unit_test(test_without_guards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
