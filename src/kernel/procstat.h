/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The fields of /proc/PID/stat and /proc/PID/task/TID/stat (proc(5)) that are used here. */

#include <stdint.h>
#include <sys/types.h>

#define PROCSTAT_COMM_SIZE 16    /* TASK_COMM_LEN; the longer names of kernel workers are cut */
#define PROCSTAT_TEXT_SIZE 2048U /* room for a whole file: 52 numbers of at most 20 digits, and the name */

/* Of `flags`: PF_EXITING, in exit(2), and PF_KTHREAD, a thread of the kernel's own. */
#define PROCSTAT_FLAG_EXITING 0x00000004U
#define PROCSTAT_FLAG_KTHREAD 0x00200000U

typedef struct ProcStat {
    pid_t pid; /* the thread's own number when it is the file of a thread */
    char comm[PROCSTAT_COMM_SIZE];
    char state;
    pid_t ppid, pgrp, session; /* pgrp and session are -1 when it is exiting */
    uint32_t flags;
    uint64_t utime_ticks, stime_ticks;
    uint32_t num_threads;
    uint64_t start_ticks; /* since boot; with the number, the identity of a task */
    uint64_t rss_pages;
    int32_t processor; /* where it ran last */
    uint32_t policy;   /* SCHED_... */
} ProcStat;

/* Parses one whole file. The name may hold anything, so the numbers are looked for after the last ')'. Returns 0,
 * or -EINVAL when the text is not of this form; *ret is then untouched. */
int procstat_parse(const char *text, ProcStat *ret);

/* Reads and parses the file `path` below a directory. Returns 0; -EINVAL when it is not of this form; -ESRCH also when
 * it is empty, since the task went away between opening and reading; or -errno. */
int procstat_read(int dir_fd, const char *path, ProcStat *ret);

/* The same of a thread of a process, or, with `tid` 0, of the process as a whole, below the root. */
int procstat_read_task(int root_fd, pid_t pid, pid_t tid, ProcStat *ret);
