/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* plan_compute(): from a World and the policies in force to what should change now, and what was refused and why. Pure:
 * no I/O, no clock, no memory of its own. The same World, policies and time give the same Plan (I12). */

#include "base/ids.h"
#include "policy/policy.h"
#include "world/world.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_ACTIONS_PER_TICK 64U  /* action budget of one tick (P7); recalls and releases are not counted */
#define PLAN_REFUSALS_MAX     256U /* kept per plan; the rest is only counted */

typedef enum PlanKind {
    PLAN_KIND_SET_HOME,   /* confine a process to its group's home */
    PLAN_KIND_LEND,       /* let one thread use one idle CPU outside its home */
    PLAN_KIND_RECALL,     /* take it back: the thread's mask is its home again */
    PLAN_KIND_RELEASE,    /* put back what was there before we came: whole process, or one thread */
    PLAN_KIND_PUSH,       /* move one thread to an idle CPU of its mask, which stays as it is */
    PLAN_KIND_MOVE_PAGES, /* have the memory of a process moved to its home; it takes as long as it takes */
    PLAN_KIND_MAX,
    PLAN_KIND_INVALID = -EINVAL,
} PlanKind;

/* Why an action was decided. */
typedef enum PlanRule {
    PLAN_RULE_FIXED_HOME,  /* Mode=fixed, Nodes= */
    PLAN_RULE_FIRST_HOME,  /* its first home: the fewest near nodes that fit it (P15) */
    PLAN_RULE_COMPRESS,    /* fewer nodes fit it now, or are better for all (P15) */
    PLAN_RULE_SPREAD,      /* it needs more nodes (P15) */
    PLAN_RULE_REHOME,      /* other nodes, as many as before: where its memory is, or an exchange (P6, P15) */
    PLAN_RULE_REVERT,      /* back where it was: its threads wait longer now than before */
    PLAN_RULE_NEW_MEMBER,  /* a process or thread of a group that has a home already */
    PLAN_RULE_IDLE_NEARBY, /* an idle CPU, and the thread waits (P2) */
    PLAN_RULE_IDLE_CORE,   /* an idle core of its home, and the thread shares its own (P4) */
    PLAN_RULE_OWNER_WAITS, /* recall: the CPU's owner is back */
    PLAN_RULE_LEASE_ENDED, /* recall: LeaseSec= is over */
    PLAN_RULE_DEMAND_FELL, /* recall: the home has room again, or the thread sleeps */
    PLAN_RULE_CPU_GONE,    /* recall: offline, reserved, or outside the thread's cpuset now */
    PLAN_RULE_HOME_CHANGED,  /* recall: the thread has another home now */
    PLAN_RULE_WORKLOAD_GONE, /* release: no policy gives it a home any more */
    PLAN_RULE_PAUSED,        /* release or recall: by the administrator */
    PLAN_RULE_REPINNED,      /* release: somebody else changed a mask of the process */
    PLAN_RULE_ROAMS,         /* release: it needs all nodes; the kernel places its threads */
    PLAN_RULE_HOME_GONE,     /* release: the home has no usable CPU left inside the cpuset */
    PLAN_RULE_ANEW,          /* release: the CPUs of the machine, or what is sensed of them, changed */
    PLAN_RULE_FOLLOW_HOME,   /* move-pages: memory outside the nodes of its home (P18) */
    PLAN_RULE_OWN_NODE,      /* a thread: of the nodes of its home, the one with the memory it uses (P11) */
    PLAN_RULE_INTERLEAVE,    /* move-pages: Mode=interleave, and some node has too much of it (P17) */
    PLAN_RULE_EVEN_OUT,      /* move-pages: one of several nodes has nearly all of it (EvenOut, P17) */
    PLAN_RULE_FOLLOW_PIN,    /* move-pages: memory outside the nodes that somebody else pinned its threads to (P18) */
    PLAN_RULE_GO_BACK,       /* move-pages: its memory to where it lay before it followed the home (P15, P18) */
    PLAN_RULE_FOLLOW_USE,    /* move-pages: memory to the threads that use it (P13, P18), or striped (P17) */
    PLAN_RULE_MAX,
    PLAN_RULE_INVALID = -EINVAL,
} PlanRule;

