/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Folds the outcomes of a plan into the World, so that the next plan knows them before the kernel is read again.
 *
 * An action that did not go as planned leaves the World unchanged, or its subject is left alone until it has been read
 * again: that a mask is not the expected one does not tell what it is.
 *
 * Two choices:
 *
 * - A new home does not start a thread's residency (last_move_usec), or a crowded home could not be relieved
 *   for MinResidencySec=. But earlier waiting says nothing about the new home. So the older of the two ticks
 *   of waiting that a lend needs is forgotten: at least one tick must be measured under the new mask.
 * - Buckets are charged for lends and pushes that were made, not for those that were planned. */

#include "base/time.h"
#include "plan/group.h"
#include "plan/planner.h"

typedef struct Commit {
    World *world;
    const PolicySet *policies;
    const PlanLimits *limits;
    const Plan *plan;
} Commit;

/* Ends the lease. The CPU can be lent again from the next instant on, unless it cools down for its owner. */
static void end_lease(const Commit *c, const Task *task)
{
    CpuLoad *cpu;

    if (task->lease < 0)
        return;
    cpu = &c->world->cpus[c->world->leases[task->lease].cpu.i];
    cpu->cooldown_until_usec = MAX(cpu->cooldown_until_usec, c->plan->now_usec + 1);
    world_remove_lease(c->world, (size_t)task->lease);
}

/* The tasks that an action concerns: one, or all of a process. NULL when they are no longer in the World. */
static Task *subject_tasks(const Commit *c, const PlanAction *action, Process **ret_process, size_t *ret_n)
{
    Process *process = world_process(c->world, action->subject.pid);
    Task *task;

    if (!process)
        return NULL;
    *ret_process = process;
    if (action->subject.tid == 0) {
        if (process->start_ticks != action->subject.start_ticks)
            return NULL;
        return c->world->tasks + world_process_tasks(c->world, process, ret_n);
    }
    task = world_task(c->world, action->subject);
    *ret_n = 1;
    return task;
}

/* Done */

/* Whether a SET_HOME of the whole process, or of this thread, covers this thread. */
static bool home_covers(const Commit *c, const PlanAction *action, const Process *process, const Task *task)
{
    return task->lease < 0 &&
           planner_placeable(group_policy(c->world, c->policies, action->workload), process, task) &&
           (task->allowed == action->from || task->allowed == action->to);
}

/* What runs on the CPU changed, so it must be seen busy anew. */
static void begin_anew(const Commit *c, CpuIx cpu)
{
    if (topology_cpu(c->world->topology, cpu) &&
        c->world->cpus[cpu.i].busy_permille >= c->world->idle_permille)
        c->world->cpus[cpu.i].busy_before_permille = 0;
}

static void home_tasks(const Commit *c, const PlanAction *action, const Process *process, Task *tasks,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        Task *task = &tasks[i];

        if (!home_covers(c, action, process, task))
            continue;
        if (!task->original || task->allowed != action->to) {
            task->wait_before_permille = 0;
            begin_anew(c, task->last_cpu);
        }
        if (!task->original)
            task->original = action->original;
        task->allowed = action->to;
    }
}

/* A move across nodes takes a token from both buckets, the workload's and the host's. */
static void charge(const Commit *c, const PlanAction *action)
{
    const Policy *policy = group_policy(c->world, c->policies, action->workload);
    uint64_t now = c->plan->now_usec;

    if (!policy || !action->cross_node)
        return;
    cap_take(&c->world->workloads[action->workload.i].cross_node, policy->cross_node_moves_per_sec,
             policy->cross_node_burst, now);
    cap_take(&c->world->cross_node, c->limits->cross_node_moves_per_sec, c->limits->cross_node_burst, now);
}

static int done_lend(const Commit *c, const PlanAction *action, Task *task)
{
    uint64_t now = c->plan->now_usec;
    int r = world_add_lease(c->world, &(Lease){
                                          .task = action->subject,
                                          .group_id = action->group_id,
                                          .cpu = action->cpu,
                                          .cross_node = action->cross_node,
                                          .since_usec = now,
                                          .until_usec = time_after(now, action->lease_usec),
                                          .since_tick = c->plan->tick,
                                      });

    if (r < 0)
        return r;
    task->allowed = action->to;
    task->last_move_usec = now;
    c->world->workloads[action->workload.i].n_lends++;
    charge(c, action);
    return 0;
}

