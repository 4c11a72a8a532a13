/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whether the threads of a group that could have a node each are better off sharing all CPUs of its home.
 *
 * With a node each, all threads are beside their memory. But when two threads of a node want its CPU at the same time,
 * one waits, even while a CPU of another node is idle. Averages do not say how often that happens: two threads that
 * wake each other never want the CPU at the same time. So it is tried. Where threads wait more than being beside
 * memory is worth, and as much CPU time is idle, they may use the whole home for some seconds. If they then wait less
 * by at least as much, they keep it; otherwise it is not tried again for as long.
 *
 * Where the processor counts how fast threads progress, that decides, and a little waiting is enough for a trial: of
 * threads that wait for each other, one that waits for a CPU keeps others asleep, which do not count as waiting. */

#include "plan/home/pool.h"

#include "plan/ablation.h"
#include "plan/choose/choose.h"
#include "plan/scan/pace.h"
#include "plan/scan/stall.h"
#include "world/load.h"

/* Choices of ours: how long the result of a trial lasts, when it is too late to judge one, what is more than
 * noise, and what far memory costs: a quarter of a thread that waits for memory two fifths of its time (80 :
 * 135 ns). */
#define LASTS_USEC  600000000U
#define LATE_USEC   10000000U
#define GAIN_LEAST  100U /* permille */
#define WORTH_PART  4U
#define WAITS_LEAST 50U /* permille */

/* The worth of being beside memory instead of at the mean distance between nodes of the home; permille of the
 * CPU time the threads want. */
static uint32_t worth_permille(const ThreadHomes *h)
{
    const Topology *topology = h->p->world->topology;
    uint64_t far = thread_units_farthest(topology) - DISTANCE_HERE, sum = 0, n = 0;

    for (uint32_t i = 0; i < h->n_nodes; i++)
        for (uint32_t k = 0; k < h->n_nodes; k++)
            if (h->capacity[i] > 0 && h->capacity[k] > 0) {
                uint32_t distance = topology->distances[(size_t)i * h->n_nodes + k];

                sum += distance - MIN(distance, DISTANCE_HERE);
                n++;
            }
    return MAX((uint32_t)(sum * 1000 / (far * MAX(n, 1U) * WORTH_PART)), GAIN_LEAST);
}

/* Idle time of the home's CPUs, over two ticks, which less waiting could use; permille of what the threads want. */
static uint64_t idle_permille(const ThreadHomes *h)
{
    const World *world = h->p->world;
    const Topology *topology = world->topology;
    CpuMask cpuset = h->p->s->groups[h->group].cpuset;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < h->n_nodes; i++)
        for (int k = h->capacity[i] > 0 ? hwloc_bitmap_first(topology->nodes[i].cpus) : -1; k >= 0;
             k = hwloc_bitmap_next(topology->nodes[i].cpus, k)) {
            uint32_t busy = (uint32_t)world->cpus[k].busy_permille + world->cpus[k].busy_before_permille;

            if (hwloc_bitmap_isset(h->p->s->usable, (unsigned)k) &&
                (!cpuset || hwloc_bitmap_isset(cpuset, (unsigned)k)))
                sum += 2 * LOAD_FULL_PERMILLE - MIN(busy, 2 * LOAD_FULL_PERMILLE);
        }
    return sum * 500 / MAX(world->groups[h->group].want_permille, 1U);
}

/* Whether all threads have a node, each for itself, and would get it anew. Others, which share a unit or keep
 * a node that they would not be given, might get another node after a trial. */
static bool have_nodes(const ThreadHomes *h)
{
    for (size_t i = 0; i < h->n; i++) {
        const PlannerUnit *unit = &h->units[i];
        const Task *task = &h->p->world->tasks[unit->first];

        if (unit->n_threads != 1 || unit->now < 0 || !buddies_fit(unit->demand, h->largest) || !task->use ||
            task->use->private_permille < PRIVATE_PERMILLE)
            return false;
    }
    return true;
}

/* How fast the threads have progressed since then, scaled by what they run on average; 0: not known. */
static uint64_t progress(const ThreadHomes *h, uint64_t since_usec)
{
    const Group *group = &h->p->world->groups[h->group];
    uint64_t waits = h->p->s->groups[h->group].waits_mean;

    return stall_progress(h->p->world, group,
                          group->want_permille - (uint32_t)MIN(waits, group->want_permille), since_usec);
}

/* The waiting that is worth a trial; less if progress is known (0: it is not). */
static uint32_t waits_worth(const ThreadHomes *h, uint64_t progress)
{
    return progress > 0 ? MIN(WAITS_LEAST, worth_permille(h)) : worth_permille(h);
}

