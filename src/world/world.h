/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* World: everything a plan may depend on at one instant. Sensing fills it, planning reads it, and
 * plan_commit() folds the outcome of acting back. It knows nothing of files, clocks or policies.
 *
 * Loads are in permille of one CPU over the last tick: run 1000 means a whole CPU was used, wait 1000 means
 * runnable but not running all the time. Instants are CLOCK_MONOTONIC microseconds; 0 means never. */

#include "base/bucket.h"
#include "base/ids.h"
#include "base/intern.h"
#include "base/util.h"
#include "topo/topology.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WORLD_COMM_SIZE 16 /* TASK_COMM_LEN */

/* Names a task across ticks. A bare pid must not be used for that, because numbers are reused. `tid` 0 stands
 * for the whole process. `start_ticks` is the start time of the thread (of the process when tid is 0), field
 * 22 of its stat. */
typedef struct TaskKey {
    pid_t pid;
    pid_t tid;
    uint64_t start_ticks;
} TaskKey;

typedef enum TaskClass {
    TASK_CLASS_NORMAL, /* SCHED_OTHER, SCHED_BATCH */
    TASK_CLASS_IDLE,   /* SCHED_IDLE */
    TASK_CLASS_REALTIME,
    TASK_CLASS_DEADLINE, /* never touched (I2) */
    TASK_CLASS_EXT,      /* sched_ext */
    TASK_CLASS_MAX,
    TASK_CLASS_INVALID = -EINVAL,
} TaskClass;

/* Whether a task may be placed, or why it must be left alone. */
typedef enum TaskHands {
    TASK_HANDS_FREE,     /* may be placed */
    TASK_HANDS_FOREIGN,  /* its mask is narrower than its cpuset: pinned by somebody else */
    TASK_HANDS_REPINNED, /* a mask of ours was changed by somebody else: yielded */
    TASK_HANDS_PER_CPU,  /* pinned to one CPU by the kernel or by itself (I2) */
    TASK_HANDS_CLASS,    /* a scheduling class that is never touched (I2) */
    TASK_HANDS_DENIED,   /* the kernel refused a change; until its cpuset changes, or for a pause */
    TASK_HANDS_UNKNOWN,  /* a read failed or was partial: no action on it (I10) */
    TASK_HANDS_MAX,
    TASK_HANDS_INVALID = -EINVAL,
} TaskHands;

/* The one node where a thread ran in all its samples since `usec`. */
typedef struct TaskStay {
    NodeIx node;     /* NODE_NONE: several nodes, or not known */
    uint16_t rounds; /* number of rounds in a row with samples there */
    uint32_t since;  /* number of the first of these rounds (TouchThread) */
    uint64_t usec;
} TaskStay;

/* What is known of the memory a thread uses, by evidence that sees threads (P11, P14). */
typedef struct TaskUse {
    uint64_t measured_usec;    /* not 0 */
    uint16_t private_permille; /* share of its use that is of memory it uses alone */
    TaskKey buddy;             /* the thread of its process that it shares most with; tid 0: none, or many */
    TaskStay stay;
    uint64_t pages[]; /* [topology->n_nodes]: average use of memory on each node; up to WORLD_PAGES_MAX */
} TaskUse;

typedef struct Task {
    pid_t tid;
    ProcessIx process;
    uint64_t start_ticks;
    char comm[WORLD_COMM_SIZE];
    uint32_t reader;               /* handle of the sensing code that fills this in (probe); opaque here */
    uint8_t task_class;            /* TaskClass */
    uint8_t hands;                 /* TaskHands */
    bool gone;                     /* exited; dropped by the next world_compact() */
    bool fresh;                    /* first seen in this tick: loads are not valid yet */
    CpuIx last_cpu;                /* where it ran last; CPU_NONE: not known */
    uint16_t run_permille;         /* this tick */
    uint16_t wait_permille;        /* this tick */
    uint16_t run_before_permille;  /* the tick before */
    uint16_t wait_before_permille; /* the tick before */
    uint16_t run_ewma_permille;    /* weight 1/8 of the new value */
    uint16_t wait_ewma_permille;
    CpuMask allowed;         /* its present mask, as last read or set by us; NULL: not known */
    CpuMask original;        /* the mask to restore; NULL: not changed by us */
    int32_t lease;           /* index into World.leases; -1: none */
    NodeIx home_node;        /* its node in a home of several; NODE_NONE: anywhere in the home */
    TaskUse *use;            /* NULL: not known. Owned; see world_set_task_use() */
    uint64_t last_move_usec; /* start of its residency: lent, recalled, pushed or released (I7) */
} Task;

