/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Takes lent CPUs back (P2): within two ticks after the owner wakes, when the lease ends, and when the lend has become
 * useless.
 *
 * Waiting shows that the owner is back: two threads that both want a CPU wait half of the time each. If the owner
 * wakes with a share f of the tick left, both have waited 500 f permille by its end. With OWNER_WAIT_PERMILLE 100 that
 * tick is enough if f >= 0.2, and the next one always is, so the recall comes within two ticks. The test used for
 * lending, WaitPermille on two consecutive ticks, would need three, even with half of it, when the owner wakes in the
 * middle of a tick. The threshold cannot be much lower: kernel threads, and a hypervisor that runs another guest, make
 * every thread wait some percent now and then, and a false recall costs the borrower MinResidencySec=.
 *
 * The owner's wait is the largest of four estimates:
 *
 * - the wait of the borrower, unless the kernel has moved it home, which its mask allows: at home the owner
 *   does not make it wait;
 * - the CPU's own wait time minus the borrower's;
 * - the wait of sampled tasks that ran there last;
 * - the longest wait of a thread whose home includes the lent CPU, wherever it waits: two threads of the
 *   owner that wake on one CPU share it, while the kernel sees two CPUs with one or two runnable threads
 *   each, no imbalance to correct.
 *
 * Residency (I7) does not delay a recall for the owner, at the end of a lease, from a CPU that is gone, or of a thread
 * that sleeps. It delays only the recall because there is room at home. */

#include "plan/planner.h"
#include "world/load.h"

#define MECHANISM 2 /* P2 */

#define OWNER_WAIT_PERMILLE 100U

/* On a full machine some thread waits for the daemon itself while it runs, which is not the lend's fault. At
 * most this much is allowed for it: still less than two threads on one CPU wait. */
#define OWN_PERMILLE_MAX 300U

/* Run and wait together below this: the borrower sleeps. The same bound that makes a CPU idle. */
#define ASLEEP_PERMILLE LOAD_IDLE_PERMILLE

typedef struct RecallSubject {
    const Lease *lease;
    const Task *task;
    const Process *process;
    const Policy *policy;
    CpuMask due;
} RecallSubject;

static bool subject_find(Planner *p, size_t index, RecallSubject *ret)
{
    const Lease *lease = &p->world->leases[index];
    const Task *task = world_task(p->world, lease->task);
    const Process *process;

    if (!task || task->gone)
        return false;
    process = &p->world->processes[task->process.i];
    if (process->gone || p->s->processes[task->process.i].released)
        return false;
    *ret = (RecallSubject){
        .lease = lease,
        .task = task,
        .process = process,
        .policy = process->workload.i >= 0 ? p->s->workloads[process->workload.i].policy : NULL,
        .due = p->s->tasks[task - p->world->tasks].due,
    };
    /* Without a mask to go back to, or when it is not known or no longer ours, this is left to a release. */
    return ret->due && ret->policy && task->allowed && planner_placeable(ret->policy, process, task);
}

/* The kernel may have moved the borrower home; if its CPU is not known, it counts as on the lent one. */
static bool is_on_lent_cpu(const RecallSubject *s)
{
    return s->task->last_cpu.i < 0 || s->task->last_cpu.i == s->lease->cpu.i;
}

static uint32_t owner_wait(const Planner *p, const RecallSubject *s)
{
    const CpuLoad *load = &p->world->cpus[s->lease->cpu.i];
    uint32_t own = is_on_lent_cpu(s) ? s->task->wait_permille : 0;
    uint32_t cpu = load->wait_known && load->wait_permille > own ? load->wait_permille - own : 0;

    return MAX(MAX(own, cpu), p->s->cpus[s->lease->cpu.i].wait_others);
}

/* The longest wait among threads of groups whose home holds the CPU. All borrowers in a home go when one of
 * its threads waits: the owner comes first, but in a home of many CPUs this gives back more than is needed. */
static uint32_t home_wait(const Planner *p, const RecallSubject *s)
{
    const TopologyCpu *cpu = topology_cpu(p->world->topology, s->lease->cpu);

    return cpu ? p->s->node_waits[cpu->node.i] : 0;
}

static bool is_asleep(const Task *task)
{
    return task->run_permille + task->wait_permille < ASLEEP_PERMILLE &&
           task->run_before_permille + task->wait_before_permille < ASLEEP_PERMILLE &&
           task->run_ewma_permille + task->wait_ewma_permille < ASLEEP_PERMILLE;
}

