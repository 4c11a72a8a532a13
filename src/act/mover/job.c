/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Jobs: migration requests and their parts, several for each node. */

#include "act/mover/internal.h"

#include <string.h>
#include <utlist.h>

void mover_account_add(MoverAccount *to, const MoverAccount *account)
{
    to->moved_bytes += account->moved_bytes;
    for (size_t i = 0; i < MOVER_REASON_MAX; i++)
        to->refused_bytes[i] += account->refused_bytes[i];
    to->n_huge += account->n_huge;
    to->n_calls += account->n_calls;
    to->blocked_usec += account->blocked_usec;
    to->longest_usec = MAX(to->longest_usec, account->longest_usec);
    to->n_asked += account->n_asked;
    to->asked_usec += account->asked_usec;
}

MoverJob *mover_job_unref(MoverJob *job)
{
    if (!job || --job->n_ref > 0)
        return NULL;
    /* Later lanes use what belongs to the first lane, so they are freed before it. */
    for (uint32_t i = job->parts ? job->n_parts : 0; i-- > 0;) {
        walk_free(job->parts[i].walk);
        hwloc_bitmap_free(job->parts[i].accept_os);
        hwloc_bitmap_free(job->parts[i].help_cpus);
    }
    free(job->parts);
    free(job->ranges);
    hwloc_bitmap_free(job->to_nodes);
    free(job);
    return NULL;
}

/* Collects the nodes on which memory of a part may stay: only its own node if the request is `stripe` or
 * `sent`, else any of the target nodes. */
static int fill_accept(const Mover *mover, const MoverJob *job, NodeIx node, hwloc_bitmap_t ret)
{
    const TopologyNode *nodes = mover->topology->nodes;

    if (job->order.stripe || job->order.sent)
        return hwloc_bitmap_only(ret, nodes[node.i].os_index);
    for (int i = hwloc_bitmap_first(job->to_nodes); i >= 0; i = hwloc_bitmap_next(job->to_nodes, i))
        if (hwloc_bitmap_set(ret, nodes[i].os_index) < 0)
            return -1;
    return 0;
}

/* Collects the CPUs of nodes that help a part. */
static int fill_help(const Mover *mover, const MoverJob *job, NodeIx node, hwloc_bitmap_t ret)
{
    hwloc_const_bitmap_t help = job->order.help_nodes;

    for (int i = help ? hwloc_bitmap_first(help) : -1; i >= 0; i = hwloc_bitmap_next(help, i))
        if (i != node.i && hwloc_bitmap_or(ret, ret, mover->topology->nodes[i].cpus) < 0)
            return -1;
    return 0;
}

static int make_lanes(const Mover *mover, MoverJob *job, uint32_t index, NodeIx node)
{
    MoverPart *lanes = &job->parts[(size_t)index * MOVER_LANES_MAX];

    for (uint32_t i = 0; i < MOVER_LANES_MAX; i++)
        lanes[i] = (MoverPart){.job = job, .index = index, .node = node};
    lanes->accept_os = hwloc_bitmap_alloc();
    lanes->help_cpus = hwloc_bitmap_alloc();
    if (!lanes->accept_os || !lanes->help_cpus || fill_accept(mover, job, node, lanes->accept_os) < 0 ||
        fill_help(mover, job, node, lanes->help_cpus) < 0)
        return -ENOMEM;
    for (uint32_t i = 1; i < MOVER_LANES_MAX; i += 2)
        lanes[i].helps = !hwloc_bitmap_iszero(lanes->help_cpus);
    return 0;
}

static int make_parts(const Mover *mover, MoverJob *job)
{
    uint32_t n_nodes = (uint32_t)hwloc_bitmap_weight(job->to_nodes);
    int node = -1, r = 0;

    job->n_parts = n_nodes * MOVER_LANES_MAX;
    job->parts = calloc(job->n_parts, sizeof(*job->parts));
    if (!job->parts)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_nodes && r == 0; i++) {
        node = hwloc_bitmap_next(job->to_nodes, node);
        r = make_lanes(mover, job, i, (NodeIx){node});
    }
    return r;
}

