/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The strength of convergence (P16): the largest node's share of the fault averages. It closes two loops: a converged
 * group is looked at less, and is left where it is.
 *
 * Strength 256 of 1024 (four nodes alike) asks for windows of 392 MB, 512 for 272, 768 for 152, 921 for 80, 1024 for
 * 32: twelve times less work once all is together. The averages forget half per sequence, so two sequences after a
 * phase change (four nodes alike again) the strength is 448, and windows are 302 MB.
 *
 * Between thaw and freeze nothing changes, so a group at 0.9 does not freeze and thaw in turns. */

#include "plan/scan/converge.h"

#include "base/util.h"

#define MEGABYTE     (UINT64_C(1) << 20)
#define WINDOW_SHARE 16U /* 512 / 32, v18's limits */

uint32_t converge_share(const uint64_t *amounts, uint32_t n_nodes, NodeIx *ret_node)
{
    uint64_t total = 0, most = 0;

    *ret_node = NODE_NONE;
    for (uint32_t i = 0; i < n_nodes; i++) {
        total += amounts[i];
        if (amounts[i] > most) {
            most = amounts[i];
            ret_node->i = (int32_t)i;
        }
    }
    return total ? (uint32_t)(most * CONVERGE_ONE / total) : 0;
}

bool converge_is_frozen(bool frozen, uint32_t strength)
{
    return strength >= (frozen ? CONVERGE_THAW : CONVERGE_FREEZE);
}

uint32_t converge_touches(const Touches *touches, NodeIx *ret_node)
{
    uint64_t total = 0, most = 0;

    *ret_node = NODE_NONE;
    for (uint32_t i = 0; i < touches->n_nodes; i++) {
        uint64_t sum = 0;

        for (size_t k = 0; k < touches->n_threads; k++)
            sum += faults_memory(&touches->threads[k].faults, (NodeIx){(int32_t)i});
        total += sum;
        if (sum > most) {
            most = sum;
            ret_node->i = (int32_t)i;
        }
    }
    return total ? (uint32_t)(most * CONVERGE_ONE / total) : 0;
}

/* For threads with a home node, all memory on one node would not be convergence. */
static uint32_t local_share(const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n);
    uint64_t total = 0, local = 0;

    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];

        if (task->gone || !task->use || task->home_node.i < 0)
            continue;
        total += world_sum_nodes(world, task->use->pages);
        local += task->use->pages[task->home_node.i];
    }
    return total ? (uint32_t)(local * CONVERGE_ONE / total) : CONVERGE_ONE;
}

uint32_t converge_use(const World *world, const Process *process, const Touches *touches)
{
    size_t n, first = world_process_tasks(world, process, &n);
    NodeIx node;

    for (size_t i = first; i < first + n; i++)
        if (!world->tasks[i].gone && world->tasks[i].home_node.i >= 0)
            return local_share(world, process);
    return converge_touches(touches, &node);
}

uint64_t converge_window_bytes(uint64_t most_bytes, uint32_t strength)
{
    uint32_t missing = CONVERGE_ONE - MIN(strength, CONVERGE_ONE);
    uint64_t least = most_bytes / WINDOW_SHARE;

    least += (most_bytes - least) / CONVERGE_ONE * missing;
    return MAX(least / MEGABYTE * MEGABYTE, MIN(most_bytes, 2 * MEGABYTE));
}
