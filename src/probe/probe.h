/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sensing: from a kernel (or a captured tree of its files) to a World. Reads only below its root directory, except
 * that the live probe asks sched_getaffinity(2) and sched_getscheduler(2). Everything about a task that exits
 * meanwhile is an outcome, not an error. */

#include "base/util.h"
#include "kernel/cgroup/cpusets.h"
#include "world/world.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Probe Probe;

/* What the machine offers; each missing one is said once by the daemon. */
typedef struct ProbeFeatures {
    bool schedstat; /* /proc/schedstat: wait per CPU */
    uint32_t schedstat_version;
    bool task_schedstat; /* /proc/PID/schedstat: run and wait per task */
    bool psi;            /* /proc/pressure/cpu */
    bool psi_trigger;    /* and it can be waited for */
    bool numa;           /* more than one node */
    int cgroup;          /* ProbeCgroupLayout */
    CpusetsV1 cpuset_v1; /* where the cpuset controller is on version 1 */
} ProbeFeatures;

typedef enum ProbeCgroupLayout {
    PROBE_CGROUP_NONE,
    PROBE_CGROUP_V1,
    PROBE_CGROUP_HYBRID, /* systemd's: v1 controllers, v2 tree for tracking */
    PROBE_CGROUP_V2,
    PROBE_CGROUP_MAX,
    PROBE_CGROUP_INVALID = -EINVAL,
} ProbeCgroupLayout;

/* A process about to be matched: what was read of it. */
typedef struct ProbeSubject {
    pid_t pid, parent;
    pid_t group, session; /* process group and session */
    uint64_t start_ticks;
    uid_t uid;
    const char *comm, *exe, *command_line, *cgroup, *unit, *slice;
    const char *environment;
    size_t environment_len;
    uint64_t rss_bytes;
    uint32_t n_threads, cpu_permille;
} ProbeSubject;

/* Answers to whether a process is to be in the World. One that is in and is not TAKE any more loses its workload and
 * group at once, and leaves when no mask of ours is on it. */
typedef enum ProbeDecision {
    PROBE_DECISION_IGNORE, /* ask again only when its name, cgroup or program changed */
    PROBE_DECISION_LATER,  /* ask again at every discovery */
    PROBE_DECISION_TAKE,   /* put it into the World; *ret_policy says which policy. Asked again like IGNORE */
} ProbeDecision;

typedef struct ProbeCallbacks {
    /* Decides about a process; called at discovery, once, and again as the decision says. Never for kernel threads,
     * zombies and `self`. A changed name of a process in the World is seen at the next discovery, every other change
     * within eight. */
    ProbeDecision (*decide)(void *userdata, const ProbeSubject *subject, size_t *ret_policy);
    /* Whether decide() would answer the same whatever the command line and the environment of the process say, which
     * then are not read: they may be long in coming. All else is set. NULL: about none. */
    bool (*is_settled)(void *userdata, const ProbeSubject *subject);
    /* Whether decide() would say no about a process whatever there is to read of it, which then is not read: LATER,
     * or IGNORE as long as it is in the World. NULL: about none. */
    bool (*refuses)(void *userdata, pid_t pid, uint64_t start_ticks);
    /* Puts a process that was taken into its group: group_assign(). Returns 0 or -ENOMEM. */
    int (*assign)(void *userdata, World *world, Process *process, size_t policy);
    /* What is wanted of the memory of a process, PROBE_MEMORY_...; asked about each process of a workload at each
     * discovery. What nobody wants is not read. NULL: nothing. */
    unsigned (*wants_memory)(void *userdata, const World *world, const Process *process);
    /* What the cpuset at `path` would leave without this daemon: true, and `ret`, which has what it says, has it,
     * where that differs. It is what processes there are shown to be allowed. NULL: it never is. */
    bool (*bound)(void *userdata, const char *path, hwloc_bitmap_t ret);
    /* Told once of a process whose command line or environment does not come for seconds; of what it is told, only
     * pid, start time, name and user are set. It is not decided about until they can be read. NULL: nobody wants to
     * know. */
    void (*hangs)(void *userdata, const ProbeSubject *subject);
    void *userdata;
} ProbeCallbacks;

