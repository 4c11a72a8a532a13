/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads of one group on different nodes, each where its own memory is (P11, P14, P15).
 *
 * This applies only to homes of several nodes, and to threads whose memory use is known from hint faults, the
 * daemon's or the kernel's: residency says where the memory of a process is, not which thread uses it. A thread with
 * memory of its own lives on one node, and so do threads that share memory and fit a node together. Memory that more
 * threads share belongs to no node, and its users stay free in the whole home.
 *
 * The assignment is a transport problem. The demand of each unit (threads that belong together) is known, and the
 * share of its accesses that goes to each node. A node takes a share of the demand as large as its share of the CPUs
 * that others leave. The amount of memory decides only ties, because how much of it is scanned varies far more from
 * round to round than where it lies. The solution is by regret: the unit that loses most on its second best node
 * chooses first. A unit without room where it has most waits for those with room. So at the start, when all memory is
 * on one node, the threads with most of it stay, and the memory of the others follows (P13). Threads that pause much
 * stay where they run if there is room, and their memory follows.
 *
 * An assignment is kept as long as it fits. A new one replaces it only if it puts at least a tenth more of the memory
 * next to its user (or MinGainPermille, if that is more), and never while memory is being moved. So threads that have
 * exchanged what they work on are exchanged, which is cheaper than moving the memory (task flipping, P15). */

#include "plan/home/pool.h"
#include "plan/home/thread-units.h"

#include "plan/choose/choose.h"
#include "plan/choose/nodes.h"

#include <string.h>

/* Regrets less than a tenth of a busy thread apart are ties. */
#define REGRET_STEP (100ULL << THREAD_USE_SHIFT)

/* A group wants much more than its home gives if it wants this part more, as for demand in vain (pack.h). */
#define MUCH_PART 4U

/* Demand of a thread is measured to some percent. */
#define SPILL_NOISE_PART 16U

/* The least gain of a new assignment, of all that is used. Averages move by some percent from round to round. */
#define GAIN_PERMILLE 100U

static uint64_t part_of(const ThreadHomes *h, uint32_t node)
{
    size_t at = h->group * h->n_nodes + node;

    return at < h->p->s->n_parts ? h->p->s->parts[at] : 0;
}

/* What the other groups leave of `permille` on a node. A node full of them keeps a little, as in
 * choose_nodes_left(). */
static uint64_t room_for(const ThreadHomes *h, uint32_t node, uint64_t permille)
{
    uint64_t others = rule_holds(h->p->world, ABLATION_ROOM) ? h->taken[node] - part_of(h, node) : 0;

    return MAX(permille - MIN(others, permille), permille / 10);
}

/* If the group wants more than its whole home gives, a unit may exceed its node in proportion: apart, its
 * threads would not get more either. `enough` is the demand up to which this does not hold. It is less for a
 * unit that has a node, since demand changes from tick to tick. */
static uint64_t largest_unit(const ThreadHomes *h, uint64_t largest, uint64_t enough)
{
    uint64_t want = h->p->world->groups[h->group].want_permille;

    return want > enough ? pack_limit(largest * want / MAX(h->capacity_sum, 1U)) : largest;
}

static void measure_nodes(ThreadHomes *h)
{
    const Topology *topology = h->p->world->topology;
    const PlannerGroup *g = &h->p->s->groups[h->group];
    uint64_t n_cpus, n_cores;

    h->largest = buddies_largest(h->p->world, g->home_nodes, h->p->world->groups[h->group].demand_permille);
    for (uint32_t i = 0; i < h->n_nodes; i++) {
        h->capacity[i] = 0;
        if (!hwloc_bitmap_isset(g->home_nodes, i) ||
            hwloc_bitmap_and(h->p->s->set, topology->nodes[i].cpus, h->p->s->usable) < 0)
            continue;
        buddies_count(h->p->world, h->p->s->set, &n_cpus, &n_cores);
        h->capacity[i] = room_for(h, i, choose_nodes_left(h->p, i, (uint32_t)n_cpus));
        h->cores[i] = room_for(h, i, choose_nodes_left(h->p, i, (uint32_t)n_cores));
        if (g->cpuset && hwloc_bitmap_and(h->p->s->set, h->p->s->set, g->cpuset) == 0) {
            buddies_count(h->p->world, h->p->s->set, &n_cpus, &n_cores);
            h->capacity[i] = MIN(h->capacity[i], n_cpus);
            h->cores[i] = MIN(h->cores[i], n_cores);
        }
        h->capacity_sum += h->capacity[i];
        h->cores_sum += h->cores[i];
    }
    h->presses = thread_units_press_memory(h);
    h->largest_kept = largest_unit(h, h->largest, h->capacity_sum);
    h->largest = largest_unit(h, h->largest, h->capacity_sum + h->capacity_sum / MUCH_PART);
}

