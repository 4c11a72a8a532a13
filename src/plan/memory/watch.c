/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* After a round:
 *
 *     threads --> World (Task.use)
 *     blocks touched --> filters of the regions --> window of the scan: what to ask about besides
 *     blocks --> judged --> requests, if nothing of the last judgement is left and none is under way; also when
 *                           threads have got other nodes
 */

#include "plan/memory/watch.h"

#include "plan/home/thread-known.h"
#include "plan/planner.h"
#include "plan/scan/converge.h"
#include "plan/scan/gather.h"
#include "world/load.h"

#include <string.h>

/* A thread becomes busy at BUSY_PERMILLE and idle below IDLE_PERMILLE. Waiting counts: a thread that waits
 * for the mover of its memory has not stopped working. */
#define BUSY_PERMILLE 500U
#define IDLE_PERMILLE 250U

int memory_watch_init(MemoryWatch *watch, uint32_t n_nodes, uint64_t now_usec)
{
    *watch = (MemoryWatch){.since_usec = now_usec};
    return sorting_init(&watch->sorting, n_nodes);
}

void memory_watch_done(MemoryWatch *watch)
{
    sorting_done(&watch->sorting);
    scan_window_done(&watch->window);
    free(watch->busy);
    free(watch->busy_now);
    *watch = (MemoryWatch){0};
}

/*
 * Which processes
 */

static const Group *group_of(const World *world, const Process *process)
{
    return process->group.i >= 0 ? &world->groups[process->group.i] : NULL;
}

bool memory_watch_wanted(const World *world, const Policy *policy, const Process *process)
{
    const Group *group = group_of(world, process);

    return policy && group && !group->gone && !process->gone && !process->yielded &&
           !world->workloads[process->workload.i].paused && policy->act != POLICY_ACT_OBSERVE &&
           policy->mode != POLICY_MODE_INTERLEAVE && !gather_is_undone(world, policy, process);
}

bool memory_watch_has_choice(const World *world, const Process *process)
{
    const Group *group = group_of(world, process);

    return group && (group->roams || (group->home_nodes && hwloc_bitmap_weight(group->home_nodes) > 1 &&
                                      (group->n_tasks > 1 || process->n_threads > 1)));
}

/* Whether to find out if threads share memory: they press on the memory of their home more than P5 allows
 * without a reason. */
static bool is_reason_asked(const World *world, const Group *group, const Process *process)
{
    return rule_holds(world, ABLATION_ALONE) && group && group->home && process->n_threads > 1 &&
           process->rss_bytes >= PLANNER_MEMORY_MIN &&
           planner_presses(world->topology, group->home, group->home_nodes, group->demand_permille);
}

/* Whether no node has three quarters of the memory: a process with that much on one may as well go there. Our
 * choice. */
static bool lies_apart(const World *world, const Process *process)
{
    uint64_t most = 0, sum = 0;

    for (uint32_t i = 0; process->node_bytes && i < world->topology->n_nodes; i++) {
        most = MAX(most, process->node_bytes[i]);
        sum += process->node_bytes[i];
    }
    return sum >= PLANNER_MEMORY_MIN && most < sum / 4 * 3;
}

/* Whether several of its threads may be placed. */
static bool are_placeable(const World *world, const Policy *policy, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n), n_placeable = 0;

    for (size_t i = first; i < first + n && n_placeable < 2; i++)
        n_placeable += planner_placeable(policy, process, &world->tasks[i]);
    return n_placeable > 1;
}

static bool is_homeless(const Group *group)
{
    return group && !group->gone && !group->home && !group->roams;
}

/* Whether its first home is to be chosen, and has not been put off for too long. */
static bool is_to_settle(const World *world, const Policy *policy, const Process *process)
{
    const Group *group = group_of(world, process);

    return policy && policy->mode == POLICY_MODE_AUTO && !process->gone && is_homeless(group) &&
           world_since(world, group->first_seen_usec) < MEMORY_WATCH_FIRST_USEC;
}

bool memory_watch_precedes_home(const World *world, const Policy *policy, const Process *process)
{
    return rule_holds(world, ABLATION_AWAIT_APART) && is_to_settle(world, policy, process) &&
           group_of(world, process)->want_permille >
               planner_allowed_imbalance(world->topology) * LOAD_FULL_PERMILLE &&
           lies_apart(world, process) && are_placeable(world, policy, process);
}

