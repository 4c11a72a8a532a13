/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes that the policy leaves to us (Mode=auto, compress, spread, interleave). All groups of the machine
 * become one packing problem (P15, plan/pack/pack.h), and its answer is their homes. This file translates
 * there and back; nodes.c says what the nodes offer, bound.c what others have bound of that, memory.c where
 * memory lies, and wait.c which groups get no home yet.
 *
 * - The demand of a group is what its threads run and wait on average, with its peaks for a while
 *   (load_groups()). For a new group it is that of the last two ticks, because an average of what has just
 *   begun says nothing. ExpectWidth= is the minimum (P5: threads that sleep at the start are invisible to
 *   load).
 * - Groups that hardly run get no home, which would cost system calls and give them nothing. They keep one
 *   they have.
 * - A group that needs every node is not confined. It roams, and that decision lasts like a home. */

#include "plan/choose/choose.h"
#include "plan/choose/bound.h"
#include "plan/choose/cpusets.h"
#include "plan/choose/freeze.h"
#include "plan/choose/loans.h"
#include "plan/choose/memory.h"
#include "plan/choose/nodes.h"
#include "plan/choose/outgrown.h"
#include "plan/choose/wait.h"
#include "plan/group.h"
#include "plan/pack/pack.h"
#include "world/load.h"

#include <string.h>

/* The home announced for an observed group is taken unless another one is better by a quarter: loads of equal
 * nodes differ by as much from one second to the next. */
#define SAID_GAIN_PERMILLE 250U

/* The same for a thread that may have several nodes to pause on. */
#define POOL_GAIN_PERMILLE 250U

static_assert(CHOOSE_GROUPS_MAX <= PACK_GROUPS_MAX, "more groups than can be packed");

static PackMode pack_mode(const Policy *policy)
{
    switch (policy->mode) {
    case POLICY_MODE_COMPRESS:
        return PACK_MODE_COMPRESS;
    case POLICY_MODE_SPREAD:
    case POLICY_MODE_INTERLEAVE: /* memory is interleaved over any nodes, but not for nothing */
        return PACK_MODE_SPREAD;
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

/* Sums over the tasks of each group, into PlannerGroup, and what ran on which node, into `ran`. */
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
        g->n_placeable +=
            planner_placeable(group_policy(p->world, p->policies, process->workload), process, task);
        g->waits_mean += task->wait_ewma_permille;
        g->newest_usec = MAX(g->newest_usec, process->first_seen_usec);
        demand_gather(p->world, &p->world->groups[process->group.i], g, task);
        if (cpu)
            ran[(size_t)process->group.i * topology->n_nodes + (size_t)cpu->node.i] +=
                MAX(task->run_permille, task->run_ewma_permille);
    }
}

static uint32_t share_permille(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (uint32_t)(part * 1000 / whole) : 0;
}

/* The part of their demand for which the threads of each group wait, and the same for all other groups. */
static void compare_waits(Planner *p)
{
    uint64_t wants = 0, waits = 0;

    for (size_t i = 0; i < p->world->n_groups; i++) {
        wants += p->world->groups[i].want_permille;
        waits += p->s->groups[i].waits_mean;
    }
    for (size_t i = 0; i < p->world->n_groups; i++) {
        PlannerGroup *g = &p->s->groups[i];

        g->wait_permille = share_permille(g->waits_mean, p->world->groups[i].want_permille);
        g->others_permille = share_permille(waits - g->waits_mean, wants - p->world->groups[i].want_permille);
    }
}

/* Groups */

bool choose_is_young(const Planner *p, const Group *group, const Policy *policy)
{
    return world_since(p->world, group->first_seen_usec) < policy->min_age_usec;
}

