/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the mechanisms while a plan is computed; private to this room.
 *
 * In this order later parts see what earlier ones decided:
 *
 *     planner_prepare -> homes -> release -> recall (must) -> overload -> recall (may) -> home -> steal -> push
 *     -> follow
 *
 * CPUs are classified after the mandatory recalls. So this plan and the next one, computed on the same World
 * with these recalls carried out, see the same idle CPUs (I9). */

#include "plan/ablation.h"
#include "plan/buddies.h"
#include "plan/pack/pack.h"
#include "plan/plan.h"

/* P1: a CPU on which threads wait this long is overloaded, when they do on two consecutive ticks. */
#define OVERLOAD_WAIT_PERMILLE 250U

/* A pass ends after this many fruitless searches for a CPU. A search walks over the idle CPUs, and what blocks
 * the threads that wait most usually blocks the others too. */
#define STEAL_FAILURES_MAX PLAN_ACTIONS_PER_TICK

/* Searches in a tick for all groups together, fruitless or not: four for each action. Without this limit,
 * with 100,000 threads in 2,000 groups on 1,024 CPUs, a plan took 400 ms. */
#define STEAL_SEARCHES_MAX 256U

/* A group that changed its home this often within PingPongSec stays. */
#define PLANNER_CHANGES_MAX 4U

/* Waiting that grew by more than this, as a share of the CPU time wanted, is worse; less is noise. */
#define PLANNER_WORSE_PERMILLE 100U

/* Less memory than this fits the caches of a few cores: a process or group that has less is not far from its
 * memory wherever it runs. A choice of ours. */
#define PLANNER_MEMORY_MIN ((uint64_t)32 << 20)

typedef struct PlannerCpu {
    int32_t lease;                   /* index into World.leases; -1: not lent, or taken back by this plan */
    bool idle;                       /* P1, and not lent */
    bool cooling;                    /* taken back a short time ago, or by this plan */
    bool claimed;                    /* in the home of a thread just sent back there, which may use it */
    bool owned;                      /* in the home, or the home node, of threads that wait */
    uint16_t n_cpus, n_idle, n_busy; /* CPUs of the core with this number (push.c) */
    uint64_t bound_want;             /* by threads of bound groups, in thousandths of a permille */
    uint32_t wait_others;            /* sum over sampled tasks last run here, except its borrower; permille */
} PlannerCpu;

typedef struct PlannerWorkload {
    const Policy *policy; /* NULL: none */
    PlanReason blocked;   /* why its groups get no home; PLAN_REASON_INVALID: they do */
    CpuMask home;         /* of Mode=fixed; only on slow ticks */
    CpuMask home_nodes;
    size_t n_lent; /* across nodes, lends and pushes of this plan */
} PlannerWorkload;

/* Why a group keeps its home, whatever the packing would choose. Its youth is not among these, see PackGroup.young. */
typedef struct PlannerStay {
    bool stays;
    PlanReason reason;     /* PLAN_REASON_INVALID: its policy or an administrator; no refusal then */
    uint64_t value, limit; /* as plan.h has them for the reason */
} PlannerStay;