/* Migration requests for the memory of a process (P18), one at a time. Nodes are NodeIx bitmaps. Requests by
 * use do not change `stripe`, `last` and `before`. */
typedef struct MemoryMove {
    CpuMask to;           /* targets of the request in flight; NULL: none */
    bool stripe;          /* the last one also moves between its nodes (P17) */
    uint64_t todo_bytes;  /* still to be moved by the request in flight */
    CpuMask last;         /* targets of the last one; NULL: there was none */
    CpuMask before;       /* where its memory was before it went to `last` */
    uint64_t since_usec;  /* when the last one was submitted */
    uint64_t over_usec;   /* when the last one ended */
    uint64_t until_usec;  /* no other one before (I7) */
    uint64_t stuck_bytes; /* that the last one could not move, or that lie as interleaving has them */
    uint32_t n_vain;      /* requests in a row that moved nothing, or interleaved over the same nodes */
    bool by_use;          /* the one in flight moves parts of its memory to the threads that use them */
} MemoryMove;

/* Where memory lay before it followed a home to fewer nodes, and the speed of the process (plan/scan/gather.h). */
typedef struct MemoryGather {
    CpuMask nodes;       /* where it lay and went; NULL: it did not follow, or the speed is not known */
    CpuMask cpuset;      /* of the process at that time */
    uint32_t progress;   /* instructions per cycle before the move, or before the trial; permille */
    uint64_t begun_usec; /* when it began to follow */
    uint64_t since_usec; /* counts begun since then show the present speed */
    uint64_t until_usec; /* until then it is to lie on `nodes` again; 0: it is not */
    bool slower;         /* the process was found to be slower once */
    bool trial;          /* of whether the process is faster with its memory on `nodes` again */
} MemoryGather;

/* Totals of migration requests. */
typedef struct MemoryAccount {
    uint64_t n_orders; /* requests that have ended */
    uint64_t moved_bytes;
    uint64_t refused_bytes; /* should have moved, and could not */
    uint64_t blocked_usec;  /* upper bound of the time threads were kept from memory in flight */
} MemoryAccount;

/* See Process.shared. */
#define PROCESS_SHARED_MUCH '+'

typedef struct Process {
    pid_t pid;
    pid_t parent;
    uint64_t start_ticks;
    uint64_t started_usec; /* the same in the clock of World.now_usec, at most first_seen_usec */
    uint64_t first_seen_usec;
    uid_t uid;
    const char *comm;   /* interned, raw bytes as the kernel gives them */
    const char *cgroup; /* path in the unified (or cpu) hierarchy, "/" at least */
    const char *unit;   /* innermost systemd unit of that path, or NULL */
    const char *slice;  /* innermost systemd slice, or NULL */
    /* Names of shared memory that it maps, with PROCESS_SHARED_MUCH after those that are much of all its
     * memory, and of groups that the kernel's balancing has put its threads into, "ngid:N". Separated by one
     * blank; NULL: not known, or none. */
    const char *shared;
    CpuMask cpuset; /* CPUs that its cpuset lets it use: the outer bound (I1); NULL: not known */
    uint64_t rss_bytes;
    /* Residency: [topology->n_nodes], its memory on each node, as far as placement can follow
     * that; up to WORLD_MEMORY_MAX. NULL: not known. Owned; see world_set_process_memory(). */
    uint64_t *node_bytes;
    uint64_t node_bytes_usec; /* when that was measured; 0 exactly when it is not known */
    uint64_t bound_bytes;     /* the part of it with a memory policy that names nodes */
    uint64_t grown_bytes;     /* its growth since the measurement before */
    /* Upper bound of waiting for memory, of its time in user mode, from processor counters in an interval that began
     * at `stall_usec` (plan/scan/stall.h); 0: not known. The next count is due at `stall_due_usec`. */
    uint16_t stall_permille;
    uint16_t ipc_permille; /* instructions per cycle in that interval */
    uint64_t stall_usec, stall_due_usec;
    uint32_t traffic_mb; /* traffic between memory and caches in it; MB per second that one thread runs */
    MemoryMove memory;
    MemoryGather gather;
    bool memory_awaited; /* residency is being read for the first time, and known a moment later */
    /* Evidence of its use is being gathered, or would be; until then it is not spread over several nodes. */
    bool use_awaited;
    bool write_fails; /* write faults were tried with it, in vain */
    bool use_hidden;  /* its use cannot be seen: for that reason, or because too many processes are watched */
    uint32_t n_threads;
    uint32_t cpu_permille; /* CPU time used over the last slow tick, in permille of one CPU */
    WorkloadIx workload;
    GroupIx group;
    bool gone;
    bool yielded;  /* somebody re-pinned it while managed: it is left alone until it ends */
    bool assigned; /* somebody named its workload, so MinAgeSec= does not delay a home of Mode=fixed */
} Process;

