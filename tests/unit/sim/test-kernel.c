/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kernel's own rules: fork placement (P5), wake-ups (P4), stealing (P2), balancing (P7), scans (P9). */

#include "../cpu-list.h"
#include "engine-test.h"

/*
 * Forks
 */

static uint32_t allowed(const char *preset, const char *rule, uint32_t domain)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    char text[128];
    CLEANUP(build_done) Engine e;
    uint32_t n;

    (void)snprintf(text, sizeof(text), "[Machine]\nPreset=%s\n[Kernel]\nForkImbalance=%s\n[Workload w]\n",
                   preset, rule);
    spec = engine_parse(text);
    engine_build(spec, 0, 1, &e);
    assert_true(domain < spec->topology->n_domains);
    n = fork_allowed(&e, &spec->topology->domains[domain]);
    return n;
}

/* The numbers of the series: half on a machine where a node is one LLC; the same where a node has several. */
static void test_fork_allowed(void **state)
{
    assert_int_equal(allowed("xeon-2x40", "new", 1), 5);
    assert_int_equal(allowed("xeon-2x40", "old", 1), 10);
    assert_int_equal(allowed("x5-8", "new", 1), 4);
    assert_int_equal(allowed("x5-8", "old", 1), 9);
    assert_int_equal(allowed("x5-8", "new", 2), 8);
    assert_int_equal(allowed("x5-8", "old", 2), 18);
    assert_int_equal(allowed("zen3-nps1", "new", 1), 8);
    assert_int_equal(allowed("zen3-nps1", "old", 1), 8);
}

/* Where 16 forks go: 0 for the launcher's node, 1 for the other. */
static void fork_16(const char *rule, const char *more, uint64_t seed, char ret[17])
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    char text[160];
    int32_t home;
    CLEANUP(build_done) Engine e;

    (void)snprintf(text, sizeof(text),
                   "[Machine]\nPreset=xeon-2x40\n[Kernel]\nForkImbalance=%s\n[Workload w]\nThreads=16\n%s",
                   rule, more);
    spec = engine_parse(text);
    engine_build(spec, 0, seed, &e);
    home = e.cpus[e.families[0].launcher_cpu].node;
    fork_event(&e, 0);
    assert_int_equal(e.error, 0);
    for (unsigned i = 0; i < 16; i++)
        ret[i] = (char)('0' + (e.cpus[e.threads[i].cpu].node != home));
    ret[16] = '\0';
}

static void test_fork_sequence(void **state)
{
    char nodes[17];

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        fork_16("new", "", seed, nodes);
        assert_string_equal(nodes, "0001010111010101");
        fork_16("old", "", seed, nodes);
        assert_string_equal(nodes, "0000000000111111");
        fork_16("new", "AsleepSec=1s\n", seed, nodes);
        assert_string_equal(nodes, "0000000000000000");
        fork_16("old", "AsleepSec=1s\n", seed, nodes);
        assert_string_equal(nodes, "0000000000000000");
    }
}

/* Threads start where StartNodes= and the allowed CPUs overlap, or anywhere at random, each on a CPU of its own. */
static void test_birth(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec =
        engine_parse("[Machine]\nSynthetic=pack:2 [numa] l3:1 core:4 pu:1\n"
                     "[Workload a]\nThreads=2\nCPUs=2-5\nStartNodes=0\n"
                     "[Workload b]\nThreads=8\nShuffled=yes\n"
                     "[Variant a]\nDaemon=no\nWorkloads=a\n[Variant b]\nDaemon=no\nWorkloads=b\n");
    uint32_t first = 0;

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        uint32_t taken = 0;
        CLEANUP(build_done) Engine e;

        engine_build(spec, 0, seed, &e);
        fork_event(&e, 0);
        for (uint32_t i = 0; i < 2; i++)
            assert_in_range(e.threads[i].cpu, 2, 3);
        build_done(&e);

        engine_build(spec, 1, seed, &e);
        fork_event(&e, 0);
        for (uint32_t i = 0; i < 8; i++)
            taken |= 1U << e.threads[i].cpu;
        assert_int_equal(taken, 0xff);
        first |= 1U << e.threads[0].cpu;
    }
    assert_true(__builtin_popcount(first) > 4);
}

