/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads of one group on different nodes, each where its own memory is (P11, P14, P15).
 *
 * This applies only to homes of several nodes, and to threads whose memory use is known from evidence W or A: residency
 * says where the memory of a process is, not which thread uses it. A thread that uses its own memory, or shares it with
 * others who fit a node, goes with these to one node and stays there. Memory that more threads share belongs to no
 * node, and its users stay free in the whole home.
 *
 * The assignment is a transport problem. Units (threads that belong together) have a known demand. Nodes take a share
 * of it as large as their share of the CPUs that others leave. For each unit it is known which share of its accesses
 * goes to which node. The amount of memory counts only in a tie, because what is scanned of it differs from round to
 * round far more than where it lies. It is solved by regret: the unit that loses most on its second best node chooses
 * first; who finds no room where it has most waits for those that do. So at the start, when all memory is on one node,
 * the threads with most of it stay, and the memory of the others follows (P13).
 *
 * An assignment is kept as long as it fits. A new one replaces it when it puts at least a tenth more of the memory next
 * to its user (or MinGainPermille, if that is more), and not while memory is being moved. So threads that have
 * exchanged what they work on are exchanged, which is cheaper than moving the memory (task flipping, P15). */

#include "plan/home/thread-known.h"

#include "plan/buddies.h"
#include "plan/choose/nodes.h"

/* Accesses are in permille of a CPU times 2^16, so that nodes are told apart also by threads that hardly run. Pages
 * are below 2^33, and demands below 2^12. */
#define USE_SHIFT 16U

/* Regrets less than a tenth of a busy thread apart are the same. */
#define REGRET_STEP (100ULL << USE_SHIFT)

/* A group wants much more than its home gives when it wants as much more as is wanted in vain (pack.h). */
#define MUCH_PART 4U

/* What a new assignment must gain at least, of all that is used. Averages move by some percent from round to round. */
#define GAIN_PERMILLE 100U

typedef struct ThreadHomes {
    Planner *p;
    size_t group;
    const Policy *policy;
    PlannerUnit *units;
    size_t n;
    uint64_t *use; /* [n * n_nodes], which part of its demand accesses memory there */
    uint32_t n_nodes;
    uint64_t capacity[PACK_NODES_MAX], load[PACK_NODES_MAX]; /* permille; capacity 0: not of the home */
    uint64_t demand, capacity_sum, use_sum;
    uint64_t largest, largest_kept; /* what a unit may want of a node; and one that has it */
    uint64_t *taken; /* [n_nodes], permille, of all groups: by the packing, and by threads that have a node */
} ThreadHomes;

/* Units */

static int add_unit(ThreadHomes *h, uint32_t *ret)
{
    PlanScratch *s = h->p->s;

    if (!GROW(s->units, s->units_capacity, h->n + 1) ||
        !GROW(s->unit_use, s->unit_use_capacity, (h->n + 1) * h->n_nodes))
        return -ENOMEM;
    h->units = s->units;
    h->use = s->unit_use;
    h->units[h->n] = (PlannerUnit){.now = -1, .node = -1, .order = (uint32_t)h->n};
    for (uint32_t i = 0; i < h->n_nodes; i++)
        h->use[h->n * h->n_nodes + i] = 0;
    *ret = (uint32_t)h->n++;
    return 0;
}

static void join_unit(ThreadHomes *h, const Task *task, uint32_t unit)
{
    uint32_t demand = buddies_demand(task);
    uint64_t sum = 0;

    h->p->s->tasks[task - h->p->world->tasks].unit = unit;
    h->units[unit].demand += demand;
    h->units[unit].n_threads++;
    if (h->units[unit].now < 0)
        h->units[unit].now = task->home_node.i;
    for (uint32_t i = 0; task->use && i < h->n_nodes; i++)
        sum += task->use->pages[i];
    h->units[unit].pages += sum;
    for (uint32_t i = 0; sum > 0 && i < h->n_nodes; i++)
        h->use[unit * h->n_nodes + i] += (task->use->pages[i] * demand << USE_SHIFT) / sum;
}

/* Whether a thread that has most of what it uses for its own stays apart from those it shares the rest with: they are
 * too many for a node, as neighbours that share a little, each with the next, and all of one chain; or they live on
 * another node, which it is not to leave for that (I7). */