/* Why something considered was not done. The numbers are for explain; `limit` is what `value` was held against. */
typedef enum PlanReason {
    PLAN_REASON_NO_POLICY, /* no policy matches */
    PLAN_REASON_MODE_NONE,
    PLAN_REASON_PAUSED,
    PLAN_REASON_OBSERVE,          /* Act=observe, or the daemon may not change anything */
    PLAN_REASON_TOO_YOUNG,        /* MinAgeSec= */
    PLAN_REASON_FOREIGN_AFFINITY, /* pinned by somebody else */
    PLAN_REASON_REPINNED,         /* re-pinned by somebody else while managed: yielded */
    PLAN_REASON_PER_CPU,          /* I2 */
    PLAN_REASON_CLASS,            /* I2 */
    PLAN_REASON_DENIED,           /* the kernel refused before */
    PLAN_REASON_UNREADABLE,       /* I10 */
    PLAN_REASON_NO_HOME,          /* not confined by us: the kernel can use every CPU it may use */
    PLAN_REASON_IDLE,             /* it hardly runs, and is not worth a home */
    PLAN_REASON_NOT_OVERLOADED,   /* value: the longest wait of its threads; limit: WaitPermille */
    PLAN_REASON_HOME_HAS_IDLE,    /* the kernel can still use an idle CPU at home */
    PLAN_REASON_NO_IDLE_CPU,
    PLAN_REASON_STEAL_OFF,
    PLAN_REASON_SCOPE,          /* idle CPUs exist, beyond Scope= */
    PLAN_REASON_NODE_LIMIT,     /* value: nodes; limit: NodeLimit= (P3, I8) */
    PLAN_REASON_MAX_DISTANCE,   /* value: distance; limit: MaxDistance= (P3, I8) */
    PLAN_REASON_IDLE_TOO_SHORT, /* value: expected idle usec; limit: IdleCostRatio x action cost (P2) */
    PLAN_REASON_RESIDENCY,      /* value: usec since its last move; limit: MinResidencySec= (P7, I7) */
    PLAN_REASON_COOLDOWN,       /* the CPU was recalled a short time ago, mostly for its owner */
    PLAN_REASON_LOCALITY,       /* veto; value: vetoes so far; limit: NiceTries (P7) */
    PLAN_REASON_BACKOFF,        /* value: ticks left; limit: the present back-off (P7) */
    PLAN_REASON_BUDGET,         /* actions, or searches for an idle CPU, of this tick (P7) */
    PLAN_REASON_RATE_WORKLOAD,  /* cross-node bucket of the workload (I4) */
    PLAN_REASON_RATE_HOST,      /* cross-node bucket of the host (I4) */
    PLAN_REASON_CPUSET,         /* the idle CPUs are outside its cpuset (I1) */
    PLAN_REASON_NO_CPUS,        /* Nodes= has no usable CPU inside the cpuset */
    PLAN_REASON_REHEARSAL,      /* memory has no place there */
    PLAN_REASON_FOLLOW_OFF,     /* Follow=no */
    PLAN_REASON_EVIDENCE,    /* where its memory is now is not known; value: age of what is, limit: in usec */
    PLAN_REASON_MEMORY_NEAR, /* value: bytes elsewhere; limit: what is too little to be worth it (P18) */
    PLAN_REASON_UNSETTLED,   /* it is at this home too short a time for dealing out; value, limit: in usec (P17) */
    PLAN_REASON_KERNEL_BALANCES, /* kernel.numa_balancing moves memory, and it is not seen who uses it */
    PLAN_REASON_MEMORY_PRESSURE, /* value: permille; limit: MaxPressure= (P19) */
    PLAN_REASON_HEADROOM,        /* value: bytes of room in its home; limit: least that is worth it (P19) */
    PLAN_REASON_BANDWIDTH, /* value: what its home's memory could give it; limit: what it is given now; B/s (P15) */
    PLAN_REASON_RATE_MEMORY,     /* another process of the workload uses up RateLimit= (P20, I5) */
    PLAN_REASON_MEMORY_EVEN, /* value: bytes beyond a node's share; limit: what is too little to stripe (P17) */
    PLAN_REASON_FITS_NODE, /* value: what it runs; limit: more than the node of its memory could run (P17) */
    PLAN_REASON_EVEN_OUT_OFF, /* EvenOut=no */
    PLAN_REASON_USE_AWAITED,  /* who uses which part of its memory is being found out, and decides (P13, P15) */
    PLAN_REASON_ALL_BUSY,     /* one thread, beside its memory, and no CPU of the machine is idle for long (P15) */
    PLAN_REASON_MEMORY_BOUND, /* value: bytes that somebody else bound; limit: what is too little to matter */
    PLAN_REASON_POOLED, /* its threads share all of its home (P11); value: what they wait, limit: what is too much */
    /* Why a group keeps its home, wherever the packing would have it; see PlannerStay. */
    PLAN_REASON_SETTLING,      /* value: usec since it got the home; limit: how long it is kept (P15, I7) */
    PLAN_REASON_TO_AND_FRO,    /* it had to go back; value: usec until it may go again (P7) */
    PLAN_REASON_MEMORY_MOVING, /* value: bytes of processes of which some move; limit: too little to matter (P15) */
    PLAN_REASON_SLOWER, /* together it gets on more slowly; value: how many nodes its memory lies on instead (P15) */
    PLAN_REASON_CONVERGED,     /* value: the share of its memory on the one node of its home; limit (P16) */
    PLAN_REASON_MAX,
    PLAN_REASON_INVALID = -EINVAL,
} PlanReason;

