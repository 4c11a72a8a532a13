/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the mover would do (P18 to P20): it moves pages of a process to the nodes of its request, at the speed at which
 * one CPU copies or at the rate of the request, as long as the nodes have room. Each node has one mover. It runs
 * before all threads: on an idle CPU of its node if there is one, else in the time of a thread that runs there.
 *
 * Left out: refused pages; waiting of threads that touch a page in flight; and exchange of blocks when interleaving
 * (P17): here a node with too much of a region gives pages away and gets none in return. */

#include "plan/memory/follow.h"
#include "sim/agent/agent.h"

#include <string.h>

/* Time to copy a page, with its share of finding it. */
#define MOVE_NSEC 1000U

/* The room of a node in pages (P19). */
static uint64_t room(const Engine *e, const Agent *agent, const AgentOrder *order, uint32_t node)
{
    const NodeLoad *load = &agent->world->nodes[node];
    uint64_t keep =
        e->topology->nodes[node].memory_bytes / 100 * order->headroom_percent + order->reserve_bytes;

    return (load->free_bytes - MIN(load->free_bytes, keep)) / ENGINE_PAGE_BYTES;
}

/* How many pages of a region the node may hold: none outside the request's nodes. When interleaving, each of
 * these has an equal part, and the first ones one page of the remainder. */
static uint64_t due_pages(const Engine *e, const AgentOrder *order, int32_t region, uint32_t node)
{
    uint64_t n_pages = e->regions[region].n_pages;
    uint64_t n = (uint64_t)hwloc_bitmap_weight(order->to), before = 0;

    if (!hwloc_bitmap_isset(order->to, node))
        return 0;
    if (!order->stripe)
        return n_pages;
    for (uint32_t i = 0; i < node; i++)
        before += (bool)hwloc_bitmap_isset(order->to, i);
    return n_pages / n + (before < n_pages % n);
}

/* How many pages of a region exceed what their nodes may hold. */
static uint64_t misplaced_pages(const Engine *e, const AgentOrder *order, int32_t region)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        uint64_t pages = memory_pages(e, region)[i];

        n += pages - MIN(pages, due_pages(e, order, region, i));
    }
    return n;
}

/* Pages of the region that the node may take now. When interleaving, what it lacks. Otherwise an equal part
 * for this node and each later one, because blocks go by address. */
static uint64_t fair_pages(const Engine *e, const AgentOrder *order, int32_t region, uint32_t node)
{
    uint64_t due = due_pages(e, order, region, node), pages = memory_pages(e, region)[node], n_left = 0;

    if (order->stripe)
        return due - MIN(pages, due);
    for (uint32_t i = node; i < e->n_nodes; i++)
        n_left += (bool)hwloc_bitmap_isset(order->to, i);
    n_left = MAX(n_left, (uint64_t)1);
    return (misplaced_pages(e, order, region) + n_left - 1) / n_left;
}

/* Moves up to `n` pages of the region to the node, from nodes that hold too many. Returns the number. */
static uint64_t take_region(const Engine *e, const AgentOrder *order, int32_t region, uint32_t node,
                            uint64_t n)
{
    uint32_t *pages = memory_pages(e, region);
    uint64_t taken = 0;

    n = MIN(n, fair_pages(e, order, region, node));
    for (uint32_t i = 0; i < e->n_nodes; i++) {
        uint64_t keeps = due_pages(e, order, region, i);
        uint32_t some = (uint32_t)MIN(pages[i] - MIN((uint64_t)pages[i], keeps), n - taken);

        pages[i] -= some;
        pages[node] += some;
        taken += some;
    }
    return taken;
}

/* The same for all regions of the family. */
static uint64_t take(const Engine *e, const Family *family, const AgentOrder *order, uint32_t node,
                     uint64_t n)
{
    uint64_t taken = 0;
    int32_t region;

    for (uint32_t k = 0; (region = memory_region_at(e, family, k)) >= 0; k++)
        taken += take_region(e, order, region, node, n - taken);
    return taken;
}

static uint64_t count_misplaced(const Engine *e, const Family *family, const AgentOrder *order)
{
    uint64_t n = 0;
    int32_t region;

    for (uint32_t k = 0; (region = memory_region_at(e, family, k)) >= 0; k++)
        n += misplaced_pages(e, order, region);
    return n;
}

/* Whether the node may take any pages; when interleaving, a node with too many may not. */
static bool lacks(const Engine *e, const Family *family, const AgentOrder *order, uint32_t node)
{
    int32_t region;

    for (uint32_t k = 0; (region = memory_region_at(e, family, k)) >= 0; k++)
        if (fair_pages(e, order, region, node) > 0)
            return true;
    return false;
}

