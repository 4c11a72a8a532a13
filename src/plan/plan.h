/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* plan_compute() derives from a World and the policies in force what to change now, and what was refused and why. It
 * is pure: no I/O, no clock, no state of its own. The same World, policies and time give the same Plan (I12). */

#include "base/ids.h"
#include "policy/policy.h"
#include "world/world.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_ACTIONS_PER_TICK 64U  /* action budget of one tick (P7); recalls and releases do not count */
#define PLAN_REFUSALS_MAX     256U /* kept per plan; the rest is only counted */

/* In the order in which a plan lists them and act carries them out. */
typedef enum PlanKind {
    PLAN_KIND_RELEASE,    /* restore the original masks of a process or of one thread */
    PLAN_KIND_RECALL,     /* take a lent CPU back: the thread's mask is its home again */
    PLAN_KIND_SET_HOME,   /* confine a process or a thread to its group's home */
    PLAN_KIND_LEND,       /* let one thread use one idle CPU outside its home */
    PLAN_KIND_PUSH,       /* move one thread to an idle CPU of its mask, which stays as it is */
    PLAN_KIND_MOVE_PAGES, /* submit a migration request for the memory of a process; it outlasts the tick */
    PLAN_KIND_MAX,
    PLAN_KIND_INVALID = -EINVAL,
} PlanKind;

/* What holds for all actions of a kind; names.c has the table. */
typedef struct PlanKindTraits {
    const char *name; /* "lend" */
    bool spends;      /* counts against the budget of a tick (P7), and waits while a workload is paused */
    bool masks;       /* about CPU masks: threads that had PlanAction.from have PlanAction.to afterwards */
    bool names_cpu;   /* about one thread and PlanAction.cpu, which it gets or loses */
    bool takes_cpu;   /* the thread gets it */
    bool puts_back;   /* threads get the mask they had before the daemon's first change */
} PlanKindTraits;

/* Why an action was decided; names.c has a sentence for each, and the kinds of action that it decides. */
typedef enum PlanRule {
    PLAN_RULE_FIXED_HOME,
    PLAN_RULE_FIRST_HOME,    /* P15 */
    PLAN_RULE_COMPRESS,      /* fewer nodes fit it now, or are better for all groups (P15) */
    PLAN_RULE_SPREAD,        /* P15 */
    PLAN_RULE_REHOME,        /* other nodes, as many as before (P6, P15) */
    PLAN_RULE_REVERT,        /* its former home */
    PLAN_RULE_NEW_MEMBER,    /* a process or thread of a group that already has a home */
    PLAN_RULE_IDLE_NEARBY,   /* P2 */
    PLAN_RULE_IDLE_CORE,     /* its home has an idle core; it shares one, or others wait there (P4) */
    PLAN_RULE_OWNER_WAITS,   /* recall */
    PLAN_RULE_LEASE_ENDED,   /* recall */
    PLAN_RULE_DEMAND_FELL,   /* recall */
    PLAN_RULE_CPU_GONE,      /* recall */
    PLAN_RULE_HOME_CHANGED,  /* recall, or set-home of what has had a mask of ours */
    PLAN_RULE_WORKLOAD_GONE, /* release */
    PLAN_RULE_PAUSED,        /* release or recall */
    PLAN_RULE_REPINNED,      /* release */
    PLAN_RULE_ROAMS,         /* release */
    PLAN_RULE_HOME_GONE,     /* release */
    PLAN_RULE_ANEW,          /* release: the CPUs of the machine, or what is sensed of them, changed */
    PLAN_RULE_FOLLOW_HOME,   /* move-pages (P18) */
    PLAN_RULE_OWN_NODE,      /* set-home of one thread (P11) */
    PLAN_RULE_INTERLEAVE,    /* move-pages: some node has too much of it (P17) */
    PLAN_RULE_EVEN_OUT,      /* move-pages (P17) */
    PLAN_RULE_FOLLOW_PIN,    /* move-pages (P18) */
    PLAN_RULE_GO_BACK,       /* move-pages: to where it lay before it followed the home (P15, P18) */
    PLAN_RULE_FOLLOW_USE,    /* move-pages: to its users (P13, P18), or interleaved (P17) */
    PLAN_RULE_MAX,
    PLAN_RULE_INVALID = -EINVAL,
} PlanRule;