static void done_push(const Commit *c, const PlanAction *action, Task *task)
{
    begin_anew(c, task->last_cpu);
    c->world->cpus[action->cpu.i].idle_since_usec = 0;
    task->last_cpu = action->cpu;
    task->last_move_usec = c->plan->now_usec;
    charge(c, action);
}

static void cool_down(const Commit *c, const PlanAction *action, uint64_t since_usec)
{
    const Policy *policy = group_policy(c->world, c->policies, action->workload);
    CpuLoad *cpu = &c->world->cpus[action->cpu.i];
    uint64_t now = c->plan->now_usec, held = now - MIN(since_usec, now), interval = c->world->interval_usec;

    if (!policy || !rule_holds(c->world, ABLATION_COOLDOWN))
        return;
    cpu->cooldown_ticks = guard_cooldown(cpu, policy, held, interval);
    cpu->cooldown_until_usec = time_after(now, guard_cooldown_usec(cpu, policy, held, interval));
}

static void done_recall(const Commit *c, const PlanAction *action, Task *task)
{
    if (task->lease >= 0 && action->rule == PLAN_RULE_OWNER_WAITS)
        cool_down(c, action, c->world->leases[task->lease].since_usec);
    end_lease(c, task);
    task->allowed = action->to;
    task->last_move_usec = c->plan->now_usec;
    c->world->workloads[action->workload.i].n_recalls++;
}

/* Also when act found foreign masks: threads with a mask of ours were restored, and the others are not ours. */
static void done_release(Commit *c, const PlanAction *action, Task *tasks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        Task *task = &tasks[i];

        if (!planner_can_put_back(task))
            continue;
        end_lease(c, task);
        if ((task->hands == TASK_HANDS_FREE && task->allowed == action->from) ||
            (task->hands != TASK_HANDS_REPINNED && task->original)) {
            task->allowed = task->original ? task->original : action->to;
            task->last_move_usec = c->plan->now_usec;
        }
        task->original = NULL;
    }
}

static int apply_done(Commit *c, const PlanAction *action, Process *process, Task *tasks, size_t n)
{
    switch (action->kind) {
    case PLAN_KIND_SET_HOME:
        home_tasks(c, action, process, tasks, n);
        break;
    case PLAN_KIND_LEND:
        return done_lend(c, action, tasks);
    case PLAN_KIND_RECALL:
        done_recall(c, action, tasks);
        break;
    case PLAN_KIND_PUSH:
        done_push(c, action, tasks);
        break;
    case PLAN_KIND_RELEASE:
        done_release(c, action, tasks, n);
        break;
    case PLAN_KIND_MOVE_PAGES:
        follow_begun(c->world, group_policy(c->world, c->policies, action->workload), action, process);
        break;
    case PLAN_KIND_MAX:
    case PLAN_KIND_INVALID:
        break;
    }
    return 0;
}

/* Not done */

static void apply_gone(const Commit *c, const PlanAction *action, Process *process, Task *tasks, size_t n)
{
    if (action->subject.tid == 0)
        process->gone = true;
    for (size_t i = 0; i < n; i++) {
        end_lease(c, &tasks[i]);
        tasks[i].gone = true;
    }
}

/* Somebody else's mask was found. Which threads of a process had it shows when they are read again; only
 * threads already known to have the new mask are updated. */
static void apply_foreign(Commit *c, const PlanAction *action, const Process *process, Task *tasks, size_t n)
{
    if (plan_kind_traits(action->kind)->puts_back) {
        done_release(c, action, tasks, n);
    } else if (action->subject.tid != 0) {
        end_lease(c, tasks);
        tasks->hands = TASK_HANDS_UNKNOWN;
    } else {
        for (size_t i = 0; i < n; i++)
            if (home_covers(c, action, process, &tasks[i]) && tasks[i].allowed == action->to &&
                !tasks[i].original)
                tasks[i].original = action->original;
    }
}

