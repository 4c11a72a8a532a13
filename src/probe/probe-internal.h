/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share. Nothing outside it includes this, except its benchmark. */

#include "kernel/procstat.h"
#include "probe/cpu/cpu-load.h"
#include "probe/probe.h"
#include "probe/tasks/aside.h"
#include "probe/tasks/cgroup.h"
#include "probe/tasks/readers.h"
#include "probe/tasks/seen.h"
#include "probe/tasks/stat-files.h"

#include <dirent.h>
#include <linux/limits.h>

/* Each discovery looks again at one in this many known processes, so a reused PID or an exec is seen within eight. */
#define DISCOVER_ROLL 8U

/* Likewise for kernel threads and zombies, most of what an idle machine has. Only a reused PID makes them
 * something else: a listing of /proc drops free PIDs, and while none is needed, no PID can have been reused. */
#define OUT_OF_REACH_ROLL 64U

/* /proc is listed in one of this many discoveries even if no process has started. With a hundred processes
 * listing is a fifth of the cost; without it only a process restored with its old PID is missed. */
#define LIST_ROLL 16U

/* Processes of the World whose stat is read per discovery, approximately; 8 us each. */
#define GLANCES_PER_PASS 128U

/* Masks not changed by us that are reread per discovery; 0.3 us each. */
#define MASKS_PER_PASS 2000U

/* Threads whose stat is reread per discovery to see reused TIDs and new names, but at most one in
 * DISCOVER_ROLL; 7 us each. That a thread has ended is seen when it is sampled. */
#define THREADS_PER_PASS 64U

/* Work of one pass or tick where there may be very much, unless ProbeOptions.batch says otherwise: threads
 * sampled, 1 us each, 4 times that without an open descriptor; masks reread of threads that we changed, 1 us;
 * threads listed of a large process, 2 us. */
#define PROBE_BATCH 8192U
/* New threads are read in batches of this part of it: 30 us each. A process with more threads is large. */
#define THREADS_BATCH_SHARE 8U
/* Longest time for such a batch, and after how many threads the clock is read. */
#define THREADS_STEP_USEC 20000U
#define THREADS_CLOCK     64U
/* Cost of sampling a thread without an open descriptor, relative to one with it. */
#define SAMPLE_UNKEPT 4U

/* Threads whose stat (for the last CPU) is read in one tick, besides one for each CPU; 6 us each. */
#define SAMPLE_STATS_PER_TICK 32U

/* Quiet threads sampled in one tick because a CPU of their home is lent. */
#define SAMPLE_QUIET_PER_TICK 512U

/* A CPU that ran less in a tick may soon be idle; an idle one runs less than 50 permille (P1). */
#define SAMPLE_BUSY_PERMILLE 500U

/* The last CPU of a thread that waits less, or runs less, is not needed. */
#define SAMPLE_WAIT_PERMILLE 50U

/* The kernel's form of a mask: PARSE_CPU_MAX + 1 bits. */
#define MASK_BYTES ((size_t)8192)

/* Longest part of a command line or environment that is matched; the rest is cut off. */
#define SUBJECT_TEXT_SIZE ((size_t)64 << 10)

/* Nodes below this number keep their meminfo file open. */
#define NODE_FILES 64U

typedef struct CpusetCache CpusetCache;

typedef enum ProbeMaskMemory {
    PROBE_MASK_MEMORY_UNKNOWN, /* not asked yet */
    PROBE_MASK_MEMORY_NONE,
    PROBE_MASK_MEMORY_KEPT,
} ProbeMaskMemory;

/* A process of the World whose memory is to be measured now. */
typedef struct MemoryDue {
    uint32_t process;
    uint32_t wants; /* PROBE_MEMORY_... */
} MemoryDue;

/* Contents of /proc/loadavg. */
typedef struct ProbeGlance {
    pid_t last_pid;     /* PID or TID given out last; 0: not known */
    uint32_t n_running; /* runnable threads; UINT32_MAX: not known */
} ProbeGlance;

/* subject.c: what is read of one process. */
typedef struct Subject {
    pid_t pid;
    int fd; /* /proc/PID: stays with the process when its PID is reused */
    /* Where its cgroup, program, command line and environment are read: `fd`, or another thread if the first has ended.
     * The kernel shows none of these for a thread that has ended. */
    int facts_fd;
    ProcStat stat; /* but the memory as that thread shows it */
    CgroupPaths cgroup;
    CgroupUnit unit;
    const char *exe; /* NULL: not wanted or not readable */
    uint64_t identity;
    uint32_t cpu_permille;
    uid_t uid;
} Subject;

/* Lists the threads of a large process, and adds new ones, over many passes. */
typedef struct ThreadCourse {
    Subject subject; /* fd -1: none under way */
    DIR *dir;        /* NULL: all are listed */
    pid_t *tids;
    size_t n_tids, tids_capacity, at;
} ThreadCourse;

