/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Looks at processes for some seconds, as the daemon would, without one: what they run and wait, on which nodes, where
 * their memory lies, and where acting would place them. Nothing is changed. */

#include "ctl/ctl.h"
#include "ctl/diagnose/verdict.h"
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
    uint64_t bytes; /* of its memory, of which is known where it lies */
    uint64_t *run_node, *node_bytes;
    hwloc_bitmap_t home_nodes, allowed, allowed_nodes, cpuset_nodes;
    const char *refusal; /* why acting would give it no home; NULL: it would, or nothing is known */
    DiagnoseFacts facts; /* points to the above */
    Diagnosis diagnosis;
} SurveyFinding;

typedef struct Survey {
    Topology *topology;
    SurveyFinding *findings; /* the worst first */
    size_t n_findings, capacity;
    bool kernel_balances;
    uint64_t idle_permille; /* CPU time left idle on the machine, of one CPU */
    uint32_t usec;          /* how long it was looked at */
} Survey;

void survey_done(Survey *survey);

/* Looks for `seconds`, saying so on a terminal. A process that is `target` and not there is CTL_EXIT_NOT_FOUND. */
CtlExit survey_make(const SurveyTarget *target, uint32_t seconds, Survey *ret);
