/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The state of one run, and the functions of the engine; private to this room.
 *
 * Time is in nanoseconds since the start. An event belongs to an item of the heap: a CPU (the running
 * thread's burst or slice ends), a thread (it wakes by itself), a process (its launcher forks), a span (the
 * kernel balances it), a process's memory (the kernel scans it), the memory controllers, or the daemon's
 * tick. A handler may change the run queues of other CPUs. These are remembered, and choose a thread after
 * the handler has returned, so that there is no recursion. */

#include "base/time.h"
#include "base/util.h"
#include "plan/plan.h"
#include "sim/model/heap.h"
#include "sim/model/random.h"
#include "sim/scenario/spec.h"
#include "sim/sim.h"

/* Default limit of a run: minutes of computing at some 5 million events per second. */
#define ENGINE_EVENTS_MAX 1000000000ULL
#define ENGINE_NONE       (-1)
#define ENGINE_PAGE_BYTES 4096U

/* A pace is the time that a unit of work takes, in units of 2^-20; ENGINE_PACE is full speed. */
#define ENGINE_PACE_BITS 20
#define ENGINE_PACE      (1U << ENGINE_PACE_BITS)

/* sysctl_sched_migration_cost: a thread that ran more recently than this is cache-hot and stays (P7). */
#define ENGINE_HOT_NSEC (500 * 1000ULL)

typedef enum ThreadState {
    THREAD_STATE_UNBORN,
    THREAD_STATE_ASLEEP,
    THREAD_STATE_QUEUED,
    THREAD_STATE_RUNNING,
    THREAD_STATE_ENDED,
} ThreadState;

/* Why a thread moved to another CPU. */
typedef enum MoveCause {
    MOVE_CAUSE_WAKE,
    MOVE_CAUSE_PULL,
    MOVE_CAUSE_DAEMON,
    MOVE_CAUSE_SCENARIO, /* the scenario moves it; not counted */
} MoveCause;

/* Memory used by the same threads in the same way; Engine.pages[first...] has its pages per node. */
typedef struct Region {
    uint64_t n_pages;
    bool touched;
    bool shared; /* by threads of its process */
    /* The kernel's scan of the region (P9). */
    bool known;        /* seen by an earlier scan */
    uint64_t n_marked; /* pages that will fault at their next access */
    uint64_t offset;   /* pages done in this pass */
    uint64_t start_seq, previous_seq;
    uint64_t active[2]; /* filters of threads that faulted here in this window and the last */
    uint64_t next_reset_nsec;
    int32_t last_node; /* node whose CPUs faulted last */
} Region;

/* What the kernel has learned about a thread from hinting faults (P10, P11). */
typedef struct Preference {
    int32_t node;                                    /* preferred node plus one; 0: none */
    bool shares;                                     /* it faulted in shared memory */
    bool faulted;                                    /* faulted since it was last considered for a move */
    uint64_t seq;                                    /* pass that these numbers belong to */
    uint64_t n_faults;                               /* sum of Engine.faults */
    uint64_t period_usec;                            /* between scans by this thread; 0: no fault seen yet */
    uint64_t n_local, n_remote, n_private, n_shared; /* faults since period_usec was adapted */
} Preference;

