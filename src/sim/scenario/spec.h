/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A scenario: the machine, its workloads, how they are placed, and the expected results. Everything is resolved:
 * defaults are filled in, variants hold complete rules, policies are parsed and checked against the machine.
 * numaplace.scenario(5) is the manual. */

#include "base/ids.h"
#include "base/util.h"
#include "policy/policy.h"
#include "sim/sim.h"
#include "topo/topology.h"

#include <hwloc/bitmap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits: a scenario is run, so what it asks for must be bounded. */
#define SIM_WORKLOADS_MAX 256U
#define SIM_VARIANTS_MAX  64U
#define SIM_POLICIES_MAX  256U /* inline */
#define SIM_EXPECTS_MAX   1024U
#define SIM_TERMS_MAX     16U /* variants in one Order= */
#define SIM_NAME_MAX      64U
#define SIM_THREADS_MAX   200000U /* of all workloads together */
#define SIM_SEEDS_MAX     10000U

/*
 * Time
 */

typedef enum SimDistKind {
    SIM_DIST_CONSTANT,    /* always `a` */
    SIM_DIST_UNIFORM,     /* from `a` to `b`, both included */
    SIM_DIST_EXPONENTIAL, /* mean `a` */
    SIM_DIST_MAX,
    SIM_DIST_INVALID = -EINVAL,
} SimDistKind;

/* A length of time, drawn each time it is needed. */
typedef struct SimDist {
    SimDistKind kind;
    uint64_t a_usec, b_usec;
} SimDist;

/*
 * The machine beyond its Topology
 */

/* Speed of the hardware, and the costs of a kernel and a daemon on it. Scenarios set only what differs
 * between machines (the first group, [Machine]); the rest is the same in every run. spec.c has the values and
 * their sources. */
typedef struct SimModel {
    uint32_t local_latency_nsec;  /* of one memory access at distance 10 */
    uint32_t remote_latency_nsec; /* at distance 20; linear in distance */
    uint64_t node_bandwidth;      /* bytes per second of one node's memory */
    uint64_t firmware_bandwidth;  /* the same as firmware reports it; 0: not reported */
    uint32_t smt_permille;        /* speed of each of two busy siblings; 1000: that of a whole core */

    bool counters; /* the daemon can count cycles, instructions and misses */

    uint32_t cycles_per_usec;  /* of a CPU */
    uint32_t ipc_permille;     /* instructions per cycle of a thread that does not wait for memory */
    uint64_t switch_nsec;      /* per context switch */
    uint64_t wake_remote_nsec; /* per wake-up from another LLC: interrupt and idle exit */
    uint32_t message_lines;    /* cache lines per message that sender and receiver take from each other */
    uint64_t refill_llc_nsec;  /* lost by a move within an LLC: refill of first- and second-level cache */
    uint64_t refill_nsec;      /* lost by a move to another LLC */
    uint64_t slice_usec;       /* slice of the fair scheduler */
    uint64_t balance_nsec;     /* least mean idle time for newidle balancing (P7) */
    uint64_t action_nsec;      /* daemon: per mask set */
    uint64_t page_move_nsec;   /* per 4 KiB page moved between nodes */
    uint64_t hint_fault_nsec;  /* per hinting fault */
    uint64_t fast_tick_usec, slow_tick_usec;
    uint32_t noise_permille; /* largest error of a load the daemon reads, permille of one CPU; uniform */
} SimModel;

extern const SimModel sim_model_default;

/*
 * The kernel's own rules
 */

/* Imbalance between nodes that fork placement allows (P5). */
typedef enum SimImbalance {
    SIM_IMBALANCE_OLD, /* a quarter of a node's CPUs: Linux 5.18 */
    SIM_IMBALANCE_NEW, /* an eighth, or one per LLC: 6.0 (cb29a5c16961) */
    SIM_IMBALANCE_MAX,
    SIM_IMBALANCE_INVALID = -EINVAL,
} SimImbalance;

typedef struct SimKernel {
    bool steal;                /* the STEAL series: a CPU going idle takes a waiting thread of its LLC (P2) */
    uint32_t steal_node_limit; /* only on machines of at most this many nodes (P3) */
    bool wake_affine;          /* a waker may pull its wakee to its own CPU's domain (P4) */
    bool idle_claim;           /* a CPU chosen at fork or wake-up counts as busy at once (P4) */
    bool balance;              /* periodic and newidle balancing across LLCs and nodes (P7) */
    int imbalance;             /* SimImbalance */
    bool numa_balancing;       /* hinting faults, and pages that follow them (P8, P9, P13) */
    bool force_complete; /* regions that no thread is known to use are scanned in turn (P9, f169c62ff7) */
} SimKernel;

/*
 * Workloads
 */

typedef enum SimWake {
    SIM_WAKE_NONE,  /* pauses end by a timer */
    SIM_WAKE_PAIR,  /* in pairs 2k, 2k+1, a thread runs a burst, wakes the other and sleeps */
    SIM_WAKE_GROUP, /* hackbench: the first half sends messages to the second half, see thread.c */
    SIM_WAKE_MAX,
    SIM_WAKE_INVALID = -EINVAL,
} SimWake;

typedef enum SimTouch {
    SIM_TOUCH_THREAD,     /* each thread its private memory, the first thread the shared memory */
    SIM_TOUCH_PROCESS,    /* all memory by the first thread of the process */
    SIM_TOUCH_INTERLEAVE, /* pages are interleaved over all nodes with memory */
    SIM_TOUCH_MAX,
    SIM_TOUCH_INVALID = -EINVAL,
} SimTouch;