/* Why an action was considered and not done; names.c has a sentence for each. The numbers are for explain:
 * `value` was found, and `limit` is what it was compared with. */
typedef enum PlanReason {
    PLAN_REASON_NO_POLICY,
    PLAN_REASON_MODE_NONE,
    PLAN_REASON_PAUSED,
    PLAN_REASON_OBSERVE,
    PLAN_REASON_TOO_YOUNG, /* value: age; limit: needed age, MinAgeSec= or ten times that; usec */
    PLAN_REASON_FOREIGN_AFFINITY,
    PLAN_REASON_REPINNED, /* yielded */
    PLAN_REASON_PER_CPU,  /* I2 */
    PLAN_REASON_CLASS,    /* I2 */
    PLAN_REASON_DENIED,
    PLAN_REASON_UNREADABLE,     /* I10 */
    PLAN_REASON_NO_HOME,        /* value: what it wants, permille of a CPU */
    PLAN_REASON_IDLE,           /* value: what it wants; limit: least for a home (P15) */
    PLAN_REASON_NOT_OVERLOADED, /* value: the longest wait of its threads; limit: WaitPermille */
    PLAN_REASON_HOME_HAS_IDLE,
    PLAN_REASON_NO_IDLE_CPU,
    PLAN_REASON_STEAL_OFF,
    PLAN_REASON_SCOPE,
    PLAN_REASON_NODE_LIMIT,     /* value: nodes; limit: NodeLimit= (P3, I8) */
    PLAN_REASON_MAX_DISTANCE,   /* value: distance; limit: MaxDistance= (P3, I8) */
    PLAN_REASON_IDLE_TOO_SHORT, /* value: expected idle usec; limit: IdleCostRatio x action cost (P2) */
    PLAN_REASON_RESIDENCY,      /* value: usec since its last move; limit: needed before another (P7, I7) */
    PLAN_REASON_COOLDOWN,       /* the CPU was recalled a short time ago, mostly for its owner */
    PLAN_REASON_LOCALITY,       /* veto; value: vetoes so far; limit: NiceTries (P7) */
    PLAN_REASON_BACKOFF,        /* value: ticks left; limit: the present back-off (P7) */
    PLAN_REASON_BUDGET,         /* P7 */
    PLAN_REASON_RATE_WORKLOAD,  /* I4 */
    PLAN_REASON_RATE_HOST,      /* I4 */
    PLAN_REASON_CPUSET,         /* I1 */
    PLAN_REASON_NO_CPUS,
    PLAN_REASON_REHEARSAL,
    PLAN_REASON_FOLLOW_OFF,
    PLAN_REASON_EVIDENCE,    /* value: age of the last reading; limit: EVIDENCE_USEC (follow-when.c); usec */
    PLAN_REASON_MEMORY_NEAR, /* value: bytes elsewhere; limit: too few to be worth it (P18) */
    PLAN_REASON_UNSETTLED,   /* value: usec at this home; limit: needed before interleaving (P17) */
    PLAN_REASON_KERNEL_BALANCES,
    PLAN_REASON_MEMORY_PRESSURE, /* value: permille; limit: MaxPressure= (P19) */
    PLAN_REASON_HEADROOM,        /* value: bytes of room in its home; limit: least that is worth it (P19) */
    PLAN_REASON_BANDWIDTH,       /* value: B/s that its home could give it; limit: what it gets now (P15) */
    PLAN_REASON_RATE_MEMORY,     /* P20, I5 */
    PLAN_REASON_MEMORY_EVEN,     /* value: bytes beyond a node's share; limit: too few to interleave (P17) */
    PLAN_REASON_FITS_NODE,       /* value: what it runs; limit: more than its memory's node can run (P17) */
    PLAN_REASON_EVEN_OUT_OFF,
    PLAN_REASON_USE_AWAITED,  /* P13, P15 */
    PLAN_REASON_ALL_BUSY,     /* a group of one thread, beside its memory (P15) */
    PLAN_REASON_MEMORY_BOUND, /* value: bytes that somebody else bound; limit: too few to matter */
    PLAN_REASON_POOLED,       /* value: share of time that its threads wait; limit: too much (P11) */
    /* Why a group keeps its home, whatever the packing would choose; see PlannerStay. */
    PLAN_REASON_SETTLING,      /* value: usec since it got the home; limit: how long it is kept (P15, I7) */
    PLAN_REASON_TO_AND_FRO,    /* value: usec until it may move again (P7) */
    PLAN_REASON_MEMORY_MOVING, /* value: bytes of processes with moves in flight; limit: too few (P15) */
    PLAN_REASON_SLOWER,        /* value: how many nodes its memory lies on instead (P15) */
    PLAN_REASON_CONVERGED,     /* value: share of its memory on its home's node; limit: least to stay (P16) */
    PLAN_REASON_MAX,
    PLAN_REASON_INVALID = -EINVAL,
} PlanReason;

