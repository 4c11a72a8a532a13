/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Releases processes whose threads have masks of ours and that are to have no home: puts the former masks back.
 *
 * One action covers the whole process, including threads created since: the journal and a thread's current mask count,
 * not what was last seen of it. Threads that somebody else re-pinned are left as they are. They are still named here,
 * so that the journal forgets them.
 *
 * A group that merely has no home yet is not released: its processes may come from another group, and get their new
 * masks at the next slow tick without first spreading over the machine. */

#include "plan/planner.h"

#define MECHANISM 3 /* P3: undoes a home */

static PlanRule release_rule(const Planner *p, const Process *process, const PlannerProcess *pp)
{
    const PlannerGroup *g;

    if (process->group.i < 0)
        return PLAN_RULE_WORKLOAD_GONE;
    if (process->yielded)
        return PLAN_RULE_REPINNED;
    g = &p->s->groups[process->group.i];
    if (g->roams)
        return PLAN_RULE_ROAMS;
    if (g->blocked == PLAN_REASON_NO_CPUS)
        return PLAN_RULE_HOME_GONE;
    if (g->blocked != PLAN_REASON_INVALID)
        return PLAN_RULE_WORKLOAD_GONE;
    if (g->home && process->cpuset && !pp->due)
        return PLAN_RULE_HOME_GONE;
    return PLAN_RULE_INVALID;
}

/* The thread that stands for the process: one whose mask may be put back, or, only for the journal, one that
 * re-pinned itself. */
static const Task *representative(const World *world, const Process *process)
{
    const Task *found = NULL;
    size_t n, first = world_process_tasks(world, process, &n);

    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];

        if (task->gone || !task->original || !planner_can_put_back(task))
            continue;
        if (task->lease < 0 && task->hands != TASK_HANDS_REPINNED)
            return task;
        if (!found)
            found = task;
    }
    return found;
}

static void free_leases(Planner *p, const Process *process)
{
    size_t n, first = world_process_tasks(p->world, process, &n);

    for (size_t i = first; i < first + n; i++) {
        const Task *task = &p->world->tasks[i];

        if (task->lease >= 0 && planner_can_put_back(task))
            planner_take_back(p, p->world->leases[task->lease].cpu);
    }
}

static void release_process(Planner *p, size_t index, PlanRule rule)
{
    const Process *process = &p->world->processes[index];
    const Task *task = representative(p->world, process);

    if (!task)
        return;
    p->s->processes[index].released = true;
    free_leases(p, process);
    planner_act(p, &(PlanAction){
                       .kind = PLAN_KIND_RELEASE,
                       .rule = rule,
                       .mechanism = MECHANISM,
                       .subject = planner_process_key(process),
                       .workload = process->workload,
                       .group_id = process->group.i >= 0 ? p->world->groups[process->group.i].id : 0,
                       .from = task->allowed,
                       .to = task->original,
                       .cpu = CPU_NONE,
                   });
}

void release_all(Planner *p)
{
    for (size_t i = 0; i < p->world->n_processes; i++) {
        PlanRule rule;

        if (p->world->processes[i].gone || !p->s->processes[i].ours)
            continue;
        rule = release_rule(p, &p->world->processes[i], &p->s->processes[i]);
        if (rule != PLAN_RULE_INVALID)
            release_process(p, i, rule);
    }
}

void release_workload(Planner *p, WorkloadIx workload, PlanRule rule)
{
    for (size_t i = 0; i < p->world->n_processes; i++)
        if (!p->world->processes[i].gone &&
            (workload.i < 0 || p->world->processes[i].workload.i == workload.i))
            release_process(p, i, rule);
}
