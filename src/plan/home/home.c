/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes: groups are confined to the nodes their policy names (Mode=fixed, Nodes=), or to those that choose.c finds for
 * them (P15). The reason is Sistare's finding that roaming groups pull each other across nodes (P3).
 *
 * A home is the CPUs of whole nodes. A thread is due its home cut by the cpuset of its process (I1) and by the CPUs
 * usable now, so a home shrinks and grows as CPUs go and come. Masks follow on slow ticks, because a home is meant to
 * last. Only a new member is sent home at once, before it touches more memory.
 *
 * One action confines all threads of a process that have the same mask, including threads created since the last
 * reading. Threads that must be left alone are told apart by their mask. If one cannot be told apart (its mask is the
 * one to replace, the one to give, or unknown), each of the other threads gets its own action. Threads created with a
 * mask of ours get an action although their mask is already right: only what is in the journal can be put back. */

#include "plan/choose/choose.h"
#include "plan/group.h"
#include "plan/memory/follow-internal.h"

#define MECHANISM_FIXED  3  /* P3 */
#define MECHANISM_GUARDS 7  /* P7 */
#define MECHANISM_PACK   15 /* P15 */
#define MECHANISM_FREEZE 16 /* P16 */

/* A thread that ran and waited less than this did not work in a tick. */
#define WORK_PERMILLE 50U

/* For this many times MinAgeSec=, ten seconds by default, a program that works with one thread where it
 * belongs may be about to start others: reading and touching its memory first mostly takes no longer. */
#define SERIAL_AGES 10U

/* Different masks of one process that one tick handles; more wait for the next. */
#define FROM_MAX 8U

static PlanReason workload_blocked(const Planner *p, const Policy *policy)
{
    if (!policy)
        return PLAN_REASON_NO_POLICY;
    if (policy->mode == POLICY_MODE_NONE)
        return PLAN_REASON_MODE_NONE;
    if (policy->act == POLICY_ACT_OBSERVE && !p->limits->would)
        return PLAN_REASON_OBSERVE;
    return policy->nodes || policy_chooses_nodes(policy) ? PLAN_REASON_INVALID : PLAN_REASON_NO_HOME;
}

static uint8_t mechanism_of(const Policy *policy)
{
    return policy && policy_chooses_nodes(policy) ? MECHANISM_PACK : MECHANISM_FIXED;
}

/* The home that is the nodes in PlanScratch.nodes; NULL for none. */
static void take_nodes(Planner *p, CpuMask *ret_home, CpuMask *ret_home_nodes)
{
    planner_note(p, topology_nodes_to_cpus(p->world->topology, p->s->nodes, p->s->set));
    *ret_home_nodes = planner_intern(p, p->s->nodes);
    *ret_home = planner_intern(p, p->s->set);
}

/* The nodes of Nodes=, without those that do not exist or have no CPUs. */
static void take_named(Planner *p, PlannerWorkload *w)
{
    const Topology *topology = p->world->topology;

    hwloc_bitmap_zero(p->s->nodes);
    for (uint32_t i = 0; w->policy->nodes && i < topology->n_nodes; i++)
        if (topology->nodes[i].n_cpus > 0 &&
            hwloc_bitmap_isset(w->policy->nodes, topology->nodes[i].os_index))
            planner_note(p, hwloc_bitmap_set(p->s->nodes, i));
    take_nodes(p, &w->home, &w->home_nodes);
}

static void decide_workload(Planner *p, size_t index)
{
    PlannerWorkload *w = &p->s->workloads[index];

    w->policy = group_policy(p->world, p->policies, (WorkloadIx){(int32_t)index});
    w->blocked = workload_blocked(p, w->policy);
    if (w->blocked == PLAN_REASON_INVALID && p->homes && !policy_chooses_nodes(w->policy))
        take_named(p, w);
}

static void take_chosen(Planner *p, PlannerGroup *g)
{
    g->home = g->home_nodes = NULL;
    if (g->roams || g->chosen == 0)
        return;
    hwloc_bitmap_zero(p->s->nodes);
    for (uint32_t i = 0; i < p->world->topology->n_nodes; i++)
        if ((g->chosen >> i & 1) != 0)
            planner_note(p, hwloc_bitmap_set(p->s->nodes, i));
    take_nodes(p, &g->home, &g->home_nodes);
}