/* Spread groups get no home before MinAgeSec=: in a small home their threads would leave their memory. */
static bool wants_home(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    const Policy *policy = p->s->workloads[group->workload.i].policy;
    PlannerGroup *g = &p->s->groups[index];

    if (group->home || group->roams)
        return true;
    g->idle = policy_chooses_nodes(policy) && demand_of_group(p, index) < CHOOSE_IDLE_PERMILLE;
    g->young = !g->idle && pack_mode(policy) == PACK_MODE_SPREAD && choose_is_young(p, group, policy);
    return demand_of_group(p, index) >= CHOOSE_IDLE_PERMILLE && !g->young;
}

/* A group never spans more nodes than it has threads: it would run on some of them, and memory on the others
 * would count as near. Threads that ended a moment ago count as long as their demand is held. Only go_back() gives
 * more, because memory on several nodes is served by all of them. */
static uint32_t nodes_useful(const Group *group)
{
    return MAX(MAX((uint32_t)group->n_tasks, demand_held(group) / LOAD_FULL_PERMILLE), 1U);
}

/* Whether its threads are together for nothing and press on the memory of their nodes, though it could have more. */
static bool is_pressed(const Planner *p, const Group *group, const PlannerGroup *g)
{
    uint32_t max_nodes = p->s->workloads[group->workload.i].policy->max_nodes;
    uint32_t most = MIN((uint32_t)__builtin_popcountll(g->allowed), max_nodes > 0 ? max_nodes : UINT32_MAX);

    return group->home && (uint32_t)hwloc_bitmap_weight(group->home_nodes) < MIN(nodes_useful(group), most) &&
           planner_presses(p->world->topology, group->home, group->home_nodes,
                           (uint64_t)group->demand_permille * choose_memory_alone(p, group) / 1000);
}

/* How long a new home is kept: until it has been judged; or less if threads wait in it, if it was chosen
 * before the place of memory was known, or if it is pressed: such a home may prove wrong at once. */
static uint64_t residency_usec(const Planner *p, const Group *group, const PlannerGroup *g,
                               const Policy *policy)
{
    bool doubtful = g->wait_permille > PLANNER_WORSE_PERMILLE || (group->guessed && g->memory_known) ||
                    is_pressed(p, group, g);

    return MAX(doubtful ? policy->min_residency_usec : MAX(policy->min_residency_usec, policy->settle_usec),
               1U);
}

/* Whether the group goes where Mode=fixed sends it in this plan, or stays because nothing asks for another place. */
static bool is_given(const Planner *p, const Group *group, const Policy *policy, uint32_t demand)
{
    const PlannerGroup *g = &p->s->groups[group - p->world->groups];

    if (!policy_chooses_nodes(policy) && p->s->workloads[group->workload.i].home_nodes)
        return true;
    return (group->home || group->roams) &&
           (!policy_chooses_nodes(policy) || g->n_placeable == 0 ||
            p->world->workloads[group->workload.i].paused || demand < CHOOSE_IDLE_PERMILLE);
}

static PlannerStay stay_for(PlanReason reason, uint64_t value, uint64_t limit)
{
    return (PlannerStay){.stays = true, .reason = reason, .value = value, .limit = limit};
}

/* Why the group must stay where it is, for now. While its memory is on its way, nothing is decided, because
 * that is about to change. A group that starves does not wait for that, nor, mostly, for the end of a to and
 * fro. For groups that have converged see freeze.c. */
static PlannerStay find_stay(const Planner *p, const Group *group, const Policy *policy, uint32_t demand)
{
    const PlannerGroup *g = &p->s->groups[group - p->world->groups];
    uint64_t now = p->world->now_usec, age = world_since(p->world, group->last_home_usec), kept;

    if (is_given(p, group, policy, demand))
        return stay_for(PLAN_REASON_INVALID, 0, 0);
    if (!group->home && !group->roams)
        return (PlannerStay){.reason = PLAN_REASON_INVALID};
    if (now < group->frozen_until_usec && !outgrown_breaks_out(p, group))
        return stay_for(PLAN_REASON_TO_AND_FRO, group->frozen_until_usec - now, 0);
    if (g->moves && !outgrown_starves(p, group))
        return stay_for(PLAN_REASON_MEMORY_MOVING, g->moving_bytes,
                        g->known_bytes / CHOOSE_MEMORY_MOVING_PART);
    kept = residency_usec(p, group, g, policy);
    if (age < kept && !outgrown_holds(p, group))
        return stay_for(PLAN_REASON_SETTLING, age, kept);
    return (PlannerStay){.reason = PLAN_REASON_INVALID};
}