/* Charges the time of copying to a thread of the node, unless a CPU of the node is idle. */
static void charge(Engine *e, uint32_t node, uint64_t nsec)
{
    int32_t victim = ENGINE_NONE;

    for (uint32_t i = 0; i < e->topology->cpu_limit; i++) {
        const Cpu *cpu = &e->cpus[i];

        if (!cpu->present || cpu->node != (int32_t)node)
            continue;
        if (cpu->current < 0)
            return;
        victim = cpu->current;
    }
    if (victim >= 0)
        e->threads[victim].debt_nsec += nsec;
}

static void end_order(Engine *e, Agent *agent, AgentFamily *seen, FollowEnd end)
{
    const AgentOrder *order = &seen->order;

    follow_over(agent->world, e->variant->policies,
                &(FollowResult){
                    .subject = order->subject,
                    .group_id = order->group_id,
                    .end = end,
                    .time_usec = agent->world->now_usec,
                    .moved_bytes = order->moved_pages * ENGINE_PAGE_BYTES,
                    .blocked_usec = order->moved_pages * MOVE_NSEC / NSEC_PER_USEC,
                });
    if (seen->scan)
        sorting_over(&seen->scan->watch.sorting, end);
    free(seen->order.ranges);
    seen->order = (AgentOrder){0};
}

/* Moves pages to one node in this tick. Returns the number; 0: it has no room. */
static uint64_t move_to(Engine *e, Agent *agent, const Family *family, AgentOrder *order, uint32_t node,
                        uint64_t nsec)
{
    uint64_t n = nsec / MOVE_NSEC, moved;

    if (order->rate_bytes > 0)
        n = MIN(n, order->rate_bytes / ENGINE_PAGE_BYTES * (nsec / NSEC_PER_USEC) / USEC_PER_SEC);
    n = MIN(n, agent->node_nsec[node] / MOVE_NSEC);
    moved = take(e, family, order, node, MIN(n, room(e, agent, order, node)));
    agent->node_nsec[node] -= moved * MOVE_NSEC;
    agent->world->nodes[node].free_bytes -=
        MIN(agent->world->nodes[node].free_bytes, moved * ENGINE_PAGE_BYTES);
    charge(e, node, moved * MOVE_NSEC);
    return moved;
}

/*
 * Ranges: block by block
 */

typedef struct Ranges {
    uint64_t n_moved, n_left, n_blocked; /* pages moved; blocks not moved, and those of them without room */
} Ranges;

static void move_block(Engine *e, Agent *agent, uint32_t index, uint64_t address, NodeIx to, Ranges *ranges)
{
    AgentFamily *seen = &agent->families[index];
    AgentOrder *order = &seen->order;
    NodeLoad *load = &agent->world->nodes[to.i];
    uint64_t nsec = TOUCHES_BLOCK_BYTES / ENGINE_PAGE_BYTES * MOVE_NSEC, n;
    bool blocked = room(e, agent, order, (uint32_t)to.i) < TOUCHES_BLOCK_BYTES / ENGINE_PAGE_BYTES;

    ranges->n_left++;
    ranges->n_blocked += blocked;
    if (blocked || agent->node_nsec[to.i] < nsec ||
        (order->rate_bytes > 0 && order->credit_bytes < TOUCHES_BLOCK_BYTES))
        return;
    n = agent_scan_move(e, seen->scan, &e->families[index], address, to);
    agent->node_nsec[to.i] -= nsec;
    order->credit_bytes -= MIN(order->credit_bytes, TOUCHES_BLOCK_BYTES);
    load->free_bytes -= MIN(load->free_bytes, n * ENGINE_PAGE_BYTES);
    charge(e, (uint32_t)to.i, nsec);
    ranges->n_left--;
    ranges->n_moved += n;
}

static Ranges move_ranges(Engine *e, Agent *agent, uint32_t index, uint64_t nsec)
{
    const AgentFamily *seen = &agent->families[index];
    AgentOrder *order = &agent->families[index].order;
    Ranges ranges = {0};

    order->credit_bytes +=
        order->rate_bytes * (uint64_t)hwloc_bitmap_weight(order->to) * (nsec / NSEC_PER_USEC) / USEC_PER_SEC;
    for (size_t i = 0; i < order->n_ranges; i++) {
        const PlanRange *range = &order->ranges[i];

        for (uint64_t at = range->start; at < range->end;
             at = (at / TOUCHES_BLOCK_BYTES + 1) * TOUCHES_BLOCK_BYTES) {
            NodeIx to = range->to.i >= 0 ? range->to : sorting_stripe_node(order->to, at);
            NodeIx from = agent_scan_node(seen->scan, at);

            if (from.i >= 0 && from.i != to.i)
                move_block(e, agent, index, at, to, &ranges);
        }
    }
    return ranges;
}