/* Tasks that are placed together. */
typedef struct Group {
    uint64_t id; /* stable for the life of the group, never reused */
    WorkloadIx workload;
    const char *key;    /* "" for the whole workload, a cgroup path, or a pid in decimal */
    CpuMask home;       /* CPUs of its home nodes; NULL: it has none and is not confined */
    CpuMask home_nodes; /* NodeIx bitmap; NULL exactly when home is */
    /* Where acting would place a group that is only observed; NodeIx. Once it is placed, its first home is
     * there unless another is clearly better, so that what was announced is done. NULL: nothing was
     * announced, or it has got a home since. */
    CpuMask wish_nodes;
    uint64_t first_seen_usec;
    uint64_t last_home_usec;       /* when the home last changed; 0: never, or free to change again */
    uint64_t apart_usec;           /* when a thread was last reassigned to another home node; 0: never */
    uint64_t pool_until_usec;      /* until then its threads share all of its home, without home nodes */
    uint64_t pool_next_usec;       /* no trial of that before */
    uint32_t pool_before_permille; /* in a trial: waiting before it, of the CPU time wanted; else 0 */
    uint32_t pool_others_permille; /* the same of all other groups */
    uint64_t pool_progress;        /* and the speed of the group (plan/scan/stall.h); 0: not counted */
    bool roams;                    /* it needs all nodes, so it is left to the kernel: `home` is NULL */
    bool converged;                /* its memory has come together at its home, so it stays (P16) */
    /* The last change of its home. */
    CpuMask before_nodes;            /* its home before; NULL: none */
    uint32_t before_wait_permille;   /* waiting of its threads then, as a share of the CPU time wanted */
    uint32_t before_others_permille; /* the same of all other groups */
    uint32_t before_demand_permille; /* and its demand */
    bool guessed;                    /* the location of its memory was not known when its home was chosen */
    uint64_t judge_usec;             /* when waiting then and now are compared; 0: not, or not any more */
    uint32_t n_changes;              /* changes of its home since changes_since_usec */
    uint64_t changes_since_usec;
    uint64_t frozen_until_usec; /* it went back and forth, or had to go back: it stays until then */
    uint32_t n_tasks;
    uint32_t run_permille; /* sums over its tasks, this tick */
    uint32_t wait_permille;
    uint32_t want_permille;    /* sum of the averages of both */
    uint32_t before_permille;  /* run and wait in the tick before */
    uint32_t demand_permille;  /* as want, but rises at once and falls slowly; see load_groups() */
    uint32_t outside_permille; /* part of run_permille outside its home; by load_nodes(), not in the text */
    uint32_t n_leases;
    MemoryAccount memory; /* of its processes, since it was first seen */
    /* Guards (P7). */
    uint32_t n_vetoes;      /* consecutive passes in which locality vetoed a cross-node lend */
    uint32_t backoff_ticks; /* 0, or 1..32: passes to skip after one that changed nothing */
    uint64_t backoff_until_tick;
    bool gone;
} Group;

typedef struct Workload {
    const char *name;  /* the policy's name: unique */
    uint32_t policy;   /* index into the PolicySet in force */
    bool paused;       /* by the administrator: observed, not placed */
    Bucket cross_node; /* in thousandths of a move */
    uint32_t n_processes;
    uint32_t n_tasks;
    uint32_t run_permille;
    uint32_t wait_permille;
    uint64_t n_lends; /* since start */
    uint64_t n_recalls;
    MemoryAccount memory; /* since start, too */
} Workload;

/* One CPU lent to one thread of a group whose home does not hold that CPU (P2). */
typedef struct Lease {
    TaskKey task;
    uint64_t group_id;
    CpuIx cpu;
    bool cross_node;
    uint64_t since_usec;
    uint64_t until_usec;
    uint64_t since_tick;
} Lease;

