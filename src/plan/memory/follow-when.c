/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When memory follows: the conditions in their order, what keeps a request in flight, and the pause after it.
 *
 * Memory follows a home at once, in the plan that sets the home, if by_home_first[] and by_home[] hold: its place is
 * known, more than a little of it lies outside, and neither the policy, its users, its pages nor the nodes speak
 * against it. Memory follows the threads that use it, block by block, as soon as some is found and by_use[] holds. The
 * first condition that does not hold is recorded as the refusal; those behind it are not asked.
 *
 * Which processes are considered: follow.c by home, follow-use.c by use. Which memory: what lies outside their nodes,
 * follow-nodes.c; what is interleaved, stripe.c; which blocks go where, and how long each of them rests, sorting.c.
 * How soon evidence comes: of where memory lies, follow_wants_look() in follow-outcome.c; of its users, watch.c and
 * plan/scan/pace.c.
 *
 * Moving memory costs a hundred times what moving threads costs, and a home may be taken back until SettleSec= is
 * over. But waiting for that would leave a process far from its memory for ten seconds, for many their whole life. A
 * wrong guess costs two moves: there and back. MinResidencySec= lies between two moves of one process, and
 * PingPongSec follows a move back to where memory was (I7). Waiting where a home was chosen before residency was
 * known, or where threads waited longer than before, saved 0.6 % of the pages and changed nothing in the work done
 * (BENCHMARKS.md).
 *
 * Example: 64 MiB on node 0, a home on node 1, 512 MiB of 1 GiB free there. 64 MiB are elsewhere, more than a
 * fiftieth of 64 MiB and more than 256 KiB; 512 MiB minus a tenth of 1 GiB is room enough. The request is made
 * with the home, and the mover looks at each block, so later allocations count as well. */

#include "base/time.h"
#include "plan/group.h"
#include "plan/home/thread-known.h"
#include "plan/memory/follow-internal.h"
#include "plan/memory/follow.h"
#include "plan/memory/watch.h"
#include "plan/scan/gather.h"

/* By how much residency may be older than the home: two slow ticks. */
#define EVIDENCE_USEC 2000000U

/* How long memory waits for evidence of its users before it follows its home anyway. */
#define AWAIT_USEC 5000000U

/* Fewer bytes than this part of all memory are not worth a move. Interleaving goes by blocks (P18), so one block more
 * or less is even. */
#define FEW_PART 50U

/* How long memory that could not be moved is no reason to try again. Its pages may be shared only until a child of
 * fork(2) ends, or pinned until some I/O does. A choice of ours. */
#define STUCK_USEC 600000000U

/* Being local is worth a fourth of the bandwidth it would then get, which is a fifth of what it gets now. */
#define NEAR_PART 4U
#define MB        1000000U

/* Even with MinResidencySec=0 a pause follows a request in vain: zero could not double. */
#define PAUSE_MIN_USEC 1000U

/*
 * The conditions
 */

/* Each records a refusal if it does not hold, unless stated otherwise. Defined below, in this order. */
typedef bool Gate(const Follow *f);
static Gate is_allowed, is_measured, is_use_told, is_worth_it, is_ours, is_together, is_counted, is_in_home,
    is_not_due, is_not_kernels, is_not_tried, is_calm, is_rested, is_fed, has_room, has_rate, has_budget;

/* Memory that follows a home: before any is looked for, */
static Gate *const by_home_first[] = {
    is_allowed,  /* Follow=, and the nodes are not emulated */
    is_measured, /* residency, since the home and the last move */
    is_use_told, /* by evidence, if the home has several nodes */
};

/* and when some was found. */
static Gate *const by_home[] = {
    is_worth_it,    /* more than a little, and more than failed to move; no refusal if there is none */
    is_ours,        /* nobody else bound it */
    is_together,    /* nobody else pinned some of its threads outside */
    is_counted,     /* how fast the process is, before its memory comes to fewer nodes */
    is_not_kernels, /* the kernel does not balance it between several nodes */
    is_not_tried,   /* its threads do not share their home on trial */
    is_calm,        /* MaxPressure= (P19) */
    is_rested,      /* the pause after its last move is over (I7) */
    is_fed,         /* fewer nodes have enough bandwidth (P15) */
    has_room,       /* HeadroomPercent= and growth left free (P19) */
    has_rate,       /* RateLimit=, for one request at a time (P20) */
    has_budget,     /* actions in this plan */
};