typedef struct PlannerGroup {
    PlanReason blocked; /* why it has no home; PLAN_REASON_INVALID: it has, or will on a slow tick */
    CpuMask home;       /* once this plan is carried out; NULL: none */
    CpuMask home_nodes;
    PlanRule rule;      /* why its home changes */
    bool roams;         /* it needs all nodes, and therefore is not confined */
    bool enters;        /* some process is at this home, or is sent there by this plan */
    CpuMask due_cpuset; /* the cpuset last asked about, and the answer */
    CpuMask due;
    uint64_t backlog;    /* waiting of its threads at home, permille of a CPU */
    size_t n_pressed;    /* threads that may be lent a CPU: they waited on two ticks */
    size_t n_candidates; /* those of them with no idle CPU at home */
    uint32_t max_wait;
    uint32_t max_steady_wait; /* of threads at home, on both of two ticks */
    uint32_t owner_wait;      /* longest wait of a thread without a lease; only while leases run */
    bool waits;               /* some thread waits in this tick */

    /* choose.c, on slow ticks. Sums over its threads, permille of a CPU: */
    uint32_t n_placeable;
    uint64_t threads_permille;  /* average demand */
    uint64_t steady_permille;   /* part of threads_permille, by threads that run all the time */
    uint64_t seen_permille;     /* part of threads_permille, by threads whose memory use is seen */
    uint64_t alone_permille;    /* part of seen_permille: with memory that one thread uses alone */
    uint64_t sorted_permille;   /* part of alone_permille: with each thread's memory on one node */
    uint64_t few_permille;      /* part of seen_permille: with memory shared by few threads that fit a node */
    uint32_t variance_permille; /* of the number of its threads that want a CPU at an instant; permille */
    uint64_t begun_permille;    /* expected in addition, of threads that began to run within this tick */
    uint32_t n_fresh;           /* threads without any measurement yet */
    PackNodes allowed, chosen;
    bool bound;            /* somebody else bound all its threads to CPUs: none of them can be placed */
    CpuMask cpuset;        /* of all its processes; NULL: they have several, or it is not known */
    uint32_t slice;        /* PackGroup.cpuset */
    uint32_t cut_permille; /* share of its demand that its cpuset cannot give, shared by all groups in it */
    bool cpusets_differ, cpuset_known;
    uint64_t newest_usec;     /* when its newest process was first seen */
    uint64_t waits_mean;      /* the waiting in Group.want_permille */
    uint32_t wait_permille;   /* waits_mean as a share of Group.want_permille */
    uint32_t others_permille; /* the same of all other groups */
    /* Sums over its processes: CPU time, and CPU time times Process.stall_permille and times .traffic_mb. */
    uint64_t stall_weight, stall_sum, traffic_sum;
    bool memory_known;
    uint64_t known_bytes, moving_bytes; /* its memory, and that of processes with memory in flight */
    bool moves;                         /* much of it is in flight */
    bool awaits_memory;                 /* it will be known soon where some of its memory lies */
    bool awaits_use;                    /* and which threads use it, since it lies on several nodes */
    bool use_hidden;                    /* of some process it is never seen which threads use its memory */
    bool put_off;                       /* its first home must wait */
    PlanReason put_off_for;             /* and why */
    PlannerStay stay;
    uint32_t discount_permille; /* PackGroup.memory_discount_permille */
    bool reverts;               /* its last change of home proved to be for the worse */
    bool judged;                /* it proved not to be */
    uint64_t back_weight;       /* the part of stall_weight by processes whose memory goes back */
    PackNodes back_nodes;       /* the nodes where that memory then lies (plan/scan/gather.h) */
    bool goes_back;             /* it is to run where its memory lies again */
    bool went_back;             /* its home is where memory went back, which is over */
    bool takes_part;            /* in the packing */
    bool packed;                /* `chosen` is the answer */
    bool chosen_all;            /* `chosen` is all nodes */
    bool keeps_all;             /* its home is all nodes, and it must stay for now */
    bool apart;                 /* some of its threads are confined to one node of several */
    bool idle;                  /* it wants too little to be given a home */
    bool young;                 /* it is to be spread, which waits for MinAgeSec= */

    uint64_t grown_bytes; /* follow.c, on slow ticks: sum over its processes */
} PlannerGroup;

typedef struct PlannerProcess {
    CpuMask due;    /* the mask its threads are to have; NULL: none */
    bool ours;      /* some thread has a mask from us */
    bool released;  /* by this plan */
    bool home_idle; /* some CPU of `due` is idle */
    bool at_home;   /* or sent there by this plan; slow ticks only */
} PlannerProcess;

typedef struct PlannerTask {
    CpuMask due;      /* the mask it is to have; NULL: none */
    NodeIx home_node; /* NODE_NONE: anywhere in the home */
    bool apart;       /* `due` is its home node's part of its process's mask */
    bool waits;       /* in this tick, while apart: only CPUs of its node would help */
    bool spilled;     /* `home_node` is not that of its set, which has no room for it */
    uint32_t unit;    /* home/thread-units.h; UINT32_MAX: none */
} PlannerTask;

