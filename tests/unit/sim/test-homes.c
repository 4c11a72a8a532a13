/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the simulated daemon knows of memory, and what is measured about homes. */

#include "engine-test.h"
#include "sim/agent/agent.h"

#define MIB ((uint64_t)1 << 20)

/* Memory */

static const char memory[] = "[Machine]\nSynthetic=pack:2 [numa(memory=4GiB)] l3:1 core:4 pu:1\n"
                             "[Workload small]\nThreads=2\nPrivateMemory=1M\nSharedMemory=3M\nStartNodes=1\n"
                             "[Workload large]\nThreads=1\nPrivateMemory=1G\nStartNodes=0\n"
                             "[Workload none]\n"
                             "[Policy p Match]\nComm=*\n[Policy p Workload]\nGroupBy=process\n";

/* A discovery of the daemon, `msec` after the start. */
static void discover(Engine *e, Agent *agent, uint64_t msec)
{
    e->now_nsec = msec * 1000000;
    assert_int_equal(sense_discover(e, agent), 0);
}

static const Process *process_of(const Engine *e, Agent *agent, uint32_t family)
{
    return world_process(agent->world, agent_pid(e, family));
}

/* Memory that is quick to read is known at once, the rest at the next discovery. Then each process is read
 * again when its reading's age has doubled. */
static void test_memory(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = engine_parse(memory);
    CLEANUP(agent_free_p) Agent *agent = NULL;
    const Process *small;
    uint64_t first;
    CLEANUP(build_done) Engine e;

    engine_build(spec, 0, 1, &e);
    assert_int_equal(agent_new(&e, &agent), 0);
    for (uint32_t i = 0; i < e.n_families; i++)
        fork_event(&e, i);

    discover(&e, agent, 100);
    small = process_of(&e, agent, 0);
    assert_int_equal(small->node_bytes[0], 0);
    assert_int_equal(small->node_bytes[1], 5 * MIB);
    assert_null(process_of(&e, agent, 1)->node_bytes);
    assert_null(process_of(&e, agent, 2)->node_bytes); /* it has no memory */
    assert_int_equal(agent->world->nodes[0].free_bytes, 3072 * MIB);
    assert_int_equal(agent->world->nodes[1].free_bytes, 4091 * MIB);

    discover(&e, agent, 1100);
    assert_int_equal(process_of(&e, agent, 1)->node_bytes[0], 1024 * MIB);
    first = process_of(&e, agent, 0)->node_bytes_usec;
    assert_int_equal(first, agent->world->now_usec);

    /* Reading 1 GiB takes 12 ms: at most a hundredth of the time is spent on it. */
    memory_pages(&e, e.families[0].shared_first)[0] = memory_pages(&e, e.families[0].shared_first)[1];
    memory_pages(&e, e.families[0].shared_first)[1] = 0;
    discover(&e, agent, 1900);
    assert_int_equal(process_of(&e, agent, 0)->node_bytes[1], 5 * MIB);
    assert_int_equal(process_of(&e, agent, 0)->node_bytes_usec, first);
    discover(&e, agent, 2200);
    assert_int_equal(process_of(&e, agent, 0)->node_bytes[0], 3 * MIB);
    assert_int_equal(process_of(&e, agent, 0)->node_bytes[1], 2 * MIB);
    assert_int_equal(process_of(&e, agent, 1)->node_bytes_usec, first);

    agent = agent_free(agent);
}

/* Two threads on the node with the memory, two on the other. */
static const char apart[] =
    "[Scenario]\nDurationSec=10s\nSettleSec=5s\n"
    "[Machine]\nSynthetic=pack:2 [numa(memory=4GiB)] l3:1 core:4 pu:1\n"
    "[Workload a]\nThreads=4\nPrivateMemory=1M\nSharedMemory=128M\nSharedAccess=90%\nMemoryBound=50%\n"
    "StartNodes=0\nDisplaced=50%\nFirstTouch=process\n"
    "[Policy p Match]\nComm=a\n[Policy p Placement]\nMode=auto\n"
    "[Variant none]\nDaemon=no\n[Variant homes]\n";

static void test_metrics(void **state)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = engine_parse(apart);

    for (uint64_t seed = 1; seed <= ENGINE_SEEDS; seed++) {
        CLEANUP(sim_result_free_p) SimResult *none = engine_run(spec, 0, seed);
        CLEANUP(sim_result_free_p) SimResult *homes = engine_run(spec, 1, seed);

        assert_int_equal(engine_value(none, SIM_METRIC_TOGETHER), 500);
        assert_int_equal(engine_value(none, SIM_METRIC_NODE_MOST), 500);
        assert_int_equal(engine_value(none, SIM_METRIC_HOME_CHANGES), 0);
        assert_int_equal(sim_result_get(homes, SIM_METRIC_TOGETHER, 0), 1000);
        assert_int_equal(sim_result_get(homes, SIM_METRIC_NODE_MOST, 0), 1000);
        assert_int_equal(engine_value(homes, SIM_METRIC_HOME_CHANGES), 1);
        assert_int_equal(engine_value(homes, SIM_METRIC_HOME_CHANGES_LATE), 0);
        assert_int_equal(engine_value(homes, SIM_METRIC_HOME_CHANGES_MOST), 0);
        assert_int_equal(engine_value(homes, SIM_METRIC_GROUPS), 1);
        assert_int_equal(engine_value(none, SIM_METRIC_GROUPS), 0);
        assert_int_equal(engine_value(homes, SIM_METRIC_REVERTS), 0);
        assert_int_equal(engine_value(homes, SIM_METRIC_MOVES_CROSS_DAEMON), 2);
    }
}

TEST_MAIN(NULL, NULL, test_memory, test_metrics)
