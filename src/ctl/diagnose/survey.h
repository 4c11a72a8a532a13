/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Looks at processes for some seconds, as the daemon would, without one: what they run and wait, on which nodes, where
 * their memory lies, and where acting would place them. Nothing is changed. */

#include "ctl/ctl.h"
#include "ctl/diagnose/verdict.h"
#include "probe/memory/bandwidth.h"
#include "probe/progress.h"
#include "world/world.h"

/* Whom. At most one is set; none: those of some size, or that run. */
typedef struct SurveyTarget {
    pid_t pid;        /* 0: none */
    const char *unit; /* a systemd unit or slice, or a cgroup path */
} SurveyTarget;

typedef struct SurveyFinding {
    pid_t pid;
    char *comm, *unit, *cgroup; /* unit is NULL without one */
    uint32_t n_threads;
    pid_t pinned_tid; /* the thread with a mask of somebody's that does most; 0: none */
    uint64_t bytes;   /* of its memory, of which is known where it lies */
    uint64_t *run_node, *node_bytes;
    hwloc_bitmap_t home_nodes, allowed, allowed_nodes, cpuset_nodes;
    const char *refusal; /* why acting would give it no home; NULL: it would, or nothing is known */
    DiagnoseFacts facts; /* points to the above */
    Diagnosis diagnosis;
} SurveyFinding;

typedef struct Survey {
    Topology *topology;
    SurveyFinding *findings;
    size_t n_findings, capacity;
    bool kernel_balances;
    Bandwidth bandwidth;     /* bytes per second; without domains where the machine does not show it */
    int progress_error;      /* errno: why nothing could be counted of the target */
    ProgressCounts progress; /* of a target that is one process */
    uint64_t idle_permille;  /* CPU time left idle on the machine, of one CPU */
    uint64_t usec;           /* how long it was looked at */
} Survey;

void survey_done(Survey *survey);

/* Comes to a diagnosis about each, and puts the worst first. */
void survey_judge(Survey *survey);

/* Looks for `seconds`, or longer where that takes it, saying so on a terminal, and does not judge yet. A process that
 * is `target` and not there is CTL_EXIT_NOT_FOUND. */
CtlExit survey_make(const SurveyTarget *target, uint32_t seconds, Survey *ret);
