/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Observes processes for some seconds as the daemon would, but without it: how much they run and wait, on
 * which nodes, where their memory lies, and where they would be placed. Nothing is changed. */

#include "ctl/ctl.h"
#include "ctl/diagnose/verdict.h"
#include "probe/memory/bandwidth.h"
#include "probe/progress.h"
#include "world/world.h"

/* Which processes. At most one is set; none: all with some memory or CPU time. */
typedef struct SurveyTarget {
    pid_t pid;        /* 0: none */
    const char *unit; /* a systemd unit or slice, or a cgroup path */
} SurveyTarget;

typedef struct SurveyFinding {
    pid_t pid;
    char *comm, *unit, *cgroup; /* unit is NULL without one */
    uint32_t n_threads;
    pid_t pinned_tid; /* the busiest thread with a foreign mask; 0: none */
    uint64_t bytes;   /* of memory whose nodes are known */
    uint64_t *run_node, *node_bytes;
    hwloc_bitmap_t home_nodes, allowed, allowed_nodes, cpuset_nodes;
    const char *refusal; /* why it would get no home; NULL: it would get one, or nothing is known */
    DiagnoseFacts facts; /* points to the above */
    Diagnosis diagnosis;
} SurveyFinding;

typedef struct Survey {
    Topology *topology;
    SurveyFinding *findings;
    size_t n_findings, capacity;
    bool kernel_balances;
    Bandwidth bandwidth;     /* bytes per second; without domains if the machine does not report it */
    int progress_error;      /* errno: why the target's progress could not be counted */
    ProgressCounts progress; /* of a target that is one process */
    uint64_t idle_permille;  /* idle CPU time of the machine, permille of one CPU */
    uint64_t usec;           /* duration of the observation */
} Survey;

void survey_done(Survey *survey);

/* Reads how much memory of the process is bound to nodes on which it hardly runs. Of the facts it needs the topology,
 * and how much runs where. 0 as well if it cannot be read. */
uint64_t survey_bound_bytes(int root_fd, pid_t pid, const DiagnoseFacts *facts);

/* Diagnoses each finding and sorts the worst first. */
void survey_judge(Survey *survey);

/* Observes for `seconds`, or longer if needed, with a countdown on a terminal. Does not judge yet. Returns
 * CTL_EXIT_NOT_FOUND if `target` names no process. */
CtlExit survey_make(const SurveyTarget *target, uint32_t seconds, Survey *ret);
