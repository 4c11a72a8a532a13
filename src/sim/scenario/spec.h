/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a scenario says: the machine, who runs on it, who places them, and what must come of it. Everything is resolved:
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
#define SIM_POLICIES_MAX  256U /* inline ones */
#define SIM_EXPECTS_MAX   1024U
#define SIM_TERMS_MAX     16U /* variants in one Order= */
#define SIM_NAME_MAX      64U
#define SIM_THREADS_MAX   200000U /* of all workloads together */
#define SIM_SEEDS_MAX     10000U
#define SIM_SEEDS_DEFAULT 20U

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

/* A length of time drawn anew each time it is needed. */
typedef struct SimDist {
    SimDistKind kind;
    uint64_t a_usec, b_usec;
} SimDist;

/*
 * The machine, beyond its Topology
 */

/* How fast the hardware is, and what a kernel and a daemon pay on it. Scenarios set only what differs between machines
 * (the first group, [Machine]); the rest is the same in every run. The values and their sources are in spec.c. */
typedef struct SimModel {
    uint32_t local_latency_nsec;  /* of one access to memory, distance 10 */
    uint32_t remote_latency_nsec; /* at distance 20; linear in the distance */
    uint64_t node_bandwidth;      /* bytes per second that one node's memory gives */
    uint64_t firmware_bandwidth;  /* what firmware says of that; 0: nothing */
    uint32_t smt_permille;        /* speed of each of two busy SMT siblings; 1000: that of a whole core */

    bool counters;                /* processors count cycles, instructions and misses for the daemon */

    uint32_t cycles_per_usec;  /* of a CPU */
    uint32_t ipc_permille;     /* instructions by cycle of a thread that does not wait for memory */
    uint64_t switch_nsec;      /* one context switch */
    uint64_t wake_remote_nsec; /* a wake-up from another LLC: interrupt and idle exit */
    uint32_t message_lines;    /* cache lines that sender and receiver of a message take from each other */
    uint64_t
        refill_llc_nsec;   /* lost by a thread that ran elsewhere in its LLC: first- and second-level cache */
    uint64_t refill_nsec;  /* lost by a thread that comes to another LLC */
    uint64_t slice_usec;   /* of the fair scheduler */
    uint64_t balance_nsec; /* least idle time that newidle balancing is worth (P7) */
    uint64_t action_nsec;  /* daemon: one mask set */
    uint64_t page_move_nsec;  /* one 4 KiB page moved between nodes */
    uint64_t hint_fault_nsec; /* one hinting fault taken */
    uint64_t fast_tick_usec, slow_tick_usec;
    uint32_t noise_permille; /* a load read by the daemon is off by at most this much of a CPU, evenly */
} SimModel;

extern const SimModel sim_model_default;

/*
 * The kernel's own rules
 */

/* How much imbalance between nodes fork placement allows (P5). */
typedef enum SimImbalance {
    SIM_IMBALANCE_OLD, /* a quarter of the node's CPUs: Linux 5.18 */
    SIM_IMBALANCE_NEW, /* an eighth, or one per LLC, 6.0 (cb29a5c16961) */
    SIM_IMBALANCE_MAX,
    SIM_IMBALANCE_INVALID = -EINVAL,
} SimImbalance;

typedef struct SimKernel {
    bool steal;                /* the STEAL series: a CPU going idle takes a waiting thread of its LLC (P2) */
    uint32_t steal_node_limit; /* ... on a machine of at most so many nodes (P3) */
    bool wake_affine;          /* a waker may pull the thread it wakes to its own CPU's domain (P4) */
    bool idle_claim; /* a CPU chosen at fork or wake-up is seen as busy at once, not when time goes on (P4) */
    bool balance;    /* periodic and newidle balancing across LLCs and nodes (P7) */
    int imbalance;   /* SimImbalance */
    bool numa_balancing; /* hinting faults, and pages that follow them (P8, P9, P13) */
    bool force_complete; /* regions nobody is known to use are scanned in turn (P9, f169c62ff7) */
} SimKernel;

/*
 * Workloads
 */

typedef enum SimWake {
    SIM_WAKE_NONE, /* pauses end by themselves */
    SIM_WAKE_PAIR, /* threads 2k and 2k+1 of a process: each runs a burst, wakes the other and sleeps until woken */
    SIM_WAKE_GROUP, /* the first half of a process's threads sends a message to one of the second half after each burst,
                       each in turn; these run a burst per message and sleep when there is none: hackbench. A sender
                       waits only while the receiver's socket is full, see thread.c */
    SIM_WAKE_MAX,
    SIM_WAKE_INVALID = -EINVAL,
} SimWake;

