/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the mechanisms while a plan is computed; private to this room.
 *
 * The order is the one in which later parts must see what earlier ones decided:
 *
 *     planner_prepare -> homes -> release -> recall (must) -> overload -> recall (may) -> home -> steal -> push
 *     -> follow
 *
 * CPUs are classified after the mandatory recalls. So this plan and the next one, computed on the same World with these
 * recalls carried out, see the same idle CPUs (I9). */

#include "plan/ablation.h"
#include "plan/buddies.h"
#include "plan/pack/pack.h"
#include "plan/plan.h"

/* P1: a CPU on which threads wait this long is overloaded, when they do on two consecutive ticks. */
#define OVERLOAD_WAIT_PERMILLE 250U

/* How many threads of a group may look in vain for a CPU before its pass ends. Looking costs a walk over the idle CPUs,
 * and what blocks the threads that wait most mostly blocks the others too. */
#define STEAL_FAILURES_MAX PLAN_ACTIONS_PER_TICK

/* How many of these walks a tick may make for all groups together, in vain or not: four for each action. Without it
 * a thousand small groups would each make theirs: with 100,000 threads in 2,000 groups on 1,024 CPUs a plan took 400
 * ms. */
#define STEAL_SEARCHES_MAX 256U

/* So many changes of a home within PingPongSec are enough. */
#define PLANNER_CHANGES_MAX 4U

/* Of the CPU time threads want, so much more waiting than before is worse, and less is noise. */
#define PLANNER_WORSE_PERMILLE 100U

/* Less than this fits the caches of a few cores: a process or group that has less is not far from it wherever it runs.
 * A choice of ours. */
#define PLANNER_MEMORY_MIN ((uint64_t)32 << 20)

typedef struct PlannerCpu {
    int32_t lease; /* index into World.leases; -1: not lent, or taken back by this plan */
    bool idle;     /* P1, and not lent */
    bool cooling;  /* taken back a short time ago, or by this plan */
    bool claimed;  /* idle at the home of a thread that was just sent back there */
    bool owned;    /* in the home of a group whose own threads wait */
    uint16_t n_cpus, n_idle, n_busy; /* of the core of this number (push.c) */
    uint64_t bound_want;             /* by PlannerGroup.bound, in thousandths of a permille */
    uint32_t
        wait_others; /* sum over the sampled tasks that ran there last, its borrower excepted; permille */
} PlannerCpu;

typedef struct PlannerWorkload {
    const Policy *policy; /* NULL: none */
    PlanReason blocked;   /* why its groups get no home; PLAN_REASON_INVALID: they do */
    CpuMask home;         /* what Mode=fixed wants; only on slow ticks */
    CpuMask home_nodes;
    size_t n_lent; /* across nodes, by this plan */
} PlannerWorkload;

/* Why a group keeps the home it has, whatever the packing would give it; but for its youth, see PackGroup.young. Of
 * what its policy or an administrator says there is no refusal. */
typedef struct PlannerStay {
    bool stays;
    PlanReason reason; /* PLAN_REASON_INVALID: as its policy or an administrator says */
    uint64_t value, limit; /* as plan.h has them for the reason */
} PlannerStay;