/* CPUs of all nodes but the smallest, nodes without CPUs aside; 0: the process may not use all nodes. */
static uint32_t cpus_of_most_nodes(const World *world, const Policy *policy, const Process *process)
{
    const Topology *topology = world->topology;
    uint32_t smallest = UINT32_MAX, n_nodes = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        const TopologyNode *node = &topology->nodes[i];

        if (node->n_cpus == 0)
            continue;
        if (process->cpuset && !hwloc_bitmap_intersects(process->cpuset, node->cpus))
            return 0;
        smallest = MIN(smallest, node->n_cpus);
        n_nodes++;
    }
    return n_nodes < 2 || (policy->max_nodes > 0 && policy->max_nodes < n_nodes)
               ? 0
               : topology->n_cpus - smallest;
}

/* Whether it has no home yet and is likely to get all nodes: as far as is known, its threads want more CPUs
 * than all nodes but the smallest have. One thread is not counted: it often waits for the others. */
static bool is_everywhere(const World *world, const Policy *policy, const Process *process)
{
    const Group *group = group_of(world, process);
    uint32_t others;

    if (!is_to_settle(world, policy, process) || process->rss_bytes < PLANNER_MEMORY_MIN ||
        !are_placeable(world, policy, process))
        return false;
    others = cpus_of_most_nodes(world, policy, process);
    return others > 0 && process->n_threads > others + 1 &&
           (group->want_permille == 0 || group->want_permille > others * LOAD_FULL_PERMILLE);
}

bool memory_watch_begins_early(const World *world, const Policy *policy, const Process *process)
{
    return memory_watch_precedes_home(world, policy, process) || is_everywhere(world, policy, process);
}

bool memory_watch_is_asked(const World *world, const Policy *policy, const Process *process)
{
    const Group *group = group_of(world, process);

    return memory_watch_has_choice(world, process) || is_reason_asked(world, group, process) ||
           memory_watch_begins_early(world, policy, process);
}

void memory_watch_forget(World *world, Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n);

    process->use_awaited = false;
    for (size_t i = first; i < first + n; i++)
        (void)world_set_task_use(world, &world->tasks[i], NULL, 0, (TaskKey){0}, 0);
}

/*
 * Threads
 */

/* Keys of one process. */
static bool is_same(const TaskKey *a, const TaskKey *b)
{
    return a->tid == b->tid && a->start_ticks == b->start_ticks;
}

static bool is_busy(const Task *task, bool was_busy)
{
    uint32_t wants = (uint32_t)task->run_ewma_permille + task->wait_ewma_permille;

    return !task->gone && !task->fresh && wants >= (was_busy ? IDLE_PERMILLE : BUSY_PERMILLE);
}

int memory_watch_note_busy(MemoryWatch *watch, const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n), before = 0, n_now = 0;
    bool changed = false;

    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];
        const TaskKey key = world_task_key(world, task);

        while (before < watch->n_busy && watch->busy[before].tid < task->tid)
            before++;
        if (!is_busy(task, before < watch->n_busy && is_same(&watch->busy[before], &key)))
            continue;
        if (!GROW(watch->busy_now, watch->busy_now_capacity, n_now + 1))
            return -ENOMEM;
        changed |= n_now >= watch->n_busy_now || !is_same(&watch->busy_now[n_now], &key);
        watch->busy_now[n_now++] = key;
    }
    if ((changed || n_now != watch->n_busy_now) && rule_holds(world, ABLATION_BUSY))
        scan_pace_restart(&watch->pace);
    watch->n_busy_now = n_now;
    return 0;
}

static void forget_changed(MemoryWatch *watch, Touches *touches)
{
    size_t before = 0, now = 0;

    while (before < watch->n_busy || now < watch->n_busy_now) {
        pid_t a = before < watch->n_busy ? watch->busy[before].tid : INT32_MAX;
        pid_t b = now < watch->n_busy_now ? watch->busy_now[now].tid : INT32_MAX;

        if (a != b || !is_same(&watch->busy[before], &watch->busy_now[now]))
            (void)touches_forget_thread(touches, MIN(a, b));
        before += a <= b;
        now += b <= a;
    }
}

int memory_watch_follow_busy(MemoryWatch *watch, Touches *touches)
{
    if (!GROW(watch->busy, watch->busy_capacity, watch->n_busy_now + 1))
        return -ENOMEM;
    if (watch->followed)
        forget_changed(watch, touches);
    watch->followed = true;
    if (watch->n_busy_now > 0)
        memcpy(watch->busy, watch->busy_now, watch->n_busy_now * sizeof(*watch->busy));
    watch->n_busy = watch->n_busy_now;
    return 0;
}

bool memory_watch_has_news(const MemoryWatch *watch, const World *world, const Process *process,
                           const Policy *policy)
{
    return watch->n_counted >= TOUCHES_ROUNDS_MIN &&
           thread_homes_n_known(world, policy, process) > watch->n_told;
}

