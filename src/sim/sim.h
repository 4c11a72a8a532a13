/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs one variant of a scenario with one seed and returns its results. Pure, without clock or I/O: the same scenario,
 * variant and seed give the same result on every machine. The top of sim.c lists what the model leaves out. */

#include "plan/transcript.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SimSpec SimSpec; /* sim/scenario/spec.h */

/* What is measured, for the machine as a whole and, unless marked "machine only", for each workload. */
typedef enum SimMetric {
    SIM_METRIC_OPS,           /* bursts completed */
    SIM_METRIC_THROUGHPUT,    /* work done, permille: 1000 is one CPU alone on its core with local memory */
    SIM_METRIC_MAKESPAN_USEC, /* when the last thread ended; 0: some did not */
    SIM_METRIC_RUN,           /* time on CPUs, permille of one CPU */
    SIM_METRIC_WAIT,          /* time runnable but not running, permille of one CPU */
    SIM_METRIC_BUSY,          /* machine only: CPU time used, permille of all CPUs */
    SIM_METRIC_LOCAL,         /* memory accesses that were local, permille; 1000 with none */

    /* Moves of threads: by the closest level that both CPUs share, and between nodes by cause. */
    SIM_METRIC_MOVES,              /* all */
    SIM_METRIC_MOVES_SMT,          /* to a sibling */
    SIM_METRIC_MOVES_LLC,          /* within a last-level cache */
    SIM_METRIC_MOVES_NODE,         /* within a node */
    SIM_METRIC_MOVES_CROSS,        /* between nodes */
    SIM_METRIC_MOVES_CROSS_LATE,   /* between nodes, after the scenario's settle time */
    SIM_METRIC_MOVES_CROSS_WAKE,   /* between nodes, at a wake-up (P4) */
    SIM_METRIC_MOVES_CROSS_PULL,   /* between nodes, by the kernel's balancing (P7) */
    SIM_METRIC_MOVES_CROSS_DAEMON, /* between nodes, because the daemon set a mask */
    SIM_METRIC_NODE_MOST, /* share of CPU time after the settle time on the node with most, permille */
    SIM_METRIC_TOGETHER,  /* threads that end on the node with most of their process, permille */

    /* The daemon. */
    SIM_METRIC_HOMES,             /* homes set; like the other kinds of action, counted when carried out */
    SIM_METRIC_HOME_CHANGES,      /* machine only: changes of a group's home, including its first */
    SIM_METRIC_HOME_CHANGES_LATE, /* machine only: after the settle time */
    SIM_METRIC_HOME_CHANGES_MOST, /* machine only: after the settle time, in the group with most */
    SIM_METRIC_GROUPS,            /* machine only: groups that ever existed */
    SIM_METRIC_REVERTS,           /* machine only: homes given up because threads waited longer there */
    SIM_METRIC_LENDS,
    SIM_METRIC_LENDS_CROSS, /* between nodes */
    SIM_METRIC_RECALLS,
    SIM_METRIC_PUSHES,
    SIM_METRIC_RELEASES,
    SIM_METRIC_ACTIONS_LATE,    /* machine only: all of these actions after the settle time */
    SIM_METRIC_OVERLOADED,      /* machine only: overloaded CPUs (P1) at the daemon's last tick */
    SIM_METRIC_OVERLOADED_MAX,  /* machine only: largest number at any tick */
    SIM_METRIC_OVERLOADED_MEAN, /* machine only: mean over ticks, thousandths of a CPU */
    SIM_METRIC_TICKS,           /* machine only: plans computed */
    SIM_METRIC_REFUSALS,        /* machine only */
    SIM_METRIC_VETOES,          /* machine only: passes refused for locality (P7) */

    /* Memory. */
    SIM_METRIC_PAGES_MOVED, /* 4 KiB pages moved between nodes */
    SIM_METRIC_SCANS,       /* ranges marked for hinting faults (P9) */
    SIM_METRIC_SCAN_WINDOW, /* the largest of the daemon's last scan windows of each process, upper bound, MiB (P16) */
    SIM_METRIC_COVERAGE,    /* regions marked per pass over a process, mean permille (P9) */
    SIM_METRIC_HINT_FAULTS, /* hinting faults: the kernel's in 4 KiB pages, the daemon's in 2 MiB blocks */
    SIM_METRIC_SKIPS,       /* regions skipped because no thread was known to use them (P9) */

    /* Nodes on which threads were born. */
    SIM_METRIC_FORKED_MAX, /* threads born on the node that got most */
    SIM_METRIC_FORKED_MIN, /* threads born on the node, among those with CPUs, that got fewest */

    SIM_METRIC_EVENTS, /* machine only: events of the model, which is the cost of a run */
    SIM_METRIC_MAX,
    SIM_METRIC_INVALID = -EINVAL,
} SimMetric;

/* "ops", "moves-cross-late": the names in expectations; NULL-terminated, in the order of SimMetric. */
extern const char *const sim_metric_names[];

/* Whether a metric exists only for the machine as a whole. */
bool sim_metric_is_machine(SimMetric metric);

/* One row of the picture; also written while the daemon is off. */
typedef struct SimTick {
    uint64_t usec;         /* end of the row */
    uint32_t n_overloaded; /* as seen by the daemon (P1); 0 while it is off */
    uint32_t n_crowded;    /* CPUs with two or more runnable threads now */
    uint32_t n_leases;     /* leases in force */
    uint32_t n_actions;    /* actions of the plans in this row */
    uint64_t plan_nsec;    /* CPU time of the plans, if SimHooks.clock_nsec is set; not reproducible */
} SimTick;

typedef struct SimResult {
    uint64_t duration_usec; /* when the run ended: all threads had, or the scenario's time was up */
    char **workloads;       /* [n_workloads]: names, in the scenario's order */
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

/* The row of SimResult.used for one tick and node: n_workloads numbers. */
const uint32_t *sim_result_used(const SimResult *result, size_t tick, uint32_t node);

SimResult *sim_result_free(SimResult *result);
DEFINE_CLEANUP(SimResult *, sim_result_free)

/* All members may be zero. */
typedef struct SimHooks {
    void *userdata;
    /* Called once per tick; false ends the run with -ECANCELED. */
    bool (*progress)(void *userdata, uint64_t done_usec, uint64_t total_usec);
    /* CPU time of this thread, to measure the cost of plans. */
    uint64_t (*clock_nsec)(void);
    /* Called with each plan of the daemon before it is carried out. Returns 0, or -errno, which ends the run. */
    int (*plan)(void *userdata, const TranscriptEntry *entry);
    /* Limit of events; 0: 1,000 million, which take some minutes. */
    uint64_t events_max;
} SimHooks;

/* Runs variant `variant` (an index into the scenario's) with `seed`. Returns 0; -ENOMEM; -EINVAL for a
 * scenario that cannot be run (a workload has no CPU it may use, or there are too many threads or regions);
 * -EOVERFLOW at the limit of events; -EUCLEAN, in debug builds, if a plan breaks an invariant; -ECANCELED; or
 * what a hook returned. On failure *ret_error is a malloc'd sentence or NULL. `hooks` may be NULL. */
int sim_run(const SimSpec *spec, size_t variant, uint64_t seed, const SimHooks *hooks, SimResult **ret,
            char **ret_error);