static PlanRule home_rule(const Group *group, const PlannerGroup *g, const PlannerWorkload *w)
{
    int before = group->home_nodes ? hwloc_bitmap_weight(group->home_nodes) : 0;
    int after = g->home_nodes ? hwloc_bitmap_weight(g->home_nodes) : 0;

    if (!policy_chooses_nodes(w->policy))
        return PLAN_RULE_FIXED_HOME;
    if (g->reverts)
        return PLAN_RULE_REVERT;
    if (!group->home)
        return group->roams ? PLAN_RULE_COMPRESS : PLAN_RULE_FIRST_HOME;
    return after < before ? PLAN_RULE_COMPRESS : after > before ? PLAN_RULE_SPREAD : PLAN_RULE_REHOME;
}

/* Whether a group that needs all nodes is not confined. It is confined if some of its threads are to have a node each.
 * What is known of them comes and goes, and is no reason for a change while the group must stay. */
static bool roams_in_all(const Planner *p, const Group *group, const PlannerGroup *g)
{
    bool known = thread_homes_known(p, (size_t)(group - p->world->groups));

    if (known)
        return group->roams && p->world->now_usec < group->frozen_until_usec;
    return !g->keeps_all;
}

/* A paused group keeps its home, and so does any group between slow ticks. */
static void decide_home(Planner *p, const Group *group, PlannerGroup *g, const PlannerWorkload *w,
                        bool decides)
{
    g->home = group->home;
    g->home_nodes = group->home_nodes;
    g->roams = group->roams && policy_chooses_nodes(w->policy);
    if (decides && g->packed) {
        g->roams = g->chosen_all && roams_in_all(p, group, g);
        take_chosen(p, g);
    } else if (decides && !policy_chooses_nodes(w->policy)) {
        g->home = w->home;
        g->home_nodes = w->home_nodes;
    }
    g->rule = home_rule(group, g, w);
}

/* Says why the group gets no home, if it wants too little or is too young. */
static void refuse_unwanted(Planner *p, const Group *group, const PlannerGroup *g, const Policy *policy)
{
    uint64_t now = p->world->now_usec;

    if (g->idle)
        planner_refuse_group(p, MECHANISM_PACK, PLAN_REASON_IDLE, group,
                             demand_of_group(p, (size_t)(group - p->world->groups)), CHOOSE_IDLE_PERMILLE);
    else if (g->young)
        planner_refuse_group(p, MECHANISM_PACK, PLAN_REASON_TOO_YOUNG, group,
                             now - MIN(group->first_seen_usec, now), policy->min_age_usec);
}

static void decide_group(Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];
    PlannerGroup *g = &p->s->groups[index];
    const PlannerWorkload *w = &p->s->workloads[group->workload.i];
    bool paused, decides;

    g->blocked = group->gone ? PLAN_REASON_NO_POLICY : w->blocked;
    if (group->gone)
        return;
    if (g->blocked != PLAN_REASON_INVALID) {
        planner_refuse_group(p, mechanism_of(w->policy), g->blocked, group, 0, 0);
        return;
    }

    paused = p->world->workloads[group->workload.i].paused;
    decides = p->homes && !paused && !p->world->partial;
    decide_home(p, group, g, w, decides);
    if (paused)
        planner_refuse_group(p, mechanism_of(w->policy), PLAN_REASON_PAUSED, group, 0, 0);
    else if (g->roams)
        planner_refuse_group(p, MECHANISM_PACK, PLAN_REASON_NO_HOME, group, group->want_permille, 0);
    else if (g->idle || g->young)
        refuse_unwanted(p, group, g, w->policy);
    else if (g->put_off && (g->put_off_for == PLAN_REASON_ALL_BUSY || g->awaits_use))
        planner_refuse_group(p, MECHANISM_PACK, g->put_off_for, group, 0, 0);

    if (g->roams || g->idle || g->young || g->put_off ||
        (policy_chooses_nodes(w->policy) && g->n_placeable == 0 && (!g->home || g->bound)))
        return;
    if (decides && policy_chooses_nodes(w->policy) && !g->packed) {
        planner_refuse_group(p, MECHANISM_PACK, PLAN_REASON_BUDGET, group, CHOOSE_GROUPS_MAX,
                             CHOOSE_GROUPS_MAX);
        return;
    }
    if (g->home ? !p->world->partial && !hwloc_bitmap_intersects(g->home, p->s->usable) : decides) {
        g->blocked = PLAN_REASON_NO_CPUS;
        g->home = g->home_nodes = NULL;
        planner_refuse_group(p, mechanism_of(w->policy), PLAN_REASON_NO_CPUS, group, 0, 0);
    }
}

