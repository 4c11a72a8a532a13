/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What may keep memory from moving: policy, pressure, residency, bandwidth (P15), room (P19) and rate (P20). */

#include "plan/memory/follow-internal.h"
#include "plan/memory/follow.h"

/* Being local is worth a fourth of the bandwidth it would then get, which is a fifth of what it gets now. */
#define NEAR_PART 4U
#define MB        1000000U

bool follow_is_kernels(const World *world, const Policy *policy, const Process *process, CpuMask to)
{
    return to && hwloc_bitmap_weight(to) > 1 && planner_is_kernels(world, policy, process->use_hidden);
}

bool follow_may(const Follow *f)
{
    if (f->p->world->topology->rehearsal > 0)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_REHEARSAL, 0, 0);
    if (!f->policy->follow)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_FOLLOW_OFF, 0, 0);
    return true;
}

bool follow_is_time(const Follow *f)
{
    const World *world = f->p->world;
    const MemoryMove *memory = &f->process->memory;

    if (follow_is_kernels(world, f->policy, f->process, f->to))
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_KERNEL_BALANCES, 0, 0);
    if (planner_tries_pool(world, f->group) && follow_home_usec(f) < world->now_usec)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_POOLED, 0, 0);
    if (world->memory_pressure_permille > f->policy->max_pressure_permille)
        return follow_refuse(f, MECHANISM_SHORTAGE, PLAN_REASON_MEMORY_PRESSURE,
                             world->memory_pressure_permille, f->policy->max_pressure_permille);
    if (world->now_usec < memory->until_usec)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_RESIDENCY,
                             world_since(world, memory->over_usec),
                             memory->until_usec - MIN(memory->over_usec, memory->until_usec));
    return true;
}

/* Bandwidth of a node that other processes leave, MB/s. A share of theirs is not counted: one process after
 * the other would take it, until all have less than before. */
static uint64_t left_on(const Follow *f, uint32_t node, uint64_t own_mb)
{
    uint64_t gives = f->p->world->topology->nodes[node].bandwidth_mb, all = f->p->s->node_traffic_mb[node];
    uint64_t others = all - MIN(all, own_mb);

    return gives - MIN(others, gives);
}

/* Whether memory goes to fewer nodes than it lies on, those with an eighth of it or more. ret_own[]: the part
 * of `moves` on each. Also false if the bandwidth of one of them is not known. */
static bool is_gathered(const Follow *f, uint64_t moves, uint64_t *ret_own)
{
    const Topology *topology = f->p->world->topology;
    uint64_t all = world_sum_nodes(f->p->world, f->process->node_bytes);
    int n = 0;

    for (uint32_t i = 0; i < topology->n_nodes && all > 0; i++) {
        ret_own[i] = moves * (f->process->node_bytes[i] * 1024 / all) / 1024;
        n += f->process->node_bytes[i] >= all / 8;
        if (topology->nodes[i].bandwidth_mb == 0 && (hwloc_bitmap_isset(f->to, i) || ret_own[i] > 0))
            return false;
    }
    return n > hwloc_bitmap_weight(f->to);
}

/* Memory on several nodes is served by all of them. Being local is worth a fifth of that, a choice of ours. */
static bool is_fed(const Follow *f, uint64_t moves, const uint64_t *own)
{
    uint32_t n_nodes = f->p->world->topology->n_nodes;
    uint64_t now = 0, then = 0, outside = 0;

    for (uint32_t i = 0; i < n_nodes; i++)
        outside += hwloc_bitmap_isset(f->to, i) ? 0 : own[i];
    outside /= (unsigned)hwloc_bitmap_weight(f->to);
    for (uint32_t i = 0; i < n_nodes; i++) {
        bool comes = hwloc_bitmap_isset(f->to, i);

        now += MIN(own[i], left_on(f, i, own[i]));
        then += comes ? MIN(own[i] + outside, left_on(f, i, own[i])) : 0;
    }
    return then + then / NEAR_PART >= now ||
           follow_refuse(f, MECHANISM_SHORTAGE, PLAN_REASON_BANDWIDTH, then * MB, now * MB);
}

bool follow_is_fed(const Follow *f)
{
    const World *world = f->p->world;
    uint64_t moves = (uint64_t)f->process->traffic_mb * f->process->cpu_permille / 1000;
    uint64_t own[PACK_NODES_MAX] = {0};

    return moves == 0 || !f->to || !f->process->node_bytes || world->topology->n_nodes > PACK_NODES_MAX ||
           stripe_is(f->rule) || !rule_holds(world, ABLATION_TRAFFIC) || !is_gathered(f, moves, own) ||
           is_fed(f, moves, own);
}

void follow_speak_for_traffic(const Follow *f)
{
    uint64_t moves = (uint64_t)f->process->traffic_mb * f->process->cpu_permille / 1000;

    if (f->p->world->topology->n_nodes > PACK_NODES_MAX)
        return;
    for (int i = hwloc_bitmap_first(f->to); i >= 0; i = hwloc_bitmap_next(f->to, i))
        f->p->s->node_traffic_mb[i] += moves / (unsigned)hwloc_bitmap_weight(f->to);
}

/* P19: free bytes, less headroom, reserve and what is on its way. */
static uint64_t node_room(const Follow *f, uint32_t node, uint64_t reserve_bytes)
{
    const World *world = f->p->world;
    uint64_t size = world->topology->nodes[node].memory_bytes;
    uint64_t keep = size / 100 * f->policy->headroom_percent + reserve_bytes + f->p->s->node_incoming[node];
    uint64_t have = world->nodes[node].free_known ? world->nodes[node].free_bytes : 0;

    return have - MIN(have, keep);
}

uint64_t follow_reserve_bytes(const Follow *f)
{
    return f->to ? f->g->grown_bytes / (uint64_t)hwloc_bitmap_weight(f->to) : 0;
}

/* When interleaving, nodes that have their share get nothing. */
bool follow_has_room(const Follow *f)
{
    uint64_t share = stripe_is(f->rule) ? stripe_share(f) : UINT64_MAX, room = 0;

    for (int i = f->to ? hwloc_bitmap_first(f->to) : -1; i >= 0; i = hwloc_bitmap_next(f->to, i))
        if (share == UINT64_MAX || f->process->node_bytes[i] < share)
            room += node_room(f, (uint32_t)i, follow_reserve_bytes(f));
    return room > MAX(f->few_bytes, TOUCHES_BLOCK_BYTES)
               ? true
               : follow_refuse(f, MECHANISM_SHORTAGE, PLAN_REASON_HEADROOM, room,
                               MIN(f->outside_bytes, f->few_bytes));
}

bool follow_has_rate(const Follow *f)
{
    const World *world = f->p->world;
    const Plan *plan = f->p->plan;
    bool taken = false;

    if (f->policy->rate_limit_bytes == 0)
        return true;
    for (size_t i = 0; i < world->n_processes && !taken; i++)
        taken = !world->processes[i].gone && world->processes[i].workload.i == f->process->workload.i &&
                world->processes[i].memory.to &&
                hwloc_bitmap_intersects(world->processes[i].memory.to, f->to);
    for (size_t i = plan->n_actions; i > 0 && plan->actions[i - 1].kind == PLAN_KIND_MOVE_PAGES; i--)
        taken |= plan->actions[i - 1].workload.i == f->process->workload.i &&
                 hwloc_bitmap_intersects(plan->actions[i - 1].memory.to, f->to);
    return taken ? follow_refuse(f, MECHANISM_RATE, PLAN_REASON_RATE_MEMORY, f->outside_bytes,
                                 f->policy->rate_limit_bytes)
                 : true;
}
