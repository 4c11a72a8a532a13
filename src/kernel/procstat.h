/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The fields of /proc/PID/stat and /proc/PID/task/TID/stat (proc(5)) that are used. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCSTAT_COMM_SIZE 16    /* TASK_COMM_LEN; longer names of kernel workers are truncated */
#define PROCSTAT_TEXT_SIZE 2048U /* room for a whole file: 52 numbers of at most 20 digits, and the name */

/* Bits of `flags`: PF_EXITING (in exit(2)), PF_KTHREAD (a kernel thread) and PF_NO_SETAFFINITY (the kernel refuses to
 * change its mask). */
#define PROCSTAT_FLAG_EXITING        0x00000004U
#define PROCSTAT_FLAG_KTHREAD        0x00200000U
#define PROCSTAT_FLAG_NO_SETAFFINITY 0x04000000U

typedef struct ProcStat {
    pid_t pid; /* the thread id in the file of a thread */
    char comm[PROCSTAT_COMM_SIZE];
    char state;
    pid_t ppid, pgrp, session; /* pgrp and session are -1 while the task exits */
    uint32_t flags;
    uint64_t utime_ticks, stime_ticks;
    uint32_t num_threads;
    uint64_t start_ticks; /* since boot; with the pid, the identity of a task */
    uint64_t rss_pages;
    int32_t processor; /* CPU it last ran on */
    uint32_t policy;   /* SCHED_... */
} ProcStat;

/* Parses a whole file. The name may hold any character, so numbers are read after the last ')'. Returns 0, or
 * -EINVAL, with *ret untouched, if malformed. */
int procstat_parse(const char *text, ProcStat *ret);

/* Reads and parses the file `path` below a directory. Returns 0; -EINVAL if malformed; -ESRCH also if it is
 * empty, because the task exited between open and read; or -errno. */
int procstat_read(int dir_fd, const char *path, ProcStat *ret);

/* The same for a thread of a process or, with `tid` 0, for the whole process, below the root. */
int procstat_read_task(int root_fd, pid_t pid, pid_t tid, ProcStat *ret);

/* Whether a thread has ended. If it is the first of its process, others may go on. */
static inline bool procstat_has_ended(const ProcStat *stat)
{
    return stat->state == 'Z' || stat->state == 'X';
}

/* Of a process whose first thread has ended, only files of another thread show memory. Opens the directory of a thread
 * that has not ended, below that of its process. Returns a descriptor, with the thread's stat in *ret; -ESRCH: all have
 * ended; or -errno. */
int procstat_open_living(int process_fd, ProcStat *ret);
