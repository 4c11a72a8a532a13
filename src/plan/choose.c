/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes the policy leaves to us (Mode=auto, compress, spread, interleave): every group the machine has becomes one of a
 * packing problem (P15, plan/pack.h), and the answer is its home. This file is the translation there and back.
 *
 * - What a group wants is what its threads ran and waited on average. One without a home yet is taken by this tick too,
 *   because an average of a group that has just begun says nothing; and ExpectWidth= is the least (P5: threads that sleep
 *   at start are invisible to whoever looks at the load alone).
 * - What others use, who are not ours to place, goes wherever the kernel finds room. So it is taken from all nodes in
 *   proportion, and only as whole CPUs: a share that changes from tick to tick must not move anybody.
 * - A group whose memory is not known has it where its threads ran last, as long as it has no home (memory is where it was
 *   first touched), and at its home from then on.
 * - Groups that hardly run get no home, which costs system calls and gives them nothing; one that they have they keep.
 * - A group that needs every node is not confined: it roams, and that is a decision as lasting as a home. */

#include "plan/choose.h"
#include "plan/group.h"
#include "plan/pack.h"

#include <string.h>

/* Wanting less than this, a group gets no home, and keeps the one it has: the bound that makes a CPU idle. */
#define IDLE_PERMILLE 50U

/* Of the CPU time threads want, so much more waiting than before is worse, and less is noise. */
#define WORSE_PERMILLE 100U

/* Bytes of a group, more than any machine has; what pack_solve() takes. */
#define MEMORY_MAX ((1ULL << 50) - 1)

static_assert(CHOOSE_GROUPS_MAX <= PACK_GROUPS_MAX, "more groups than can be packed");

bool choose_mode(const Policy *policy)
{
    return policy->mode != POLICY_MODE_NONE && policy->mode != POLICY_MODE_FIXED;
}

static PackMode pack_mode(const Policy *policy)
{
    switch (policy->mode) {
    case POLICY_MODE_COMPRESS:
        return PACK_MODE_COMPRESS;
    case POLICY_MODE_SPREAD:
        return PACK_MODE_SPREAD;
    case POLICY_MODE_INTERLEAVE:
        return PACK_MODE_INTERLEAVE;
    default:
        return PACK_MODE_AUTO;
    }
}

static PackNodes nodes_of(CpuMask set)
{
    PackNodes nodes = 0;

    for (int i = set ? hwloc_bitmap_first(set) : -1; i >= 0 && i < (int)PACK_NODES_MAX;
         i = hwloc_bitmap_next(set, i))
        nodes |= (PackNodes)1 << i;
    return nodes;
}

/* Loads */

/* Sums over the tasks of each group, into PlannerGroup, and per node into `ran`. */
static void gather_loads(Planner *p, uint64_t *ran)
{
    const Topology *topology = p->world->topology;

    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        const Process *process = &p->world->processes[task->process.i];
        const TopologyCpu *cpu = topology_cpu(topology, task->last_cpu);
        PlannerGroup *g;

        if (task->gone || process->gone || process->group.i < 0)
            continue;
        g = &p->s->groups[process->group.i];
        g->n_threads++;
        g->n_placeable +=
            planner_placeable(group_policy(p->world, p->policies, process->workload), process, task);
        g->ran += task->run_permille;
        g->wants_now += task->run_permille + task->wait_permille;
        g->waits_mean += task->wait_ewma_permille;
        g->wants += task->run_ewma_permille + task->wait_ewma_permille;
        if (cpu)
            ran[(size_t)process->group.i * topology->n_nodes + (size_t)cpu->node.i] +=
                MAX(task->run_permille, task->run_ewma_permille);
    }
}

static uint32_t group_demand(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    const PlannerGroup *g = &p->s->groups[index];
    /* Also one that was given its home at this instant, so that a plan made again is the same (I9). */
    bool settled = (group->home || group->roams) && group->last_home_usec < p->world->now_usec;
    uint64_t demand = settled ? g->wants : MAX(g->wants, g->wants_now);
    uint64_t expected = p->s->workloads[group->workload.i].policy->expect_width * 1000ULL;

    return (uint32_t)MIN(MAX(demand, expected), PACK_DEMAND_MAX);
}