/* S-PUSH: eight arrivals on 2 LLCs of 4 cores of 2 CPUs get a core each, nine do not. This requires that each
 * choice is visible to the next at once. */
static void push(const char *claim, unsigned n, uint64_t seed, unsigned ret_on_core[8])
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    char text[200];
    CLEANUP(build_done) Engine e;

    (void)snprintf(text, sizeof(text),
                   "[Machine]\nSynthetic=pack:1 [numa] l3:2 core:4 pu:2\n[Kernel]\nIdleClaim=%s\n"
                   "[Workload w]\nProcesses=%u\n",
                   claim, n);
    spec = engine_parse(text);
    engine_build(spec, 0, seed, &e);
    memset(ret_on_core, 0, 8 * sizeof(*ret_on_core));
    for (unsigned i = 0; i < n; i++)
        fork_event(&e, i);
    for (unsigned i = 0; i < n; i++)
        ret_on_core[e.cpus[e.threads[i].cpu].core]++;
}

static unsigned n_shared(const unsigned on_core[8])
{
    unsigned n = 0;

    for (unsigned i = 0; i < 8; i++)
        n += on_core[i] > 1;
    return n;
}

static void test_push(void **state)
{
    unsigned on_core[8], n_blind = 0;

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        push("yes", 8, seed, on_core);
        assert_int_equal(n_shared(on_core), 0);
        push("yes", 9, seed, on_core);
        assert_int_equal(n_shared(on_core), 1);
        push("no", 8, seed, on_core);
        n_blind += n_shared(on_core) > 0;
    }
    assert_int_equal(n_blind, ENGINE_SEEDS);
}

/*
 * Wake-ups
 */

static void test_n_scan(void **state)
{
    assert_int_equal(wake_n_scan(16, 0), 16);
    assert_int_equal(wake_n_scan(16, 8), 10);
    assert_int_equal(wake_n_scan(16, 12), 3);
    assert_int_equal(wake_n_scan(100, 86), 0);
    assert_int_equal(wake_n_scan(16, 16), 0);
}

/* Two nodes of four CPUs, and the threads of one process, which the test puts on CPUs. */
static const char two_nodes[] = "[Machine]\nSynthetic=pack:2 [numa] l3:1 core:4 pu:1 distances=10,%u,%u,10\n"
                                "[Kernel]\nWakeAffine=%s\n[Workload w]\nThreads=8\nAsleepSec=1s\n";

typedef struct Bed {
    SimSpec *spec;
    Engine e;
} Bed;

static void bed_make(Bed *bed, unsigned distance, const char *affine)
{
    char text[256];

    (void)snprintf(text, sizeof(text), two_nodes, distance, distance, affine);
    bed->spec = engine_parse(text);
    engine_build(bed->spec, 0, 1, &bed->e);
    for (uint32_t i = 0; i < 8; i++)
        bed->e.threads[i].state = THREAD_STATE_ASLEEP;
    bed->e.now_nsec = 1000000;
}

static void bed_done(Bed *bed)
{
    build_done(&bed->e);
    bed->spec = sim_spec_free(bed->spec);
}

static void put(Bed *bed, uint32_t thread, uint32_t cpu)
{
    bed->e.threads[thread].work_left = UINT64_MAX;
    cpu_enqueue(&bed->e, cpu, thread);
    dispatch_settle(&bed->e);
    bed->e.now_nsec += 1000000;
}