/* Memory that follows its users: blocks that were judged. */
static Gate *const by_use[] = {
    is_in_home,     /* their nodes are still in it; no refusal */
    is_not_due,     /* all of the memory is not about to follow its home; no refusal */
    is_allowed,     /* as above */
    is_not_kernels, /* as above */
    is_not_tried,   /* as above */
    is_calm,        /* as above */
    is_rested,      /* as above */
    has_room,       /* as above */
    has_rate,       /* as above */
    has_budget,     /* as above */
};

/* Of the conditions for a home, those that tell whether all memory outside follows in the next plan. */
static Gate *const by_home_soon[] = {is_measured, is_worth_it, is_ours, is_together};

static bool hold(Gate *const *gates, size_t n, const Follow *f)
{
    size_t i = 0;

    while (i < n && gates[i](f))
        i++;
    return i == n;
}

static bool is_allowed(const Follow *f)
{
    if (f->p->world->topology->rehearsal > 0)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_REHEARSAL, 0, 0);
    if (!f->policy->follow)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_FOLLOW_OFF, 0, 0);
    return true;
}

/* Residency from before the home or the last migration does not count. */
static bool is_measured(const Follow *f)
{
    uint64_t measured = f->process->node_bytes_usec, over = f->process->memory.over_usec;

    if (measured == 0 || (over > 0 && measured <= over) || measured + EVIDENCE_USEC < follow_home_usec(f))
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_EVIDENCE,
                             measured > 0 ? world_since(f->p->world, measured) : 0, EVIDENCE_USEC);
    return true;
}

/* Until evidence tells its users, memory is not spread over a home of several nodes. How long: follow_awaits_use(). */
static bool is_use_told(const Follow *f)
{
    return !f->due || !f->process->use_awaited || !f->to || hwloc_bitmap_weight(f->to) < 2 ||
           follow_refuse(f, MECHANISM_FILTER, PLAN_REASON_USE_AWAITED, 0, 0);
}

static uint64_t stuck_bytes(const Follow *f)
{
    const MemoryMove *memory = &f->process->memory;

    return world_since(f->p->world, memory->over_usec) < STUCK_USEC ? memory->stuck_bytes : 0;
}

static uint64_t few_bytes(const Follow *f)
{
    uint64_t all = world_sum_nodes(f->p->world, f->process->node_bytes);

    return MAX(all / FEW_PART, stripe_is(f->rule) ? TOUCHES_BLOCK_BYTES : FOLLOW_FEW_BYTES) + stuck_bytes(f);
}

static void find_outside(Follow *f)
{
    follow_find_outside(f);
    f->few_bytes = few_bytes(f);
}

/* Whether there is enough to be worth it. Records no refusal if there is nothing. */
static bool is_worth_it(const Follow *f)
{
    bool stripes = stripe_is(f->rule);

    if (f->outside_bytes > f->few_bytes)
        return true;
    return f->outside_bytes > 0 ? follow_refuse(f, stripes ? MECHANISM_STRIPE : MECHANISM_BLOCKS,
                                                stripes ? PLAN_REASON_MEMORY_EVEN : PLAN_REASON_MEMORY_NEAR,
                                                f->outside_bytes, f->few_bytes)
                                : false;
}

/* Whoever bound memory knows why. With Mode=interleave the daemon made the program bind it, so that it is
 * interleaved. */
static bool is_ours(const Follow *f)
{
    uint64_t limit_bytes = MAX(f->few_bytes - stuck_bytes(f), TOUCHES_BLOCK_BYTES);

    if (f->process->bound_bytes <= limit_bytes || f->policy->mode == POLICY_MODE_INTERLEAVE ||
        f->policy->foreign_affinity == POLICY_FOREIGN_OVERRIDE)
        return true;
    return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_MEMORY_BOUND, f->process->bound_bytes, limit_bytes);
}

/* Threads that somebody else pinned elsewhere use this memory, too; how much of it is not known. */
static bool is_together(const Follow *f)
{
    const World *world = f->p->world;
    size_t n, first = world_process_tasks(world, f->process, &n);

    for (size_t i = first; f->due && i < first + n && rule_holds(world, ABLATION_TWO_USERS); i++) {
        const Task *task = &world->tasks[i];

        if (task->gone || planner_placeable(f->policy, f->process, task))
            continue;
        if (!task->allowed || task->hands == TASK_HANDS_UNKNOWN)
            return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_UNREADABLE, 0, 0);
        if (!hwloc_bitmap_isincluded(task->allowed, f->due))
            return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_FOREIGN_AFFINITY, 0, 0);
    }
    return true;
}

/* False: it must be counted before its memory comes together, so that this can go back (plan/scan/gather.h). It cannot
 * go back if somebody else pinned its threads, if MaxNodes= allows one node, or if the kernel balances. */
