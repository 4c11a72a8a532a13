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

/* One of so many known processes is looked at again at each discovery: a reused pid or an exec is seen within eight. */
#define DISCOVER_ROLL 8U

/* The same of kernel threads and zombies, of which only a reused pid could make something else; one that is free
 * when /proc is listed is forgotten anyway, and as long as it is not listed nobody has a number he had not before.
 * They are most of what is there on an idle machine. */
#define OUT_OF_REACH_ROLL 64U

/* /proc is listed in one of so many discoveries although nobody has begun. With a hundred processes that is a fifth
 * of the cost of a discovery, and only who was given an old number (a process that is restored) could be missing. */
#define LIST_ROLL 16U

/* Processes of the World of which stat is read per discovery, in round numbers; 8 us each. */
#define GLANCES_PER_PASS 128U

/* Masks of threads not changed by us that are read again per discovery; 0.3 us each. */
#define MASKS_PER_PASS 2000U

/* Threads of which stat is read again per discovery, to see reused numbers and new names; 7 us each. Not more than a
 * share of them: that a thread has ended is seen when it is sampled. */
#define THREADS_PER_PASS 64U

/* What a pass or a tick does of what may be very much, unless ProbeOptions.batch says otherwise. Threads sampled in
 * one tick, where the descriptor is kept open: 1 us each, and 4 times as much where it is not; masks read again of
 * threads that we changed: 1 us; threads listed of a large process: 2 us. */
#define PROBE_BATCH 8192U
/* Threads that are new are read by this part of it: 30 us each. A process that has more threads is large. */
#define THREADS_BATCH_SHARE 8U
/* And not for longer than that, which is looked at so often. */
#define THREADS_STEP_USEC 20000U
#define THREADS_CLOCK     64U
/* What it takes to sample a thread whose descriptor is not kept open. */
#define SAMPLE_UNKEPT 4U

/* Threads of which stat (for the last CPU) is read in one tick, besides one for each CPU; 6 us each. */
#define SAMPLE_STATS_PER_TICK 32U

/* Quiet threads looked at in one tick because a CPU of theirs is lent. */
#define SAMPLE_QUIET_PER_TICK 512U

/* A CPU that ran less in a tick may be idle soon; an idle one runs 50 permille (P1). */
#define SAMPLE_BUSY_PERMILLE 500U

/* A thread that waits less, or runs less, does not need its last CPU known. */
#define SAMPLE_WAIT_PERMILLE 50U

/* The kernel's form of a mask: PARSE_CPU_MAX + 1 bits. */
#define MASK_BYTES ((size_t)8192)

/* Most of a command line or environment that is matched; what is longer is cut. */
#define SUBJECT_TEXT_SIZE ((size_t)64 << 10)

/* Nodes, by number, of which the file that says what they have left stays open. */
#define NODE_FILES 64U

typedef struct CpusetCache CpusetCache;

typedef enum ProbeMaskMemory {
    PROBE_MASK_MEMORY_UNKNOWN, /* not asked yet */
    PROBE_MASK_MEMORY_NONE,
    PROBE_MASK_MEMORY_KEPT,
} ProbeMaskMemory;

/* A process of the World whose memory is to be looked at now. */
typedef struct MemoryDue {
    uint32_t process;
    uint32_t wants; /* PROBE_MEMORY_... */
} MemoryDue;

/* What /proc/loadavg says. */
typedef struct ProbeGlance {
    pid_t last_pid;     /* the number given out last when a process or thread began; 0: not known */
    uint32_t n_running; /* runnable threads; UINT32_MAX: not known */
} ProbeGlance;

/* subject.c: what is read of one process. */
typedef struct Subject {
    pid_t pid;
    int fd; /* /proc/PID: stays with the process when its number is reused */
    ProcStat stat;
    CgroupPaths cgroup;
    CgroupUnit unit;
    const char *exe; /* NULL: not wanted or not readable */
    uint64_t identity;
    uint32_t cpu_permille;
    uid_t uid;
} Subject;

