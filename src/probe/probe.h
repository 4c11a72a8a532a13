/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sensing: reads a kernel, or a captured tree of its files, into a World. Reads only below its root
 * directory, except that a live probe calls sched_getaffinity(2) and sched_getscheduler(2). A task that exits
 * meanwhile is an outcome, not an error. */

#include "base/util.h"
#include "kernel/cgroup/cpusets.h"
#include "world/world.h"

#include <stdbool.h>
#include <stdint.h>

/* Descriptors not used for threads and rings: files of a pass, other files kept open, triggers, the journal. Those of
 * clients come on top. */
#define PROBE_DESCRIPTORS_RESERVE 512U

typedef struct Probe Probe;

/* What the machine offers. The daemon reports each missing feature once. */
typedef struct ProbeFeatures {
    bool schedstat; /* /proc/schedstat: wait per CPU */
    uint32_t schedstat_version;
    bool task_schedstat; /* /proc/PID/schedstat: run and wait per task */
    bool psi;            /* /proc/pressure/cpu */
    bool psi_trigger;    /* and triggers on it work */
    bool numa;           /* more than one node */
    int cgroup;          /* ProbeCgroupLayout */
    CpusetsV1 cpuset_v1; /* where a version 1 cpuset controller is mounted */
} ProbeFeatures;

typedef enum ProbeCgroupLayout {
    PROBE_CGROUP_NONE,
    PROBE_CGROUP_V1,
    PROBE_CGROUP_HYBRID, /* systemd's: v1 controllers, v2 tree for tracking */
    PROBE_CGROUP_V2,
    PROBE_CGROUP_MAX,
    PROBE_CGROUP_INVALID = -EINVAL,
} ProbeCgroupLayout;

/* What was read of a process that is about to be matched. */
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

/* Whether a process is to be in the World. A process in the World that is no longer TAKE loses its workload
 * and group at once, and leaves when none of its threads has a mask of ours. */
typedef enum ProbeDecision {
    PROBE_DECISION_IGNORE, /* ask again only when its name, cgroup or program has changed */
    PROBE_DECISION_LATER,  /* ask again at every discovery */
    PROBE_DECISION_TAKE,   /* put it into the World under *ret_policy; ask again like IGNORE */
} ProbeDecision;

typedef struct ProbeCallbacks {
    /* Decides about a process. Called once at discovery, and again as the decision says; never for kernel
     * threads, zombies and `self`. A changed name of a process in the World is seen at the next discovery if
     * the World has fewer than 128 processes, every other change within eight. */
    ProbeDecision (*decide)(void *userdata, const ProbeSubject *subject, size_t *ret_policy);
    /* Whether decide() would answer the same whatever the command line and environment are. These may take
     * long to arrive, and are then not read. All other fields are set. NULL: never. */
    bool (*is_settled)(void *userdata, const ProbeSubject *subject);
    /* Whether decide() would refuse a process whatever else can be read of it. Then nothing more is read, and
     * the decision is IGNORE while it is in the World, else LATER. NULL: never. */
    bool (*refuses)(void *userdata, pid_t pid, uint64_t start_ticks);
    /* Puts a process that was taken into its group: group_assign(). Returns 0 or -ENOMEM. */
    int (*assign)(void *userdata, World *world, Process *process, size_t policy);
    /* What is wanted of the memory of a process, PROBE_MEMORY_... Called for each process of a workload at each
     * discovery, and in between while one awaits its first measurement. The rest is not read. NULL: nothing. */
    unsigned (*wants_memory)(void *userdata, const World *world, const Process *process);
    /* `ret` has the CPUs read from the cpuset at `path`. If these would be others without this daemon, sets
     * `ret` to those and returns true. Processes there are then recorded as allowed those CPUs. NULL: never. */
    bool (*bound)(void *userdata, const char *path, hwloc_bitmap_t ret);
    /* Called once for a process whose command line or environment has not arrived for seconds; nothing is
     * decided about it until then. Only pid, start time, name and user are set. NULL: not reported. */
    void (*hangs)(void *userdata, const ProbeSubject *subject);
    void *userdata;
} ProbeCallbacks;

#define PROBE_MEMORY_NODES \
    (1U << 0) /* Process.node_bytes, and the World's free memory, memory pressure and kernel_balances */
