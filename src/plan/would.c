/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/would.h"

#include "plan/group.h"

#include <math.h>

void would_done(Would *would)
{
    would->world = world_free(would->world);
    plan_done(&would->plan);
    free(would->outcomes);
    *would = (Would){0};
}

bool would_observes(const World *world, const PolicySet *policies, const PlanLimits *limits,
                    WorkloadIx workload)
{
    const Policy *policy = group_policy(world, policies, workload);

    return policy && policy->mode != POLICY_MODE_NONE &&
           (limits->observe || policy->act == POLICY_ACT_OBSERVE);
}

static bool any_observed(const World *world, const PolicySet *policies, const PlanLimits *limits)
{
    for (size_t i = 0; i < world->n_processes; i++)
        if (!world->processes[i].gone &&
            would_observes(world, policies, limits, world->processes[i].workload))
            return true;
    return false;
}

/* Carrying over */

static bool keep(World *to, CpuMask from, CpuMask *ret)
{
    *ret = from ? intern_mask(to->pool, from) : NULL;
    return !from || *ret;
}

/* Carries over all that plans decided about a group, and nothing that is measured. */
static bool carry_group(World *to, const Group *from, Group *group)
{
    group->last_home_usec = from->last_home_usec;
    group->apart_usec = from->apart_usec;
    group->pool_until_usec = from->pool_until_usec;
    group->pool_next_usec = from->pool_next_usec;
    group->pool_before_permille = from->pool_before_permille;
    group->pool_others_permille = from->pool_others_permille;
    group->roams = from->roams;
    group->converged = from->converged;
    group->before_wait_permille = from->before_wait_permille;
    group->before_others_permille = from->before_others_permille;
    group->before_demand_permille = from->before_demand_permille;
    group->guessed = from->guessed;
    group->judge_usec = from->judge_usec;
    group->n_changes = from->n_changes;
    group->changes_since_usec = from->changes_since_usec;
    group->frozen_until_usec = from->frozen_until_usec;
    group->n_vetoes = from->n_vetoes;
    group->backoff_ticks = from->backoff_ticks;
    group->backoff_until_tick = from->backoff_until_tick;
    return keep(to, from->home, &group->home) && keep(to, from->home_nodes, &group->home_nodes) &&
           keep(to, from->before_nodes, &group->before_nodes);
}

/* Carries nothing over if the task's mask has changed since that was decided: then somebody else changed it. */
static bool carry_task(World *to, const World *before, const Task *from, Task *task)
{
    int r;

    if (!from->original || !task->allowed || !hwloc_bitmap_isequal(from->original, task->allowed))
        return true;
    if (from->lease >= 0) {
        /* A real plan may have lent the CPU meanwhile; then the task is sent home anew. */
        r = world_add_lease(to, &before->leases[from->lease]);
        if (r == -ENOMEM)
            return false;
        if (r < 0)
            return true;
    }
    task->original = task->allowed;
    task->home_node = from->home_node;
    task->last_move_usec = from->last_move_usec;
    return keep(to, from->allowed, &task->allowed);
}

typedef struct Carry {
    World *before, *to;
    const PolicySet *policies;
    const PlanLimits *limits;
} Carry;

static bool is_observed(const Carry *carry, WorkloadIx workload)
{
    return would_observes(carry->to, carry->policies, carry->limits, workload);
}

static bool carry_over(const Carry *carry)
{
    World *to = carry->to, *before = carry->before;

    for (size_t i = 0; i < to->n_groups; i++) {
        const Group *from = world_group_by_id(before, to->groups[i].id);

        if (from && is_observed(carry, to->groups[i].workload) && !carry_group(to, from, &to->groups[i]))
            return false;
    }
    for (size_t i = 0; i < to->n_tasks; i++) {
        Task *task = &to->tasks[i];
        const Task *from = world_task(before, world_task_key(to, task));

        if (from && is_observed(carry, to->processes[task->process.i].workload) &&
            !carry_task(to, before, from, task))
            return false;
    }
    world_sum(to);
    return true;
}

/* Only actions of observed workloads are done, and no memory moves. */
static void make_outcomes(Would *would, const World *world, const PolicySet *policies,
                          const PlanLimits *limits)
{
    for (size_t i = 0; i < would->plan.n_actions; i++) {
        const PlanAction *action = &would->plan.actions[i];

        would->outcomes[i] = !would_observes(world, policies, limits, action->workload) ? PLAN_OUTCOME_RETRY
                             : action->kind == PLAN_KIND_MOVE_PAGES                     ? PLAN_OUTCOME_SKIPPED
                                                                                        : PLAN_OUTCOME_DONE;
    }
}