/* Threads that belong together (home/thread-units.h). */
typedef struct PlannerUnit {
    uint64_t pages;  /* in use */
    uint64_t most;   /* accesses that are local on its best node */
    uint64_t regret; /* how many fewer are local on its second best node */
    uint32_t demand; /* permille */
    uint32_t n_threads;
    uint32_t order;          /* index of its row in `unit_use` */
    uint32_t set;            /* the first task of the divided set that it is a part of; UINT32_MAX: none */
    uint32_t first;          /* the task whose node counts as the unit's; never spilled */
    uint32_t spills;         /* the part of its demand that goes to another node; permille */
    int32_t now;             /* its present node; -1: not on one node */
    int32_t here;            /* where it ran, if it is one thread that pauses much; otherwise -1 */
    int32_t node, node_anew; /* its node in the plan */
    int32_t spill_node;      /* where `spills` goes; until known, where some live beside `now`; -1: nowhere */
    bool free;               /* too large for one node */
    bool any_private;        /* some threads use mostly memory of their own */
    bool settled;
} PlannerUnit;

typedef struct PlannerCandidate {
    uint32_t group;
    uint32_t wait;
    uint32_t task;
} PlannerCandidate;

typedef struct PlannerOrder {
    uint64_t key; /* larger first */
    uint64_t tie; /* smaller first */
    uint32_t index;
} PlannerOrder;

struct PlanScratch {
    PlannerCpu *cpus;
    size_t cpus_capacity;
    uint32_t *node_waits; /* per node: longest wait of a thread whose home or home node it belongs to */
    size_t node_waits_capacity;
    PlannerWorkload *workloads;
    size_t workloads_capacity;
    PlannerGroup *groups;
    size_t groups_capacity;
    PlannerProcess *processes;
    size_t processes_capacity;
    PlannerTask *tasks;
    size_t tasks_capacity;
    PlannerUnit *units;
    size_t units_capacity;
    uint64_t *unit_use; /* [units * n_nodes] */
    size_t unit_use_capacity;
    CpuMask *node_due; /* [n_nodes], parts of the process mask `node_due_of` */
    size_t node_due_capacity;
    CpuMask node_due_of;
    PlannerCandidate *candidates;
    size_t n_candidates, candidates_capacity;
    PlannerOrder *order; /* room for all groups or all leases */
    size_t n_order, order_capacity;
    CpuIx *donors; /* idle CPUs, ascending */
    size_t n_donors, donors_capacity;
    hwloc_bitmap_t usable, idle, set, nodes;
    PackGroup *pack_groups; /* by place in `order` */
    size_t pack_groups_capacity;
    PackNodes *pack_sets;
    size_t pack_sets_capacity;
    uint64_t *pack_parts; /* of each, the result of pack_parts() */
    size_t pack_parts_capacity;
    uint32_t *slices; /* PackProblem.cpusets */
    size_t slices_capacity;
    uint32_t n_cpusets;
    BuddySet *sets; /* of the threads of one process */
    size_t sets_capacity;
    uint64_t bound_given; /* demand of bound groups, cut on each CPU to the level of bound.c; permille */
    uint64_t bound_permille[PACK_NODES_MAX]; /* what that takes of each node */
    uint32_t node_waiting[PACK_NODES_MAX];   /* push.c: threads that wait there and have no CPU to go to */
    /* Traffic between the memory of each node and caches, MB/s; 0 where it is not known, and on ticks without
     * homes. */
    uint64_t node_traffic_mb[PACK_NODES_MAX];
    uint64_t unpacked_permille[PACK_NODES_MAX]; /* demand there of managed groups that get no home */
    uint64_t *node_sums;                        /* two of [n_groups * n_nodes]: what ran where, and memory */
    size_t node_sums_capacity;
    uint64_t *parts; /* [n_groups * n_nodes]: demand that the packing expects there, permille of a CPU */
    size_t n_parts, parts_capacity; /* 0: nothing was packed in this plan */
    uint64_t *node_incoming;        /* per node: bytes on their way there */
    size_t node_incoming_capacity;
};

