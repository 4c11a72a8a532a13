/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A plan as text, one line per action, refusal and decision. For goldens: nothing in it depends on addresses.
 * Nodes have their operating-system numbers, except home nodes of threads, which are NodeIx. */

#include "base/parse.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdio.h>

static void put_mask(FILE *out, const char *label, CpuMask mask)
{
    CLEANUP_FREE char *text = mask ? format_list(mask, PARSE_CPU_MAX) : NULL;

    if (mask)
        (void)fprintf(out, " %s=%s", label, text ? text : "?");
}

static void put_nodes(FILE *out, const char *label, const Topology *topology, CpuMask nodes)
{
    const char *separator = label;

    for (int i = nodes ? hwloc_bitmap_first(nodes) : -1; i >= 0; i = hwloc_bitmap_next(nodes, i)) {
        (void)fprintf(out, "%s%" PRIu32, separator, topology->nodes[i].os_index);
        separator = ",";
    }
}

static void put_subject(FILE *out, const World *world, TaskKey subject, WorkloadIx workload,
                        uint64_t group_id)
{
    if (subject.pid > 0)
        (void)fprintf(out, " pid=%d", (int)subject.pid);
    if (subject.tid > 0)
        (void)fprintf(out, " tid=%d", (int)subject.tid);
    if (workload.i >= 0 && (size_t)workload.i < world->n_workloads)
        (void)fprintf(out, " workload=%s", world->workloads[workload.i].name);
    if (group_id > 0)
        (void)fprintf(out, " group=%" PRIu64, group_id);
}

static void put_memory(FILE *out, const Topology *topology, const PlanMemory *memory)
{
    put_nodes(out, " from-nodes=", topology, memory->from);
    put_nodes(out, " to-nodes=", topology, memory->to);
    put_nodes(out, " help-nodes=", topology, memory->help);
    (void)fprintf(out,
                  " bytes=%" PRIu64 " reserve=%" PRIu64 " headroom=%" PRIu32 "%% rate=%" PRIu64
                  " nice=%d shared=%s%s",
                  memory->bytes, memory->reserve_bytes, memory->headroom_percent, memory->rate_bytes,
                  memory->nice, memory->shared ? "yes" : "no", memory->stripe ? " stripe=yes" : "");
    if (memory->ranges)
        (void)fprintf(out, " ranges=%zu", memory->n_ranges);
}

static void put_action(FILE *out, const World *world, const PlanAction *action)
{
    (void)fprintf(out, "%s rule=%s P%u", plan_kind_name(action->kind), plan_rule_name(action->rule),
                  action->mechanism);
    put_subject(out, world, action->subject, action->workload, action->group_id);
    put_mask(out, "from", action->from);
    put_mask(out, "to", action->to);
    put_mask(out, "original", action->original);
    put_nodes(out, " nodes=", world->topology, action->home_nodes);
    if (action->cpu.i >= 0)
        (void)fprintf(out, " cpu=%d cross-node=%s", action->cpu.i, action->cross_node ? "yes" : "no");
    if (action->kind == PLAN_KIND_LEND || action->kind == PLAN_KIND_PUSH)
        (void)fprintf(out, " distance=%" PRIu32, action->distance);
    if (action->kind == PLAN_KIND_PUSH)
        (void)fprintf(out, " from-cpu=%d", action->from_cpu.i);
    if (action->kind == PLAN_KIND_LEND)
        (void)fprintf(out, " lease=%" PRIu64 "us", action->lease_usec);
    if (action->kind == PLAN_KIND_MOVE_PAGES)
        put_memory(out, world->topology, &action->memory);
    (void)fprintf(out, " value=%" PRIu32 " limit=%" PRIu32 "\n", action->value, action->limit);
}