int would_compute(Would *would, const World *world, const PolicySet *policies, const PlanLimits *limits)
{
    CLEANUP(world_free_p) World *copy = NULL;
    PlanLimits as_if = *limits;
    int r;

    would->plan.n_actions = would->plan.n_refusals = 0;
    if (!any_observed(world, policies, limits)) {
        would->world = world_free(would->world);
        return 0;
    }
    r = world_copy(world, &copy);
    if (r < 0)
        return r;
    if (would->world &&
        !carry_over(&(Carry){.before = would->world, .to = copy, .policies = policies, .limits = limits}))
        return -ENOMEM;
    as_if.observe = false;
    as_if.would = as_if.slow_tick = true;
    r = plan_compute(copy, policies, &as_if, &would->plan);
    if (r < 0)
        return r;
    if (!GROW(would->outcomes, would->outcomes_capacity, would->plan.n_actions + 1))
        return -ENOMEM;
    make_outcomes(would, copy, policies, limits);
    r = plan_commit(copy, policies, &as_if, &would->plan, would->outcomes);
    if (r < 0)
        return r;
    world_sum(copy);
    world_free(would->world);
    would->world = TAKE_PTR(copy);
    return 0;
}

int would_wish(const Would *would, World *world, const PolicySet *policies, const PlanLimits *limits)
{
    for (size_t i = 0; would->world && i < world->n_groups; i++) {
        Group *group = &world->groups[i];
        const Group *there = world_group_by_id(would->world, group->id);

        if (group->gone || !there || !would_observes(world, policies, limits, group->workload))
            continue;
        if (!keep(world, there->home_nodes, &group->wish_nodes))
            return -ENOMEM;
    }
    return 0;
}

/* Locality */

/* Weighted by the average run and wait of each thread. NULL `home`: where they run now. */
static uint64_t local_share(const World *world, const Process *process, const Group *home, bool follows)
{
    size_t n, first = world_process_tasks(world, process, &n);
    uint32_t n_nodes = world->topology->n_nodes;
    uint64_t sum = 0, total = 0, all = world_sum_nodes(world, process->node_bytes);
    uint32_t n_home = home ? (uint32_t)hwloc_bitmap_weight(home->home_nodes) : 0;

    if (all == 0)
        return WOULD_UNKNOWN;
    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];
        const TopologyCpu *cpu = topology_cpu(world->topology, task->last_cpu);
        uint64_t weight = (uint64_t)task->run_ewma_permille + task->wait_ewma_permille;

        if (task->gone || weight == 0 || (!home && !cpu))
            continue;
        total += weight;
        if (!home)
            sum += process->node_bytes[cpu->node.i] * 1000 / all * weight;
        else if (follows)
            sum += 1000 / n_home * weight;
        else
            for (uint32_t k = 0; k < n_nodes; k++)
                if (hwloc_bitmap_isset(home->home_nodes, k))
                    sum += process->node_bytes[k] * 1000 / all * weight / n_home;
    }
    return total > 0 ? sum / total : WOULD_UNKNOWN;
}

uint32_t would_local_now(const World *world, const Process *process)
{
    return process->node_bytes ? (uint32_t)local_share(world, process, NULL, false) : WOULD_UNKNOWN;
}

uint32_t would_local_then(const World *world, const Process *process, const Group *group, bool follows)
{
    return process->node_bytes && group->home ? (uint32_t)local_share(world, process, group, follows)
                                              : WOULD_UNKNOWN;
}

/* Gain */

/* Distances of the firmware are rough. Two-socket servers, mostly of distance 20 or 21, take 80 to 100 ns for
 * local and 140 to 200 ns for remote memory, as makers publish it from Intel's Memory Latency Checker: up to
 * 2.5 times as much. */
#define DISTANCE_MOST 1.5
/* Permille; more waiting than this has other causes. A choice of ours, like the half of the time for memory. */
#define WAITS_MOST 900U
/* Permille of a CPU. A thread that runs less, such as one that waits for the others, shares little with them.
 * A choice of ours. */
#define SHARES_RUN_PERMILLE 100U

typedef struct Outlook {
    double far;    /* extra time of a remote access, in local accesses */
    double spread; /* nodes its memory is spread over, by the one with most: a measure of its bandwidth */
} Outlook;

