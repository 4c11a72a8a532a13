/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks the invariants of a plan against the World it was made for. The checks are written from the invariants, not
 * from the mechanisms, in the plainest way. They share with the mechanisms the definitions of an idle CPU, a placeable
 * thread, a bucket level, pinned memory and memory left to the kernel or going back. */

#include "base/parse.h"
#include "plan/group.h"
#include "plan/memory/follow.h"
#include "plan/planner.h"
#include "plan/scan/gather.h"
#include "world/load.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct Check {
    World *world; /* not const, because look-ups need it so; nothing is changed */
    const PolicySet *policies;
    const PlanLimits *limits;
    const Plan *plan;
    char **ret_what;
} Check;

/* One action and what it concerns. */
typedef struct CheckAction {
    size_t index;
    const PlanAction *a;
    const Policy *policy; /* NULL: none */
    const Process *process;
    const Task *tasks; /* the thread, or all threads of the process */
    size_t n_tasks;
    const Group *group; /* NULL: none */
} CheckAction;

__attribute__((format(printf, 3, 4))) static void broken(const Check *check, const CheckAction *x,
                                                         const char *format, ...)
{
    CLEANUP_FREE char *what = NULL;
    va_list ap;

    if (!check->ret_what)
        return;
    va_start(ap, format);
    what = format_vtext(format, ap);
    va_end(ap);
    if (!what ||
        (x ? asprintf(check->ret_what, "action %zu (%s of %d/%d): %s", x->index, plan_kind_name(x->a->kind),
                      (int)x->a->subject.pid, (int)x->a->subject.tid, what)
           : asprintf(check->ret_what, "%s", what)) < 0)
        *check->ret_what = NULL;
}

#define BROKEN(...) (broken(__VA_ARGS__), -EUCLEAN)

static int find_subject(const Check *check, CheckAction *x)
{
    const PlanAction *a = x->a;

    x->process = world_process(check->world, a->subject.pid);
    if (!x->process || x->process->gone)
        return BROKEN(check, x, "its process does not exist");
    if (a->subject.tid == 0) {
        if (x->process->start_ticks != a->subject.start_ticks)
            return BROKEN(check, x, "its PID now belongs to another process");
        x->tasks = check->world->tasks + world_process_tasks(check->world, x->process, &x->n_tasks);
    } else {
        x->tasks = world_task(check->world, a->subject);
        x->n_tasks = 1;
        if (!x->tasks || x->tasks->gone)
            return BROKEN(check, x, "its thread does not exist");
    }
    x->policy = group_policy(check->world, check->policies, x->process->workload);
    x->group = x->process->group.i >= 0 ? &check->world->groups[x->process->group.i] : NULL;
    return 0;
}

static int check_shape(const Check *check, CheckAction *x)
{
    const PlanAction *a = x->a;

    if (a->kind < 0 || a->kind >= PLAN_KIND_MAX)
        return BROKEN(check, NULL, "the kind of action %zu is out of range", x->index);
    if (x->index > 0 && x->a[-1].kind > a->kind)
        return BROKEN(check, x, "it is out of order");
    if (!plan_rule_decides(a->rule, a->kind))
        return BROKEN(check, x, "rule %s does not fit its kind", plan_rule_name(a->rule));
    if (a->mechanism == 0)
        return BROKEN(check, x, "no mechanism is named");
    if (plan_kind_traits(a->kind)->masks && (!a->from || !a->to || hwloc_bitmap_iszero(a->to)))
        return BROKEN(check, x, "a mask is missing or empty");
    if (plan_kind_traits(a->kind)->names_cpu &&
        (a->subject.tid == 0 || !topology_cpu(check->world->topology, a->cpu)))
        return BROKEN(check, x, "it needs a thread and a CPU");
    return find_subject(check, x);
}

/* I1, I2, I10 */
static int check_hands(const Check *check, const CheckAction *x)
{
    const PlanKindTraits *kind = plan_kind_traits(x->a->kind);
    bool any = false;

    if (!kind->masks)
        return 0;
    if (kind->puts_back) {
        for (size_t i = 0; i < x->n_tasks; i++)
            any |= x->tasks[i].original != NULL;
        return any ? 0 : BROKEN(check, x, "there is nothing to put back");
    }

    if (!x->process->cpuset || !hwloc_bitmap_isincluded(x->a->to, x->process->cpuset))
        return BROKEN(check, x, "I1: its mask is outside the cpuset");
    for (size_t i = 0; i < x->n_tasks; i++) {
        const Task *task = &x->tasks[i];
        bool hit = task->allowed == x->a->from || task->allowed == x->a->to || x->a->subject.tid != 0;

        if (task->gone)
            continue;
        if (planner_placeable(x->policy, x->process, task))
            any |= hit;
        else if (hit || !task->allowed || task->hands == TASK_HANDS_UNKNOWN)
            return BROKEN(check, x, "I2, I10: thread %d must be left alone", (int)task->tid);
    }
    return any ? 0 : BROKEN(check, x, "no thread has the mask it replaces or sets");
}

