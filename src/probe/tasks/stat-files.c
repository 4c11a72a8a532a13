/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Each number has one slot, which a later file takes over. With a hundred processes the slot is nearly always
 * right; otherwise a reading costs as much as without slots. An open descriptor stays with its task, and fails
 * with ESRCH when that has ended. Then the path is looked up again, because the number may have been reused. */

#include "probe/tasks/stat-files.h"

#include "base/root.h"
#include "base/util.h"

#include <stdio.h>

/* Passes without a reading after which a file is closed. */
#define PASSES 8U

void stat_files_init(StatFiles *files)
{
    files->pass = 0;
    files->transient = false;
    for (size_t i = 0; i < STAT_FILES; i++)
        files->files[i] = (StatFile){.fd = -1};
}

static void drop(StatFile *file)
{
    close_p(&file->fd);
    file->fd = -1;
}

void stat_files_done(StatFiles *files)
{
    for (size_t i = 0; i < STAT_FILES; i++)
        drop(&files->files[i]);
}

static int open_file(int proc_fd, pid_t pid, pid_t tid)
{
    char path[64];

    if (tid > 0)
        (void)snprintf(path, sizeof(path), "%d/task/%d/stat", (int)pid, (int)tid);
    else
        (void)snprintf(path, sizeof(path), "%d/stat", (int)pid);
    return root_open_file(proc_fd, path);
}

ssize_t stat_files_read(StatFiles *files, int proc_fd, pid_t pid, pid_t tid, char *buf, size_t size)
{
    /* Processes and threads alternate, since the first thread of a process has its number. */
    StatFile *file = &files->files[(tid > 0 ? (uint32_t)tid * 2 + 1 : (uint32_t)pid * 2) % STAT_FILES];
    ssize_t n;

    if (file->fd >= 0 && file->pid == pid && file->tid == tid) {
        n = root_pread(file->fd, buf, size);
        if (n > 0) {
            file->pass = files->pass;
            return n;
        }
    }
    drop(file);
    *file = (StatFile){.pid = pid, .tid = tid, .fd = open_file(proc_fd, pid, tid), .pass = files->pass};
    if (file->fd < 0)
        return file->fd;
    n = root_pread(file->fd, buf, size);
    if (n < 0 || files->transient)
        drop(file);
    return n;
}

void stat_files_begin(StatFiles *files)
{
    files->pass++;
    for (size_t i = 0; i < STAT_FILES; i++)
        if (files->files[i].fd >= 0 && files->pass - files->files[i].pass > PASSES)
            drop(&files->files[i]);
}