/* Extra time of accesses to a node, the mean over all other nodes with CPUs. */
static double far_of(const Topology *topology, uint32_t node)
{
    double sum = 0.0, local = topology_distance(topology, (NodeIx){(int)node}, (NodeIx){(int)node});
    unsigned n = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (i != node && topology->nodes[i].n_cpus > 0) {
            sum += topology_distance(topology, (NodeIx){(int)i}, (NodeIx){(int)node}) / local - 1.0;
            n++;
        }
    return n > 0 ? sum / n : 0.0;
}

/* False: it has no memory. */
static bool look_out(const World *world, const Process *process, Outlook *outlook)
{
    uint64_t all = 0, most = 0;

    for (uint32_t i = 0; i < world->topology->n_nodes; i++) {
        all += process->node_bytes[i];
        most = MAX(most, process->node_bytes[i]);
    }
    if (all == 0)
        return false;
    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        outlook->far += (double)process->node_bytes[i] / (double)all * far_of(world->topology, i);
    outlook->spread = (double)all / (double)most;
    return true;
}

/* Mean time of an access, in local ones. */
static double access_cost(double far, double local_permille)
{
    return 1.0 + far * (1.0 - CLAMP(local_permille, 0.0, 1000.0) / 1000.0);
}

/* Work in the same time, relative to now, if `memory` of its running time is spent on memory, and `saved` of
 * all time is no longer spent waiting. */
static double speed(double far, double now, double then, double memory, double saved)
{
    return 1.0 / ((1.0 - saved) * (1.0 - memory + memory * access_cost(far, then) / access_cost(far, now)));
}

static int32_t to_permille(double ratio)
{
    return (int32_t)lround((ratio - 1.0) * 1000.0);
}

/* Whether its threads run on several nodes now, and would all be on one. */
static bool would_gather(const World *world, const Process *process, const Group *group)
{
    size_t n, first = world_process_tasks(world, process, &n);
    NodeIx node = NODE_NONE;

    if (!group->home_nodes || hwloc_bitmap_weight(group->home_nodes) != 1)
        return false;
    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];
        const TopologyCpu *cpu = topology_cpu(world->topology, task->last_cpu);

        if (task->gone || !cpu || task->run_ewma_permille < SHARES_RUN_PERMILLE)
            continue;
        if (node.i >= 0 && cpu->node.i != node.i)
            return true;
        node = cpu->node;
    }
    return false;
}

/* The range of what may be local then. */
static void local_range(const World *world, const Process *process, const Group *group, bool follows,
                        bool spreads, const WouldNow *now, uint32_t *ret_least, uint32_t *ret_most)
{
    *ret_least = group->home ? would_local_then(world, process, group, follows) : now->local;
    *ret_most = (group->home && follows) || spreads ? 1000 : *ret_least;
}

/* The part of its running time spent on memory: the upper bound, and what is assumed. Misses are counted;
 * what they cost and how far they went is not known. */
static double memory_most(const Process *process)
{
    return process->stall_usec > 0 ? MIN(2.0 * process->stall_permille / 1000.0, 1.0) : 1.0;
}

static double memory_expected(const Process *process)
{
    return process->stall_usec > 0 ? MIN(process->stall_permille / 1000.0, 0.5) : 0.5;
}

bool would_gain(const World *world, const Process *process, const Group *group, bool follows, bool spreads,
                const WouldNow *now, WouldGain *ret)
{
    double waits = MIN(now->waits, WAITS_MOST) / 1000.0, n_nodes, local, least, most;
    uint32_t then_least, then_most;
    Outlook outlook = {0};

    if (!process->node_bytes || !look_out(world, process, &outlook))
        return false;
    local_range(world, process, group, follows, spreads, now, &then_least, &then_most);
    if (then_least == WOULD_UNKNOWN)
        return false;
    n_nodes = group->home && follows ? hwloc_bitmap_weight(group->home_nodes) : outlook.spread;
    least = speed(outlook.far * DISTANCE_MOST, (double)now->local + now->local_noise, then_least,
                  memory_most(process), 0.0);
    /* What threads on several nodes share and write is in remote caches, wherever its memory is. */
    local = would_gather(world, process, group) ? 0.0 : (double)now->local - now->local_noise;
    most = speed(outlook.far * DISTANCE_MOST, local, then_most, memory_most(process), waits);
    *ret = (WouldGain){
        .least = to_permille(MIN(least, 1.0) * MIN(n_nodes / outlook.spread, 1.0)) - WOULD_GAIN_NOISE,
        .expected = to_permille(speed(outlook.far, now->local, (then_least + then_most) / 2.0,
                                      memory_expected(process), waits / 2)),
        .most = to_permille(MAX(most, 1.0 / (1.0 - waits))) + WOULD_GAIN_NOISE,
    };
    return true;
}
