/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counters arrive as differences over one tick. All arithmetic is on integers, so the same differences give the same
 * loads on every machine (I12).
 *
 * Idle spells are followed with the resolution of a tick: a spell starts with the first idle tick and ends with the
 * last one before a busy tick. With ticks of 100 ms, idle, idle, idle, busy is one spell of 300 ms, noticed at the end
 * of the busy tick. Spells inside a tick are not seen; they are too short to lend the CPU anyway. */

#include "world/load.h"

#include "base/time.h"

uint16_t load_permille(uint64_t delta_nsec, uint64_t interval_nsec)
{
    uint64_t v;

    if (interval_nsec == 0)
        return 0;
    /* The product overflows only beyond 213 days; a thousandth of such an interval is precise enough. */
    if (__builtin_mul_overflow(delta_nsec, 1000, &v))
        v = delta_nsec / MAX(interval_nsec / 1000, 1U);
    else
        v /= interval_nsec;
    return (uint16_t)MIN(v, UINT16_MAX);
}

uint32_t load_ewma(uint32_t old, uint32_t sample)
{
    int64_t step = (int64_t)sample - old;

    step = step > 0 ? (step + 7) / 8 : (step - 7) / 8;
    return (uint32_t)(old + step);
}

/* An average over time, not over ticks: a tick of one second counts as ten of 100 ms. Otherwise the load of
 * young tasks would look small while ticks are slow. After 32 steps nothing of the old value is left. */
static uint16_t load_mean(uint16_t old, uint16_t sample, uint64_t interval_nsec)
{
    uint64_t n = CLAMP((interval_nsec + LOAD_EWMA_NSEC / 2) / LOAD_EWMA_NSEC, 1U, 32U);

    for (uint64_t i = 0; i < n && old != sample; i++)
        old = (uint16_t)load_ewma(old, sample);
    return old;
}

static uint16_t one_cpu_permille(uint64_t delta_nsec, uint64_t interval_nsec)
{
    return MIN(load_permille(delta_nsec, interval_nsec), LOAD_FULL_PERMILLE);
}

void load_task(Task *task, uint64_t run_nsec, uint64_t wait_nsec, uint64_t interval_nsec)
{
    if (interval_nsec == 0)
        return;

    task->run_before_permille = task->run_permille;
    task->wait_before_permille = task->wait_permille;
    task->run_permille = one_cpu_permille(run_nsec, interval_nsec);
    task->wait_permille = one_cpu_permille(wait_nsec, interval_nsec);
    /* The first load is taken whole: with averages from 0 a new group would be placed as a small one. */
    task->run_ewma_permille = task->fresh
                                  ? task->run_permille
                                  : load_mean(task->run_ewma_permille, task->run_permille, interval_nsec);
    task->wait_ewma_permille = task->fresh
                                   ? task->wait_permille
                                   : load_mean(task->wait_ewma_permille, task->wait_permille, interval_nsec);
}

/* `start_usec` is when the tick just measured began. */
static void follow_idle(CpuLoad *cpu, uint64_t start_usec, uint32_t idle_permille)
{
    bool idle = cpu->busy_permille < idle_permille;
    uint32_t spell_usec;

    if (idle && cpu->idle_since_usec == 0) {
        cpu->idle_since_usec = MAX(start_usec, 1U); /* 0 would mean "not idle" */
    } else if (!idle && cpu->idle_since_usec > 0) {
        spell_usec = start_usec > cpu->idle_since_usec
                         ? (uint32_t)MIN(start_usec - cpu->idle_since_usec, UINT32_MAX)
                         : 0;
        /* There is nothing to average the first spell with. */
        cpu->idle_ewma_usec = cpu->idle_ewma_usec ? load_ewma(cpu->idle_ewma_usec, spell_usec) : spell_usec;
        cpu->idle_since_usec = 0;
    }
}

void load_cpu(CpuLoad *cpu, uint64_t now_usec, uint64_t busy_nsec, uint64_t wait_nsec, bool wait_known,
              uint64_t interval_nsec, uint32_t idle_permille)
{
    uint64_t interval_usec = interval_nsec / NSEC_PER_USEC;

    if (interval_nsec == 0)
        return;

    cpu->busy_before_permille = cpu->busy_permille;
    cpu->wait_before_permille = cpu->wait_permille;
    cpu->busy_permille = one_cpu_permille(busy_nsec, interval_nsec);
    cpu->wait_permille = wait_known ? load_permille(wait_nsec, interval_nsec) : 0;
    cpu->wait_known = wait_known;
    follow_idle(cpu, now_usec > interval_usec ? now_usec - interval_usec : 0, idle_permille);
}

bool load_cpu_is_idle(const World *world, const CpuLoad *cpu)
{
    return cpu->usable && cpu->idle_since_usec > 0 && cpu->busy_permille < world->idle_permille &&
           cpu->busy_before_permille < world->idle_permille;
}

