/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes: groups are confined to the nodes their policy names (Mode=fixed, Nodes=), after Sistare's finding that groups
 * which roam drag each other across nodes (P3).
 *
 * A home is the CPUs of whole nodes. What a thread is due is its home cut by the cpuset of its process (I1) and by
 * what is usable now, so a home shrinks and grows as CPUs go and come. The masks follow on slow ticks: a home is meant
 * to last, and a process that ends within a second should cost nothing.
 *
 * A process is confined by one action for all its threads that have the same mask, which also reaches threads born
 * after they were last looked at. Threads that must be left alone are told apart by their mask; when one cannot be
 * (its mask is the one to be replaced, or the one to be given, or is not known), each of the others gets an action of
 * its own. Threads born with a mask of ours get an action too although their mask is right already: only what is in
 * the journal can be put back. */

#include "plan/group.h"
#include "plan/planner.h"

#define MECHANISM 3 /* P3 */

/* Different masks of one process dealt with in one tick; more wait for the next. */
#define FROM_MAX 8U

static PlanReason workload_blocked(const Policy *policy)
{
    if (!policy)
        return PLAN_REASON_NO_POLICY;
    if (policy->mode == POLICY_MODE_NONE)
        return PLAN_REASON_MODE_NONE;
    if (policy->act == POLICY_ACT_OBSERVE)
        return PLAN_REASON_OBSERVE;
    if (policy->mode != POLICY_MODE_FIXED ||
        (policy->act != POLICY_ACT_AUTO && policy->act != POLICY_ACT_AFFINITY))
        return PLAN_REASON_NOT_ACTIVE;
    return policy->nodes ? PLAN_REASON_INVALID : PLAN_REASON_NO_HOME;
}

int home_nodes_of_policy(const Topology *topology, const Policy *policy, hwloc_bitmap_t ret)
{
    hwloc_bitmap_zero(ret);
    for (uint32_t i = 0; policy->nodes && i < topology->n_nodes; i++)
        if (topology->nodes[i].n_cpus > 0 && hwloc_bitmap_isset(policy->nodes, topology->nodes[i].os_index) &&
            hwloc_bitmap_set(ret, i) < 0)
            return -ENOMEM;
    return 0;
}

/* Interns the contents of `set`; NULL when they are empty, or (with p->error) memory is out. */
static CpuMask intern_nonempty(Planner *p, hwloc_const_bitmap_t set)
{
    CpuMask mask;

    if (hwloc_bitmap_iszero(set))
        return NULL;
    mask = intern_mask(p->world->pool, set);
    if (!mask)
        p->error = -ENOMEM;
    return mask;
}

static void decide_workload(Planner *p, size_t index)
{
    PlannerWorkload *w = &p->s->workloads[index];

    w->policy = group_policy(p->world, p->policies, (WorkloadIx){(int32_t)index});
    w->blocked = workload_blocked(w->policy);
    if (w->blocked != PLAN_REASON_INVALID || !p->limits->slow_tick)
        return;

    if (home_nodes_of_policy(p->world->topology, w->policy, p->s->nodes) < 0 ||
        topology_nodes_to_cpus(p->world->topology, p->s->nodes, p->s->set) < 0) {
        p->error = -ENOMEM;
        return;
    }
    w->home_nodes = intern_nonempty(p, p->s->nodes);
    w->home = intern_nonempty(p, p->s->set);
}

static void decide_group(Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    PlannerGroup *g = &p->s->groups[index];
    const PlannerWorkload *w;
    bool paused, decides;

    g->blocked = PLAN_REASON_NO_POLICY;
    if (group->gone || group->workload.i < 0)
        return;
    w = &p->s->workloads[group->workload.i];
    g->blocked = w->blocked;
    if (g->blocked != PLAN_REASON_INVALID) {
        planner_refuse_group(p, MECHANISM, g->blocked, group, 0, 0);
        return;
    }

    /* A paused group keeps the home it has, and so does any group between slow ticks. */
    paused = p->world->workloads[group->workload.i].paused;
    decides = p->limits->slow_tick && !paused && !p->world->partial;
    g->home = decides ? w->home : group->home;
    g->home_nodes = decides ? w->home_nodes : group->home_nodes;
    if (paused)
        planner_refuse_group(p, MECHANISM, PLAN_REASON_PAUSED, group, 0, 0);

    if (g->home ? !p->world->partial && !hwloc_bitmap_intersects(g->home, p->s->usable) : decides) {
        g->blocked = PLAN_REASON_NO_CPUS;
        g->home = g->home_nodes = NULL;
        planner_refuse_group(p, MECHANISM, PLAN_REASON_NO_CPUS, group, 0, 0);
    }
}