/* Where the group lives; without a home, where it would have lived when it was only observed. Roaming is all
 * nodes. Groups of Mode=fixed are where their policy sends them in this plan. */
static PackNodes present_set(const Planner *p, const Group *group, PackNodes with_cpus)
{
    const PlannerWorkload *w = &p->s->workloads[group->workload.i];

    if (!policy_chooses_nodes(w->policy) && !p->world->workloads[group->workload.i].paused)
        return nodes_of(w->home_nodes);
    if (!group->home && !group->roams)
        return nodes_of(group->wish_nodes) & with_cpus;
    return group->roams ? with_cpus : nodes_of(group->home_nodes);
}

static PackNodes former_set(const Group *group, PackNodes with_cpus)
{
    PackNodes before = nodes_of(group->before_nodes) & with_cpus;

    return before ? before : with_cpus;
}

/* Measure and revert: SettleSec= after a change its threads must not wait longer than before it. Waiting that
 * has grown as much for all others does not count, nor waiting that came with more work; and groups that
 * hardly run wait by chance. If there was no former home, the group goes back to roaming. */
static void judge(const Planner *p, const Group *group, PlannerGroup *g, const PackGroup *pack,
                  PackNodes with_cpus)
{
    uint32_t others = g->others_permille > group->before_others_permille
                          ? g->others_permille - group->before_others_permille
                          : 0;
    PackNodes former = former_set(group, with_cpus);

    if (group->judge_usec == 0 || p->world->now_usec < group->judge_usec || g->moves)
        return;
    g->reverts =
        group->want_permille >= CHOOSE_IDLE_PERMILLE &&
        g->wait_permille > group->before_wait_permille + others + PLANNER_WORSE_PERMILLE &&
        group->demand_permille <= group->before_demand_permille + group->before_demand_permille / 4 &&
        former != pack->home && (former & ~pack->allowed) == 0 &&
        (uint32_t)__builtin_popcountll(former) <= pack->max_nodes;
    g->judged = !g->reverts;
}

static uint32_t steady_demand(const Planner *p, size_t index, const DemandShare *share)
{
    return demand_share(share, (uint32_t)MIN(p->s->groups[index].steady_permille, demand_given(p, index)));
}

/* Whether a single thread is to have any of several nodes: it pauses, and may wait less there. A thread that
 * has several keeps them even when it does not pause, unless it got them with its memory (go_back()). */
static bool may_pool(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];

    return demand_variance(p, index) > 0 ||
           (group->home_nodes && hwloc_bitmap_weight(group->home_nodes) > 1 &&
            !p->s->groups[index].went_back);
}

/* The nodes on which memory of its processes is to lie again, if that is so for most of them, by CPU time, or
 * for a quarter if the group lives there; else 0. */
static PackNodes back_nodes(const Group *group, const PlannerGroup *g)
{
    PackNodes home = nodes_of(group->home_nodes);
    bool lives = (home & (home - 1)) != 0 && (home & ~g->back_nodes) == 0;

    return g->back_weight * (lives ? 4 : 2) > g->stall_weight ? g->back_nodes : 0;
}

/* Whether the group has all of these nodes and others: it starved on these, and keeps the others. */
static bool has_more(const Group *group, PackNodes nodes, PackNodes home)
{
    return group->home && (nodes & ~home) == 0 && nodes != home;
}

/* Sends the group to where its memory lies again, because its processes progressed more slowly when that was
 * brought together. Not where it starves beside idle CPUs, not while a to and fro keeps it elsewhere, and not
 * where the kernel moves the memory. */