typedef struct PlannerGroup {
    PlanReason
        blocked;  /* why it has no home; PLAN_REASON_INVALID: it has, or gets one at the next slow tick */
    CpuMask home; /* what it has when this plan is carried out; NULL: none */
    CpuMask home_nodes;
    PlanRule rule;      /* why it has another home than before */
    bool roams;         /* it needs all nodes, and is not confined for that */
    bool enters;        /* this plan begins to confine its processes to a home that is new */
    CpuMask due_cpuset; /* the cpuset last asked about, and the answer */
    CpuMask due;
    uint64_t backlog;    /* permille of CPUs its threads wait for */
    size_t n_pressed;    /* threads that may be lent a CPU: they waited on two ticks */
    size_t n_candidates; /* of these, with no idle CPU at home */
    uint32_t max_wait;
    uint32_t max_steady_wait; /* on both of two ticks, of threads at home */
    uint32_t owner_wait;      /* longest wait of a thread that is lent nothing; only while leases run */
    bool waits;               /* some thread waits, on this tick */

    /* choose.c, on slow ticks. Sums over its threads in permille of a CPU */
    uint32_t n_placeable;
    uint64_t threads_permille; /* what its threads want on average */
    uint64_t steady_permille;  /* of that, what those want that run all the time */
    uint64_t seen_permille;    /* of the first, what those want of whom is seen which memory they use */
    uint64_t alone_permille;   /* and of that, what is used by one thread alone */
    uint64_t sorted_permille;  /* and of that, what lies on one node for each */
    uint64_t few_permille;     /* of what is seen, what few threads share whom a node holds */
    uint32_t variance_permille; /* how what they want strays, in permille of a CPU squared */
    uint64_t begun_permille;   /* what those will want more who began to run within this tick */
    uint32_t n_fresh;          /* threads of which nothing is known yet */
    PackNodes allowed, chosen;
    bool bound;                 /* nobody of it can be placed: somebody else has bound all its threads to CPUs */
    CpuMask cpuset;             /* of all its processes; NULL: they have several */
    uint32_t slice;             /* PackGroup.cpuset */
    uint32_t cut_permille;      /* of what it wants, what the CPUs of its cpuset cannot give to all in it */
    bool cpusets_differ, cpuset_known;
    uint64_t newest_usec;     /* when the last of its processes was first seen */
    uint64_t waits_mean;      /* what of Group.want_permille is waiting */
    uint32_t wait_permille;   /* the share of it */
    uint32_t others_permille; /* the same of all other groups */
    /* Of its processes: CPU time, and that times Process.stall_permille and times .traffic_mb */
    uint64_t stall_weight, stall_sum, traffic_sum;
    bool memory_known;
    uint64_t known_bytes, moving_bytes; /* of its memory; the second is on its way */
    bool moves;                 /* much of it is on its way */
    bool awaits_memory;         /* of a process it is not known yet, but soon */
    bool awaits_use;            /* nor who uses it, though it lies apart */
    bool use_hidden;            /* nor will it ever be, of some process */
    bool put_off;               /* its first home */
    PlanReason put_off_for;     /* then: why */
    PlannerStay stay;
    uint32_t discount_permille; /* of what memory counts: PackGroup.memory_discount_permille */
    bool reverts;               /* its last change of home proved to be for the worse */
    bool judged;                /* it did not */
    uint64_t back_weight; /* of stall_weight, that of those whose memory goes back (plan/scan/gather.h) */
    PackNodes back_nodes; /* and where that lies then */
    bool goes_back;             /* it lives where its memory lies again (plan/scan/gather.h) */
    bool takes_part;            /* in the packing */
    bool packed;                /* `chosen` is the answer */
    bool chosen_all;            /* it is all nodes */
    bool keeps_all;             /* it has them for a home, and must stay for now */
    bool apart;                 /* some of its threads live on one node of several */
    bool idle;                  /* it wants too little to be given a home */

    uint64_t grown_bytes; /* follow.c, on slow ticks: sum over its processes */
} PlannerGroup;

typedef struct PlannerProcess {
    CpuMask due;    /* the mask its threads are to have; NULL: none */
    bool ours;      /* some thread has a mask from us */
    bool released;  /* by this plan */
    bool home_idle; /* some CPU of `due` is idle */
    bool at_home;   /* or on its way there, by this plan; slow ticks only */
} PlannerProcess;

typedef struct PlannerTask {
    CpuMask due;      /* the mask it is to have; NULL: none */
    NodeIx home_node; /* NODE_NONE: anywhere in the home */
    bool apart;       /* `due` is less than its process's, for that */
    bool waits;       /* on this tick, and it is apart: what it waits for is on its node */
    bool spilled;     /* `home_node` is not that of its set, which has no room for it */
    uint32_t unit;    /* home/thread-units.h; UINT32_MAX: none */
} PlannerTask;

