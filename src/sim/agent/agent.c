/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The daemon's loop, with the same parts in the same order as the real one: discover processes (slow ticks,
 * or after forks), sample, plan, act, commit. The plan_ functions are those of the daemon, unchanged; only
 * the kernel is replaced.
 *
 * The tick has a fixed length. The real daemon's grows while no thread waits, and with its own cost. */

#include "sim/agent/agent.h"
#include "plan/group.h"

#include <string.h>

/* The real daemon's default for CrossNodeMovesPerSec=. */
#define CROSS_NODE_MOVES_PER_SEC 100U

int agent_new(Engine *e, Agent **ret)
{
    CLEANUP(agent_free_p) Agent *agent = calloc(1, sizeof(*agent));
    int r;

    if (!agent)
        return -ENOMEM;
    agent->threads = calloc(MAX(e->n_threads, 1U), sizeof(*agent->threads));
    agent->cpus = calloc(e->topology->cpu_limit, sizeof(*agent->cpus));
    agent->families = calloc(MAX(e->n_families, 1U), sizeof(*agent->families));
    agent->n_families = e->n_families;
    agent->node_bytes = calloc(e->n_nodes, sizeof(*agent->node_bytes));
    agent->node_nsec = calloc(e->n_nodes, sizeof(*agent->node_nsec));
    if (!agent->threads || !agent->cpus || !agent->families || !agent->node_bytes || !agent->node_nsec)
        return -ENOMEM;
    r = world_new(e->spec->topology, &agent->world);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < e->topology->cpu_limit; i++)
        agent->world->cpus[i].online = agent->world->cpus[i].usable = e->cpus[i].present;
    agent->world->ablated = e->variant->ablated;
    agent->world->kernel_balances = e->kernel->numa_balancing;
    agent->world->action_cost_usec = MAX(e->constants->action_nsec / NSEC_PER_USEC, (uint64_t)1);
    r = group_sync_workloads(agent->world, e->variant->policies);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(agent);
    return 0;
}

static void agent_family_done(AgentFamily *seen)
{
    (void)agent_scan_free(seen->scan);
    free(seen->order.ranges);
}

Agent *agent_free(Agent *agent)
{
    if (!agent)
        return NULL;
    plan_done(&agent->plan);
    (void)world_free(agent->world);
    for (uint32_t i = 0; agent->families && i < agent->n_families; i++)
        agent_family_done(&agent->families[i]);
    free(agent->outcomes);
    free(agent->changes);
    free(agent->counts);
    free(agent->threads);
    free(agent->cpus);
    free(agent->families);
    free(agent->node_bytes);
    free(agent->node_nsec);
    free(agent);
    return NULL;
}

/* Runs before the commit, while a new veto still shows as one more than the group has. */
static void count_tick(Agent *agent, SimTick *tick)
{
    const Plan *plan = &agent->plan;
    int64_t *count = agent->count;

    count[SIM_METRIC_TICKS]++;
    count[SIM_METRIC_OVERLOADED] = plan->n_overloaded;
    count[SIM_METRIC_OVERLOADED_MAX] = MAX(count[SIM_METRIC_OVERLOADED_MAX], (int64_t)plan->n_overloaded);
    agent->overloaded_sum += plan->n_overloaded;
    for (int i = 0; i < PLAN_REASON_MAX; i++)
        count[SIM_METRIC_REFUSALS] += (int64_t)plan->n_refused[i];
    for (size_t i = 0; i < plan->n_passes; i++) {
        const Group *group = world_group_by_id(agent->world, plan->passes[i].group_id);

        count[SIM_METRIC_VETOES] += group && plan->passes[i].n_vetoes > group->n_vetoes;
    }
    tick->n_overloaded = plan->n_overloaded;
    tick->n_actions = (uint32_t)plan->n_actions;
}

/* Runs after the commit: counts homes that the plan has changed. */
static int count_homes(const Engine *e, Agent *agent)
{
    int64_t *count = agent->count;
    size_t known = agent->changes_capacity;

    if (!GROW(agent->changes, agent->changes_capacity, agent->world->next_group_id + 1))
        return -ENOMEM;
    if (known < agent->changes_capacity)
        memset(agent->changes + known, 0, (agent->changes_capacity - known) * sizeof(*agent->changes));
    for (size_t i = 0; i < agent->plan.n_homes; i++) {
        const PlanHome *home = &agent->plan.homes[i];
        const Group *group = world_group_by_id(agent->world, home->group_id);

        if (home->judged || !group || group->home != home->home)
            continue;
        count[SIM_METRIC_HOME_CHANGES]++;
        count[SIM_METRIC_REVERTS] += home->reverts;
        if (!engine_counts_late(e))
            continue;
        count[SIM_METRIC_HOME_CHANGES_LATE]++;
        agent->changes[group->id]++;
        count[SIM_METRIC_HOME_CHANGES_MOST] =
            MAX(count[SIM_METRIC_HOME_CHANGES_MOST], agent->changes[group->id]);
    }
    return 0;
}