struct Probe {
    ProbeOptions options;
    ProbeCallbacks callbacks;
    ProbeFeatures features;
    ProbeStatistics statistics;
    int proc_fd;
    int loadavg_fd; /* read ten times a second; -errno: there is none */
    int online_fd;  /* lists of CPUs, read up to three times in each discovery; as above */
    int isolated_fd;
    int memory_nodes_fd; /* a list of nodes; as above */
    DIR *proc;
    uint64_t page_bytes;
    uint64_t tick_nsec; /* step of utime and stime */
    uint64_t boot_nsec; /* time_boot_nsec() at the start of this pass, which may last on a busy machine */

    /* cpus.c */
    hwloc_bitmap_t reserved;
    hwloc_bitmap_t online, isolated; /* as at the last discovery */
    hwloc_bitmap_t known_online;     /* as at the last probe_topology_changed() */
    hwloc_bitmap_t been_away;        /* CPUs that were ever offline since the start */
    hwloc_bitmap_t known_own;
    hwloc_bitmap_t known_memory_nodes; /* numbers of nodes with memory, likewise */
    uint64_t own_nsec;                 /* CPU time of the sampling thread at the last sample; 0: none yet */

    CpusetCache *cpusets;
    uint32_t n_cpusets_kept; /* those with an open file */
    int own_cgroup_fd;       /* <0: not open */
    bool online_read;        /* known_online was read in this pass */

    /* discover.c, threads.c */
    SeenTable seen, seen_next;
    pid_t *pids; /* ascending */
    size_t n_pids, pids_capacity;
    TaskKey *born; /* ascending */
    size_t n_born, born_capacity;
    pid_t *tids;
    size_t n_tids, tids_capacity;
    uint64_t n_passes, n_lists; /* passes, and those of them that listed /proc */
    bool listed;                /* in this pass */
    pid_t last_pid;             /* PID or TID given out last when /proc was listed; 0: not known */
    ProbeGlance glance;         /* see probe_glance() */
    bool glanced;               /* since the last discovery */
    ThreadCourse course;
    size_t thread_cursor;
    bool ask_all;
    bool discovered;  /* since the last sample */
    bool masks_read;  /* the last discovery read masks: it was not for newcomers only */
    size_t quiet_due; /* tasks behind quiet_at to be sampled even if quiet, since a discovery was made */

    /* masks.c */
    hwloc_bitmap_t mask, scratch;
    unsigned long *mask_words, *mask_last; /* the kernel's form, of this mask and of the last one */
    ProbeMaskMemory mask_memory;
    size_t mask_last_bytes; /* 0: none */
    CpuMask mask_last_interned;
    size_t mask_cursor, ours_cursor;

    /* sample.c */
    CpuLoads cpus;
    Readers readers;
    uint64_t sampled_usec;
    size_t stat_cursor, runner_cursor, quiet_cursor, sample_cursor, quiet_at;
    uint64_t *cpu_wait_nsec; /* [cpu_limit], when only threads tell it */
    bool *cpu_wait_known;
    uint8_t *group_lends; /* [n_groups]: one of the group's CPUs is lent */
    size_t cpu_wait_capacity, cpu_known_capacity, group_lends_capacity;

    /* subject.c */
    char *command_line, *environment; /* [SUBJECT_TEXT_SIZE], when wanted */
    Aside *aside;
    StatFiles stat_files;
    char exe[PATH_MAX], cgroup_text[CGROUP_TEXT_SIZE], status_text[32768];

    /* residency.c */
    Aside *memory_aside;
    char *memory_text; /* a Reading */
    MemoryDue *memory_due;
    uint64_t *node_bytes;     /* [n_nodes] */
    int node_fds[NODE_FILES]; /* meminfo, by node number; <0: not open */
    int balances_fd, pressure_fd;
    size_t memory_due_capacity, node_bytes_capacity;
    pid_t memory_cursor; /* the process measured last */
    bool memory_first;   /* a process awaits its first measurement */
};

static inline size_t probe_batch(const Probe *probe)
{
    return probe->options.batch > 0 ? probe->options.batch : PROBE_BATCH;
}

/* Counts failures for lack of descriptors; returns `r`. */
int probe_note_error(Probe *probe, int r);

/* Whether a read failed because the task has exited. */
static inline bool probe_error_is_gone(int r)
{
    return r == -ENOENT || r == -ESRCH;
}

