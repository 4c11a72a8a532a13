/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moves memory to the threads that use it, to nodes judged before, block by block (plan/memory/sorting.h).
 * When it may go: follow-when.c. */

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
    if (f.policy && f.from && f.to && follow_goes_to_users(&f))
        follow_order(&f, use->stripe ? MECHANISM_STRIPE : MECHANISM_FILTER, use);
}

void follow_uses(Planner *p, const PlanUse *uses, size_t n)
{
    if (!follow_gather(p))
        return;
    for (size_t i = 0; i < n && p->error == 0; i++)
        follow_one(p, &uses[i]);
}