static bool is_counted(const Follow *f)
{
    const World *world = f->p->world;

    return f->rule != PLAN_RULE_FOLLOW_HOME || !f->to || f->policy->max_nodes == 1 ||
           planner_is_kernels(world, f->policy, f->g->use_hidden) ||
           !gather_awaits_count(world, f->policy, f->process, f->to) ||
           follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_USE_AWAITED, 0, 0);
}

/* The home may have changed since the blocks were judged. */
static bool is_in_home(const Follow *f)
{
    return !f->group->home_nodes || hwloc_bitmap_isincluded(f->to, f->group->home_nodes);
}

/* False: its home is one node, which gets all memory in the next plan, whoever uses it. If a part went before, the
 * rest might not be worth moving. */
static bool is_not_due(const Follow *f)
{
    Follow all = *f;

    if (!f->group->home_nodes || hwloc_bitmap_weight(f->group->home_nodes) != 1)
        return true;
    all.silent = true;
    all.rule = PLAN_RULE_FOLLOW_HOME;
    all.to = follow_find_nodes(f->p, f->group->home_nodes);
    all.due = f->group->home;
    all.outside_bytes = 0;
    find_outside(&all);
    return !all.to || !hold(by_home_soon, ARRAY_SIZE(by_home_soon), &all);
}

bool follow_is_kernels(const World *world, const Policy *policy, const Process *process, CpuMask to)
{
    return to && hwloc_bitmap_weight(to) > 1 && planner_is_kernels(world, policy, process->use_hidden);
}

static bool is_not_kernels(const Follow *f)
{
    return !follow_is_kernels(f->p->world, f->policy, f->process, f->to) ||
           follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_KERNEL_BALANCES, 0, 0);
}

/* A home of this plan is no part of a trial (plan/home/pool.h). */
static bool is_not_tried(const Follow *f)
{
    return !planner_tries_pool(f->p->world, f->group) || follow_home_usec(f) >= f->p->world->now_usec ||
           follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_POOLED, 0, 0);
}

static bool is_calm(const Follow *f)
{
    uint32_t pressure = f->p->world->memory_pressure_permille;

    return pressure <= f->policy->max_pressure_permille ||
           follow_refuse(f, MECHANISM_SHORTAGE, PLAN_REASON_MEMORY_PRESSURE, pressure,
                         f->policy->max_pressure_permille);
}

/* Whether its pause is over. */
static bool is_rested(const Follow *f)
{
    const World *world = f->p->world;
    const MemoryMove *memory = &f->process->memory;

    return world->now_usec >= memory->until_usec ||
           follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_RESIDENCY, world_since(world, memory->over_usec),
                         memory->until_usec - MIN(memory->over_usec, memory->until_usec));
}

/* Bandwidth of a node that other processes leave, MB/s. A share of theirs is not counted: one process after
 * the other would take it, until all have less than before. */
static uint64_t left_on(const Follow *f, uint32_t node, uint64_t own_mb)
{
    uint64_t gives = f->p->world->topology->nodes[node].bandwidth_mb, all = f->p->s->node_traffic_mb[node];
    uint64_t others = all - MIN(all, own_mb);

    return gives - MIN(others, gives);
}

/* Whether memory goes to fewer nodes than it lies on, those with an eighth of it or more. ret_own[]: the part
 * of `moves` on each. Also false if the bandwidth of one of them is not known. */
static bool is_gathered(const Follow *f, uint64_t moves, uint64_t *ret_own)
{
    const Topology *topology = f->p->world->topology;
    uint64_t all = world_sum_nodes(f->p->world, f->process->node_bytes);
    int n = 0;

    for (uint32_t i = 0; i < topology->n_nodes && all > 0; i++) {
        ret_own[i] = moves * (f->process->node_bytes[i] * 1024 / all) / 1024;
        n += f->process->node_bytes[i] >= all / 8;
        if (topology->nodes[i].bandwidth_mb == 0 && (hwloc_bitmap_isset(f->to, i) || ret_own[i] > 0))
            return false;
    }
    return n > hwloc_bitmap_weight(f->to);
}

