/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes on random machines: under a constant load no group moves back and forth. Without the guards (P7) some
 * do. Every plan is checked during these runs: plan_check(). */

#include "engine-test.h"
#include "random-machine.h"

#define N_MACHINES 60U

/* Per minute: four, after which a group is left alone for PingPongSec=, and one that is undone. */
#define CHANGES_MAX 5

static int64_t most_changes(uint64_t seed, bool guarded)
{
    CLEANUP_FREE char *text = random_machine(seed, guarded);
    CLEANUP(sim_spec_free_p) SimSpec *spec = engine_parse(text);
    CLEANUP(sim_result_free_p) SimResult *result = engine_run(spec, RANDOM_MACHINE_HOMES, seed);
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

TEST_MAIN(NULL, NULL, test_ping_pong, test_without_guards)