typedef struct CpuLoad {
    bool online;
    bool usable;     /* online and neither reserved by configuration nor isolated from the scheduler */
    bool wait_known; /* wait_permille was measured; false without /proc/schedstat and sampled threads */
    uint16_t busy_permille;
    uint16_t busy_before_permille;
    uint16_t wait_permille;
    uint16_t wait_before_permille;
    uint64_t idle_since_usec;     /* start of the present idle spell; 0: not idle */
    uint32_t idle_ewma_usec;      /* average length of idle spells, weight 1/8 (as rq->avg_idle, P2) */
    uint64_t cooldown_until_usec; /* recalled for its owner: not lent again before */
    uint32_t cooldown_ticks;      /* last cool-down, in units of MinResidencySec=; doubled at relapse (P7) */
} CpuLoad;

/* Memory of one node. */
typedef struct NodeLoad {
    /* What may still be placed there at no cost to others: free memory, and clean file pages not used lately.
     * Up to WORLD_MEMORY_MAX; 0 when it is not known. Watermarks and headroom are not subtracted. */
    uint64_t free_bytes;
    bool free_known;
    uint32_t others_permille; /* average load of unmanaged programs; see load_nodes() */
    uint32_t left_permille;   /* the same of this tick; set by load_nodes(), not in the text */
} NodeLoad;

/* Bytes of one process or node, 32 TiB; larger values are cut to this. Sums over all of a World fit into 64 bits. */
#define WORLD_MEMORY_MAX (1ULL << 45)
#define WORLD_PAGES_MAX  (WORLD_MEMORY_MAX >> 12)

/* MB/s of one thread; no thread moves more. */
#define WORLD_TRAFFIC_MAX (1U << 20)

typedef struct World {
    Topology *topology; /* owned reference */
    InternPool *pool;   /* owns every interned string and mask in here */
    uint64_t now_usec;
    uint64_t tick;             /* number of fast ticks since start */
    uint64_t interval_usec;    /* length of the last tick */
    uint64_t action_cost_usec; /* measured mean cost of one mask change, 0 when not yet measured */
    uint32_t idle_permille;    /* a CPU that was busy for less is idle (P1) */
    uint32_t own_permille;     /* CPU time of the daemon in the last tick, of one CPU */
    bool partial;              /* some input could not be read in this tick (I10) */
    Bucket cross_node;         /* of the whole host */

    /* Rules switched off by a simulation: bits of plan/ablation.h. Not in the text of a World, but in the head of a
     * transcript entry */
    uint64_t ablated;
    /* kernel.numa_balancing: the kernel, too, moves memory to threads. As last read with the residency of
     * some process or the evidence of its use. */
    bool kernel_balances;
    bool use_hidden; /* use of memory cannot be seen: write faults do not work, or are not used (--once) */
    uint32_t memory_pressure_permille; /* of the last ten seconds, tasks waited for memory; 0: not read */

    CpuLoad *cpus;   /* [topology->cpu_limit] */
    NodeLoad *nodes; /* [topology->n_nodes] */
    Workload *workloads;
    size_t n_workloads, workloads_capacity;
    Group *groups; /* ascending id */
    size_t n_groups, groups_capacity;
    Process *processes; /* ascending pid; only those a policy matched */
    size_t n_processes, processes_capacity;
    Task *tasks; /* ascending (pid, tid) */
    size_t n_tasks, tasks_capacity;
    Lease *leases; /* ascending cpu */
    size_t n_leases, leases_capacity;
    uint64_t next_group_id;
} World;

/* How long ago an instant was; 0 if it is not past. */
static inline uint64_t world_since(const World *world, uint64_t then_usec)
{
    return world->now_usec - MIN(then_usec, world->now_usec);
}

/* The sum of `amounts` [topology->n_nodes]; 0 for NULL. It must fit, as that of bytes or pages does. */
uint64_t world_sum_nodes(const World *world, const uint64_t *amounts);

/* Makes an empty World over `topology`, of which it takes a reference. Returns 0 or -ENOMEM. */
int world_new(Topology *topology, World **ret);
World *world_free(World *world);
DEFINE_CLEANUP(World *, world_free)

/* A World with the same contents and nothing in common with the original. Returns 0 or -ENOMEM. */
int world_copy(const World *world, World **ret);

/* Drops what is gone: tasks, processes with their tasks, groups, groups without processes, and strings and
 * masks no longer held. Leases of dropped tasks end, and sums are recomputed. Indices change, keys do not.
 * Call between ticks only. Returns 0 or -ENOMEM (World unchanged). */
