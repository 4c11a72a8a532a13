/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/home/thread-units.h"

#include "plan/choose/choose.h"
#include "plan/choose/memory.h"

/* Cores are plentiful for a group that wants at most half of those of its home. A set that is apart stays so until
 * there is room for a third more than its deviation. Choices of ours, on which work hardly depends (BENCHMARKS.md). */
#define PLENTIFUL_PART 2U
#define APART_PERCENT  133U

/* A thread that wants less pauses much; permille. A choice of ours. */
#define PAUSES_PERMILLE 700U

uint64_t thread_units_farthest(const Topology *topology)
{
    uint64_t most = DISTANCE_HERE + 1;

    for (size_t i = 0; i < (size_t)topology->n_nodes * topology->n_nodes; i++)
        most = MAX(most, topology->distances[i]);
    return most;
}

static bool pauses(const Task *task)
{
    uint32_t demand = buddies_demand(task);

    return !task->gone && demand >= CHOOSE_IDLE_PERMILLE && demand < DEMAND_NO_PAUSES_PERMILLE;
}

/* For a group that waits for a quarter of what it wants: the mean demand of its threads that pause. */
static void find_pausing(ThreadHomes *h)
{
    const World *world = h->p->world;
    bool waits = h->p->s->groups[h->group].wait_permille >= CHOOSE_WAITS_PERMILLE;
    uint64_t sum = 0, n_pausing = 0;

    for (size_t i = 0; waits && i < world->n_processes; i++) {
        const Process *process = &world->processes[i];
        size_t n, first;

        if (process->group.i != (int32_t)h->group || process->gone)
            continue;
        first = world_process_tasks(world, process, &n);
        for (size_t k = first; k < first + n; k++)
            if (pauses(&world->tasks[k])) {
                sum += buddies_demand(&world->tasks[k]);
                n_pausing++;
            }
    }
    h->pausing = n_pausing > 0 ? (uint32_t)(sum / n_pausing) : 0;
}

/* A thread that pauses seems to want more of a crowded node than of another: it waits longer, and threads
 * elsewhere that wait for it want less. By these numbers, as many threads as are too many on one node today
 * would be too many on the other tomorrow. So where threads wait much, those that pause count alike. */
static uint32_t demand_of(const ThreadHomes *h, const Task *task)
{
    return h->pausing > 0 && pauses(task) ? h->pausing : buddies_demand(task);
}

static int add_unit(ThreadHomes *h, uint32_t *ret)
{
    PlanScratch *s = h->p->s;

    if (!GROW(s->units, s->units_capacity, h->n + 1) ||
        !GROW(s->unit_use, s->unit_use_capacity, (h->n + 1) * h->n_nodes))
        return -ENOMEM;
    h->units = s->units;
    h->use = s->unit_use;
    h->units[h->n] =
        (PlannerUnit){.now = -1, .node = -1, .spill_node = -1, .set = UINT32_MAX, .order = (uint32_t)h->n};
    for (uint32_t i = 0; i < h->n_nodes; i++)
        h->use[h->n * h->n_nodes + i] = 0;
    *ret = (uint32_t)h->n++;
    return 0;
}

static void join_unit(ThreadHomes *h, const Task *task, uint32_t unit)
{
    uint32_t demand = demand_of(h, task);
    uint64_t sum = task->use ? world_sum_nodes(h->p->world, task->use->pages) : 0;

    h->p->s->tasks[task - h->p->world->tasks].unit = unit;
    h->units[unit].demand += demand;
    if (h->units[unit].n_threads++ == 0)
        h->units[unit].first = (uint32_t)(task - h->p->world->tasks);
    if (h->units[unit].now < 0)
        h->units[unit].now = task->home_node.i;
    else if (task->home_node.i >= 0 && task->home_node.i != h->units[unit].now)
        h->units[unit].spill_node = task->home_node.i;
    h->units[unit].any_private |= task->use && task->use->private_permille >= PRIVATE_MOSTLY_PERMILLE;
    h->units[unit].pages += sum;
    for (uint32_t i = 0; sum > 0 && i < h->n_nodes; i++)
        h->use[unit * h->n_nodes + i] += (task->use->pages[i] * demand << THREAD_USE_SHIFT) / sum;
}

/* Whether a thread that uses most of its memory alone stays apart from those it shares the rest with. It does
 * if they are too many for a node, like a chain of neighbours that each share a little with the next. It also
 * does if they live on another node, because it must not leave its own for that (I7). */
static bool stays_apart(const ThreadHomes *h, const Task *task, uint64_t set_demand, uint32_t unit)
{
    return task->use->private_permille >= PRIVATE_MOSTLY_PERMILLE &&
           (!buddies_fit(set_demand, h->largest) ||
            (unit != UINT32_MAX && h->units[unit].now >= 0 && task->home_node.i >= 0 &&
             h->units[unit].now != task->home_node.i));
}

/* For the first thread of a set, which has no buddy, half is enough: the others use the rest of what it uses. */
static bool is_member(const ThreadHomes *h, const Process *process, const Task *task, const BuddySet *set)
{
    return thread_is_seen(h->p->world, process, task, h->policy,
                          task->home_node.i >= 0 || set->demand > buddies_demand(task)
                              ? PRIVATE_MOSTLY_PERMILLE
                              : PRIVATE_PERMILLE);
}