#define PROBE_MEMORY_SHARED (1U << 1) /* Process.shared */
#define PROBE_MEMORY_AGAIN \
    (1U << 2) /* what is known is outdated: measure at this discovery, even if it is not due */

typedef struct ProbeOptions {
    int root_fd; /* borrowed */
    bool live;   /* root is this machine: sched_getaffinity(2) may be used */
    /* Other threads make the reads that a process can cause to hang (probe/tasks/aside.h). Of no use in
     * captured trees. */
    bool aside;
    uint32_t aside_wait_usec; /* wait for one such read, up to 100 s; 0: what a tick can spare, 20 ms */
    pid_t self;               /* never taken (I2); 0: none */
    unsigned wants;           /* PROBE_WANTS_... */
    uint32_t max_tasks;       /* MaxTasks=; tasks beyond it are counted, not sampled */
    uint32_t
        max_kept_open; /* descriptors kept open; 0: what RLIMIT_NOFILE leaves. 6 KiB in the kernel each */
    uint32_t batch;    /* threads handled at a time where there may be very many; 0: what a tick can spare */
    uint32_t descriptors_reserved; /* left of RLIMIT_NOFILE for the caller, beyond some 500 */
    hwloc_const_bitmap_t reserved; /* ReservedCPUs=: never used for lends; may be NULL. Copied */
} ProbeOptions;

#define PROBE_WANTS_EXE          (1U << 0)
#define PROBE_WANTS_COMMAND_LINE (1U << 1)
#define PROBE_WANTS_ENVIRONMENT  (1U << 2)

typedef struct ProbeStatistics {
    uint64_t n_reads;      /* task files read */
    uint64_t n_taken;      /* processes that became members of the World */
    uint64_t n_gone;       /* tasks found to have exited */
    uint64_t n_unparsable; /* texts skipped because they do not parse */
    uint64_t n_put_off;    /* reads not answered at once: command lines, environments, maps, numa_maps */
    /* Processes not decided about at the last discovery: their reads hang, or too many reads of their user do. */
    uint64_t n_unreadable;
    uint64_t n_no_descriptors; /* files not opened for lack of descriptors since the last discovery began */
    uint64_t n_over_limit;     /* tasks beyond max_tasks, as of the last discovery */
    uint64_t n_kept_open;      /* descriptors kept open now */
    uint64_t n_quiet;          /* tasks sampled only after a discovery, because they sleep */
    uint64_t n_memory_reads;   /* processes whose maps or numa_maps were read */
    uint64_t memory_cpu_nsec;  /* CPU time of these reads, in other threads */
} ProbeStatistics;

/* Whether /proc below `root_fd` is that of this process's PID namespace. Otherwise its PIDs mean other processes, no
 * system call may be made with them, and there can be no live probe. */
bool probe_has_own_proc(int root_fd);

int probe_new(const ProbeOptions *options, const ProbeCallbacks *callbacks, Probe **ret);
Probe *probe_free(Probe *probe);
DEFINE_CLEANUP(Probe *, probe_free)

const ProbeFeatures *probe_features(const Probe *probe);
const ProbeStatistics *probe_statistics(const Probe *probe);
/* Number of threads whose read has no answer yet, for however long. */
size_t probe_n_hanging(const Probe *probe);

/* Changes what decide() is told, after a reload. The next discovery asks about every process again. */
void probe_set_wants(Probe *probe, unsigned wants);

/* Reads /proc/loadavg, one small file, for probe_newcomers() and probe_room(). A discovery does so itself if
 * that was not done since the last one. */
void probe_glance(Probe *probe);

/* Whether processes or threads have started since the last discovery, anywhere on the machine, as far as
 * /proc/loadavg tells. */
bool probe_newcomers(const Probe *probe);

/* Makes the next discovery call decide() for this process, because its answer may have changed. */
void probe_ask_about(Probe *probe, pid_t pid);

/* Processes that the last discovery met first, managed or not, ascending and with tid 0; without the daemon
 * itself, kernel threads and zombies. Valid until the next discovery. */
const TaskKey *probe_born(const Probe *probe, size_t *ret_n);

/* Whether the last discovery met this process, managed or not. */
bool probe_met(const Probe *probe, pid_t pid, uint64_t start_ticks);

