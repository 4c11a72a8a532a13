/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "topo/build.h"

int build_llc_nodes(Topology *topology)
{
    for (uint32_t i = 0; i < topology->n_llcs; i++) {
        int r = topology_cpus_to_nodes(topology, topology->llcs[i].cpus, topology->llcs[i].nodes);

        if (r < 0)
            return r;
    }
    return 0;
}
