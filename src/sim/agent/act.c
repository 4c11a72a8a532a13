/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What act would do with a plan. A mask that is neither the one the plan expected nor one of ours is left
 * alone. Threads born since the last discovery are changed with their process. A thread that must leave its
 * CPU at once pays for the change. */

#include "sim/agent/agent.h"

static bool set_mask(Engine *e, uint32_t index, CpuMask mask, int32_t via, bool given)
{
    Thread *thread = &e->threads[index];
    CpuMask own = intern_mask(e->pool, mask);
    int32_t before = thread->cpu;

    if (!own) {
        e->error = -ENOMEM;
        return false;
    }
    thread->given = given;
    thread_set_mask(e, index, own, via);
    if (thread->cpu != before)
        thread->debt_nsec += e->constants->action_nsec;
    return true;
}

static bool is_replaceable(const Thread *thread, const PlanAction *action)
{
    return thread->given || hwloc_bitmap_isequal(thread->allowed, action->from);
}

/* Carries out an action on one thread of its subject. Returns whether the thread is now as the action wants it. */
static bool act_thread(Engine *e, uint32_t index, const PlanAction *action)
{
    const PlanKindTraits *kind = plan_kind_traits(action->kind);
    Thread *thread = &e->threads[index];

    if (thread->state == THREAD_STATE_ENDED || thread->state == THREAD_STATE_UNBORN)
        return false;
    if (kind->puts_back)
        return thread->given && set_mask(e, index, thread->own, ENGINE_NONE, false);
    if (action->kind == PLAN_KIND_PUSH && thread->cpu != action->from_cpu.i)
        return false;
    return is_replaceable(thread, action) &&
           set_mask(e, index, action->to, kind->takes_cpu ? action->cpu.i : ENGINE_NONE, true);
}

static void inherit(Engine *e, Family *family, const PlanAction *action)
{
    if (plan_kind_traits(action->kind)->puts_back) {
        family->born = NULL;
    } else {
        family->born = intern_mask(e->pool, action->to);
        if (!family->born)
            e->error = -ENOMEM;
    }
}

/* The mask of a lease belongs to its thread, whatever happens to its process meanwhile. */
static bool has_lease(const Agent *agent, pid_t pid, pid_t tid)
{
    for (size_t i = 0; i < agent->world->n_leases; i++)
        if (agent->world->leases[i].task.pid == pid && agent->world->leases[i].task.tid == tid)
            return true;
    return false;
}

static PlanOutcome act_process(Engine *e, const Agent *agent, Family *family, const PlanAction *action)
{
    bool done = false;

    inherit(e, family, action);
    for (uint32_t i = family->first; i < family->first + family->n_forked; i++)
        if (plan_kind_traits(action->kind)->puts_back ||
            !has_lease(agent, action->subject.pid, agent_tid(e, i)))
            done |= act_thread(e, i, action);
    return done ? PLAN_OUTCOME_DONE : PLAN_OUTCOME_FOREIGN;
}

static PlanOutcome act_one(Engine *e, Agent *agent, const PlanAction *action, uint32_t *ret_workload)
{
    Family *family = agent_family(e, action->subject.pid);
    uint32_t index;

    if (!family || family->n_alive == 0)
        return PLAN_OUTCOME_GONE;
    *ret_workload = family->workload;
    if (!plan_kind_traits(action->kind)->masks)
        return agent_order(e, agent, action);
    if (action->subject.tid == 0)
        return act_process(e, agent, family, action);
    index = family->first + (uint32_t)(action->subject.tid - action->subject.pid - 1);
    if (e->threads[index].state == THREAD_STATE_ENDED)
        return PLAN_OUTCOME_GONE;
    if (act_thread(e, index, action))
        return PLAN_OUTCOME_DONE;
    return action->kind == PLAN_KIND_PUSH ? PLAN_OUTCOME_RETRY : PLAN_OUTCOME_FOREIGN;
}

static void count(Engine *e, Agent *agent, const PlanAction *action, uint32_t workload)
{
    static const SimMetric metrics[PLAN_KIND_MAX] = {
        [PLAN_KIND_SET_HOME] = SIM_METRIC_HOMES,   [PLAN_KIND_LEND] = SIM_METRIC_LENDS,
        [PLAN_KIND_RECALL] = SIM_METRIC_RECALLS,   [PLAN_KIND_PUSH] = SIM_METRIC_PUSHES,
        [PLAN_KIND_RELEASE] = SIM_METRIC_RELEASES,
    };

    if (metrics[action->kind] != SIM_METRIC_OPS) /* a kind may have none */
        e->tallies[workload].count[metrics[action->kind]]++;
    if (action->kind == PLAN_KIND_LEND && action->cross_node)
        e->tallies[workload].count[SIM_METRIC_LENDS_CROSS]++;
    if (engine_counts_late(e))
        agent->count[SIM_METRIC_ACTIONS_LATE]++;
}

void act_plan(Engine *e, Agent *agent, PlanOutcome *outcomes)
{
    for (size_t i = 0; i < agent->plan.n_actions; i++) {
        const PlanAction *action = &agent->plan.actions[i];
        uint32_t workload = 0;

        outcomes[i] = act_one(e, agent, action, &workload);
        if (outcomes[i] == PLAN_OUTCOME_DONE && plan_kind_traits(action->kind)->masks)
            count(e, agent, action, workload);
    }
}
