/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Time, speed and bounds of the model. */

#include "engine-test.h"

static const char mixed[] =
    "[Scenario]\nDurationSec=1s\n[Machine]\nSynthetic=pack:2 [numa] l3:1 core:4 pu:2\n"
    "[Kernel]\nNumaBalancing=yes\n"
    "[Workload spin]\nThreads=6\n"
    "[Workload burst]\nThreads=10\nBurstSec=exponential 5ms\nSleepSec=uniform 1ms 9ms\n"
    "PrivateMemory=64M\nMemoryBound=50%\nBandwidth=1G\n"
    "[Workload talk]\nProcesses=3\nThreads=4\nWake=group\nBurstSec=exponential 50us\n"
    "[Workload pair]\nThreads=6\nWake=pair\nBurstSec=exponential 50us\nWorkSec=50ms\n"
    "[Policy p Match]\nComm=spin\nComm=burst\n[Policy p Workload]\nMinAgeSec=0\n"
    "[Policy p Placement]\nMode=fixed\nNodes=0\n[Policy p Limits]\nNiceTries=0\n";

/* The same seed gives the same numbers, another seed gives others. */
static void test_repeatable(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = engine_parse(mixed);
    CLEANUP(sim_result_free_p) SimResult *a = engine_run(spec, 0, 5);
    CLEANUP(sim_result_free_p) SimResult *b = engine_run(spec, 0, 5);
    CLEANUP(sim_result_free_p) SimResult *c = engine_run(spec, 0, 6);
    size_t n = (a->n_workloads + 1) * SIM_METRIC_MAX * sizeof(*a->values);

    assert_memory_equal(a->values, b->values, n);
    assert_int_equal(a->n_ticks, b->n_ticks);
    assert_memory_equal(a->ticks, b->ticks, a->n_ticks * sizeof(*a->ticks));
    assert_memory_equal(a->used, b->used, a->n_ticks * a->n_nodes * a->n_workloads * sizeof(*a->used));
    assert_memory_not_equal(a->values, c->values, n);
}

/* The sums of the parts. */
static void test_sums(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = engine_parse(mixed);

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, seed);
        int64_t run = 0, moves = 0, by_level, cross, by_cause;
        uint64_t used = 0;

        for (size_t w = 0; w < result->n_workloads; w++) {
            run += sim_result_get(result, SIM_METRIC_RUN, w);
            moves += sim_result_get(result, SIM_METRIC_MOVES, w);
        }
        for (size_t t = 0; t < result->n_ticks; t++)
            for (uint32_t node = 0; node < result->n_nodes; node++)
                for (size_t w = 0; w < result->n_workloads; w++)
                    used += sim_result_used(result, t, node)[w];
        assert_in_range(engine_value(result, SIM_METRIC_RUN), run, run + 4);
        assert_in_range(engine_value(result, SIM_METRIC_RUN) * 10, used, used + 80);
        assert_in_range(engine_value(result, SIM_METRIC_BUSY), run / 16 - 1, run / 16 + 1);
        assert_int_equal(engine_value(result, SIM_METRIC_MOVES), moves);
        cross = engine_value(result, SIM_METRIC_MOVES_CROSS);
        by_level = engine_value(result, SIM_METRIC_MOVES_SMT) + engine_value(result, SIM_METRIC_MOVES_LLC) +
                   engine_value(result, SIM_METRIC_MOVES_NODE) + cross;
        by_cause = engine_value(result, SIM_METRIC_MOVES_CROSS_WAKE) +
                   engine_value(result, SIM_METRIC_MOVES_CROSS_PULL) +
                   engine_value(result, SIM_METRIC_MOVES_CROSS_DAEMON);
        assert_int_equal(by_level, moves);
        assert_int_equal(by_cause, cross);
        /* The pairs have done 50 ms each: the work of three senders, and what their receivers did. */
        assert_true(sim_result_get(result, SIM_METRIC_MAKESPAN_USEC, 3) > 100000);
        assert_int_equal(sim_result_get(result, SIM_METRIC_MAKESPAN_USEC, 0), 0);
    }
}

static int64_t value_of(const char *text, SimMetric metric, size_t workload)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = engine_parse(text);
    CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, 1);

    return sim_result_get(result, metric, workload);
}