typedef struct PlanRange {
    uint64_t start, end; /* addresses */
    NodeIx to;           /* one of the request's nodes; NODE_NONE: interleaved over them */
} PlanRange;

/* A migration request. Nodes are NodeIx bitmaps. */
typedef struct PlanMemory {
    CpuMask from;   /* nodes that have some of the memory and should not */
    CpuMask to;     /* target nodes; several of them get it block by block, unless there are ranges */
    CpuMask help;   /* those of `from` whose CPUs may help to copy; NULL: none */
    bool stripe;    /* also moves what already lies on one of `to` (P17); else that stays */
    uint64_t bytes; /* misplaced, or beyond a node's share, as far as is known */
    uint64_t reserve_bytes, rate_bytes; /* P19: stay free on each node; P20: most per second and node */
    uint32_t headroom_percent;          /* P19: of each node, stays free in addition */
    int nice;                           /* of the mover's threads */
    bool shared;                        /* also pages that other processes map */
    /* Ascending and disjoint; NULL: all memory. Belong to the caller of plan_follow_use(). Interleaved, or
     * each to its own node. */
    const PlanRange *ranges;
    size_t n_ranges;
} PlanMemory;

typedef struct PlanAction {
    PlanKind kind;
    PlanRule rule;
    uint8_t mechanism; /* the N of P<N> */
    TaskKey subject;   /* tid 0: the whole process */
    WorkloadIx workload;
    uint64_t group_id;
    CpuMask from; /* the mask the subject must have now; any other mask was set by somebody else */
    CpuMask to;   /* the mask it gets. Interned in the World's pool. Both are NULL for MOVE_PAGES */
    /* SET_HOME: the mask to restore one day, for threads whose original mask is not known yet. `from` is not
     * always that: a child of a managed thread was born with a mask of ours. */
    CpuMask original;
    CpuMask home_nodes;  /* SET_HOME, and RECALL to a changed home: NodeIx bitmap of the home, to show */
    CpuIx cpu;           /* LEND, RECALL, PUSH: the CPU concerned */
    CpuIx from_cpu;      /* PUSH: where the thread runs; if it has left that CPU, nothing is done */
    bool cross_node;     /* LEND: outside the thread's home or home node. PUSH: always */
    uint32_t distance;   /* from where it ran last; LEND: from its home if that is not known. 10: same node */
    uint64_t lease_usec; /* LEND */
    PlanMemory memory;   /* MOVE_PAGES */
    uint32_t value;      /* the number that decided, in the unit of the rule (numbers.c) */
    uint32_t limit;      /* what it was compared with */
} PlanAction;