/* The waker runs on CPU 0, alone or not. The wakee slept on CPU 4, on the other node. */
static uint32_t woken_on(unsigned distance, const char *affine, bool sync, bool alone, bool old_cpu_busy)
{
    Bed bed;
    uint32_t cpu;

    bed_make(&bed, distance, affine);
    put(&bed, 0, 0);
    if (!alone)
        put(&bed, 1, 0);
    if (old_cpu_busy)
        put(&bed, 2, 4);
    bed.e.threads[3].cpu = 4;
    cpu = wake_select(&bed.e, 3, 0, sync);
    bed_done(&bed);
    return cpu;
}

static void test_wake_affine(void **state)
{
    /* The waker is about to sleep, and alone: the wakee runs near it, on an idle CPU of its LLC. */
    assert_int_equal(woken_on(20, "yes", true, true, false), 1);
    /* Not alone, or not about to sleep: the wakee's old CPU, which is idle. */
    assert_int_equal(woken_on(20, "yes", true, false, false), 4);
    assert_int_equal(woken_on(20, "yes", false, true, false), 4);
    /* The old CPU is busy: one runnable there is more than none here. */
    assert_int_equal(woken_on(20, "yes", true, true, true), 1);
    /* Two here and one there. */
    assert_int_equal(woken_on(20, "yes", false, false, true), 5);
    /* Too far away, or switched off. */
    assert_int_equal(woken_on(31, "yes", true, true, false), 4);
    assert_int_equal(woken_on(20, "no", true, true, false), 4);
}

/* If a thread wakes others that each wake others, no place is near all of them. */
static void test_wake_wide(void **state)
{
    CLEANUP(bed_done) Bed bed;

    bed_make(&bed, 20, "yes");
    put(&bed, 0, 0);
    bed.e.threads[3].cpu = 4;
    bed.e.threads[0].n_flips = 16; /* the LLC has four CPUs */
    bed.e.threads[3].n_flips = 4;
    assert_int_equal(wake_select(&bed.e, 3, 0, true), 4);
    bed.e.threads[3].n_flips = 3;
    assert_int_equal(wake_select(&bed.e, 3, 0, true), 1);
}

/* The mask was narrowed meanwhile: a CPU of the mask on the same node, otherwise any of it. */
static void test_wake_masked(void **state)
{
    CLEANUP(bed_done) Bed bed;

    bed_make(&bed, 20, "yes");
    bed.e.threads[3].cpu = 4;
    thread_set_mask(&bed.e, 3, test_mask(bed.e.pool, "2,6"), ENGINE_NONE);
    assert_int_equal(wake_select(&bed.e, 3, ENGINE_NONE, false), 6);
    thread_set_mask(&bed.e, 3, test_mask(bed.e.pool, "2"), ENGINE_NONE);
    assert_int_equal(wake_select(&bed.e, 3, ENGINE_NONE, false), 2);
}

/*
 * Balancing
 */

/* 12 spinners that start on a node of 8 CPUs: with balancing all 12 have a CPU within a second, without it
 * they stay. */
static void test_balance(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec =
        engine_parse("[Scenario]\nDurationSec=2s\n[Machine]\nSynthetic=pack:2 [numa] l3:1 core:8 pu:1\n"
                     "[Workload w]\nThreads=12\nStartNodes=0\n"
                     "[Variant on]\nDaemon=no\n[Variant off]\nDaemon=no\nBalance=no\n");

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *on = engine_run(spec, 0, seed);
        CLEANUP(sim_result_free_p) SimResult *off = engine_run(spec, 1, seed);

        assert_int_equal(on->ticks[9].n_crowded, 0);
        assert_in_range(engine_value(on, SIM_METRIC_MOVES_CROSS_PULL), 4, 6);
        assert_int_equal(engine_value(off, SIM_METRIC_RUN), 8000);
        assert_int_equal(engine_value(off, SIM_METRIC_MOVES), 0);
    }
}

/* All threads on the CPU with the most waiting threads are bound to it. The next busiest node gives up one,
 * and only the first remains crowded. */