static void apply_refused(const Commit *c, const PlanAction *action, const Process *process, Task *tasks,
                          size_t n)
{
    for (size_t i = 0; i < n && plan_kind_traits(action->kind)->masks; i++)
        if (action->kind != PLAN_KIND_SET_HOME || home_covers(c, action, process, &tasks[i]))
            tasks[i].hands = TASK_HANDS_DENIED;
}

static int apply(Commit *c, const PlanAction *action, PlanOutcome outcome)
{
    Process *process = NULL;
    size_t n = 0;
    Task *tasks = subject_tasks(c, action, &process, &n);

    if (!tasks)
        return 0;
    switch (outcome) {
    case PLAN_OUTCOME_DONE:
        return apply_done(c, action, process, tasks, n);
    case PLAN_OUTCOME_GONE:
        apply_gone(c, action, process, tasks, n);
        break;
    case PLAN_OUTCOME_FOREIGN:
        apply_foreign(c, action, process, tasks, n);
        break;
    case PLAN_OUTCOME_REFUSED:
        apply_refused(c, action, process, tasks, n);
        break;
    default: /* nothing was changed, and nothing learned */
        if (action->kind == PLAN_KIND_PUSH)
            tasks->last_move_usec = c->plan->now_usec; /* so it is not tried again at once */
        break;
    }
    return 0;
}

/* Homes */

/* Whether all actions to confine or release the group failed. Threads with foreign masks are no failure. */
static bool home_failed(const Commit *c, const PlanOutcome *outcomes, uint64_t group_id)
{
    bool planned = false;

    for (size_t i = 0; outcomes && i < c->plan->n_actions; i++) {
        const PlanAction *action = &c->plan->actions[i];

        if (action->group_id != group_id || !plan_kind_traits(action->kind)->masks ||
            plan_kind_traits(action->kind)->takes_cpu)
            continue;
        if (outcomes[i] == PLAN_OUTCOME_DONE || outcomes[i] == PLAN_OUTCOME_FOREIGN ||
            outcomes[i] == PLAN_OUTCOME_PARTLY)
            return false;
        planned = true;
    }
    return planned;
}

/* Counts a change of home. Returns whether there were too many within PingPongSec, wherever the group went.
 * There and back is two changes. */
static bool count_change(Group *group, uint64_t now, uint64_t pause)
{
    if (group->n_changes == 0 || now - MIN(group->changes_since_usec, now) >= pause) {
        group->n_changes = 0;
        group->changes_since_usec = now;
    }
    group->n_changes++;
    return group->n_changes >= PLANNER_CHANGES_MAX;
}

/* A trial in one home says nothing about another. */
static void forget_pool(Group *group)
{
    group->pool_until_usec = group->pool_next_usec = 0;
    group->pool_before_permille = group->pool_others_permille = 0;
    group->pool_progress = 0;
}

static void move_group(const Commit *c, Group *group, const PlanHome *home, bool unsettled)
{
    const Policy *policy = group_policy(c->world, c->policies, group->workload);
    uint64_t now = c->plan->now_usec, pause = policy ? MAX(policy->ping_pong_usec, policy->settle_usec) : 0;
    bool chosen = policy && policy->mode != POLICY_MODE_FIXED, first = group->last_home_usec == 0;
    /* Roaming is a return only for a group that roamed before: before its first home it lived nowhere. */
    bool returns = !first && now - MIN(group->last_home_usec, now) < pause &&
                   home->home_nodes == group->before_nodes && (home->home_nodes || group->n_changes > 0);
    bool restless = !first && count_change(group, now, pause);

    if (chosen && (home->reverts || returns || restless))
        group->frozen_until_usec = time_after(now, pause);
    group->before_nodes = group->home_nodes;
    group->wish_nodes = NULL;
    group->before_wait_permille = home->wait_permille;
    group->before_others_permille = home->others_permille;
    group->before_demand_permille = group->demand_permille;
    group->guessed = home->guessed;
    group->judge_usec =
        chosen && policy->settle_usec > 0 && !home->reverts ? time_after(now, policy->settle_usec) : 0;
    group->home = home->home;
    group->home_nodes = home->home_nodes;
    group->roams = !home->home;
    group->last_home_usec = unsettled ? 0 : now;
    forget_pool(group);
}