/* The processes of a group mostly have the same cpuset, so the last answer is mostly the next one. */
static CpuMask due_mask(Planner *p, PlannerGroup *g, CpuMask cpuset)
{
    if (!g->home || !cpuset)
        return NULL;
    if (g->due_cpuset != cpuset) {
        if (hwloc_bitmap_and(p->s->set, g->home, cpuset) < 0 ||
            hwloc_bitmap_and(p->s->set, p->s->set, p->s->usable) < 0) {
            p->error = -ENOMEM;
            return NULL;
        }
        g->due_cpuset = cpuset;
        g->due = intern_nonempty(p, p->s->set);
    }
    return g->due;
}

void home_decide(Planner *p)
{
    for (size_t i = 0; i < p->world->n_workloads; i++)
        decide_workload(p, i);
    for (size_t i = 0; i < p->world->n_groups; i++)
        decide_group(p, i);
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];

        if (!process->gone && process->group.i >= 0)
            p->s->processes[i].due = due_mask(p, &p->s->groups[process->group.i], process->cpuset);
    }
    for (size_t i = 0; i < p->world->n_tasks; i++)
        if (!p->world->tasks[i].gone && p->world->tasks[i].original)
            p->s->processes[p->world->tasks[i].process.i].ours = true;
}

/* Confining */

/* Also for threads that are right already: when they were born so, and when they came from another group with the same
 * home, of which this one has to learn. */
static bool needs_home(const Planner *p, const Process *process, const Task *task, CpuMask due)
{
    bool learn = p->world->groups[process->group.i].home != p->s->groups[process->group.i].home;

    if (task->lease >= 0)
        return false;
    return task->allowed != due || ((!task->original || learn) && due != process->cpuset);
}

/* The mask it has now. For one born with the right mask: what it would have had if it were not our child. */
static CpuMask mask_from(const Process *process, const Task *task, CpuMask due)
{
    return task->allowed != due ? task->allowed : process->cpuset;
}

/* What to put back one day, for threads of which it is not known: the mask they have, when that is all they may use or
 * somebody's choice; else it is one of ours they were born with, and without us it would be the cpuset. */
static CpuMask mask_original(Planner *p, const Process *process, const Task *task, CpuMask from)
{
    if (task && task->hands == TASK_HANDS_FOREIGN)
        return from;
    if (hwloc_bitmap_and(p->s->set, process->cpuset, p->s->usable) < 0)
        p->error = -ENOMEM;
    return hwloc_bitmap_isincluded(p->s->set, from) ? from : process->cpuset;
}

/* Whether an action for all threads with the mask `from` would also reach this one, which must be left alone. */
static bool would_be_hit(const Task *task, CpuMask from, CpuMask due)
{
    return !task->allowed || task->allowed == from || task->allowed == due ||
           task->hands == TASK_HANDS_UNKNOWN;
}

static bool emit_home(Planner *p, const Process *process, const Task *task, CpuMask from, CpuMask due)
{
    const Group *group = &p->world->groups[process->group.i];
    const PlannerGroup *g = &p->s->groups[process->group.i];

    return planner_act(p, &(PlanAction){
                              .kind = PLAN_KIND_SET_HOME,
                              .rule = group->home == g->home ? PLAN_RULE_NEW_MEMBER : PLAN_RULE_FIXED_HOME,
                              .mechanism = MECHANISM,
                              .subject = task ? world_task_key(p->world, task) : planner_process_key(process),
                              .workload = process->workload,
                              .group_id = group->id,
                              .from = from,
                              .to = due,
                              .original = mask_original(p, process, task, from),
                              .home_nodes = g->home_nodes,
                              .cpu = CPU_NONE,
                              .value = (uint32_t)hwloc_bitmap_weight(due),
                              .limit = (uint32_t)hwloc_bitmap_weight(process->cpuset),
                          });
}

typedef struct HomeNeed {
    CpuMask from[FROM_MAX];
    size_t n_from;
    bool apart; /* one action per thread */
} HomeNeed;

static void need_add(HomeNeed *need, CpuMask from)
{
    for (size_t i = 0; i < need->n_from; i++)
        if (need->from[i] == from)
            return;
    if (need->n_from < FROM_MAX)
        need->from[need->n_from++] = from;
}