typedef struct Planner {
    World *world;
    const PolicySet *policies;
    const PlanLimits *limits;
    Plan *plan;
    PlanScratch *s;
    bool homes;           /* homes are planned in this tick */
    uint32_t n_cpu_nodes; /* nodes that have CPUs: what NodeLimit= counts (P3) */
    size_t n_spent;       /* of the action budget */
    size_t n_lent_host;   /* lends and pushes across nodes, of this plan */
    size_t n_searches;    /* walks over the idle CPUs */
    int error;            /* -ENOMEM once an array could not grow */
} Planner;

/* Zeroed working memory for the World's present size. Returns 0 or -ENOMEM. */
int planner_prepare(Planner *p);

/* How long threads have home nodes before a trial without, and how long the trial lasts: load averages have
 * then forgotten what was before (LOAD_EWMA_NSEC). A choice of ours. */
#define PLANNER_POOL_USEC 2000000U

#define MECHANISM_CONVERGE 11 /* P11 */

/* Whether a trial without home nodes for its threads is running: pool.h. */
static inline bool planner_tries_pool(const World *world, const Group *group)
{
    return group->pool_before_permille > 0 && world->now_usec < group->pool_until_usec;
}

/* Notes in p->error that memory was out if `r`, the result of a call that can only fail for that, is negative. */
static inline void planner_note(Planner *p, int r)
{
    if (r < 0)
        p->error = -ENOMEM;
}

/* Interns a set. NULL: it is empty, or memory was out (p->error). */
CpuMask planner_intern(Planner *p, hwloc_const_bitmap_t set);

/* Append a copy. When memory is out they set p->error, and the first returns false. */
bool planner_act(Planner *p, const PlanAction *action);
void planner_refuse(Planner *p, const PlanRefusal *refusal);

/* Shorthands: a refusal about a group, and about one of its processes or threads. */
void planner_refuse_group(Planner *p, uint8_t mechanism, PlanReason reason, const Group *group,
                          uint64_t value, uint64_t limit);
void planner_refuse_task(Planner *p, uint8_t mechanism, PlanReason reason, const Task *task, uint64_t value,
                         uint64_t limit);
void planner_refuse_process(Planner *p, uint8_t mechanism, PlanReason reason, const Process *process,
                            uint64_t value, uint64_t limit);

/* Whether there is room in the budget of the tick (P7). */
bool planner_has_budget(const Planner *p);

TaskKey planner_process_key(const Process *process);
int planner_order_compare(const void *a, const void *b);

/* Whether a task may be placed at all (I2, I10). `policy` may be NULL. A thread pinned by somebody else may
 * only be placed with ForeignAffinity=override, and then until it is released. */
bool planner_placeable(const Policy *policy, const Process *process, const Task *task);

/* Whether a release of its process reaches the task: the kernel did not refuse us, and its mask is known (I10). */
bool planner_can_put_back(const Task *task);

/* Marks a CPU as not lent. It counts as idle if it is, but this plan does not lend it again: the action that
 * takes it back may fail. plan_commit() keeps it unlent for the rest of this instant (I9). */
void planner_take_back(Planner *p, CpuIx cpu);

/* Distance from the nearest node of `nodes` to `node`; 0 when `nodes` is empty. */
uint32_t planner_distance(const Topology *topology, CpuMask nodes, NodeIx node);

/* How many CPUs may press on the memory of one node before it counts: imb_numa_nr of the first domain across
 * nodes (P5), at most half of a node's CPUs, but at least one; 0: there is no such domain. */
uint32_t planner_allowed_imbalance(const Topology *topology);

