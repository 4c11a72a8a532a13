/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* "Why is it there, and why not elsewhere?" The answer comes from the World (the present state), the ring of
 * moves (what was done and refused), and, for an unmanaged process, a look at it like that of discovery. */

#include "daemon/views/describe.h"

#include <string.h>

#define EXPLAIN_TASKS_MAX 64U  /* threads listed */
#define EXPLAIN_MOVES_MAX 200U /* newest moves listed */

typedef struct Verdict {
    const char *name;
    const char *text;
} Verdict;

static void put_verdict(Dict *dict, const char *asked, const char *kind, bool managed, Verdict verdict)
{
    dict_string(dict, "subject", asked);
    dict_string(dict, "kind", kind);
    dict_bool(dict, "managed", managed);
    dict_string(dict, "verdict", verdict.name);
    dict_string(dict, "text", verdict.text);
}

static Verdict verdict_of_reason(PlanReason reason)
{
    return (Verdict){.name = plan_reason_name(reason), .text = plan_reason_text(reason)};
}

/* The subject: one process since it started, or one workload. */
typedef struct Story {
    pid_t pid; /* 0: a workload */
    uint64_t start_ticks;
    const char *workload;
    uint64_t group_id; /* refusals of the group as a whole concern the process, too */
    bool would;        /* selects moves that would be made; else all others */
} Story;

/* A thread starts after its process, so an older start time belongs to an earlier process with this PID. */
static bool key_is_of(const Story *story, const TaskKey *key)
{
    return key->pid == story->pid && key->start_ticks >= story->start_ticks;
}

static bool move_is_of(const Story *story, const Move *move)
{
    if ((move->outcome == PLAN_OUTCOME_WOULD) != story->would)
        return false;
    if (story->pid > 0)
        return key_is_of(story, &move->subject);
    return move->workload && story->workload && strcmp(move->workload, story->workload) == 0;
}

static bool refusal_is_of(const Story *story, const MoveRefusal *refusal)
{
    if (story->pid > 0)
        return key_is_of(story, &refusal->subject) ||
               (refusal->subject.pid == 0 && story->group_id && refusal->group_id == story->group_id);
    return refusal->workload && story->workload && strcmp(refusal->workload, story->workload) == 0;
}

static void put_moves_as(Dict *dict, const char *key, const Manager *manager, const Story *story)
{
    size_t n = 0, skip;

    for (const Move *m = moves_next(manager->moves, 0); m; m = moves_next(manager->moves, m->sequence))
        n += move_is_of(story, m);
    skip = n > EXPLAIN_MOVES_MAX ? n - EXPLAIN_MOVES_MAX : 0;

    dict_list_begin(dict, key);
    for (const Move *m = moves_next(manager->moves, 0); m; m = moves_next(manager->moves, m->sequence)) {
        if (!move_is_of(story, m))
            continue;
        if (skip > 0)
            skip--;
        else
            describe_move(dict, manager, m);
    }
    dict_list_end(dict, key);
}

static void put_moves(Dict *dict, const Manager *manager, const Story *story)
{
    Story would = *story;

    would.would = true;
    put_moves_as(dict, "actions", manager, story);
    put_moves_as(dict, "would", manager, &would);
}

static void put_refusal(Dict *dict, const MoveRefusal *refusal)
{
    dict_begin(dict);
    dict_string(dict, "reason", plan_reason_name(refusal->reason));
    dict_string(dict, "text", plan_reason_text(refusal->reason));
    dict_u32(dict, "mechanism", refusal->mechanism);
    dict_u64(dict, "count", refusal->count);
    dict_u64(dict, "time_usec", refusal->time_usec);
    dict_u64(dict, "tick", refusal->tick);
    dict_i32(dict, "pid", refusal->subject.pid);
    dict_i32(dict, "tid", refusal->subject.tid);
    dict_string(dict, "workload", refusal->workload);
    dict_u64(dict, "group", refusal->group_id);
    dict_i32(dict, "cpu", refusal->cpu.i);
    dict_u64(dict, "value", refusal->value);
    dict_u64(dict, "limit", refusal->limit);
    dict_end(dict);
}