/* Whether a RECALL or RELEASE earlier in the plan takes the CPU of this lease back. */
static bool is_taken_back(const Check *check, const Lease *lease)
{
    const Task *task = world_task(check->world, lease->task);

    for (size_t i = 0; i < check->plan->n_actions; i++) {
        const PlanAction *a = &check->plan->actions[i];

        if (a->subject.pid != lease->task.pid)
            continue;
        if ((a->kind == PLAN_KIND_RELEASE && task && planner_can_put_back(task)) ||
            (a->kind == PLAN_KIND_RECALL && a->subject.tid == lease->task.tid && a->cpu.i == lease->cpu.i))
            return true;
    }
    return false;
}

static int check_cpu(const Check *check, const CheckAction *x)
{
    const CpuLoad *load = &check->world->cpus[x->a->cpu.i];

    if (!load->online || !load->usable)
        return BROKEN(check, x, "CPU %d is not usable", x->a->cpu.i);
    if (!load_cpu_is_idle(check->world, load))
        return BROKEN(check, x, "CPU %d is not idle", x->a->cpu.i);
    if (load->cooldown_until_usec > check->plan->now_usec)
        return BROKEN(check, x, "I7: CPU %d is cooling down", x->a->cpu.i);
    for (size_t i = 0; i < check->world->n_leases; i++)
        if (check->world->leases[i].cpu.i == x->a->cpu.i)
            return BROKEN(check, x, "CPU %d is lent already", x->a->cpu.i);
    for (size_t i = 0; i < x->index; i++)
        if (plan_kind_traits(check->plan->actions[i].kind)->takes_cpu &&
            check->plan->actions[i].cpu.i == x->a->cpu.i)
            return BROKEN(check, x, "CPU %d is lent twice", x->a->cpu.i);
    return 0;
}

/* I8 */
static int check_lend_distance(const Check *check, const CheckAction *x)
{
    const Topology *t = check->world->topology;
    NodeIx node = topology_cpu(t, x->a->cpu)->node;
    uint32_t n_nodes = 0, nearest = UINT32_MAX, farthest = 0;
    bool apart = x->tasks->home_node.i >= 0 &&
                 hwloc_bitmap_isset(x->group->home_nodes, (unsigned)x->tasks->home_node.i);
    bool cross =
        apart ? node.i != x->tasks->home_node.i : !hwloc_bitmap_isset(x->group->home_nodes, (unsigned)node.i);

    for (uint32_t i = 0; i < t->n_nodes; i++) {
        n_nodes += t->nodes[i].n_cpus > 0;
        if (hwloc_bitmap_isset(x->group->home_nodes, i)) {
            nearest = MIN(nearest, topology_distance(t, (NodeIx){(int32_t)i}, node));
            farthest = MAX(farthest, topology_distance(t, (NodeIx){(int32_t)i}, node));
        }
    }
    if (x->a->cross_node != cross)
        return BROKEN(check, x, "cross_node is wrong");
    if (x->a->distance < nearest || x->a->distance > farthest)
        return BROKEN(check, x, "no home node is at distance %" PRIu32, x->a->distance);
    if (cross && n_nodes > x->policy->node_limit)
        return BROKEN(check, x, "I8: %" PRIu32 " nodes, NodeLimit %" PRIu32, n_nodes, x->policy->node_limit);
    if (cross && x->a->distance > x->policy->max_distance)
        return BROKEN(check, x, "I8: distance %" PRIu32 ", MaxDistance %" PRIu32, x->a->distance,
                      x->policy->max_distance);
    if (cross && x->policy->scope != POLICY_SCOPE_MACHINE)
        return BROKEN(check, x, "it is beyond Scope=");
    return 0;
}