int mover_job_new(const Mover *mover, const MoverOrder *order, MoverJob **ret)
{
    CLEANUP(mover_job_unref_p) MoverJob *job = calloc(1, sizeof(*job));
    int r;

    if (!job)
        return -ENOMEM;
    job->n_ref = 1;
    job->order = *order;
    job->to_nodes = hwloc_bitmap_dup(order->to_nodes);
    if (!job->to_nodes)
        return -ENOMEM;
    if (order->n_ranges > 0) {
        job->ranges = calloc(order->n_ranges, sizeof(*job->ranges));
        if (!job->ranges)
            return -ENOMEM;
        (void)memcpy(job->ranges, order->ranges, order->n_ranges * sizeof(*job->ranges));
    }
    job->order.ranges = job->ranges;
    job->order.to_nodes = job->to_nodes;
    job->result = (MoverResult){.pid = order->pid, .start_ticks = order->start_ticks};
    r = make_parts(mover, job);
    job->order.help_nodes = NULL; /* belongs to the caller */
    if (r < 0)
        return r;
    *ret = TAKE_PTR(job);
    return 0;
}

static bool are_nodes(const Topology *topology, hwloc_const_bitmap_t nodes)
{
    int last = nodes ? hwloc_bitmap_last(nodes) : -1; /* -1: empty, or infinite */

    return last >= 0 && last < (int)topology->n_nodes;
}

static bool have_memory(const Topology *topology, hwloc_const_bitmap_t nodes)
{
    for (int i = hwloc_bitmap_first(nodes); i >= 0; i = hwloc_bitmap_next(nodes, i))
        if (topology->nodes[i].memory_bytes == 0)
            return false;
    return true;
}

static bool is_range(const MoverOrder *order, size_t i)
{
    const MoverRange *range = &order->ranges[i];

    return range->start < range->end && (i == 0 || range->start >= order->ranges[i - 1].end) &&
           (!order->sent || (range->to.i >= 0 && hwloc_bitmap_isset(order->to_nodes, (unsigned)range->to.i)));
}

int mover_job_check(const Mover *mover, const MoverOrder *order)
{
    if (order->n_ranges > MOVER_RANGES_MAX)
        return -E2BIG;
    if (order->pid <= 0 || order->headroom_percent > 100 || !are_nodes(mover->topology, order->to_nodes) ||
        !have_memory(mover->topology, order->to_nodes) ||
        (order->help_nodes && !are_nodes(mover->topology, order->help_nodes)) ||
        (order->sent && (order->n_ranges == 0 || order->stripe)))
        return -EINVAL;
    for (size_t i = 0; i < order->n_ranges; i++)
        if (!is_range(order, i))
            return -EINVAL;
    return 0;
}

void mover_part_finish(Mover *mover, MoverPart *part, MoverOutcome outcome, int error)
{
    const uint64_t one = 1;
    MoverJob *job = part->job;
    MoverResult *result = &job->result;

    part->open = false;
    mover_account_add(&result->account, &part->account);
    mover_account_add(&mover->total.account, &part->account);
    if (outcome > result->outcome) {
        result->outcome = outcome;
        result->error = error;
    }
    if (--job->n_open > 0)
        return;
    mover->total.n_outcome[result->outcome]++;
    DL_DELETE(mover->jobs, job);
    DL_APPEND(mover->finished, job);
    /* Cannot fail: the counter is far from its maximum. */
    (void)!write(mover->event_fd, &one, sizeof(one));
}

void mover_part_queue(Mover *mover, MoverPart *part)
{
    MoverSeat *seat = &mover->seats[part->node.i];

    DL_APPEND(seat->queue, part);
    seat->n_queued++;
    part->queued = true;
}

MoverPart *mover_part_unqueue(Mover *mover, MoverPart *part)
{
    MoverSeat *seat = &mover->seats[part->node.i];

    DL_DELETE(seat->queue, part);
    seat->n_queued--;
    part->queued = false;
    return part;
}

void mover_part_open(Mover *mover, MoverPart *part)
{
    part->open = true;
    part->job->n_open++;
    mover_part_queue(mover, part);
    mover_worker_call(mover, part->node);
}