/* Threads that belong together (home/thread-units.h). */
typedef struct PlannerUnit {
    uint64_t pages;          /* it uses */
    uint64_t most;           /* of its accesses, what is local on the node with most of them */
    uint64_t regret;         /* of its accesses, what would not be local on its second best node */
    uint32_t demand;         /* permille */
    uint32_t n_threads;
    uint32_t order;          /* place of what it uses in `unit_use` */
    uint32_t set;            /* the first task of the set that it is a part of; UINT32_MAX: of none */
    uint32_t first;          /* the task by which it is known where it lives */
    uint32_t spills;         /* of its demand, what goes to another node; permille */
    int32_t now;             /* where it lives, -1: not on one node */
    int32_t node, node_anew; /* where it is to live */
    int32_t spill_node;      /* where those go; before that is known, where some of it live beside `now`; -1: nowhere */
    bool free;               /* too large for one node */
    bool any_private;        /* some have most of what they use for their own */
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
    uint32_t *node_waits; /* per node: longest owner_wait of the groups whose home it is part of */
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
    CpuMask *node_due; /* [n_nodes], of the process mask `node_due_of` */
    size_t node_due_capacity;
    CpuMask node_due_of;
    PlannerCandidate *candidates;
    size_t n_candidates, candidates_capacity;
    PlannerOrder *order;
    size_t n_order, order_capacity;
    CpuIx *donors; /* idle CPUs, ascending */
    size_t n_donors, donors_capacity;
    hwloc_bitmap_t usable, idle, set, nodes;
    PackGroup *pack_groups; /* by place in `order` */
    size_t pack_groups_capacity;
    PackNodes *pack_sets;
    size_t pack_sets_capacity;
    uint64_t *pack_parts; /* of each, what pack_parts() says */
    size_t pack_parts_capacity;
    uint32_t *slices; /* PackProblem.cpusets */
    size_t slices_capacity;
    uint32_t n_cpusets;
    BuddySet *sets; /* of the threads of one process */
    size_t sets_capacity;
    uint64_t bound_given; /* of what PlannerGroup.bound wants, what is not beyond that, of all CPUs; permille */
    uint64_t bound_permille[PACK_NODES_MAX]; /* what it takes of each node */
    uint32_t node_waiting[PACK_NODES_MAX];   /* push.c: threads that wait on it and can go nowhere */
    /* What is moved between the memory of each node and caches, MB/s; 0 where it is not known, and on ticks
     * without homes */
    uint64_t node_traffic_mb[PACK_NODES_MAX];
    uint64_t unpacked_permille[PACK_NODES_MAX]; /* what managed groups run there that get no home */
    uint64_t *node_sums;                     /* twice [n_groups * n_nodes]: what ran where, and memory */
    size_t node_sums_capacity;
    uint64_t *parts; /* [n_groups * n_nodes]: what of each group the packing expects where, permille of a CPU */
    size_t n_parts, parts_capacity; /* 0: nothing was packed in this plan */
    uint64_t *node_incoming; /* per node: memory on its way there */
    size_t node_incoming_capacity;
};

typedef struct Planner {
    World *world;
    const PolicySet *policies;
    const PlanLimits *limits;
    Plan *plan;
    PlanScratch *s;
    bool homes;           /* homes are looked at in this tick */
    uint32_t n_cpu_nodes; /* nodes that have CPUs: what NodeLimit= counts (P3) */
    size_t n_spent;       /* of the action budget */
    size_t n_lent_host;   /* across nodes, by this plan */
    size_t n_searches;    /* walks over the idle CPUs */
    int error;            /* -ENOMEM once an array could not grow */
} Planner;

/* Zeroed working memory for the World's present size. Returns 0 or -ENOMEM. */
int planner_prepare(Planner *p);

/* So long threads have a node each before it is tried to do without, and so long that is tried: the averages of loads
 * have forgotten what was before by then (LOAD_EWMA_NSEC). A choice of ours. */
#define PLANNER_POOL_USEC 2000000U

#define MECHANISM_CONVERGE 11 /* P11 */

/* Whether it is being tried to do without nodes for its threads: pool.h. */
static inline bool planner_tries_pool(const World *world, const Group *group)
{
    return group->pool_before_permille > 0 && world->now_usec < group->pool_until_usec;
}

/* Append a copy. When memory is out they set p->error and return false. */
bool planner_act(Planner *p, const PlanAction *action);
void planner_refuse(Planner *p, const PlanRefusal *refusal);
void planner_pass(Planner *p, const PlanPass *pass);
void planner_home(Planner *p, const PlanHome *home);
void planner_freeze(Planner *p, const PlanFreeze *freeze);
void planner_thread(Planner *p, const PlanThread *thread);
void planner_pool(Planner *p, const PlanPool *pool);

/* Shorthands: a refusal about a group, and about one of its processes or threads. */
void planner_refuse_group(Planner *p, uint8_t mechanism, PlanReason reason, const Group *group,
                          uint64_t value, uint64_t limit);
void planner_refuse_task(Planner *p, uint8_t mechanism, PlanReason reason, const Task *task, uint64_t value,
                         uint64_t limit);
void planner_refuse_process(Planner *p, uint8_t mechanism, PlanReason reason, const Process *process,
                            uint64_t value, uint64_t limit);

/* Whether actions of this kind count against the budget of the tick (P7), and whether there is room in it. */
bool planner_spends(PlanKind kind);
bool planner_has_budget(const Planner *p);

TaskKey planner_process_key(const Process *process);
int planner_order_compare(const void *a, const void *b);