/* I7, and the shape of a lend. */
static int check_lend(const Check *check, const CheckAction *x)
{
    const Task *task = x->tasks;
    uint64_t now = check->plan->now_usec;
    int weight;

    if (!x->group || !x->group->home || x->a->group_id != x->group->id)
        return BROKEN(check, x, "its group has no home");
    if (!x->policy || !x->policy->steal)
        return BROKEN(check, x, "its policy says Steal=no");
    if (task->lease >= 0)
        return BROKEN(check, x, "the thread has a CPU already");
    if (!task->original || task->allowed != x->a->from)
        return BROKEN(check, x, "the thread does not have the mask that we set");
    weight = hwloc_bitmap_weight(x->a->from);
    if (hwloc_bitmap_isset(x->a->from, (unsigned)x->a->cpu.i) ||
        !hwloc_bitmap_isset(x->a->to, (unsigned)x->a->cpu.i) ||
        !hwloc_bitmap_isincluded(x->a->from, x->a->to) || hwloc_bitmap_weight(x->a->to) != weight + 1)
        return BROKEN(check, x, "it must add exactly CPU %d", x->a->cpu.i);
    if (task->last_move_usec > 0 && now - task->last_move_usec < x->policy->min_residency_usec)
        return BROKEN(check, x, "I7: moved %" PRIu64 " usec ago", now - task->last_move_usec);
    for (size_t i = 0; i < x->index; i++)
        if (check->plan->actions[i].subject.pid == x->a->subject.pid &&
            check->plan->actions[i].subject.tid == x->a->subject.tid)
            return BROKEN(check, x, "I7: the thread is in this plan twice");
    if (task->wait_permille < x->policy->wait_permille ||
        task->wait_before_permille < x->policy->wait_permille)
        return BROKEN(check, x, "the thread does not wait");
    for (int cpu = hwloc_bitmap_first(x->a->from); cpu >= 0; cpu = hwloc_bitmap_next(x->a->from, cpu)) {
        bool lent = false;

        for (size_t i = 0; i < check->world->n_leases; i++)
            lent |= check->world->leases[i].cpu.i == cpu && !is_taken_back(check, &check->world->leases[i]);
        if (!lent && load_cpu_is_idle(check->world, &check->world->cpus[cpu]))
            return BROKEN(check, x, "CPU %d of its home is idle", cpu);
    }
    return 0;
}

/* I7, I10, and the shape of a push. */
static int check_push(const Check *check, const CheckAction *x)
{
    const TopologyCpu *from = topology_cpu(check->world->topology, x->a->from_cpu),
                      *to = topology_cpu(check->world->topology, x->a->cpu);
    const Task *task = x->tasks;
    uint64_t now = check->plan->now_usec;

    if (!x->group || !x->group->home || x->a->group_id != x->group->id)
        return BROKEN(check, x, "its group has no home");
    if (!x->policy || !x->policy->steal)
        return BROKEN(check, x, "its policy says Steal=no");
    if (!task->original || task->lease >= 0 || task->allowed != x->a->from || x->a->from != x->a->to)
        return BROKEN(check, x, "the thread does not have the mask of its home");
    if (!hwloc_bitmap_isset(x->a->to, (unsigned)x->a->cpu.i))
        return BROKEN(check, x, "CPU %d is not in its home", x->a->cpu.i);
    if (!from || task->last_cpu.i != x->a->from_cpu.i)
        return BROKEN(check, x, "it runs on another CPU");
    if (!x->a->cross_node || from->node.i == to->node.i ||
        x->a->distance != topology_distance(check->world->topology, from->node, to->node))
        return BROKEN(check, x, "it is not a push to another node");
    if (check->world->partial)
        return BROKEN(check, x, "I10: the World is partial");
    if (MIN(task->run_permille, task->run_before_permille) < LOAD_FULL_PERMILLE * 9 / 10)
        return BROKEN(check, x, "the thread does not run steadily");
    for (uint32_t i = 0; i < check->world->topology->cpu_limit; i++)
        if (check->world->topology->cpus[i].present && check->world->cpus[i].online &&
            check->world->topology->cpus[i].core.i == to->core.i &&
            !load_cpu_is_idle(check->world, &check->world->cpus[i]))
            return BROKEN(check, x, "CPU %" PRIu32 " of the core is not idle", i);
    for (size_t i = 0; i < x->index; i++)
        if (check->plan->actions[i].kind == PLAN_KIND_PUSH &&
            check->plan->actions[i].subject.tid == x->a->subject.tid)
            return BROKEN(check, x, "I7: the thread is in this plan twice");
    if (task->last_move_usec > 0 && now - task->last_move_usec < x->policy->min_residency_usec)
        return BROKEN(check, x, "I7: moved %" PRIu64 " usec ago", now - task->last_move_usec);
    return 0;
}