/* A family that is no longer sampled has no blocks to move. */
static void move_family_ranges(Engine *e, Agent *agent, uint32_t index, uint64_t nsec)
{
    AgentFamily *seen = &agent->families[index];
    Ranges ranges = {0};

    if (seen->scan)
        ranges = move_ranges(e, agent, index, nsec);
    seen->order.moved_pages += ranges.n_moved;
    e->tallies[e->families[index].workload].count[SIM_METRIC_PAGES_MOVED] += (int64_t)ranges.n_moved;
    follow_progress(agent->world, seen->order.subject, ranges.n_moved * ENGINE_PAGE_BYTES);
    if (ranges.n_left == 0)
        end_order(e, agent, seen, seen->scan ? FOLLOW_END_DONE : FOLLOW_END_CANCELLED);
    else if (ranges.n_blocked == ranges.n_left)
        end_order(e, agent, seen, FOLLOW_END_NO_ROOM);
}

static void move_family(Engine *e, Agent *agent, uint32_t index, uint64_t nsec)
{
    const Family *family = &e->families[index];
    AgentFamily *seen = &agent->families[index];
    AgentOrder *order = &seen->order;
    const Process *process = world_process(agent->world, order->subject.pid);
    uint64_t moved = 0, free = 0;

    if (family->n_alive == 0 || !process || !follow_holds(agent->world, e->variant->policies, process)) {
        end_order(e, agent, seen, FOLLOW_END_CANCELLED);
        return;
    }
    if (order->ranges) {
        move_family_ranges(e, agent, index, nsec);
        return;
    }
    for (int i = hwloc_bitmap_first(order->to); i >= 0; i = hwloc_bitmap_next(order->to, i)) {
        free += lacks(e, family, order, (uint32_t)i) ? room(e, agent, order, (uint32_t)i) : 0;
        moved += move_to(e, agent, family, order, (uint32_t)i, nsec);
    }
    order->moved_pages += moved;
    e->tallies[family->workload].count[SIM_METRIC_PAGES_MOVED] += (int64_t)moved;
    if (seen->scan && moved > 0)
        agent_scan_place(e, seen->scan, family);
    follow_progress(agent->world, order->subject, moved * ENGINE_PAGE_BYTES);
    if (count_misplaced(e, family, order) == 0)
        end_order(e, agent, seen, FOLLOW_END_DONE);
    else if (free == 0)
        end_order(e, agent, seen, FOLLOW_END_NO_ROOM);
}

void agent_move(Engine *e, Agent *agent)
{
    uint64_t nsec = e->now_nsec - agent->moved_nsec;
    bool any = false;

    agent->moved_nsec = e->now_nsec;
    for (uint32_t i = 0; i < e->n_families; i++)
        any |= agent->families[i].order.to != NULL;
    if (!any)
        return;
    for (uint32_t i = 0; i < e->n_nodes; i++)
        agent->node_nsec[i] = nsec;
    for (uint32_t i = 0; i < e->topology->cpu_limit; i++)
        if (e->cpus[i].present && e->cpus[i].current >= 0) {
            cpu_account(e, i);
            cpu_touch(e, i);
        }
    for (uint32_t i = 0; i < e->n_families; i++)
        if (agent->families[i].order.to)
            move_family(e, agent, i, nsec);
}

static PlanRange *copy_ranges(const PlanMemory *memory)
{
    PlanRange *copy = memory->ranges ? calloc(memory->n_ranges + 1, sizeof(*copy)) : NULL;

    if (copy)
        memcpy(copy, memory->ranges, memory->n_ranges * sizeof(*copy));
    return copy;
}

PlanOutcome agent_order(Engine *e, Agent *agent, const PlanAction *action)
{
    const Family *family = agent_family(e, action->subject.pid);
    const PlanMemory *memory = &action->memory;
    AgentOrder *order;

    if (!family)
        return PLAN_OUTCOME_GONE;
    order = &agent->families[family - e->families].order;
    if (order->to)
        return PLAN_OUTCOME_RETRY;
    *order = (AgentOrder){
        .to = intern_mask(e->pool, memory->to),
        .subject = action->subject,
        .group_id = action->group_id,
        .rate_bytes = memory->rate_bytes,
        .reserve_bytes = memory->reserve_bytes,
        .headroom_percent = memory->headroom_percent,
        .stripe = memory->stripe,
        .ranges = copy_ranges(memory),
        .n_ranges = memory->n_ranges,
    };
    if (!order->to || (memory->ranges && !order->ranges))
        e->error = -ENOMEM;
    return PLAN_OUTCOME_DONE;
}