/* Memory on several nodes is served by all of them. Being local is worth a fifth of that, a choice of ours. */
static bool gives_enough(const Follow *f, uint64_t moves, const uint64_t *own)
{
    uint32_t n_nodes = f->p->world->topology->n_nodes;
    uint64_t now = 0, then = 0, outside = 0;

    for (uint32_t i = 0; i < n_nodes; i++)
        outside += hwloc_bitmap_isset(f->to, i) ? 0 : own[i];
    outside /= (unsigned)hwloc_bitmap_weight(f->to);
    for (uint32_t i = 0; i < n_nodes; i++) {
        bool comes = hwloc_bitmap_isset(f->to, i);

        now += MIN(own[i], left_on(f, i, own[i]));
        then += comes ? MIN(own[i] + outside, left_on(f, i, own[i])) : 0;
    }
    return then + then / NEAR_PART >= now ||
           follow_refuse(f, MECHANISM_SHORTAGE, PLAN_REASON_BANDWIDTH, then * MB, now * MB);
}

static bool is_fed(const Follow *f)
{
    const World *world = f->p->world;
    uint64_t moves = (uint64_t)f->process->traffic_mb * f->process->cpu_permille / 1000;
    uint64_t own[PACK_NODES_MAX] = {0};

    return moves == 0 || !f->to || !f->process->node_bytes || world->topology->n_nodes > PACK_NODES_MAX ||
           stripe_is(f->rule) || !rule_holds(world, ABLATION_TRAFFIC) || !is_gathered(f, moves, own) ||
           gives_enough(f, moves, own);
}

/* P19: free bytes, less headroom, reserve and what is on its way. */
static uint64_t node_room(const Follow *f, uint32_t node, uint64_t reserve_bytes)
{
    const World *world = f->p->world;
    uint64_t size = world->topology->nodes[node].memory_bytes;
    uint64_t keep = size / 100 * f->policy->headroom_percent + reserve_bytes + f->p->s->node_incoming[node];
    uint64_t have = world->nodes[node].free_known ? world->nodes[node].free_bytes : 0;

    return have - MIN(have, keep);
}

uint64_t follow_reserve_bytes(const Follow *f)
{
    return f->to ? f->g->grown_bytes / (uint64_t)hwloc_bitmap_weight(f->to) : 0;
}

/* When interleaving, nodes that have their share get nothing. */
static bool has_room(const Follow *f)
{
    uint64_t share = stripe_is(f->rule) ? stripe_share(f) : UINT64_MAX, room = 0;

    for (int i = f->to ? hwloc_bitmap_first(f->to) : -1; i >= 0; i = hwloc_bitmap_next(f->to, i))
        if (share == UINT64_MAX || f->process->node_bytes[i] < share)
            room += node_room(f, (uint32_t)i, follow_reserve_bytes(f));
    return room > MAX(f->few_bytes, TOUCHES_BLOCK_BYTES)
               ? true
               : follow_refuse(f, MECHANISM_SHORTAGE, PLAN_REASON_HEADROOM, room,
                               MIN(f->outside_bytes, f->few_bytes));
}

/* P20: each request gets the whole rate, so a workload may have only one to a node at a time. */
static bool has_rate(const Follow *f)
{
    const World *world = f->p->world;
    const Plan *plan = f->p->plan;
    bool taken = false;

    if (f->policy->rate_limit_bytes == 0)
        return true;
    for (size_t i = 0; i < world->n_processes && !taken; i++)
        taken = !world->processes[i].gone && world->processes[i].workload.i == f->process->workload.i &&
                world->processes[i].memory.to &&
                hwloc_bitmap_intersects(world->processes[i].memory.to, f->to);
    for (size_t i = plan->n_actions; i > 0 && plan->actions[i - 1].kind == PLAN_KIND_MOVE_PAGES; i--)
        taken |= plan->actions[i - 1].workload.i == f->process->workload.i &&
                 hwloc_bitmap_intersects(plan->actions[i - 1].memory.to, f->to);
    return taken ? follow_refuse(f, MECHANISM_RATE, PLAN_REASON_RATE_MEMORY, f->outside_bytes,
                                 f->policy->rate_limit_bytes)
                 : true;
}

static bool has_budget(const Follow *f)
{
    return planner_has_budget(f->p) ||
           follow_refuse(f, f->rule == PLAN_RULE_FOLLOW_USE ? MECHANISM_FILTER : MECHANISM_BLOCKS,
                         PLAN_REASON_BUDGET, f->p->n_spent, PLAN_ACTIONS_PER_TICK);
}

bool follow_goes_home(Follow *f)
{
    if (!hold(by_home_first, ARRAY_SIZE(by_home_first), f))
        return false;
    f->rule = f->due ? stripe_rule(f) : PLAN_RULE_FOLLOW_PIN;
    if (f->g->roams && !stripe_is(f->rule)) /* no node is outside */
        return false;
    find_outside(f);
    return hold(by_home, ARRAY_SIZE(by_home), f);
}

