/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One plan, from beginning to end: prepares the working memory, calls each mechanism in turn (see planner.h),
 * and collects their decisions.
 *
 * Cost: a few walks over the tasks, and n log n only over those that wait. Nothing is allocated per thread;
 * arrays stay with the Plan and only grow. */

#include "plan/choose/wait.h"

#include <string.h>

/* A confined group whose threads wait this long may soon be lent something: look at it every fast tick. Less than the
 * usual WaitPermille, because one tick at rest may be 2 s and averages a burst away. */
#define PRESSED_WAIT_PERMILLE 100U

/* Whether the group could ever be lent a CPU: its policy lets it steal, and its home, or a home node of its threads,
 * leaves out usable CPUs. A group that may use all CPUs is left to the kernel, however long its threads wait. */
static bool may_borrow(const Planner *p, size_t index)
{
    const PlannerGroup *g = &p->s->groups[index];
    WorkloadIx workload = p->world->groups[index].workload;

    return g->home && p->s->workloads[workload.i].policy->steal &&
           (g->apart || !hwloc_bitmap_isincluded(p->s->usable, g->home));
}

static bool any_may_borrow(const Planner *p)
{
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (may_borrow(p, i))
            return true;
    return false;
}

static bool lends(const Planner *p)
{
    if (p->world->n_leases > 0)
        return true;
    for (size_t i = 0; i < p->plan->n_actions; i++)
        if (p->plan->actions[i].kind == PLAN_KIND_LEND)
            return true;
    return false;
}

static bool borrower_waits(const Planner *p)
{
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (p->s->groups[i].max_wait >= PRESSED_WAIT_PERMILLE && may_borrow(p, i))
            return true;
    return false;
}

/* Whether planning homes again can wait: this plan found nothing to do, and nothing that only time prevents. */
static bool is_settled(const Planner *p)
{
    static const PlanReason passing[] = {
        PLAN_REASON_EVIDENCE, PLAN_REASON_UNSETTLED,   PLAN_REASON_RESIDENCY,   PLAN_REASON_TOO_YOUNG,
        PLAN_REASON_BUDGET,   PLAN_REASON_RATE_MEMORY, PLAN_REASON_USE_AWAITED,
    };
    const Plan *plan = p->plan;

    for (size_t i = 0; i < ARRAY_SIZE(passing); i++)
        if (plan->n_refused[passing[i]] > 0)
            return false;
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (p->s->groups[i].moving_bytes > 0 || planner_tries_pool(p->world, &p->world->groups[i]) ||
            (p->s->groups[i].put_off && p->s->groups[i].put_off_for != PLAN_REASON_ALL_BUSY))
            return false;
    return plan->n_actions == 0 && plan->n_homes == 0 && plan->n_threads == 0 && plan->n_freezes == 0 &&
           plan->n_pools == 0;
}

static uint32_t count_waiting(const Planner *p)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->world->n_groups; i++)
        if (may_borrow(p, i))
            sum += p->s->groups[i].backlog;
    return (uint32_t)MIN(sum / 1000, UINT32_MAX);
}

static void compute(Planner *p)
{
    p->homes = p->limits->slow_tick || choose_early(p);
    memset(p->s->node_traffic_mb, 0, sizeof(p->s->node_traffic_mb));
    home_decide(p);
    release_all(p);
    recall_due(p);
    overload_classify(p);
    steal_gather(p);
    recall_to_idle_homes(p);
    home_set(p);
    steal_lend(p);
    push_siblings(p);
    if (p->homes) {
        follow_homes(p);
        home_say_stays(p);
    }
    p->plan->pressed = lends(p) || choose_waits(p);
    p->plan->full = !p->plan->pressed && p->plan->n_idle == 0 && borrower_waits(p);
    p->plan->pressed |= borrower_waits(p);
    p->plan->may_borrow = any_may_borrow(p);
    p->plan->n_waiting = count_waiting(p);
    p->plan->settled = p->homes && (p->plan->full || !p->plan->pressed) && is_settled(p);
}

/* Observes: names the groups that would have been considered. */
static void observe(Planner *p)
{
    overload_classify(p);
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (!p->world->groups[i].gone)
            planner_refuse_group(p, 0, PLAN_REASON_OBSERVE, &p->world->groups[i], 0, 0);
}

/* Empties a plan but keeps its memory. 0 or -ENOMEM. */
static int begin(Planner *p)
{
    Plan *plan = p->plan;
    const World *world = p->world;

    plan->tick = world->tick;
    plan->now_usec = world->now_usec;
    plan->n_actions = plan->n_refusals = plan->n_passes = plan->n_homes = plan->n_freezes = 0;
    plan->n_threads = plan->n_pools = 0;
    memset(plan->n_refused, 0, sizeof(plan->n_refused));
    plan->pressed = plan->full = plan->may_borrow = plan->settled = false;
    plan->n_overloaded = plan->n_idle = plan->n_waiting = 0;
    return planner_prepare(p);
}

int plan_compute(World *world, const PolicySet *policies, const PlanLimits *limits, Plan *ret)
{
    Planner p = {.world = world, .policies = policies, .limits = limits, .plan = ret};
    int r = begin(&p);

    if (r < 0)
        return r;
    if (limits->observe)
        observe(&p);
    else
        compute(&p);
    return p.error;
}

int plan_release(World *world, WorkloadIx workload, PlanRule rule, Plan *ret)
{
    Planner p = {.world = world, .plan = ret};
    int r = begin(&p);

    if (r < 0)
        return r;
    release_workload(&p, workload, rule);
    return p.error;
}

int plan_follow_use(World *world, const PolicySet *policies, const PlanLimits *limits, const PlanUse *uses,
                    size_t n, Plan *ret)
{
    Planner p = {.world = world, .policies = policies, .limits = limits, .plan = ret};
    int r = begin(&p);

    if (r < 0)
        return r;
    follow_uses(&p, uses, n);
    return p.error;
}

void plan_done(Plan *plan)
{
    PlanScratch *s = plan->scratch;

    if (s) {
        hwloc_bitmap_free(s->usable);
        hwloc_bitmap_free(s->idle);
        hwloc_bitmap_free(s->set);
        hwloc_bitmap_free(s->nodes);
        free(s->cpus);
        free(s->node_waits);
        free(s->workloads);
        free(s->groups);
        free(s->processes);
        free(s->tasks);
        free(s->units);
        free(s->unit_use);
        free(s->node_due);
        free(s->candidates);
        free(s->order);
        free(s->donors);
        free(s->pack_groups);
        free(s->pack_sets);
        free(s->pack_parts);
        free(s->slices);
        free(s->sets);
        free(s->node_sums);
        free(s->parts);
        free(s->node_incoming);
        free(s);
    }
    free(plan->actions);
    free(plan->refusals);
    free(plan->passes);
    free(plan->homes);
    free(plan->freezes);
    free(plan->pools);
    free(plan->threads);
    *plan = (Plan){0};
}
