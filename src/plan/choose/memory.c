/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* If the place of a group's memory is not known, it is assumed where its threads ran last while the group has
 * no home (memory is where it was first touched), and at its home from then on. */

#include "plan/choose/memory.h"
#include "plan/group.h"
#include "plan/memory/watch.h"
#include "plan/scan/gather.h"
#include "plan/scan/stall.h"

#include <string.h>

#define KIB 1024U

/* Permille. Even hardly any memory decides between equal nodes. If its place is only guessed, it decides as
 * little as where the group runs (lean_on_present()). The amount is known even then: a group without a home
 * has touched its memory where it ran. Memory of a group with a home may have stayed behind. */
#define LITTLE_DISCOUNT 900U
#define GUESS_DISCOUNT  999U

/* A node that gives this much of what firmware says is full. A process held up by it wants more than it gets:
 * half as much again, until it is seen elsewhere what it wants. Choices of ours; twice as much is not as good
 * (BENCHMARKS.md). */
#define FULL_PERCENT   90U
#define HELD_UP_HALVES 3U

/* The most bytes that pack_solve() takes for a group; more than any machine has. */
#define MEMORY_MAX ((1ULL << 50) - 1)

/* Also true if memory was not looked at since it arrived. By where it was before, two groups would change
 * places whose memory has just done so, and all of it would go back. */
static bool is_on_its_way(const Process *process)
{
    const MemoryMove *move = &process->memory;

    return move->to ||
           (process->node_bytes && move->over_usec > 0 && process->node_bytes_usec <= move->over_usec);
}

static uint64_t bytes_of(const Process *process, uint32_t n_nodes)
{
    uint64_t sum = 0;

    for (uint32_t n = 0; process->node_bytes && n < n_nodes; n++)
        sum += process->node_bytes[n];
    return MAX(process->node_bytes ? sum : process->rss_bytes, 1U);
}

/* In a group of many processes that come and go, some memory is always on its way; more than a quarter counts. */
static void note_moves(Planner *p, uint32_t n_nodes)
{
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];
        PlannerGroup *g;

        if (process->gone || process->group.i < 0)
            continue;
        g = &p->s->groups[process->group.i];
        g->known_bytes += bytes_of(process, n_nodes);
        g->moving_bytes += is_on_its_way(process) ? bytes_of(process, n_nodes) : 0;
        g->moves = g->moving_bytes > g->known_bytes / CHOOSE_MEMORY_MOVING_PART;
    }
}

/* Memory that is being moved counts where it goes. If its place is not known, it may be on any node that the
 * process may run on. */
static bool may_lie_on(const Topology *topology, const Process *process, uint32_t node)
{
    if (process->memory.to)
        return hwloc_bitmap_isset(process->memory.to, node);
    return process->cpuset ? (bool)hwloc_bitmap_intersects(process->cpuset, topology->nodes[node].cpus)
                           : topology->nodes[node].n_cpus > 0;
}

static void add_traffic(const Topology *topology, const Process *process, uint64_t traffic, bool moved,
                        uint64_t *ret)
{
    bool known = process->node_bytes && (!process->memory.to || !moved);
    uint64_t bytes = known ? bytes_of(process, topology->n_nodes) : 0, n_here = 0;

    for (uint32_t n = 0; n < topology->n_nodes && known; n++)
        ret[n] += traffic * (process->node_bytes[n] * 1024 / bytes) / 1024;
    for (uint32_t n = 0; n < topology->n_nodes && !known; n++)
        n_here += may_lie_on(topology, process, n);
    for (uint32_t n = 0; n < topology->n_nodes && n_here > 0; n++)
        ret[n] += may_lie_on(topology, process, n) ? traffic / n_here : 0;
}

/* `moved`: memory that is being moved counts where it goes, else where it lies. */
static void sum_traffic(const Planner *p, bool all, bool moved, uint64_t *ret)
{
    const Topology *topology = p->world->topology;

    memset(ret, 0, topology->n_nodes * sizeof(*ret));
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];
        uint64_t traffic = (uint64_t)process->traffic_mb * process->cpu_permille / 1000;
        bool counts = all || process->group.i < 0 || !p->s->groups[process->group.i].takes_part;

        if (counts && !process->gone && traffic > 0)
            add_traffic(topology, process, traffic, moved, ret);
    }
}

void choose_memory_traffic_on(const Planner *p, bool all, uint64_t *ret)
{
    sum_traffic(p, all, true, ret);
}

