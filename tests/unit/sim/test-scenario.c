/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Scenario files: what a good one becomes, and which error, at which line, a bad one gives. */

#include "../conf/conf-test.h"
#include "sim/scenario/scenario.h"

#define MACHINE  "[Machine]\nSynthetic=pack:2 [numa] l3:1 core:4 pu:1\n"
#define WORKLOAD "[Workload w]\n"
#define GOOD     MACHINE WORKLOAD

static SimSpec *parse(const char *text)
{
    ConfReport report = {0};
    SimSpec *spec = NULL;
    int r = sim_scenario_parse("t", text, strlen(text), "f", NULL, &spec, &report);

    assert_report(&report, "");
    assert_int_equal(r, 0);
    assert_non_null(spec);
    return spec;
}

static void reject(const char *text, const char *expected)
{
    ConfReport report = {0};
    SimSpec *spec = NULL;

    assert_int_equal(sim_scenario_parse("t", text, strlen(text), "f", NULL, &spec, &report), -EBADMSG);
    assert_null(spec);
    assert_report(&report, expected);
}

static void test_defaults(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = parse(GOOD);
    const SimWorkload *w = &spec->workloads[0];
    const SimVariant *v = &spec->variants[0];

    assert_string_equal(spec->name, "t");
    assert_int_equal(spec->n_seeds, 20);
    assert_int_equal(spec->duration_usec, 10000000);
    assert_int_equal(spec->topology->n_nodes, 2);
    assert_memory_equal(&spec->model, &sim_model_default, sizeof(SimModel));
    assert_int_equal(spec->n_workloads, 1);
    assert_string_equal(w->comm, "w");
    assert_string_equal(w->cgroup, "/sim.slice/w.service");
    assert_int_equal(w->n_threads, 1);
    assert_null(w->cpuset);
    assert_int_equal(spec->n_variants, 1);
    assert_string_equal(v->name, "default");
    assert_true(v->daemon && v->workloads[0] && v->kernel.balance && !v->kernel.steal);
    assert_int_equal(v->policies->n_policies, 0);
    assert_int_equal(spec->n_expects, 0);
}

static void test_machine(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec = parse("[Machine]\nPreset=zen3-nps4\nLocalLatencyNSec=100\nNodeBandwidth=20G\n" WORKLOAD);

    assert_string_equal(spec->machine, "zen3-nps4");
    assert_int_equal(spec->topology->n_nodes, 8);
    assert_int_equal(spec->model.local_latency_nsec, 100);
    assert_int_equal(spec->model.node_bandwidth, 20ULL << 30);
    assert_int_equal(spec->model.remote_latency_nsec, sim_model_default.remote_latency_nsec);
}

static void test_workload(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec =
        parse(MACHINE "[Workload a]\nComm=java\nProcesses=2\nThreads=4\nBurstSec=exponential 3ms\n"
                      "Wake=pair\nWakeSync=no\nNodes=1\nSharedMemory=1G\nMemoryBound=40%\n"
                      "FirstTouch=process\nWorkSec=2s\n"
                      "[Workload a-name-of-18-chars]\nBurstSec=uniform 1ms 5ms\nSleepSec=2ms\n"
                      "CPUs=1-2\nStartNodes=0\n");
    const SimWorkload *w = spec->workloads;

    assert_string_equal(w[0].comm, "java");
    assert_int_equal(w[0].burst.kind, SIM_DIST_EXPONENTIAL);
    assert_int_equal(w[0].burst.a_usec, 3000);
    assert_int_equal(w[0].wake, SIM_WAKE_PAIR);
    assert_false(w[0].wake_sync);
    assert_int_equal(hwloc_bitmap_first(w[0].cpuset), 4);
    assert_int_equal(hwloc_bitmap_weight(w[0].cpuset), 4);
    assert_int_equal(w[0].memory_permille, 400);
    assert_int_equal(w[0].shared_permille, 1000); /* there is no private memory */
    assert_int_equal(w[0].touch, SIM_TOUCH_PROCESS);
    assert_string_equal(w[1].comm, "a-name-of-18-ch");
    assert_int_equal(w[1].burst.kind, SIM_DIST_UNIFORM);
    assert_int_equal(w[1].burst.b_usec, 5000);
    assert_int_equal(hwloc_bitmap_weight(w[1].cpuset), 2);
    assert_int_equal(hwloc_bitmap_weight(w[1].start_cpus), 4);
}

#define POLICY "[Policy p Match]\nComm=w\n[Policy p Placement]\nMode=fixed\nNodes=0\n"

