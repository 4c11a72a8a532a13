/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs one variant of a scenario with one seed, and says what came of it. Pure: no clock, no I/O; the same scenario,
 * variant and seed give the same result on every machine. What the model leaves out is said at the top of sim.c. */

#include "plan/transcript.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SimSpec SimSpec; /* sim/scenario/spec.h */

/* What is measured. Each exists for the machine as a whole and, unless said otherwise, for each workload. */
typedef enum SimMetric {
    SIM_METRIC_OPS,           /* bursts completed */
    SIM_METRIC_THROUGHPUT,    /* work done, permille: 1000 is one CPU alone on its core with local memory */
    SIM_METRIC_MAKESPAN_USEC, /* when the last thread ended; 0: not all of them did */
    SIM_METRIC_RUN,           /* time on CPUs, permille of one CPU */
    SIM_METRIC_WAIT,          /* time runnable but not running, permille of one CPU */
    SIM_METRIC_BUSY,          /* machine only: share of CPU time used, permille of all CPUs */
    SIM_METRIC_LOCAL,         /* share of memory accesses that were local, permille; 1000 with none */

    /* Moves of threads between CPUs, by what the CPUs have in common, and between nodes by who did it. */
    SIM_METRIC_MOVES,              /* all */
    SIM_METRIC_MOVES_SMT,          /* to a sibling */
    SIM_METRIC_MOVES_LLC,          /* within a last-level cache */
    SIM_METRIC_MOVES_NODE,         /* within a node */
    SIM_METRIC_MOVES_CROSS,        /* between nodes */
    SIM_METRIC_MOVES_CROSS_LATE,   /* between nodes, after the scenario's settle time */
    SIM_METRIC_MOVES_CROSS_WAKE,   /* between nodes, at a wake-up (P4) */
    SIM_METRIC_MOVES_CROSS_PULL,   /* between nodes, by the kernel's balancing (P7) */
    SIM_METRIC_MOVES_CROSS_DAEMON, /* between nodes, because of a mask */
    SIM_METRIC_NODE_MOST, /* share of the CPU time after the settle time that was on the node with most; permille */
    SIM_METRIC_TOGETHER, /* threads that are, at the end, on the node where most of their process are; permille */

    /* The daemon. */
    SIM_METRIC_HOMES,             /* actions carried out, by kind */
    SIM_METRIC_HOME_CHANGES,      /* machine only: groups that got another home, their first one included */
    SIM_METRIC_HOME_CHANGES_LATE, /* machine only: after the settle time */
    SIM_METRIC_HOME_CHANGES_MOST, /* machine only: after the settle time, of the group that had most */
    SIM_METRIC_GROUPS,            /* machine only: groups that were there at some time */
    SIM_METRIC_REVERTS,           /* machine only: homes given up because threads waited longer there */
    SIM_METRIC_LENDS,
    SIM_METRIC_LENDS_CROSS, /* between nodes */
    SIM_METRIC_RECALLS,
    SIM_METRIC_PUSHES,
    SIM_METRIC_RELEASES,
    SIM_METRIC_ACTIONS_LATE,    /* machine only: homes, lends, recalls and pushes, late */
    SIM_METRIC_OVERLOADED,      /* machine only: CPUs the daemon calls overloaded (P1) at its last tick */
    SIM_METRIC_OVERLOADED_MAX,  /* machine only: at the tick where they were most */
    SIM_METRIC_OVERLOADED_MEAN, /* machine only: mean over its ticks, thousandths of a CPU */
    SIM_METRIC_TICKS,           /* machine only: plans computed */
    SIM_METRIC_REFUSALS,        /* machine only */
    SIM_METRIC_VETOES,          /* machine only: passes that locality turned down (P7) */

    /* Memory. */
    SIM_METRIC_PAGES_MOVED, /* 4 KiB pages moved between nodes */
    SIM_METRIC_SCANS,       /* ranges marked for hinting faults (P9) */
    SIM_METRIC_SCAN_WINDOW, /* what the daemon's last window took in at most, MB, one process of a workload (P16) */
    SIM_METRIC_COVERAGE,    /* regions marked per pass over a process, mean permille (P9) */
    SIM_METRIC_HINT_FAULTS, /* taken, in 4 KiB pages */
    SIM_METRIC_SKIPS,       /* regions left out because no thread was known to use them (P9) */

    /* Where threads were put when they were born. */
    SIM_METRIC_FORKED_MAX, /* on the node that got most of them */
    SIM_METRIC_FORKED_MIN, /* on the node with CPUs that got fewest */

    SIM_METRIC_EVENTS, /* machine only: events of the model, what a run costs */
    SIM_METRIC_MAX,
    SIM_METRIC_INVALID = -EINVAL,
} SimMetric;

