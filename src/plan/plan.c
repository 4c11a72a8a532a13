/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One plan, from beginning to end: prepares the working memory, asks each mechanism in turn (see planner.h), and
 * collects what they decided.
 *
 * Cost: a few walks over the tasks, and n log n only over those that wait. Nothing is allocated per thread; arrays
 * stay with the Plan and only ever grow. */

#include "plan/choose.h"

#include <string.h>

/* A confined group whose threads wait this long may soon be lent something: look at it every fast tick. Less than the
 * usual WaitPermille=, because one tick at rest may be 2 s and averages a burst away. */
#define PRESSED_WAIT_PERMILLE 100U

static bool prepare_arrays(PlanScratch *s, const World *world)
{
    size_t n_cpus = MAX(world->topology->cpu_limit, 1U), n_nodes = MAX(world->topology->n_nodes, 1U);

    if (!GROW(s->cpus, s->cpus_capacity, n_cpus) || !GROW(s->donors, s->donors_capacity, n_cpus) ||
        !GROW(s->node_waits, s->node_waits_capacity, n_nodes) ||
        !GROW(s->workloads, s->workloads_capacity, MAX(world->n_workloads, 1U)) ||
        !GROW(s->groups, s->groups_capacity, MAX(world->n_groups, 1U)) ||
        !GROW(s->processes, s->processes_capacity, MAX(world->n_processes, 1U)) ||
        !GROW(s->tasks, s->tasks_capacity, MAX(world->n_tasks, 1U)) ||
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): elements are pointers */
        !GROW(s->node_due, s->node_due_capacity, n_nodes))
        return false;

    memset(s->cpus, 0, n_cpus * sizeof(*s->cpus));
    memset(s->node_waits, 0, n_nodes * sizeof(*s->node_waits));
    memset(s->workloads, 0, world->n_workloads * sizeof(*s->workloads));
    memset(s->groups, 0, world->n_groups * sizeof(*s->groups));
    memset(s->processes, 0, world->n_processes * sizeof(*s->processes));
    s->node_due_of = NULL; /* and so node_due is cleared when it is used first */
    for (size_t i = 0; i < world->n_tasks; i++)
        s->tasks[i] = (PlannerTask){.home_node = world->tasks[i].home_node, .unit = UINT32_MAX};
    s->n_candidates = s->n_order = s->n_donors = 0;
    return true;
}

static bool prepare_bitmaps(PlanScratch *s)
{
    hwloc_bitmap_t *const all[] = {&s->usable, &s->idle, &s->set, &s->nodes};

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        if (!*all[i])
            *all[i] = hwloc_bitmap_alloc();
        if (!*all[i])
            return false;
        hwloc_bitmap_zero(*all[i]);
    }
    return true;
}

int planner_prepare(Planner *p)
{
    const Topology *topology = p->world->topology;
    PlanScratch *s;

    if (!p->plan->scratch)
        p->plan->scratch = calloc(1, sizeof(*p->plan->scratch));
    s = p->s = p->plan->scratch;
    if (!s || !prepare_arrays(s, p->world) || !prepare_bitmaps(s))
        return -ENOMEM;

    for (uint32_t i = 0; i < topology->cpu_limit; i++) {
        s->cpus[i].lease = -1;
        s->cpus[i].cooling = p->world->cpus[i].cooldown_until_usec > p->world->now_usec;
        if (topology->cpus[i].present && p->world->cpus[i].online && p->world->cpus[i].usable &&
            hwloc_bitmap_set(s->usable, i) < 0)
            return -ENOMEM;
    }
    for (size_t i = 0; i < p->world->n_leases; i++)
        s->cpus[p->world->leases[i].cpu.i].lease = (int32_t)i;
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        p->n_cpu_nodes += topology->nodes[i].n_cpus > 0;
    return 0;
}

bool planner_spends(PlanKind kind)
{
    return kind == PLAN_KIND_SET_HOME || kind == PLAN_KIND_LEND || kind == PLAN_KIND_MOVE_PAGES;
}

bool planner_act(Planner *p, const PlanAction *action)
{
    if (!GROW(p->plan->actions, p->plan->actions_capacity, p->plan->n_actions + 1)) {
        p->error = -ENOMEM;
        return false;
    }
    p->plan->actions[p->plan->n_actions++] = *action;
    if (planner_spends(action->kind))
        p->n_spent++;
    return true;
}

void planner_refuse(Planner *p, const PlanRefusal *refusal)
{
    Plan *plan = p->plan;

    plan->n_refused[refusal->reason]++;
    if (plan->n_refusals >= PLAN_REFUSALS_MAX)
        return;
    if (!GROW(plan->refusals, plan->refusals_capacity, plan->n_refusals + 1)) {
        p->error = -ENOMEM;
        return;
    }
    plan->refusals[plan->n_refusals++] = *refusal;
}

void planner_pass(Planner *p, const PlanPass *pass)
{
    if (!GROW(p->plan->passes, p->plan->passes_capacity, p->plan->n_passes + 1)) {
        p->error = -ENOMEM;
        return;
    }
    p->plan->passes[p->plan->n_passes++] = *pass;
}

