/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* World: everything a plan may depend on at one instant. Sensing fills it, planning reads it, the outcome of acting
 * is folded back by plan_commit(). It knows nothing of files, clocks or policies.
 *
 * Loads are in permille of one CPU over the last tick: run 1000 means a whole CPU was used, wait 1000 means runnable
 * but not running all the time. Instants are CLOCK_MONOTONIC microseconds; 0 means never. */

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

/* Names a task across ticks. Never use a bare pid for that: numbers are reused. `tid` 0 stands for the whole process.
 * `start_ticks` is the start time of the thread `tid` (or of the process when tid is 0), field 22 of its stat. */
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

/* Why a task must be left alone. */
typedef enum TaskHands {
    TASK_HANDS_FREE,     /* may be placed */
    TASK_HANDS_FOREIGN,  /* its mask is narrower than its cpuset: pinned by somebody else */
    TASK_HANDS_REPINNED, /* a mask of ours was changed by somebody else: yielded */
    TASK_HANDS_PER_CPU,  /* pinned to one CPU by the kernel or by itself (I2) */
    TASK_HANDS_CLASS,    /* a scheduling class that is never touched (I2) */
    TASK_HANDS_DENIED,   /* the kernel refused us; until its cpuset changes */
    TASK_HANDS_UNKNOWN,  /* a read failed or was partial: no action on it (I10) */
    TASK_HANDS_MAX,
    TASK_HANDS_INVALID = -EINVAL,
} TaskHands;

/* Where a thread ran for all that was seen of it since `usec`, in so many rounds. */
typedef struct TaskStay {
    NodeIx node;    /* NODE_NONE: on several nodes, or it is not known */
    uint16_t rounds;
    uint32_t since; /* the number of the first of them (TouchThread) */
    uint64_t usec;
} TaskStay;

/* What is known of the memory a thread uses, by evidence that sees threads (P11, P14). */
typedef struct TaskUse {
    uint64_t measured_usec;    /* not 0 */
    uint16_t private_permille; /* of what it uses, only it uses so much */
    TaskKey buddy;             /* the thread of its process that it shares most with; tid 0: none, or many */
    TaskStay stay;
    uint64_t pages[]; /* [topology->n_nodes]: averages of what it uses, by the node where that lies; up to
                                  WORLD_PAGES_MAX each */
} TaskUse;

typedef struct Task {
    pid_t tid;
    ProcessIx process;
    uint64_t start_ticks;
    char comm[WORLD_COMM_SIZE];
    uint32_t reader;               /* handle of whoever fills this entry in (probe); opaque here */
    uint8_t task_class;            /* TaskClass */
    uint8_t hands;                 /* TaskHands */
    bool gone;                     /* exited; dropped by the next world_compact() */
    bool fresh;                    /* seen for the first time in this tick: loads are not valid yet */
    CpuIx last_cpu;                /* where it ran last; CPU_NONE when not known */
    uint16_t run_permille;         /* this tick */
    uint16_t wait_permille;        /* this tick */
    uint16_t run_before_permille;  /* the tick before */
    uint16_t wait_before_permille; /* the tick before */
    uint16_t run_ewma_permille;    /* weight 1/8 of the new value */
    uint16_t wait_ewma_permille;
    CpuMask allowed;         /* the mask it has now, as last read or set by us; NULL: not known */
    CpuMask original;        /* the mask to put back; NULL: not changed by us */
    int32_t lease;           /* index into World.leases, -1: not lent a CPU */
    NodeIx home_node;        /* where it lives in a home of several nodes; NODE_NONE: anywhere in the home */
    TaskUse *use;            /* NULL: not known. Owned; see world_set_task_use() */
    uint64_t last_move_usec; /* when we last changed its mask */
} Task;

/* Bringing the memory of a process to its home (P18), an order at a time. Nodes are NodeIx bitmaps. */
typedef struct MemoryMove {
    CpuMask to;           /* an order is under way, to these; NULL: none is */
    bool stripe;          /* the last one also moves between them (P17) */
    uint64_t todo_bytes;  /* of it, to be moved yet */
    CpuMask last;         /* where the last one went; NULL: there was none */
    CpuMask before;       /* where its memory was before that went somewhere else */
    uint64_t since_usec;  /* when the last one was given */
    uint64_t over_usec;   /* when one was over last */
    uint64_t until_usec;  /* no other one before (I7) */
    uint64_t stuck_bytes; /* that the last one could not move, or that lie as dealt out */
    uint32_t n_vain;      /* how many in a row moved nothing */
    bool by_use;          /* the one under way is of parts of it, to the threads that use them */
} MemoryMove;

/* Where its memory lay before it followed a home to fewer nodes, and how fast the process gets on (plan/scan/gather.h).
 */
