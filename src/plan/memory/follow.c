/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory that follows a home: which processes it is considered for, the nodes it goes to, and the request. When it
 * may go: follow-when.c.
 *
 * What it does badly: in a home of several nodes it is not known to which of them a block belongs. Memory that
 * moves is spread over them; stripe.c says whether memory already on these nodes is interleaved (P17). */

#include "plan/memory/follow.h"

#include "plan/home/sharing.h"
#include "plan/memory/follow-internal.h"
#include "plan/scan/gather.h"

#include <string.h>

static uint32_t count_memory_nodes(const Topology *topology)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        n += follow_has_memory(topology, i);
    return n;
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

/* Adds the traffic of the process to its new nodes, for processes considered later in this plan. */
static void speak_for_traffic(const Follow *f)
{
    uint64_t moves = (uint64_t)f->process->traffic_mb * f->process->cpu_permille / 1000;

    if (f->p->world->topology->n_nodes > PACK_NODES_MAX)
        return;
    for (int i = hwloc_bitmap_first(f->to); i >= 0; i = hwloc_bitmap_next(f->to, i))
        f->p->s->node_traffic_mb[i] += moves / (unsigned)hwloc_bitmap_weight(f->to);
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
        .due = due,
    };

    if (!follow_goes_home(&f))
        return;
    follow_order(&f, stripe_is(f.rule) ? MECHANISM_STRIPE : MECHANISM_BLOCKS, NULL);
    speak_for_traffic(&f);
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