/* When one of several homes fails, the others may have been meant as an exchange with it. So the next plan
 * may undo them, whatever MinResidencySec= says (P6). */
static void commit_homes(const Commit *c, const PlanOutcome *outcomes)
{
    bool any_failed = false;

    for (size_t i = 0; i < c->plan->n_homes; i++)
        any_failed |= home_failed(c, outcomes, c->plan->homes[i].group_id);
    for (size_t i = 0; i < c->plan->n_homes; i++) {
        const PlanHome *home = &c->plan->homes[i];
        Group *group = world_group_by_id(c->world, home->group_id);

        if (!group || home_failed(c, outcomes, home->group_id))
            continue;
        if (home->judged)
            group->judge_usec = 0;
        else
            move_group(c, group, home, any_failed);
    }
}

/* A thread that gets its first home node, or loses it, was not reassigned, unless it was spilled. A first
 * home node only delays the next trial without home nodes. */
static void commit_threads(const Commit *c)
{
    for (size_t i = 0; i < c->plan->n_threads; i++) {
        const PlanThread *thread = &c->plan->threads[i];
        Task *task = world_task(c->world, thread->task);
        int32_t group = task ? c->world->processes[task->process.i].group.i : -1;

        if (!task)
            continue;
        if (group >= 0 && thread->home_node.i >= 0 && (task->home_node.i >= 0 || thread->spilled))
            c->world->groups[group].apart_usec = c->plan->now_usec;
        else if (group >= 0 && thread->home_node.i >= 0)
            c->world->groups[group].pool_next_usec =
                MAX(c->world->groups[group].pool_next_usec, time_after(c->plan->now_usec, PLANNER_POOL_USEC));
        task->home_node = thread->home_node;
    }
}

/* Lets the speed of the group be counted in the trial too: in its second half, when caches are filled. */
static void count_anew(World *world, int32_t group)
{
    for (size_t i = 0; i < world->n_processes; i++)
        if (world->processes[i].group.i == group)
            world->processes[i].stall_due_usec = world->now_usec + PLANNER_POOL_USEC / 2;
}

static void commit_pools(const Commit *c)
{
    for (size_t i = 0; i < c->plan->n_pools; i++) {
        const PlanPool *pool = &c->plan->pools[i];
        Group *group = world_group_by_id(c->world, pool->group_id);

        if (!group)
            continue;
        group->pool_until_usec = pool->until_usec;
        group->pool_next_usec = pool->next_usec;
        group->pool_before_permille = pool->before_permille;
        group->pool_others_permille = pool->others_permille;
        group->pool_progress = pool->progress;
        if (pool->before_permille > 0)
            count_anew(c->world, (int32_t)(group - c->world->groups));
    }
}

static void commit_freezes(const Commit *c)
{
    for (size_t i = 0; i < c->plan->n_freezes; i++) {
        Group *group = world_group_by_id(c->world, c->plan->freezes[i].group_id);

        if (group)
            group->converged = c->plan->freezes[i].frozen;
    }
}

/* Guards */

/* Whether all lends failed. Then the pass changed nothing, and is tried again later, not in every tick. */
static bool lends_failed(const Commit *c, const PlanOutcome *outcomes, uint64_t group_id)
{
    size_t n_planned = 0, n_done = 0;

    for (size_t i = 0; i < c->plan->n_actions; i++) {
        const PlanAction *action = &c->plan->actions[i];

        if (action->kind != PLAN_KIND_LEND || action->group_id != group_id)
            continue;
        n_planned++;
        n_done += !outcomes || outcomes[i] == PLAN_OUTCOME_DONE;
    }
    return n_planned > 0 && n_done == 0;
}