static bool stays_apart(const ThreadHomes *h, const Task *task, uint64_t set_demand, uint32_t unit)
{
    return task->use->private_permille >= PRIVATE_MOSTLY_PERMILLE &&
           (!buddies_fit(set_demand, h->largest) ||
            (unit != UINT32_MAX && h->units[unit].now >= 0 && task->home_node.i >= 0 &&
             h->units[unit].now != task->home_node.i));
}

/* Of the first of a set, which has no buddy, half is enough: what it does not use alone, others of the set do. */
static bool is_member(const ThreadHomes *h, const Process *process, const Task *task, const BuddySet *set)
{
    return thread_is_seen(h->p->world, process, task, h->policy,
                          task->home_node.i >= 0 || set->demand > buddies_demand(task)
                              ? PRIVATE_MOSTLY_PERMILLE
                              : PRIVATE_PERMILLE);
}

/* It joins the unit of its buddy. The first of a set, of whom alone nothing would be known, is known by that. */
static int gather_thread(ThreadHomes *h, const Process *process, size_t first, size_t i)
{
    const World *world = h->p->world;
    const BuddySet *set = &h->p->s->sets[i];
    const Task *task = &world->tasks[first + i], *buddy = &world->tasks[first + set->buddy];
    PlannerTask *of_task = &h->p->s->tasks[first + i], *of_buddy = &h->p->s->tasks[first + set->buddy];
    uint32_t unit = of_buddy->unit;
    int r = 0;

    if (!is_member(h, process, task, set) || of_task->unit != UINT32_MAX)
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

static bool may_go_together(void *userdata, const Task *task)
{
    const ThreadHomes *h = userdata;

    return rule_holds(h->p->world, ABLATION_BUDDIES) &&
           planner_placeable(h->policy, &h->p->world->processes[task->process.i], task);
}

static int gather(ThreadHomes *h)
{
    World *world = h->p->world;

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
            if (gather_thread(h, process, first, k) < 0)
                return -ENOMEM;
    }
    return 0;
}

static uint64_t part_of(const ThreadHomes *h, uint32_t node)
{
    size_t at = h->group * h->n_nodes + node;

    return at < h->p->s->n_parts ? h->p->s->parts[at] : 0;
}

/* What the other groups leave of it. A node full of them keeps a little, as in choose_nodes_left(). */
static uint64_t room_for(const ThreadHomes *h, uint32_t node, uint64_t permille)
{
    uint64_t others = rule_holds(h->p->world, ABLATION_ROOM) ? h->taken[node] - part_of(h, node) : 0;

    return MAX(permille - MIN(others, permille), permille / 10);
}

/* Where the group wants more than it can get in all of its home, a unit may want as much more than its node has: apart
 * its threads would not get more either. `enough` is how much it may want before that holds: less for who has a node,
 * since want changes from tick to tick. */
static uint64_t largest_unit(const ThreadHomes *h, uint64_t largest, uint64_t enough)
{
    uint64_t want = h->p->world->groups[h->group].want_permille;

    return want > enough ? pack_limit(largest * want / MAX(h->capacity_sum, 1U)) : largest;
}

static void measure_nodes(ThreadHomes *h)
{
    const Topology *topology = h->p->world->topology;
    const PlannerGroup *g = &h->p->s->groups[h->group];
    uint32_t n_cpus;

    h->largest = buddies_largest(h->p->world, g->home_nodes, h->p->world->groups[h->group].demand_permille);
    for (uint32_t i = 0; i < h->n_nodes; i++) {
        h->capacity[i] = 0;
        if (!hwloc_bitmap_isset(g->home_nodes, i) ||
            hwloc_bitmap_and(h->p->s->set, topology->nodes[i].cpus, h->p->s->usable) < 0)
            continue;
        n_cpus = (uint32_t)MAX(hwloc_bitmap_weight(h->p->s->set), 0);
        h->capacity[i] = room_for(h, i, choose_nodes_left(h->p, i, n_cpus * 1000));
        h->capacity_sum += h->capacity[i];
    }
    h->largest_kept = largest_unit(h, h->largest, h->capacity_sum);
    h->largest = largest_unit(h, h->largest, h->capacity_sum + h->capacity_sum / MUCH_PART);
}

/* What is too large for any node is of none. What has a node keeps it until it is a quarter too large. A set that is
 * small only since some of its group do not run now, who may do so again, gets none: by half a node more, as the demand
 * of the group is held (load_groups()), which a peak of a moment is not. */