static bool may_go_together(void *userdata, const Task *task)
{
    const ThreadHomes *h = userdata;

    return rule_holds(h->p->world, ABLATION_BUDDIES) &&
           planner_placeable(h->policy, &h->p->world->processes[task->process.i], task);
}

/* The size of a set when asked whether a node holds it. Where cores are plentiful it includes the deviation,
 * so that all threads find a core most of the time. A set that is apart stays so until that holds with a
 * third more to spare, plentiful or not: demand and room change from tick to tick. */
static uint64_t size_of(const ThreadHomes *h, const BuddySet *set)
{
    bool plentiful = h->p->world->groups[h->group].demand_permille * (uint64_t)PLENTIFUL_PART <= h->cores_sum;
    uint64_t strays = set->peak - set->demand;

    return set->demand + (set->apart ? strays * APART_PERCENT / 100 : plentiful ? strays : 0);
}

/* Whether a set of few threads is divided, because no node holds it. */
static bool is_divided(const ThreadHomes *h, const BuddySet *set, size_t n_threads)
{
    return rule_holds(h->p->world, ABLATION_DIVIDED) && buddies_are_few(set, n_threads) && h->largest > 0 &&
           !buddies_fit(size_of(h, set), h->largest);
}

/* A thread of a divided set joins a part with room: one on its node, or if it has none, one without a node.
 * Otherwise it begins a new part. Parts have the same size. */
static int join_part(ThreadHomes *h, const Task *task, const BuddySet *set, uint32_t first)
{
    uint64_t n_parts = MAX((size_of(h, set) + h->largest - 1) / h->largest, 2U);
    uint64_t size = task->home_node.i >= 0 ? h->largest : set->demand / n_parts;
    uint32_t unit = (uint32_t)h->n;
    int r;

    while (unit > 0 && (h->units[unit - 1].set != first || h->units[unit - 1].now != task->home_node.i ||
                        h->units[unit - 1].demand + buddies_demand(task) / 2 > size))
        unit--;
    if (unit > 0) {
        join_unit(h, task, unit - 1);
        return 0;
    }
    r = add_unit(h, &unit);
    if (r < 0)
        return r;
    h->units[unit].set = first;
    join_unit(h, task, unit);
    return 0;
}

/* The thread joins the unit of its buddy. The first thread of a set need not be known by itself: the set is enough. */
static int gather_thread(ThreadHomes *h, const Process *process, size_t first, size_t n, size_t i)
{
    const World *world = h->p->world;
    const BuddySet *set = &h->p->s->sets[i];
    const Task *task = &world->tasks[first + i], *buddy = &world->tasks[first + set->buddy];
    PlannerTask *of_task = &h->p->s->tasks[first + i], *of_buddy = &h->p->s->tasks[first + set->buddy];
    uint32_t unit = of_buddy->unit;
    int r = 0;

    if (of_task->unit != UINT32_MAX || task->gone)
        return 0;
    if (is_divided(h, set, n) &&
        (is_member(h, process, task, set) || (set->first == i && may_go_together(h, task))))
        return join_part(h, task, set, (uint32_t)(first + set->first));
    if (!is_member(h, process, task, set))
        return 0;
    if (buddy == task || stays_apart(h, task, set->demand, unit)) {
        r = add_unit(h, &unit);
    } else if (unit == UINT32_MAX) {
        r = add_unit(h, &unit);
        if (r == 0 && !buddy->gone)
            join_unit(h, buddy, unit);
        of_buddy->unit = unit;
    }
    if (r == 0)
        join_unit(h, task, unit);
    return r;
}

int thread_units_gather(ThreadHomes *h)
{
    World *world = h->p->world;

    find_pausing(h);
    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *process = &world->processes[i];
        size_t n, first;

        if (process->group.i != (int32_t)h->group || process->gone)
            continue;
        first = world_process_tasks(world, process, &n);
        if (!GROW(h->p->s->sets, h->p->s->sets_capacity, MAX(n, 1U)))
            return -ENOMEM;
        buddies_sets(world, process, may_go_together, h, h->p->s->sets);
        for (size_t k = 0; k < n; k++)
            if (gather_thread(h, process, first, n, k) < 0)
                return -ENOMEM;
    }
    return 0;
}

/* The kernel keeps threads that wake each other near each other, on CPUs that are idle in turn. Which ones they are is
 * not known, so a thread that pauses much stays where it is, and its memory follows. With Follow=no it would stay away
 * from its memory. */
int32_t thread_units_here(const ThreadHomes *h, const PlannerUnit *unit)
{
    const Task *task = &h->p->world->tasks[unit->first];
    const TopologyCpu *cpu = topology_cpu(h->p->world->topology, task->last_cpu);
    uint32_t demand = buddies_demand(task);

    return cpu && unit->now < 0 && unit->n_threads == 1 && h->policy->follow &&
                   demand >= CHOOSE_IDLE_PERMILLE && demand < PAUSES_PERMILLE &&
                   rule_holds(h->p->world, ABLATION_HERE)
               ? cpu->node.i
               : -1;
}

bool thread_units_press_memory(const ThreadHomes *h)
{
    const Group *group = &h->p->world->groups[h->group];
    const PlannerGroup *g = &h->p->s->groups[h->group];

    return g->traffic_sum > 0 && choose_memory_stall_discount(h->p, g) == 0 &&
           choose_memory_alone(h->p, group) > 0 &&
           MAX(group->demand_permille, group->want_permille) <= h->cores_sum;
}
