/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The simulated daemon: what it sees (S-OVL), and what its plans do to the model (S-STEAL2). */

#include "engine-test.h"

static const char ovl[] = "[Scenario]\nDurationSec=1s\n"
                          "[Machine]\nSynthetic=numa:1 l3:1 core:20 pu:1\n"
                          "[Workload w25]\nThreads=25\n[Workload w20]\nThreads=20\n"
                          "[Variant many]\nWorkloads=w25\n[Variant enough]\nWorkloads=w20\n";

/* With 25 spinners on 20 CPUs, 5 CPUs are overloaded from the second tick on. With 20 spinners, none is. */
static void test_overload(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = engine_parse(ovl);

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *many = engine_run(spec, 0, seed);
        CLEANUP(sim_result_free_p) SimResult *enough = engine_run(spec, 1, seed);

        assert_int_equal(many->n_ticks, 10);
        assert_int_equal(many->ticks[0].n_overloaded, 0);
        for (size_t i = 1; i < many->n_ticks; i++)
            assert_int_equal(many->ticks[i].n_overloaded, 5);
        assert_int_equal(engine_value(many, SIM_METRIC_BUSY), 1000);
        assert_int_equal(engine_value(many, SIM_METRIC_WAIT), 5000);
        assert_int_equal(engine_value(enough, SIM_METRIC_OVERLOADED_MAX), 0);
        assert_int_equal(engine_value(enough, SIM_METRIC_WAIT), 0);
    }
}

static const char steal2[] =
    "[Scenario]\nDurationSec=10s\nSettleSec=1s\n"
    "[Machine]\nSynthetic=pack:2 [numa] l3:1 core:8 pu:1\n"
    "[Workload w]\nThreads=12\nStartNodes=0\n"
    "[Policy p Match]\nComm=w\n[Policy p Placement]\nMode=fixed\nNodes=0\n"
    "[Policy p Workload]\nMinAgeSec=0\n[Policy p Limits]\nNiceTries=0\n[Policy p Steal]\nLeaseSec=1min\n"
    "[Policy q Match]\nComm=w\n[Policy q Placement]\nMode=fixed\nNodes=0\n"
    "[Policy q Workload]\nMinAgeSec=0\n[Policy q Steal]\nSteal=no\n"
    "[Variant lend]\nPolicies=p\n[Variant confined]\nPolicies=q\n";

static uint64_t used(const SimResult *result, size_t tick)
{
    return *sim_result_used(result, tick, 0) + *sim_result_used(result, tick, 1);
}

/* 12 spinners in a home of 8 CPUs beside 8 idle ones: after three ticks of waiting 12 CPUs are used, and
 * nothing moves any more. */
static void test_steal(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = engine_parse(steal2);

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *lend = engine_run(spec, 0, seed);
        CLEANUP(sim_result_free_p) SimResult *confined = engine_run(spec, 1, seed);

        assert_int_equal(used(confined, 50), 8000);
        assert_int_equal(engine_value(confined, SIM_METRIC_LENDS), 0);
        assert_in_range(used(lend, 4), 11990, 12000);
        assert_in_range(used(lend, lend->n_ticks - 1), 11999, 12000);
        assert_int_equal(engine_value(lend, SIM_METRIC_LENDS), 4);
        assert_int_equal(engine_value(lend, SIM_METRIC_LENDS_CROSS), 4);
        assert_int_equal(engine_value(lend, SIM_METRIC_ACTIONS_LATE), 0);
        assert_int_equal(engine_value(lend, SIM_METRIC_MOVES_CROSS_LATE), 0);
    }
}

/* Homes on two nodes of four CPUs each, under policies that lend at once. */
#define TWO_NODES "[Machine]\nSynthetic=pack:2 [numa] l3:1 core:4 pu:1\n"
#define HOME(name, node)                                                                \
    "[Policy " name " Match]\nComm=" name "\n[Policy " name " Workload]\nMinAgeSec=0\n" \
    "[Policy " name " Placement]\nMode=fixed\nNodes=" node "\n[Policy " name " Limits]\nNiceTries=0\n"

/* CPUs that b lent to a are recalled when b's own threads begin, which have their node for themselves after
 * two ticks. */
static void test_recall(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec = engine_parse("[Scenario]\nDurationSec=6s\n" TWO_NODES "[Workload a]\nThreads=6\n"
                                 "[Workload b]\nThreads=4\nStartSec=3s\n" HOME("a", "0") HOME("b", "1"));

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, seed);

        assert_int_equal(sim_result_get(result, SIM_METRIC_LENDS, 0), 2);
        assert_int_equal(sim_result_get(result, SIM_METRIC_RECALLS, 0), 2);
        assert_int_equal(sim_result_get(result, SIM_METRIC_LENDS, 1), 0);
        assert_in_range(sim_result_used(result, 25, 1)[0], 1999, 2000);
        assert_int_equal(sim_result_used(result, 45, 1)[0], 0);
        assert_in_range(sim_result_used(result, 45, 1)[1], 3999, 4000);
        assert_in_range(sim_result_used(result, 45, 0)[0], 3999, 4000);
    }
}