typedef struct Thread {
    uint32_t workload, process;
    ThreadState state;
    int32_t cpu; /* CPU it runs on, waits for or last ran on */
    CpuMask allowed;
    CpuMask own;      /* mask without a daemon */
    bool allowed_all; /* every CPU of the machine, so `allowed` need not be read */
    bool given;       /* the daemon set its mask */

    int64_t vruntime;   /* on its CPU's clock; of a thread in no queue, relative to Cpu.min_vruntime */
    uint64_t burst;     /* length of the current burst at full speed; UINT64_MAX: endless */
    uint64_t work_left; /* of the burst */
    uint64_t life_left; /* work until it ends; UINT64_MAX: it never ends */
    uint64_t debt_nsec; /* time it will run without progress: switches, cold caches, faults */
    /* How long it has run on this core and in this LLC; a bound on the cache it can lose. */
    uint64_t warm_nsec, warm_llc_nsec;
    int32_t warm_cpu; /* CPU where its cache is warm */

    Random random; /* lengths of its bursts and pauses; its n-th burst is the same wherever it runs */

    uint64_t queued_nsec; /* start of its wait */
    uint64_t ran_nsec;    /* when it last ran */
    uint64_t slept_nsec;  /* when it fell asleep */
    uint64_t run_nsec;    /* sums */
    uint64_t wait_nsec;
    uint64_t work_nsec; /* done, at full speed */

    /* Wake relations, see thread.c. */
    uint32_t n_sent;                   /* messages sent so far */
    uint32_t n_messages;               /* messages received and not yet processed */
    int32_t first_sender, last_sender; /* queue of senders blocked on it */
    int32_t next_sender;               /* next sender in that queue */
    int32_t recent_cpu;
    int32_t wakee;
    uint64_t n_flips, flips_nsec; /* P4, wake_wide */
    Preference preference;
} Thread;

typedef struct Cpu {
    int32_t node, shard, core;
    int32_t current;  /* thread, or ENGINE_NONE */
    int32_t last_ran; /* last thread that ran here */
    uint32_t *queue;  /* waiting threads; the next to run is last */
    size_t n_queued, queue_capacity;
    int64_t min_vruntime;
    uint64_t since_nsec; /* the fields below are accounted up to here */
    uint64_t busy_nsec;
    uint64_t wait_nsec;
    uint64_t slice_end_nsec;
    uint64_t idle_since_nsec;
    uint64_t idle_mean_nsec;  /* rq->avg_idle (P2) */
    uint64_t busy_since_nsec; /* when an idle spell last ended; UINT64_MAX: never */
    uint32_t busy_by;         /* CPU that ended it by placing a thread here */
    uint32_t pace;            /* of the running thread */
    bool present;
    bool idling;  /* it has looked for work since it went idle */
    bool resched; /* in Engine.resched */
} Cpu;

/* CPUs that the kernel balances as one. A shard is the part of an LLC in one node. */
typedef struct Span {
    uint32_t *cpus;
    uint32_t n_cpus;
    int32_t node;
    uint32_t n_runnable;
    uint32_t n_idle;
    uint32_t n_crowded; /* CPUs with two or more runnable threads */
    uint32_t n_idle_cores;
} Span;

/* The kernel's periodic balancing of one level of one span (P7). */
typedef struct Balance {
    int32_t span;  /* shard or node */
    int32_t level; /* -1: CPUs of a shard; 0: shards of a node; 1...: nodes within Topology.domains[level] */
    uint64_t interval_nsec;
    uint32_t factor;   /* 1, or 2 while balanced: multiplies the interval */
    uint32_t n_failed; /* consecutive attempts that found an imbalance and moved nothing */
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
    uint32_t n_senders; /* senders that have not ended */
    uint64_t rss_pages;
    bool phase;                        /* its threads have switched to other memory */
    uint64_t seen_nsec, seen_run_nsec; /* when the daemon last discovered it, and its run time then */
    CpuMask cpuset;                    /* CPUs of its cpuset */
    CpuMask born;                      /* mask inherited by threads yet to be born; NULL: their own */
    uint64_t window_bytes;             /* the last window of the daemon's scan of its memory; 0: none */

    CpuMask pin; /* mask its threads set after some time; NULL: none */

    /* The kernel's scan of its memory (P8, P9). */
    uint64_t seq;
    uint32_t n_completed; /* regions completed in this pass */
} Family;

/* Sums of one workload; counters have the units of SimMetric. */
typedef struct Tally {
    int64_t count[SIM_METRIC_MAX];
    uint64_t work_nsec;
    uint64_t access_work, access_local; /* work that waited for any memory, and for local memory */
    uint64_t n_passes, coverage_sum;
    uint64_t n_born, n_together; /* threads born, and those that end on their process's main node */
    uint32_t *forked;            /* [n_nodes] */
    uint64_t *late_nsec;         /* [n_nodes]: run time after the settle time */
    uint32_t n_alive;
    uint64_t ended_nsec;
} Tally;

