/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Token buckets that cap moves across nodes, per workload and for the host (I4): over any window of length T
 * at most burst + rate * T of them.
 *
 * Lends and pushes take a token. A recall does not: it brings a thread back to its memory, the owner of the
 * CPU waits for it, and each lend has at most one. Refusing recalls would turn a cap on moves into a way of
 * keeping the wrong ones.
 *
 * Levels are in thousandths and rounded down, so rounding only tightens the cap. Example: burst 4, 2 per
 * second: four lends at once, then one every 500 ms. */

#include "plan/planner.h"

#define MILLI 1000U

uint64_t cap_level(const Bucket *bucket, uint32_t per_sec, uint32_t burst, uint64_t now_usec)
{
    return bucket_level(bucket, (uint64_t)per_sec * MILLI, (uint64_t)burst * MILLI, now_usec);
}

bool cap_has(const Bucket *bucket, uint32_t per_sec, uint32_t burst, uint64_t now_usec, size_t n)
{
    return cap_level(bucket, per_sec, burst, now_usec) / MILLI > n;
}

PlanReason cap_reason(const Planner *p, WorkloadIx workload)
{
    const Policy *policy = p->s->workloads[workload.i].policy;
    uint64_t now = p->world->now_usec;

    if (!cap_has(&p->world->workloads[workload.i].cross_node, policy->cross_node_moves_per_sec,
                 policy->cross_node_burst, now, p->s->workloads[workload.i].n_lent))
        return PLAN_REASON_RATE_WORKLOAD;
    if (!cap_has(&p->world->cross_node, p->limits->cross_node_moves_per_sec, p->limits->cross_node_burst, now,
                 p->n_lent_host))
        return PLAN_REASON_RATE_HOST;
    return PLAN_REASON_INVALID;
}

void cap_take(Bucket *bucket, uint32_t per_sec, uint32_t burst, uint64_t now_usec)
{
    bucket_take(bucket, (uint64_t)per_sec * MILLI, (uint64_t)burst * MILLI, MILLI, now_usec);
}
