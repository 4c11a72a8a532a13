/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When memory follows a home. Moving memory costs a hundred times what moving threads costs, and a home may be
 * taken back until SettleSec= is over. But waiting for that would leave a process far from its memory for ten
 * seconds, for many their whole life. So memory follows at once. A wrong guess costs two moves: there and
 * back. MinResidencySec= lies between two moves of one process, and PingPongSec follows a move back to where
 * memory was (I7). Waiting where a home was chosen before residency was known, or where threads waited longer
 * than before, saved 0.6 % of the pages and changed nothing in the work done (BENCHMARKS.md).
 *
 * Example: 64 MiB on node 0, a home on node 1, 512 MiB of 1 GiB free there. 64 MiB are elsewhere, more than a
 * fiftieth of 64 MiB and more than 256 KiB; 512 MiB minus a tenth of 1 GiB is room enough. The request is made
 * with the home, and the mover looks at each block, so later allocations count as well.
 *
 * What it does badly: in a home of several nodes it is not known to which of them a block belongs. Memory that
 * moves is spread over them; stripe.c says whether memory already on these nodes is interleaved (P17). */

#include "plan/memory/follow.h"

#include "plan/home/sharing.h"
#include "plan/memory/follow-internal.h"
#include "plan/scan/gather.h"

#include <string.h>

/* By how much residency may be older than the home: two slow ticks. */
#define EVIDENCE_USEC 2000000U

/* How long memory that could not be moved is no reason to try again. Its pages may be shared only until a child of
 * fork(2) ends, or pinned until some I/O does. A choice of ours. */
#define STUCK_USEC 600000000U

static uint64_t stuck_bytes(const Follow *f)
{
    const MemoryMove *memory = &f->process->memory;

    return world_since(f->p->world, memory->over_usec) < STUCK_USEC ? memory->stuck_bytes : 0;
}

static uint32_t count_memory_nodes(const Topology *topology)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        n += follow_has_memory(topology, i);
    return n;
}

/* Finds misplaced memory: outside f->to or, if it is interleaved, beyond a node's share. */
static void find_outside(Follow *f)
{
    const Topology *topology = f->p->world->topology;
    uint64_t share = stripe_is(f->rule) ? stripe_share(f) : UINT64_MAX, all = 0;
    hwloc_bitmap_t set = f->p->s->nodes;

    hwloc_bitmap_zero(set);
    for (uint32_t i = 0; f->process->node_bytes && i < topology->n_nodes; i++) {
        uint64_t bytes = f->process->node_bytes[i];
        uint64_t due = f->to && hwloc_bitmap_isset(f->to, i) ? share : 0;

        all += bytes;
        if (bytes <= due)
            continue;
        f->outside_bytes += bytes - due;
        planner_note(f->p, hwloc_bitmap_set(set, i));
    }
    f->from = planner_intern(f->p, set);
    f->few_bytes = MAX(all / FOLLOW_FEW_PART, stripe_is(f->rule) ? TOUCHES_BLOCK_BYTES : FOLLOW_FEW_BYTES) +
                   stuck_bytes(f);
}

/* Residency from before the home or the last migration does not count. */
static bool is_known(const Follow *f)
{
    uint64_t measured = f->process->node_bytes_usec, over = f->process->memory.over_usec;

    if (measured == 0 || (over > 0 && measured <= over) || measured + EVIDENCE_USEC < follow_home_usec(f))
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_EVIDENCE,
                             measured > 0 ? world_since(f->p->world, measured) : 0, EVIDENCE_USEC);
    return true;
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
    uint64_t few_bytes = MAX(f->few_bytes - stuck_bytes(f), TOUCHES_BLOCK_BYTES);

    if (f->process->bound_bytes <= few_bytes || f->policy->mode == POLICY_MODE_INTERLEAVE ||
        f->policy->foreign_affinity == POLICY_FOREIGN_OVERRIDE)
        return true;
    return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_MEMORY_BOUND, f->process->bound_bytes, few_bytes);
}