static void test_balance_pinned(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec =
        engine_parse("[Scenario]\nDurationSec=2s\n[Machine]\nSynthetic=pack:3 [numa] l3:1 core:1 pu:1\n"
                     "[Workload a]\nThreads=4\nCPUs=0\n"
                     "[Workload b]\nThreads=2\nCPUs=1-2\nStartNodes=1\n[Variant v]\nDaemon=no\n");

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, seed);

        assert_int_equal(result->ticks[9].n_crowded, 1);
        assert_int_equal(engine_value(result, SIM_METRIC_MOVES_CROSS_PULL), 1);
    }
}

/* Three threads that wait on a full node go to an idle one. Nodes with more threads than CPUs come first,
 * even if another node, whose threads may not leave, has more threads than the idle one. */
static void test_balance_overloaded(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec =
        engine_parse("[Scenario]\nDurationSec=2s\n[Machine]\nSynthetic=pack:3 [numa] l3:1 core:16 pu:1\n"
                     "[Workload a]\nThreads=14\nNodes=0\n"
                     "[Workload b]\nThreads=18\nNodes=1-2\nStartNodes=1\n[Variant v]\nDaemon=no\n");

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, seed);

        assert_int_equal(result->ticks[9].n_crowded, 0);
    }
}

/* One thread too many on a full node goes to the only CPU of an idle node that it may use, which is not that
 * node's first CPU. Any idle CPU of that node will do. */
static void test_balance_part(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec =
        engine_parse("[Scenario]\nDurationSec=2s\n[Machine]\nSynthetic=pack:2 [numa] l3:1 core:4 pu:1\n"
                     "[Workload a]\nThreads=4\nCPUs=3-6\nStartNodes=1\n[Variant v]\nDaemon=no\n");

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, 0, seed);

        assert_int_equal(result->ticks[9].n_crowded, 0);
        assert_int_equal(engine_value(result, SIM_METRIC_MOVES_CROSS_PULL), 1);
    }
}

/* S-STEAL1 in small: one group of hackbench on one LLC. Stealing reduces the idle time of CPUs whose idle
 * periods are too short for balancing, unless the machine has more nodes than the limit (P3). */
static void test_steal(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec =
        engine_parse("[Scenario]\nDurationSec=200ms\n[Machine]\nSynthetic=pack:2 [numa] l3:1 core:10 pu:2\n"
                     "[Workload g]\nThreads=40\nNodes=0\nWake=group\nBurstSec=exponential 2us\n"
                     "[Variant none]\nDaemon=no\n[Variant steal]\nDaemon=no\nSteal=yes\n"
                     "[Variant limit]\nDaemon=no\nSteal=yes\nStealNodeLimit=1\n");

    for (uint64_t seed = 1; seed <= 5; seed++) {
        CLEANUP(sim_result_free_p) SimResult *none = engine_run(spec, 0, seed);
        CLEANUP(sim_result_free_p) SimResult *steal = engine_run(spec, 1, seed);
        CLEANUP(sim_result_free_p) SimResult *limit = engine_run(spec, 2, seed);
        int64_t before = engine_value(none, SIM_METRIC_BUSY), after = engine_value(steal, SIM_METRIC_BUSY);

        assert_true(after * 100 > before * 110);
        assert_true(engine_value(steal, SIM_METRIC_OPS) > engine_value(none, SIM_METRIC_OPS));
        assert_int_equal(engine_value(limit, SIM_METRIC_OPS), engine_value(none, SIM_METRIC_OPS));
    }
}

/* Results of hinting faults */

/* `n` threads, each a process, on 2 nodes of `n_cpus` CPUs. */
static SimSpec *make_engine(Engine *e, unsigned n_cpus, unsigned n)
{
    char text[200];
    SimSpec *spec;

    (void)snprintf(
        text, sizeof(text),
        "[Machine]\nSynthetic=pack:2 [numa(memory=1GiB)] l3:1 core:%u pu:1\n[Kernel]\nNumaBalancing=yes\n"
        "[Workload w]\nProcesses=%u\nPrivateMemory=64M\nMemoryBound=50%%\n",
        n_cpus, n);
    spec = engine_parse(text);
    engine_build(spec, 0, 1, e);
    for (unsigned i = 0; i < n; i++)
        fork_event(e, i);
    dispatch_settle(e);
    return spec;
}