/* Whether fewer threads were runnable at the last probe_glance() than CPUs are online, as far as /proc/loadavg
 * tells. Not counted are its reader, and `n_waiting` threads that wait where an idle CPU does not help them. */
bool probe_room(const Probe *probe, const World *world, uint32_t n_waiting);

/* The slow half. Finds and matches processes and threads, rereads masks, cpusets and names, drops what is
 * gone (world_compact()), and updates the World's `now` and sums. Eligibility of a thread:
 *   - FOREIGN: its mask is narrower than its cpuset, and neither the home of its group or its parent's group
 *     nor that and one CPU;
 *   - REPINNED, with its process yielded, for good: we changed the mask, and it is now neither ours nor the
 *     kernel's work after a change of CPUs or cpuset;
 *   - UNKNOWN: its mask or times could not be read; until they can (I10).
 * Memory is measured when a process is first seen, then less and less often (probe/memory/residency.h). Masks
 * are cut to online CPUs. Up to 8192 masks changed by us and 2000 others are read, in turn. Of a process with
 * more than 1024 threads only their number is read; probe_go_on() does the rest. Returns 0, -ENOMEM, or
 * -errno when /proc itself cannot be read. */
int probe_discover(Probe *probe, World *world, uint64_t now_usec);

/* The part of probe_discover() that newcomers need, at a fraction of its cost where others have very many
 * threads: no masks are reread, and no sleeping threads sampled. */
int probe_find_newcomers(Probe *probe, World *world, uint64_t now_usec);

/* Continues with a large process where the last discovery stopped: lists or reads some of its threads. To be
 * called as long as probe_unfinished() is true. Returns 0 or -ENOMEM. */
bool probe_unfinished(const Probe *probe);
int probe_go_on(Probe *probe, World *world);

/* The fast half. Samples the loads of CPUs and of the World's tasks, and updates its tick, now, interval and
 * sums. A task's first sample leaves it `fresh`. Not everything is read every time:
 *   - of more than 8192 busy tasks, 8192 in turn; a quarter of that where no descriptor is kept open;
 *   - a task without run time in eight samples has zero load until the sample after the next discovery, but
 *     is watched (512 per tick, in turn) while a CPU of its group's home is lent;
 *   - last_cpu is read each time for holders of a lease, and in turn (32 and one per CPU) for tasks that wait
 *     at least 50 permille, unless no CPU has time to spare. With several nodes, the sample after a full
 *     discovery reads it in turn for as many that run so much. Otherwise it is where the task was last seen;
 *   - without /proc/schedstat the wait of a CPU is that of the tasks last seen on it, and unknown without
 *     any.
 * Returns 0, -ENOMEM, or -errno when CPU times cannot be read (the World is then marked partial). */
int probe_sample(Probe *probe, World *world, uint64_t now_usec);

/* Reads one process as a discovery would, managed or not, passes it to `look_at` and returns the result; for
 * explain. The strings end with the call. -ESRCH: there is no such process. PROBE_E_OUT_OF_REACH: decide() is
 * never asked about it: a kernel thread, a zombie or the daemon itself. If its command line or environment is
 * wanted: PROBE_E_AWAITED: not here yet; PROBE_E_HANGS: the read hangs; PROBE_E_CROWDED: not read, because
 * too many reads of its user, or of all users, hang. */
#define PROBE_E_OUT_OF_REACH 1
#define PROBE_E_AWAITED      2
#define PROBE_E_HANGS        3
#define PROBE_E_CROWDED      4
int probe_look(Probe *probe, pid_t pid, unsigned wants,
               int (*look_at)(void *userdata, const ProbeSubject *subject), void *userdata);

/* Whether the online CPUs, the nodes that have memory, or this process's cpuset changed since the last call, so that
 * the topology must be reloaded. */
bool probe_topology_changed(Probe *probe);

/* Takes over from `before`, which `probe` is to replace, what the next probe_topology_changed() compares
 * with. A new probe's topology was loaded earlier, and changes in between must not be lost. */
int probe_topology_adopt(Probe *probe, const Probe *before);

/* Takes over the reader threads. Those whose reads hang would be lost with `before`, and others started in
 * their place. */
void probe_adopt_readers(Probe *probe, Probe *before);