typedef struct PlanRange {
    uint64_t start, end; /* addresses */
    NodeIx to;           /* one of the order's nodes; NODE_NONE: striped over them */
} PlanRange;

/* What is to be done about memory. */
typedef struct PlanMemory {
    CpuMask from;   /* NodeIx bitmap: nodes that have some of it and should not */
    CpuMask to;     /* NodeIx bitmap; to several it is spread by blocks, if it has no ranges */
    CpuMask help;   /* NodeIx bitmap: of `from`, those whose CPUs may help; NULL: none */
    bool stripe;    /* also what lies on one of `to` (P17); else that stays */
    uint64_t bytes; /* that are elsewhere, or too many on a node, as far as is known */
    uint64_t reserve_bytes, rate_bytes; /* P19, P20: stay free on each node; a second, to each node */
    uint32_t headroom_percent;          /* P19: of each node stays free besides */
    int nice;                           /* of who moves */
    bool shared;                        /* also what others map */
    const PlanRange *
        ranges; /* ascending and apart; NULL: all there is. Of who asked for the order. Striped, or each to its node */
    size_t n_ranges;
} PlanMemory;

typedef struct PlanAction {
    PlanKind kind;
    PlanRule rule;
    uint8_t mechanism; /* the N of P<N> */
    TaskKey subject;   /* tid 0: the whole process */
    WorkloadIx workload;
    uint64_t group_id;
    CpuMask from; /* the mask the subject must have now; anything else is somebody else's doing */
    CpuMask to;   /* the mask it gets. Interned in the World's pool. Of MOVE_PAGES both are NULL */
    CpuMask
        original; /* SET_HOME: what to put back one day, for threads of which that is not known yet. A thread
                           whose parent was ours was born with our mask, and its own is not what `from` says */
    CpuMask home_nodes; /* SET_HOME, and RECALL to a changed home: NodeIx bitmap of the home, to be shown */
    CpuIx cpu;          /* LEND, RECALL, PUSH: the CPU concerned */
    CpuIx from_cpu;     /* PUSH: where it runs; else nothing is done */
    bool cross_node;
    uint32_t distance;   /* LEND: from the thread's home node; 10 on the same node. PUSH: from where it runs */
    uint64_t lease_usec; /* LEND */
    PlanMemory memory;   /* MOVE_PAGES */
    uint32_t value;      /* the number that decided: wait, busy, or idle permille; MiB */
    uint32_t limit;      /* what it was held against */
} PlanAction;

typedef struct PlanRefusal {
    PlanReason reason;
    uint8_t mechanism;
    TaskKey subject; /* pid 0: about the group as a whole; tid 0: a process */
    WorkloadIx workload;
    uint64_t group_id; /* 0: none */
    CpuIx cpu;
    uint64_t value, limit;
} PlanRefusal;

/* What the steal pass of one group concluded; plan_commit() keeps it as the group's guards (P7). */
typedef struct PlanPass {
    uint64_t group_id;
    uint32_t n_vetoes;
    uint32_t backoff_ticks;
    uint64_t backoff_until_tick;
} PlanPass;

