/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lends idle CPUs (P2). The kernel steals a waiting thread within microseconds, but only onto CPUs the thread may use.
 * A home takes the others out of its reach; lending returns them one at a time: one idle CPU is added to the mask of
 * one waiting thread. Masks of a whole group are never widened, which would undo the home.
 *
 * Only groups with a home of ours are considered, only threads that waited WaitPermille on each of two ticks, and only
 * while no CPU of their home is idle. The number of CPUs a group gets follows from the summed waiting of its threads:
 * each 1000 permille is one CPU's worth of work that was not done. A rest below WaitPermille is not worth a lend.
 *
 * Example: 12 spinning threads in a home of 8 CPUs run 8000 and wait 4000 permille. With WaitPermille 250 they want
 * (4000 + 1000 - 250) / 1000 = 4 CPUs. Once 4 threads are lent a CPU, 8 threads have 8 CPUs and nothing waits.
 *
 * Threads that wait most come first, and each gets the nearest idle CPU (nearest.c). A pass is one try of one group in
 * one tick, made only while idle CPUs exist; guard.c says what follows from its result.
 *
 * What it does badly: threads that wait in short bursts for each other, not for a CPU, look like waiting threads, and
 * lending moves them apart. The locality veto and residency bound how often. */

#include "plan/planner.h"

#define MECHANISM 2 /* P2 */

/* Whether the thread has its due mask, so that a CPU can be added to it. */
static bool is_at_home(const Task *task, CpuMask due)
{
    return due && task->original && task->allowed == due;
}

/* Whether the thread was lent a CPU after this tick's loads were measured, and this plan leaves it. */
static bool is_freshly_lent(const Planner *p, const Task *task)
{
    const Lease *lease = task->lease >= 0 ? &p->world->leases[task->lease] : NULL;

    return lease && lease->since_tick >= p->world->tick && p->s->cpus[lease->cpu.i].lease >= 0;
}

static void gather_task(Planner *p, size_t index)
{
    const Task *task = &p->world->tasks[index];
    const Process *process = &p->world->processes[task->process.i];
    const PlannerProcess *pp = &p->s->processes[task->process.i];
    PlannerTask *t = &p->s->tasks[index];
    const Policy *policy;
    PlannerGroup *g;
    uint32_t steady;

    if (process->group.i < 0 || task->fresh)
        return;
    g = &p->s->groups[process->group.i];
    policy = p->s->workloads[process->workload.i].policy;
    if (!g->home || !planner_placeable(policy, process, task))
        return;
    /* A borrower's wait is not at home, even if it was sent back at this instant. */
    if (task->lease >= 0 ? !is_freshly_lent(p, task) : task->last_move_usec == p->world->now_usec)
        return;

    g->backlog += task->wait_permille;
    g->max_wait = MAX(g->max_wait, task->wait_permille);
    if (task->wait_permille >= policy->wait_permille)
        *(t->apart ? &t->waits : &g->waits) = true;
    if (task->lease >= 0 || !is_at_home(task, t->due))
        return;
    steady = MIN(task->wait_permille, task->wait_before_permille);
    g->max_steady_wait = MAX(g->max_steady_wait, steady);
    if (steady < policy->wait_permille)
        return;

    g->n_pressed++;
    if (t->apart ? hwloc_bitmap_intersects(t->due, p->s->idle) : pp->home_idle)
        return;
    g->n_candidates++;
    planner_note(p, APPEND(p->s->candidates, p->s->candidates_capacity, p->s->n_candidates,
                           (PlannerCandidate){
                               .group = (uint32_t)process->group.i,
                               .wait = task->wait_permille,
                               .task = (uint32_t)index,
                           }));
}

/* CPUs lent in this tick do not show in the backlog yet: takes one CPU off it for each. */
static void discount_fresh_leases(Planner *p)
{
    for (size_t i = 0; i < p->world->n_leases; i++) {
        const Task *task = world_task(p->world, p->world->leases[i].task);
        const Process *process;
        PlannerGroup *g;

        if (!task || !is_freshly_lent(p, task))
            continue;
        process = &p->world->processes[task->process.i];
        if (process->group.i < 0)
            continue;
        g = &p->s->groups[process->group.i];
        g->backlog -= MIN(g->backlog, 1000U);
    }
}