/* "ops", "moves-cross-late": the words of expectations; NULL-terminated, in the order of SimMetric. */
extern const char *const sim_metric_names[];

/* Whether a metric exists only for the machine as a whole. */
bool sim_metric_is_machine(SimMetric metric);

/* What one tick of the picture saw; also written while the daemon is off. */
typedef struct SimTick {
    uint64_t usec;         /* its end */
    uint32_t n_overloaded; /* as the daemon sees them (P1); 0 while it is off */
    uint32_t n_crowded;    /* CPUs with two or more runnable threads right now */
    uint32_t n_leases;     /* that run */
    uint32_t n_actions;    /* of this tick's plan */
    uint64_t plan_nsec;    /* what the plan cost, with SimHooks.clock_nsec; not part of what is repeatable */
} SimTick;

typedef struct SimResult {
    uint64_t
        duration_usec; /* until when it ran: all threads may have ended before the scenario's time is up */
    char **workloads;  /* [n_workloads]: their names, in the scenario's order */
    size_t n_workloads;
    uint32_t n_nodes;
    int64_t *values; /* [(n_workloads + 1) * SIM_METRIC_MAX]; the machine first. See sim_result_get() */
    SimTick *ticks;
    size_t n_ticks, ticks_capacity;
    uint32_t *used; /* [n_ticks][n_nodes][n_workloads]: CPU time used in the tick, permille of one CPU */
    size_t used_capacity;
} SimResult;

/* A metric of the machine (`workload` SIZE_MAX) or of one workload. */
int64_t sim_result_get(const SimResult *result, SimMetric metric, size_t workload);

/* The row of SimResult.used of one tick and node: n_workloads numbers. */
const uint32_t *sim_result_used(const SimResult *result, size_t tick, uint32_t node);

SimResult *sim_result_free(SimResult *result);
DEFINE_CLEANUP(SimResult *, sim_result_free)

/* All members may be zero. */
typedef struct SimHooks {
    void *userdata;
    /* Called once per tick; false ends the run with -ECANCELED. */
    bool (*progress)(void *userdata, uint64_t done_usec, uint64_t total_usec);
    /* CPU time of this thread, to measure what plans cost. */
    uint64_t (*clock_nsec)(void);
    /* Called with each plan of the daemon before it is carried out; 0, or -errno, which ends the run. */
    int (*plan)(void *userdata, const TranscriptEntry *entry);
    /* Bound of events; 0: a thousand million, some minutes of computing. */
    uint64_t events_max;
} SimHooks;

/* Runs variant `variant` (an index into the scenario's) with `seed`. Returns 0; -ENOMEM; -EINVAL for a scenario that
 * cannot be run (no CPU a thread may use); -EOVERFLOW when the bound of events was reached; -ECANCELED; or what a hook
 * said. With the first ones *ret_error is a malloc'd sentence or NULL. `hooks` may be NULL. */
int sim_run(const SimSpec *spec, size_t variant, uint64_t seed, const SimHooks *hooks, SimResult **ret,
            char **ret_error);