/* Whether work of `permille` of a CPU presses on the memory of `nodes`, whose CPUs are `cpus`: it exceeds the allowed
 * imbalance of all the nodes together, and a quarter of the CPUs, which was the bound before (Linux 5.18, P5). */
bool planner_presses(const Topology *topology, CpuMask cpus, CpuMask nodes, uint64_t permille);

/* Whether threads and memory are left to the kernel where there is a choice of nodes: it balances
 * (kernel.numa_balancing), and which thread uses which memory is seen by it but not here, or does not decide
 * (Mode=interleave). Else the daemon acts beside the kernel as without it. `hidden`: the use of some process
 * concerned is not seen. */
bool planner_is_kernels(const World *world, const Policy *policy, bool hidden);

/* overload.c: P1 */

/* Finds the idle CPUs (into the scratch), and counts them and the overloaded ones (into the plan). */
void overload_classify(Planner *p);

/* home.c: homes, new members */

/* Decides the home of each group, and the mask its threads are due. */
void home_decide(Planner *p);
/* Confines processes to their homes: all on slow ticks, only new ones on others. */
void home_set(Planner *p);
/* After home_set(): records as refusals why packed groups keep their homes (PlannerGroup.stay). */
void home_say_stays(Planner *p);

/* demand.c: P15 */

/* A thread that wants this much does not pause, as far as that can be measured. A choice of ours. */
#define DEMAND_NO_PAUSES_PERMILLE 950U

/* Adds to PlannerGroup the demand of one of its threads, and how it uses memory. */
void demand_gather(const World *world, const Group *group, PlannerGroup *g, const Task *task);
/* Adds PlannerGroup.few_permille: the use of memory shared by few threads (buddies_are_few()) that fit a node. After
 * demand_gather() of all threads. Writes PlanScratch.nodes and .sets. Returns 0 or -ENOMEM. */
int demand_gather_few(Planner *p);
/* The demand of a group, with its peaks held for a while; permille of a CPU. */
uint64_t demand_held(const Group *group);
/* The part of it that the CPUs of its cpuset can give. */
uint64_t demand_given(const Planner *p, size_t index);
/* The demand of all groups, and what the machine can give. If that is less, every group gets less wherever it
 * runs, and a home need not hold more. */
typedef struct DemandShare {
    uint64_t demands, capacity; /* permille */
} DemandShare;
DemandShare demand_share_of_all(const Planner *p);
uint32_t demand_share(const DemandShare *share, uint32_t demand);
/* Whether it was first seen a short time ago; its first home need not wait for a slow tick. */
bool demand_is_new(const Planner *p, const Group *group);
/* Its demand with what its policy and its newly begun threads let expect; at most PACK_DEMAND_MAX. */
uint32_t demand_of_group(const Planner *p, size_t index);
/* The part of it that the CPUs of its cpuset can give. */
uint32_t demand_of_packing(const Planner *p, size_t index);
/* Whether it is one thread, with Mode=auto, whose average demand is known. Then average and variance count. */
bool demand_is_of_one(const Planner *p, size_t index);
/* Variance of its demand (PackGroup.variance_permille). After demand_gather() of all its threads. */
uint32_t demand_variance(const Planner *p, size_t index);

/* thread-homes.c: P11, P14, P15 */

/* Whether the memory use of some thread is known, so that threads can have different home nodes. */
bool thread_homes_known(const Planner *p, size_t group);
/* Finds the home node of each thread in homes of several nodes; slow ticks only. 0 or -ENOMEM. */
int thread_homes_decide(Planner *p);

/* release.c */

/* Restores processes that are to have no home. */
void release_all(Planner *p);
/* Restores every process of one workload, or of all (WORKLOAD_NONE), whatever its policy says. */
void release_workload(Planner *p, WorkloadIx workload, PlanRule rule);

/* recall.c: P2 */

/* Ends leases that must end now, whatever is idle. */
void recall_due(Planner *p);
/* Ends leases that have become useless because the borrower's home has room. */
void recall_to_idle_homes(Planner *p);

/* steal.c: P2 */