int world_compact(World *world);

/* Add an entry in its sorted place; later indices move up, and references to them inside the World follow. Appending
 * (keys in ascending order) is O(1). Return the index, -EEXIST when the key is there already (pid; pid and tid; name;
 * the CPU is lent or the task has a lease), or -ENOMEM. The pointers inside `value` must be interned in world->pool;
 * `key` and `name` are interned here. A new process has no node_bytes, and a new task has no lease, home node or use,
 * whatever `value` says. world_add_lease(): -ESRCH when the World has no such task. */
int world_add_process(World *world, const Process *value);
int world_add_task(World *world, const Task *value);
int world_add_group(World *world, WorkloadIx workload, const char *key);
int world_add_workload(World *world, const char *name, uint32_t policy);
int world_add_lease(World *world, const Lease *value);
void world_remove_lease(World *world, size_t index);

/* Forgets what processors counted of a process and what followed from it: it runs another program, or is no
 * longer counted. */
void world_forget_counts(Process *process);

/* Sets where the memory of a process lies: copies bytes[topology->n_nodes], each cut to WORLD_MEMORY_MAX, as
 * measured at `measured_usec`, which is not 0. NULL: no longer known. Also sets grown_bytes. Returns 0 or
 * -ENOMEM (nothing changed). */
int world_set_process_memory(const World *world, Process *process, const uint64_t *bytes,
                             uint64_t measured_usec);

/* Sets what is known of the memory a thread uses: `pages` [topology->n_nodes], and the others as in TaskUse.
 * TaskUse.stay is kept, or not known at first. NULL: no longer known. Returns 0 or -ENOMEM (nothing changed). */
int world_set_task_use(const World *world, Task *task, const uint64_t *pages, uint32_t private_permille,
                       TaskKey buddy, uint64_t measured_usec);

/* Look-ups; NULL when there is none. */
Process *world_process(const World *world, pid_t pid);
Task *world_task(World *world, TaskKey key);
Task *world_task_by_tid(World *world, pid_t pid, pid_t tid);
Group *world_group_by_id(World *world, uint64_t id);
Workload *world_workload_by_name(World *world, const char *name);

/* The index of a workload; WORKLOAD_NONE for NULL. */
WorkloadIx world_workload_index(const World *world, const Workload *workload);

/* The tasks of a process are adjacent. Returns the index of the first, and their number. `process` points
 * into the World. */
size_t world_process_tasks(const World *world, const Process *process, size_t *ret_n);

/* Recomputes the sums of groups and workloads from their processes, tasks and leases (gone ones do not count), and the
 * tasks' lease indices. */
void world_sum(World *world);

/* The key of a task. */
TaskKey world_task_key(const World *world, const Task *task);

/* Names of TaskClass and TaskHands ("normal", "per-cpu"), NULL-terminated. */
extern const char *const world_class_names[];
extern const char *const world_hands_names[];

/* Calls `string` or `mask` for every interned name and mask that the World holds, including those that are NULL. */
void world_visit_interned(World *world, void (*string)(void *userdata, const char **s),
                          void (*mask)(void *userdata, CpuMask *mask), void *userdata);

/* Asserts every invariant of the type (order, indices, interning, leases, buckets, not the sums); 0, or -EUCLEAN and a
 * malloc'd sentence in *ret_what (NULL: not wanted). Called by tests and debug builds. */
int world_check(const World *world, char **ret_what);

/* The text form: stable, one line per entry, for records, goldens and scenarios; malloc'd, NULL when memory is out.
 * Left out are Task.reader, which names something in the process that wrote the text, and members marked as not in it.
 *
 * The lines and their order: format, topology ..., world, load (one per CPU), memory (one per node of which something
 * is known), workload, group, process, task, lease; base/record/record.h has the form of a line. Keys are named after
 * the members; absent ones are 0, no, NULL or none, and idle_permille 50. Workloads and groups are referred to by
 * index, tasks and leases by pid and tid.
 *
 * world_load() needs no other input; it returns 0, -ENOMEM, or -EINVAL with a malloc'd "line N: expected ..." in
 * *ret_error. A World it returns passes world_check(). */
#define WORLD_TEXT_ENTRIES_MAX   262144U /* of each of tasks, processes and groups */
#define WORLD_TEXT_WORKLOADS_MAX 4096U
char *world_dump(const World *world);
int world_load(const char *text, size_t len, World **ret, char **ret_error);