/* A simulated daemon: a World filled from the model, and the last measurements. */
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
    uint64_t *node_bytes; /* [n_nodes], scratch of sense_memory() */
    uint64_t *node_nsec;  /* [n_nodes]: time the node's mover has left in this tick */
    uint64_t moved_nsec;  /* time of the last agent_move() */
    pid_t looked_at;      /* process whose memory was last read */
    size_t stat_cursor, runner_cursor;
    struct AgentCount *counts; /* [n_counts]: processes being counted */
    size_t n_counts, counts_capacity;
    int64_t *changes; /* by group id: changes of its home after the settle time */
    size_t changes_capacity;
    uint64_t slow_nsec;
    uint64_t n_forked; /* Engine.n_forked at the last discovery */
    int64_t count[SIM_METRIC_MAX];
    uint64_t overloaded_sum;
} Agent;

typedef struct Engine Engine;

/* A thread that runs on `node` accessed a region `n_accesses` times. */
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
    uint32_t *cpu_lists; /* storage of the spans' lists */
    Balance *balances;
    uint32_t *resched; /* ring of CPUs */

    Thread *threads;
    Family *families;
    InternPool *pool;
    CpuMask all;

    Region *regions;
    uint32_t *pages; /* [n_regions][n_nodes] */
    /* Hinting faults of threads by node, decayed sum and current pass: [n_threads][2][n_nodes]; and the
     * decayed sums of families by node, with their total: [n_families][n_nodes + 1]. */
    uint64_t *faults, *family_faults;
    uint32_t *latency;      /* [n_nodes][n_nodes]: pace of an access */
    uint32_t *contention;   /* [n_nodes]: pace of the controller */
    uint64_t *traffic;      /* [n_nodes]: bytes since the last memory event */
    uint64_t *traffic_nsec; /* [n_nodes]: total run time of the threads that cause the traffic */

    Random random_place, random_noise, random_scan;

    Tally *tallies;         /* [n_workloads] */
    uint64_t *used;         /* [n_nodes][n_workloads]: run time in this row of the picture */
    uint64_t row_nsec;      /* start of the row */
    uint64_t row_plan_nsec; /* CPU time of the row's plans */
    Agent *agent;           /* NULL: no daemon */
    EngineWatch watch;      /* receives accesses, for the scans of the kernel and the daemon */
    SimResult *result;

    /* First item of each kind; the item of a CPU is its number. */
    uint32_t item_thread, item_family, item_balance, item_scan, item_memory, item_tick;
    uint32_t actor; /* CPU that causes the current event */
    uint32_t n_shards, n_nodes, n_cores, n_balances;
    uint32_t n_crowded; /* CPUs with two or more runnable threads */
    uint32_t resched_first, n_resched;
    uint32_t n_threads, n_alive, n_families, n_regions;
    uint32_t rotor; /* rotates the kernel's choice among the CPUs of a mask */
    uint32_t row_actions;
    int error; /* -ENOMEM if an array could not grow */
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

static inline uint32_t engine_index(const Engine *e, const Thread *thread)
{
    return (uint32_t)(thread - e->threads);
}

/* Engine.faults of a thread: the decayed sums, then those of the current pass. */
static inline uint64_t *engine_faults(const Engine *e, uint32_t thread)
{
    return &e->faults[(size_t)thread * 2 * e->n_nodes];
}

static inline uint64_t *engine_family_faults(const Engine *e, uint32_t family)
{
    return &e->family_faults[(size_t)family * (e->n_nodes + 1)];
}

/* build.c */

/* Builds the machine and the processes of a variant. Returns 0, -ENOMEM, or -EINVAL with a malloc'd sentence. */
int build_engine(Engine *e, char **ret_error);
void build_done(Engine *e);

/* cpu.c: run queues and time */