/* Threads that somebody else pinned elsewhere use this memory, too; how much of it is not known. */
static bool is_together(const Follow *f, CpuMask due)
{
    const World *world = f->p->world;
    size_t n, first = world_process_tasks(world, f->process, &n);

    for (size_t i = first; i < first + n && rule_holds(world, ABLATION_TWO_USERS); i++) {
        const Task *task = &world->tasks[i];

        if (task->gone || planner_placeable(f->policy, f->process, task))
            continue;
        if (!task->allowed || task->hands == TASK_HANDS_UNKNOWN)
            return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_UNREADABLE, 0, 0);
        if (!hwloc_bitmap_isincluded(task->allowed, due))
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

bool follow_is_due(const Follow *f)
{
    Follow all = *f;

    all.silent = true;
    all.rule = PLAN_RULE_FOLLOW_HOME;
    all.to = follow_find_nodes(f->p, f->group->home_nodes);
    all.outside_bytes = 0;
    find_outside(&all);
    return all.to && is_known(&all) && is_worth_it(&all) && is_ours(&all) &&
           is_together(&all, f->group->home);
}

/* Counts bytes on their way to these nodes. */
static void speak_for(PlanScratch *s, CpuMask nodes, uint64_t bytes)
{
    for (int i = hwloc_bitmap_first(nodes); i >= 0; i = hwloc_bitmap_next(nodes, i))
        s->node_incoming[i] += bytes / (uint64_t)hwloc_bitmap_weight(nodes);
}

void follow_order(const Follow *f, uint8_t mechanism, const PlanUse *use)
{
    const PlanAction action = {
        .kind = PLAN_KIND_MOVE_PAGES,
        .rule = f->rule,
        .mechanism = mechanism,
        .subject = planner_process_key(f->process),
        .workload = f->process->workload,
        .group_id = f->group->id,
        .cpu = CPU_NONE,
        .memory =
            {
                .from = f->from,
                .to = f->to,
                .help = follow_help(f),
                .bytes = f->outside_bytes,
                .reserve_bytes = follow_reserve_bytes(f),
                .rate_bytes = f->policy->rate_limit_bytes,
                .headroom_percent = f->policy->headroom_percent,
                .nice = FOLLOW_MOVER_NICE,
                /* Others of its group may be pinned elsewhere, and would take it back. */
                .shared =
                    f->rule != PLAN_RULE_FOLLOW_PIN && sharing_moves(f->p->world, f->policy, f->process),
                .ranges = use ? use->ranges : NULL,
                .n_ranges = use ? use->n_ranges : 0,
                .stripe = use ? use->stripe : stripe_is(f->rule),
            },
        .value = (uint32_t)MIN(f->outside_bytes >> 20, UINT32_MAX),
        .limit = (uint32_t)MIN(f->few_bytes >> 20, UINT32_MAX),
    };

    if (planner_act(f->p, &action))
        speak_for(f->p->s, f->to, f->outside_bytes);
}

/* `to`: nodes for its memory; `due`: the mask of its threads, NULL: somebody else pinned them. */
static void follow_process(Planner *p, const Process *process, CpuMask to, CpuMask due)
{
    Follow f = {
        .p = p,
        .process = process,
        .group = &p->world->groups[process->group.i],
        .g = &p->s->groups[process->group.i],
        .policy = p->s->workloads[process->workload.i].policy,
        .to = to,
    };

    if (!follow_may(&f) || !is_known(&f))
        return;
    if (due && process->use_awaited && f.to && hwloc_bitmap_weight(f.to) > 1) {
        (void)follow_refuse(&f, MECHANISM_FILTER, PLAN_REASON_USE_AWAITED, 0, 0);
        return;
    }
    f.rule = due ? stripe_rule(&f) : PLAN_RULE_FOLLOW_PIN;
    if (f.g->roams && !stripe_is(f.rule))
        return;
    find_outside(&f);
    if (!is_worth_it(&f) || !is_ours(&f) || (due && !is_together(&f, due)) || !is_counted(&f) ||
        !follow_is_time(&f) || !follow_is_fed(&f) || !follow_has_room(&f) || !follow_has_rate(&f))
        return;
    if (!planner_has_budget(p)) {
        (void)follow_refuse(&f, MECHANISM_BLOCKS, PLAN_REASON_BUDGET, p->n_spent, PLAN_ACTIONS_PER_TICK);
        return;
    }
    follow_order(&f, stripe_is(f.rule) ? MECHANISM_STRIPE : MECHANISM_BLOCKS, NULL);
    follow_speak_for_traffic(&f);
}

/* The nodes for memory of a process that somebody else pinned; NULL: any. */
static CpuMask find_pin(Planner *p, const Process *process)
{
    hwloc_bitmap_t set = p->s->nodes;
    bool all = true;

    hwloc_bitmap_zero(set);
    for (uint32_t i = 0; i < p->world->topology->n_nodes; i++)
        if (follow_pin_takes(p->world, process, i)) {
            planner_note(p, hwloc_bitmap_set(set, i));
        } else {
            all &= !follow_has_memory(p->world->topology, i);
        }
    return all ? NULL : planner_intern(p, set);
}

bool follow_gather(Planner *p)
{
    PlanScratch *s = p->s;
    size_t n_nodes = p->world->topology->n_nodes;

    if (!GROW(s->node_incoming, s->node_incoming_capacity, n_nodes)) {
        p->error = -ENOMEM;
        return false;
    }
    memset(s->node_incoming, 0, n_nodes * sizeof(*s->node_incoming));
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];

        if (process->gone)
            continue;
        if (process->group.i >= 0)
            s->groups[process->group.i].grown_bytes += process->grown_bytes;
        if (process->memory.to)
            speak_for(s, process->memory.to, process->memory.todo_bytes);
    }
    return true;
}