/* Another home for a group; plan_commit() keeps it, unless everything this plan was to do for it failed. */
typedef struct PlanHome {
    uint64_t group_id;
    CpuMask home; /* CPUs; NULL: it roams */
    CpuMask home_nodes;
    uint32_t wait_permille;   /* of the CPU time its threads want, what they wait now */
    uint32_t others_permille; /* the same of all other groups */
    bool guessed;             /* where its memory is was not known */
    bool judged;              /* the home is the one it has, and proved to be no worse than the last one */
    bool reverts;             /* it is the one before: the last one proved to be worse */
} PlanHome;

/* Another node for a thread within the home of its process; plan_commit() keeps it. */
typedef struct PlanThread {
    TaskKey task;
    NodeIx home_node; /* NODE_NONE: all of the home */
    bool spilled;     /* to where its set has no room for it; for a while threads are not assigned anew then */
} PlanThread;

/* A group whose threads are to share all CPUs of its home, or not any more (P11); plan_commit() keeps it. */
typedef struct PlanPool {
    uint64_t group_id;
    uint64_t until_usec;      /* 0: its threads have nodes of their own again */
    uint64_t next_usec;       /* it is not tried before */
    uint32_t before_permille; /* of a trial: which part of what they want they waited with a node each; else 0 */
    uint32_t others_permille; /* and all others */
    uint64_t progress;        /* and how fast they got on; 0: it is not known */
} PlanPool;

/* A group that has converged on its home, or has not any more (P16); plan_commit() keeps it. */
typedef struct PlanFreeze {
    uint64_t group_id;
    bool frozen;
    uint32_t strength; /* as in plan/scan/converge.h, of 1024 */
} PlanFreeze;

typedef struct PlanScratch PlanScratch;

typedef struct Plan {
    uint64_t tick;
    uint64_t now_usec;
    PlanAction *actions; /* in the order to be carried out: releases, recalls, homes, lends, pushes, memory */
    size_t n_actions, actions_capacity;
    PlanRefusal *refusals;
    size_t n_refusals, refusals_capacity;
    uint64_t n_refused[PLAN_REASON_MAX]; /* all, also those not kept */
    PlanPass *passes;
    size_t n_passes, passes_capacity;
    PlanHome *homes;
    size_t n_homes, homes_capacity;
    PlanThread *threads;
    size_t n_threads, threads_capacity;
    PlanPool *pools;
    size_t n_pools, pools_capacity;
    PlanFreeze *freezes;
    size_t n_freezes, freezes_capacity;
    bool pressed;       /* someone waits, or a lease runs: keep the fast tick */
    bool full;          /* that is all, and there is no idle CPU to lend: no tick would help */
    uint32_t n_waiting; /* threads' worth of waiting in groups that could be lent a CPU, at their homes */
    bool may_borrow;    /* some group could be lent a CPU: pressure is worth a tick */
    bool settled;       /* homes were looked at, and nothing about them was changed or is awaited */
    uint32_t n_overloaded, n_idle; /* CPUs (P1) */
    PlanScratch *scratch;          /* working memory, kept from plan to plan */
} Plan;

/* Settings of the daemon that bound every policy. */
typedef struct PlanLimits {
    bool observe;                      /* no right to change anything: everything is refused with OBSERVE */
    bool would;                        /* what is only observed (Act=observe) is decided as if it was not */
    bool slow_tick;                    /* homes and members are looked at in this tick too */
    uint32_t cross_node_moves_per_sec; /* of the host */
    uint32_t cross_node_burst;
} PlanLimits;

/* Computes the plan for this instant (world->now_usec). The World is not changed, except that masks may be interned
 * in its pool. *ret must be zeroed or a finished Plan, whose memory is used again. Returns 0 or -ENOMEM. */
int plan_compute(World *world, const PolicySet *policies, const PlanLimits *limits, Plan *ret);
void plan_done(Plan *plan);

/* Memory of one process to the threads that use it, or striped over the nodes of those that share it. */
typedef struct PlanUse {
    TaskKey subject;         /* the process */
    const PlanRange *ranges; /* borrowed until the plan was carried out */
    size_t n_ranges;
    uint64_t bytes;
    hwloc_const_bitmap_t from, to; /* NodeIx; borrowed */
    bool stripe;
} PlanUse;