bool follow_goes_to_users(const Follow *f)
{
    return hold(by_use, ARRAY_SIZE(by_use), f);
}

/*
 * Evidence of users
 */

/* What is not asked about yet is sampled as soon as a plan gives it several nodes. While no thread has a node of its
 * own, a judgement without moves means nothing. */
bool follow_awaits_use(const World *world, const Policy *policy, const Process *process,
                       const MemoryWatch *watch)
{
    if (memory_watch_begins_early(world, policy, process))
        return true;
    if (!watch)
        return !memory_watch_is_asked(world, policy, process);
    return rule_holds(world, ABLATION_AWAIT_USE) && memory_watch_has_choice(world, process) &&
           (watch->sorting.n_quiet < SORTING_QUIET || thread_homes_digest(world, process) == 0) &&
           world->now_usec < watch->since_usec + AWAIT_USEC;
}

/*
 * In flight
 */

/* Whether these are exactly the nodes that take the group's memory. */
static bool is_all_of_home(const World *world, const Group *group, CpuMask to)
{
    if (!group->home_nodes && !group->roams)
        return false;
    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        if (follow_takes_memory(world, group->home_nodes, i) != (bool)hwloc_bitmap_isset(to, i))
            return false;
    return true;
}

static bool leads_home(const World *world, const Policy *policy, const Group *group, const Process *process)
{
    const MemoryMove *memory = &process->memory;

    if (memory->to == process->gather.nodes && gather_is_undone(world, policy, process))
        return true;
    if (!group->home && !group->roams && follow_is_pinned(world, process))
        return follow_is_pinned_to(world, process, memory->to);
    if (memory->by_use)
        return !group->home_nodes || hwloc_bitmap_isincluded(memory->to, group->home_nodes);
    return is_all_of_home(world, group, memory->to);
}

bool follow_holds(const World *world, const PolicySet *policies, const Process *process)
{
    const Policy *policy = group_policy(world, policies, process->workload);
    const Group *group = process->group.i >= 0 ? &world->groups[process->group.i] : NULL;

    return process->memory.to && !process->gone && !process->yielded && policy && policy->follow && group &&
           !world->workloads[process->workload.i].paused &&
           world->memory_pressure_permille <= policy->max_pressure_permille &&
           (process->memory.by_use || !follow_is_kernels(world, policy, process, process->memory.to)) &&
           leads_home(world, policy, group, process);
}

/*
 * Pauses (I7)
 */

void follow_pause_begun(const World *world, const Policy *policy, MemoryMove *memory)
{
    uint64_t pause = policy ? MAX(policy->ping_pong_usec, policy->min_residency_usec) : 0;

    if (memory->before == memory->to && world_since(world, memory->over_usec) < pause)
        memory->until_usec = time_after(world->now_usec, pause);
}

/* The pause doubles after each request in vain, up to PingPongSec, and after each further round of
 * interleaving over the same nodes (stripe.c). */
static uint64_t pause_usec(const MemoryMove *memory, const Policy *policy, FollowEnd end)
{
    uint64_t longest, pause;

    if (!policy)
        return 0;
    longest = MAX(policy->ping_pong_usec, policy->min_residency_usec);
    if (end == FOLLOW_END_FAILED)
        return longest;
    pause = MAX(policy->min_residency_usec, PAUSE_MIN_USEC);
    for (uint32_t i = 0; i < memory->n_vain && pause < longest; i++)
        pause *= 2;
    return MIN(pause, longest);
}

/* Bytes that the next request would not move either. If interleaving found nothing to do, all blocks lie
 * where their addresses say, however uneven that is. */
static uint64_t left_bytes(const MemoryMove *memory, const FollowResult *result)
{
    if (result->end != FOLLOW_END_DONE || memory->by_use)
        return 0;
    return memory->stripe && result->moved_bytes == 0 ? MAX(memory->todo_bytes, result->refused_bytes)
                                                      : result->refused_bytes;
}

void follow_pause_over(const Policy *policy, const FollowResult *result, MemoryMove *memory)
{
    bool again = memory->stripe && !memory->by_use;

    memory->stuck_bytes = left_bytes(memory, result);
    if (result->end != FOLLOW_END_CANCELLED)
        memory->n_vain =
            result->moved_bytes == 0 || again ? memory->n_vain + (memory->n_vain < UINT32_MAX) : 0;
    /* Other parts may move to another node at once. */
    if (!memory->by_use || result->end != FOLLOW_END_DONE || result->moved_bytes == 0)
        memory->until_usec =
            MAX(memory->until_usec, time_after(result->time_usec, pause_usec(memory, policy, result->end)));
}