static int check_recall(const Check *check, const CheckAction *x)
{
    const Task *task = x->tasks;
    const Lease *lease;
    uint64_t now = check->plan->now_usec;

    if (task->lease < 0)
        return BROKEN(check, x, "the thread has no CPU to take back");
    lease = &check->world->leases[task->lease];
    if (lease->cpu.i != x->a->cpu.i)
        return BROKEN(check, x, "the thread was lent CPU %d", lease->cpu.i);
    if (task->allowed != x->a->from)
        return BROKEN(check, x, "the thread has another mask");
    if (x->a->rule != PLAN_RULE_HOME_CHANGED && hwloc_bitmap_isset(x->a->to, (unsigned)lease->cpu.i))
        return BROKEN(check, x, "the thread would keep the CPU");
    if (x->a->rule == PLAN_RULE_LEASE_ENDED && now < lease->until_usec)
        return BROKEN(check, x, "the lease has not ended");
    if (x->a->rule == PLAN_RULE_DEMAND_FELL &&
        task->run_permille + task->wait_permille >= LOAD_IDLE_PERMILLE &&
        now - task->last_move_usec < x->policy->min_residency_usec)
        return BROKEN(check, x, "I7: moved %" PRIu64 " usec ago", now - task->last_move_usec);
    return 0;
}

/* The home of a group once this plan is carried out. */
static CpuMask home_after(const Check *check, const Group *group)
{
    for (size_t i = 0; i < check->plan->n_homes; i++)
        if (check->plan->homes[i].group_id == group->id)
            return check->plan->homes[i].home_nodes;
    return group->home_nodes;
}

static bool roams_after(const Check *check, const Group *group)
{
    for (size_t i = 0; i < check->plan->n_homes; i++)
        if (check->plan->homes[i].group_id == group->id)
            return !check->plan->homes[i].home;
    return group->roams;
}

/* I6: homes are exchanged, not threads, so each thread goes where its group goes. */
static int check_home(const Check *check, const CheckAction *x)
{
    CpuMask home = x->group ? home_after(check, x->group) : NULL;
    hwloc_bitmap_t cpus;
    bool inside;

    if (!x->policy || x->policy->mode == POLICY_MODE_NONE || !x->a->home_nodes ||
        hwloc_bitmap_iszero(x->a->home_nodes))
        return BROKEN(check, x, "no policy gives it a home");
    if (!x->a->original)
        return BROKEN(check, x, "the mask to put back is missing");
    if (!home || !hwloc_bitmap_isequal(home, x->a->home_nodes))
        return BROKEN(check, x, "I6: its home is not that of its group");
    if (x->process->yielded)
        return BROKEN(check, x, "the process was yielded");

    cpus = hwloc_bitmap_alloc();
    if (!cpus || topology_nodes_to_cpus(check->world->topology, x->a->home_nodes, cpus) < 0) {
        hwloc_bitmap_free(cpus);
        return -ENOMEM;
    }
    inside = hwloc_bitmap_isincluded(x->a->to, cpus);
    hwloc_bitmap_free(cpus);
    return inside ? 0 : BROKEN(check, x, "the mask is not inside the home's nodes");
}

/* Memory must move to its home. Interleaving may also move it between nodes of the home, or over all nodes if the
 * group roams. Memory that goes back moves to where it lay. Memory of pinned threads moves to their nodes. */
static bool goes_home(const Check *check, const CheckAction *x)
{
    const PlanMemory *memory = &x->a->memory;
    bool striped = x->a->rule == PLAN_RULE_INTERLEAVE || x->a->rule == PLAN_RULE_EVEN_OUT;
    CpuMask home = x->group ? home_after(check, x->group) : NULL;

    if (x->a->rule == PLAN_RULE_GO_BACK)
        return memory->from && memory->stripe && memory->to == x->process->gather.nodes &&
               (!home || hwloc_bitmap_intersects(home, memory->to)) &&
               gather_is_undone(check->world, x->policy, x->process);
    if (!memory->to || !memory->from || hwloc_bitmap_iszero(memory->to) || memory->stripe != striped)
        return false;
    if (striped &&
        (hwloc_bitmap_weight(memory->to) < 2 ||
         x->policy->mode != (x->a->rule == PLAN_RULE_INTERLEAVE ? POLICY_MODE_INTERLEAVE : POLICY_MODE_AUTO)))
        return false;
    if (x->a->rule == PLAN_RULE_FOLLOW_PIN)
        return !home && follow_is_pinned(check->world, x->process) &&
               follow_is_pinned_to(check->world, x->process, memory->to);
    if (!home)
        return striped && x->group && roams_after(check, x->group);
    return hwloc_bitmap_isincluded(memory->to, home) &&
           (striped || !hwloc_bitmap_intersects(memory->from, home));
}