static void put_refusals(Dict *dict, const Manager *manager, const Story *story)
{
    dict_list_begin(dict, "refusals");
    for (const MoveRefusal *r = moves_refusals(manager->moves); r; r = r->newer)
        if (refusal_is_of(story, r))
            put_refusal(dict, r);
    dict_list_end(dict, "refusals");
}

static PlanReason reason_of_hands(TaskHands hands)
{
    static const PlanReason reasons[TASK_HANDS_MAX] = {
        [TASK_HANDS_FREE] = PLAN_REASON_INVALID,       [TASK_HANDS_FOREIGN] = PLAN_REASON_FOREIGN_AFFINITY,
        [TASK_HANDS_REPINNED] = PLAN_REASON_REPINNED,  [TASK_HANDS_PER_CPU] = PLAN_REASON_PER_CPU,
        [TASK_HANDS_CLASS] = PLAN_REASON_CLASS,        [TASK_HANDS_DENIED] = PLAN_REASON_DENIED,
        [TASK_HANDS_UNKNOWN] = PLAN_REASON_UNREADABLE,
    };

    return reasons[hands];
}

TaskHands describe_hands(const World *world, const Process *process)
{
    uint32_t n_by[TASK_HANDS_MAX] = {0};
    int most = TASK_HANDS_FREE;
    size_t n, first = world_process_tasks(world, process, &n);

    for (size_t i = first; i < first + n; i++)
        n_by[world->tasks[i].hands] += !world->tasks[i].gone;
    for (int hands = 0; hands < TASK_HANDS_MAX && n_by[TASK_HANDS_FREE] == 0; hands++)
        if (n_by[hands] > n_by[most])
            most = hands;
    return (TaskHands)most;
}

/* The last refusal of a process without a home, or of its group. */
static PlanReason reason_of_plan(const Manager *manager, const Story *story)
{
    PlanReason reason = PLAN_REASON_INVALID;

    for (const MoveRefusal *r = moves_refusals(manager->moves); r; r = r->newer)
        if (r->subject.tid == 0 && refusal_is_of(story, r))
            reason = r->reason;
    return reason;
}

static Verdict verdict_of_managed(const Manager *manager, const Process *process, const Group *group,
                                  const Story *story)
{
    const Workload *workload = &manager->world->workloads[process->workload.i];
    PlanReason reason = PLAN_REASON_INVALID;

    if (process->yielded)
        return verdict_of_reason(PLAN_REASON_REPINNED);
    reason = reason_of_hands(describe_hands(manager->world, process));
    if (reason != PLAN_REASON_INVALID)
        return verdict_of_reason(reason);
    if (workload->paused)
        return verdict_of_reason(PLAN_REASON_PAUSED);
    if (manager_observes(manager, process->workload))
        return (Verdict){
            plan_reason_name(PLAN_REASON_OBSERVE),
            "It is only observed: nothing is changed, but the answer shows what acting would do."};
    if (group && group->home)
        return (Verdict){"managed", "It is placed by its policy."};
    reason = reason_of_plan(manager, story);
    if (reason != PLAN_REASON_INVALID)
        return verdict_of_reason(reason);
    return (Verdict){"managed", "It is watched; it has no home yet."};
}

static void put_tasks(Dict *dict, const Manager *manager, const Process *process)
{
    size_t n, first = world_process_tasks(manager->world, process, &n);

    dict_u32(dict, "n_tasks", (uint32_t)n);
    dict_list_begin(dict, "tasks");
    for (size_t i = first; i < first + MIN(n, (size_t)EXPLAIN_TASKS_MAX); i++)
        describe_task(dict, manager, &manager->world->tasks[i]);
    dict_list_end(dict, "tasks");
}

/* `subject` may be NULL: the process could not be read again. */
static void put_policy(Dict *dict, Manager *manager, const Policy *policy, const ProbeSubject *subject)
{
    PolicySubject about;
    size_t section;

    dict_string(dict, "policy", policy->name);
    dict_string(dict, "policy_path", policy->n_files > 0 ? policy->files[0] : NULL);
    if (!subject)
        return;
    manager_subject(manager, subject, &about);
    if (policy_match_one(policy, &about, &section) == POLICY_VERDICT_YES) {
        dict_u32(dict, "policy_section", (uint32_t)section + 1);
        dict_string(dict, "policy_file", policy->files[policy->matches[section].file]);
        dict_u32(dict, "policy_line", policy->matches[section].line);
    }
}

