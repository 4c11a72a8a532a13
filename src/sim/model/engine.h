/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The state of one run, and what the parts of the engine do to it; private to this room.
 *
 * Time is in nanoseconds since the start. An event belongs to an item of the heap: a CPU (the running thread's burst
 * or slice ends), a thread (it wakes by itself), a process (its launcher forks), a span (the kernel balances it), a
 * process's memory (the kernel scans it), the memory controllers, the daemon's tick. Handling one may change the run
 * queues of other CPUs; these are remembered, and choose anew whom to run when the handler is done, so that no part
 * calls itself. */

#include "base/time.h"
#include "base/util.h"
#include "plan/plan.h"
#include "sim/model/heap.h"
#include "sim/model/random.h"
#include "sim/scenario/spec.h"
#include "sim/sim.h"

/* Bound of a run unless one is given: at some 5 million in a second, minutes of computing. */
#define ENGINE_EVENTS_MAX 1000000000ULL
#define ENGINE_NONE       (-1)
#define ENGINE_PAGE_BYTES 4096U

/* A pace is the time that a unit of work takes, in units of 2^-20: ENGINE_PACE at full speed. */
#define ENGINE_PACE_BITS 20
#define ENGINE_PACE      (1U << ENGINE_PACE_BITS)

/* sysctl_sched_migration_cost: what ran so short a time ago has its cache still, and stays (P7). */
#define ENGINE_HOT_NSEC (500 * 1000ULL)

typedef enum ThreadState {
    THREAD_STATE_UNBORN,
    THREAD_STATE_ASLEEP,
    THREAD_STATE_QUEUED,
    THREAD_STATE_RUNNING,
    THREAD_STATE_ENDED,
} ThreadState;

/* Why a thread came to another CPU. */
typedef enum MoveCause {
    MOVE_CAUSE_WAKE,
    MOVE_CAUSE_PULL,
    MOVE_CAUSE_DAEMON,
    MOVE_CAUSE_SCENARIO, /* the scenario says so; not counted */
} MoveCause;

/* Memory used by the same threads in the same way; its pages per node are Engine.pages[first...]. */
typedef struct Region {
    uint64_t n_pages;
    bool touched;
    bool shared; /* by threads of a process */
    /* The kernel's scan of it (P9). */
    bool known;        /* met by a scan before */
    uint64_t n_marked; /* pages that will fault at their next access */
    uint64_t offset;   /* pages of it done in this pass */
    uint64_t start_seq, previous_seq;
    uint64_t active[2]; /* filters of threads seen faulting here, in this window and the one before */
    uint64_t next_reset_nsec;
    int32_t last_node; /* whose CPUs faulted last */
} Region;

/* What the kernel knows of a thread by its hinting faults (P10, P11). */
typedef struct Preference {
    int32_t node;                                    /* that it prefers, plus one; 0: none */
    bool shares;                                     /* it faulted in memory that others use as well */
    bool faulted;                                    /* since it was looked at last */
    uint64_t seq;                                    /* the pass that this is of */
    uint64_t n_faults;                               /* sum of Engine.faults */
    uint64_t period_usec;                            /* between two scans by it; 0: none was seen yet */
    uint64_t n_local, n_remote, n_private, n_shared; /* faults since then */
} Preference;

typedef struct Thread {
    uint32_t workload, process;
    ThreadState state;
    int32_t cpu; /* runs, waits or ran last here */
    CpuMask allowed;
    CpuMask own;      /* what it would be allowed without a daemon */
    bool allowed_all; /* every CPU of the machine: the mask need not be asked */
    bool given;       /* its mask is the daemon's */

    int64_t vruntime;   /* that of its CPU's queue; of a thread in none, relative to Cpu.min_vruntime */
    uint64_t burst;     /* length of the present burst, at full speed; UINT64_MAX: no end */
    uint64_t work_left; /* of it */
    uint64_t life_left; /* work until it ends; UINT64_MAX: never */
    uint64_t debt_nsec; /* time that it will run without getting on: switches, cold caches, faults */
    /* For so long it has run on this core and in this LLC, and cannot lose more cache than that filled. */
    uint64_t warm_nsec, warm_llc_nsec;
    int32_t warm_cpu; /* where its cache is warm */

    Random random; /* how long it works and pauses: wherever it runs, its n-th burst is as long */

    uint64_t queued_nsec; /* instant it began to wait */
    uint64_t ran_nsec;    /* instant it ran last */
    uint64_t slept_nsec;  /* instant it fell asleep */
    uint64_t run_nsec;    /* sums */
    uint64_t wait_nsec;
    uint64_t work_nsec; /* done, at full speed */

    /* Wake relations, see thread.c. */
    uint32_t n_sent;                   /* a sender's messages so far */
    uint32_t n_messages;               /* a receiver's that are not dealt with */
    int32_t first_sender, last_sender; /* senders that wait for it */
    int32_t next_sender;               /* the one that waits behind this one */
    int32_t recent_cpu;
    int32_t wakee;
    uint64_t n_flips, flips_nsec; /* P4, wake_wide */
    Preference preference;
} Thread;