void steal_gather(Planner *p)
{
    for (size_t i = 0; i < p->world->n_processes; i++) {
        PlannerProcess *pp = &p->s->processes[i];

        pp->home_idle = pp->due && hwloc_bitmap_intersects(pp->due, p->s->idle);
    }
    for (size_t i = 0; i < p->world->n_tasks; i++)
        gather_task(p, i);
    discount_fresh_leases(p);
}

/* Donors */

static void find_donors(Planner *p)
{
    PlanScratch *s = p->s;

    hwloc_bitmap_zero(s->set);
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (s->groups[i].home && s->groups[i].waits)
            planner_note(p, hwloc_bitmap_or(s->set, s->set, s->groups[i].home));
    for (size_t i = 0; i < p->world->n_tasks; i++)
        if (s->tasks[i].waits)
            planner_note(p, hwloc_bitmap_or(s->set, s->set, s->tasks[i].due));

    s->n_donors = 0;
    for (int cpu = hwloc_bitmap_first(s->idle); cpu >= 0; cpu = hwloc_bitmap_next(s->idle, cpu)) {
        s->cpus[cpu].owned = hwloc_bitmap_isset(s->set, (unsigned)cpu);
        if (!s->cpus[cpu].owned && !s->cpus[cpu].claimed)
            s->donors[s->n_donors++] = (CpuIx){cpu};
    }
}

static void remove_donor(PlanScratch *s, CpuIx cpu)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_donors; i++)
        if (s->donors[i].i != cpu.i)
            s->donors[n++] = s->donors[i];
    s->n_donors = n;
    s->cpus[cpu.i].idle = false;
    hwloc_bitmap_clr(s->idle, (unsigned)cpu.i);
}

/* The pass of one group */

typedef struct StealPass {
    const Group *group;
    PlannerGroup *g;
    PlannerWorkload *w;
    size_t wish;
    size_t n_lent;
    size_t n_failures;
    bool vetoed;
} StealPass;

/* Why a lend across nodes is held back although a CPU was found: a cap, or the veto. The veto comes last, so
 * that it counts only tries that would have moved something. */
static PlanReason cross_node_reason(const Planner *p, const StealPass *pass)
{
    PlanReason reason = cap_reason(p, pass->group->workload);

    return reason == PLAN_REASON_INVALID && pass->group->n_vetoes < pass->w->policy->nice_tries
               ? PLAN_REASON_LOCALITY
               : reason;
}

static bool lend(Planner *p, StealPass *pass, const NearestSeeker *s, const NearestFind *found)
{
    CpuMask due = p->s->tasks[s->task - p->world->tasks].due, to;

    planner_note(p, hwloc_bitmap_copy(p->s->set, due));
    planner_note(p, hwloc_bitmap_set(p->s->set, (unsigned)found->cpu.i));
    to = planner_intern(p, p->s->set);
    if (p->error < 0)
        return false;

    remove_donor(p->s, found->cpu);
    pass->n_lent++;
    if (found->cross_node) {
        pass->w->n_lent++;
        p->n_lent_host++;
    }
    return planner_act(p, &(PlanAction){
                              .kind = PLAN_KIND_LEND,
                              .rule = PLAN_RULE_IDLE_NEARBY,
                              .mechanism = MECHANISM,
                              .subject = world_task_key(p->world, s->task),
                              .workload = s->process->workload,
                              .group_id = pass->group->id,
                              .from = s->task->allowed,
                              .to = to,
                              .cpu = found->cpu,
                              .cross_node = found->cross_node,
                              .distance = found->distance,
                              .lease_usec = s->policy->lease_usec,
                              .value = s->task->wait_permille,
                              .limit = s->policy->wait_permille,
                          });
}