static bool are_sent(const PlanMemory *memory)
{
    bool sent = memory->n_ranges > 0;

    for (size_t i = 0; i < memory->n_ranges && sent; i++)
        sent = memory->stripe ? memory->ranges[i].to.i < 0
                              : memory->ranges[i].to.i >= 0 &&
                                    hwloc_bitmap_isset(memory->to, (unsigned)memory->ranges[i].to.i);
    return sent;
}

/* Each range goes to a node of the home, or to any node if there is no home; or all are interleaved over several. */
static bool goes_to_users(const Check *check, const CheckAction *x)
{
    const PlanMemory *memory = &x->a->memory;
    CpuMask home = x->group ? home_after(check, x->group) : NULL;

    return memory->to && memory->from && !hwloc_bitmap_iszero(memory->to) && are_sent(memory) &&
           (!home || hwloc_bitmap_isincluded(memory->to, home)) &&
           (!memory->stripe || hwloc_bitmap_weight(memory->to) > 1);
}

/* I7, I10, and the shape of a migration request. */
static int check_move(const Check *check, const CheckAction *x)
{
    bool by_use = x->a->rule == PLAN_RULE_FOLLOW_USE;

    if (x->a->subject.tid != 0 || x->a->from || x->a->to)
        return BROKEN(check, x, "a memory action names a process and no CPU masks");
    if (!x->policy || !x->policy->follow)
        return BROKEN(check, x, "its policy says Follow=no");
    if (x->policy->act == POLICY_ACT_OBSERVE && !check->limits->would)
        return BROKEN(check, x, "I11: its policy only observes");
    if (by_use ? !goes_to_users(check, x) : !goes_home(check, x))
        return BROKEN(check, x, "its memory would not move to its home");
    if (x->process->yielded)
        return BROKEN(check, x, "the process was yielded");
    if (!by_use && (!x->process->node_bytes || x->process->node_bytes_usec <= x->process->memory.over_usec))
        return BROKEN(check, x, "I10: the residency of its memory is unknown");
    if (x->a->memory.help && !hwloc_bitmap_isincluded(x->a->memory.help, x->a->memory.from))
        return BROKEN(check, x, "it names helping nodes that hold none of the memory");
    if (x->process->memory.to)
        return BROKEN(check, x, "I7: its memory is already being moved");
    if (check->plan->now_usec < x->process->memory.until_usec)
        return BROKEN(check, x, "I7: its memory was moved a short time ago");
    if (!by_use && follow_is_kernels(check->world, x->policy, x->process, x->a->memory.to))
        return BROKEN(check, x, "the kernel moves it to several nodes itself");
    for (size_t i = 0; i < x->index; i++)
        if (check->plan->actions[i].kind == PLAN_KIND_MOVE_PAGES &&
            check->plan->actions[i].subject.pid == x->a->subject.pid)
            return BROKEN(check, x, "I7: it is in this plan twice");
    return 0;
}

/* I5, as far as a plan can ensure it: the mover checks again before each call. */
static int check_move_room(const Check *check, const CheckAction *x)
{
    const World *w = check->world;
    const PlanMemory *memory = &x->a->memory;
    bool room = false;

    if (memory->headroom_percent != x->policy->headroom_percent ||
        memory->rate_bytes != x->policy->rate_limit_bytes)
        return BROKEN(check, x, "I5: its limits are not those of its policy");
    for (int i = hwloc_bitmap_first(memory->to); i >= 0; i = hwloc_bitmap_next(memory->to, i))
        room |= w->nodes[i].free_known &&
                w->nodes[i].free_bytes > w->topology->nodes[i].memory_bytes / 100 * memory->headroom_percent;
    if (!room)
        return BROKEN(check, x, "I5: no target node has room");
    for (size_t i = 0; i < w->n_processes && memory->rate_bytes > 0; i++)
        if (w->processes[i].workload.i == x->a->workload.i && w->processes[i].memory.to &&
            !w->processes[i].gone && hwloc_bitmap_intersects(w->processes[i].memory.to, memory->to))
            return BROKEN(check, x, "I5: process %d already uses the rate limit", (int)w->processes[i].pid);
    return 0;
}