typedef struct MemoryGather {
    CpuMask nodes;       /* and where it went; NULL: it did not follow, or how fast the process got on is not known */
    CpuMask cpuset;      /* that the process had then */
    uint32_t progress;   /* instructions by cycle, permille: before that, and in a trial, before the trial */
    uint64_t begun_usec; /* when it began to follow */
    uint64_t since_usec; /* what is counted from then on says how fast it gets on now */
    uint64_t until_usec; /* it is to lie on `nodes` again until then; 0: it is not */
    bool slower;         /* it was counted once that the process gets on more slowly */
    bool trial;          /* it is being tried whether it gets on faster with its memory on `nodes` again */
} MemoryGather;

/* What became of such orders. */
typedef struct MemoryAccount {
    uint64_t n_orders; /* that are over */
    uint64_t moved_bytes;
    uint64_t refused_bytes; /* should have moved, and could not */
    uint64_t blocked_usec;  /* so long at most was somebody kept from memory that was under way */
} MemoryAccount;

/* See Process.shared. */
#define PROCESS_SHARED_MUCH '+'

typedef struct Process {
    pid_t pid;
    pid_t parent;
    uint64_t start_ticks;
    uint64_t started_usec; /* the same in the clock of World.now_usec, never later than: */
    uint64_t first_seen_usec;
    uid_t uid;
    const char *comm;   /* interned, raw bytes as the kernel gives them */
    const char *cgroup; /* path in the unified (or cpu) hierarchy, "/" at least */
    const char *unit;   /* innermost systemd unit of that path, or NULL */
    const char *slice;  /* innermost systemd slice, or NULL */
    /* Names of shared memory it maps, PROCESS_SHARED_MUCH behind those that are much of all it has, and of groups
     * the kernel's balancing has put its threads into, "ngid:N"; one blank between two; NULL: not known, or none. */
    const char *shared;
    CpuMask cpuset; /* CPUs its cpuset lets it use: the outer bound (I1); NULL: not known */
    uint64_t rss_bytes;
    /* Residency (evidence D): [topology->n_nodes], how much of its memory that placement can follow lies on each node,
     * up to WORLD_MEMORY_MAX. NULL: not known. Owned; see world_set_process_memory(). */
    uint64_t *node_bytes;
    uint64_t node_bytes_usec; /* when that was measured; 0 exactly when it is not known */
    uint64_t bound_bytes;     /* of it, with a memory policy that names nodes */
    uint64_t grown_bytes;     /* how much more that is than what was known before */
    /* Of the time its threads run in user mode, they wait for memory for so much at most, by what processors count
     * (plan/scan/stall.h), in what began at `stall_usec`; 0: not known. It is due again at `stall_due_usec`. */
    uint16_t stall_permille;
    uint16_t ipc_permille; /* instructions by cycle then */
    uint64_t stall_usec, stall_due_usec;
    uint32_t traffic_mb; /* what it moved between memory and caches then; MB for each second that one thread runs */
    MemoryMove memory;
    MemoryGather gather;
    bool memory_awaited; /* that is being found out for the first time: a moment later it is known */
    /* Who uses which part is being found out, or would be; till then it is not dealt out to several nodes. */
    bool use_awaited;
    bool write_fails; /* write faults were tried with it, in vain */
    bool use_hidden;  /* who uses what of it is not to be seen: for that, or because too many are looked at */
    uint32_t n_threads;
    uint32_t cpu_permille; /* CPU time used over the last slow tick, in permille of one CPU */
    WorkloadIx workload;
    GroupIx group;
    bool gone;
    bool yielded;  /* somebody re-pinned it while managed: hands off until it ends */
    bool assigned; /* to its workload by name: nothing about it is waited for */
} Process;

