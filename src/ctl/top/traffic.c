/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/top/traffic.h"

#include "base/time.h"

/* Counters read at a time, two for each group and cache. */
#define READS_MAX 128U

void traffic_done(TopTraffic *traffic)
{
    bandwidth_done(&traffic->before);
    bandwidth_done(&traffic->after);
    bandwidth_done(&traffic->rate);
    topology_unref(traffic->topology);
    *traffic = (TopTraffic){0};
}

/* Called once. A machine that cannot be read shows nothing. */
static int find(TopTraffic *traffic)
{
    const TopologyOptions whole = {.whole_machine = true};
    CLEANUP_FREE char *error = NULL;
    int r;

    traffic->tried = true;
    if (!bandwidth_mounted(traffic->root_fd))
        return -ENOENT;
    r = traffic->topology ? 0 : topology_load(&whole, &traffic->topology, &error);
    if (r == 0)
        r = bandwidth_find(traffic->root_fd, traffic->topology, &traffic->before);
    if (r == 0)
        r = bandwidth_find(traffic->root_fd, traffic->topology, &traffic->after);
    return r;
}

static int count(TopTraffic *traffic)
{
    Bandwidth last = traffic->before;
    uint64_t now_usec;
    int r;

    traffic->before = traffic->after;
    traffic->after = last;
    r = bandwidth_count(traffic->root_fd, &traffic->after, MAX(READS_MAX / (2 * traffic->after.n), 1U));
    now_usec = time_now_usec();
    if (r == 0 && traffic->before_usec > 0)
        r = bandwidth_rate(&traffic->before, &traffic->after, now_usec - traffic->before_usec,
                           &traffic->rate);
    traffic->before_usec = now_usec;
    return r;
}

static TopNode *node_of(TopSnapshot *snapshot, uint32_t number)
{
    for (uint32_t i = 0; i < snapshot->n_nodes; i++)
        if (snapshot->nodes[i].number == number)
            return &snapshot->nodes[i];
    return NULL;
}

int traffic_look(TopTraffic *traffic, TopSnapshot *snapshot)
{
    int r = traffic->tried ? traffic->after.n > 0 ? 0 : -ENOENT : find(traffic);

    if (r == 0)
        r = count(traffic);
    if (r < 0) {
        /* Not retried until the user asks for it again. */
        int root_fd = traffic->root_fd;

        traffic_done(traffic);
        *traffic = (TopTraffic){.root_fd = root_fd, .tried = true};
        return r == -ENOMEM ? r : 0;
    }
    for (uint32_t i = 0; i < traffic->topology->n_nodes; i++) {
        TopNode *node = node_of(snapshot, traffic->topology->nodes[i].os_index);

        if (node)
            node->bandwidth_known =
                bandwidth_of_node(&traffic->rate, traffic->topology, i, &node->bandwidth_bytes);
    }
    return 0;
}
