/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Machines from synthetic descriptions. */

#include "topo/topology.h"
#include "unit-test.h"

static inline Topology *test_machine(const char *synthetic)
{
    Topology *topology = NULL;
    CLEANUP_FREE char *error = NULL;

    if (topology_load(&(TopologyOptions){.synthetic = synthetic}, &topology, &error) < 0)
        fail_msg("%s", error);
    assert_null(error);
    return topology;
}