/* Threads that pinned themselves are left alone, and so are those without a policy. */
static void test_hands_off(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec =
        engine_parse("[Scenario]\nDurationSec=2s\n" TWO_NODES "[Workload a]\nThreads=3\nAffinity=5-7\n"
                     "[Workload other]\nThreads=3\nStartNodes=1\n" HOME("a", "0"));
    CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, 1);

    assert_int_equal(engine_value(result, SIM_METRIC_HOMES), 0);
    assert_int_equal(engine_value(result, SIM_METRIC_LENDS), 0);
    assert_int_equal(sim_result_used(result, 15, 1)[0] + sim_result_used(result, 15, 0)[0], 3000);
    assert_int_equal(sim_result_used(result, 15, 0)[0], 0);
}

/* Threads created after their process got a home start in it. */
static void test_born_later(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec = engine_parse("[Scenario]\nDurationSec=5s\nSettleSec=1200ms\n" TWO_NODES
                                 "[Workload a]\nThreads=4\nForkSec=1s\n" HOME("a", "0"));

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, seed);

        assert_int_equal(engine_value(result, SIM_METRIC_MOVES_CROSS_LATE), 0);
        for (size_t i = 12; i < result->n_ticks; i++)
            assert_int_equal(*sim_result_used(result, i, 1), 0);
        assert_int_equal(*sim_result_used(result, 45, 0), 4000);
    }
}

/* A new process is found in the next tick, and need not wait for a slow one. */
static void test_newcomers(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec = engine_parse(
        "[Scenario]\nDurationSec=2s\n" TWO_NODES
        "[Workload a]\nThreads=3\nSerialSec=350ms\nStartSec=250ms\nStartNodes=1\n" HOME("a", "0"));
    CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, 1);

    assert_int_equal(*sim_result_used(result, 4, 0), 1000);
    assert_int_equal(*sim_result_used(result, 8, 0), 3000);
    assert_int_equal(engine_value(result, SIM_METRIC_HOMES),
                     2); /* a thread created in a home is recorded as being there */
}

/* A policy that requires a size is evaluated again until the process has it. */
static void test_match_later(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec = engine_parse("[Scenario]\nDurationSec=5s\n" TWO_NODES
                                 "[Workload a]\nThreads=4\nForkSec=1s\nStartNodes=1\n"
                                 "[Policy p Match]\nUnit=a.service\nSlice=sim.slice\nMinThreads=5\n"
                                 "[Policy p Workload]\nMinAgeSec=0\n"
                                 "[Policy p Placement]\nMode=fixed\nNodes=0\n");
    CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, 1);

    assert_int_equal(engine_value(result, SIM_METRIC_HOMES), 1);
    assert_int_equal(*sim_result_used(result, 15, 1), 2000);
    assert_in_range(*sim_result_used(result, 45, 0), 3999, 4000);
}

/* A workload that has ended leaves nothing behind. */
static void test_end(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec =
        engine_parse("[Scenario]\nDurationSec=10s\n" TWO_NODES "[Workload a]\nThreads=6\nWorkSec=2s\n"
                     "[Workload b]\nBurstSec=1ms\nSleepSec=1ms\nStartNodes=1\n" HOME("a", "0"));
    CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, 1);

    assert_in_range(sim_result_get(result, SIM_METRIC_MAKESPAN_USEC, 0), 2000000, 2500000);
    assert_int_equal(result->ticks[result->n_ticks - 1].n_leases, 0);
    assert_int_equal(result->ticks[result->n_ticks - 1].n_overloaded, 0);
    assert_int_equal(sim_result_get(result, SIM_METRIC_MAKESPAN_USEC, SIZE_MAX), 0);
}

/* The window of the scan is that of one process, however many are scanned: 32 MB where they have come together. */
static void test_scan_window(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec = engine_parse("[Scenario]\nDurationSec=20s\n[Machine]\nPreset=numa-core-4x8\n"
                                 "[Workload a]\nComm=job\nThreads=8\nPrivateMemory=32M\nMemoryBound=50%\n"
                                 "[Workload b]\nComm=job\nThreads=8\nPrivateMemory=32M\nMemoryBound=50%\n"
                                 "[Policy p Match]\nComm=job\n[Policy p Placement]\nMode=spread\n"
                                 "[Policy p Memory]\nEvidence=write\nScanSize=512M\nScanMaxSec=1s\n");
    CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, 1);
    int64_t a = sim_result_get(result, SIM_METRIC_SCAN_WINDOW, 0),
            b = sim_result_get(result, SIM_METRIC_SCAN_WINDOW, 1);

    assert_true(a > 0 && b > 0);
    assert_int_equal(engine_value(result, SIM_METRIC_SCAN_WINDOW), MAX(a, b));
}

TEST_MAIN(NULL, NULL, test_overload, test_steal, test_recall, test_hands_off, test_newcomers, test_born_later,
          test_match_later, test_end, test_scan_window)