#define PROBE_MEMORY_NODES \
    (1U << 0) /* Process.node_bytes, and of the World nodes, pressure and who balances */
#define PROBE_MEMORY_SHARED (1U << 1) /* Process.shared */
#define PROBE_MEMORY_AGAIN \
    (1U << 2) /* what is known is out of date: look at this discovery, whenever that is due */

typedef struct ProbeOptions {
    int root_fd; /* borrowed */
    bool live;   /* root is this machine: sched_getaffinity(2) may be used */
    /* Reads that a process can make hang are made aside (probe/tasks/aside.h); of no use in captured trees. */
    bool aside;
    uint32_t aside_wait_usec; /* how long for one of them, up to 100 s; 0: what a tick can spare, 20 ms */
    pid_t self;               /* never taken (I2); 0: none */
    unsigned wants;           /* PROBE_WANTS_... */
    uint32_t max_tasks;       /* MaxTasks=; further ones are counted, not sampled */
    uint32_t
        max_kept_open; /* descriptors kept open; 0: what RLIMIT_NOFILE leaves. Each costs the kernel 6 KiB */
    uint32_t
        batch; /* threads gone through at a time where there may be very many; 0: what a tick can spare the time for */
    uint32_t descriptors_reserved; /* that the caller wants left of RLIMIT_NOFILE, beyond some 500 */
    hwloc_const_bitmap_t reserved; /* ReservedCPUs=: never used for lends; may be NULL. Copied */
} ProbeOptions;

#define PROBE_WANTS_EXE          (1U << 0)
#define PROBE_WANTS_COMMAND_LINE (1U << 1)
#define PROBE_WANTS_ENVIRONMENT  (1U << 2)

typedef struct ProbeStatistics {
    uint64_t n_reads;      /* task files read */
    uint64_t n_taken;      /* processes that became members of the World */
    uint64_t n_gone;       /* tasks that exited under our hands */
    uint64_t n_unparsable; /* foreign text skipped */
    uint64_t n_put_off;    /* reads that did not come at once: command lines, environments, numa_maps */
    /* Processes not decided about at the last discovery: theirs hang, or too many of their user's do. */
    uint64_t n_unreadable;
    uint64_t n_no_descriptors; /* files not opened for want of descriptors since the last discovery began */
    uint64_t n_over_limit;    /* tasks beyond max_tasks, as of the last discovery */
    uint64_t n_kept_open;     /* descriptors now kept open */
    uint64_t n_quiet;         /* tasks sampled only at discovery, because they sleep */
    uint64_t n_memory_reads;  /* of numa_maps */
    uint64_t memory_cpu_nsec; /* CPU time of these, which is of other threads */
} ProbeStatistics;

int probe_new(const ProbeOptions *options, const ProbeCallbacks *callbacks, Probe **ret);
Probe *probe_free(Probe *probe);
DEFINE_CLEANUP(Probe *, probe_free)

const ProbeFeatures *probe_features(const Probe *probe);
const ProbeStatistics *probe_statistics(const Probe *probe);
/* Threads whose read hangs, for however long. */
size_t probe_n_hanging(const Probe *probe);

/* Changes what decide() is told, after a reload; everything is asked again at the next discovery. */
void probe_set_wants(Probe *probe, unsigned wants);

/* Looks at /proc/loadavg, one small file: probe_newcomers() and probe_room() are as of then. A discovery does so
 * itself when nobody has since the last one. */
void probe_glance(Probe *probe);

/* Whether processes or threads have begun since the last discovery, anywhere on the machine, as far as /proc/loadavg
 * tells. */
bool probe_newcomers(const Probe *probe);

/* Has decide() asked about one process at the next discovery, for the same reason. */
void probe_ask_about(Probe *probe, pid_t pid);

/* Processes that the last discovery met for the first time, managed or not, in ascending order; the daemon itself
 * and kernel threads are not among them. Each has tid 0. Valid until the next discovery. */
const TaskKey *probe_born(const Probe *probe, size_t *ret_n);

/* Whether the last discovery met this process, managed or not. */
bool probe_met(const Probe *probe, pid_t pid, uint64_t start_ticks);