typedef struct Cpu {
    int32_t node, shard, core;
    int32_t current;  /* thread, or ENGINE_NONE */
    int32_t last_ran; /* thread that was here before */
    uint32_t *queue;  /* waiting threads, the next to run last */
    size_t n_queued, queue_capacity;
    int64_t min_vruntime;
    uint64_t since_nsec; /* everything below is accounted up to here */
    uint64_t busy_nsec;
    uint64_t wait_nsec;
    uint64_t slice_end_nsec;
    uint64_t idle_since_nsec;
    uint64_t idle_mean_nsec;  /* rq->avg_idle (P2) */
    uint64_t busy_since_nsec; /* instant an idle spell ended; UINT64_MAX: none has */
    uint32_t busy_by;         /* CPU that ended it by putting a thread here */
    uint32_t pace;            /* of the running thread */
    bool present;
    bool idling;  /* it has looked for work and found none */
    bool resched; /* it is in Engine.resched */
} Cpu;

/* CPUs that the kernel balances as one: a shard is an LLC as far as it lies in one node. */
typedef struct Span {
    uint32_t *cpus;
    uint32_t n_cpus;
    int32_t node;
    uint32_t n_runnable;
    uint32_t n_idle;
    uint32_t n_crowded; /* CPUs with two or more runnable threads */
    uint32_t n_idle_cores;
} Span;

/* The kernel's periodic look at one level of one span (P7). */
typedef struct Balance {
    int32_t span; /* shard or node */
    int32_t
        level; /* -1: the CPUs of a shard; 0: the shards of a node; 1...: nodes within Topology.domains[level] */
    uint64_t interval_nsec;
    uint32_t factor;   /* 1 or 2: the interval doubles while all is balanced */
    uint32_t n_failed; /* looks in a row that wanted to move something and could not */
    uint32_t n_looks;
} Balance;

/* A process of the scenario. */
typedef struct Family {
    uint32_t workload;
    uint32_t first; /* thread */
    uint32_t n_forked;
    int32_t launcher_cpu;
    uint64_t start_nsec;
    int32_t shared_first; /* region */
    uint32_t n_shared;
    int32_t private_first;
    uint32_t n_alive;
    uint32_t n_senders; /* that have not ended */
    uint64_t rss_pages;
    bool phase; /* its threads use other memory than at first */
    uint64_t seen_nsec,
        seen_run_nsec; /* when the daemon looked for processes last, and their run time then */
    CpuMask cpuset;    /* what its cpuset allows */
    CpuMask
        born; /* mask of threads yet to be born: they inherit what the process was given; NULL: their own */

    CpuMask pin; /* what its threads pin themselves to when they have run for some time; NULL: nothing */

    /* The kernel's scan of its memory (P8, P9). */
    uint64_t seq;
    uint32_t n_completed; /* regions, in this pass */
} Family;

/* Sums of one workload; counters in the unit of SimMetric. */
typedef struct Tally {
    int64_t count[SIM_METRIC_MAX];
    uint64_t work_nsec;
    uint64_t access_work, access_local; /* work that waited for memory, and for local memory */
    uint64_t n_passes, coverage_sum;
    uint64_t n_born, n_together; /* threads, and those on their process's main node, at the end */
    uint32_t *forked;            /* [n_nodes] */
    uint64_t *late_nsec;         /* [n_nodes]: run time after the settle time */
    uint32_t n_alive;
    uint64_t ended_nsec;
} Tally;