/* A unit too large for any node gets none. A unit with a node keeps it until it is a quarter too large. A set
 * also gets none if it is small only because some of its group do not run now: the held demand of the group
 * (load_groups()) would make it more than half a node too large. A momentary peak is not held. */
static bool is_too_large(const ThreadHomes *h, const PlannerUnit *unit)
{
    const Group *group = &h->p->world->groups[h->group];
    uint64_t held = MAX(group->demand_permille, group->want_permille), want = MAX(group->want_permille, 1U);

    if (unit->now >= 0)
        return unit->demand > h->largest_kept + h->largest_kept / 4;
    return !buddies_fit(unit->demand, h->largest) ||
           (unit->n_threads > 1 && unit->demand * held / want > h->largest * 3 / 2);
}

/* For a part of a set, memory on a node half as far as the farthest counts as half beside it (P11): turns
 * what lies on each node into how near all of it is. Other units have all they use beside them in the end;
 * what parts share stays on the nodes of all of them. */
static void weigh_distances(const ThreadHomes *h, uint64_t *use, uint64_t most)
{
    const Topology *topology = h->p->world->topology;
    uint64_t there[PACK_NODES_MAX];

    memcpy(there, use, h->n_nodes * sizeof(*use));
    for (uint32_t i = 0; i < h->n_nodes; i++)
        for (uint32_t k = 0; k < h->n_nodes; k++)
            if (k != i)
                use[i] += there[k] / (most - DISTANCE_HERE) *
                          (most - MAX(topology->distances[(size_t)i * h->n_nodes + k], DISTANCE_HERE));
}

