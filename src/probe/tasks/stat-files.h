/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Stat files kept open because they are read repeatedly: of processes (once per discovery) and of threads
 * that wait for a CPU. Looking up a path in /proc and making an inode for it costs more than reading. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STAT_FILES 128U

typedef struct StatFile {
    pid_t pid, tid; /* tid 0: of the whole process */
    int fd;         /* <0: none */
    uint32_t pass;  /* in which it was last read */
} StatFile;

typedef struct StatFiles {
    StatFile files[STAT_FILES]; /* by PID or TID */
    uint32_t pass;
    bool transient; /* keep none open: there are too few descriptors, or the tree is captured */
} StatFiles;

void stat_files_init(StatFiles *files);
void stat_files_done(StatFiles *files);

/* Reads PID/stat, or with `tid` > 0 PID/task/TID/stat, below `proc_fd`; otherwise as root_read(). As with
 * every path, the text may be of another task with that number than the time before. */
ssize_t stat_files_read(StatFiles *files, int proc_fd, pid_t pid, pid_t tid, char *buf, size_t size);

/* Begins a pass, and closes files that were not read in the last eight. */
void stat_files_begin(StatFiles *files);