static uint32_t node_of(const Engine *e, uint32_t thread)
{
    return (uint32_t)e->cpus[e->threads[thread].cpu].node;
}

/* Ends a pass in which the thread had `n` faults on that node. */
static void fault(Engine *e, uint32_t thread, uint32_t node, uint64_t n)
{
    Family *family = &e->families[e->threads[thread].process];

    prefer_faulted(e, &e->threads[thread], false, node, node, n);
    family->seq++;
    prefer_scanned(e, family);
    dispatch_settle(e);
}

static void test_goes_where_it_prefers(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    CLEANUP(build_done) Engine e;
    uint32_t here;

    spec = make_engine(&e, 2, 1);
    here = node_of(&e, 0);
    assert_int_equal(prefer_verdict(&e, &e.threads[0], (here + 1) % 2 * 2, false), PREFER_UNKNOWN);
    fault(&e, 0, here, 100);
    assert_int_equal(node_of(&e, 0), here);
    /* Half of the earlier faults remain: 50 here, 51 there. */
    fault(&e, 0, (here + 1) % 2, 51);
    assert_int_equal(node_of(&e, 0), (here + 1) % 2);
}

static void test_exchanges(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL, *other = NULL;
    CLEANUP(build_done) Engine e;
    uint32_t here;

    /* The other thread has nothing to lose. */
    spec = make_engine(&e, 1, 2);
    here = node_of(&e, 0);
    assert_int_not_equal(node_of(&e, 1), here);
    fault(&e, 0, node_of(&e, 1), 100);
    assert_int_not_equal(node_of(&e, 0), here);
    assert_int_equal(node_of(&e, 1), here);
    build_done(&e);

    /* The other thread loses as much as the first would gain. */
    other = make_engine(&e, 1, 2);
    here = node_of(&e, 0);
    fault(&e, 1, node_of(&e, 1), 100);
    fault(&e, 0, node_of(&e, 1), 100);
    assert_int_equal(node_of(&e, 0), here);
    /* It is pulled away from there only in favour of another waiting thread. */
    assert_int_equal(prefer_verdict(&e, &e.threads[1], (uint32_t)e.threads[0].cpu, false), PREFER_UNKNOWN);
    assert_int_equal(prefer_verdict(&e, &e.threads[0], (uint32_t)e.threads[1].cpu, false), PREFER_GO);
    cpu_move(&e, 0, (uint32_t)e.threads[1].cpu, MOVE_CAUSE_PULL);
    dispatch_settle(&e);
    fault(&e, 0, here, 1000);
    cpu_move(&e, 0, (uint32_t)e.threads[1].cpu, MOVE_CAUSE_PULL);
    assert_int_equal(prefer_verdict(&e, &e.threads[1], here, false), PREFER_STAY);
}

/* All private and local: the period grows by three tenths after each pass; all remote: it doubles; up to a
 * minute. Without faults it does not change. */
static void test_scan_period(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    const Family *family;
    uint32_t here;
    CLEANUP(build_done) Engine e;

    spec = make_engine(&e, 2, 1);
    family = &e.families[0];
    here = node_of(&e, 0);
    assert_int_equal(prefer_period_nsec(&e, family, 0), 1000000000U);
    fault(&e, 0, here, 100);
    assert_int_equal(prefer_period_nsec(&e, family, 0), 1300000000U);
    assert_int_equal(prefer_period_nsec(&e, family, ENGINE_NONE), 1000000000U);
    e.families[0].seq++;
    prefer_scanned(&e, family);
    assert_int_equal(prefer_period_nsec(&e, family, 0), 1300000000U);
    prefer_faulted(&e, &e.threads[0], false, (here + 1) % 2, here, 1);
    prefer_scanned(&e, family);
    assert_int_equal(prefer_period_nsec(&e, family, 0), 2600000000U);
    for (unsigned i = 0; i < 20; i++)
        fault(&e, 0, here, 10);
    assert_int_equal(prefer_period_nsec(&e, family, 0), 60000000000U);
}

