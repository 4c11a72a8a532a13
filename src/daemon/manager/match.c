/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Answers to what probe asks about each process: is it managed, which policy is it under, and what is needed of its
 * memory? */

#include "conf/utf8.h"
#include "daemon/manager/manager.h"
#include "numaplace/messages.h"
#include "plan/group.h"
#include "plan/memory/follow.h"

#include <string.h>

void manager_subject(Manager *manager, const ProbeSubject *from, PolicySubject *ret)
{
    *ret = (PolicySubject){
        .unit = from->unit,
        .slice = from->slice,
        .cgroup = from->cgroup,
        .comm = from->comm,
        .exe = from->exe,
        .command_line = from->command_line,
        .environment = from->environment,
        .environment_len = from->environment_len,
        .uid = from->uid,
        .user = manager->policies_name_users ? user_cache_name(manager->users, from->uid) : NULL,
        .memory_bytes = from->rss_bytes,
        .cpu_permille = from->cpu_permille,
        .n_threads = from->n_threads,
    };
}

/* probe asks about a released process at every discovery, even if it cannot be read. So its end is noticed,
 * Resume brings it back, and the release is not forgotten. */
bool manager_refuses(void *userdata, pid_t pid, uint64_t start_ticks)
{
    const Manager *manager = userdata;

    return task_set_find(manager->released, pid, start_ticks);
}

/* A process assigned by name is under that policy, and can be placed before its first instruction. */
bool manager_is_settled(void *userdata, const ProbeSubject *subject)
{
    return manager_assigned_policy(userdata, subject) != SIZE_MAX;
}

ProbeDecision manager_decide(void *userdata, const ProbeSubject *subject, size_t *ret_policy)
{
    Manager *manager = userdata;
    PolicySubject about;
    PolicyVerdict verdict;
    size_t policy = manager_assigned_policy(manager, subject);

    manager_subject(manager, subject, &about);
    verdict = policy == SIZE_MAX ? policy_match(manager->policies, &about, &policy) : POLICY_VERDICT_YES;
    if (policy == SIZE_MAX || verdict == POLICY_VERDICT_NO)
        return verdict == POLICY_VERDICT_LATER ? PROBE_DECISION_LATER : PROBE_DECISION_IGNORE;

    /* Mode=none is a match that forbids placing. An earlier policy that may match later (LATER) can still
     * take over. */
    if (manager->policies->policies[policy]->mode == POLICY_MODE_NONE)
        return verdict == POLICY_VERDICT_LATER ? PROBE_DECISION_LATER : PROBE_DECISION_IGNORE;
    *ret_policy = policy;
    return PROBE_DECISION_TAKE;
}

int manager_assign(void *userdata, World *world, Process *process, size_t policy)
{
    Manager *manager = userdata;

    if (manager->yielded && task_set_find(manager->yielded, process->pid, process->start_ticks))
        process->yielded = true;
    process->assigned = assignments_find(manager->assigned, process->pid, process->start_ticks);
    return group_assign(world, manager->policies, process, policy);
}

bool manager_has_memory(const Manager *manager, const Topology *topology)
{
    return topology->origin == TOPOLOGY_ORIGIN_LIVE ||
           (topology->origin == TOPOLOGY_ORIGIN_XML && strcmp(manager->options.root, "/") != 0);
}

/* On one node there is nothing to choose from. For a policy with Evidence=residency, the memory on it is read all the
 * same. */
unsigned manager_wants_memory(void *userdata, const World *world, const Process *process)
{
    const Manager *manager = userdata;
    const Policy *policy = group_policy(world, manager->policies, process->workload);
    bool has = manager_has_memory(manager, world->topology), several = world->topology->n_nodes > 1;
    unsigned wants = 0;

    if (!policy)
        return 0;
    if (has && (several || policy->evidence == POLICY_EVIDENCE_RESIDENCY))
        wants |= PROBE_MEMORY_NODES;
    if (policy->group_by == POLICY_GROUP_BY_SHARED_MEMORY ||
        (has && several && policy_groups_sharers(policy)))
        wants |= PROBE_MEMORY_SHARED;
    if ((wants & PROBE_MEMORY_NODES) && follow_wants_look(world, process))
        wants |= PROBE_MEMORY_AGAIN;
    return wants;
}

void manager_hangs(void *userdata, const ProbeSubject *subject)
{
    Manager *manager = userdata;
    CLEANUP_FREE char *comm = utf8_escape_alloc(subject->comm);
    LogFields fields = {0};
    uint32_t n_held;

    if (!log_rate(manager->log, manager->world->now_usec, &n_held))
        return;
    log_fields_add(&fields, "NUMAPLACE_PID", "%d", (int)subject->pid);
    log_fields_add(&fields, "NUMAPLACE_COMM", "%s", comm ? comm : "");
    log_fields_add(&fields, "NUMAPLACE_UID", "%u", (unsigned)subject->uid);
    log_record(
        manager->log, LOG_WARNING, NUMAPLACE_MESSAGE_HANGS, &fields,
        "reading the command line or environment of %s[%d] of user %u hangs; leaving it alone until that "
        "works",
        comm ? comm : "?", (int)subject->pid, (unsigned)subject->uid);
}