/* Processes of a group mostly have the same cpuset, so the last answer is kept. */
static CpuMask due_mask(Planner *p, PlannerGroup *g, CpuMask cpuset)
{
    if (!g->home || !cpuset)
        return NULL;
    if (g->due_cpuset != cpuset) {
        planner_note(p, hwloc_bitmap_and(p->s->set, g->home, cpuset));
        planner_note(p, hwloc_bitmap_and(p->s->set, p->s->set, p->s->usable));
        g->due_cpuset = cpuset;
        g->due = planner_intern(p, p->s->set);
    }
    return g->due;
}

static CpuMask node_mask(Planner *p, CpuMask due, NodeIx node)
{
    PlanScratch *s = p->s;

    if (s->node_due_of != due) {
        for (uint32_t i = 0; i < p->world->topology->n_nodes; i++)
            s->node_due[i] = NULL;
        s->node_due_of = due;
    }
    if (!s->node_due[node.i]) {
        planner_note(p, hwloc_bitmap_and(s->set, due, p->world->topology->nodes[node.i].cpus));
        s->node_due[node.i] = hwloc_bitmap_iszero(s->set) ? due : planner_intern(p, s->set);
    }
    return s->node_due[node.i];
}

/* Each thread is due the mask of its process, or its own node's part of that. */
static void due_threads(Planner *p)
{
    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        PlannerTask *t = &p->s->tasks[i];
        CpuMask due = p->s->processes[task->process.i].due;

        t->due = due && t->home_node.i >= 0 ? node_mask(p, due, t->home_node) : due;
        t->apart = t->due != due;
        if (t->apart && p->world->processes[task->process.i].group.i >= 0)
            p->s->groups[p->world->processes[task->process.i].group.i].apart = true;
    }
}

void home_decide(Planner *p)
{
    for (size_t i = 0; i < p->world->n_workloads; i++)
        decide_workload(p, i);
    if (p->homes && !p->world->partial)
        planner_note(p, choose_homes(p));
    for (size_t i = 0; i < p->world->n_groups; i++)
        decide_group(p, i);
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];

        if (!process->gone && process->group.i >= 0)
            p->s->processes[i].due = due_mask(p, &p->s->groups[process->group.i], process->cpuset);
    }
    if (p->homes && !p->world->partial)
        planner_note(p, thread_homes_decide(p));
    due_threads(p);
    for (size_t i = 0; i < p->world->n_tasks; i++)
        if (!p->world->tasks[i].gone && p->world->tasks[i].original)
            p->s->processes[p->world->tasks[i].process.i].ours = true;
}

/* Confining */

/* Also for a thread born with the right mask (see above). */
static bool needs_home(const Process *process, const Task *task, CpuMask due)
{
    return task->lease < 0 && (task->allowed != due || (!task->original && due != process->cpuset));
}

/* Its current mask. For a thread born with the right mask: the mask it would have had without us. */
static CpuMask mask_from(const Process *process, const Task *task, CpuMask due)
{
    return task->allowed != due ? task->allowed : process->cpuset;
}

/* The mask to put back one day, for threads of which it is not known: their current mask, if that is all they may use
 * or somebody's choice. Otherwise they were born with a mask of ours, and without us it would be the cpuset. */
static CpuMask mask_original(Planner *p, const Process *process, const Task *task, CpuMask from)
{
    if (task && task->hands == TASK_HANDS_FOREIGN)
        return from;
    planner_note(p, hwloc_bitmap_and(p->s->set, process->cpuset, p->s->usable));
    return hwloc_bitmap_isincluded(p->s->set, from) ? from : process->cpuset;
}