static void test_variants(void **state)
{
    CLEANUP(sim_spec_free_p)
    SimSpec *spec = parse(GOOD "[Workload x]\n" POLICY "[Policy q Match]\nComm=*\n[Kernel]\nBalance=no\n"
                               "[Variant a]\nDaemon=no\nSteal=yes\n[Variant b]\nPolicies=p\nWorkloads=x\n"
                               "[Variant c]\nPolicies=none\n");
    const SimVariant *v = spec->variants;

    assert_int_equal(spec->n_variants, 3);
    assert_true(!v[0].daemon && v[0].kernel.steal && !v[0].kernel.balance && v[0].workloads[0]);
    assert_int_equal(v[0].policies->n_policies, 2);
    assert_true(v[1].daemon && !v[1].kernel.steal && !v[1].kernel.balance);
    assert_true(!v[1].workloads[0] && v[1].workloads[1]);
    assert_int_equal(v[1].policies->n_policies, 1);
    assert_string_equal(v[1].policies->policies[0]->name, "p");
    assert_int_equal(v[1].policies->policies[0]->mode, POLICY_MODE_FIXED);
    assert_int_equal(v[2].policies->n_policies, 0);
}

/* One error each: text, message. */
static const char *const slips[][2] = {
    {"", "error f: expected one of Preset=, XML= and Synthetic= in [Machine]\n"},
    {"[Machine]\n" WORKLOAD, "error f:1: expected one of Preset=, XML= and Synthetic= in [Machine]\n"},
    {MACHINE "Preset=x5-8\n", "error f:1: expected one of Preset=, XML= and Synthetic= in [Machine]\n"},
    {MACHINE, "error f: expected a section [Workload NAME]\n"},
    {GOOD "[Scenaro]\n", "error f:4: expected [Scenario], [Machine], [Kernel], [Workload NAME], "
                         "[Policy NAME SECTION], [Variant NAME] or [Expect], not: [Scenaro]\n"},
    {GOOD "[Scenario]\n[Scenario]\n", "error f:5: expected [Scenario] only once; line 4 already has it\n"},
    {GOOD "[Variant v]\n[Kernel]\n",
     "error f:5: expected [Kernel] before the first variant, which starts from it\n"},
    {GOOD "Treads=3\n", "error f:4: expected a key of [Workload], see numaplace.scenario(5), not: Treads=\n"},
    {GOOD "Threads=3\nThreads=4\n", "error f:5: expected Threads= only once in this section\n"},
    {GOOD "Threads=0\n", "error f:4: Threads= takes a number from 1 to 200000, not: 0\n"},
    {GOOD "BurstSec=uniform 5ms 1ms\n",
     "error f:4: BurstSec= takes a time span such as 3ms, or uniform 1ms 5ms, or exponential 3ms, at most 1h, not: "
     "uniform 5ms 1ms\n"},
    {GOOD "[Workload w]\n",
     "error f:4: expected a new name: the workload in line 3 already has this one: w\n"},
    {GOOD "[Variant]\n",
     "error f:4: expected a name of 1 to 64 letters, digits and .-_@:+, starting with a letter or digit, for "
     "a variant, not: \n"},
    {GOOD "SleepSec=1s\n", "error f:3: expected BurstSec= for workload w, which sleeps\n"},
    {GOOD "BurstSec=1ms\nWake=pair\n",
     "error f:3: expected an even number of Threads= for workload w, whose threads wake each other\n"},
    {GOOD "MemoryBound=10%\n",
     "error f:3: expected PrivateMemory= or SharedMemory= for workload w, which uses memory\n"},
    {GOOD "DisplacedSec=1s\n", "error f:3: expected Displaced= for workload w, which has DisplacedSec=\n"},
    {GOOD "Nodes=1-2\n", "error f:3: Nodes= of workload w names node 2, which the machine does not have\n"},
    {GOOD "CPUs=0\nNodes=0\n", "error f:3: expected one of CPUs= and Nodes= for workload w\n"},
    {GOOD "CPUs=8\n",
     "error f:3: CPUs= of workload w includes no CPU of the machine, or none of its cpuset\n"},
    {GOOD "CPUs=0\nAffinity=1\n",
     "error f:3: Affinity= of workload w includes no CPU of the machine, or none of its cpuset\n"},
    {GOOD "Threads=150000\n[Workload x]\nThreads=150000\n",
     "error f: expected at most 200000 threads in all workloads together, not: 300000\n"},
    {GOOD "[Scenario]\nSettleSec=11s\n", "error f: expected SettleSec= of at most DurationSec=\n"},
    {GOOD "[Variant v]\nWorkloads=w x\n",
     "error f:4: Workloads= of variant v takes names of workloads, not: x\n"},
    {GOOD "[Variant v]\nOff=freeze x\n",
     "error f:4: Off= of variant v takes names of rules such as nearest, not: x\n"},
    {GOOD "[Variant v]\nPolicies=p\n",
     "error f:4: Policies= of variant v takes names of [Policy ...] sections, files "
     "that end in .policy, or none, not: p\n"},
    {GOOD "[Variant v]\nPolicies=p.policy\n",
     "error f:4: expected no policy files in a scenario that is not a file\n"},
    {GOOD "[Policy p Mach]\n",
     "error f:4: expected the name of a policy and one of its sections, such as [Policy p Match]\n"},
    {GOOD "[Policy p Match]\nComm=w\n\n[Policy p Steal]\nSteel=no\n",
     "error f:8: policy p: unknown key in [Steal]: Steel=\n"},
    {GOOD "[Variant a]\n[Variant b]\n[Policy p Steal]\nSteel=no\n",
     "error f:7: policy p: unknown key in [Steal]: Steel=\n"},
    {GOOD "[Policy p Steal]\nSteal=no\n[Policy q Steal]\nSteal=no\n[Policy p Steal]\nSteal=yes\n",
     "error f:9: expected Steal= only once in policy p\n"},
    {GOOD "[Policy p Match]\nComm=w\n\n# two\n\n[Policy p Placement]\nMode=sideways\n",
     "error f:10: policy p: Mode= takes none, auto, compress, spread, interleave or fixed, not: sideways\n"},
    {GOOD "[Expect all]\n", "error f:4: expected [Expect], [Expect every] or [Expect median], not: all\n"},
    {GOOD "[Expect]\nValue=busyness == 5\n",
     "error f:5: expected a metric of numaplace.scenario(5), not: busyness\n"},
    {"[Machine]\nPreset=pdp-11\n" WORKLOAD, NULL}, /* lists all presets */
    {"[Machine]\nSynthetic=pack:zwei\n" WORKLOAD, NULL},
    {"[Machine]\nSynthetic=pu:2\nLocalLatencyNSec=200\n" WORKLOAD,
     "error f:1: expected RemoteLatencyNSec= of at least LocalLatencyNSec=, 200\n"},
    {"[Machine]\nXML=a.xml\n" WORKLOAD, "error f:1: expected no XML= in a scenario that is not a file\n"},
};