/* Whether memory goes to where somebody else pinned the threads: there is no home, though the policy would
 * give one. */
static bool is_pinned(const Planner *p, const Process *process)
{
    const PlannerGroup *g = process->group.i >= 0 ? &p->s->groups[process->group.i] : NULL;
    const Group *group = g ? &p->world->groups[process->group.i] : NULL;
    const Policy *policy;

    if (!g || g->blocked != PLAN_REASON_INVALID || g->home || group->home || g->roams || group->roams ||
        process->gone || process->yielded || p->world->workloads[process->workload.i].paused ||
        p->world->partial || !rule_holds(p->world, ABLATION_PINNED))
        return false;
    policy = p->s->workloads[process->workload.i].policy;
    return policy && policy->mode == POLICY_MODE_AUTO && policy->follow &&
           policy->foreign_affinity == POLICY_FOREIGN_RESPECT && follow_is_pinned(p->world, process);
}

/* Where its memory goes back to, with its group (plan/scan/gather.h); NULL: it does not. */
static CpuMask find_back(const Planner *p, const Process *process)
{
    if (process->group.i < 0 || !p->s->groups[process->group.i].goes_back ||
        !gather_is_undone(p->world, p->s->workloads[process->workload.i].policy, process))
        return NULL;
    return process->gather.nodes;
}

/* Whether its group needs all nodes; its memory may then be interleaved over them (P17), but does not move
 * otherwise. */
static bool roams(const Planner *p, const Process *process)
{
    return !process->gone && !process->yielded && process->group.i >= 0 && process->cpuset &&
           p->s->groups[process->group.i].roams && !p->world->workloads[process->workload.i].paused &&
           !p->world->partial && (find_back(p, process) || stripe_concerns(p, process));
}

void follow_homes(Planner *p)
{
    CpuMask all = NULL;

    if (count_memory_nodes(p->world->topology) < 2 || !follow_gather(p))
        return;
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];
        CpuMask back = find_back(p, process);

        if (process->memory.to)
            continue;
        if (p->s->processes[i].at_home) {
            follow_process(p, process,
                           back ? back : follow_find_nodes(p, p->s->groups[process->group.i].home_nodes),
                           p->s->processes[i].due);
        } else if (roams(p, process)) {
            all = all ? all : follow_find_nodes(p, NULL);
            follow_process(p, process, back ? back : all, process->cpuset);
        } else if (is_pinned(p, process)) {
            CpuMask to = find_pin(p, process);

            if (to)
                follow_process(p, process, to, NULL);
        }
    }
}