/* A daemon: a World that it fills from the model, and what it measured last. */
typedef struct Agent {
    World *world;
    Plan plan;
    PlanOutcome *outcomes;
    size_t outcomes_capacity;
    uint64_t n_ticks;
    uint64_t sampled_nsec;
    struct AgentThread *threads;  /* [Engine.n_threads] */
    struct AgentCpu *cpus;        /* [topology->cpu_limit] */
    struct AgentFamily *families; /* [Engine.n_families] */
    uint32_t n_families;
    uint64_t *node_bytes; /* [n_nodes], for sense_memory() */
    uint64_t *node_nsec;  /* [n_nodes]: what the mover of the node has left of this tick */
    uint64_t moved_nsec;  /* memory under way is where it was then */
    pid_t looked_at;      /* the process whose memory was looked at last */
    size_t stat_cursor, runner_cursor;
    struct AgentCount *counts; /* [n_counts]: processes that are being counted */
    size_t n_counts, counts_capacity;
    int64_t *changes; /* by group number: of its home, after the settle time */
    size_t changes_capacity;
    uint64_t slow_nsec;
    uint64_t n_forked; /* Engine.n_forked when it discovered last */
    int64_t count[SIM_METRIC_MAX];
    uint64_t overloaded_sum;
} Agent;

typedef struct Engine Engine;

/* A thread accessed a region so many times while running on `node`. */
typedef void (*EngineWatch)(Engine *e, Thread *thread, int32_t region, uint32_t node, uint64_t n_accesses);

struct Engine {
    const SimSpec *spec;
    const SimVariant *variant;
    const SimModel *constants;
    const Topology *topology;
    const SimKernel *kernel;
    const SimHooks *hooks;
    uint64_t seed;

    uint64_t now_nsec, end_nsec, settle_nsec;
    uint64_t n_events, n_events_max;
    uint64_t n_forked; /* threads */
    Heap heap;

    Cpu *cpus; /* [topology->cpu_limit] */
    Span *shards, *nodes, *cores;
    uint32_t *cpu_lists; /* what the spans' lists are parts of */
    Balance *balances;
    uint32_t *resched; /* ring of CPUs */

    Thread *threads;
    Family *families;
    InternPool *pool;
    CpuMask all;

    Region *regions;
    uint32_t *pages; /* [n_regions][n_nodes] */
    /* Hinting faults of threads by node, known and of the present pass: [n_threads][2][n_nodes]; the former of
     * families, and their sum: [n_families][n_nodes + 1]. */
    uint64_t *faults, *family_faults;
    uint32_t *latency;      /* [n_nodes][n_nodes]: pace of an access */
    uint32_t *contention;   /* [n_nodes]: pace of the controller */
    uint64_t *traffic;      /* [n_nodes]: bytes since the last look */
    uint64_t *traffic_nsec; /* [n_nodes]: how long threads ran that cause it, all together */

    Random random_place, random_noise, random_scan;

    Tally *tallies;         /* [n_workloads] */
    uint64_t *used;         /* [n_nodes][n_workloads]: run time in this row of the picture */
    uint64_t row_nsec;      /* its start */
    uint64_t row_plan_nsec; /* what its plans cost */
    Agent *agent;           /* NULL: no daemon */
    EngineWatch watch;      /* who hears of accesses: what the kernel and the daemon scan */
    SimResult *result;

    /* First item of each kind; those of CPUs are their numbers. */
    uint32_t item_thread, item_family, item_balance, item_scan, item_memory, item_tick;
    uint32_t actor; /* CPU on which what is happening now happens */
    uint32_t n_shards, n_nodes, n_cores, n_balances;
    uint32_t n_crowded; /* CPUs with two or more runnable threads */
    uint32_t resched_first, n_resched;
    uint32_t n_threads, n_alive, n_families, n_regions;
    uint32_t rotor; /* of the kernel's choice among the CPUs of a mask */
    uint32_t row_actions;
    int error; /* -ENOMEM once an array could not grow */
    bool any_bandwidth;
};

static inline bool engine_counts_late(const Engine *e)
{
    return e->now_nsec > e->settle_nsec;
}

static inline const SimWorkload *engine_workload(const Engine *e, const Thread *thread)
{
    return &e->spec->workloads[thread->workload];
}

static inline bool thread_may_run(const Thread *thread, uint32_t cpu)
{
    return thread->allowed_all || hwloc_bitmap_isset(thread->allowed, cpu);
}

/* The number of a thread. */
static inline uint32_t engine_index(const Engine *e, const Thread *thread)
{
    return (uint32_t)(thread - e->threads);
}