/* The tasks placed as one. */
typedef struct Group {
    uint64_t id; /* stable for the life of the group, never reused */
    WorkloadIx workload;
    const char *key;    /* "" for the whole workload, a cgroup path, or a pid in decimal */
    CpuMask home;       /* CPUs of its home nodes; NULL: it has none and is not confined */
    CpuMask home_nodes; /* NodeIx bitmap; NULL exactly when home is */
    /* Where acting would place it, of one that is only observed; NodeIx. When that changes, its first home is there,
     * unless another one is clearly better: what was said is what is done. NULL: nothing was said, or it has come
     * true. */
    CpuMask wish_nodes;
    uint64_t first_seen_usec;
    uint64_t last_home_usec; /* when the home was last changed */
    uint64_t apart_usec;     /* when a thread of it last got another node than it had; 0: never */
    uint64_t pool_until_usec; /* its threads share all CPUs of its home until then, though each could have a node */
    uint64_t pool_next_usec;  /* that is not tried before */
    uint32_t pool_before_permille; /* while it is tried: which part of what they want they waited before; else 0 */
    uint32_t pool_others_permille; /* and all other groups */
    uint64_t pool_progress;        /* and how fast they got on before it (plan/scan/stall.h); 0: it was not counted */
    bool roams;     /* it needs all nodes, so it was decided to leave it to the kernel: `home` is NULL */
    bool converged; /* its memory has come together at its home, and it stays for that (P16) */
    /* The last change of its home. */
    CpuMask before_nodes;            /* where it lived before; NULL: nowhere */
    uint32_t before_wait_permille;   /* of the CPU time its threads wanted then, what they waited */
    uint32_t before_others_permille; /* the same of all other groups */
    uint32_t before_demand_permille; /* and its demand */
    bool guessed;                    /* where its memory is was not known when its home was chosen */
    uint64_t judge_usec;             /* when that is held against what they wait now; 0: it has been */
    uint32_t n_changes;              /* of its home, since: */
    uint64_t changes_since_usec;
    uint64_t frozen_until_usec; /* it went back and forth, or had to go back: it stays until then */
    uint32_t n_tasks;
    uint32_t run_permille; /* sums over its tasks, this tick */
    uint32_t wait_permille;
    uint32_t want_permille;   /* sum of the averages of both */
    uint32_t before_permille; /* what it ran and waited in the tick before */
    uint32_t demand_permille; /* the same as want, rising at once and falling slowly; see load_groups() */
    uint32_t outside_permille; /* of run_permille, on nodes outside of its home; of load_nodes(), not in the text */
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
    MemoryAccount memory; /* the same */
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
    bool usable; /* online and neither reserved by configuration nor isolated from the scheduler */
    bool
        wait_known; /* wait_permille was measured; false without /proc/schedstat and without sampled threads */
    uint16_t busy_permille;
    uint16_t busy_before_permille;
    uint16_t wait_permille;
    uint16_t wait_before_permille;
    uint64_t idle_since_usec;     /* start of the present idle spell; 0: not idle */
    uint32_t idle_ewma_usec;      /* average length of idle spells, weight 1/8 (as rq->avg_idle, P2) */
    uint64_t cooldown_until_usec; /* recalled for its owner: not lent again before */
    uint32_t cooldown_ticks; /* of the last cool-down, in MinResidencySec=; doubled at each relapse (P7) */
} CpuLoad;

/* Memory of one node. */
typedef struct NodeLoad {
    /* What may still be put there at no cost to others: what is free, and file pages nobody used lately that need
     * not be written first. Up to WORLD_MEMORY_MAX; 0 when it is not known. Watermarks and headroom are not taken
     * off. */
    uint64_t free_bytes;
    bool free_known;
    uint32_t others_permille; /* what runs there that nobody manages, on average; see load_nodes() */
    uint32_t left_permille;   /* the same of this tick; of load_nodes(), not in the text */
} NodeLoad;

/* Bytes of one process or node, 32 TiB; more counts as that. Sums over all of a World fit into 64 bits. */
#define WORLD_MEMORY_MAX (1ULL << 45)
#define WORLD_PAGES_MAX  (WORLD_MEMORY_MAX >> 12)

/* MB/s of one thread: more than any moves. */
#define WORLD_TRAFFIC_MAX (1U << 20)