typedef struct PlanRefusal {
    PlanReason reason;
    uint8_t mechanism;
    TaskKey subject; /* pid 0: the group as a whole; tid 0: a process */
    WorkloadIx workload;
    uint64_t group_id; /* 0: none */
    CpuIx cpu;
    uint64_t value, limit;
} PlanRefusal;

/* Result of the steal pass of one group; plan_commit() keeps it as the group's guards (P7). */
typedef struct PlanPass {
    uint64_t group_id;
    uint32_t n_vetoes;
    uint32_t backoff_ticks;
    uint64_t backoff_until_tick;
} PlanPass;

/* Another home for a group; plan_commit() keeps it, unless all actions of this plan to that end failed. */
typedef struct PlanHome {
    uint64_t group_id;
    CpuMask home; /* CPUs; NULL: it roams */
    CpuMask home_nodes;
    uint32_t wait_permille;   /* present waiting of its threads, as a share of the CPU time they want */
    uint32_t others_permille; /* the same of all other groups */
    bool guessed;             /* the location of its memory was not known */
    bool judged;              /* not a new home: the present one has proved to be no worse than the last */
    bool reverts;             /* the former home: the present one has proved to be worse */
} PlanHome;

/* Another home node for a thread; plan_commit() keeps it. */
typedef struct PlanThread {
    TaskKey task;
    NodeIx home_node; /* NODE_NONE: all of the home */
    bool spilled;     /* its set's node has no room for it; threads are then not reassigned for a while */
} PlanThread;

/* A group whose threads begin or cease to share all CPUs of its home (P11); plan_commit() keeps it. */
typedef struct PlanPool {
    uint64_t group_id;
    uint64_t until_usec;      /* 0: its threads have home nodes again */
    uint64_t next_usec;       /* no other trial before */
    uint32_t before_permille; /* in a trial: waiting before it, as PlanHome.wait_permille; else 0 */
    uint32_t others_permille; /* the same of all other groups */
    uint64_t progress;        /* and the speed of the group (plan/scan/stall.h); 0: not known */
} PlanPool;

/* A group that has converged on its home, or is no longer converged (P16); plan_commit() keeps it. */
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
    uint64_t n_refused[PLAN_REASON_MAX]; /* of all refusals, also those not kept */
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
    bool pressed;       /* threads wait, a lease runs, or a first home is near: keep the fast tick */
    bool full;          /* pressed only because threads wait, and no CPU is idle: no tick would help */
    uint32_t n_waiting; /* CPUs that groups which may borrow wait for at home, rounded down */
    bool may_borrow;    /* some group could be lent a CPU: pressure is worth a tick */
    bool settled;       /* homes were considered; nothing about them changed, and nothing is awaited */
    uint32_t n_overloaded, n_idle; /* CPUs (P1) */
    PlanScratch *scratch;          /* working memory, kept from plan to plan */
} Plan;

/* Settings of the daemon that bound every policy. */
typedef struct PlanLimits {
    bool observe;                      /* no right to change anything: all is refused with OBSERVE */
    bool would;                        /* what is only observed (Act=observe) is decided like the rest */
    bool slow_tick;                    /* homes and members are planned in this tick too */
    uint32_t cross_node_moves_per_sec; /* of the host */
    uint32_t cross_node_burst;
} PlanLimits;

/* Computes the plan for this instant (world->now_usec). The World is not changed, except that masks may be interned
 * in its pool. *ret must be zeroed or a finished Plan, whose memory is used again. Returns 0 or -ENOMEM. */
int plan_compute(World *world, const PolicySet *policies, const PlanLimits *limits, Plan *ret);
void plan_done(Plan *plan);