/* Whether a task may be placed at all (I2, I10). `policy` may be NULL. A thread pinned by somebody else is only ours
 * with ForeignAffinity=override, and then until it is released. */
bool planner_placeable(const Policy *policy, const Process *process, const Task *task);

/* Whether a release of its process reaches the task: the kernel did not refuse us, and its mask is known (I10). */
bool planner_can_put_back(const Task *task);

/* The CPU is not lent any more. It counts as idle when it is, but is not lent again by this plan: the action that takes
 * it back may fail, and a lend must not depend on that. plan_commit() sees to the rest of this instant (I9). */
void planner_take_back(Planner *p, CpuIx cpu);

/* Distance from the nearest node of `nodes` to `node`; 0 when `nodes` is empty. */
uint32_t planner_distance(const Topology *topology, CpuMask nodes, NodeIx node);

/* How many CPUs may press on the memory of one node before it counts: imb_numa_nr of the first domain across nodes
 * (P5), and no more than half of the CPUs of a node, but one; 0: there is no such domain. */
uint32_t planner_allowed_imbalance(const Topology *topology);

/* Whether so much work, in permille of a CPU, presses on the memory of these nodes, with these CPUs: it is more than
 * that for each, and more than a quarter of the CPUs, which was allowed before (Linux 5.18, P5). */
bool planner_presses(const Topology *topology, CpuMask cpus, CpuMask nodes, uint64_t permille);

/* Whether who uses which memory is not to be seen, or does not decide (Mode=interleave), and the kernel balances
 * (kernel.numa_balancing): where there is a choice of nodes threads and memory are left to it then, since it sees it.
 * Else the daemon acts beside it as without it. `hidden`: nor is it of some process that this is about. */
bool planner_is_kernels(const World *world, const Policy *policy, bool hidden);

/* overload.c: P1 */

/* Finds the CPUs that are idle (into the scratch), and counts them and the overloaded ones (into the plan). */
void overload_classify(Planner *p);

/* One CPU of the World, without regard to leases. */
bool overload_cpu_is_idle(const World *world, const CpuLoad *cpu);
bool overload_cpu_is_overloaded(const CpuLoad *cpu);

/* home.c: homes, new members */

/* Decides which groups have which home, and which mask each process's threads are due. */
void home_decide(Planner *p);
/* Confines processes to it; slow ticks only. */
void home_set(Planner *p);
/* After homes were set: why groups that were packed keep theirs; PlannerGroup.stay. */
void home_say_stays(Planner *p);
/* The NodeIx bitmap of Nodes=, nodes that do not exist or have no CPUs left out. 0 or -ENOMEM. */
int home_nodes_of_policy(const Topology *topology, const Policy *policy, hwloc_bitmap_t ret);

/* demand.c: P15 */

/* From here on a thread does not pause, as far as that can be measured. A choice of ours. */
#define DEMAND_NO_PAUSES_PERMILLE 950U

/* Adds to PlannerGroup what one of its threads wants, and what of that uses memory alone. */
void demand_gather(const World *world, const Group *group, PlannerGroup *g, const Task *task);
/* And what few of its threads share (buddies_are_few()), whom a node holds. After demand_gather() of all its threads.
 * Writes PlanScratch.nodes and .sets. Returns 0 or -ENOMEM. */
int demand_gather_few(Planner *p);
/* What it wants, held for a while; permille of a CPU. */
uint64_t demand_held(const Group *group);
/* Of that, what the CPUs of its cpuset can give. */
uint64_t demand_given(const Planner *p, size_t index);
/* What of the demands of all groups the machine can give: when that is less than all, every group gets less wherever
 * it is, and a home need not hold more. */
typedef struct DemandShare {
    uint64_t demands, capacity; /* permille */
} DemandShare;
DemandShare demand_share_of_all(const Planner *p);
uint32_t demand_share(const DemandShare *share, uint32_t demand);
/* Whether it was met a short time ago; its first home need not wait for a slow tick. */
bool demand_is_new(const Planner *p, const Group *group);
/* The same, with what its policy and its first threads let expect; at most PACK_DEMAND_MAX. */
uint32_t demand_of_group(const Planner *p, size_t index);
/* Of that, what the CPUs of its cpuset can give. */
uint32_t demand_of_packing(const Planner *p, size_t index);
/* Whether it is one thread, with Mode=auto, of which it is known what it wants on average: that counts then, and how it
 * strays. */
bool demand_is_of_one(const Planner *p, size_t index);
/* How it strays from its mean (PackGroup.variance_permille). After demand_gather() of all its threads. */
uint32_t demand_variance(const Planner *p, size_t index);