/* Returns whether at least two units can have a node. */
static bool weigh_units(ThreadHomes *h)
{
    uint64_t most = thread_units_farthest(h->p->world->topology);
    size_t n = 0;

    for (size_t i = 0; i < h->n; i++) {
        PlannerUnit *unit = &h->units[i];
        uint64_t *use = h->use + i * h->n_nodes, best = 0, second = 0;

        unit->free = is_too_large(h, unit);
        unit->here = thread_units_here(h, unit);
        for (uint32_t k = 0; k < h->n_nodes && !unit->free; k++)
            h->use_sum += h->capacity[k] > 0 ? use[k] : 0;
        if (unit->set != UINT32_MAX && rule_holds(h->p->world, ABLATION_DISTANCES))
            weigh_distances(h, use, most);
        for (uint32_t k = 0; k < h->n_nodes; k++) {
            uint64_t near = h->capacity[k] > 0 ? use[k] : 0;

            second = MAX(second, MIN(near, best));
            best = MAX(best, near);
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

/* The node's share of `demand`. */
static uint64_t share_of(const ThreadHomes *h, uint32_t node, uint64_t demand)
{
    return demand * h->capacity[node] / MAX(h->capacity_sum, 1U);
}

/* Half a unit too much is as far from the share as half a unit too little. Beside a thread that stays because it
 * pauses, those of which nothing is known yet stay as well, so the share is that of all threads. */
static bool has_room(const ThreadHomes *h, uint32_t node, const PlannerUnit *unit)
{
    uint64_t all = unit->here == (int32_t)node ? h->p->world->groups[h->group].want_permille : 0;

    return h->capacity[node] > 0 &&
           h->load[node] + unit->demand <= share_of(h, node, MAX(h->demand, all)) + unit->demand / 2;
}

static int first_cpu(const ThreadHomes *h, uint32_t node)
{
    return hwloc_bitmap_first(h->p->world->topology->nodes[node].cpus);
}

/* Whether `a` is better than `b`: room first, then where it runs if it pauses, then most of its memory, then the
 * emptiest; without room the emptiest before these. The lowest CPU decides ties, which does not change when nodes are
 * renamed (I12). */
static bool is_better(const ThreadHomes *h, const PlannerUnit *unit, uint32_t a, uint32_t b)
{
    const uint64_t *use = h->use + (size_t)unit->order * h->n_nodes;
    bool room = has_room(h, a, unit), room_b = has_room(h, b, unit);
    uint64_t full = h->load[a] * h->capacity[b], full_b = h->load[b] * h->capacity[a];

    if (room != room_b)
        return room;
    if (!room && full != full_b)
        return full < full_b;
    if ((unit->here == (int32_t)a) != (unit->here == (int32_t)b))
        return unit->here == (int32_t)a;
    if (use[a] != use[b])
        return use[a] > use[b];
    return full != full_b ? full < full_b : first_cpu(h, a) < first_cpu(h, b);
}

static int32_t best_node(const ThreadHomes *h, const PlannerUnit *unit)
{
    int32_t best = -1;

    for (uint32_t i = 0; i < h->n_nodes; i++)
        if (h->capacity[i] > 0 && (best < 0 || is_better(h, unit, i, (uint32_t)best)))
            best = (int32_t)i;
    return best;
}

static void settle(ThreadHomes *h, PlannerUnit *unit, int32_t node)
{
    unit->node_anew = node;
    if (node >= 0)
        h->load[node] += unit->demand;
}

/* Settles units where they are: all on a node that without its largest unit has no more than its share, which
 * is what assigning leaves behind; otherwise those with the most regret, as long as that holds. */
static void keep(ThreadHomes *h)
{
    uint64_t sum[PACK_NODES_MAX] = {0};
    uint32_t largest[PACK_NODES_MAX] = {0};

    for (size_t i = 0; i < h->n; i++) {
        PlannerUnit *unit = &h->units[i];
        uint32_t node = (uint32_t)MAX(unit->now, 0);

        unit->settled =
            !unit->free && unit->now >= 0 && h->capacity[node] > 0 &&
            sum[node] + unit->demand - MAX(largest[node], unit->demand) <= share_of(h, node, h->demand);
        if (!unit->settled)
            continue;
        sum[node] += unit->demand;
        largest[node] = MAX(largest[node], unit->demand);
    }
}

/* Whether a thread on its own leaves a node with more than its share for one that stays within its share. */
static bool is_levelling(const ThreadHomes *h, const PlannerUnit *unit, uint32_t node, uint32_t other)
{
    return h->presses && unit->n_threads == 1 &&
           h->load[other] + unit->demand <= share_of(h, other, h->demand) &&
           h->load[node] >= share_of(h, node, h->demand) + unit->demand / 4;
}

/* Whether another node is better for a unit than its own that is crowded: with the unit it is less full, for its size,
 * and demand beyond the CPUs shrinks by at least a quarter of the unit (a choice of ours). Of two nodes that are alike,
 * one is always a little fuller. */
static bool is_emptier(const ThreadHomes *h, const PlannerUnit *unit, uint32_t node, uint32_t other)
{
    uint64_t load = h->load[other] + unit->demand;

    return h->load[node] > h->capacity[node] &&
           load * h->capacity[node] < h->load[node] * h->capacity[other] &&
           load + h->capacity[node] + unit->demand / 4 <= h->load[node] + h->capacity[other];
}

/* The node where a unit that is one too many for its own, or for the memory of that, is better off: one with room.
 * -1: none. */
static int32_t better_node(const ThreadHomes *h, const PlannerUnit *unit, uint32_t node)
{
    int32_t best = -1;

    for (uint32_t i = 0; i < h->n_nodes; i++)
        if (has_room(h, i, unit) && (is_emptier(h, unit, node, i) || is_levelling(h, unit, node, i)) &&
            (best < 0 || is_better(h, unit, i, (uint32_t)best)))
            best = (int32_t)i;
    return best;
}

/* Relieves nodes that are crowded while others have room, since the home has grown, a thread has left, or another group
 * has. The unit with the least regret goes first. Each move makes the loads more alike, so this ends. */
static void relieve(ThreadHomes *h)
{
    bool any = rule_holds(h->p->world, ABLATION_RELIEVE);

    while (any) {
        any = false;
        for (size_t i = h->n; i-- > 0;) {
            int32_t *node = &h->units[i].node_anew;
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

/* How much of what is used is next to its user. */
static uint64_t sum_local(const ThreadHomes *h)
{
    uint64_t local = 0;

    for (size_t i = 0; i < h->n; i++) {
        int32_t node = h->units[i].node_anew;

        local += node >= 0 ? h->use[(size_t)h->units[i].order * h->n_nodes + (uint32_t)node] : 0;
    }
    return local;
}

/* Gives a node to units without one, in the order of regret. `first`: only the node with most of what a unit
 * uses, if that has room. */
static void settle_all(ThreadHomes *h, bool first)
{
    for (size_t i = 0; i < h->n; i++) {
        PlannerUnit *unit = &h->units[i];
        const uint64_t *use = h->use + (size_t)unit->order * h->n_nodes;
        int32_t node;

        if (unit->settled)
            continue;
        node = unit->free ? -1 : best_node(h, unit);
        if (first && node >= 0 && (!has_room(h, (uint32_t)node, unit) || use[node] < unit->most))
            continue;
        settle(h, unit, node);
        unit->settled = true;
    }
}

/* Finds a node for every unit (PlannerUnit.node_anew); with `anew` regardless of where it is. Returns how much of what
 * is used is then next to its user. A unit that finds no room goes to the emptiest node, which has at most its share.
 * One without room where its memory is waits for those with room: otherwise it would drive one of these away, and that
 * one the next. */
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
            settle(h, &h->units[i], h->units[i].now);
    settle_all(h, true);
    settle_all(h, false);
    relieve(h);
    return sum_local(h);
}

static bool may_change(const ThreadHomes *h)
{
    const Group *group = &h->p->world->groups[h->group];

    return !h->p->s->groups[h->group].moves &&
           (group->apart_usec == 0 ||
            world_since(h->p->world, group->apart_usec) >= MAX(h->policy->min_residency_usec, 1U));
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
    take_anew(h);
    if (rule_holds(h->p->world, ABLATION_ANEW) && may_change(h) &&
        assign(h, true) > kept + h->use_sum / 1000 * gain)
        take_anew(h);
}

/* Spilling */

static uint64_t room_on(const ThreadHomes *h, uint32_t node, const uint64_t *sizes)
{
    return h->capacity[node] > 0 ? sizes[node] - MIN(sizes[node], h->load[node]) : 0;
}

static bool has_more_room(const ThreadHomes *h, uint32_t a, uint32_t b, const uint64_t *sizes)
{
    uint64_t room = room_on(h, a, sizes), room_b = room_on(h, b, sizes);

    return room != room_b ? room > room_b : first_cpu(h, a) < first_cpu(h, b);
}

/* The node for threads of a unit that are too many for its own: the one where such threads already live, if
 * it has room for one; else the nearest node with that room, and of these the one with most. */
static uint32_t spill_node(const ThreadHomes *h, const PlannerUnit *unit, uint64_t one, const uint64_t *sizes)
{
    const Topology *topology = h->p->world->topology;
    uint32_t to = (uint32_t)unit->node, nearest = UINT32_MAX;

    if (unit->spill_node >= 0 && room_on(h, (uint32_t)unit->spill_node, sizes) >= one)
        return (uint32_t)unit->spill_node;
    for (uint32_t i = 0; i < h->n_nodes; i++) {
        uint32_t distance = topology_distance(topology, (NodeIx){unit->node}, (NodeIx){(int32_t)i});

        if (room_on(h, i, sizes) < one || distance > nearest ||
            (distance == nearest && !has_more_room(h, i, to, sizes)))
            continue;
        to = i;
        nearest = distance;
    }
    return to;
}

/* Spills whole threads: as many as are too many and find room. If some threads of the unit use most of their
 * memory alone, spills all that are too many or none, and only where keep() would leave the last of them:
 * each becomes a unit of its own elsewhere, and a unit leaves a crowded node. Returns whether any go. */
static bool spill_unit(ThreadHomes *h, PlannerUnit *unit, const uint64_t *sizes)
{
    uint64_t one = MAX(unit->demand / unit->n_threads, 1U), noise = one / SPILL_NOISE_PART;
    uint64_t load = h->load[unit->node], over = load - MIN(sizes[unit->node] + noise, load);
    uint32_t to = spill_node(h, unit, one - noise, sizes);
    uint64_t many = (over + one - 1) / one,
             may = MIN((room_on(h, to, sizes) + noise) / one, unit->n_threads - 1U);

    if (unit->any_private && (many > may || h->load[to] + many * one > share_of(h, to, h->demand) + one))
        return false;
    many = MIN(many, may);
    if (many == 0)
        return false;
    unit->spills = (uint32_t)(many * one);
    unit->spill_node = (int32_t)to;
    h->load[unit->node] -= many * one;
    h->load[to] += many * one;
    return true;
}

/* Units go to nodes as a whole, but two of five threads each are two too many for eight CPUs. So no node has
 * more than `sizes` while others have room, even if some threads are then away from what they share. The unit
 * with the least regret goes first. */
static bool spill(ThreadHomes *h, const uint64_t *sizes)
{
    bool any = false;

    for (size_t i = h->n; i-- > 0 && rule_holds(h->p->world, ABLATION_SPILL);) {
        PlannerUnit *unit = &h->units[i];

        if (unit->node >= 0 && unit->n_threads > 1 && unit->spills == 0)
            any |= spill_unit(h, unit, sizes);
    }
    return any;
}

static void sum_loads(ThreadHomes *h)
{
    memset(h->load, 0, sizeof(h->load));
    for (size_t i = 0; i < h->n; i++)
        if (h->units[i].node >= 0)
            h->load[h->units[i].node] += h->units[i].demand;
}

static int compare_order(const void *a, const void *b)
{
    const PlannerUnit *x = a, *y = b;

    return x->order < y->order ? -1 : x->order > y->order;
}

/* Whether its unit spills the thread. Asked first about threads that already live on the other node, `there`,
 * and about the last ones before others. The first thread stays, because it shows where the unit lives. */
static bool is_spilled(const ThreadHomes *h, const Task *task, bool there)
{
    uint32_t index = (uint32_t)(task - h->p->world->tasks);
    PlannerUnit *unit = &h->units[h->p->s->tasks[index].unit];
    uint32_t demand = buddies_demand(task);

    if (index == unit->first || unit->spills == 0 || unit->spills < demand / 2 ||
        (task->home_node.i == unit->spill_node) != there)
        return false;
    unit->spills -= MIN(unit->spills, demand);
    return true;
}

static void note_nodes(ThreadHomes *h, bool spills)
{
    enum {
        ALL,
        SPILLED_BEFORE,
        SPILLED,
        N_PASSES
    };
    const World *world = h->p->world;

    qsort(h->units, h->n, sizeof(*h->units), compare_order);
    for (int pass = 0; pass < (spills ? N_PASSES : SPILLED_BEFORE); pass++)
        for (size_t i = world->n_tasks; i-- > 0;) {
            const Task *task = &world->tasks[i];
            PlannerTask *of_task = &h->p->s->tasks[i];

            if (of_task->unit == UINT32_MAX || world->processes[task->process.i].group.i != (int32_t)h->group)
                continue;
            if (pass == ALL)
                of_task->home_node.i = h->units[of_task->unit].node;
            else if (!of_task->spilled && is_spilled(h, task, pass == SPILLED_BEFORE)) {
                of_task->home_node.i = h->units[of_task->unit].spill_node;
                of_task->spilled = true;
            }
        }
}

/* Later groups should meet the threads where they are to be, not where the packing had them. For threads
 * without a unit nothing better is known. */
static void take_nodes(ThreadHomes *h)
{
    uint64_t parts = 0, known;

    for (uint32_t i = 0; i < h->n_nodes; i++)
        parts += part_of(h, i);
    known = MIN(h->demand, parts);
    for (uint32_t i = 0; known > 0 && i < h->n_nodes; i++)
        h->taken[i] -= part_of(h, i) * known / parts;
    for (uint32_t i = 0; known > 0 && i < h->n_nodes; i++)
        h->taken[i] += h->load[i] * known / h->demand;
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
    bool spills, may_be_apart;

    measure_nodes(&h);
    if (thread_units_gather(&h) < 0)
        return -ENOMEM;
    may_be_apart = weigh_units(&h);
    if (!pool_decide(&h, may_be_apart) && may_be_apart) {
        solve(&h);
        sum_loads(&h);
        spills = spill(&h, h.cores);
        spills |= spill(&h, h.capacity);
        note_nodes(&h, spills);
        take_nodes(&h);
    }
    return 0;
}

/* Whether threads of the group may have nodes of their own. A single thread has several nodes so that it
 * finds an idle CPU. */
static bool is_apart(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    const PlannerGroup *g = &p->s->groups[index];
    const Policy *policy = p->s->workloads[group->workload.i].policy;

    return !group->gone && policy && policy_chooses_nodes(policy) && policy->mode != POLICY_MODE_INTERLEAVE &&
           g->home_nodes && hwloc_bitmap_weight(g->home_nodes) > 1 && group->n_tasks > 1;
}

/* Paused groups, and all groups between slow ticks, keep what they have. */
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
            planner_note(p, APPEND(p->plan->threads, p->plan->threads_capacity, p->plan->n_threads,
                                   (PlanThread){
                                       .task = world_task_key(world, &world->tasks[i]),
                                       .home_node = p->s->tasks[i].home_node,
                                       .spilled = p->s->tasks[i].spilled,
                                   }));
    return r;
}