/* Memory of one process, to be moved to its users or interleaved over their nodes. */
typedef struct PlanUse {
    TaskKey subject;         /* the process */
    const PlanRange *ranges; /* borrowed until the plan was carried out */
    size_t n_ranges;
    uint64_t bytes;
    hwloc_const_bitmap_t from, to; /* NodeIx; borrowed */
    bool stripe;
} PlanUse;

/* Plans a migration request for each of `n` uses, or a refusal, with the same reasons that keep memory from following
 * its home (P19, P20, I5, I7). The plan is carried out and committed like any other. Returns 0 or -ENOMEM. */
int plan_follow_use(World *world, const PolicySet *policies, const PlanLimits *limits, const PlanUse *uses,
                    size_t n, Plan *ret);

/* Plans to undo everything done to one workload, or to all of them (WORKLOAD_NONE), under the given rule. This plan,
 * too, is carried out and committed like any other. The caller pauses the workload, or the next plan places it
 * again. Returns 0 or -ENOMEM. */
int plan_release(World *world, WorkloadIx workload, PlanRule rule, Plan *ret);

/* What became of one action; made by act, folded back by plan_commit(). */
typedef enum PlanOutcome {
    PLAN_OUTCOME_DONE,
    PLAN_OUTCOME_GONE,         /* the task exited */
    PLAN_OUTCOME_FOREIGN,      /* its mask was not the expected one: set by somebody else, left alone */
    PLAN_OUTCOME_RETRY,        /* a passing condition; nothing changed */
    PLAN_OUTCOME_REFUSED,      /* the kernel refused it for good */
    PLAN_OUTCOME_UNJOURNALLED, /* it could not be recorded first, so it was not done (I3) */
    PLAN_OUTCOME_SKIPPED,      /* dry run */
    PLAN_OUTCOME_PARTLY,       /* done so far for some threads, see PlanPart; the next plan goes on */
    PLAN_OUTCOME_WOULD,        /* it would have been done; see plan/would.h */
    PLAN_OUTCOME_MAX,
    PLAN_OUTCOME_INVALID = -EINVAL,
} PlanOutcome;

/* What became of one thread, of an action on a process that was carried out thread by thread. */
typedef struct PlanPart {
    size_t action; /* index */
    TaskKey task;
    PlanOutcome outcome;
} PlanPart;

/* Folds a carried-out plan into the World: masks, homes, leases, guards, buckets, counters. `outcomes` has one entry
 * per action; NULL means all DONE (how tests and the simulator apply a plan to its own World, I9). */
int plan_commit(World *world, const PolicySet *policies, const PlanLimits *limits, const Plan *plan,
                const PlanOutcome *outcomes);

/* The same, with the parts of actions (ascending action). The parts of an action say what became of each thread, and
 * nothing is learnt of its other threads. An action that is PARTLY but has no parts changed nothing. */
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

/* `kind` is valid. */
const PlanKindTraits *plan_kind_traits(PlanKind kind);

/* Whether the rule decides actions of this kind. False for invalid ones. */
bool plan_rule_decides(PlanRule rule, PlanKind kind);

/* "stealing" for P2: what SOURCES.md explains under that number; NULL: there is no such mechanism. */
const char *plan_mechanism_name(uint64_t mechanism);

/* Format what decided, to follow such a sentence: " (P2 stealing, 83.0 % against 25.0 %)"; "" when both
 * numbers are 0 and there is no mechanism. The numbers of an unknown rule have no unit. Return `buf`;
 * PLAN_NUMBERS_SIZE is enough for it. */
#define PLAN_NUMBERS_SIZE 128U
char *plan_rule_numbers(PlanRule rule, uint64_t mechanism, uint64_t value, uint64_t limit, char *buf,
                        size_t size);
char *plan_reason_numbers(PlanReason reason, uint64_t mechanism, uint64_t value, uint64_t limit, char *buf,
                          size_t size);