static void put_refusal(FILE *out, const World *world, const PlanRefusal *refusal)
{
    (void)fprintf(out, "refused reason=%s P%u", plan_reason_name(refusal->reason), refusal->mechanism);
    put_subject(out, world, refusal->subject, refusal->workload, refusal->group_id);
    if (refusal->cpu.i >= 0)
        (void)fprintf(out, " cpu=%d", refusal->cpu.i);
    (void)fprintf(out, " value=%" PRIu64 " limit=%" PRIu64 "\n", refusal->value, refusal->limit);
}

static void put_home(FILE *out, const World *world, const PlanHome *home)
{
    (void)fprintf(out, "home group=%" PRIu64, home->group_id);
    if (home->home_nodes)
        put_nodes(out, " nodes=", world->topology, home->home_nodes);
    else
        (void)fputs(" roams", out);
    (void)fprintf(out, " wait=%" PRIu32 " others=%" PRIu32 "%s%s\n", home->wait_permille,
                  home->others_permille, home->judged ? " judged" : "", home->reverts ? " reverts" : "");
}

static void put_thread(FILE *out, const Topology *topology, const PlanThread *thread)
{
    int32_t node = thread->home_node.i;

    (void)fprintf(out, "thread pid=%d tid=%d node=%" PRId32 "\n", (int)thread->task.pid,
                  (int)thread->task.tid, node < 0 ? -1 : (int32_t)topology->nodes[node].os_index);
}

static void put_plan(FILE *out, const World *world, const Plan *plan)
{
    (void)fprintf(
        out, "plan tick=%" PRIu64 " now=%" PRIu64 "us pressed=%s overloaded=%" PRIu32 " idle=%" PRIu32 "\n",
        plan->tick, plan->now_usec, plan->pressed ? "yes" : "no", plan->n_overloaded, plan->n_idle);
    for (size_t i = 0; i < plan->n_actions; i++)
        put_action(out, world, &plan->actions[i]);
    for (size_t i = 0; i < plan->n_refusals; i++)
        put_refusal(out, world, &plan->refusals[i]);
    for (size_t i = 0; i < PLAN_REASON_MAX; i++)
        if (plan->n_refused[i] > 0)
            (void)fprintf(out, "count reason=%s n=%" PRIu64 "\n", plan_reason_name((PlanReason)i),
                          plan->n_refused[i]);
    for (size_t i = 0; i < plan->n_homes; i++)
        put_home(out, world, &plan->homes[i]);
    for (size_t i = 0; i < plan->n_threads; i++)
        put_thread(out, world->topology, &plan->threads[i]);
    for (size_t i = 0; i < plan->n_pools; i++)
        (void)fprintf(out,
                      "pool group=%" PRIu64 " until=%" PRIu64 " next=%" PRIu64 " before=%" PRIu32
                      " others=%" PRIu32 " progress=%" PRIu64 "\n",
                      plan->pools[i].group_id, plan->pools[i].until_usec, plan->pools[i].next_usec,
                      plan->pools[i].before_permille, plan->pools[i].others_permille,
                      plan->pools[i].progress);
    for (size_t i = 0; i < plan->n_freezes; i++)
        (void)fprintf(out, "%s group=%" PRIu64 " strength=%" PRIu32 "\n",
                      plan->freezes[i].frozen ? "freeze" : "thaw", plan->freezes[i].group_id,
                      plan->freezes[i].strength);
    for (size_t i = 0; i < plan->n_passes; i++)
        (void)fprintf(
            out, "pass group=%" PRIu64 " vetoes=%" PRIu32 " backoff=%" PRIu32 " until-tick=%" PRIu64 "\n",
            plan->passes[i].group_id, plan->passes[i].n_vetoes, plan->passes[i].backoff_ticks,
            plan->passes[i].backoff_until_tick);
}

char *plan_format(const World *world, const Plan *plan)
{
    CLEANUP_FREE char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bool failed;

    if (!out)
        return NULL;
    put_plan(out, world, plan);
    failed = ferror(out);
    if (fclose(out) != 0 || failed)
        return NULL;
    return TAKE_PTR(text);
}