/* 64 of 16,384 pages are marked, 48 on one node and 16 on the other. Each faults once, wherever its thread
 * runs, and remote pages move. When a thread ends, its faults are forgotten. */
static void test_faults(void **state)
{
    for (uint32_t remote = 0; remote < 2; remote++) {
        CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
        uint32_t here;
        int32_t region;
        CLEANUP(build_done) Engine e;

        spec = make_engine(&e, 2, 1);
        here = node_of(&e, 0);
        region = memory_region_at(&e, &e.families[0], 0);
        assert_true(region >= 0);
        memory_pages(&e, region)[here] = remote ? 4096 : 12288;
        memory_pages(&e, region)[1 - here] = remote ? 12288 : 4096;
        e.regions[region].touched = true;
        e.regions[region].n_marked = 64;
        scan_accessed(&e, &e.threads[0], region, here, UINT64_MAX);
        assert_int_equal(e.threads[0].preference.n_local, remote ? 16 : 48);
        assert_int_equal(e.threads[0].preference.n_remote, remote ? 48 : 16);
        assert_int_equal(memory_pages(&e, region)[here], (remote ? 4096 : 12288) + (remote ? 48 : 16));
        e.families[0].seq++;
        prefer_scanned(&e, &e.families[0]);
        assert_int_equal(e.threads[0].preference.n_faults, 64);
        assert_int_equal(e.family_faults[here], 64);
        memory_forget(&e, &e.threads[0]);
        assert_int_equal(e.family_faults[here], 0);
        assert_int_equal(e.family_faults[2], 0);
    }
}

/*
 * Scans
 */

/* S-VMA: half of the threads change their memory after the first passes. */
static void test_scan(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec =
        engine_parse("[Scenario]\nDurationSec=2min\n[Machine]\nPreset=cascade-lake\n"
                     "[Kernel]\nNumaBalancing=yes\nForceComplete=no\n"
                     "[Workload w]\nProcesses=2\nThreads=16\nWorkSec=45s\nPrivateMemory=192M\n"
                     "MemoryBound=100%\nDisplaced=50%\nDisplacedSec=5s\n"
                     "[Variant unforced]\nDaemon=no\n[Variant forced]\nDaemon=no\nForceComplete=yes\n");

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *unforced = engine_run(spec, 0, seed);
        CLEANUP(sim_result_free_p) SimResult *forced = engine_run(spec, 1, seed);

        assert_int_equal(engine_value(forced, SIM_METRIC_COVERAGE), 1000);
        assert_in_range(engine_value(unforced, SIM_METRIC_COVERAGE), 1, 200);
        assert_true(engine_value(forced, SIM_METRIC_MAKESPAN_USEC) * 100 <
                    engine_value(unforced, SIM_METRIC_MAKESPAN_USEC) * 80);
        assert_true(engine_value(forced, SIM_METRIC_LOCAL) > 980);
        assert_true(engine_value(forced, SIM_METRIC_PAGES_MOVED) >
                    engine_value(unforced, SIM_METRIC_PAGES_MOVED));
    }
}

TEST_MAIN(NULL, NULL, test_fork_allowed, test_fork_sequence, test_birth, test_push, test_n_scan,
          test_wake_affine, test_wake_wide, test_wake_masked, test_balance, test_steal, test_scan,
          test_goes_where_it_prefers, test_exchanges, test_scan_period, test_faults, test_balance_pinned,
          test_balance_overloaded, test_balance_part)
