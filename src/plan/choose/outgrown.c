/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/choose/outgrown.h"
#include "plan/choose/choose.h"

#include "world/load.h"

/* What a program does first, reading and touching its memory, mostly takes no longer. */
#define OUTGROWN_USEC 10000000U

/* One change may have been to where its memory is, which was not known at first. */
#define OUTGROWN_CHANGES 1U

/* A first home is known to be too small after two fast ticks in it. */
#define OUTGROWN_AFTER_USEC 200000U

/* After one tick, if this much is wanted of each of its CPUs: more than three threads want of two, for which
 * loans may do. A choice of ours. */
#define FAR_PERMILLE 1750U

/* Whether threads wait for more than a quarter of what they want. */
static bool overflows(uint64_t run_permille, uint64_t wait_permille)
{
    return wait_permille * 4 > run_permille + wait_permille;
}

/* Whether its own threads want nearly twice what its home has: two on one CPU, or four on two, whatever
 * others do there. */
static bool overflows_by_far(const Planner *p, const Group *group)
{
    uint64_t wants = group->run_permille + (uint64_t)group->wait_permille, n = 0;

    for (int i = hwloc_bitmap_first(group->home); i >= 0; i = hwloc_bitmap_next(group->home, i))
        n += hwloc_bitmap_isset(p->s->usable, (unsigned)i);
    return wants >= n * FAR_PERMILLE;
}

/* overflows() for the tick before. */
static bool overflowed(const World *world, const Group *group)
{
    uint64_t run = 0, wait = 0;

    for (size_t i = 0; i < world->n_tasks; i++) {
        const Task *task = &world->tasks[i];
        GroupIx g = world->processes[task->process.i].group;

        if (task->gone || g.i < 0 || &world->groups[g.i] != group)
            continue;
        run += task->run_before_permille;
        wait += task->wait_before_permille;
    }
    return overflows(run, wait);
}

static bool is_idle_elsewhere(const Planner *p, CpuMask home)
{
    for (int i = hwloc_bitmap_first(p->s->usable); i >= 0; i = hwloc_bitmap_next(p->s->usable, i))
        if (!hwloc_bitmap_isset(home, (unsigned)i) && load_cpu_is_idle(p->world, &p->world->cpus[i]))
            return true;
    return false;
}

/* Whether on some node of its home nearly twice as much is wanted as there is, on two ticks in a row, and no
 * CPU of its home is idle: other groups of several nodes have that node in their homes as well. For a group
 * on two nodes the waiting is then no more than a quarter of all it wants. */
static bool is_crowded(const Planner *p, const Group *group)
{
    const Topology *topology = p->world->topology;

    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        uint64_t wants = 0, before = 0, n = 0;

        if (!hwloc_bitmap_isset(group->home_nodes, i))
            continue;
        for (int k = hwloc_bitmap_first(topology->nodes[i].cpus); k >= 0;
             k = hwloc_bitmap_next(topology->nodes[i].cpus, k)) {
            const CpuLoad *cpu = &p->world->cpus[k];

            if (!hwloc_bitmap_isset(p->s->usable, (unsigned)k) ||
                !hwloc_bitmap_isset(group->home, (unsigned)k))
                continue;
            if (load_cpu_is_idle(p->world, cpu))
                return false;
            /* A CPU to which many threads are pinned counts as overloaded, and no more. */
            wants += MIN(cpu->busy_permille + cpu->wait_permille, 2 * LOAD_FULL_PERMILLE);
            before += MIN(cpu->busy_before_permille + cpu->wait_before_permille, 2 * LOAD_FULL_PERMILLE);
            n++;
        }
        if (n > 0 && MIN(wants, before) >= n * FAR_PERMILLE)
            return true;
    }
    return false;
}

bool outgrown_starves(const Planner *p, const Group *group)
{
    return rule_holds(p->world, ABLATION_STARVES) && group->home && !group->gone &&
           overflows(group->run_permille, group->wait_permille) && overflowed(p->world, group) &&
           is_idle_elsewhere(p, group->home);
}

bool outgrown_breaks_out(const Planner *p, const Group *group)
{
    uint64_t before = group->before_demand_permille;

    return outgrown_starves(p, group) &&
           (group->n_changes < PLANNER_CHANGES_MAX || group->want_permille > before + before / 4 ||
            overflows_by_far(p, group));
}

bool outgrown_holds(const Planner *p, const Group *group)
{
    bool waits = overflows(group->run_permille, group->wait_permille);

    return rule_holds(p->world, ABLATION_OUTGROWN) && group->home && group->n_changes <= OUTGROWN_CHANGES &&
           !group->gone && world_since(p->world, group->first_seen_usec) < OUTGROWN_USEC &&
           world_since(p->world, group->last_home_usec) >= OUTGROWN_AFTER_USEC &&
           (waits || group->wait_permille >= CHOOSE_WAITS_PERMILLE) && is_idle_elsewhere(p, group->home) &&
           ((waits && (overflows_by_far(p, group) || overflowed(p->world, group))) || is_crowded(p, group));
}
