/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Loading with each allocation of the project failing in turn: the result is -ENOMEM or a good Topology, and
 * nothing leaks (which the address sanitizer checks). */

#include "../allocations.h"
#include "topo/topology.h"
#include "unit-test.h"

/* Returns true when it loaded. */
static bool try(const TopologyOptions *options, int n)
{
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP_FREE char *error = NULL, *text = NULL;
    int r;

    allocations_fail_after(n);
    r = topology_load(options, &topology, &error);
    if (r == 0)
        text = topology_format(topology);
    allocations_fail_after(-1);

    if (r == 0) {
        assert_int_equal(topology_check(topology), 0);
        return text;
    }
    assert_int_equal(r, -ENOMEM);
    assert_null(topology);
    return false;
}

static void test_each_allocation(void **state)
{
    const TopologyOptions *options = *state;
    int n = 0;

    while (!try(options, n))
        n++;
    assert_true(n > 5); /* some were made to fail */
}

int main(void)
{
    char path[4096];
    TopologyOptions synthetic = {.synthetic = "numa:2 l3:1 core:20 pu:1 distances=10,20,20,10"};
    TopologyOptions rehearsal = {.synthetic = "l3:2 core:2 pu:2", .rehearse = 4}, xml = {.xml = path};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_each_allocation, &synthetic),
        cmocka_unit_test_prestate(test_each_allocation, &rehearsal),
        cmocka_unit_test_prestate(test_each_allocation, &xml),
    };

    (void)snprintf(path, sizeof(path), "%s/topo/sparse-ids.xml", getenv("NUMAPLACE_FIXTURES"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