/* The CPU to lend to a thread, or why it gets none. */
static NearestFind find_cpu(Planner *p, StealPass *pass, const NearestSeeker *s)
{
    const NearestFind none = {.cpu = CPU_NONE};
    NearestFind found, local;
    PlanReason reason;
    uint64_t since;

    if (guard_residency(s->policy, s->task, p->world->now_usec, &since))
        return nearest_blocked(none, PLAN_REASON_RESIDENCY, since, s->policy->min_residency_usec);
    /* Recalls of this plan may have freed a CPU at home since the candidates were gathered. */
    if (hwloc_bitmap_intersects(p->s->tasks[s->task - p->world->tasks].due, p->s->idle))
        return nearest_blocked(none, PLAN_REASON_HOME_HAS_IDLE, 0, 0);

    found = nearest_find(p, s, true);
    p->n_searches++;
    reason = found.cpu.i >= 0 && found.cross_node ? cross_node_reason(p, pass) : PLAN_REASON_INVALID;
    if (reason == PLAN_REASON_INVALID)
        return found;
    pass->vetoed |= reason == PLAN_REASON_LOCALITY;
    local = nearest_find(p, s, false);
    p->n_searches++;
    return local.cpu.i >= 0 ? local
                            : nearest_blocked(found, reason, pass->group->n_vetoes,
                                              reason == PLAN_REASON_LOCALITY ? s->policy->nice_tries : 0);
}

/* Lends one thread a CPU, or records why not. False: out of memory. */
static bool serve(Planner *p, StealPass *pass, size_t task_index)
{
    NearestSeeker s = nearest_seeker(p, task_index);
    NearestFind found = find_cpu(p, pass, &s);

    if (found.reason == PLAN_REASON_INVALID)
        return lend(p, pass, &s, &found);
    pass->n_failures++;
    planner_refuse(p, &(PlanRefusal){
                          .reason = found.reason,
                          .mechanism = MECHANISM,
                          .subject = world_task_key(p->world, s.task),
                          .workload = s.process->workload,
                          .group_id = pass->group->id,
                          .cpu = found.cpu,
                          .value = found.value,
                          .limit = found.limit,
                      });
    return true;
}

/* Whether this tick has room for another try; records a refusal if not. */
static bool has_room(Planner *p, const StealPass *pass)
{
    bool budget = planner_has_budget(p);

    if (budget && p->n_searches < STEAL_SEARCHES_MAX)
        return true;
    planner_refuse_group(p, MECHANISM, PLAN_REASON_BUDGET, pass->group, budget ? p->n_searches : p->n_spent,
                         budget ? STEAL_SEARCHES_MAX : PLAN_ACTIONS_PER_TICK);
    return false;
}

static GuardPass run_pass(Planner *p, StealPass *pass, const PlannerCandidate *candidates, size_t n)
{
    for (size_t i = 0; i < n && pass->n_lent < pass->wish; i++) {
        if (!has_room(p, pass))
            break;
        if (p->s->n_donors == 0) {
            planner_refuse_group(p, MECHANISM, PLAN_REASON_NO_IDLE_CPU, pass->group, pass->g->max_wait,
                                 pass->w->policy->wait_permille);
            break;
        }
        if (pass->n_failures >= STEAL_FAILURES_MAX || !serve(p, pass, candidates[i].task))
            break;
    }
    if (pass->n_lent > 0)
        return GUARD_PASS_CHANGED;
    return pass->vetoed ? GUARD_PASS_VETOED : GUARD_PASS_NOTHING;
}

static void conclude(Planner *p, const StealPass *pass, GuardPass result)
{
    PlanPass after = guard_after(pass->group, pass->w->policy, p->world->tick, result);

    if (!rule_holds(p->world, ABLATION_BACKOFF) && after.backoff_ticks > 0) {
        after.backoff_until_tick -= after.backoff_ticks;
        after.backoff_ticks = 0;
    }
    if (after.n_vetoes != pass->group->n_vetoes || after.backoff_ticks != pass->group->backoff_ticks ||
        after.backoff_until_tick != pass->group->backoff_until_tick)
        planner_note(p, APPEND(p->plan->passes, p->plan->passes_capacity, p->plan->n_passes, after));
}