static void go_back(const Planner *p, size_t index, PlannerGroup *g, PackGroup *pack)
{
    const Group *group = &p->world->groups[index];
    const Policy *policy = p->s->workloads[group->workload.i].policy;
    PackNodes nodes = back_nodes(group, g) & pack->allowed;
    uint32_t n = (uint32_t)__builtin_popcountll(nodes);

    if (n == 0 || (policy->max_nodes > 0 && n > policy->max_nodes) || g->n_placeable == 0 ||
        p->world->workloads[group->workload.i].paused ||
        planner_is_kernels(p->world, policy, g->use_hidden) ||
        (nodes != pack->allowed && (outgrown_starves(p, group) || outgrown_holds(p, group))) ||
        (nodes != pack->home && g->stay.reason == PLAN_REASON_TO_AND_FRO))
        return;
    if (!has_more(group, nodes, pack->home))
        pack->home = nodes;
    pack->stays = true;
    g->goes_back = true;
    g->judged |= g->reverts;
    g->reverts = false;
    g->stay = stay_for(PLAN_REASON_SLOWER, n, 0);
}

static PackGroup pack_group(const Planner *p, size_t index, const uint64_t *memory, const DemandShare *share,
                            PackNodes with_cpus)
{
    const Group *group = &p->world->groups[index];
    PlannerGroup *g = &p->s->groups[index];
    const Policy *policy = p->s->workloads[group->workload.i].policy;
    bool lone = demand_is_of_one(p, index), pools = lone && may_pool(p, index);
    uint32_t threads = pools ? PACK_NODES_MAX : nodes_useful(group);
    PackGroup pack;

    g->discount_permille = choose_memory_discount(g, memory, p->world->topology->n_nodes);
    pack = (PackGroup){
        .id = group->id,
        .mode = pack_mode(policy),
        .demand_permille = rule_holds(p->world, ABLATION_FAIR_SHARE)
                               ? demand_share(share, demand_of_packing(p, index))
                               : demand_of_packing(p, index),
        .min_gain_permille = policy->min_gain_permille,
        .private_permille = choose_memory_alone(p, group),
        .few_permille = choose_memory_few(g),
        .sorted_permille = choose_memory_sorted(p, g),
        .steady_permille = pack_mode(policy) == PACK_MODE_AUTO ? steady_demand(p, index, share) : 0,
        .variance_permille = demand_share(share, demand_variance(p, index)),
        .max_nodes = policy->max_nodes > 0 ? MIN(policy->max_nodes, threads) : threads,
        .lone = lone,
        .home = present_set(p, group, with_cpus),
        .allowed = g->allowed & choose_nodes_of_policy(p->world->topology, policy) & with_cpus,
        .cpuset = g->slice,
        .memory_bytes = memory,
        .memory_discount_permille = g->discount_permille,
        .stall_discount_permille = choose_memory_stall_discount(p, g),
        .young = choose_is_young(p, group, policy) && !outgrown_holds(p, group),
    };

    pack.traffic_mb = pack.mode == PACK_MODE_AUTO && rule_holds(p->world, ABLATION_TRAFFIC)
                          ? choose_memory_traffic(g, policy, pack.demand_permille)
                          : 0;
    /* Its best nodes change with what its neighbours do at the moment. */
    if (pools)
        pack.min_gain_permille = MAX(pack.min_gain_permille, POOL_GAIN_PERMILLE);
    pack.wishes = policy_chooses_nodes(policy) && !group->home && !group->roams;
    pack.home = pack.wishes && pack.young ? 0 : pack.home; /* a young group would keep it */
    if (pack.wishes && pack.home)
        pack.min_gain_permille = MAX(pack.min_gain_permille, SAID_GAIN_PERMILLE);
    g->stay = find_stay(p, group, policy, demand_of_group(p, index));
    pack.stays = g->stay.stays;
    if (policy_chooses_nodes(policy) && policy->settle_usec > 0 &&
        !p->world->workloads[group->workload.i].paused)
        judge(p, group, g, &pack, with_cpus);
    go_back(p, index, g, &pack);
    if (g->reverts) {
        pack.home = former_set(group, with_cpus);
        pack.stays = true;
    }
    return pack;
}