/* Listing the threads of a large process, and adding those that are new, over many passes. */
typedef struct ThreadCourse {
    Subject subject; /* fd -1: there is none under way */
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
    int loadavg_fd; /* looked at ten times a second; -errno: there is none */
    int online_fd;  /* lists of CPUs, read three times in each discovery; as above */
    int isolated_fd;
    DIR *proc;
    uint64_t page_bytes;
    uint64_t tick_nsec; /* step of utime and stime */
    uint64_t boot_nsec; /* time_boot_nsec() as the present pass began: a pass may take long on a busy machine */

    /* cpus.c */
    hwloc_bitmap_t reserved;
    hwloc_bitmap_t online, isolated; /* as at the last discovery */
    hwloc_bitmap_t known_online;     /* as at the last probe_topology_changed() */
    hwloc_bitmap_t been_away;        /* CPUs that were offline once since the start */
    hwloc_bitmap_t known_own;
    uint64_t own_nsec; /* CPU time of the thread that samples, at the sample before; 0: none yet */

    CpusetCache *cpusets;
    uint32_t n_cpusets_kept; /* open */
    int own_cgroup_fd;       /* <0: not open */
    bool online_read;        /* known_online is of this pass */

    /* discover.c, threads.c */
    SeenTable seen, seen_next;
    pid_t *pids; /* ascending */
    size_t n_pids, pids_capacity;
    TaskKey *born; /* ascending */
    size_t n_born, born_capacity;
    pid_t *tids;
    size_t n_tids, tids_capacity;
    uint64_t n_passes, n_lists; /* of which made a new listing */
    bool listed;                /* this one did */
    pid_t last_pid;             /* given out last when /proc was listed; 0: not known */
    ProbeGlance glance;         /* see probe_glance() */
    bool glanced;               /* since the last discovery */
    ThreadCourse course;
    size_t thread_cursor;
    bool ask_all;
    bool discovered; /* since the last sample */
    bool masks_read; /* by the last discovery: it was not for newcomers only */
    size_t
        quiet_due; /* threads to be sampled though they are quiet, behind quiet_at: a discovery has been made */

    /* masks.c */
    hwloc_bitmap_t mask, scratch;
    unsigned long *mask_words, *mask_last; /* the kernel's form; the one before */
    ProbeMaskMemory mask_memory;
    size_t mask_last_bytes; /* 0: none */
    CpuMask mask_last_interned;
    size_t mask_cursor, ours_cursor;

    /* sample.c */
    CpuLoads cpus;
    Readers readers;
    uint64_t sampled_usec;
    size_t stat_cursor, runner_cursor, quiet_cursor, sample_cursor, quiet_at;
    uint64_t *cpu_wait_nsec; /* [cpu_limit], when only threads say it */
    bool *cpu_wait_known;
    uint8_t *group_lends; /* [n_groups]: one of its CPUs is lent */
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
    int node_fds[NODE_FILES]; /* by number of the node: what it has left; <0: not open */
    int balances_fd, pressure_fd;
    size_t memory_due_capacity, node_bytes_capacity;
    pid_t memory_cursor; /* who was looked at last */
    bool memory_first;   /* somebody was to be looked at for the first time */
};

static inline size_t probe_batch(const Probe *probe)
{
    return probe->options.batch > 0 ? probe->options.batch : PROBE_BATCH;
}

/* Counts what failed for want of descriptors; returns `r`. */
int probe_note_error(Probe *probe, int r);

/* Whether a read failed because the task is not there any more. */
static inline bool probe_error_is_gone(int r)
{
    return r == -ENOENT || r == -ESRCH;
}

/* cpus.c: online and usable CPUs of the World, and the cpusets of processes. */
int probe_cpus_refresh(Probe *probe, World *world);
/* CPUs that the cpuset at `path` leaves, cut to online ones; read once per discovery. 0 or -ENOMEM. */
int probe_cpuset(Probe *probe, World *world, const char *path, CpuMask *ret);
/* A discovery begins: all are to be read, and those the last one did not ask for are forgotten. */
void probe_cpusets_begin(Probe *probe);
/* The interned masks are gone after world_compact(). */
void probe_cpusets_forget(Probe *probe);
void probe_cpusets_done(Probe *probe);
/* Whether `mask` is just what the cpuset at `path` leaves now, whatever it is said to be without this daemon. */
bool probe_cpuset_leaves(Probe *probe, const char *path, hwloc_const_bitmap_t mask);
/* Reads the cpuset of a process anew, because a mask contradicts it. 0: unchanged; 1: changed, and put into the
 * World; <0: could not be read. */