/* Three spinners on one CPU get a third each, within a slice. */
static void test_fair(void **state)
{
    static const char text[] = "[Scenario]\nDurationSec=3s\n[Machine]\nSynthetic=numa:1 l3:1 core:1 pu:1\n"
                               "[Workload a]\n[Workload b]\n[Workload c]\n";

    for (size_t w = 0; w < 3; w++)
        assert_in_range(value_of(text, SIM_METRIC_RUN, w), 332, 335);
}

/* A thread that sleeps three quarters of the time gets all it wants beside one that never sleeps. */
static void test_sleeper(void **state)
{
    static const char text[] = "[Scenario]\nDurationSec=10s\n[Machine]\nSynthetic=numa:1 l3:1 core:1 pu:1\n"
                               "[Workload spin]\n[Workload nap]\nBurstSec=1ms\nSleepSec=3ms\n";

    assert_in_range(value_of(text, SIM_METRIC_OPS, 1), 1400, 2500);
    assert_in_range(value_of(text, SIM_METRIC_RUN, SIZE_MAX), 999, 1000);
}

/* How long a thread works and pauses depends on the thread only, not on others. */
static void test_own_chance(void **state)
{
#define ALONE                                                                      \
    "[Scenario]\nDurationSec=1min\n[Machine]\nSynthetic=numa:1 l3:1 core:2 pu:1\n" \
    "[Workload a]\nAffinity=0\nBurstSec=exponential 20ms\nSleepSec=uniform 1ms 99ms\n"
    static const char beside[] = ALONE "[Workload b]\nAffinity=1\nBurstSec=exponential 3ms\nSleepSec=5ms\n";

    assert_true(value_of(ALONE, SIM_METRIC_OPS, 0) > 0);
    assert_int_equal(value_of(ALONE, SIM_METRIC_OPS, 0), value_of(beside, SIM_METRIC_OPS, 0));
    assert_int_equal(value_of(ALONE, SIM_METRIC_RUN, 0), value_of(beside, SIM_METRIC_RUN, 0));
}

/* Two siblings of one core do 61 % each. */
static void test_smt(void **state)
{
    static const char text[] = "[Scenario]\nDurationSec=1s\n[Machine]\nSynthetic=numa:1 l3:1 core:1 pu:2\n"
                               "[Workload a]\n[Workload b]\n";

    assert_in_range(value_of(text, SIM_METRIC_THROUGHPUT, 0), 608, 610);
    assert_in_range(value_of(text, SIM_METRIC_THROUGHPUT, SIZE_MAX), 1217, 1220);
}

/* Half the time waiting for memory, all of it at distance 20: 0.5 + 0.5 * 135/80. */
static void test_remote(void **state)
{
    static const char text[] =
        "[Scenario]\nDurationSec=1min\n[Machine]\nSynthetic=pack:2 [numa] l3:1 core:1 pu:1 "
        "distances=10,20,20,10\n[Workload w]\nCPUs=0-1\nStartNodes=0\nWorkSec=10s\n"
        "PrivateMemory=1G\nMemoryBound=50%\nDisplaced=100%\n";

    assert_in_range(value_of(text, SIM_METRIC_MAKESPAN_USEC, SIZE_MAX), 13437000, 13438500);
    assert_int_equal(value_of(text, SIM_METRIC_LOCAL, SIZE_MAX), 0);
}

/* A node that 8 threads saturate: 16 of them, split as given, take 96, 120 and 192 tenths of a second. */
static int64_t split_makespan(unsigned a, unsigned b)
{
    char text[512], second[192] = "";

    if (b > 0)
        (void)snprintf(
            second, sizeof(second),
            "[Workload b]\nThreads=%u\nNodes=1\nWorkSec=9600ms\nPrivateMemory=64M\nMemoryBound=100%%\n"
            "Bandwidth=1000000000\n",
            b);
    (void)snprintf(text, sizeof(text),
                   "[Scenario]\nDurationSec=1min\n[Machine]\nPreset=xeon-2x40\nNodeBandwidth=8000000000\n"
                   "[Workload a]\nThreads=%u\nNodes=0\nWorkSec=9600ms\nPrivateMemory=64M\nMemoryBound=100%%\n"
                   "Bandwidth=1000000000\n%s",
                   a, second);
    return value_of(text, SIM_METRIC_MAKESPAN_USEC, SIZE_MAX);
}