/* Gathers the threads that wait; after overload_classify(). */
void steal_gather(Planner *p);
void steal_lend(Planner *p);

/* push.c: P4 */

/* Moves threads that share a core, or keep others waiting, to idle cores of their homes on other nodes; after
 * steal_lend(). */
void push_siblings(Planner *p);

/* follow.c: P18, P19, P20 */

/* Requests migration of memory to its home; slow ticks only. */
void follow_homes(Planner *p);
/* follow-use.c: requests migration of memory to its users. */
void follow_uses(Planner *p, const PlanUse *uses, size_t n);
/* Notes that the migration request was accepted. `policy` may be NULL. */
void follow_begun(World *world, const Policy *policy, const PlanAction *action, Process *process);

/* nearest.c: P2, P3 */

typedef struct NearestSeeker {
    const Task *task;
    const Process *process;
    const PlannerGroup *g;
    const Policy *policy;
    NodeIx home_node; /* of a thread confined to one node of the home; else NODE_NONE */
    CpuIx origin;     /* the CPU it ran on last, if its mask has that; else CPU_NONE */
} NearestSeeker;

typedef struct NearestFind {
    CpuIx cpu; /* CPU_NONE: none, for the following reason */
    PlanReason reason;
    uint64_t value, limit;
    TopologyLevel level;
    uint32_t distance;
    bool cross_node;
} NearestFind;

NearestSeeker nearest_seeker(const Planner *p, size_t task_index);

/* The nearest donor the thread may have, or why it may not have the nearest. Without `cross_node` only donors
 * on its home, or home node, count. */
NearestFind nearest_find(const Planner *p, const NearestSeeker *seeker, bool cross_node);

/* The same find, with a reason why not. */
NearestFind nearest_blocked(NearestFind find, PlanReason reason, uint64_t value, uint64_t limit);

/* guard.c: P7 */

/* Whether a task may not be moved yet; then *ret_value is the time since its last move, usec. */
bool guard_residency(const Policy *policy, const Task *task, uint64_t now_usec, uint64_t *ret_value);

typedef enum GuardPass {
    GUARD_PASS_NO_WISH, /* no thread wants a CPU */
    GUARD_PASS_CHANGED, /* something was lent */
    GUARD_PASS_VETOED,  /* a lend was vetoed for locality, and nothing was lent */
    GUARD_PASS_NOTHING, /* wanted, but nothing could be done */
} GuardPass;

/* The guards of a group after a pass in this tick. */
PlanPass guard_after(const Group *group, const Policy *policy, uint64_t tick, GuardPass result);

/* Cool-down of a CPU recalled for its owner, as a multiple of guard_cooldown_unit(): 1, or twice the last one
 * if this lease did not outlive the last cool-down. */
uint32_t guard_cooldown(const CpuLoad *cpu, const Policy *policy, uint64_t held_usec, uint64_t interval_usec);
uint64_t guard_cooldown_unit(const Policy *policy, uint64_t interval_usec);
/* The same in microseconds, once `cooldown_ticks` has the new multiple. A single unit is divided by the
 * number of units that the lease lasted. */
uint64_t guard_cooldown_usec(const CpuLoad *cpu, const Policy *policy, uint64_t held_usec,
                             uint64_t interval_usec);

/* cap.c: I4 */

/* Level of a bucket now, in thousandths of a token. */
uint64_t cap_level(const Bucket *bucket, uint32_t per_sec, uint32_t burst, uint64_t now_usec);

/* Which bucket has no token left for one more move across nodes of this workload in this plan: RATE_WORKLOAD or
 * RATE_HOST; PLAN_REASON_INVALID: none. */
PlanReason cap_reason(const Planner *p, WorkloadIx workload);

/* Whether `n` + 1 tokens can be taken. */
bool cap_has(const Bucket *bucket, uint32_t per_sec, uint32_t burst, uint64_t now_usec, size_t n);

/* Takes one token, or what is left. */
void cap_take(Bucket *bucket, uint32_t per_sec, uint32_t burst, uint64_t now_usec);
