/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which thread uses which memory, as far as known: of the machine, a workload, a process, and a thread. */

#include "base/time.h"
#include "daemon/manager/evidence.h"
#include "daemon/stall.h"
#include "daemon/views/describe.h"
#include "plan/group.h"

#include <string.h>

static const char *const outcome_names[] = {
    [0] = "looking",
    [EVIDENCE_E_GONE] = "gone",
    [EVIDENCE_E_TRACKED] = "tracked",
    [EVIDENCE_E_TOO_LARGE] = "too-large",
};

/* Sums over some watches. */
typedef struct Sum {
    uint32_t n, n_over;
    uint64_t n_rounds, n_samples, n_lost, cost_usec, target_usec, protect_max_usec;
    uint64_t scan[SCAN_REASON_MAX], verdicts[BLOCKS_VERDICT_MAX];
    uint64_t n_windows, n_sequences, scanned_bytes, n_eligible, n_covered, n_resting;
} Sum;

static void add(Sum *sum, const EvidenceWatch *watch)
{
    const EvidenceReport *report = &watch->report;

    sum->n++;
    sum->n_over += report->outcome != 0;
    sum->n_rounds += report->n_rounds;
    sum->n_samples += report->n_samples;
    sum->n_lost += report->n_lost;
    sum->cost_usec += report->cost_usec;
    sum->target_usec += report->target_usec;
    sum->protect_max_usec = MAX(sum->protect_max_usec, report->protect_max_usec);
    for (int i = 0; i < SCAN_REASON_MAX; i++)
        sum->scan[i] += watch->use.scan.n[i];
    for (int i = 0; i < BLOCKS_VERDICT_MAX; i++)
        sum->verdicts[i] += watch->use.sorting.blocks.n[i];
    sum->n_windows += watch->use.scan.n_windows;
    sum->n_sequences += watch->use.scan.sequence;
    sum->scanned_bytes += watch->use.scan.scanned_bytes;
    sum->n_eligible += watch->use.scan.n_eligible;
    sum->n_covered += watch->use.scan.n_covered;
    sum->n_resting += watch->use.sorting.n_resting;
}

static void put(Dict *dict, const Sum *sum)
{
    dict_u32(dict, "use_processes", sum->n);
    dict_u32(dict, "use_failed", sum->n_over);
    dict_u64(dict, "use_rounds", sum->n_rounds);
    dict_u64(dict, "use_samples", sum->n_samples);
    dict_u64(dict, "use_lost", sum->n_lost);
    dict_u64(dict, "use_cpu_usec", sum->cost_usec);
    dict_u64(dict, "use_target_usec", sum->target_usec);
    dict_u64(dict, "use_stall_usec", sum->protect_max_usec);
    dict_u64(dict, "use_resting", sum->n_resting);
    dict_counters(dict, "use_blocks", sum->verdicts, BLOCKS_VERDICT_MAX, blocks_verdict_names);
    dict_u64(dict, "scan_windows", sum->n_windows);
    dict_u64(dict, "scan_sequences", sum->n_sequences);
    dict_u64(dict, "scan_bytes", sum->scanned_bytes);
    dict_u32(dict, "scan_covered_permille",
             sum->n_eligible > 0 ? (uint32_t)(sum->n_covered * 1000 / sum->n_eligible) : 0);
    dict_counters(dict, "scan_skipped", sum->scan, SCAN_REASON_MAX, scan_reason_names);
}

/* The evidence that a policy gets, and why; for `process`, unless that is NULL. */
static void put_kind(Dict *dict, const Manager *manager, const Policy *policy, const Process *process)
{
    const ManagerEvidence *evidence = manager->evidence;
    EvidenceKind wanted = policy ? manager_evidence_wanted(policy) : EVIDENCE_MAX, kind = EVIDENCE_RESIDENCY;
    CLEANUP_FREE char *why = NULL;

    if (evidence && evidence->crew) {
        const EvidenceWatch *watch = process ? manager_evidence_find(manager, process->pid) : NULL;

        kind = evidence_choose(&evidence->machine, wanted);
        if (watch && watch->kind == EVIDENCE_KERNEL && kind == EVIDENCE_WRITE && process->write_fails) {
            kind = watch->kind;
            why = strdup("kernel; not write: that failed with this process");
        } else {
            why = evidence_explain(&evidence->machine, wanted);
        }
        dict_check(dict, why ? 0 : -ENOMEM);
    }
    dict_string(dict, "use_evidence", evidence_names[kind]);
    dict_string(dict, "use_why", why ? why : "residency; memory is neither sampled nor moved here");
}