static void emit_recall(Planner *p, const RecallSubject *s, PlanRule rule, uint64_t value, uint64_t limit)
{
    const PlanAction action = {
        .kind = PLAN_KIND_RECALL,
        .rule = rule,
        .mechanism = MECHANISM,
        .subject = s->lease->task,
        .workload = s->process->workload,
        .group_id = p->world->groups[s->process->group.i].id,
        .from = s->task->allowed,
        .to = s->due,
        .home_nodes = rule == PLAN_RULE_HOME_CHANGED ? p->s->groups[s->process->group.i].home_nodes : NULL,
        .cpu = s->lease->cpu,
        .cross_node = s->lease->cross_node,
        .value = (uint32_t)MIN(value, UINT32_MAX),
        .limit = (uint32_t)MIN(limit, UINT32_MAX),
    };

    if (planner_act(p, &action))
        planner_take_back(p, s->lease->cpu);
}

/* Loads say something about a lease only if it is older than the measurement. */
static bool is_measured(const Planner *p, const Lease *lease)
{
    return !p->world->partial && lease->since_tick < p->world->tick;
}

/* Whether the thread's group has another home now, or the thread another group. A recall that failed at that
 * time leaves a lent CPU that is part of the home. */
static bool has_moved(const Planner *p, const RecallSubject *s)
{
    const Group *group = &p->world->groups[s->process->group.i];

    return group->id != s->lease->group_id || group->home != p->s->groups[s->process->group.i].home ||
           hwloc_bitmap_isset(s->due, (unsigned)s->lease->cpu.i);
}

/* Why the lease ends now, and the numbers that decided; PLAN_RULE_INVALID: it goes on. */
static PlanRule recall_rule(const Planner *p, const RecallSubject *s, uint64_t *ret_value,
                            uint64_t *ret_limit)
{
    uint64_t now = p->world->now_usec;
    bool measured = is_measured(p, s->lease);

    *ret_value = *ret_limit = 0;
    if (has_moved(p, s))
        return PLAN_RULE_HOME_CHANGED;
    if (!p->world->cpus[s->lease->cpu.i].usable ||
        !hwloc_bitmap_isset(s->process->cpuset, (unsigned)s->lease->cpu.i))
        return PLAN_RULE_CPU_GONE;
    if (p->world->workloads[s->process->workload.i].paused)
        return PLAN_RULE_PAUSED;
    *ret_value = measured ? MAX(owner_wait(p, s), home_wait(p, s)) : 0;
    *ret_limit = OWNER_WAIT_PERMILLE + MIN(p->world->own_permille, OWN_PERMILLE_MAX);
    if (*ret_value >= *ret_limit)
        return PLAN_RULE_OWNER_WAITS;
    *ret_value = (now - s->lease->since_usec) / 1000;
    *ret_limit = (s->lease->until_usec - s->lease->since_usec) / 1000;
    if (now >= s->lease->until_usec)
        return PLAN_RULE_LEASE_ENDED;
    *ret_value = s->task->run_ewma_permille + s->task->wait_ewma_permille;
    *ret_limit = ASLEEP_PERMILLE;
    return measured && is_asleep(s->task) ? PLAN_RULE_DEMAND_FELL : PLAN_RULE_INVALID;
}

/* Whether it waited at home: not on a lent CPU, from which it may have returned at this instant, nor where
 * somebody else sent it. */
static bool waited_at_home(const Planner *p, const Process *process, const Task *task)
{
    return process->group.i >= 0 && !process->yielded && task->lease < 0 &&
           task->last_move_usec != p->world->now_usec;
}

/* Sums, per CPU, the waiting of the sampled tasks that ran there last and are not its borrower, and finds, per
 * group, the longest wait at home. */
static void sum_waits(Planner *p)
{
    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        const Process *process = &p->world->processes[task->process.i];

        if (task->gone || task->fresh)
            continue;
        if (waited_at_home(p, process, task)) {
            PlannerGroup *g = &p->s->groups[process->group.i];
            uint32_t *wait =
                p->s->tasks[i].apart ? &p->s->node_waits[p->s->tasks[i].home_node.i] : &g->owner_wait;

            *wait = MAX(*wait, task->wait_permille);
        }
        if (!topology_cpu(p->world->topology, task->last_cpu))
            continue;
        if (task->lease >= 0 && p->world->leases[task->lease].cpu.i == task->last_cpu.i)
            continue;
        p->s->cpus[task->last_cpu.i].wait_others += task->wait_permille;
    }
}