/* Not before the home has been judged, and not for groups that are only observed: nothing would change there. */
static bool is_tried(const ThreadHomes *h, const Group *group, const PlannerGroup *g)
{
    uint64_t now = h->p->world->now_usec, since = scan_pace_moved_usec(group);
    uint32_t waits = waits_worth(h, progress(h, since));

    return now >= group->pool_next_usec && world_since(h->p->world, since) >= PLANNER_POOL_USEC &&
           !g->moves && (group->judge_usec == 0 || g->judged) && !h->p->limits->would &&
           world_since(h->p->world, group->first_seen_usec) >= h->policy->settle_usec &&
           MIN(g->wait_permille, idle_permille(h)) >= waits && have_nodes(h);
}

/* How much more all other groups wait than before, in permille of a CPU times 1000. */
static uint64_t others_wait_more(const ThreadHomes *h, const Group *group, const PlannerGroup *g)
{
    const World *world = h->p->world;
    uint64_t others = 0, more = g->others_permille - MIN(group->pool_others_permille, g->others_permille);

    for (size_t i = 0; i < world->n_groups; i++)
        others += i != h->group ? world->groups[i].want_permille : 0;
    return more * others;
}

/* Whether the threads progress faster than before the trial, by at least noise plus the waiting that the
 * trial adds for all others. They must also wait less; otherwise they only have more to do. */
static bool is_faster(const ThreadHomes *h, const Group *group, const PlannerGroup *g, uint64_t now)
{
    uint64_t more = (now - MIN(group->pool_progress, now)) * 1000 / group->pool_progress;

    return g->wait_permille < group->pool_before_permille - group->pool_before_permille / 4 &&
           more * group->want_permille >=
               GAIN_LEAST * (uint64_t)group->want_permille + others_wait_more(h, group, g);
}

/* Whether the threads wait less, by at least what being beside memory is worth plus the waiting that the trial adds
 * for all others. Not if they want less than half of what they did: sleeping threads do not wait. */
static bool waits_less(const ThreadHomes *h, const Group *group, const PlannerGroup *g)
{
    uint64_t less = group->pool_before_permille - MIN(g->wait_permille, group->pool_before_permille);

    return group->want_permille >= group->demand_permille / 2 &&
           less * group->want_permille >=
               worth_permille(h) * (uint64_t)group->want_permille + others_wait_more(h, group, g);
}

/* Progress during the trial; 0: not counted. */
static uint64_t trial_progress(const ThreadHomes *h, const Group *group)
{
    return group->pool_progress > 0 ? progress(h, group->pool_until_usec - PLANNER_POOL_USEC) : 0;
}

static bool is_late(const World *world, const Group *group)
{
    return world->now_usec - group->pool_until_usec > LATE_USEC;
}

/* Whether the trial has helped; false if something else came between, or it is judged too late. */
static bool has_helped(const ThreadHomes *h, const Group *group, const PlannerGroup *g)
{
    uint64_t now = trial_progress(h, group);

    if (is_late(h->p->world, group) || group->want_permille < CHOOSE_IDLE_PERMILLE)
        return false;
    for (size_t i = 0; i < h->n; i++)
        if (h->units[i].now >= 0)
            return false;
    return now > 0 ? is_faster(h, group, g, now) : waits_less(h, group, g);
}

bool pool_decide(const ThreadHomes *h, bool may_be_apart)
{
    const Group *group = &h->p->world->groups[h->group];
    const PlannerGroup *g = &h->p->s->groups[h->group];
    PlanPool pool = {.group_id = group->id, .next_usec = group->pool_next_usec};
    uint64_t now = h->p->world->now_usec;
    bool trial = group->pool_before_permille > 0, helps;

    /* With another home all of this is forgotten (plan_commit()). */
    if (!rule_holds(h->p->world, ABLATION_POOL) || g->home != group->home || g->roams != group->roams)
        return false;
    if (now < group->pool_until_usec) {
        if (may_be_apart)
            planner_refuse_group(h->p, MECHANISM_CONVERGE, PLAN_REASON_POOLED, group, g->wait_permille,
                                 waits_worth(h, group->pool_progress));
        return true;
    }
    /* The trial goes on until its progress has been counted. */
    if (trial && group->pool_progress > 0 && trial_progress(h, group) == 0 && !is_late(h->p->world, group))
        return true;
    helps = may_be_apart && (trial ? has_helped(h, group, g) : is_tried(h, group, g));
    if (!trial && !helps)
        return false;
    if (trial) {
        pool.until_usec = helps ? now + LASTS_USEC : 0;
        pool.next_usec = now + LASTS_USEC;
        pool.progress = helps ? group->pool_progress : 0;
    } else {
        pool.until_usec = now + PLANNER_POOL_USEC;
        pool.before_permille = g->wait_permille;
        pool.others_permille = g->others_permille;
        pool.progress = progress(h, scan_pace_moved_usec(group));
    }
    planner_note(h->p, APPEND(h->p->plan->pools, h->p->plan->pools_capacity, h->p->plan->n_pools, pool));
    return helps;
}