/* Finds how many CPUs the group wants. False: it makes no pass now. */
static bool consider(Planner *p, StealPass *pass)
{
    uint32_t least = pass->w->policy->wait_permille;
    PlanReason reason = PLAN_REASON_INVALID;
    uint64_t ticks, wait = pass->g->max_wait;

    pass->wish = MIN(pass->g->n_candidates, (pass->g->backlog + 1000 - MIN(least, 1000U)) / 1000);
    if (pass->g->n_pressed == 0 || (pass->wish == 0 && pass->g->n_candidates > 0))
        reason = PLAN_REASON_NOT_OVERLOADED;
    else if (pass->g->n_candidates == 0)
        reason = PLAN_REASON_HOME_HAS_IDLE;
    if (reason == PLAN_REASON_NOT_OVERLOADED)
        wait = pass->g->n_pressed == 0 ? pass->g->max_steady_wait : pass->g->backlog;
    if (reason != PLAN_REASON_INVALID) {
        planner_refuse_group(p, MECHANISM, reason, pass->group, wait, least);
        conclude(p, pass, GUARD_PASS_NO_WISH);
        return false;
    }

    /* Without donors there is no pass: the kernel's search starts when a CPU becomes idle, and so does this. */
    if (p->s->n_donors == 0) {
        planner_refuse_group(p, MECHANISM, PLAN_REASON_NO_IDLE_CPU, pass->group, pass->g->max_wait, least);
        return false;
    }
    if (p->world->tick < pass->group->backoff_until_tick) {
        ticks = pass->group->backoff_until_tick - p->world->tick;
        planner_refuse_group(p, MECHANISM, PLAN_REASON_BACKOFF, pass->group, ticks,
                             pass->group->backoff_ticks);
        return false;
    }
    /* A pass not begun for lack of room is none either: its turn comes in the next tick. */
    return has_room(p, pass);
}

static int compare_candidates(const void *a, const void *b)
{
    const PlannerCandidate *x = a, *y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->wait != y->wait)
        return x->wait > y->wait ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* The largest backlog first. Groups whose last pass was in vain come after the others, the one whose next pass has
 * been due for longest first: so a tick that runs out of searches does not end at the same group every time. */
static uint64_t order_key(const Group *group, uint64_t backlog)
{
    const uint64_t ahead = 1ULL << 63;

    if (group->backoff_ticks == 0)
        return ahead + MIN(backlog, ahead - 1);
    return ahead - 1 - MIN(group->backoff_until_tick, ahead - 1);
}

/* Sorts the groups that have a home and may steal. */
static void order_groups(Planner *p)
{
    PlanScratch *s = p->s;

    s->n_order = 0;
    for (size_t i = 0; i < p->world->n_groups; i++) {
        const Group *group = &p->world->groups[i];
        const Policy *policy;

        if (!s->groups[i].home || p->world->workloads[group->workload.i].paused)
            continue;
        /* The home is new: nothing has been measured under it. */
        if (s->groups[i].home != group->home || group->last_home_usec >= p->world->now_usec)
            continue;
        policy = s->workloads[group->workload.i].policy;
        if (!policy->steal || p->world->partial) {
            if (s->groups[i].n_pressed > 0)
                planner_refuse_group(p, MECHANISM,
                                     policy->steal ? PLAN_REASON_UNREADABLE : PLAN_REASON_STEAL_OFF, group,
                                     s->groups[i].max_wait, policy->wait_permille);
            continue;
        }
        s->order[s->n_order++] = (PlannerOrder){
            .key = rule_holds(p->world, ABLATION_MOST_FIRST) ? order_key(group, s->groups[i].backlog) : 0,
            .tie = group->id,
            .index = (uint32_t)i};
    }
    qsort(s->order, s->n_order, sizeof(*s->order), planner_order_compare);
}

/* The index of a group's first candidate. */
static size_t first_candidate(const PlanScratch *s, uint32_t group)
{
    return LOWER_BOUND(i, s->n_candidates, s->candidates[i].group < group);
}

void steal_lend(Planner *p)
{
    PlanScratch *s = p->s;

    find_donors(p);
    order_groups(p);
    if (s->n_donors > 0 && s->n_candidates > 0)
        qsort(s->candidates, s->n_candidates, sizeof(*s->candidates), compare_candidates);

    for (size_t i = 0; i < s->n_order && p->error == 0; i++) {
        uint32_t index = s->order[i].index;
        StealPass pass = {
            .group = &p->world->groups[index],
            .g = &s->groups[index],
            .w = &s->workloads[p->world->groups[index].workload.i],
        };

        if (consider(p, &pass))
            conclude(p, &pass,
                     run_pass(p, &pass, s->candidates + first_candidate(s, index), pass.g->n_candidates));
    }
}