/* A home is whole nodes, so its owner's wait is the same for all CPUs of a node. */
static void sum_node_waits(Planner *p)
{
    for (size_t i = 0; i < p->world->n_groups; i++) {
        const PlannerGroup *g = &p->s->groups[i];

        if (g->owner_wait == 0 || !g->home_nodes)
            continue;
        for (int node = hwloc_bitmap_first(g->home_nodes); node >= 0;
             node = hwloc_bitmap_next(g->home_nodes, node))
            p->s->node_waits[node] = MAX(p->s->node_waits[node], g->owner_wait);
    }
}

void recall_due(Planner *p)
{
    if (p->world->n_leases == 0)
        return;
    sum_waits(p);
    sum_node_waits(p);
    for (size_t i = 0; i < p->world->n_leases; i++) {
        PlanRule rule = PLAN_RULE_INVALID;
        uint64_t value, limit;
        RecallSubject s;

        if (subject_find(p, i, &s))
            rule = recall_rule(p, &s, &value, &limit);
        if (rule != PLAN_RULE_INVALID)
            emit_recall(p, &s, rule, value, limit);
    }
}

/* Room at home */

/* A thread sent home at this instant will use an idle CPU there that still looks idle. Which one is not
 * known, so all of them count as claimed; the next tick knows better. */
static void claim_for_returned(Planner *p)
{
    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        CpuMask due = p->s->tasks[i].due;

        if (task->gone || task->lease >= 0 || !due || task->last_move_usec != p->world->now_usec)
            continue;
        for (int cpu = hwloc_bitmap_first(due); cpu >= 0; cpu = hwloc_bitmap_next(due, cpu))
            p->s->cpus[cpu].claimed = true;
    }
}

static CpuIx unclaimed_idle_cpu(const Planner *p, CpuMask due)
{
    for (int cpu = hwloc_bitmap_first(due); cpu >= 0; cpu = hwloc_bitmap_next(due, cpu))
        if (p->s->cpus[cpu].idle && !p->s->cpus[cpu].claimed)
            return (CpuIx){cpu};
    return CPU_NONE;
}

/* Sorts the leases that may end: the farthest from home first. */
static void order_leases(Planner *p)
{
    PlanScratch *s = p->s;

    s->n_order = 0;
    for (size_t i = 0; i < p->world->n_leases; i++) {
        const TopologyCpu *cpu = topology_cpu(p->world->topology, p->world->leases[i].cpu);
        RecallSubject subject;

        if (s->cpus[p->world->leases[i].cpu.i].lease < 0 || !cpu || !subject_find(p, i, &subject))
            continue;
        s->order[s->n_order++] = (PlannerOrder){
            .key = planner_distance(p->world->topology, p->s->groups[subject.process->group.i].home_nodes,
                                    cpu->node),
            .tie = i,
            .index = (uint32_t)i,
        };
    }
    qsort(s->order, s->n_order, sizeof(*s->order), planner_order_compare);
}

/* Ends a lease for an idle CPU at home. Returns whether it did. */
static bool recall_home(Planner *p, size_t index)
{
    const PlannerGroup *g;
    RecallSubject s;
    uint64_t since;
    CpuIx idle;

    if (p->s->cpus[p->world->leases[index].cpu.i].lease < 0 || !subject_find(p, index, &s) ||
        !is_measured(p, s.lease))
        return false;
    /* Threads that wait at home use the idle CPU first. */
    g = &p->s->groups[s.process->group.i];
    if (g->n_pressed > 0 || guard_residency(s.policy, s.task, p->world->now_usec, &since))
        return false;
    idle = unclaimed_idle_cpu(p, s.due);
    if (idle.i < 0)
        return false;

    p->s->cpus[idle.i].claimed = true;
    emit_recall(p, &s, PLAN_RULE_DEMAND_FELL, p->world->cpus[idle.i].busy_permille, p->world->idle_permille);
    return true;
}

void recall_to_idle_homes(Planner *p)
{
    bool changed = p->world->n_leases > 0;

    claim_for_returned(p);
    if (!changed)
        return;
    order_leases(p);
    /* A CPU taken back may itself be in the home of another borrower. */
    while (changed) {
        changed = false;
        for (size_t i = 0; i < p->s->n_order; i++)
            changed |= recall_home(p, p->s->order[i].index);
        if (changed)
            overload_classify(p);
    }
}