static void test_slips(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(slips); i++) {
        CLEANUP(conf_report_done) ConfReport report = {0};
        SimSpec *spec = NULL;

        if (slips[i][1]) {
            reject(slips[i][0], slips[i][1]);
            continue;
        }
        assert_int_equal(sim_scenario_parse("t", slips[i][0], strlen(slips[i][0]), "f", NULL, &spec, &report),
                         -EBADMSG);
        assert_int_equal(report.n_errors, 1);
        assert_int_equal(report.messages[0].line, 1);
    }
}

/* All errors of a file are reported at once. */
static void test_several(void **state)
{
    reject(GOOD "Threads=x\nTreads=1\n[Foo]\nBar=1\n[Variant v]\nDaemon=perhaps\n",
           "error f:4: Threads= takes a number from 1 to 200000, not: x\n"
           "error f:5: expected a key of [Workload], see numaplace.scenario(5), not: Treads=\n"
           "error f:6: expected [Scenario], [Machine], [Kernel], [Workload NAME], [Policy NAME SECTION], "
           "[Variant NAME] or [Expect], not: [Foo]\n"
           "error f:9: Daemon= takes yes or no, not: perhaps\n");
    reject("Seeds=1\n" GOOD,
           "error f:1: expected a section such as [Machine] before the first key, found: Seeds=1\n");
}

static void write_text(const char *directory, const char *name, const char *text)
{
    FILE *f = fopen(test_path(directory, name), "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_files(void **state)
{
    char *root = test_tree_new();
    const char *const dirs[] = {root, NULL};
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL, *other = NULL;
    ConfReport report = {0};

    write_text(root, "10-a.policy", "[Match]\nComm=w\n");
    write_text(root, "20-b.policy", "[Match]\nComm=w\n");
    write_text(root, "s.scenario", GOOD "[Variant v]\nPolicies=10-a.policy\n[Variant off]\nDaemon=no\n");
    assert_int_equal(sim_scenario_load(test_path(root, "s.scenario"), NULL, &spec, &report), 0);
    assert_report(&report, "");
    assert_string_equal(spec->name, "s");
    assert_int_equal(spec->variants[0].policies->n_policies, 1);
    assert_string_equal(spec->variants[0].policies->policies[0]->name, "10-a");

    assert_int_equal(sim_scenario_load(test_path(root, "s.scenario"), dirs, &other, &report), 0);
    assert_report(&report, "");
    assert_int_equal(other->variants[0].policies->n_policies, 2);
    assert_int_equal(other->variants[1].policies->n_policies, 0);

    /* Two variants read the same file: one warning is enough. */
    write_text(root, "20-b.policy", "[Match]\nComm=w\n[Steal]\nSteel=no\n");
    write_text(root, "s.scenario", GOOD "[Variant v]\n[Variant w]\n");
    other = sim_spec_free(other);
    assert_int_equal(sim_scenario_load(test_path(root, "s.scenario"), dirs, &other, &report), 0);
    assert_int_equal(report.n_warnings, 1);
    conf_report_done(&report);

    other = sim_spec_free(other);
    assert_int_equal(sim_scenario_load(test_path(root, "none.scenario"), NULL, &other, &report), -EBADMSG);
    assert_null(other);
    assert_int_equal(report.n_errors, 1);
    conf_report_done(&report);
    test_tree_remove(root);
}

TEST_MAIN(NULL, NULL, test_defaults, test_machine, test_workload, test_variants, test_slips, test_several,
          test_files)