typedef struct PolicyLook {
    Dict *dict;
    Manager *manager;
    const Policy *policy;
} PolicyLook;

static int on_policy_look(void *userdata, const ProbeSubject *subject)
{
    const PolicyLook *look = userdata;

    put_policy(look->dict, look->manager, look->policy, subject);
    return 0;
}

/* The policy of a managed process. What matched is not kept for thousands of them, but read again. */
static void put_policy_of(Dict *dict, Manager *manager, const Policy *policy, pid_t pid)
{
    PolicyLook look = {.dict = dict, .manager = manager, .policy = policy};

    if (probe_look(manager->probe, pid, manager->policies->wants, on_policy_look, &look) != 0)
        put_policy(dict, manager, policy, NULL);
}

/* An assigned process is under its policy whatever the [Match] sections of that say. */
static void put_assignment(Dict *dict, Manager *manager, const Policy *policy, const Process *process)
{
    const Assignment *assignment = assignments_find(manager->assigned, process->pid, process->start_ticks);

    dict_bool(dict, "assigned", assignment);
    dict_string(dict, "stripe", assignment ? assignment->stripe : NULL);
    if (assignment)
        put_policy(dict, manager, policy, NULL);
    else
        put_policy_of(dict, manager, policy, process->pid);
}

static void explain_managed(Dict *dict, Manager *manager, const char *asked, const Process *process)
{
    const World *world = manager->world;
    const Workload *workload = &world->workloads[process->workload.i];
    const Group *group = process->group.i >= 0 ? &world->groups[process->group.i] : NULL;
    Story story = {
        .pid = process->pid, .start_ticks = process->start_ticks, .group_id = group ? group->id : 0};

    put_verdict(dict, asked, "process", true, verdict_of_managed(manager, process, group, &story));
    dict_i32(dict, "pid", process->pid);
    dict_string(dict, "comm", process->comm);
    dict_u32(dict, "uid", process->uid);
    dict_string(dict, "unit", process->unit);
    dict_string(dict, "cgroup", process->cgroup);
    put_assignment(dict, manager, manager->policies->policies[workload->policy], process);
    dict_string(dict, "workload", workload->name);
    dict_u64(dict, "group", story.group_id);
    dict_string(dict, "group_key", group ? group->key : NULL);
    dict_cpus(dict, "home", group ? group->home : NULL);
    dict_nodes(dict, "home_nodes", world->topology, group ? group->home_nodes : NULL);
    describe_would_of_process(dict, manager, process);
    describe_gain(dict, manager, story.group_id);
    describe_means(dict, manager, story.group_id);
    dict_cpus(dict, "cpuset", process->cpuset);
    dict_string(dict, "evidence",
                probe_features(manager->probe)->task_schedstat ? "run-and-wait" : "run-only");
    describe_memory_of_process(dict, manager, process);
    describe_evidence_of_process(dict, manager, process);
    put_tasks(dict, manager, process);
    describe_leases(dict, manager, "lent", process->workload, process->pid);
    put_moves(dict, manager, &story);
    put_refusals(dict, manager, &story);
}

typedef struct Look {
    Dict *dict;
    Manager *manager;
    const char *asked;
} Look;

static Verdict verdict_of_unmanaged(Manager *manager, const ProbeSubject *subject, size_t *ret_policy)
{
    PolicySubject about;
    PolicyVerdict verdict;

    manager_subject(manager, subject, &about);
    verdict = policy_match(manager->policies, &about, ret_policy);
    if (task_set_find(manager->released, subject->pid, subject->start_ticks))
        return (Verdict){"released", "The administrator released it; resume takes it back."};
    if (verdict == POLICY_VERDICT_LATER)
        return (Verdict){"later",
                         "A policy matches once it has grown: only MinMemory=, MinCPU= or MinThreads= "
                         "is not reached."};
    if (*ret_policy == SIZE_MAX || verdict == POLICY_VERDICT_NO)
        return verdict_of_reason(PLAN_REASON_NO_POLICY);
    if (manager->policies->policies[*ret_policy]->mode == POLICY_MODE_NONE)
        return verdict_of_reason(PLAN_REASON_MODE_NONE);
    return (Verdict){"pending",
                     "A policy matches; it is managed from the next discovery on, unless MaxTasks= "
                     "is reached."};
}