typedef enum SimTouch {
    SIM_TOUCH_THREAD, /* each thread touches its private memory first, the first thread of a process the shared */
    SIM_TOUCH_PROCESS,    /* the first thread of a process touches everything */
    SIM_TOUCH_INTERLEAVE, /* by pages over all nodes with memory */
    SIM_TOUCH_MAX,
    SIM_TOUCH_INVALID = -EINVAL,
} SimTouch;

/* Processes that are all alike. A process starts with a launcher, which forks its threads one after the other and then
 * sleeps for good; it is no load and is not counted. */
typedef struct SimWorkload {
    char *name;
    char *comm;   /* what policies match; the name unless said */
    char *cgroup; /* "/sim.slice/NAME.service" unless said; its unit and slice follow from it */
    uint32_t n_processes;
    uint32_t n_threads;    /* per process */
    uint64_t start_usec;   /* when the first process starts */
    SimDist arrival;       /* between the starts of two processes; constant 0: all at once */
    uint64_t stagger_usec; /* between two forks of one launcher; 0: all in one instant */
    uint64_t serial_usec;  /* from the first of them to the second: what a program does before it has threads */
    uint64_t
        asleep_usec; /* threads are born asleep, invisible to fork placement, and wake so long after the process
                            * started, all at once; 0: born runnable */

    /* One thread. */
    uint64_t
        work_usec;  /* CPU time at full speed with local memory after which it ends; 0: goes on to the end */
    SimDist burst;  /* run between two pauses, in time at full speed; constant 0: never pauses */
    SimDist sleep;  /* pause after a burst, SIM_WAKE_NONE only */
    int wake;       /* SimWake */
    bool wake_sync; /* wakers say that they are about to sleep (WF_SYNC) */

    /* Memory. */
    uint64_t private_bytes;   /* per thread */
    uint64_t shared_bytes;    /* per process, or per piece: */
    uint32_t shared_by;       /* so many neighbouring threads share a piece of it; 0: all threads of a process */
    uint32_t memory_permille; /* share of the time at full speed that is waiting for local memory */
    uint32_t shared_permille; /* share of the accesses that go to the shared memory */
    uint32_t miss_overlap;    /* so many cache misses are waited for at once */
    uint64_t bandwidth;       /* bytes per second a thread moves at full speed; 0: none worth counting */
    int touch;                /* SimTouch */
    uint32_t
        displaced_permille;  /* share of a process's threads that go to the next node after they touched */
    uint64_t displaced_usec; /* so long after the process started; 0: at once */

    uint64_t
        phase_usec; /* so long after a process started its threads begin to use other memory, as much, which lies on all
                            nodes alike; 0: never */

    /* Where it may run. NULL: everywhere. */
    hwloc_bitmap_t cpuset;     /* CPUs its cpuset allows (I1) */
    hwloc_bitmap_t affinity;   /* CPUs it gave itself: a foreign mask for the daemon */
    uint64_t affinity_usec;    /* so long after its process started; 0: at once */
    hwloc_bitmap_t start_cpus; /* CPUs its threads are born on; it may leave them at once */
    bool shuffled; /* threads are born on CPUs drawn at random, one on which nobody runs if there is one */
} SimWorkload;

/*
 * Variants and expectations
 */

typedef struct SimVariant {
    char *name;
    bool daemon;         /* whether a daemon places */
    PolicySet *policies; /* owned reference; never NULL, may be empty */
    SimKernel kernel;
    bool *workloads; /* [SimSpec.n_workloads]: which of them run */
    uint64_t ablated; /* World.ablated */
} SimVariant;

typedef enum SimOver {
    SIM_OVER_EVERY,  /* holds for each seed, the variants of one line compared seed by seed */
    SIM_OVER_MEDIAN, /* holds for the medians over the seeds */
    SIM_OVER_MAX,
    SIM_OVER_INVALID = -EINVAL,
} SimOver;

typedef enum SimExpectKind {
    SIM_EXPECT_VALUE, /* the metric in one variant */
    SIM_EXPECT_RATIO, /* the metric in the first variant divided by that in the second */
    SIM_EXPECT_ORDER, /* the metric, or its quotient in two variants, rises from term to term */
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
    uint64_t duration_usec; /* at most; a run ends when all threads have */
    uint64_t settle_usec;   /* what happens later counts as late */
    uint32_t n_seeds;

    char *machine;      /* the preset's name, or where the machine is from */
    Topology *topology; /* owned reference */
    SimModel model;
    SimWorkload *workloads;
    size_t n_workloads;
    SimVariant *variants; /* at least one */
    size_t n_variants;
    SimExpect *expects;
    size_t n_expects;
} SimSpec;

/* Frees what a workload holds. */
void sim_workload_done(SimWorkload *w);

SimSpec *sim_spec_free(SimSpec *spec);
DEFINE_CLEANUP(SimSpec *, sim_spec_free)