/* Adds traffic of memory that is known to lie somewhere and is being moved, at the nodes where it goes. */
static void add_coming_traffic(const Planner *p, uint64_t *ret)
{
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];
        uint64_t traffic = (uint64_t)process->traffic_mb * process->cpu_permille / 1000;

        if (!process->gone && process->node_bytes && process->memory.to && traffic > 0)
            add_traffic(p->world->topology, process, traffic, true, ret);
    }
}

/* The nodes whose memory gives all it can, as far as both are known. Memory counts where it lay when traffic was
 * counted: demand does not change because a migration is requested. Also fills in PlanScratch.node_traffic_mb: until it
 * has moved, memory counts there and where it goes, so that the next plan sees what this one did after its requests. */
static PackNodes full_nodes(Planner *p)
{
    const Topology *topology = p->world->topology;
    uint64_t used[PACK_NODES_MAX];
    PackNodes full = 0;

    sum_traffic(p, true, false, used);
    memcpy(p->s->node_traffic_mb, used, topology->n_nodes * sizeof(*used));
    add_coming_traffic(p, p->s->node_traffic_mb);
    for (uint32_t n = 0; n < topology->n_nodes; n++)
        if (topology->nodes[n].bandwidth_mb > 0 &&
            used[n] * 100 >= (uint64_t)topology->nodes[n].bandwidth_mb * FULL_PERCENT)
            full |= (PackNodes)1 << n;
    return full;
}

/* Whether most of its memory is on nodes that are full. */
static bool is_held_up(const Process *process, PackNodes full, uint32_t n_nodes)
{
    uint64_t there = 0;

    for (uint32_t n = 0; n < n_nodes && full != 0 && process->node_bytes; n++)
        there += full >> n & 1 ? process->node_bytes[n] : 0;
    return there > bytes_of(process, n_nodes) / 2;
}

/* A process of which waiting for memory is not known, or not to be used, may wait all of the time. */
static void note_stall(const Planner *p, PlannerGroup *g, const Process *process, PackNodes full)
{
    const Policy *policy = group_policy(p->world, p->policies, process->workload);
    bool known = process->stall_usec > 0 && policy && policy->evidence == POLICY_EVIDENCE_AUTO;
    uint64_t weight = MAX(process->cpu_permille, 1U);

    g->stall_weight += weight;
    g->stall_sum += weight * (known ? process->stall_permille : 1000U);
    if (known)
        g->traffic_sum += weight * process->traffic_mb *
                          (is_held_up(process, full, p->world->topology->n_nodes) ? HELD_UP_HALVES : 2U) / 2U;
}

static void note_back(const Planner *p, PlannerGroup *g, const Process *process)
{
    CpuMask home = p->world->groups[process->group.i].home_nodes;

    if (!gather_is_undone(p->world, group_policy(p->world, p->policies, process->workload), process)) {
        g->went_back |= home && process->memory.stripe && process->memory.last &&
                        hwloc_bitmap_isincluded(home, process->memory.last);
        return;
    }
    g->back_weight += MAX(process->cpu_permille, 1U);
    for (uint32_t n = 0; n < p->world->topology->n_nodes; n++)
        g->back_nodes |= hwloc_bitmap_isset(process->gather.nodes, n) ? (PackNodes)1 << n : 0;
}

void choose_memory_gather(Planner *p, uint64_t *memory)
{
    uint32_t n_nodes = p->world->topology->n_nodes;
    PackNodes full = full_nodes(p);

    note_moves(p, n_nodes);
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];

        if (process->gone || process->group.i < 0)
            continue;
        p->s->groups[process->group.i].awaits_memory |= process->memory_awaited;
        p->s->groups[process->group.i].use_hidden |= process->use_hidden;
        note_stall(p, &p->s->groups[process->group.i], process, full);
        note_back(p, &p->s->groups[process->group.i], process);
        p->s->groups[process->group.i].awaits_use |=
            process->use_awaited &&
            memory_watch_precedes_home(p->world, group_policy(p->world, p->policies, process->workload),
                                       process);
        if (!process->node_bytes)
            continue;
        p->s->groups[process->group.i].memory_known = true;
        for (uint32_t n = 0; n < n_nodes; n++)
            memory[(size_t)process->group.i * n_nodes + n] =
                MIN(memory[(size_t)process->group.i * n_nodes + n] + process->node_bytes[n], MEMORY_MAX);
    }
}

