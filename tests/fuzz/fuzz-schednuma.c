/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "kernel/sched-numa.h"

#include <inttypes.h>
#include <stdio.h>

static char *format(const SchedNuma *numa)
{
    size_t size = 1024 + (size_t)numa->n_nodes * 256, n;
    char *text = malloc(size);

    if (!text)
        return NULL;
    n = (size_t)snprintf(text, size,
                         "x (1, #threads: 1)\nmm->numa_scan_seq : %" PRIu32 "\nnuma_preferred_nid : %" PRId32
                         "\ntotal_numa_faults : %" PRIu64 "\ncurrent_node=0, numa_group_id=%d\n",
                         numa->scan_sequence, numa->preferred_node, numa->total_faults, numa->group);
    for (uint32_t i = 0; i < numa->n_nodes; i++) {
        const SchedNumaNode *node = &numa->nodes[i];

        n += (size_t)snprintf(text + n, size - n,
                              "numa_faults node=%" PRIu32 " task_private=%" PRIu64 " task_shared=%" PRIu64
                              " group_private=%" PRIu64 " group_shared=%" PRIu64 "\n",
                              node->node, node->task_private, node->task_shared, node->group_private,
                              node->group_shared);
    }
    return text;
}

static bool same_nodes(const SchedNuma *a, const SchedNuma *b)
{
    if (a->n_nodes != b->n_nodes)
        return false;
    for (uint32_t i = 0; i < a->n_nodes; i++)
        if (a->nodes[i].node != b->nodes[i].node || a->nodes[i].task_private != b->nodes[i].task_private ||
            a->nodes[i].task_shared != b->nodes[i].task_shared ||
            a->nodes[i].group_private != b->nodes[i].group_private ||
            a->nodes[i].group_shared != b->nodes[i].group_shared)
            return false;
    return true;
}

/* parse(format(x)) == x. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static SchedNuma numa, again;
    CLEANUP_FREE char *text = fuzz_text(data, size), *formatted = NULL;
    pid_t group;

    if (sched_numa_parse_status(text, &group) == 0 && group < 0)
        abort();
    if (sched_numa_parse(text, &numa) < 0)
        return 0;
    formatted = format(&numa);
    if (!formatted)
        return 0;
    if (sched_numa_parse(formatted, &again) < 0 || again.preferred_node != numa.preferred_node ||
        again.group != numa.group || again.total_faults != numa.total_faults ||
        again.scan_sequence != numa.scan_sequence || !same_nodes(&again, &numa))
        abort();
    return 0;
}