/* Engine.faults of a thread: known ones, and behind them those of the present pass. */
static inline uint64_t *engine_faults(const Engine *e, uint32_t thread)
{
    return &e->faults[(size_t)thread * 2 * e->n_nodes];
}

static inline uint64_t *engine_family_faults(const Engine *e, uint32_t family)
{
    return &e->family_faults[(size_t)family * (e->n_nodes + 1)];
}

/* build.c */

/* Makes the machine and the processes of a variant. Returns 0, -ENOMEM, or -EINVAL with a malloc'd sentence. */
int build_engine(Engine *e, char **ret_error);
void build_done(Engine *e);

/* cpu.c: run queues and time */

/* Brings a CPU's accounts up to now. */
void cpu_account(Engine *e, uint32_t cpu);
/* Puts a thread that is in no queue into that of a CPU. */
void cpu_enqueue(Engine *e, uint32_t cpu, uint32_t thread);
/* Takes a waiting or running thread off its CPU; its state is the caller's to set. */
void cpu_dequeue(Engine *e, uint32_t thread);
/* Counts a move. */
void cpu_note_move(Engine *e, Thread *thread, uint32_t from, uint32_t to, MoveCause cause);
/* Moves a waiting or running thread. */
void cpu_move(Engine *e, uint32_t thread, uint32_t cpu, MoveCause cause);
/* The thread into the queue of the CPU it is on, or out of it; for dispatch.c. */
void cpu_queue_insert(Engine *e, Cpu *cpu, uint32_t thread);
void cpu_queue_remove(Engine *e, Cpu *cpu, uint32_t thread);
/* What the CPU's running thread works on, or how fast, has changed: it is looked at by dispatch_settle(). */
void cpu_touch(Engine *e, uint32_t cpu);

static inline uint32_t cpu_n_runnable(const Cpu *cpu)
{
    return (uint32_t)cpu->n_queued + (cpu->current >= 0);
}

/* What the kernel takes for an idle CPU. Without SimKernel.idle_claim, also one that another CPU has chosen in this
 * very instant. */
bool cpu_seems_idle(const Engine *e, uint32_t cpu);
/* All CPUs of its core do. */
bool cpu_seems_idle_core(const Engine *e, uint32_t cpu);

/* dispatch.c: whom a CPU lets run */

/* The running thread's burst or slice has ended. */
void dispatch_event(Engine *e, uint32_t cpu);
/* Lets the CPUs choose whose queues have changed. */
void dispatch_settle(Engine *e);

/* thread.c: bursts, pauses, wake relations */

/* A thread of a process is born on `cpu`. */
void thread_born(Engine *e, uint32_t thread, uint32_t cpu);
/* The running thread has done its burst. */
void thread_burst_done(Engine *e, uint32_t thread);
/* A pause ends by itself. */
void thread_timer(Engine *e, uint32_t thread);
/* It begins to run, for the first time or again. */
void thread_dispatched(Engine *e, uint32_t thread, bool switched);
/* Sets a mask; the thread leaves a CPU outside it at once. `via`, unless ENGINE_NONE, is where it goes in any case. */
void thread_set_mask(Engine *e, uint32_t thread, CpuMask mask, int32_t via);

/* wake.c: P4 */

/* Where a sleeping thread wakes. `waker` is the CPU that wakes it, ENGINE_NONE: a timer. */
uint32_t wake_select(Engine *e, uint32_t thread, int32_t waker, bool sync);
/* How many CPUs of an LLC are looked at for an idle one: vectors for 16: 0 % used 16, 50 % 10, 75 % 3, 85 % 0. */
uint32_t wake_n_scan(uint32_t n_cpus, uint32_t n_busy);

/* fork.c: P5 */

/* Imbalance allowed between nodes in a domain, and what is left of one under the rule in force: the old one
 * tolerated all of it up to the limit. */
uint32_t fork_allowed(const Engine *e, const TopologyDomain *domain);
uint32_t fork_adjust(const Engine *e, uint32_t imbalance, uint32_t n_running, uint32_t allowed);
/* The launcher of a process forks. */
void fork_event(Engine *e, uint32_t family);

/* balance.c: P2, P7 */