/* Selects the groups that take part: all that have or want a home; if they are too many, those that want most. */
static void select_groups(Planner *p, const uint64_t *memory, const uint64_t *ran)
{
    const DemandShare share = demand_share_of_all(p);
    uint32_t n_nodes = p->world->topology->n_nodes;
    uint64_t wanted_permille = choose_wanted_permille(p);
    PlanScratch *s = p->s;

    s->n_order = 0;
    for (size_t i = 0; i < p->world->n_groups; i++) {
        const Group *group = &p->world->groups[i];
        const Policy *policy;

        if (group->gone || s->groups[i].bound ||
            s->workloads[group->workload.i].blocked != PLAN_REASON_INVALID)
            continue;
        policy = s->workloads[group->workload.i].policy;
        if (policy_chooses_nodes(policy))
            choose_wait(p, i, memory + i * n_nodes, ran + i * n_nodes, &share, wanted_permille);
        if (s->groups[i].put_off)
            continue;
        if (!wants_home(p, i))
            continue;
        if (policy_chooses_nodes(policy) && s->groups[i].n_placeable == 0 && !group->home && !group->roams)
            continue;
        s->order[s->n_order++] =
            (PlannerOrder){.key = demand_of_group(p, i), .tie = group->id, .index = (uint32_t)i};
    }
    qsort(s->order, s->n_order, sizeof(*s->order), planner_order_compare);
    s->n_order = MIN(s->n_order, CHOOSE_GROUPS_MAX);
    for (size_t i = 0; i < s->n_order; i++)
        s->groups[s->order[i].index].takes_part = true;
}

/* With Mode=auto a group of several nodes is left to the kernel where that knows more, unless the policy says
 * which nodes it is to have, or how many. */
static bool is_left_to_kernel(const Planner *p, size_t index, PackNodes set)
{
    const Policy *policy = p->s->workloads[p->world->groups[index].workload.i].policy;

    return (set & (set - 1)) != 0 && planner_is_kernels(p->world, policy, p->s->groups[index].use_hidden) &&
           policy->mode == POLICY_MODE_AUTO && !policy->nodes && policy->max_nodes == 0 &&
           !thread_homes_known(p, index);
}

static int pack(Planner *p, const PackNode *nodes, const uint64_t *memory)
{
    const Topology *topology = p->world->topology;
    PlanScratch *s = p->s;
    PackNodes with_cpus = 0;
    DemandShare share = {0};
    PackProblem problem = {
        .nodes = nodes,
        .distances = topology->distances,
        .n_nodes = topology->n_nodes,
        .allowed_imbalance_permille = choose_nodes_imbalance(p),
        .cpusets = s->slices,
        .n_cpusets = s->n_cpusets,
        .groups = s->pack_groups,
        .n_groups = (uint32_t)s->n_order,
    };
    int r;

    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        with_cpus |= nodes[i].capacity_permille > 0 ? (PackNodes)1 << i : 0;
        share.capacity += nodes[i].capacity_permille;
    }
    for (size_t i = 0; i < s->n_order; i++)
        share.demands += demand_of_packing(p, s->order[i].index);
    if (rule_holds(p->world, ABLATION_FAIR_SHARE) && share.demands > share.capacity)
        problem.share_permille = MAX((uint32_t)(share.capacity * 1000 / share.demands), 1U);
    for (size_t i = 0; i < s->n_order; i++) {
        size_t index = s->order[i].index;

        s->pack_groups[i] = pack_group(p, index, memory + index * topology->n_nodes, &share, with_cpus);
    }
    if (rule_holds(p->world, ABLATION_FREEZE))
        freeze_groups(p, nodes);
    r = pack_solve(&problem, s->pack_sets);
    if (r < 0)
        return r;
    if (rule_holds(p->world, ABLATION_LOANS) && choose_loans(p, nodes))
        r = pack_solve(&problem, s->pack_sets);
    if (r < 0)
        return r;
    r = pack_parts(&problem, s->pack_sets, s->pack_parts);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_order; i++) {
        size_t index = s->order[i].index;
        PlannerGroup *g = &s->groups[index];

        memcpy(s->parts + index * topology->n_nodes, s->pack_parts + i * topology->n_nodes,
               topology->n_nodes * sizeof(*s->parts));
        if (!policy_chooses_nodes(s->workloads[p->world->groups[index].workload.i].policy))
            continue;
        g->chosen = !s->pack_groups[i].stays && !s->pack_groups[i].lone &&
                            is_left_to_kernel(p, index, s->pack_sets[i])
                        ? with_cpus
                        : s->pack_sets[i];
        g->chosen_all = g->chosen == with_cpus;
        g->keeps_all = g->chosen_all && s->pack_groups[i].stays && !g->reverts &&
                       (nodes_of(p->world->groups[index].home_nodes) & with_cpus) == with_cpus;
        g->packed = true;
    }
    return 0;
}