/* Nodes */

/* What is not known is taken as if nothing were used: a packing that is a little too hopeful does no harm, because pages
 * that find no room stay where they are. */
static uint64_t free_memory(const World *world, uint32_t node)
{
    return world->nodes[node].free_known ? world->nodes[node].free_bytes
                                         : world->topology->nodes[node].memory_bytes;
}

/* CPUs of each node that may be used, and what of them all is left by those who are not packed. */
static void fill_nodes(Planner *p, PackNode *nodes, uint64_t ran_by_groups)
{
    const Topology *topology = p->world->topology;
    uint64_t busy = 0, capacity = 0, others;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        nodes[i] = (PackNode){.key = UINT32_MAX - i, .free_bytes = free_memory(p->world, i)};
    for (uint32_t i = topology->cpu_limit; i > 0; i--) {
        const TopologyCpu *cpu = topology_cpu(topology, (CpuIx){(int32_t)i - 1});

        if (!cpu || !hwloc_bitmap_isset(p->s->usable, i - 1))
            continue;
        nodes[cpu->node.i].capacity_permille += 1000;
        nodes[cpu->node.i].key = i - 1;
        capacity += 1000;
        busy += p->world->cpus[i - 1].busy_permille;
    }
    others = busy > ran_by_groups ? (busy - ran_by_groups) / 1000 * 1000 : 0;
    for (uint32_t i = 0; i < topology->n_nodes && capacity > 0; i++)
        nodes[i].capacity_permille -= (uint32_t)(nodes[i].capacity_permille * others / capacity);
}

/* Nodes any process of a group may use; the last cpuset asked about is mostly the next one. */
static int gather_allowed(Planner *p)
{
    CpuMask last = NULL;
    PackNodes nodes = 0;

    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];

        if (process->gone || process->group.i < 0 || !process->cpuset)
            continue;
        if (process->cpuset != last) {
            last = process->cpuset;
            nodes = 0;
            for (uint32_t n = 0; n < p->world->topology->n_nodes; n++) {
                if (hwloc_bitmap_and(p->s->set, last, p->world->topology->nodes[n].cpus) < 0)
                    return -ENOMEM;
                if (hwloc_bitmap_intersects(p->s->set, p->s->usable))
                    nodes |= (PackNodes)1 << n;
            }
        }
        p->s->groups[process->group.i].allowed |= nodes;
    }
    return 0;
}

static PackNodes nodes_of_policy(const Topology *topology, const Policy *policy)
{
    PackNodes nodes = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (!policy->nodes || hwloc_bitmap_isset(policy->nodes, topology->nodes[i].os_index))
            nodes |= (PackNodes)1 << i;
    return nodes;
}

/* Memory */

/* What is known of the memory of the group's processes. */
static void gather_memory(Planner *p, uint64_t *memory)
{
    uint32_t n_nodes = p->world->topology->n_nodes;

    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];

        if (process->gone || process->group.i < 0 || !process->node_bytes)
            continue;
        p->s->groups[process->group.i].memory_known = true;
        for (uint32_t n = 0; n < n_nodes; n++)
            memory[(size_t)process->group.i * n_nodes + n] =
                MIN(memory[(size_t)process->group.i * n_nodes + n] + process->node_bytes[n], MEMORY_MAX);
    }
}

/* Only proportions count here, and the numbers are too small to take room from anybody. */
static void guess_memory(const Group *group, uint32_t n_nodes, const uint64_t *ran, uint64_t *memory)
{
    for (uint32_t i = 0; i < n_nodes; i++)
        memory[i] = group->home_nodes ? (uint64_t)hwloc_bitmap_isset(group->home_nodes, i) : ran[i];
}

/* Groups */

static bool wants_home(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];

    return group->home || group->roams || group_demand(p, index) >= IDLE_PERMILLE;
}

/* Whether it must stay where it is, for now. */
static bool group_stays(const Planner *p, const Group *group, const Policy *policy, uint32_t demand)
{
    uint64_t now = p->world->now_usec;

    if (!group->home && !group->roams)
        return false;
    return !choose_mode(policy) || p->s->groups[group - p->world->groups].n_placeable == 0 ||
           p->world->workloads[group->workload.i].paused || demand < IDLE_PERMILLE ||
           now < group->frozen_until_usec ||
           now - MIN(group->last_home_usec, now) < MAX(policy->min_residency_usec, 1U);
}