uint32_t choose_memory_discount(const PlannerGroup *g, const uint64_t *memory, uint32_t n_nodes)
{
    uint32_t most = g->memory_known ? LITTLE_DISCOUNT : GUESS_DISCOUNT;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n_nodes; i++)
        sum += memory[i];
    if (!g->memory_known)
        sum = g->known_bytes;
    return (uint32_t)(most - MIN(sum, PLANNER_MEMORY_MIN) * most / PLANNER_MEMORY_MIN);
}

uint32_t choose_memory_stall_discount(const Planner *p, const PlannerGroup *g)
{
    return rule_holds(p->world, ABLATION_STALL) && g->stall_weight > 0
               ? stall_discount((uint32_t)(g->stall_sum / g->stall_weight))
               : 0;
}

uint64_t choose_memory_traffic(const PlannerGroup *g, const Policy *policy, uint32_t demand_permille)
{
    return policy->follow && g->stall_weight > 0 ? g->traffic_sum / g->stall_weight * demand_permille / 1000
                                                 : 0;
}

/* Half of the memory that counts fully, 16 MiB, is more than a core's share of most caches. */
#define ALONE_DISCOUNT 450U

bool choose_memory_seen(const PlannerGroup *g)
{
    return g->seen_permille * 2 > g->threads_permille;
}

uint32_t choose_memory_alone(const Planner *p, const Group *group)
{
    const PlannerGroup *g = &p->s->groups[group - p->world->groups];

    if (!rule_holds(p->world, ABLATION_ALONE))
        return 0;
    if (group->n_tasks == 1)
        return g->discount_permille <= ALONE_DISCOUNT ? 1000 : 0;
    return choose_memory_seen(g) ? (uint32_t)(g->alone_permille * 1000 / g->seen_permille) : 0;
}

uint32_t choose_memory_few(const PlannerGroup *g)
{
    return choose_memory_seen(g) ? (uint32_t)(g->few_permille * 1000 / g->seen_permille) : 0;
}

uint32_t choose_memory_sorted(const Planner *p, const PlannerGroup *g)
{
    return rule_holds(p->world, ABLATION_SORTED) && choose_memory_seen(g)
               ? (uint32_t)(g->sorted_permille * 1000 / g->seen_permille)
               : 0;
}

/* A KiB for each permille of a CPU, the least that counts: only proportions matter, and it takes hardly any room. */
static void guess_memory(const Group *group, uint32_t n_nodes, const uint64_t *ran, uint64_t *memory)
{
    for (uint32_t i = 0; i < n_nodes; i++)
        memory[i] = KIB * (group->home_nodes ? (uint64_t)hwloc_bitmap_isset(group->home_nodes, i) : ran[i]);
}

/* Among equal nodes, a group that has no home yet stays where it runs (P4): as if one page of 128 were there.
 * That is less than `even`, so the node with more room comes first. */
static void lean_on_present(uint32_t n_nodes, const uint64_t *ran, uint64_t *memory)
{
    uint64_t sum = 0, all = 0;

    for (uint32_t i = 0; i < n_nodes; i++) {
        sum += memory[i];
        all += ran[i];
    }
    for (uint32_t i = 0; i < n_nodes && all > 0; i++)
        memory[i] = MIN(memory[i] + sum / 128 / all * ran[i], MEMORY_MAX);
}

void choose_memory_complete(const Planner *p, const uint64_t *ran, uint64_t *memory)
{
    uint32_t n_nodes = p->world->topology->n_nodes;

    for (size_t i = 0; i < p->s->n_order; i++) {
        size_t index = p->s->order[i].index, first = index * n_nodes;
        const Group *group = &p->world->groups[index];

        if (!p->s->groups[index].memory_known)
            guess_memory(group, n_nodes, ran + first, memory + first);
        else if (!group->home && !group->roams && rule_holds(p->world, ABLATION_LEAN))
            lean_on_present(n_nodes, ran + first, memory + first);
    }
}

/* Uses the chance that a thread and a page are on the same node. */
bool choose_memory_beside(const Planner *p, size_t index, const uint64_t *memory, const uint64_t *ran)
{
    uint32_t n_nodes = p->world->topology->n_nodes;
    uint64_t all = 0, sum = 0, near = 0;

    for (uint32_t i = 0; i < n_nodes; i++) {
        all += ran[i];
        sum += memory[i] / KIB;
    }
    for (uint32_t i = 0; i < n_nodes && all > 0; i++)
        near += memory[i] / KIB * ran[i] / all;
    return !p->s->groups[index].memory_known || near * 4 >= sum * 3;
}