static void put_stall(Dict *dict, const ManagerStall *stall)
{
    dict_string(dict, "counters",
                stall && stall->counting && !stall->why ? "used"
                : stall && stall->why                   ? stall->why
                                                        : "waiting for memory is not counted here");
    dict_u64(dict, "counters_processes", stall ? stall->n_counted : 0);
    dict_u64(dict, "counters_cpu_usec", stall ? stall->cpu_nsec / NSEC_PER_USEC : 0);
}

void describe_evidence(Dict *dict, Manager *manager)
{
    const ManagerEvidence *evidence = manager->evidence;
    Sum sum = {0};

    for (size_t i = 0; evidence && i < evidence->n_watches; i++)
        add(&sum, evidence->watches[i]);
    put_kind(dict, manager, NULL, NULL);
    dict_u32(dict, "use_left_out", evidence ? (uint32_t)evidence->n_left_out : 0);
    dict_u64(dict, "use_loop_cpu_usec", evidence ? evidence->take_in_nsec / 1000 : 0);
    put(dict, &sum);
    put_stall(dict, manager->stall);
}

void describe_evidence_of_workload(Dict *dict, const Manager *manager, WorkloadIx workload)
{
    const World *world = manager->world;
    Sum sum = {0};

    for (size_t i = 0; i < world->n_processes; i++) {
        const EvidenceWatch *watch = world->processes[i].workload.i == workload.i
                                         ? manager_evidence_find(manager, world->processes[i].pid)
                                         : NULL;

        if (watch)
            add(&sum, watch);
    }
    put_kind(dict, manager, group_policy(world, manager->policies, workload), NULL);
    put(dict, &sum);
}

void describe_evidence_of_process(Dict *dict, const Manager *manager, const Process *process)
{
    const EvidenceWatch *watch = manager_evidence_find(manager, process->pid);
    int outcome = watch ? watch->report.outcome : 0;
    Sum sum = {0};

    if (watch)
        add(&sum, watch);
    put_kind(dict, manager, group_policy(manager->world, manager->policies, process->workload), process);
    dict_string(dict, "use_state",
                !watch         ? "not-looked-at"
                : outcome >= 0 ? outcome_names[outcome]
                               : strerrorname_np(-outcome));
    dict_u64(dict, "use_period_usec",
             watch && outcome == 0 ? manager_evidence_period_usec(manager, watch) : 0);
    dict_u32(dict, "use_shared_permille", watch ? watch->use.summary.overlap_permille : 0);
    put(dict, &sum);
}

void describe_use(Dict *dict, const Manager *manager, const Task *task)
{
    const World *world = manager->world;
    const TaskUse *use = task->use;

    dict_list_begin(dict, "use");
    for (uint32_t i = 0; use && i < world->topology->n_nodes; i++) {
        if (use->pages[i] == 0)
            continue;
        dict_begin(dict);
        dict_u32(dict, "node", world->topology->nodes[i].os_index);
        dict_u64(dict, "pages", use->pages[i]);
        dict_end(dict);
    }
    dict_list_end(dict, "use");
    dict_u32(dict, "use_private_permille", use ? use->private_permille : 0);
    dict_i32(dict, "use_buddy", use ? use->buddy.tid : 0);
    dict_u64(dict, "use_age_usec", use ? world->now_usec - MIN(use->measured_usec, world->now_usec) : 0);
    dict_i32(dict, "use_node",
             use && use->stay.node.i >= 0 ? (int32_t)world->topology->nodes[use->stay.node.i].os_index : -1);
    dict_u64(dict, "use_node_age_usec",
             use ? use->measured_usec - MIN(use->stay.usec, use->measured_usec) : 0);
}