/* Brings a CPU's accounting up to now. */
void cpu_account(Engine *e, uint32_t cpu);
/* Adds a thread that is in no queue to that of a CPU. */
void cpu_enqueue(Engine *e, uint32_t cpu, uint32_t thread);
/* Removes a waiting or running thread from its CPU. The caller sets its state. */
void cpu_dequeue(Engine *e, uint32_t thread);
void cpu_note_move(Engine *e, Thread *thread, uint32_t from, uint32_t to, MoveCause cause);
/* Moves a waiting or running thread. */
void cpu_move(Engine *e, uint32_t thread, uint32_t cpu, MoveCause cause);
/* Inserts a thread into the queue of a CPU, or removes it; for dispatch.c. */
void cpu_queue_insert(Engine *e, Cpu *cpu, uint32_t thread);
void cpu_queue_remove(Engine *e, Cpu *cpu, uint32_t thread);
/* Marks a CPU for dispatch_settle(), because its running thread's work or speed has changed. */
void cpu_touch(Engine *e, uint32_t cpu);

static inline uint32_t cpu_n_runnable(const Cpu *cpu)
{
    return (uint32_t)cpu->n_queued + (cpu->current >= 0);
}

/* Whether the kernel sees the CPU as idle. Without SimKernel.idle_claim, that includes a CPU that another CPU
 * has chosen in this very instant. */
bool cpu_seems_idle(const Engine *e, uint32_t cpu);
/* Whether the kernel sees all CPUs of its core as idle. */
bool cpu_seems_idle_core(const Engine *e, uint32_t cpu);

/* dispatch.c: which thread a CPU runs */

/* The running thread's burst or slice has ended. */
void dispatch_event(Engine *e, uint32_t cpu);
/* Lets each CPU whose queue has changed choose a thread. */
void dispatch_settle(Engine *e);

/* thread.c: bursts, pauses, wake relations */

/* Starts a new thread of a process on `cpu`. */
void thread_born(Engine *e, uint32_t thread, uint32_t cpu);
void thread_burst_done(Engine *e, uint32_t thread);
/* A pause ends by itself. */
void thread_timer(Engine *e, uint32_t thread);
/* The thread begins to run, for the first time or again. */
void thread_dispatched(Engine *e, uint32_t thread, bool switched);
/* Sets a mask. A runnable thread moves to `via` unless that is ENGINE_NONE; otherwise it leaves a CPU outside
 * the mask at once. */
void thread_set_mask(Engine *e, uint32_t thread, CpuMask mask, int32_t via);

/* wake.c: P4 */

/* Returns the CPU on which a sleeping thread wakes. `waker` is the CPU that wakes it; ENGINE_NONE: a timer. */
uint32_t wake_select(Engine *e, uint32_t thread, int32_t waker, bool sync);
/* Returns how many CPUs of an LLC are searched for an idle one. Of 16, with 0 % of them used: 16; with 50 %:
 * 10; with 75 %: 3; with 85 %: 0. */
uint32_t wake_n_scan(uint32_t n_cpus, uint32_t n_busy);

/* fork.c: P5 */

/* Returns the imbalance allowed between nodes in a domain, and what is left of an imbalance under the rule in
 * force. The old rule tolerates any imbalance while `n_running` is within the limit. */
uint32_t fork_allowed(const Engine *e, const TopologyDomain *domain);
uint32_t fork_adjust(const Engine *e, uint32_t imbalance, uint32_t n_running, uint32_t allowed);
/* The launcher of a process forks, or the process changes some time after its start. */
void fork_event(Engine *e, uint32_t family);

/* balance.c: P2, P7 */

/* Looks for work for an idle CPU in its LLC, its node and beyond. Returns whether it found some. */
bool balance_newidle(Engine *e, uint32_t cpu);
/* The same as the STEAL series does it, in its LLC only. */
bool balance_steal(Engine *e, uint32_t cpu);
void balance_event(Engine *e, uint32_t balance);

/* memory.c */