uint32_t choose_wait_permille(const PlannerGroup *g)
{
    return g->wants > 0 ? (uint32_t)(g->waits_mean * 1000 / g->wants) : 0;
}

/* Where it lives now, and where it lived before; roaming is all nodes. Groups of Mode=fixed are where their policy sends them in
 * this plan. */
static PackNodes present_set(const Planner *p, const Group *group, PackNodes with_cpus)
{
    const PlannerWorkload *w = &p->s->workloads[group->workload.i];

    if (!choose_mode(w->policy) && !p->world->workloads[group->workload.i].paused)
        return nodes_of(w->home_nodes);
    return group->roams ? with_cpus : nodes_of(group->home_nodes);
}

static PackNodes former_set(const Group *group, PackNodes with_cpus)
{
    PackNodes before = nodes_of(group->before_nodes) & with_cpus;

    return before ? before : with_cpus;
}

/* Measure and revert: SettleSec= after a change its threads must not wait longer than before it. Where that was no home, it
 * goes back to roaming. */
static void judge(const Planner *p, const Group *group, PlannerGroup *g, PackNodes with_cpus)
{
    if (group->judge_usec == 0 || p->world->now_usec < group->judge_usec)
        return;
    g->reverts = choose_wait_permille(g) > group->before_wait_permille + WORSE_PERMILLE &&
                 former_set(group, with_cpus) != present_set(p, group, with_cpus);
    g->judged = !g->reverts;
}

static PackGroup pack_group(const Planner *p, size_t index, const uint64_t *memory, PackNodes with_cpus)
{
    const Group *group = &p->world->groups[index];
    PlannerGroup *g = &p->s->groups[index];
    const Policy *policy = p->s->workloads[group->workload.i].policy;
    uint64_t age = p->world->now_usec - MIN(group->first_seen_usec, p->world->now_usec);
    uint32_t demand = group_demand(p, index), threads = MAX(g->n_threads, 1U);

    if (choose_mode(policy) && policy->settle_usec > 0 && !p->world->workloads[group->workload.i].paused)
        judge(p, group, g, with_cpus);
    return (PackGroup){
        .id = group->id,
        .mode = pack_mode(policy),
        .demand_permille = demand,
        .min_gain_permille = policy->min_gain_permille,
        /* More nodes than threads help nobody. */
        .max_nodes = policy->max_nodes > 0 ? MIN(policy->max_nodes, threads) : threads,
        .home = g->reverts ? former_set(group, with_cpus) : present_set(p, group, with_cpus),
        .allowed = g->allowed & nodes_of_policy(p->world->topology, policy) & with_cpus,
        .memory_bytes = memory,
        .stays = g->reverts || group_stays(p, group, policy, demand),
        .young = age < policy->min_age_usec,
    };
}

/* Which groups take part: all that have or want a home; those that want most when they are too many. */
static void select_groups(Planner *p)
{
    PlanScratch *s = p->s;

    s->n_order = 0;
    for (size_t i = 0; i < p->world->n_groups; i++) {
        const Group *group = &p->world->groups[i];
        const Policy *policy;

        if (group->gone || group->workload.i < 0 ||
            s->workloads[group->workload.i].blocked != PLAN_REASON_INVALID)
            continue;
        policy = s->workloads[group->workload.i].policy;
        if (!wants_home(p, i)) {
            s->groups[i].idle = choose_mode(policy);
            continue;
        }
        if (s->groups[i].n_placeable == 0 && !group->home && !group->roams)
            continue;
        s->order[s->n_order++] =
            (PlannerOrder){.key = group_demand(p, i), .tie = group->id, .index = (uint32_t)i};
    }
    qsort(s->order, s->n_order, sizeof(*s->order), planner_order_compare);
    s->n_order = MIN(s->n_order, CHOOSE_GROUPS_MAX);
}