static void collect_needs(const Planner *p, const Process *process, const Policy *policy, const Task *tasks,
                          size_t n, CpuMask due, HomeNeed *need)
{
    for (size_t i = 0; i < n; i++)
        if (planner_placeable(policy, process, &tasks[i]) && needs_home(p, process, &tasks[i], due)) {
            need_add(need, mask_from(process, &tasks[i], due));
            need->apart |= tasks[i].hands == TASK_HANDS_FOREIGN;
        }
    for (size_t i = 0; i < n && !need->apart; i++)
        for (size_t k = 0; k < need->n_from; k++)
            if (!tasks[i].gone && !planner_placeable(policy, process, &tasks[i]) &&
                would_be_hit(&tasks[i], need->from[k], due))
                need->apart = true;
}

static void home_threads(Planner *p, const Process *process, const Policy *policy, const Task *tasks,
                         size_t n, CpuMask due)
{
    for (size_t i = 0; i < n; i++) {
        if (!planner_placeable(policy, process, &tasks[i]) || !needs_home(p, process, &tasks[i], due))
            continue;
        if (!planner_has_budget(p)) {
            planner_refuse_process(p, MECHANISM, PLAN_REASON_BUDGET, process, p->n_spent,
                                   PLAN_ACTIONS_PER_TICK);
            return;
        }
        if (!emit_home(p, process, &tasks[i], mask_from(process, &tasks[i], due), due))
            return;
    }
}

static void home_process(Planner *p, const Process *process, CpuMask due)
{
    const Policy *policy = p->s->workloads[process->workload.i].policy;
    uint64_t age = p->world->now_usec - MIN(process->first_seen_usec, p->world->now_usec);
    HomeNeed need = {0};
    const Task *tasks;
    size_t n;

    tasks = &p->world->tasks[world_process_tasks(p->world, process, &n)];
    collect_needs(p, process, policy, tasks, n, due, &need);
    if (need.n_from == 0)
        return;
    if (age < policy->min_age_usec) {
        planner_refuse_process(p, MECHANISM, PLAN_REASON_TOO_YOUNG, process, age, policy->min_age_usec);
        return;
    }
    if (need.apart) {
        home_threads(p, process, policy, tasks, n, due);
        return;
    }
    for (size_t i = 0; i < need.n_from; i++) {
        if (!planner_has_budget(p)) {
            planner_refuse_process(p, MECHANISM, PLAN_REASON_BUDGET, process, p->n_spent,
                                   PLAN_ACTIONS_PER_TICK);
            return;
        }
        if (!emit_home(p, process, NULL, need.from[i], due))
            return;
    }
}

/* Why a thread of a confined group is left alone, for explain. */
static void refuse_hands(Planner *p, const Policy *policy, const Process *process, const Task *task)
{
    static const PlanReason reasons[TASK_HANDS_MAX] = {
        [TASK_HANDS_FREE] = PLAN_REASON_CLASS, /* free, but of a class never touched */
        [TASK_HANDS_FOREIGN] = PLAN_REASON_FOREIGN_AFFINITY,
        [TASK_HANDS_REPINNED] = PLAN_REASON_REPINNED,
        [TASK_HANDS_PER_CPU] = PLAN_REASON_PER_CPU,
        [TASK_HANDS_CLASS] = PLAN_REASON_CLASS,
        [TASK_HANDS_DENIED] = PLAN_REASON_DENIED,
        [TASK_HANDS_UNKNOWN] = PLAN_REASON_UNREADABLE,
    };

    if (!task->gone && !planner_placeable(policy, process, task))
        planner_refuse_task(p, MECHANISM, reasons[task->hands], task, 0, 0);
}

void home_set(Planner *p)
{
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];
        const PlannerGroup *g;

        if (process->gone || process->group.i < 0)
            continue;
        g = &p->s->groups[process->group.i];
        if (!g->home || p->world->workloads[process->workload.i].paused)
            continue;
        if (process->yielded) {
            planner_refuse_process(p, MECHANISM, PLAN_REASON_REPINNED, process, 0, 0);
        } else if (p->world->partial || !process->cpuset) {
            planner_refuse_process(p, MECHANISM, PLAN_REASON_UNREADABLE, process, 0, 0);
        } else if (!p->s->processes[i].due) {
            planner_refuse_process(p, MECHANISM, PLAN_REASON_NO_CPUS, process, 0, 0);
        } else {
            home_process(p, process, p->s->processes[i].due);
        }
    }

    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        const Process *process = &p->world->processes[task->process.i];

        if (!process->gone && !process->yielded && process->group.i >= 0 &&
            p->s->groups[process->group.i].home)
            refuse_hands(p, p->s->workloads[process->workload.i].policy, process, task);
    }
}