/* Whether an action for all threads with the mask `from` would reach this one, which must be left alone. */
static bool would_be_hit(const Task *task, CpuMask from, CpuMask due)
{
    return !task->allowed || task->allowed == from || task->allowed == due ||
           task->hands == TASK_HANDS_UNKNOWN;
}

/* Whether a thread of the process that an action for this mask reaches has had a mask of ours. */
static bool moves_again(const Planner *p, const Process *process, CpuMask from)
{
    size_t n, first = world_process_tasks(p->world, process, &n);

    for (size_t i = first; i < first + n; i++)
        if (!p->world->tasks[i].gone && p->world->tasks[i].original && p->world->tasks[i].allowed == from)
            return true;
    return false;
}

static bool emit_home(Planner *p, const Process *process, const Task *task, CpuMask from, CpuMask due)
{
    const Group *group = &p->world->groups[process->group.i];
    const PlannerGroup *g = &p->s->groups[process->group.i];
    bool apart = task && p->s->tasks[task - p->world->tasks].apart;
    bool again = task ? task->original != NULL : moves_again(p, process, from);
    PlanRule rule = apart                    ? PLAN_RULE_OWN_NODE
                    : group->home != g->home ? g->rule
                    : again                  ? PLAN_RULE_HOME_CHANGED
                                             : PLAN_RULE_NEW_MEMBER;

    return planner_act(p, &(PlanAction){
                              .kind = PLAN_KIND_SET_HOME,
                              .rule = rule,
                              .mechanism = apart ? MECHANISM_CONVERGE
                                                 : mechanism_of(p->s->workloads[process->workload.i].policy),
                              .subject = task ? world_task_key(p->world, task) : planner_process_key(process),
                              .workload = process->workload,
                              .group_id = group->id,
                              .from = from,
                              .to = due,
                              .original = mask_original(p, process, task, from),
                              .home_nodes = g->home_nodes,
                              .cpu = CPU_NONE,
                              .value = (uint32_t)hwloc_bitmap_weight(due),
                              .limit = (uint32_t)hwloc_bitmap_weight(process->cpuset),
                          });
}

typedef struct HomeNeed {
    CpuMask from[FROM_MAX];
    size_t n_from;
    bool apart; /* one action per thread */
} HomeNeed;

static void need_add(HomeNeed *need, CpuMask from)
{
    for (size_t i = 0; i < need->n_from; i++)
        if (need->from[i] == from)
            return;
    if (need->n_from < FROM_MAX)
        need->from[need->n_from++] = from;
}

static void collect_needs(const Planner *p, const Process *process, const Policy *policy, const Task *tasks,
                          size_t n, CpuMask due, HomeNeed *need)
{
    const PlannerTask *planned = &p->s->tasks[tasks - p->world->tasks];

    for (size_t i = 0; i < n; i++) {
        need->apart |= planned[i].apart && !tasks[i].gone;
        if (planner_placeable(policy, process, &tasks[i]) && needs_home(process, &tasks[i], planned[i].due)) {
            need_add(need, mask_from(process, &tasks[i], planned[i].due));
            need->apart |= tasks[i].hands == TASK_HANDS_FOREIGN;
        }
    }
    for (size_t i = 0; i < n && !need->apart; i++)
        for (size_t k = 0; k < need->n_from; k++)
            if (!tasks[i].gone && !planner_placeable(policy, process, &tasks[i]) &&
                would_be_hit(&tasks[i], need->from[k], due))
                need->apart = true;
}

static void refuse_process(Planner *p, PlanReason reason, const Process *process, uint64_t value,
                           uint64_t limit)
{
    planner_refuse_process(p, mechanism_of(p->s->workloads[process->workload.i].policy), reason, process,
                           value, limit);
}

static void home_threads(Planner *p, const Process *process, const Policy *policy, const Task *tasks,
                         size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CpuMask due = p->s->tasks[&tasks[i] - p->world->tasks].due;

        if (!planner_placeable(policy, process, &tasks[i]) || !needs_home(process, &tasks[i], due))
            continue;
        if (!planner_has_budget(p)) {
            refuse_process(p, PLAN_REASON_BUDGET, process, p->n_spent, PLAN_ACTIONS_PER_TICK);
            return;
        }
        if (!emit_home(p, process, &tasks[i], mask_from(process, &tasks[i], due), due))
            return;
    }
}