typedef struct World {
    Topology *topology; /* owned reference */
    InternPool *pool;   /* owns every interned string and mask in here */
    uint64_t now_usec;
    uint64_t tick;             /* number of fast ticks since start */
    uint64_t interval_usec;    /* length of the last tick */
    uint64_t action_cost_usec; /* measured mean cost of one mask change, 0 when not yet measured */
    uint32_t idle_permille;    /* a CPU that was busy for less is idle (P1) */
    uint32_t own_permille;     /* what the daemon itself ran in the last tick, of a CPU */
    bool partial;              /* some input could not be read in this tick (I10) */
    Bucket cross_node;         /* of the whole host */

    uint64_t ablated; /* rules that a simulation has switched off: bits of plan/ablation.h. A transcript has
                         their names; the text of the World has not */
    /* kernel.numa_balancing: the kernel moves memory to threads, too. As it was when somebody's memory was last looked
     * at, or who uses it. */
    bool kernel_balances;
    bool use_hidden; /* who uses which memory is not to be seen: write faults do not work, or nobody looks (--once) */
    uint32_t memory_pressure_permille; /* of the last ten seconds, somebody waited for memory; 0: not looked at */

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

/* Makes an empty World over `topology` (a reference is taken). Returns 0 or -ENOMEM. */
int world_new(Topology *topology, World **ret);
World *world_free(World *world);
DEFINE_CLEANUP(World *, world_free)

/* A World with the same contents and nothing in common with the original. Returns 0 or -ENOMEM. */
int world_copy(const World *world, World **ret);

/* Drops gone tasks, processes (with all their tasks) and groups, groups no process is left in, and every string and
 * mask the World does not hold any more; leases of dropped tasks end; sums are made anew. Indices change, keys do
 * not. Call between ticks only. Returns 0 or -ENOMEM (World unchanged). */
int world_compact(World *world);

/* Adds an entry in its sorted place; later indices move up, and references to them inside the World follow.
 * Appending (keys in ascending order) is O(1). Return the index, -EEXIST when the key is there already (pid; pid and
 * tid; name; the CPU is lent or the task has a lease), or -ENOMEM. The pointers inside `value` must be interned in
 * world->pool; `key` and `name` are interned here. A new process has no node_bytes and a new task no lease, home
 * node and use, whatever `value` says.
 * world_add_lease(): -ESRCH when the World has no such task. */
int world_add_process(World *world, const Process *value);
int world_add_task(World *world, const Task *value);
int world_add_group(World *world, WorkloadIx workload, const char *key);
int world_add_workload(World *world, const char *name, uint32_t policy);
int world_add_lease(World *world, const Lease *value);
void world_remove_lease(World *world, size_t index);

/* Nothing that processors counted of it is known any more, nor what was found by that: its program is another one, or
 * it is not counted any more. */
void world_forget_counts(Process *process);

/* Says where the memory of a process lies: a copy of bytes[topology->n_nodes], each cut to WORLD_MEMORY_MAX, as
 * measured at `measured_usec`, which is not 0. NULL: not known any more. Sets grown_bytes, too. Returns 0 or -ENOMEM
 * (what was known stays). */
int world_set_process_memory(const World *world, Process *process, const uint64_t *bytes,
                             uint64_t measured_usec);

/* Says what is known of the memory a thread uses: `pages` [topology->n_nodes], and the others as in TaskUse; where it
 * ran stays as it was, at first not known. NULL: nothing any more. Returns 0 or -ENOMEM (what was known stays). */
int world_set_task_use(const World *world, Task *task, const uint64_t *pages, uint32_t private_permille,
                       TaskKey buddy, uint64_t measured_usec);

/* Look-ups; NULL when there is none. */
Process *world_process(const World *world, pid_t pid);
Task *world_task(World *world, TaskKey key);
Task *world_task_by_tid(World *world, pid_t pid, pid_t tid);
Group *world_group_by_id(World *world, uint64_t id);
Workload *world_workload_by_name(World *world, const char *name);

/* Its index; of NULL WORKLOAD_NONE. */
WorkloadIx world_workload_index(const World *world, const Workload *workload);

/* The tasks of a process are neighbours: the index of the first, and their number. `process` points into the World. */
size_t world_process_tasks(const World *world, const Process *process, size_t *ret_n);

/* Recomputes the sums of groups and workloads from their processes, tasks and leases (gone ones do not count), and the
 * tasks' lease indices. */
void world_sum(World *world);

/* Name of the task as a key. */
TaskKey world_task_key(const World *world, const Task *task);

/* Names of TaskClass and TaskHands ("normal", "per-cpu"), NULL-terminated. */
extern const char *const world_class_names[];
extern const char *const world_hands_names[];

/* Calls one of the two for every name and every mask in the pool that the World holds, those that are NULL included. */
void world_visit_interned(World *world, void (*string)(void *userdata, const char **s),
                          void (*mask)(void *userdata, CpuMask *mask), void *userdata);

/* Asserts every invariant of the type (order, indices, interning, leases, buckets, not the sums); 0, or -EUCLEAN and a
 * malloc'd sentence in *ret_what (NULL: not wanted). Called by tests and debug builds. */
int world_check(const World *world, char **ret_what);

/* The text form: complete, stable, one line per entry, for records, goldens and scenarios; malloc'd, NULL when memory
 * is out. Only Task.reader is left out: it names something in the process that wrote the text.
 *
 * The lines and their order: format, topology ..., world, load (one per CPU), memory (one per node of which something
 * is known), workload, group, process, task, lease; base/record/record.h has the form of a line. Keys are named after
 * the members; those left out are 0, no, NULL or none. Workloads and groups are named by their index, tasks and leases
 * by pid and tid.
 *
 * world_load() needs no other input; it returns 0, -ENOMEM, or -EINVAL with a malloc'd "line N: expected ..." in
 * *ret_error. A World it returns passes world_check(). */
#define WORLD_TEXT_ENTRIES_MAX   262144U /* of each of tasks, processes and groups */
#define WORLD_TEXT_WORKLOADS_MAX 4096U
char *world_dump(const World *world);
int world_load(const char *text, size_t len, World **ret, char **ret_error);