static ScanPeriodRange range_of(const Policy *policy, const Process *process)
{
    const ScanPeriodLimits limits = {policy->scan_min_usec, policy->scan_max_usec, policy->scan_size_bytes};

    return scan_period_range(&limits, process->rss_bytes);
}

void memory_watch_planned(MemoryWatch *watch, const World *world, const Process *process,
                          const Policy *policy)
{
    const ScanPeriodRange range = range_of(policy, process);

    watch->n_told = thread_homes_n_known(world, policy, process);
    scan_pace_moved(&watch->pace, &range, scan_pace_moved_usec(&world->groups[process->group.i]));
}

/*
 * Memory
 */

static void note_accesses(const Touches *touches, MemoryRegions *regions)
{
    for (size_t i = 0; i < touches->n_blocks; i++) {
        const TouchBlock *block = &touches->blocks[i];

        for (size_t k = 0; block->last_round == touches->n_rounds && k < TOUCHES_OWNERS; k++)
            if (block->owners[k].tid)
                scan_note_access(regions, block->address, block->owners[k].tid);
    }
}

/* Chooses which untouched memory is asked about next: the window of the scan (P8, P9, P16). */
static int scan(MemoryWatchLook *look)
{
    ScanRules rules = {.window_bytes = look->policy->scan_size_bytes,
                       .force_complete = look->policy->force_complete};

    if (look->policy->scan_feedback)
        rules.window_bytes = converge_window_bytes(rules.window_bytes,
                                                   converge_use(look->world, look->process, look->touches));
    if (look->news)
        note_accesses(look->touches, look->regions);
    look->window = true;
    look->watch->window_bytes = rules.window_bytes;
    return scan_step(&look->watch->scan, look->regions, &rules, look->now_usec, &look->watch->window);
}

static int sort(const MemoryWatchLook *look)
{
    Sorting *sorting = &look->watch->sorting;
    const SortingLook what = {look->world, look->process, look->policy, look->touches, look->regions};

    if (look->process->memory.to || sorting->n_moves > 0)
        return 0;
    look->watch->homes = thread_homes_digest(look->world, look->process);
    return sorting_judge(sorting, &what);
}

/* Memory that moves because of what was seen teaches something, too. */
static int set_pace(const MemoryWatchLook *look)
{
    const MemoryMove *memory = &look->process->memory;
    ScanPaceRound round = {
        .range = range_of(look->policy, look->process),
        .strength = converge_use(look->world, look->process, look->touches),
        .cost_usec = look->news ? look->cost_usec : 0,
    };
    int r = look->news ? scan_pace_read(look->touches, &round) : 0;

    if (!rule_holds(look->world, ABLATION_FIRST_ROUNDS))
        look->watch->pace.n_rounds = SCAN_PACE_LEARN_ROUNDS;
    round.seen.n_failed = memory->over_usec > look->watch->over_usec && memory->n_vain > 0;
    look->watch->over_usec = memory->over_usec;
    round.learning |= memory->to || look->watch->sorting.n_moves > 0;
    if (r == 0)
        scan_pace_round(&look->watch->pace, &round);
    return r;
}

/* Between rounds, or after one in which nothing was touched. */
static int look_between(MemoryWatchLook *look)
{
    if (look->whole) {
        int r = look->regions ? scan(look) : 0;

        return r == 0 ? set_pace(look) : r;
    }
    if (look->regions && look->touches->n_rounds > 0 &&
        look->watch->homes != thread_homes_digest(look->world, look->process))
        return sort(look);
    return 0;
}

/* The World is not told what threads use before there is a home: after two or three rounds, shared memory
 * looks private. The exception is a home that waits for it. */
static bool is_too_early(const MemoryWatchLook *look)
{
    return is_homeless(group_of(look->world, look->process)) &&
           !memory_watch_precedes_home(look->world, look->policy, look->process);
}

int memory_watch_look(MemoryWatchLook *look)
{
    MemoryWatch *watch = look->watch;
    int r;

    if (look->touches->n_rounds == watch->n_counted)
        return look_between(look);
    watch->n_counted = look->touches->n_rounds;
    watch->summary = touches_summary(look->touches);
    look->news = true;
    r = is_too_early(look) ? 0 : touches_tell(look->touches, look->world, look->world->now_usec);
    if (r == 0)
        r = memory_watch_follow_busy(watch, look->touches);
    if (r == 0 && look->regions)
        r = sort(look);
    if (r == 0 && look->regions)
        r = scan(look);
    if (r == 0 && look->whole)
        r = set_pace(look);
    return r;
}