void planner_refuse_group(Planner *p, uint8_t mechanism, PlanReason reason, const Group *group,
                          uint64_t value, uint64_t limit)
{
    planner_refuse(p, &(PlanRefusal){
                          .reason = reason,
                          .mechanism = mechanism,
                          .workload = group->workload,
                          .group_id = group->id,
                          .cpu = CPU_NONE,
                          .value = value,
                          .limit = limit,
                      });
}

void planner_refuse_process(Planner *p, uint8_t mechanism, PlanReason reason, const Process *process,
                            uint64_t value, uint64_t limit)
{
    planner_refuse(p, &(PlanRefusal){
                          .reason = reason,
                          .mechanism = mechanism,
                          .subject = planner_process_key(process),
                          .workload = process->workload,
                          .group_id = process->group.i >= 0 ? p->world->groups[process->group.i].id : 0,
                          .cpu = CPU_NONE,
                          .value = value,
                          .limit = limit,
                      });
}

void planner_refuse_task(Planner *p, uint8_t mechanism, PlanReason reason, const Task *task, uint64_t value,
                         uint64_t limit)
{
    const Process *process = &p->world->processes[task->process.i];

    planner_refuse(p, &(PlanRefusal){
                          .reason = reason,
                          .mechanism = mechanism,
                          .subject = world_task_key(p->world, task),
                          .workload = process->workload,
                          .group_id = process->group.i >= 0 ? p->world->groups[process->group.i].id : 0,
                          .cpu = CPU_NONE,
                          .value = value,
                          .limit = limit,
                      });
}

void planner_home(Planner *p, const PlanHome *home)
{
    if (!GROW(p->plan->homes, p->plan->homes_capacity, p->plan->n_homes + 1)) {
        p->error = -ENOMEM;
        return;
    }
    p->plan->homes[p->plan->n_homes++] = *home;
}

void planner_thread(Planner *p, const PlanThread *thread)
{
    if (!GROW(p->plan->threads, p->plan->threads_capacity, p->plan->n_threads + 1)) {
        p->error = -ENOMEM;
        return;
    }
    p->plan->threads[p->plan->n_threads++] = *thread;
}

void planner_freeze(Planner *p, const PlanFreeze *freeze)
{
    if (!GROW(p->plan->freezes, p->plan->freezes_capacity, p->plan->n_freezes + 1)) {
        p->error = -ENOMEM;
        return;
    }
    p->plan->freezes[p->plan->n_freezes++] = *freeze;
}

bool planner_has_budget(const Planner *p)
{
    return p->n_spent < PLAN_ACTIONS_PER_TICK;
}

TaskKey planner_process_key(const Process *process)
{
    return (TaskKey){.pid = process->pid, .start_ticks = process->start_ticks};
}

int planner_order_compare(const void *a, const void *b)
{
    const PlannerOrder *x = a, *y = b;

    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return x->tie < y->tie ? -1 : x->tie > y->tie;
}

bool planner_placeable(const Policy *policy, const Process *process, const Task *task)
{
    if (task->gone || process->gone || process->yielded || task->task_class == TASK_CLASS_DEADLINE)
        return false;
    return task->hands == TASK_HANDS_FREE ||
           (task->hands == TASK_HANDS_FOREIGN &&
            (task->original || (policy && policy->foreign_affinity == POLICY_FOREIGN_OVERRIDE)));
}

bool planner_can_put_back(const Task *task)
{
    return task->hands != TASK_HANDS_UNKNOWN && task->hands != TASK_HANDS_DENIED;
}

void planner_take_back(Planner *p, CpuIx cpu)
{
    p->s->cpus[cpu.i].lease = -1;
    p->s->cpus[cpu.i].cooling = true;
}

uint32_t planner_distance(const Topology *topology, CpuMask nodes, NodeIx node)
{
    uint32_t nearest = 0;

    for (int i = nodes ? hwloc_bitmap_first(nodes) : -1; i >= 0; i = hwloc_bitmap_next(nodes, i)) {
        uint32_t d = topology_distance(topology, (NodeIx){i}, node);

        if (nearest == 0 || d < nearest)
            nearest = d;
    }
    return nearest;
}

/* Whether there is anything the group could ever be lent: its policy lets it steal, and its home leaves usable CPUs out.
 * A group that has all of them is the kernel's business, however long its threads wait. */
static bool may_borrow(const Planner *p, size_t index)
{
    const PlannerGroup *g = &p->s->groups[index];
    WorkloadIx workload = p->world->groups[index].workload;

    return g->home && p->s->workloads[workload.i].policy->steal &&
           (g->apart || !hwloc_bitmap_isincluded(p->s->usable, g->home));
}

static bool any_may_borrow(const Planner *p)
{
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (may_borrow(p, i))
            return true;
    return false;
}

static bool lends(const Planner *p)
{
    if (p->world->n_leases > 0)
        return true;
    for (size_t i = 0; i < p->plan->n_actions; i++)
        if (p->plan->actions[i].kind == PLAN_KIND_LEND)
            return true;
    return false;
}

