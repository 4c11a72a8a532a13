/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Active nodes (P12). A thread that strays for a moment leaves traces of its group on other nodes; these must
 * not count as nodes where the group lives. Example: CPU time of 60, 25 and 15 % on three nodes makes two
 * active ones: 3 * 25 > 60, 3 * 15 < 60. */

#include "plan/home/active.h"

#include "base/util.h"

int active_nodes(const uint64_t *used, uint32_t n_nodes, hwloc_bitmap_t ret)
{
    uint64_t most = 0;

    hwloc_bitmap_zero(ret);
    for (uint32_t i = 0; i < n_nodes; i++)
        most = MAX(most, used[i]);
    for (uint32_t i = 0; i < n_nodes; i++)
        if (used[i] * ACTIVE_FRACTION > most && hwloc_bitmap_set(ret, i) < 0)
            return -ENOMEM;
    return 0;
}

bool active_is_local(hwloc_const_bitmap_t active, FaultsKind kind, NodeIx cpu_node, NodeIx memory_node)
{
    if (cpu_node.i == memory_node.i)
        return true;
    return kind == FAULTS_KIND_SHARED && hwloc_bitmap_isset(active, (unsigned)cpu_node.i) &&
           hwloc_bitmap_isset(active, (unsigned)memory_node.i);
}