static int on_look(void *userdata, const ProbeSubject *subject)
{
    const Look *look = userdata;
    Story story = {.pid = subject->pid, .start_ticks = subject->start_ticks};
    size_t policy = SIZE_MAX;
    Verdict verdict = verdict_of_unmanaged(look->manager, subject, &policy);

    put_verdict(look->dict, look->asked, "process", false, verdict);
    dict_i32(look->dict, "pid", subject->pid);
    dict_string(look->dict, "comm", subject->comm);
    dict_u32(look->dict, "uid", subject->uid);
    dict_string(look->dict, "unit", subject->unit);
    dict_string(look->dict, "cgroup", subject->cgroup);
    if (policy != SIZE_MAX)
        put_policy(look->dict, look->manager, look->manager->policies->policies[policy], subject);
    put_moves(look->dict, look->manager, &story);
    put_refusals(look->dict, look->manager, &story);
    return 0;
}

/* Why the process could not be read; `r` is a PROBE_E_ outcome. */
static Verdict verdict_of_look(int r, pid_t pid)
{
    switch (r) {
    case PROBE_E_AWAITED:
        return (Verdict){"awaited",
                         "Its command line or environment is being read, to find out whether a policy "
                         "matches."};
    case PROBE_E_HANGS:
        return (Verdict){
            "hangs",
            "Reading its command line or environment, which a policy asks for, hangs: it is left alone until "
            "that works."};
    case PROBE_E_CROWDED:
        return (Verdict){
            "crowded",
            "Its command line or environment, which a policy asks for, is not read while too many reads of "
            "other processes of its user hang."};
    default:
        return pid == getpid()
                   ? (Verdict){"self", "This is the daemon itself, which is never placed."}
                   : (Verdict){"out-of-reach", "This is a kernel thread or an exited process: never placed."};
    }
}

static void explain_unseen(Dict *dict, Manager *manager, const char *asked, pid_t pid, int r)
{
    Story story = {.pid = pid};

    put_verdict(dict, asked, "process", false, verdict_of_look(r, pid));
    dict_i32(dict, "pid", pid);
    put_moves(dict, manager, &story);
    put_refusals(dict, manager, &story);
}

int describe_explain_process(Dict *dict, Manager *manager, const char *asked, pid_t pid)
{
    const Process *process = world_process(manager->world, pid);
    Look look = {.dict = dict, .manager = manager, .asked = asked};
    int r = 0;

    dict_begin(dict);
    if (process && !process->gone && process->workload.i >= 0) {
        explain_managed(dict, manager, asked, process);
    } else {
        r = probe_look(manager->probe, pid, manager->policies->wants, on_look, &look);
        if (r > 0) {
            explain_unseen(dict, manager, asked, pid, r);
            r = 0;
        }
    }
    dict_end(dict);
    return r;
}

int describe_explain_workload(Dict *dict, Manager *manager, const char *asked, const Workload *workload)
{
    Story story = {.workload = workload->name};
    bool observed = manager_observes(manager, world_workload_index(manager->world, workload));
    Verdict placed =
        observed ? (Verdict){plan_reason_name(PLAN_REASON_OBSERVE),
                             "Its processes are only observed: nothing is changed, but the answer shows what "
                             "acting would do."}
                 : (Verdict){"managed", "Its processes are placed by this policy."};

    dict_begin(dict);
    put_verdict(dict, asked, "workload", true,
                workload->paused ? verdict_of_reason(PLAN_REASON_PAUSED) : placed);
    describe_workload_keys(dict, manager, workload);
    put_moves(dict, manager, &story);
    put_refusals(dict, manager, &story);
    dict_end(dict);
    return 0;
}

void describe_workload(Dict *dict, Manager *manager, const Workload *workload)
{
    dict_begin(dict);
    describe_workload_keys(dict, manager, workload);
    put_refusals(dict, manager, &(Story){.workload = workload->name});
    dict_end(dict);
}