/* The daemon's default limits. */
static PlanLimits limits_of(bool slow)
{
    return (PlanLimits){
        .slow_tick = slow,
        .cross_node_moves_per_sec = CROSS_NODE_MOVES_PER_SEC,
        .cross_node_burst = POLICY_BURST_SEC * CROSS_NODE_MOVES_PER_SEC,
    };
}

int agent_tell(Engine *e, Agent *agent, const PlanLimits *limits, const PlanUse *uses, size_t n_uses)
{
    const TranscriptEntry entry = {
        .world = agent->world,
        .policies = e->variant->policies,
        .limits = limits,
        .by_use = uses,
        .uses = uses,
        .n_uses = n_uses,
        .plan = &agent->plan,
    };

    return e->hooks && e->hooks->plan ? e->hooks->plan(e->hooks->userdata, &entry) : 0;
}

int agent_carry_out(Engine *e, Agent *agent)
{
    const PlanLimits limits = limits_of(false);

    if (!GROW(agent->outcomes, agent->outcomes_capacity, agent->plan.n_actions + 1))
        return -ENOMEM;
    act_plan(e, agent, agent->outcomes);
    return plan_commit(agent->world, e->variant->policies, &limits, &agent->plan, agent->outcomes);
}

static int decide_and_act(Engine *e, Agent *agent, bool slow, SimTick *tick)
{
    const PolicySet *policies = e->variant->policies;
    uint64_t (*clock_nsec)(void) = e->hooks ? e->hooks->clock_nsec : NULL;
    uint64_t start = clock_nsec ? clock_nsec() : 0;
    const PlanLimits limits = limits_of(slow);
    int r = plan_compute(agent->world, policies, &limits, &agent->plan);

    if (r < 0)
        return r;
    tick->plan_nsec = clock_nsec ? clock_nsec() - start : 0;
#ifndef NDEBUG
    if (plan_check(agent->world, policies, &limits, &agent->plan, NULL) < 0)
        return -EUCLEAN;
#endif
    count_tick(agent, tick);
    r = agent_tell(e, agent, &limits, NULL, 0);
    if (r == 0)
        r = agent_carry_out(e, agent);
    tick->n_leases = (uint32_t)agent->world->n_leases;
    return r < 0 ? r : count_homes(e, agent);
}

int agent_tick(Engine *e, Agent *agent, SimTick *tick)
{
    uint64_t slow_nsec = e->constants->slow_tick_usec * NSEC_PER_USEC;
    bool slow = agent->n_ticks++ == 0 || e->now_nsec >= agent->slow_nsec + slow_nsec;
    bool discovers = slow || agent->n_forked != e->n_forked; /* the daemon sees forks in /proc/loadavg */
    int r;

    agent_move(e, agent);
    if (slow)
        agent->slow_nsec = e->now_nsec;
    if (discovers) {
        agent->n_forked = e->n_forked;
        r = sense_discover(e, agent);
        if (r < 0)
            return r;
        agent_watch_foresee(e, agent);
    }
    r = sense_sample(e, agent, slow);
    if (r == 0 && !discovers)
        r = sense_memory(e, agent, true);
    agent_counted(e, agent);
    if (r == 0)
        r = decide_and_act(e, agent, slow, tick);
    if (r == 0)
        r = agent_watch(e, agent, slow);
    return r == 0 ? agent_count(e, agent) : r;
}

void agent_report(const Agent *agent, int64_t *values)
{
    for (int i = 0; i < SIM_METRIC_MAX; i++)
        values[i] += agent->count[i];
    values[SIM_METRIC_GROUPS] = (int64_t)agent->world->next_group_id - 1; /* ids begin with 1 */
    if (agent->count[SIM_METRIC_TICKS] > 0)
        values[SIM_METRIC_OVERLOADED_MEAN] =
            (int64_t)(agent->overloaded_sum * 1000) / agent->count[SIM_METRIC_TICKS];
}
