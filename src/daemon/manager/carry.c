/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Carries out a plan, and folds its outcomes in. Of workloads that are only observed, remembers what would be. */

#include "base/time.h"
#include "daemon/manager/manager.h"

#include <time.h>

PlanLimits manager_limits(const Manager *manager, bool slow_tick)
{
    return (PlanLimits){
        .observe = manager->mode == MANAGER_MODE_OBSERVE,
        .slow_tick = slow_tick,
        .cross_node_moves_per_sec = manager->config->cross_node_moves_per_sec,
        .cross_node_burst = manager->config->cross_node_burst,
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

/* Only observed */

bool manager_observes(const Manager *manager, WorkloadIx workload)
{
    PlanLimits limits = manager_limits(manager, true);

    return workload.i >= 0 && would_observes(manager->world, manager->policies, &limits, workload);
}

static int remember_would_actions(Manager *manager, uint64_t realtime_usec)
{
    const Would *would = &manager->would;

    for (size_t i = 0; i < would->plan.n_actions; i++) {
        const Move *move = NULL;
        int r;

        if (would->outcomes[i] == PLAN_OUTCOME_RETRY)
            continue;
        r = moves_add(manager->moves, would->world, &would->plan.actions[i], PLAN_OUTCOME_WOULD,
                      realtime_usec, &move);
        if (r < 0)
            return r;
        manager->statistics.n_outcome[PLAN_OUTCOME_WOULD]++;
        manager->objects_changed = true;
        manager_tell_move(manager, move);
    }
    return 0;
}

static int remember_would_refusals(Manager *manager)
{
    const Would *would = &manager->would;

    for (size_t i = 0; i < would->plan.n_refusals; i++) {
        const PlanRefusal *refusal = &would->plan.refusals[i];
        int r;

        if (!manager_observes(manager, refusal->workload))
            continue;
        r = moves_refuse(manager->moves, would->world, refusal);
        if (r < 0)
            return r;
        manager->statistics.n_refused[refusal->reason]++;
    }
    return 0;
}

int manager_look_ahead(Manager *manager)
{
    PlanLimits limits = manager_limits(manager, true);
    struct timespec now = {0};
    int r;

    if (manager->mode == MANAGER_MODE_DRY_RUN)
        return 0;
    r = would_compute(&manager->would, manager->world, manager->policies, &limits);
    if (r < 0)
        return r;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    r = remember_would_actions(manager,
                               (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC);
    return r < 0 ? r : remember_would_refusals(manager);
}