static bool borrower_waits(const Planner *p)
{
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (p->s->groups[i].max_wait >= PRESSED_WAIT_PERMILLE && may_borrow(p, i))
            return true;
    return false;
}

/* Whether another look at homes can wait: this one found nothing to be done, nor anything that time alone lets be done. */
static bool is_settled(const Planner *p)
{
    static const PlanReason passing[] = {PLAN_REASON_EVIDENCE,  PLAN_REASON_UNSETTLED,
                                         PLAN_REASON_RESIDENCY, PLAN_REASON_TOO_YOUNG,
                                         PLAN_REASON_BUDGET,    PLAN_REASON_RATE_MEMORY};
    const Plan *plan = p->plan;

    for (size_t i = 0; i < ARRAY_SIZE(passing); i++)
        if (plan->n_refused[passing[i]] > 0)
            return false;
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (p->s->groups[i].moves || p->s->groups[i].put_off)
            return false;
    return plan->n_actions == 0 && plan->n_homes == 0 && plan->n_threads == 0 && plan->n_freezes == 0;
}

static uint32_t count_waiting(const Planner *p)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->world->n_groups; i++)
        if (may_borrow(p, i))
            sum += p->s->groups[i].backlog;
    return (uint32_t)MIN(sum / 1000, UINT32_MAX);
}

static void compute(Planner *p)
{
    p->homes = p->limits->slow_tick || choose_early(p);
    home_decide(p);
    release_all(p);
    recall_due(p);
    overload_classify(p);
    steal_gather(p);
    recall_to_idle_homes(p);
    if (p->homes)
        home_set(p);
    steal_lend(p);
    if (p->homes)
        follow_homes(p);
    p->plan->pressed = lends(p) || choose_waits(p);
    p->plan->full = !p->plan->pressed && p->plan->n_idle == 0 && borrower_waits(p);
    p->plan->pressed |= borrower_waits(p);
    p->plan->may_borrow = any_may_borrow(p);
    p->plan->n_waiting = count_waiting(p);
    p->plan->settled = p->homes && (p->plan->full || !p->plan->pressed) && is_settled(p);
}

/* Only looking: all there is to say is who would have been considered. */
static void observe(Planner *p)
{
    overload_classify(p);
    for (size_t i = 0; i < p->world->n_groups; i++)
        if (!p->world->groups[i].gone)
            planner_refuse_group(p, 0, PLAN_REASON_OBSERVE, &p->world->groups[i], 0, 0);
}

/* Empties a plan, but keeps its memory. 0 or -ENOMEM. */
static int begin(Planner *p)
{
    Plan *plan = p->plan;
    const World *world = p->world;

    plan->tick = world->tick;
    plan->now_usec = world->now_usec;
    plan->n_actions = plan->n_refusals = plan->n_passes = plan->n_homes = plan->n_freezes = 0;
    plan->n_threads = 0;
    memset(plan->n_refused, 0, sizeof(plan->n_refused));
    plan->pressed = plan->full = plan->may_borrow = plan->settled = false;
    plan->n_overloaded = plan->n_idle = plan->n_waiting = 0;
    return planner_prepare(p);
}

int plan_compute(World *world, const PolicySet *policies, const PlanLimits *limits, Plan *ret)
{
    Planner p = {.world = world, .policies = policies, .limits = limits, .plan = ret};
    int r = begin(&p);

    if (r < 0)
        return r;
    if (limits->observe)
        observe(&p);
    else
        compute(&p);
    return p.error;
}

int plan_release(World *world, WorkloadIx workload, PlanRule rule, Plan *ret)
{
    Planner p = {.world = world, .plan = ret};
    int r = begin(&p);

    if (r < 0)
        return r;
    release_workload(&p, workload, rule);
    return p.error;
}

int plan_follow_use(World *world, const PolicySet *policies, const PlanLimits *limits, const PlanUse *uses,
                    size_t n, Plan *ret)
{
    Planner p = {.world = world, .policies = policies, .limits = limits, .plan = ret};
    int r = begin(&p);

    if (r < 0)
        return r;
    follow_uses(&p, uses, n);
    return p.error;
}

void plan_done(Plan *plan)
{
    PlanScratch *s = plan->scratch;

    if (s) {
        hwloc_bitmap_free(s->usable);
        hwloc_bitmap_free(s->idle);
        hwloc_bitmap_free(s->set);
        hwloc_bitmap_free(s->nodes);
        free(s->cpus);
        free(s->node_waits);
        free(s->workloads);
        free(s->groups);
        free(s->processes);
        free(s->tasks);
        free(s->units);
        free(s->unit_use);
        free(s->unit_nodes);
        free(s->node_due);
        free(s->candidates);
        free(s->order);
        free(s->donors);
        free(s->pack_groups);
        free(s->pack_sets);
        free(s->node_sums);
        free(s->node_incoming);
        free(s);
    }
    free(plan->actions);
    free(plan->refusals);
    free(plan->passes);
    free(plan->homes);
    free(plan->freezes);
    free(plan->threads);
    *plan = (Plan){0};
}