static void commit_passes(const Commit *c, const PlanOutcome *outcomes)
{
    for (size_t i = 0; i < c->plan->n_passes; i++) {
        PlanPass pass = c->plan->passes[i];
        Group *group = world_group_by_id(c->world, pass.group_id);
        const Policy *policy;

        if (!group)
            continue;
        policy = group_policy(c->world, c->policies, group->workload);
        if (policy && lends_failed(c, outcomes, pass.group_id))
            pass = guard_after(group, policy, c->plan->tick, GUARD_PASS_NOTHING);
        group->n_vetoes = pass.n_vetoes;
        group->backoff_ticks = pass.backoff_ticks;
        group->backoff_until_tick = pass.backoff_until_tick;
    }
}

/* Whether the release concerns the whole group. If one process leaves, or has no CPU left, the home is still
 * right for the others. */
static bool ends_home(const PlanAction *action)
{
    return action->kind == PLAN_KIND_RELEASE && action->rule != PLAN_RULE_REPINNED &&
           action->rule != PLAN_RULE_HOME_GONE;
}

/* Takes the home from released groups once none of their threads has a mask of ours. */
static int forget_homes(const Commit *c)
{
    CLEANUP_FREE bool *ours = calloc(MAX(c->world->n_groups, (size_t)1), sizeof(*ours));

    if (!ours)
        return -ENOMEM;
    for (size_t i = 0; i < c->world->n_tasks; i++) {
        int32_t group = c->world->processes[c->world->tasks[i].process.i].group.i;

        if (group >= 0 && c->world->tasks[i].original)
            ours[group] = true;
    }
    for (size_t i = 0; i < c->plan->n_actions; i++) {
        Group *group = world_group_by_id(c->world, c->plan->actions[i].group_id);

        if (ends_home(&c->plan->actions[i]) && group && !ours[group - c->world->groups]) {
            group->home = group->home_nodes = NULL;
            forget_pool(group);
        }
    }
    return 0;
}

/* Applies each part like an action on that thread. */
static int apply_parts(Commit *c, const PlanAction *action, const PlanPart *parts, size_t n)
{
    PlanAction part = *action;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        part.subject = parts[i].task;
        r = apply(c, &part, parts[i].outcome);
    }
    return r;
}

static int apply_all(Commit *c, const PlanOutcome *outcomes, const PlanPart *parts, size_t n_parts)
{
    size_t at = 0;
    int r = 0;

    for (size_t i = 0; i < c->plan->n_actions && r == 0; i++) {
        size_t n = 0;

        while (at + n < n_parts && parts[at + n].action == i)
            n++;
        if (n > 0)
            r = apply_parts(c, &c->plan->actions[i], parts + at, n);
        else
            r = apply(c, &c->plan->actions[i], outcomes ? outcomes[i] : PLAN_OUTCOME_DONE);
        at += n;
    }
    return r;
}

int plan_commit_parts(World *world, const PolicySet *policies, const PlanLimits *limits, const Plan *plan,
                      const PlanOutcome *outcomes, const PlanPart *parts, size_t n_parts)
{
    Commit c = {.world = world, .policies = policies, .limits = limits, .plan = plan};
    int r;

    /* A CPU that was lent must be remembered, so room is made before anything is written. */
    if (!GROW(world->leases, world->leases_capacity, world->n_leases + plan->n_actions))
        return -ENOMEM;

    r = apply_all(&c, outcomes, parts, n_parts);
    commit_homes(&c, outcomes);
    commit_threads(&c);
    commit_pools(&c);
    commit_freezes(&c);
    commit_passes(&c, outcomes);
    if (r == 0 && plan->n_actions > 0 && plan->actions[0].kind == PLAN_KIND_RELEASE)
        r = forget_homes(&c);
    if (plan->n_actions > 0)
        world_sum(world);
    return r;
}

int plan_commit(World *world, const PolicySet *policies, const PlanLimits *limits, const Plan *plan,
                const PlanOutcome *outcomes)
{
    return plan_commit_parts(world, policies, limits, plan, outcomes, NULL, 0);
}