/* Identical processes. A process starts with a launcher, which forks the threads one after the other and then
 * sleeps forever. The launcher is no load and is not counted. */
typedef struct SimWorkload {
    char *name;
    char *comm;   /* matched by policies; default: the name */
    char *cgroup; /* default: "/sim.slice/NAME.service"; determines its unit and slice */
    uint32_t n_processes;
    uint32_t n_threads;    /* per process */
    uint64_t start_usec;   /* when the first process starts */
    SimDist arrival;       /* between two process starts; constant 0: all at once */
    uint64_t stagger_usec; /* between two forks of a launcher; 0: all at once */
    uint64_t serial_usec;  /* from the first fork to the second: the serial start of a program */
    uint64_t
        asleep_usec; /* born asleep, unseen at fork; all wake this long after process start; 0: runnable */

    /* One thread. */
    uint64_t work_usec; /* CPU time at full speed with local memory; then it ends; 0: never */
    SimDist burst;      /* run time between two pauses at full speed; constant 0: no pauses */
    SimDist sleep;      /* pause after a burst, SIM_WAKE_NONE only */
    int wake;           /* SimWake */
    bool wake_sync;     /* wakers announce that they are about to sleep (WF_SYNC) */

    /* Memory. */
    uint64_t private_bytes; /* per thread */
    uint64_t shared_bytes;  /* per process, or per piece if shared_by > 0 */
    uint32_t shared_by; /* number of consecutive threads that share a piece; 0: all threads of a process */
    uint32_t memory_permille;    /* share of time at full speed that waits for local memory */
    uint32_t shared_permille;    /* share of accesses that go to shared memory */
    uint32_t miss_overlap;       /* cache misses waited for at once */
    uint64_t bandwidth;          /* bytes per second of a thread at full speed; 0: negligible */
    int touch;                   /* SimTouch */
    uint32_t displaced_permille; /* share of threads that move to the next node after first touch */
    uint64_t displaced_usec;     /* when they move, after the start of the process; 0: at once */

    uint64_t
        phase_usec; /* this long after process start its memory is replaced, on all nodes alike; 0: never */

    /* Where threads may run. NULL: everywhere. */
    hwloc_bitmap_t cpuset;     /* CPUs of its cpuset (I1) */
    hwloc_bitmap_t affinity;   /* mask it sets itself: foreign to the daemon */
    uint64_t affinity_usec;    /* set this long after the process started; 0: from birth */
    hwloc_bitmap_t start_cpus; /* CPUs on which threads are born; they may leave at once */
    bool shuffled;             /* threads are born on random CPUs, idle ones if possible */
} SimWorkload;

/*
 * Variants and expectations
 */

typedef struct SimVariant {
    char *name;
    bool daemon;         /* a daemon runs */
    PolicySet *policies; /* owned reference; never NULL, may be empty */
    SimKernel kernel;
    bool *workloads;  /* [SimSpec.n_workloads]: whether it runs */
    uint64_t ablated; /* World.ablated */
} SimVariant;

typedef enum SimOver {
    SIM_OVER_EVERY,  /* for each seed; variants of one line are compared seed by seed */
    SIM_OVER_MEDIAN, /* for the medians over the seeds */
    SIM_OVER_MAX,
    SIM_OVER_INVALID = -EINVAL,
} SimOver;

typedef enum SimExpectKind {
    SIM_EXPECT_VALUE, /* the metric in one variant */
    SIM_EXPECT_RATIO, /* the metric in the first variant divided by that in the second */
    SIM_EXPECT_ORDER, /* the metric, or its quotient of two variants, rises from term to term */
    SIM_EXPECT_RANGE, /* (largest - smallest) / mean over the seeds, in one variant */
    SIM_EXPECT_MAX,
    SIM_EXPECT_INVALID = -EINVAL,
} SimExpectKind;

typedef enum SimCompare {
    SIM_COMPARE_LESS,
    SIM_COMPARE_AT_MOST,
    SIM_COMPARE_EQUAL,
    SIM_COMPARE_AT_LEAST,
    SIM_COMPARE_MORE,
    SIM_COMPARE_MAX,
    SIM_COMPARE_INVALID = -EINVAL,
} SimCompare;

typedef struct SimExpect {
    SimExpectKind kind;
    SimOver over;
    SimMetric metric;
    size_t workload;                  /* index, or SIZE_MAX: the machine */
    uint32_t variants[SIM_TERMS_MAX]; /* indices */
    uint32_t divisors[SIM_TERMS_MAX]; /* SIM_EXPECT_ORDER: indices; UINT32_MAX: not divided */
    size_t n_variants;
    SimCompare compare; /* SIM_EXPECT_ORDER: MORE */
    double limit;       /* SIM_EXPECT_ORDER: 1 */
    char *text;         /* "Ratio=throughput lend none >= 1.45" */
    uint32_t line;
} SimExpect;

typedef struct SimSpec {
    char *name; /* the file's base name without ".scenario" */
    char *description;
    uint64_t duration_usec; /* limit; a run ends when all threads have */
    uint64_t settle_usec;   /* later events count as late */
    uint32_t n_seeds;

    char *machine;      /* the preset, or the topology's source */
    Topology *topology; /* owned reference */
    SimModel model;
    SimWorkload *workloads;
    size_t n_workloads;
    SimVariant *variants; /* at least one */
    size_t n_variants;
    SimExpect *expects;
    size_t n_expects;
} SimSpec;

void sim_workload_done(SimWorkload *w);

SimSpec *sim_spec_free(SimSpec *spec);
DEFINE_CLEANUP(SimSpec *, sim_spec_free)