/* cpus.c: online and usable CPUs of the World, and the cpusets of processes. */
int probe_cpus_refresh(Probe *probe, World *world);
/* CPUs that the cpuset at `path` allows, cut to online ones; read once per discovery. 0 or -ENOMEM. */
int probe_cpuset(Probe *probe, World *world, const char *path, CpuMask *ret);
/* Begins a discovery: all cpusets are to be read, and those the last discovery did not use are dropped. */
void probe_cpusets_begin(Probe *probe);
/* Forgets the interned masks, which are invalid after world_compact(). */
void probe_cpusets_forget(Probe *probe);
void probe_cpusets_done(Probe *probe);
/* Whether `mask` is exactly what the cpuset at `path` allows now, regardless of what it would be without this
 * daemon. */
bool probe_cpuset_leaves(Probe *probe, const char *path, hwloc_const_bitmap_t mask);
/* Rereads the cpuset of a process, because a mask contradicts it. 0: unchanged; 1: changed, and put into the
 * World; or the online CPUs changed; <0: could not be read. */
int probe_cpuset_again(Probe *probe, World *world, Process *process);

/* Reads a stat file below `dir_fd`. 0, -errno of the read, or -EINVAL (counted as unparsable). */
int subject_read_stat(Probe *probe, int dir_fd, const char *path, ProcStat *ret);
/* The same for a process (`tid` 0) or thread that is read repeatedly, with the file kept open
 * (probe/tasks/stat-files.h). */
int subject_look_up_stat(Probe *probe, pid_t pid, pid_t tid, ProcStat *ret);
/* Opens a process and reads its stat. */
int subject_open(Probe *probe, pid_t pid, Subject *ret);
void subject_close(Subject *subject);
/* Reads what its identity is made of: cgroup, unit, program. The strings live in the Probe until the next subject. */
int subject_read_identity(Probe *probe, Subject *subject, unsigned wants);
/* Reads the rest; the strings live as long. -EAGAIN: not available without waiting for the process;
 * -ETIMEDOUT and -EDQUOT as from aside_read(). */
int subject_read_facts(Probe *probe, Subject *subject, unsigned wants, ProbeSubject *ret);
/* A number that distinguishes strings, for AsideKey. */
uint64_t subject_hash(const char *s);
/* Reports to the owner of the probe that it hangs. */
void subject_tell_hanging(Probe *probe, const Subject *subject);
/* Reads the rest and decides on it. */
int subject_decide(Probe *probe, Subject *subject, ProbeDecision *ret_decision, size_t *ret_policy);

/* threads.c: lists the threads of a process of the World, adds new ones and marks those that are gone. */
int probe_threads_refresh(Probe *probe, World *world, size_t process, const Subject *subject);
void probe_course_done(ThreadCourse *course);
/* Rereads the stat of some of all threads, in turn. */
void probe_threads_validate(Probe *probe, World *world);
/* Marks a process and its threads gone. */
void probe_process_gone(World *world, Process *process);
/* Reads the numbers that name the entries of a directory, ascending. 0 or -errno. */
int probe_list_numbers(DIR *dir, pid_t **array, size_t *capacity, size_t *ret_n);

/* residency.c: measures where the memory of some processes lies, and what the nodes have free. World.now is
 * of this discovery, and no process in the World is gone. 0 or -ENOMEM. */
int probe_memory_refresh(Probe *probe, World *world);
/* Between two discoveries: continues with processes of which nothing is known yet, with no new time to wait
 * for answers. 0 or -ENOMEM. */
int probe_memory_catch_up(Probe *probe, World *world);
void probe_memory_done(Probe *probe);

/* masks.c: affinity masks and the eligibility of threads. */
int probe_mask_read(Probe *probe, World *world, const Process *process, pid_t tid, CpuMask *ret);
TaskHands probe_mask_judge(Probe *probe, World *world, const Process *process, const Task *task);
int probe_masks_refresh(Probe *probe, World *world);
/* Puts the cpuset of a process into the World and returns whether it is another one than before. If so,
 * threads that were foreign or denied are judged again: the kernel may change masks and cpusets between
 * reading one and the other. */
bool probe_cpuset_put(Probe *probe, World *world, Process *process, CpuMask cpuset);
/* Forgets the interned masks, which are invalid after world_compact(). */
void probe_masks_forget(Probe *probe);
TaskClass probe_task_class(uint32_t scheduling_policy);

/* sample.c */
/* A read of a task failed: no action on it until one succeeds (I10). */
void probe_task_failed(Reader *reader, Task *task);
/* Sets the eligibility, also while TASK_HANDS_UNKNOWN hides it. */
void probe_task_set_hands(Reader *reader, Task *task, TaskHands hands);
/* Rereads a thread's stat: marks it gone if it has ended or its TID is another thread's now, and updates its name. */
void probe_thread_validate(Probe *probe, const World *world, Task *task);
/* Opens the file of a thread that is read in every tick. Descriptor or -errno. */
int probe_task_open(const Probe *probe, pid_t pid, pid_t tid);
