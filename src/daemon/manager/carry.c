/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Carries out a plan within its limits, and folds its outcomes in. Plans what acting would do for observed
 * workloads. */

#include "daemon/manager/manager.h"

PlanLimits manager_limits(const Manager *manager, bool slow_tick)
{
    return (PlanLimits){
        .observe = manager->mode == MANAGER_MODE_OBSERVE,
        .slow_tick = slow_tick,
        .cross_node_moves_per_sec = manager->config->cross_node_moves_per_sec,
        .cross_node_burst = manager->config->cross_node_burst,
    };
}

/* Whether nothing may be changed, so that the daemon only watches. A dry run is to show the pace of a real run. */
static bool watches(const Manager *manager)
{
    const PolicySet *policies = manager->policies;

    if (manager->options.once || manager->mode == MANAGER_MODE_DRY_RUN)
        return false;
    for (size_t i = 0; i < policies->n_policies; i++)
        if (policies->policies[i]->mode != POLICY_MODE_NONE &&
            policies->policies[i]->act != POLICY_ACT_OBSERVE)
            return manager->mode == MANAGER_MODE_OBSERVE;
    return true;
}

PaceSettings manager_pace_settings(const Manager *manager)
{
    return (PaceSettings){
        .fast_usec = manager->config->fast_tick_usec,
        .slow_usec = manager->config->slow_tick_usec,
        .max_cpu_permille = manager->config->max_cpu_permille,
        .watches = watches(manager),
    };
}

static int fold_back(Manager *manager, Plan *plan, const PlanPart *parts, size_t n_parts)
{
    PlanLimits limits = manager_limits(manager, false);
    int r = manager_remember_actions(manager, plan);

    if (r < 0)
        return r;
    return plan_commit_parts(manager->world, manager->policies, &limits, plan, manager->outcomes, parts,
                             n_parts);
}

int manager_carry_out(Manager *manager, Plan *plan)
{
    int r;

    if (!GROW(manager->outcomes, manager->outcomes_capacity, plan->n_actions + 1))
        return -ENOMEM;
    r = act_execute(manager->act, manager->world, plan, manager->outcomes);
    return r < 0 ? r : fold_back(manager, plan, NULL, 0);
}

int manager_carry_out_slice(Manager *manager, Plan *plan)
{
    const PlanPart *parts;
    size_t n_parts;
    int r;

    if (!GROW(manager->outcomes, manager->outcomes_capacity, plan->n_actions + 1))
        return -ENOMEM;
    r = act_execute_slice(manager->act, manager->world, plan, manager->outcomes);
    if (r < 0)
        return r;
    manager->unfinished = act_unfinished(manager->act);
    parts = act_parts(manager->act, &n_parts);
    return fold_back(manager, plan, parts, n_parts);
}

int manager_follow_births(Manager *manager)
{
    size_t n;
    const TaskKey *born = probe_born(manager->probe, &n);

    return act_follow_births(manager->act, born, n);
}

/* Observed workloads */

bool manager_observes(const Manager *manager, WorkloadIx workload)
{
    PlanLimits limits = manager_limits(manager, true);

    return workload.i >= 0 && would_observes(manager->world, manager->policies, &limits, workload);
}

int manager_look_ahead(Manager *manager)
{
    PlanLimits limits = manager_limits(manager, true);
    int r = would_compute(&manager->would, manager->world, manager->policies, &limits);

    if (r == 0)
        r = would_wish(&manager->would, manager->world, manager->policies, &limits);
    return r < 0 ? r : manager_remember_would(manager);
}