/* An idle CPU looks for work in its LLC, its node and beyond. Whether it found some. */
bool balance_newidle(Engine *e, uint32_t cpu);
/* The same as the STEAL series does it. */
bool balance_steal(Engine *e, uint32_t cpu);
void balance_event(Engine *e, uint32_t balance);

/* memory.c */

/* First touch, by a thread that runs on `node`. */
void memory_touch(Engine *e, uint32_t thread, uint32_t node);
/* All memory of a process is other memory now, on all nodes alike. */
void memory_scatter(Engine *e, const Family *family);
/* Time a unit of the thread's work takes on that node because of memory, as a pace. */
uint32_t memory_pace(const Engine *e, const Thread *thread, uint32_t node);
/* `work` was done there in so long: counts accesses and traffic, and tells Engine.watch. */
void memory_used(Engine *e, Thread *thread, uint32_t node, uint64_t work, uint64_t nsec);
/* The controllers' contention is looked at anew. */
void memory_event(Engine *e);
/* Regions of a family are numbered: shared first, then its threads' own. ENGINE_NONE: it has no more. */
int32_t memory_region_at(const Engine *e, const Family *family, uint32_t i);
/* What the thread shares with others; ENGINE_NONE: nothing. */
int32_t memory_shared_region(const Engine *e, const Thread *thread);
/* Pages of a region on each node: n_nodes numbers. */
uint32_t *memory_pages(const Engine *e, int32_t region);

/* A thread ends: what its hinting faults have told goes with it. */
void memory_forget(Engine *e, const Thread *thread);

/* scan.c: P8, P9, P13 */

void scan_event(Engine *e, uint32_t family);
/* The thread accessed a region so many times while running on `node`. */
void scan_accessed(Engine *e, Thread *thread, int32_t region, uint32_t node, uint64_t n_accesses);

/* prefer.c: P10, P11 */

/* So many pages of a region were on `node` and are on `to` now. */
void prefer_faulted(Engine *e, Thread *thread, bool shared, uint32_t node, uint32_t to, uint64_t n);
/* A family is scanned: its running threads, whose accounts are up to date, go where they prefer to be. */
void prefer_scanned(Engine *e, const Family *family);
/* When it is scanned next, by what is known of the thread that scanned it; ENGINE_NONE: none did. */
uint64_t prefer_period_nsec(const Engine *e, const Family *family, int32_t scanner);

typedef enum PreferVerdict {
    PREFER_UNKNOWN, /* as without memory */
    PREFER_STAY,    /* it is worse off there */
    PREFER_GO,      /* it is no worse off there, and goes however warm its cache is */
} PreferVerdict;

/* What a look that moves threads between nodes makes of a waiting thread; `idle`: a periodic one, for an idle CPU. */
PreferVerdict prefer_verdict(const Engine *e, const Thread *thread, uint32_t to_cpu, bool idle);

/* agent.c: the daemon */

int agent_new(Engine *e, Agent **ret);
Agent *agent_free(Agent *agent);
DEFINE_CLEANUP(Agent *, agent_free)
/* One tick: sense, look at memory, plan, act. Fills in the daemon's part of `tick`. 0, -ENOMEM, or -EUCLEAN: the
 * plan is broken. */
int agent_tick(Engine *e, Agent *agent, SimTick *tick);
/* Adds the daemon's own counters to those of the machine. */
void agent_report(const Agent *agent, int64_t *values);

/* agent/sense.c: what probe would see */

int sense_discover(Engine *e, Agent *agent);
/* `looked`: after a discovery. */
int sense_sample(Engine *e, Agent *agent, bool looked);

/* agent/memory.c: what probe would know of memory */

/* `first`: only of processes of which nothing is known. 0 or -ENOMEM. */
int sense_memory(Engine *e, Agent *agent, bool first);

/* agent/scan.c: the same as scan_accessed(), for what the daemon protected. */
void agent_accessed(Engine *e, Thread *thread, int32_t region, uint64_t n_accesses);

/* agent/act.c: what act would do */

/* Carries a plan out; one outcome per action. */
void act_plan(Engine *e, Agent *agent, PlanOutcome *outcomes);

/* picture.c */

/* Makes the result, all zero. 0 or -ENOMEM. */
int picture_start(Engine *e);
/* A tick has ended: one row of the picture. Several fast ticks are one row in long runs. */
int picture_tick(Engine *e, SimTick *tick);
/* Turns the tallies into the result. 0 or -ENOMEM. */
int picture_finish(Engine *e);