int probe_cpuset_again(Probe *probe, World *world, Process *process);

/* Read a stat file below `dir_fd`. 0, -errno of the read, or -EINVAL (counted as unparsable). */
int subject_read_stat(Probe *probe, int dir_fd, const char *path, ProcStat *ret);
/* The same of a process (`tid` 0) or thread that is read again and again, kept open (probe/tasks/stat-files.h). */
int subject_look_up_stat(Probe *probe, pid_t pid, pid_t tid, ProcStat *ret);
/* Opens a process and reads its stat. */
int subject_open(Probe *probe, pid_t pid, Subject *ret);
void subject_close(Subject *subject);
/* Cgroup, unit, program: what its identity is made of. The strings live in the Probe until the next subject. */
int subject_read_identity(Probe *probe, Subject *subject, unsigned wants);
/* The rest. The strings live as long. -EAGAIN: not to be had now without waiting for the process; -ETIMEDOUT and
 * -EDQUOT as of aside_read(). */
int subject_read_facts(Probe *probe, Subject *subject, unsigned wants, ProbeSubject *ret);
/* A number that tells strings apart, for AsideKey. */
uint64_t subject_hash(const char *s);
/* Tells the caller of the probe that it hangs. */
void subject_tell_hanging(Probe *probe, const Subject *subject);
/* The rest, and the decision on it. */
int subject_decide(Probe *probe, Subject *subject, ProbeDecision *ret_decision, size_t *ret_policy);

/* threads.c: lists the threads of a process that is in the World; adds the new ones, marks those that are gone. */
int probe_threads_refresh(Probe *probe, World *world, size_t process, const Subject *subject);
void probe_course_done(ThreadCourse *course);
/* Looks again at some of all threads, in turn. */
void probe_threads_validate(Probe *probe, World *world);
/* Marks a process and its threads gone. */
void probe_process_gone(World *world, Process *process);
/* Reads the numbers that name the entries of a directory, ascending. 0 or -errno. */
int probe_list_numbers(DIR *dir, pid_t **array, size_t *capacity, size_t *ret_n);

/* residency.c: looks where the memory of some processes lies, and what the nodes have left. World.now is this
 * discovery's, and nobody in it is gone. 0 or -ENOMEM. */
int probe_memory_refresh(Probe *probe, World *world);
/* Between two discoveries: goes on with those of whom nothing is known yet, without waiting for answers. 0 or
 * -ENOMEM. */
int probe_memory_catch_up(Probe *probe, World *world);
void probe_memory_done(Probe *probe);

/* masks.c: affinity masks and whose hands are on them. */
int probe_mask_read(Probe *probe, World *world, const Process *process, pid_t tid, CpuMask *ret);
TaskHands probe_mask_judge(Probe *probe, World *world, const Process *process, const Task *task);
int probe_masks_refresh(Probe *probe, World *world);
/* Puts the cpuset of a process into the World. When it is another one than before, threads that were foreign or
 * denied are judged anew: masks and cpusets are read one after the other, and the kernel changes both meanwhile.
 * Whether it is. */
bool probe_cpuset_put(Probe *probe, World *world, Process *process, CpuMask cpuset);
/* The interned masks remembered are gone after world_compact(). */
void probe_masks_forget(Probe *probe);
TaskClass probe_task_class(uint32_t scheduling_policy);

/* sample.c */
/* The reading of a task failed: no action on it until one succeeds (I10). */
void probe_task_failed(Reader *reader, Task *task);
/* Sets what is known of it, also behind TASK_HANDS_UNKNOWN. */
void probe_task_set_hands(Reader *reader, Task *task, TaskHands hands);
/* Opens what is read of a thread in every tick. Descriptor or -errno. */
int probe_task_open(const Probe *probe, pid_t pid, pid_t tid);
