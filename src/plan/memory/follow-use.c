/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moves memory to the threads that use it, to nodes judged before, block by block (plan/memory/sorting.h).
 * The gates for memory that follows its home decide whether it may move now. */

#include "plan/group.h"
#include "plan/memory/follow-internal.h"

static const Process *find_process(const Planner *p, TaskKey subject)
{
    const Process *process = world_process(p->world, subject.pid);

    if (!process || process->gone || process->yielded || process->start_ticks != subject.start_ticks ||
        process->group.i < 0 || p->world->workloads[process->workload.i].paused || process->memory.to)
        return NULL;
    return process;
}

/* The home may have changed since the blocks were judged. */
static bool is_home(const Follow *f)
{
    return !f->group->home_nodes || hwloc_bitmap_isincluded(f->to, f->group->home_nodes);
}

/* A home of one node gets all memory, whoever uses it (plan/memory/follow.h). If a part went before, the rest
 * might not be worth moving. */
static bool goes_anyway(const Follow *f)
{
    return f->group->home_nodes && hwloc_bitmap_weight(f->group->home_nodes) == 1 && follow_is_due(f);
}

/* This plan decides on no homes: they stay as they are. */
static void take_home(Planner *p, const Process *process)
{
    const Group *group = &p->world->groups[process->group.i];
    PlannerGroup *g = &p->s->groups[process->group.i];

    g->home = group->home;
    g->home_nodes = group->home_nodes;
    g->roams = group->roams;
}

static void follow_one(Planner *p, const PlanUse *use)
{
    const Process *process = find_process(p, use->subject);
    Follow f = {.p = p, .process = process, .rule = PLAN_RULE_FOLLOW_USE, .outside_bytes = use->bytes};

    if (!process || use->n_ranges == 0)
        return;
    take_home(p, process);
    f.group = &p->world->groups[process->group.i];
    f.g = &p->s->groups[process->group.i];
    f.policy = group_policy(p->world, p->policies, process->workload);
    f.from = planner_intern(p, use->from);
    f.to = planner_intern(p, use->to);
    if (!f.policy || !f.from || !f.to || !is_home(&f) || goes_anyway(&f) || !follow_may(&f) ||
        !follow_is_time(&f) || !follow_has_room(&f) || !follow_has_rate(&f))
        return;
    if (planner_has_budget(p))
        follow_order(&f, use->stripe ? MECHANISM_STRIPE : MECHANISM_FILTER, use);
    else
        (void)follow_refuse(&f, MECHANISM_FILTER, PLAN_REASON_BUDGET, p->n_spent, PLAN_ACTIONS_PER_TICK);
}

void follow_uses(Planner *p, const PlanUse *uses, size_t n)
{
    if (!follow_gather(p))
        return;
    for (size_t i = 0; i < n && p->error == 0; i++)
        follow_one(p, &uses[i]);
}