/* The plan that orders memory to who uses it: of each of `n`, or a refusal for the reasons that it does not follow its
 * home for (P19, P20, I5, I7). It is carried out and committed as any other plan. Returns 0 or -ENOMEM. */
int plan_follow_use(World *world, const PolicySet *policies, const PlanLimits *limits, const PlanUse *uses,
                    size_t n, Plan *ret);

/* The plan that puts back everything done to one workload, or to all of them (WORKLOAD_NONE), under the given rule.
 * It is carried out and committed as any other plan; the caller pauses the workload, or the next plan starts over. */
int plan_release(World *world, WorkloadIx workload, PlanRule rule, Plan *ret);

/* What became of one action; made by act, folded back by plan_commit(). */
typedef enum PlanOutcome {
    PLAN_OUTCOME_DONE,
    PLAN_OUTCOME_GONE,         /* the task exited */
    PLAN_OUTCOME_FOREIGN,      /* its mask was not what we expected: somebody else's, left alone */
    PLAN_OUTCOME_RETRY,        /* a passing condition; nothing changed */
    PLAN_OUTCOME_REFUSED,      /* the kernel said no for good */
    PLAN_OUTCOME_UNJOURNALLED, /* it could not be written down first, so it was not done (I3) */
    PLAN_OUTCOME_SKIPPED,      /* dry run */
    PLAN_OUTCOME_PARTLY, /* so far of some of its threads only, see PlanPart; the next plan goes on with it */
    PLAN_OUTCOME_WOULD,  /* it would have been done; see plan/would.h */
    PLAN_OUTCOME_MAX,
    PLAN_OUTCOME_INVALID = -EINVAL,
} PlanOutcome;

/* What became of one thread, where an action on a whole process was carried out thread by thread. */
typedef struct PlanPart {
    size_t action; /* index */
    TaskKey task;
    PlanOutcome outcome;
} PlanPart;

/* Folds a carried-out plan into the World: masks, homes, leases, guards, buckets, counters. `outcomes` has one entry
 * per action; NULL means all DONE (how tests and the simulator apply a plan to its own World, I9). */
int plan_commit(World *world, const PolicySet *policies, const PlanLimits *limits, const Plan *plan,
                const PlanOutcome *outcomes);

/* The same, with the parts of actions (ascending action). Of an action with parts these say what became of each
 * thread, and nothing is learnt of the others; one that is PARTLY without any changed nothing. */
int plan_commit_parts(World *world, const PolicySet *policies, const PlanLimits *limits, const Plan *plan,
                      const PlanOutcome *outcomes, const PlanPart *parts, size_t n_parts);

/* Asserts I1, I2, I4, I5, I6, I7, I8, I10 and the shape of a plan against the World it was made for. 0, or -EUCLEAN
 * and a malloc'd sentence in *ret_what. Tests and debug builds. */
int plan_check(const World *world, const PolicySet *policies, const PlanLimits *limits, const Plan *plan,
               char **ret_what);

/* The stable text of a plan for goldens. Malloc'd. */
char *plan_format(const World *world, const Plan *plan);

/* Short names ("lend", "idle-nearby", "node-limit", "gone"), and one-sentence explanations for explain. */
const char *plan_kind_name(PlanKind kind);
const char *plan_rule_name(PlanRule rule);
const char *plan_rule_text(PlanRule rule);
const char *plan_reason_name(PlanReason reason);
const char *plan_reason_text(PlanReason reason);
const char *plan_outcome_name(PlanOutcome outcome);

/* "stealing" for P2: what SOURCES.md explains under that number; NULL: there is no such mechanism. */
const char *plan_mechanism_name(uint64_t mechanism);

/* What decided, to stand behind such a sentence: " (P2 stealing, 83.0 % against 25.0 %)"; "" when no number did (both
 * are 0) and there is no mechanism. The numbers of an unknown rule are plain. Return `buf`; PLAN_NUMBERS_SIZE is enough
 * for it. */
#define PLAN_NUMBERS_SIZE 128U
char *plan_rule_numbers(PlanRule rule, uint64_t mechanism, uint64_t value, uint64_t limit, char *buf,
                        size_t size);
char *plan_reason_numbers(PlanReason reason, uint64_t mechanism, uint64_t value, uint64_t limit, char *buf,
                          size_t size);