/* First touch of memory by a thread that runs on `node`. */
void memory_touch(Engine *e, uint32_t thread, uint32_t node);
/* Replaces all memory of a process by new memory spread evenly over the nodes. */
void memory_scatter(Engine *e, const Family *family);
/* Returns the time per unit of the thread's work on that node as memory slows it down, a pace. */
uint32_t memory_pace(const Engine *e, const Thread *thread, uint32_t node);
/* Accounts `work` done on `node` in `nsec`: counts accesses and traffic, and calls Engine.watch. */
void memory_used(Engine *e, Thread *thread, uint32_t node, uint64_t work, uint64_t nsec);
/* Recomputes the controllers' contention. */
void memory_event(Engine *e);
/* The i-th region of a family: shared ones first, then its threads' own. ENGINE_NONE: it has no more. */
int32_t memory_region_at(const Engine *e, const Family *family, uint32_t i);
/* The region that the thread shares with others; ENGINE_NONE: none. */
int32_t memory_shared_region(const Engine *e, const Thread *thread);
/* The pages of a region on each node: n_nodes numbers. */
uint32_t *memory_pages(const Engine *e, int32_t region);

/* Removes the hinting faults of a thread that ends. */
void memory_forget(Engine *e, const Thread *thread);

/* scan.c: P8, P9, P13 */

void scan_event(Engine *e, uint32_t family);
/* The thread accessed a region `n_accesses` times while it ran on `node`. */
void scan_accessed(Engine *e, Thread *thread, int32_t region, uint32_t node, uint64_t n_accesses);

/* prefer.c: P10, P11 */

/* Counts faults of `n` pages of a region that were on `node` and are on `to` now. */
void prefer_faulted(Engine *e, Thread *thread, bool shared, uint32_t node, uint32_t to, uint64_t n);
/* Called when a family is scanned: moves its running threads, whose accounts are up to date, to their
 * preferred nodes. */
void prefer_scanned(Engine *e, const Family *family);
/* Returns the time until the family's next scan, by the faults of the thread that scanned; ENGINE_NONE: none did. */
uint64_t prefer_period_nsec(const Engine *e, const Family *family, int32_t scanner);

typedef enum PreferVerdict {
    PREFER_UNKNOWN, /* decide without memory */
    PREFER_STAY,    /* the target is worse */
    PREFER_GO,      /* the target is no worse: move even a cache-hot thread */
} PreferVerdict;

/* Advises balancing between nodes about a waiting thread. `idle`: periodic balancing for an idle CPU. */
PreferVerdict prefer_verdict(const Engine *e, const Thread *thread, uint32_t to_cpu, bool idle);

/* agent.c: the daemon */

int agent_new(Engine *e, Agent **ret);
Agent *agent_free(Agent *agent);
DEFINE_CLEANUP(Agent *, agent_free)
/* One tick: sense, look at memory, plan, act. Fills in the daemon's part of `tick`. Returns 0, -ENOMEM,
 * -EUCLEAN if the plan is broken, or what the plan hook returned. */
int agent_tick(Engine *e, Agent *agent, SimTick *tick);
/* Adds the daemon's own counters to those of the machine. */
void agent_report(const Agent *agent, int64_t *values);

/* agent/sense.c: what probe would see */

int sense_discover(Engine *e, Agent *agent);
/* `looked`: this is a slow tick, so the last CPUs of running threads are read too. */
int sense_sample(Engine *e, Agent *agent, bool looked);

/* agent/memory.c: what probe would know about memory */

/* `first`: only processes whose memory was never read. Returns 0 or -ENOMEM. */
int sense_memory(Engine *e, Agent *agent, bool first);

/* agent/scan.c: like scan_accessed(), for memory that the daemon protected */
void agent_accessed(Engine *e, Thread *thread, int32_t region, uint64_t n_accesses);

/* agent/act.c: what act would do */

/* Carries out a plan. Writes one outcome per action. */
void act_plan(Engine *e, Agent *agent, PlanOutcome *outcomes);

/* picture.c */

/* Makes an empty result. Returns 0 or -ENOMEM. */
int picture_start(Engine *e);
/* Ends a tick and may end a row of the picture. In long runs a row covers several fast ticks. */
int picture_tick(Engine *e, SimTick *tick);
/* Computes the result from the tallies. Returns 0 or -ENOMEM. */
int picture_finish(Engine *e);