typedef int Invariant(const Check *check, const CheckAction *x);

/* What holds for one kind only. */
static Invariant *const invariants[PLAN_KIND_MAX][2] = {
    [PLAN_KIND_RECALL] = {check_recall},
    [PLAN_KIND_SET_HOME] = {check_home},
    [PLAN_KIND_LEND] = {check_lend, check_lend_distance},
    [PLAN_KIND_PUSH] = {check_push},
    [PLAN_KIND_MOVE_PAGES] = {check_move, check_move_room},
};

static int check_action(const Check *check, size_t index)
{
    CheckAction x = {.index = index, .a = &check->plan->actions[index]};
    int r = check_shape(check, &x);

    if (r == 0)
        r = check_hands(check, &x);
    if (r < 0)
        return r;
    if (plan_kind_traits(x.a->kind)->spends && x.process->workload.i >= 0 &&
        check->world->workloads[x.process->workload.i].paused)
        return BROKEN(check, &x, "its workload is paused");
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(invariants[0]) && invariants[x.a->kind][i]; i++)
        r = invariants[x.a->kind][i](check, &x);
    return r == 0 && plan_kind_traits(x.a->kind)->takes_cpu ? check_cpu(check, &x) : r;
}

/* I4: the buckets have the tokens that the plan takes. */
static int check_caps(const Check *check)
{
    const World *w = check->world;
    uint64_t host = cap_level(&w->cross_node, check->limits->cross_node_moves_per_sec,
                              check->limits->cross_node_burst, check->plan->now_usec);
    size_t n_host = 0;

    for (size_t k = 0; k < w->n_workloads; k++) {
        const Policy *policy = group_policy(w, check->policies, (WorkloadIx){(int32_t)k});
        size_t n = 0;

        for (size_t i = 0; i < check->plan->n_actions; i++)
            n += plan_kind_traits(check->plan->actions[i].kind)->takes_cpu &&
                 check->plan->actions[i].cross_node && check->plan->actions[i].workload.i == (int32_t)k;
        n_host += n;
        if (n > 0 && policy &&
            n * 1000 > cap_level(&w->workloads[k].cross_node, policy->cross_node_moves_per_sec,
                                 policy->cross_node_burst, check->plan->now_usec))
            return BROKEN(check, NULL, "I4: %zu moves across nodes by %s", n, w->workloads[k].name);
    }
    return n_host * 1000 > host ? BROKEN(check, NULL, "I4: %zu moves across nodes", n_host) : 0;
}

/* I6: a group has one home, so nothing is exchanged inside it. */
static int check_homes(const Check *check)
{
    for (size_t i = 0; i < check->plan->n_homes; i++) {
        uint64_t id = check->plan->homes[i].group_id;

        if (!world_group_by_id(check->world, id))
            return BROKEN(check, NULL, "a home for group %" PRIu64 ", which does not exist", id);
        for (size_t k = 0; k < i; k++)
            if (check->plan->homes[k].group_id == id)
                return BROKEN(check, NULL, "I6: two homes for group %" PRIu64, id);
    }
    return 0;
}

int plan_check(const World *world, const PolicySet *policies, const PlanLimits *limits, const Plan *plan,
               char **ret_what)
{
    const Check check = {
        .world = (World *)(uintptr_t)world, /* NOLINT: only read, see above */
        .policies = policies,
        .limits = limits,
        .plan = plan,
        .ret_what = ret_what,
    };
    size_t n_spent = 0;
    int r;

    if (plan->tick != world->tick || plan->now_usec != world->now_usec)
        return BROKEN(&check, NULL, "the plan was made at another time");
    if (limits->observe && plan->n_actions > 0)
        return BROKEN(&check, NULL, "I11: an action while only observing");
    for (size_t i = 0; i < plan->n_actions; i++) {
        r = check_action(&check, i);
        if (r < 0)
            return r;
        n_spent += plan_kind_traits(plan->actions[i].kind)->spends;
    }
    if (n_spent > PLAN_ACTIONS_PER_TICK)
        return BROKEN(&check, NULL, "P7: %zu actions in one tick", n_spent);
    r = check_homes(&check);
    return r < 0 ? r : check_caps(&check);
}