/* thread-homes.c: P11, P14, P15 */

/* Whether what some thread of the group uses is known, so that its threads can live on different nodes. */
bool thread_homes_known(const Planner *p, size_t group);
/* Finds the node of each thread in homes of several nodes; slow ticks only. 0 or -ENOMEM. */
int thread_homes_decide(Planner *p);

/* release.c */

/* Puts back what was done to processes that are to have no home. */
void release_all(Planner *p);
/* The same for every process of one workload, or of all (WORKLOAD_NONE), whatever its policy says. */
void release_workload(Planner *p, WorkloadIx workload, PlanRule rule);

/* recall.c: P2 */

/* Leases that must end now, whatever is idle. */
void recall_due(Planner *p);
/* Leases that have become useless because the borrower's home has room. */
void recall_to_idle_homes(Planner *p);

/* steal.c: P2 */

/* Gathers who waits; after overload_classify(). */
void steal_gather(Planner *p);
void steal_lend(Planner *p);

/* push.c: P4 */

/* Moves threads that share a core to idle ones of their homes on other nodes; after steal_lend(). */
void push_siblings(Planner *p);

/* follow.c: P18, P19, P20 */

/* Orders memory home; slow ticks only. */
void follow_homes(Planner *p);
/* follow-use.c: orders memory to who uses it. */
void follow_uses(Planner *p, const PlanUse *uses, size_t n);
/* The order was taken. `policy` may be NULL. */
void follow_begun(World *world, const Policy *policy, const PlanAction *action, Process *process);

/* nearest.c: P2, P3 */

typedef struct NearestSeeker {
    const Task *task;
    const Process *process;
    const PlannerGroup *g;
    const Policy *policy;
    NodeIx home_node; /* of a thread that lives on one node of the home; else NODE_NONE */
    CpuIx origin;     /* the CPU it ran on last, when that is one of its own */
} NearestSeeker;

typedef struct NearestFind {
    CpuIx cpu; /* CPU_NONE: none, because of: */
    PlanReason reason;
    uint64_t value, limit;
    TopologyLevel level;
    uint32_t distance;
    bool cross_node;
} NearestFind;

NearestSeeker nearest_seeker(const Planner *p, size_t task_index);

/* The nearest donor the thread may have, or why it may not have the nearest. Without `cross_node` only donors on its
 * home's nodes are looked at. */
NearestFind nearest_find(const Planner *p, const NearestSeeker *seeker, bool cross_node);

/* The same find, refused. */
NearestFind nearest_blocked(NearestFind find, PlanReason reason, uint64_t value, uint64_t limit);

/* guard.c: P7 */

/* Whether a task may not be moved yet; then what it is short of: value of limit. */
bool guard_residency(const Policy *policy, const Task *task, uint64_t now_usec, uint64_t *ret_value);

typedef enum GuardPass {
    GUARD_PASS_NO_WISH, /* nobody wants a CPU */
    GUARD_PASS_CHANGED, /* something was lent */
    GUARD_PASS_VETOED,  /* only locality stood in the way */
    GUARD_PASS_NOTHING, /* wanted, but nothing could be done */
} GuardPass;

/* The guards of a group after a pass in this tick. */
PlanPass guard_after(const Group *group, const Policy *policy, uint64_t tick, GuardPass result);

/* Length of the cool-down of a CPU recalled for its owner, as a multiple of guard_cooldown_unit(): 1, or twice the last
 * one when this lease did not outlive the last cool-down. */
uint32_t guard_cooldown(const CpuLoad *cpu, const Policy *policy, uint64_t held_usec, uint64_t interval_usec);
uint64_t guard_cooldown_unit(const Policy *policy, uint64_t interval_usec);
/* And in microseconds, with `cooldown_ticks` of this one: a single unit is divided by how many the lease lasted. */
uint64_t guard_cooldown_usec(const CpuLoad *cpu, const Policy *policy, uint64_t held_usec,
                             uint64_t interval_usec);

/* cap.c: I4 */

/* Level of a bucket now, in thousandths of a token. */
uint64_t cap_level(const Bucket *bucket, uint32_t per_sec, uint32_t burst, uint64_t now_usec);

/* Whether `n` tokens and one more can be taken. */
bool cap_has(const Bucket *bucket, uint32_t per_sec, uint32_t burst, uint64_t now_usec, size_t n);

/* Takes one token, or what is left. */
void cap_take(Bucket *bucket, uint32_t per_sec, uint32_t burst, uint64_t now_usec);