/* The age below which a process needs no home yet, if it is all of its group, and its one working thread is
 * beside all of its memory and hardly waits. Longer if it already runs in the home. 0 for other processes. */
static uint64_t age_in_place(const Planner *p, const Policy *policy, const Process *process,
                             const Task *tasks, size_t n, CpuMask due)
{
    const TopologyCpu *cpu = NULL;
    uint64_t outside = 0;
    size_t n_at_work = 0;
    bool here = true;

    for (size_t i = 0; i < n; i++) {
        if (tasks[i].gone || tasks[i].run_permille + tasks[i].wait_permille < WORK_PERMILLE)
            continue;
        cpu = topology_cpu(p->world->topology, tasks[i].last_cpu);
        if (!cpu || tasks[i].wait_permille >= CHOOSE_WAITS_PERMILLE || n_at_work++ > 0)
            return 0;
        here = hwloc_bitmap_isset(due, (unsigned)tasks[i].last_cpu.i);
    }
    for (uint32_t i = 0; process->node_bytes && i < p->world->topology->n_nodes; i++)
        outside += cpu && cpu->node.i == (int32_t)i ? 0 : process->node_bytes[i];
    if (!process->node_bytes || outside >= FOLLOW_FEW_BYTES ||
        p->world->groups[process->group.i].n_tasks != n || !rule_holds(p->world, ABLATION_IN_PLACE))
        return 0;
    return policy->min_age_usec * (here ? SERIAL_AGES : 1);
}

/* The age a process must have to get its home. A home of Mode=fixed waits for MinAgeSec=, unless somebody
 * assigned the process. A chosen home does not wait, because memory is first touched early (P4); only the
 * choice of another home does. But a first home waits if the process is in place: it may be setting itself
 * up, for threads that the kernel will spread over all CPUs if allowed. */
static uint64_t age_for_home(const Planner *p, const Policy *policy, const Process *process,
                             const Task *tasks, size_t n, CpuMask due)
{
    const Group *group = &p->world->groups[process->group.i];

    if (!policy_chooses_nodes(policy))
        return process->assigned ? 0 : policy->min_age_usec;
    return group->home || group->roams ? 0 : age_in_place(p, policy, process, tasks, n, due);
}

/* Returns whether the process is at home or on its way. */
static bool home_process(Planner *p, const Process *process, CpuMask due)
{
    const Policy *policy = p->s->workloads[process->workload.i].policy;
    uint64_t age = world_since(p->world, process->started_usec);
    uint64_t limit;
    HomeNeed need = {0};
    const Task *tasks;
    size_t n;

    tasks = &p->world->tasks[world_process_tasks(p->world, process, &n)];
    collect_needs(p, process, policy, tasks, n, due, &need);
    if (need.n_from == 0)
        return true;
    limit = age_for_home(p, policy, process, tasks, n, due);
    if (age < limit) {
        refuse_process(p, PLAN_REASON_TOO_YOUNG, process, age, limit);
        return false;
    }
    if (need.apart) {
        home_threads(p, process, policy, tasks, n);
        return true;
    }
    for (size_t i = 0; i < need.n_from; i++) {
        if (!planner_has_budget(p)) {
            refuse_process(p, PLAN_REASON_BUDGET, process, p->n_spent, PLAN_ACTIONS_PER_TICK);
            break;
        }
        if (!emit_home(p, process, NULL, need.from[i], due))
            break;
    }
    return true;
}

