/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Answers: turns the manager's state into the dictionaries of numaplace-json(5), and changes nothing. Errors
 * stay in the Dict. */

#include "daemon/manager/manager.h"
#include "daemon/views/dict.h"

/* describe-status.c */
void describe_status(Dict *dict, Manager *manager);

void describe_topology(Dict *dict, Manager *manager);
void describe_cpus(Dict *dict, Manager *manager);
void describe_cpu_loads(Dict *dict, Manager *manager);
void describe_workloads(Dict *dict, Manager *manager);

/* At most `max` tasks of a workload, after (pid, tid). */
void describe_tasks(Dict *dict, Manager *manager, const Workload *workload, pid_t pid, pid_t tid,
                    uint32_t max);

/* describe-past.c: moves, the steps of the last day, and what changes of homes were worth. */
void describe_move(Dict *dict, const Manager *manager, const Move *move);
void describe_moves(Dict *dict, const Manager *manager, uint64_t after, uint32_t max);

/* At most `max` steps with a sequence above `after`, and no more than a reply may hold. */
void describe_history(Dict *dict, const Manager *manager, uint64_t after, uint32_t max);

/* The rest is for views/explain.c. */

/* The keys of "workload" with its groups and leases, without the enclosing dictionary. */
void describe_workload_keys(Dict *dict, Manager *manager, const Workload *workload);
/* The leases of a workload (pid 0) or of one of its processes. */
void describe_leases(Dict *dict, Manager *manager, const char *key, WorkloadIx workload, pid_t pid);
void describe_task(Dict *dict, const Manager *manager, const Task *task);

/* describe-memory.c: the keys memory... of a workload or (`group` not none) of one of its groups, and of a process. */
void describe_memory(Dict *dict, const Manager *manager, WorkloadIx workload, GroupIx group);
void describe_memory_of_process(Dict *dict, const Manager *manager, const Process *process);
/* The results of all migration requests, and what prevents any. */
void describe_mover(Dict *dict, const Manager *manager);
/* The key "free". */
void describe_free_memory(Dict *dict, const World *world);
/* The operating-system number of the node with most of a process's memory; -1: not known. */
int32_t describe_memory_node(const World *world, const Process *process);

/* describe-past.c: the keys gain_..., if a group was looked at before and after the last change of its home. */
void describe_gain(Dict *dict, const Manager *manager, uint64_t group_id);

/* describe-would.c: the keys observed and would_..., and of a process local_permille. */
void describe_would_of_group(Dict *dict, const Manager *manager, const Group *group);
void describe_would_of_workload(Dict *dict, const Manager *manager, WorkloadIx workload);
void describe_would_of_process(Dict *dict, const Manager *manager, const Process *process);

/* describe-evidence.c: the keys use... and scan... of the machine, a workload and a process; and use... of a
 * thread. */
void describe_evidence(Dict *dict, Manager *manager);
void describe_evidence_of_workload(Dict *dict, const Manager *manager, WorkloadIx workload);
void describe_evidence_of_process(Dict *dict, const Manager *manager, const Process *process);
void describe_use(Dict *dict, const Manager *manager, const Task *task);

/* manager/fence.c: what this host has, for the status; and how a group is confined, and why: "means",
 * "means_reason", "means_text", "means_error" and "means_memory". */
void describe_host(Dict *dict, const Manager *manager);
void describe_means(Dict *dict, const Manager *manager, uint64_t group_id);

/* manager/neighbours.c: the key "neighbours". */
void describe_neighbours(Dict *dict, const Manager *manager);

/* views/explain.c */

/* Why a process or a workload is where it is: everything done to it and refused. The process need not be
 * managed. Return 0, or -ESRCH if there is none. */
int describe_explain_process(Dict *dict, Manager *manager, const char *asked, pid_t pid);
int describe_explain_workload(Dict *dict, Manager *manager, const char *asked, const Workload *workload);

/* Why no thread of a process may be placed: what most of them have, in a tie the first of these. FREE: one may be, or
 * there is none. */
TaskHands describe_hands(const World *world, const Process *process);

/* A workload with its groups, leases and refusals. */
void describe_workload(Dict *dict, Manager *manager, const Workload *workload);