/* Whether fewer threads were runnable at that instant than there are CPUs online, as far as /proc/loadavg tells,
 * besides the one that asks and `n_waiting` that wait where an idle CPU does not help them. */
bool probe_room(const Probe *probe, const World *world, uint32_t n_waiting);

/* The slow half: finds and matches processes and threads, re-reads masks, cpusets and names, drops what is gone
 * (world_compact()), and brings the World's `now` and its sums up to date. Hands of a thread:
 *   - FOREIGN: narrower than its cpuset, and neither the home of its group or its parent's group nor that and one CPU;
 *   - REPINNED, and its process yielded: changed by us, and the mask is neither ours nor the kernel's doing after a
 *     change of CPUs or cpuset. For good;
 *   - UNKNOWN: its mask or times could not be read; until they can (I10).
 * Memory of processes is looked at when they are seen first, then less and less often (probe/memory/residency.h).
 * Masks are cut to what is online. Those changed by us are read every time, up to 8192 in turn; of the others 2000.
 * Of a process of more than 1024 threads only their number is read here: probe_go_on() does the rest.
 * Returns 0, -ENOMEM, or -errno when /proc itself cannot be read. */
int probe_discover(Probe *probe, World *world, uint64_t now_usec);

/* As much of it as newcomers need, at a small part of its cost where others have very many threads: no masks are read
 * again, and no threads that sleep are sampled. */
int probe_find_newcomers(Probe *probe, World *world, uint64_t now_usec);

/* Goes on with what the last discovery has left of a large process: lists or reads some of its threads. To be called
 * as long as probe_unfinished() says that there is more. 0 or -ENOMEM. */
bool probe_unfinished(const Probe *probe);
int probe_go_on(Probe *probe, World *world);

/* The fast half: loads of CPUs and of the tasks in the World; tick number, now and interval of the World advance, its
 * sums are brought up to date. A task's first sample leaves it `fresh`. Not everything is read every time:
 *   - of more than 8192 tasks that work so many are sampled in turn, a quarter of it where no descriptor is kept open;
 *   - a task without run time in eight samples has zero load until the sample after the next discovery, except that
 *     it is watched (512 per tick, in turn) while a CPU of its group's home is lent;
 *   - last_cpu is that of this tick for holders of a lease; in turn (32 and one per CPU) for tasks that wait at least
 *     50 permille, unless no CPU has time to spare; and in the sample after a full discovery in turn for as many that
 *     run so much. For all others it is where they were seen last;
 *   - without /proc/schedstat the wait of a CPU is that of the tasks seen last on it; not known without one.
 * Returns 0, -ENOMEM, or -errno when the CPU times cannot be read (the World is then marked partial). */
int probe_sample(Probe *probe, World *world, uint64_t now_usec);

/* Reads one process the way a discovery would, whether or not it is managed, and hands what was read to `look_at`,
 * whose result is returned; for explain. The strings end with the call. -ESRCH: there is no such process.
 * PROBE_E_OUT_OF_REACH: a kernel thread, a zombie or the daemon itself, about which decide() is never asked. Its
 * command line or environment is wanted and: PROBE_E_AWAITED: has not come yet; PROBE_E_HANGS: does not come;
 * PROBE_E_CROWDED: is not read because too many of other processes of its user, or of all users, hang. */
#define PROBE_E_OUT_OF_REACH 1
#define PROBE_E_AWAITED      2
#define PROBE_E_HANGS        3
#define PROBE_E_CROWDED      4
int probe_look(Probe *probe, pid_t pid, unsigned wants,
               int (*look_at)(void *userdata, const ProbeSubject *subject), void *userdata);

/* Online CPUs or this process's cpuset changed since the last call: time to load the topology anew. */
bool probe_topology_changed(Probe *probe);

/* Takes over from `before`, which `probe` is to replace, what the last probe_topology_changed() is compared with. The
 * topology that goes with a new probe was loaded before it was made, and what changed in between must not get lost. */
int probe_topology_adopt(Probe *probe, const Probe *before);

/* Takes over the threads that read what may hang: those that do would be lost with `before`, and others begun in
 * their place. */
void probe_adopt_readers(Probe *probe, Probe *before);