/* Never 0, which would mean not known. */
static uint32_t young_demand(const Group *g)
{
    return MAX(MAX(g->run_permille + g->wait_permille, g->before_permille), 1U);
}

void load_groups(World *world)
{
    uint64_t passed = MIN(world->interval_usec, LOAD_HOLD_USEC);

    for (size_t i = 0; i < world->n_groups; i++) {
        Group *g = &world->groups[i];
        uint32_t noise = MAX(g->demand_permille / 10, 100U);

        if (world_since(world, g->first_seen_usec) < LOAD_YOUNG_USEC) {
            g->demand_permille = young_demand(g);
        } else if (g->want_permille > g->demand_permille + noise) {
            g->demand_permille = g->want_permille;
        } else if (g->want_permille + noise < g->demand_permille) {
            uint64_t excess = g->demand_permille - g->want_permille;

            excess -= (excess * passed + LOAD_HOLD_USEC - 1) / LOAD_HOLD_USEC;
            g->demand_permille = g->want_permille + (excess > noise ? (uint32_t)excess : 0);
        }
        g->before_permille = g->run_permille + g->wait_permille;
    }
}

/* Subtracts `ran` from the busy time of the nodes in `set` (NULL: all), in proportion. Returns what exceeds
 * their busy time. */
static uint64_t take_off(const World *world, CpuMask set, uint64_t ran)
{
    NodeLoad *nodes = world->nodes;
    uint64_t sum = 0, part;

    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        if (!set || hwloc_bitmap_isset(set, i))
            sum += nodes[i].left_permille;
    part = MIN(ran, sum);
    for (uint32_t i = 0; i < world->topology->n_nodes && sum > 0; i++)
        if (!set || hwloc_bitmap_isset(set, i))
            nodes[i].left_permille -= (uint32_t)(nodes[i].left_permille * part / sum);
    return ran - part;
}

static bool has_one_node(const Group *g)
{
    return g->home_nodes && hwloc_bitmap_weight(g->home_nodes) == 1;
}

/* Subtracts the run time of threads last seen outside their group's home, or whose group has none. Returns
 * what exceeds the busy time there. */
static uint64_t take_off_outside(const World *world)
{
    uint64_t more = 0;

    for (size_t i = 0; i < world->n_groups; i++)
        world->groups[i].outside_permille = 0;
    for (size_t i = 0; i < world->n_tasks; i++) {
        const Task *task = &world->tasks[i];
        const Process *process = &world->processes[task->process.i];
        const TopologyCpu *cpu = topology_cpu(world->topology, task->last_cpu);
        Group *g = process->group.i < 0 ? NULL : &world->groups[process->group.i];
        NodeLoad *node;

        if (!g || !cpu || task->gone || g->roams ||
            (g->home_nodes && hwloc_bitmap_isset(g->home_nodes, (unsigned)cpu->node.i)))
            continue;
        node = &world->nodes[cpu->node.i];
        more += task->run_permille - MIN(task->run_permille, node->left_permille);
        node->left_permille -= MIN(task->run_permille, node->left_permille);
        g->outside_permille += task->run_permille;
    }
    return more;
}

static uint64_t take_off_placed(const World *world, bool one_node)
{
    uint64_t more = 0;

    for (size_t i = 0; i < world->n_groups; i++) {
        const Group *g = &world->groups[i];

        if (!g->gone && (g->home_nodes || g->roams) && has_one_node(g) == one_node)
            more += take_off(world, g->roams ? NULL : g->home_nodes,
                             g->run_permille - MIN(g->outside_permille, g->run_permille));
    }
    return more;
}

void load_nodes(World *world)
{
    uint64_t passed = MIN(world->interval_usec, LOAD_HOLD_USEC), more;

    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        world->nodes[i].left_permille = 0;
    for (uint32_t i = 0; i < world->topology->cpu_limit; i++) {
        const TopologyCpu *cpu = topology_cpu(world->topology, (CpuIx){(int32_t)i});

        if (cpu && world->cpus[i].usable)
            world->nodes[cpu->node.i].left_permille += world->cpus[i].busy_permille;
    }
    /* Threads known to have run on one node come first. */
    more = take_off_outside(world);
    more += take_off_placed(world, true);
    more += take_off_placed(world, false);
    /* The rest ran elsewhere; the nodes from which it was not subtracted look busier by as much. */
    (void)take_off(world, NULL, more);
    for (uint32_t i = 0; i < world->topology->n_nodes; i++) {
        NodeLoad *node = &world->nodes[i];
        int64_t off = (int64_t)node->left_permille - node->others_permille;
        /* Rounded towards the sample, so that it is reached. */
        int64_t step =
            (int64_t)((uint64_t)(off < 0 ? -off : off) * passed + LOAD_HOLD_USEC - 1) / LOAD_HOLD_USEC;

        node->others_permille = (uint32_t)(node->others_permille + (off < 0 ? -step : step));
    }
}