static bool prepare(PlanScratch *s, const World *world)
{
    size_t n_nodes = world->topology->n_nodes, n = MAX(world->n_groups, 1U);

    if (!GROW(s->pack_groups, s->pack_groups_capacity, MIN(n, CHOOSE_GROUPS_MAX)) ||
        !GROW(s->pack_sets, s->pack_sets_capacity, MIN(n, CHOOSE_GROUPS_MAX)) ||
        !GROW(s->pack_parts, s->pack_parts_capacity, MIN(n, CHOOSE_GROUPS_MAX) * n_nodes) ||
        !GROW(s->parts, s->parts_capacity, n * n_nodes) ||
        !GROW(s->node_sums, s->node_sums_capacity, 2 * n * n_nodes))
        return false;
    s->n_parts = n * n_nodes;
    memset(s->parts, 0, s->n_parts * sizeof(*s->parts));
    memset(s->node_sums, 0, 2 * n * n_nodes * sizeof(*s->node_sums));
    return true;
}

static bool any_chooses(const Planner *p)
{
    for (size_t i = 0; i < p->world->n_workloads; i++)
        if (p->s->workloads[i].blocked == PLAN_REASON_INVALID &&
            policy_chooses_nodes(p->s->workloads[i].policy))
            return true;
    return false;
}

int choose_homes(Planner *p)
{
    const Topology *topology = p->world->topology;
    PackNode nodes[PACK_NODES_MAX];
    uint64_t *ran, *memory;

    p->s->n_parts = 0;
    memset(p->s->bound_permille, 0, sizeof(p->s->bound_permille));
    p->s->bound_given = 0;
    /* With more nodes only Mode=fixed gives homes: no machine has so many. */
    if (!any_chooses(p) || topology->n_nodes > PACK_NODES_MAX)
        return 0;
    if (!prepare(p->s, p->world))
        return -ENOMEM;
    ran = p->s->node_sums;
    memory = ran + p->world->n_groups * topology->n_nodes;
    gather_loads(p, ran);
    if (demand_gather_few(p) < 0)
        return -ENOMEM;
    choose_cpusets(p);
    choose_bound(p);
    compare_waits(p);
    choose_memory_gather(p, memory);
    if (choose_nodes_allowed(p) < 0)
        return -ENOMEM;
    select_groups(p, memory, ran);
    choose_memory_complete(p, ran, memory);
    if (choose_nodes_offer(p, ran, nodes) < 0)
        return -ENOMEM;
    choose_bound_press(p, ran, memory, nodes);
    if (choose_cpusets_slices(p) < 0)
        return -ENOMEM;
    return pack(p, nodes, memory);
}
