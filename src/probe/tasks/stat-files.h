/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Stat files that are read again and again, of processes (once per discovery) and of threads that wait for a CPU,
 * kept open: looking a path up in /proc and making an inode for it costs more than what is read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STAT_FILES 128U

typedef struct StatFile {
    pid_t pid, tid; /* tid 0: that of the whole process */
    int fd;         /* <0: none */
    uint32_t pass;  /* in which it was read last */
} StatFile;

typedef struct StatFiles {
    StatFile files[STAT_FILES]; /* by number */
    uint32_t pass;
    bool transient; /* none is kept open: there are too few descriptors, or the tree is a captured one */
} StatFiles;

void stat_files_init(StatFiles *files);
void stat_files_done(StatFiles *files);

/* Reads PID/stat, or with `tid` > 0 PID/task/TID/stat, below `proc_fd` as root_read() does. What is read may be of
 * another task of that number than the time before, as with every path. */
ssize_t stat_files_read(StatFiles *files, int proc_fd, pid_t pid, pid_t tid, char *buf, size_t size);

/* Begins a pass, and closes what was not read in the last eight. */
void stat_files_begin(StatFiles *files);