/* Reports for explain why a thread of a confined group is left alone. */
static void refuse_hands(Planner *p, const Policy *policy, const Process *process, const Task *task)
{
    static const PlanReason reasons[TASK_HANDS_MAX] = {
        [TASK_HANDS_FREE] = PLAN_REASON_CLASS, /* free, but of a class never touched */
        [TASK_HANDS_FOREIGN] = PLAN_REASON_FOREIGN_AFFINITY,
        [TASK_HANDS_REPINNED] = PLAN_REASON_REPINNED,
        [TASK_HANDS_PER_CPU] = PLAN_REASON_PER_CPU,
        [TASK_HANDS_CLASS] = PLAN_REASON_CLASS,
        [TASK_HANDS_DENIED] = PLAN_REASON_DENIED,
        [TASK_HANDS_UNKNOWN] = PLAN_REASON_UNREADABLE,
    };

    if (!task->gone && !planner_placeable(policy, process, task))
        planner_refuse_task(p, mechanism_of(policy), reasons[task->hands], task, 0, 0);
}

/* Whether its group is confined, or would be if any of its threads could be placed. */
static bool has_reasons(const Planner *p, const Process *process)
{
    const PlannerGroup *g = &p->s->groups[process->group.i];

    return g->home || (g->blocked == PLAN_REASON_INVALID && g->n_placeable == 0 &&
                       policy_chooses_nodes(p->s->workloads[process->workload.i].policy));
}

static void home_member(Planner *p, const Process *process, PlannerGroup *g, CpuMask due)
{
    if (process->yielded)
        refuse_process(p, PLAN_REASON_REPINNED, process, 0, 0);
    else if (p->world->partial || !process->cpuset)
        refuse_process(p, PLAN_REASON_UNREADABLE, process, 0, 0);
    else if (!due)
        refuse_process(p, PLAN_REASON_NO_CPUS, process, 0, 0);
    else if (home_process(p, process, due))
        g->enters = p->s->processes[process - p->world->processes].at_home = true;
}

/* A group has another home as soon as one of its processes is on its way there. */
static void keep_homes(Planner *p)
{
    for (size_t i = 0; i < p->world->n_groups; i++) {
        const Group *group = &p->world->groups[i];
        const PlannerGroup *g = &p->s->groups[i];
        bool other = g->home ? g->enters && g->home != group->home : g->roams && !group->roams;

        if (!group->gone && (other || g->judged))
            planner_note(p, APPEND(p->plan->homes, p->plan->homes_capacity, p->plan->n_homes,
                                   (PlanHome){
                                       .group_id = group->id,
                                       .home = other ? g->home : group->home,
                                       .home_nodes = other ? g->home_nodes : group->home_nodes,
                                       .wait_permille = g->wait_permille,
                                       .others_permille = g->others_permille,
                                       .guessed = !g->memory_known,
                                       .judged = !other,
                                       .reverts = g->reverts,
                                   }));
    }
}

/* Between slow ticks handles only processes first seen on this tick. */
void home_set(Planner *p)
{
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];

        if (!process->gone && process->group.i >= 0 && p->s->groups[process->group.i].home &&
            (p->homes || process->first_seen_usec == p->world->now_usec) &&
            !p->world->workloads[process->workload.i].paused)
            home_member(p, process, &p->s->groups[process->group.i], p->s->processes[i].due);
    }
    if (!p->homes)
        return;
    keep_homes(p);

    for (size_t i = 0; i < p->world->n_tasks; i++) {
        const Task *task = &p->world->tasks[i];
        const Process *process = &p->world->processes[task->process.i];

        if (!process->gone && !process->yielded && process->group.i >= 0 && has_reasons(p, process))
            refuse_hands(p, p->s->workloads[process->workload.i].policy, process, task);
    }
}

static uint8_t mechanism_of_stay(PlanReason reason)
{
    return reason == PLAN_REASON_CONVERGED    ? MECHANISM_FREEZE
           : reason == PLAN_REASON_TO_AND_FRO ? MECHANISM_GUARDS
                                              : MECHANISM_PACK;
}

void home_say_stays(Planner *p)
{
    for (size_t i = 0; i < p->world->n_groups; i++) {
        const Group *group = &p->world->groups[i];
        const PlannerGroup *g = &p->s->groups[i];

        if (g->packed && !g->reverts && g->stay.stays && g->stay.reason != PLAN_REASON_INVALID &&
            g->blocked == PLAN_REASON_INVALID && g->home == group->home && g->roams == group->roams)
            planner_refuse_group(p, mechanism_of_stay(g->stay.reason), g->stay.reason, group, g->stay.value,
                                 g->stay.limit);
    }
}