static void test_bandwidth(void **state)
{
    assert_in_range(split_makespan(8, 8), 9600000, 9650000);
    assert_in_range(split_makespan(10, 6), 11950000, 12050000);
    assert_in_range(split_makespan(16, 0), 19100000, 19300000);
}

/* A thread that wants twice its node's bandwidth runs at half speed, even when for half of the time another
 * thread runs that wants none: bandwidth that was not used then is not available later. */
static void test_bandwidth_in_turns(void **state)
{
    static const char text[] =
        "[Scenario]\nDurationSec=10s\n[Machine]\nSynthetic=numa:1 l3:1 core:1 pu:1\nNodeBandwidth=1000000000\n"
        "[Workload a]\nPrivateMemory=64M\nMemoryBound=100%\nBandwidth=2000000000\n[Workload b]\n";

    assert_in_range(value_of(text, SIM_METRIC_RUN, 0), 495, 505);
    assert_in_range(value_of(text, SIM_METRIC_THROUGHPUT, 0), 245, 255);
}

/* A pair passes one message back and forth: 10 us each way, and a switch at each wake-up. */
static void test_pair(void **state)
{
    static const char text[] = "[Scenario]\nDurationSec=1s\n[Machine]\nSynthetic=numa:1 l3:1 core:2 pu:1\n"
                               "[Workload w]\nThreads=2\nWake=pair\nBurstSec=10us\n";

    assert_in_range(value_of(text, SIM_METRIC_OPS, SIZE_MAX), 1000000 / 12, 1000000 / 10);
}

/* Senders have an end, and so have receivers, whenever they are created. */
static void test_circles_end(void **state)
{
    static const char *const more[] = {"Wake=group\nThreads=8\n", "Wake=group\nThreads=6\nForkSec=3ms\n",
                                       "Wake=pair\nThreads=6\n", "Wake=pair\nThreads=6\nForkSec=3ms\n",
                                       "Wake=group\nThreads=6\nAsleepSec=2ms\n"};

    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        char text[256];
        int64_t end;

        (void)snprintf(text, sizeof(text),
                       "[Scenario]\nDurationSec=1s\n[Machine]\nSynthetic=pack:2 [numa] l3:1 core:2 pu:1\n"
                       "[Workload w]\nBurstSec=exponential 20us\nWorkSec=2ms\n%s",
                       more[i]);
        end = value_of(text, SIM_METRIC_MAKESPAN_USEC, SIZE_MAX);
        assert_in_range(end, 2000, 30000);
    }
}

static bool stop_at_third(void *userdata, uint64_t done_usec, uint64_t total_usec)
{
    unsigned *n = userdata;

    assert_int_equal(total_usec, 1000000);
    return ++*n < 3;
}

static void test_bounds(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = engine_parse(mixed);
    unsigned n = 0;
    SimHooks hooks = {.events_max = 1000};
    SimResult *result = NULL;
    char *error = NULL;

    assert_int_equal(sim_run(spec, 0, 1, &hooks, &result, &error), -EOVERFLOW);
    assert_string_equal(error, "more events than a run may have: 1000");
    free(error);
    hooks = (SimHooks){.userdata = &n, .progress = stop_at_third};
    assert_int_equal(sim_run(spec, 0, 1, &hooks, &result, &error), -ECANCELED);
    assert_null(error);
    assert_int_equal(n, 3);
    assert_null(result);
}

/* Memory of the model itself has a limit, too. */
static void test_too_large(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec = engine_parse("[Machine]\nSynthetic=pack:400 [numa] l3:1 core:1 pu:1\n"
                                 "[Workload w]\nThreads=200000\nPrivateMemory=4K\n");
    SimResult *result = NULL;
    CLEANUP_FREE char *error = NULL;

    assert_int_equal(sim_run(spec, 0, 1, NULL, &result, &error), -EINVAL);
    assert_string_equal(error, "expected fewer threads or regions of memory, or fewer nodes");
}

TEST_MAIN(NULL, NULL, test_repeatable, test_sums, test_fair, test_sleeper, test_smt, test_remote,
          test_bandwidth, test_bandwidth_in_turns, test_pair, test_circles_end, test_bounds, test_own_chance,
          test_too_large)