/* One cost for all: what the first domain across nodes allows (P5), unless a policy says less. */
static uint32_t allowed_imbalance(const Planner *p)
{
    const Topology *topology = p->world->topology;
    uint32_t allowed = POLICY_IMBALANCE_AUTO;

    for (size_t i = 0; i < p->s->n_order; i++) {
        const Group *group = &p->world->groups[p->s->order[i].index];

        allowed = MIN(allowed, p->s->workloads[group->workload.i].policy->allowed_imbalance);
    }
    for (uint32_t i = 0; i < topology->n_domains && allowed == POLICY_IMBALANCE_AUTO; i++)
        if (topology->domains[i].numa)
            allowed = topology->domains[i].imb_numa_nr;
    return allowed == POLICY_IMBALANCE_AUTO ? 0 : MIN(allowed, PACK_DEMAND_MAX / 1000) * 1000;
}

static int pack(Planner *p, const PackNode *nodes, const uint64_t *memory)
{
    const Topology *topology = p->world->topology;
    PlanScratch *s = p->s;
    PackNodes with_cpus = 0;
    PackProblem problem = {
        .nodes = nodes,
        .distances = topology->distances,
        .n_nodes = topology->n_nodes,
        .allowed_imbalance_permille = allowed_imbalance(p),
        .groups = s->pack_groups,
        .n_groups = (uint32_t)s->n_order,
    };
    int r;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        with_cpus |= nodes[i].capacity_permille > 0 ? (PackNodes)1 << i : 0;
    for (size_t i = 0; i < s->n_order; i++) {
        size_t index = s->order[i].index;

        s->pack_groups[i] = pack_group(p, index, memory + index * topology->n_nodes, with_cpus);
    }
    r = pack_solve(&problem, s->pack_sets);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_order; i++) {
        size_t index = s->order[i].index;
        PlannerGroup *g = &s->groups[index];

        if (!choose_mode(s->workloads[p->world->groups[index].workload.i].policy))
            continue;
        g->chosen = s->pack_sets[i];
        g->chosen_all = g->chosen == with_cpus;
        g->packed = true;
    }
    return 0;
}

static bool prepare(PlanScratch *s, const World *world)
{
    size_t n_nodes = world->topology->n_nodes, n = MAX(world->n_groups, 1U);

    if (!GROW(s->pack_groups, s->pack_groups_capacity, MIN(n, CHOOSE_GROUPS_MAX)) ||
        !GROW(s->pack_sets, s->pack_sets_capacity, MIN(n, CHOOSE_GROUPS_MAX)) ||
        !GROW(s->order, s->order_capacity, n) || !GROW(s->node_sums, s->node_sums_capacity, 2 * n * n_nodes))
        return false;
    memset(s->node_sums, 0, 2 * n * n_nodes * sizeof(*s->node_sums));
    return true;
}

static bool any_chooses(const Planner *p)
{
    for (size_t i = 0; i < p->world->n_workloads; i++)
        if (p->s->workloads[i].blocked == PLAN_REASON_INVALID && choose_mode(p->s->workloads[i].policy))
            return true;
    return false;
}

int choose_homes(Planner *p)
{
    const Topology *topology = p->world->topology;
    PackNode nodes[PACK_NODES_MAX];
    uint64_t *ran, *memory, ran_by_groups = 0;

    /* With more nodes no group gets a home but by Mode=fixed: no machine has them. */
    if (!any_chooses(p) || topology->n_nodes > PACK_NODES_MAX)
        return 0;
    if (!prepare(p->s, p->world))
        return -ENOMEM;
    ran = p->s->node_sums;
    memory = ran + p->world->n_groups * topology->n_nodes;
    gather_loads(p, ran);
    gather_memory(p, memory);
    if (gather_allowed(p) < 0)
        return -ENOMEM;
    select_groups(p);
    for (size_t i = 0; i < p->s->n_order; i++) {
        size_t index = p->s->order[i].index;

        ran_by_groups += p->s->groups[index].ran;
        if (!p->s->groups[index].memory_known)
            guess_memory(&p->world->groups[index], topology->n_nodes, ran + index * topology->n_nodes,
                         memory + index * topology->n_nodes);
    }
    fill_nodes(p, nodes, ran_by_groups);
    return pack(p, nodes, memory);
}