static bool is_too_large(const ThreadHomes *h, const PlannerUnit *unit)
{
    const Group *group = &h->p->world->groups[h->group];
    uint64_t held = MAX(group->demand_permille, group->want_permille), want = MAX(group->want_permille, 1U);

    if (unit->now >= 0)
        return unit->demand > h->largest_kept + h->largest_kept / 4;
    return !buddies_fit(unit->demand, h->largest) ||
           (unit->n_threads > 1 && unit->demand * held / want > h->largest * 3 / 2);
}

/* Returns whether there are two units for two nodes. */
static bool weigh_units(ThreadHomes *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->n; i++) {
        PlannerUnit *unit = &h->units[i];
        uint64_t best = 0, second = 0;

        unit->free = is_too_large(h, unit);
        for (uint32_t k = 0; k < h->n_nodes; k++) {
            uint64_t use = h->capacity[k] > 0 ? h->use[i * h->n_nodes + k] : 0;

            second = MAX(second, MIN(use, best));
            best = MAX(best, use);
            if (!unit->free)
                h->use_sum += use;
        }
        unit->most = best;
        unit->regret = best - second;
        h->demand += unit->free ? 0 : unit->demand;
        n += !unit->free;
    }
    return n > 1;
}

/* Assigning */

static int compare_regret(const void *a, const void *b)
{
    const PlannerUnit *x = a, *y = b;

    if (x->regret / REGRET_STEP != y->regret / REGRET_STEP)
        return x->regret > y->regret ? -1 : 1;
    if (x->pages != y->pages)
        return x->pages > y->pages ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The node's share of what all units want. */
static uint64_t share_of(const ThreadHomes *h, uint32_t node)
{
    return h->demand * h->capacity[node] / MAX(h->capacity_sum, 1U);
}

/* Half a unit too much is as far from the share as half a unit too little. */
static bool has_room(const ThreadHomes *h, uint32_t node, uint32_t demand)
{
    return h->capacity[node] > 0 && h->load[node] + demand <= share_of(h, node) + demand / 2;
}

/* Whether `a` is better than `b`: room, then most of its memory, then the emptiest; without room the last two the
 * other way round. */
static bool is_better(const ThreadHomes *h, const PlannerUnit *unit, uint32_t a, uint32_t b)
{
    const uint64_t *use = h->use + (size_t)unit->order * h->n_nodes;
    bool room = has_room(h, a, unit->demand), room_b = has_room(h, b, unit->demand);
    uint64_t full = h->load[a] * h->capacity[b], full_b = h->load[b] * h->capacity[a];

    if (room != room_b)
        return room;
    if (!room && full != full_b)
        return full < full_b;
    return use[a] != use[b] ? use[a] > use[b] : full < full_b;
}

static int32_t best_node(const ThreadHomes *h, const PlannerUnit *unit)
{
    int32_t best = -1;

    for (uint32_t i = 0; i < h->n_nodes; i++)
        if (h->capacity[i] > 0 && (best < 0 || is_better(h, unit, i, (uint32_t)best)))
            best = (int32_t)i;
    return best;
}

static void settle(ThreadHomes *h, PlannerUnit *unit, int32_t node, bool second)
{
    *(second ? &unit->node_anew : &unit->node) = node;
    if (node >= 0)
        h->load[node] += unit->demand;
}

/* Whom to leave where they are: all on a node that without its largest unit has no more than its share, which is
 * what assigning leaves behind; else of those with the most regret as many as that holds for. */
static void keep(ThreadHomes *h)
{
    uint64_t sum[PACK_NODES_MAX] = {0};
    uint32_t largest[PACK_NODES_MAX] = {0};

    for (size_t i = 0; i < h->n; i++) {
        PlannerUnit *unit = &h->units[i];
        uint32_t node = (uint32_t)MAX(unit->now, 0);

        unit->settled = !unit->free && unit->now >= 0 && h->capacity[node] > 0 &&
                        sum[node] + unit->demand - MAX(largest[node], unit->demand) <= share_of(h, node);
        if (!unit->settled)
            continue;
        sum[node] += unit->demand;
        largest[node] = MAX(largest[node], unit->demand);
    }
}

/* Whether a unit is better off on another node than on its own: with it that is less full, for its size, and what goes
 * beyond its CPUs is less by at least a quarter of the unit (a choice of ours). Of two nodes that are alike, one is
 * always a little fuller. */
static bool is_emptier(const ThreadHomes *h, const PlannerUnit *unit, uint32_t node, uint32_t other)
{
    uint64_t load = h->load[other] + unit->demand;

    return load * h->capacity[node] < h->load[node] * h->capacity[other] &&
           load + h->capacity[node] + unit->demand / 4 <= h->load[node] + h->capacity[other];
}

/* Where a unit that is one too many for the CPUs of its node is better off: a node with room for it, and emptier
 * with it than its own now. -1: nowhere. */
static int32_t better_node(const ThreadHomes *h, const PlannerUnit *unit, uint32_t node)
{
    int32_t best = -1;

    for (uint32_t i = 0; h->load[node] > h->capacity[node] && i < h->n_nodes; i++)
        if (has_room(h, i, unit->demand) && is_emptier(h, unit, node, i) &&
            (best < 0 || is_better(h, unit, i, (uint32_t)best)))
            best = (int32_t)i;
    return best;
}

/* Nodes that are crowded while others have room: the home has grown since, or somebody has left. Who has the least
 * regret goes first. Each move makes the loads more alike, so there is an end. */
static void relieve(ThreadHomes *h, bool second)
{
    bool any = rule_holds(h->p->world, ABLATION_RELIEVE);

    while (any) {
        any = false;
        for (size_t i = h->n; i-- > 0;) {
            int32_t *node = second ? &h->units[i].node_anew : &h->units[i].node;
            int32_t to = *node >= 0 ? better_node(h, &h->units[i], (uint32_t)*node) : -1;

            if (to < 0)
                continue;
            h->load[*node] -= h->units[i].demand;
            h->load[to] += h->units[i].demand;
            *node = to;
            any = true;
        }
    }
}

/* What of all that is used lies next to its user. */
static uint64_t sum_local(const ThreadHomes *h, bool second)
{
    uint64_t local = 0;

    for (size_t i = 0; i < h->n; i++) {
        int32_t node = second ? h->units[i].node_anew : h->units[i].node;

        local += node >= 0 ? h->use[(size_t)h->units[i].order * h->n_nodes + (uint32_t)node] : 0;
    }
    return local;
}

/* Gives those units a node that have none yet, in the order of regret; first only the node with most of what it uses,
 * if that has room. */
static void settle_all(ThreadHomes *h, bool anew, bool first)
{
    for (size_t i = 0; i < h->n; i++) {
        PlannerUnit *unit = &h->units[i];
        const uint64_t *use = h->use + (size_t)unit->order * h->n_nodes;
        int32_t node;

        if (unit->settled)
            continue;
        node = unit->free ? -1 : best_node(h, unit);
        if (first && node >= 0 && (!has_room(h, (uint32_t)node, unit->demand) || use[node] < unit->most))
            continue;
        settle(h, unit, node, anew);
        unit->settled = true;
    }
}

/* Gives every unit a node; with `anew` without regard to where they are. Returns how much of what is used lies next to
 * its user then. A unit without room goes where least is, which is at most the node's share. Who finds none where its
 * memory is waits for those that do: else it would drive one of these away, and that one the next. */
static uint64_t assign(ThreadHomes *h, bool anew)
{
    for (uint32_t i = 0; i < h->n_nodes; i++)
        h->load[i] = 0;
    for (size_t i = 0; i < h->n; i++)
        h->units[i].settled = false;
    if (!anew)
        keep(h);
    for (size_t i = 0; i < h->n; i++)
        if (h->units[i].settled)
            settle(h, &h->units[i], h->units[i].now, anew);
    settle_all(h, anew, true);
    settle_all(h, anew, false);
    relieve(h, anew);
    return sum_local(h, anew);
}

static bool may_change(const ThreadHomes *h)
{
    const Group *group = &h->p->world->groups[h->group];
    uint64_t now = h->p->world->now_usec;

    return !h->p->s->groups[h->group].moves &&
           (group->apart_usec == 0 ||
            now - MIN(group->apart_usec, now) >= MAX(h->policy->min_residency_usec, 1U));
}

static void take_anew(ThreadHomes *h)
{
    for (size_t i = 0; i < h->n; i++)
        h->units[i].node = h->units[i].node_anew;
}

static void solve(ThreadHomes *h)
{
    uint64_t kept, gain = MAX(h->policy->min_gain_permille, GAIN_PERMILLE);

    qsort(h->units, h->n, sizeof(*h->units), compare_regret);
    kept = assign(h, false);
    if (rule_holds(h->p->world, ABLATION_ANEW) && may_change(h) &&
        assign(h, true) > kept + h->use_sum / 1000 * gain)
        take_anew(h);
}

/* Units were sorted; `order` is where each was. */
static void note_nodes(ThreadHomes *h)
{
    const World *world = h->p->world;
    PlanScratch *s = h->p->s;
    int32_t *node_of = s->unit_nodes;

    for (size_t i = 0; i < h->n; i++)
        node_of[h->units[i].order] = h->units[i].node;
    for (size_t i = 0; i < world->n_tasks; i++)
        if (s->tasks[i].unit != UINT32_MAX &&
            world->processes[world->tasks[i].process.i].group.i == (int32_t)h->group)
            s->tasks[i].home_node.i = node_of[s->tasks[i].unit];
}

/* The groups behind it meet its threads where they are to be, and not where the packing had them. Of the others it is
 * not known better. */
static void take_nodes(ThreadHomes *h)
{
    uint64_t parts = 0, known;

    for (uint32_t i = 0; i < h->n_nodes; i++)
        parts += part_of(h, i);
    known = MIN(h->demand, parts);
    for (uint32_t i = 0; known > 0 && i < h->n_nodes; i++)
        h->taken[i] -= part_of(h, i) * known / parts;
    for (size_t i = 0; known > 0 && i < h->n; i++)
        if (h->units[i].node >= 0)
            h->taken[h->units[i].node] += h->units[i].demand * known / h->demand;
}

static int decide_group(Planner *p, size_t index, uint64_t *taken)
{
    ThreadHomes h = {
        .p = p,
        .group = index,
        .policy = p->s->workloads[p->world->groups[index].workload.i].policy,
        .n_nodes = p->world->topology->n_nodes,
        .taken = taken,
    };

    measure_nodes(&h);
    if (gather(&h) < 0 || !GROW(p->s->unit_nodes, p->s->unit_nodes_capacity, MAX(h.n, 1U)))
        return -ENOMEM;
    if (weigh_units(&h)) {
        solve(&h);
        note_nodes(&h);
        take_nodes(&h);
    }
    return 0;
}

/* A single thread has several nodes so that it finds an idle CPU. */
static bool is_apart(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    const PlannerGroup *g = &p->s->groups[index];
    const Policy *policy = group->workload.i >= 0 ? p->s->workloads[group->workload.i].policy : NULL;

    return !group->gone && policy && policy_chooses_nodes(policy) && policy->mode != POLICY_MODE_INTERLEAVE &&
           g->home_nodes && hwloc_bitmap_weight(g->home_nodes) > 1 && group->n_tasks > 1;
}

/* Paused groups, and all between slow ticks, keep what they have. */
int thread_homes_decide(Planner *p)
{
    const World *world = p->world;
    uint64_t taken[PACK_NODES_MAX] = {0};
    int r = 0;

    if (world->topology->n_nodes > PACK_NODES_MAX || !rule_holds(world, ABLATION_APART))
        return 0;
    for (size_t i = 0; i < world->n_tasks; i++) {
        const Process *process = &world->processes[world->tasks[i].process.i];

        if (process->workload.i < 0 || !world->workloads[process->workload.i].paused)
            p->s->tasks[i].home_node = NODE_NONE;
    }
    for (size_t i = 0; i < p->s->n_parts; i++)
        taken[i % world->topology->n_nodes] += p->s->parts[i];
    for (size_t i = 0; i < world->n_groups && r == 0; i++)
        if (is_apart(p, i) && !world->workloads[world->groups[i].workload.i].paused)
            r = decide_group(p, i, taken);
    for (size_t i = 0; i < world->n_tasks && r == 0; i++)
        if (!world->tasks[i].gone && p->s->tasks[i].home_node.i != world->tasks[i].home_node.i)
            planner_thread(p, &(PlanThread){
                                  .task = world_task_key(world, &world->tasks[i]),
                                  .home_node = p->s->tasks[i].home_node,
                              });
    return r;
}
