/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A process whose memory is examined, and its threads. */

#include "base/root.h"
#include "probe/memory/evidence.h"
#include "probe/probe-internal.h"

#include <fcntl.h>
#include <stdio.h>

/* Whether what shows this stat belongs to the process: it is its first thread, or another one of it. */
static bool is_target(const EvidenceTarget *target, int proc_fd, const ProcStat *stat)
{
    char path[32];
    ProcStat first;

    if (stat->pid == target->pid)
        return stat->start_ticks == target->start_ticks;
    (void)snprintf(path, sizeof(path), "task/%d/stat", target->pid);
    return procstat_read(proc_fd, path, &first) == 0 && first.start_ticks == target->start_ticks;
}

int evidence_look(const EvidenceTarget *target, int proc_fd, uint64_t *ret_rss_pages)
{
    ProcStat stat;
    int r = procstat_read(proc_fd, "stat", &stat);

    if (r < 0)
        return probe_error_is_gone(r) ? EVIDENCE_E_GONE : r;
    if (procstat_has_ended(&stat) || !is_target(target, proc_fd, &stat))
        return EVIDENCE_E_GONE;
    *ret_rss_pages = stat.rss_pages;
    return 0;
}

/* Opens the directory of a process, or of a thread by its own number: only that has "task", too. */
static int open_directory(const EvidenceTarget *target, pid_t pid)
{
    char path[32];
    int fd;

    (void)snprintf(path, sizeof(path), "proc/%d", pid);
    fd = openat(target->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return probe_error_is_gone(-errno) ? -ESRCH : -errno;
    return fd;
}

/* Exchanges the directory of a process whose first thread has ended for that of another thread. */
static int change_to_other(const EvidenceTarget *target, int *fd, pid_t *memory_pid)
{
    ProcStat stat;
    CLEANUP_CLOSE int thread_fd = procstat_open_living(*fd, &stat);
    int r = thread_fd < 0 ? thread_fd : open_directory(target, stat.pid);

    if (r < 0)
        return probe_error_is_gone(r) ? -ESRCH : r;
    (void)close(*fd);
    *fd = r;
    *memory_pid = stat.pid;
    return 0;
}

int evidence_open_process(const EvidenceTarget *target, pid_t *ret_memory_pid)
{
    CLEANUP_CLOSE int fd = open_directory(target, target->pid);
    pid_t memory_pid = target->pid;
    uint64_t rss;
    int r;

    if (fd < 0)
        return fd;
    r = evidence_look(target, fd, &rss);
    if (r == EVIDENCE_E_GONE) {
        r = change_to_other(target, &fd, &memory_pid);
        if (r == 0)
            r = evidence_look(target, fd, &rss);
    }
    if (r != 0)
        return r < 0 ? r : -ESRCH;
    if (ret_memory_pid)
        *ret_memory_pid = memory_pid;
    return TAKE_FD(fd);
}

static int add_thread(int proc_fd, pid_t pid, pid_t tid, Touches *touches)
{
    char path[32];
    ProcStat stat;
    int r;

    (void)snprintf(path, sizeof(path), "task/%d/stat", tid);
    r = procstat_read(proc_fd, path, &stat);
    if (r < 0)
        return probe_error_is_gone(r) || r == -EINVAL ? 0 : r;
    return touches_add_thread(touches, (TaskKey){pid, tid, stat.start_ticks});
}

static int list_threads(int proc_fd, pid_t **tids, size_t *capacity, size_t *ret_n)
{
    CLEANUP(closedir_p) DIR *dir = root_open_directory(proc_fd, "task");
    int r;

    if (!dir)
        return probe_error_is_gone(-errno) ? EVIDENCE_E_GONE : -errno;
    r = probe_list_numbers(dir, tids, capacity, ret_n);
    return r == 0 && *ret_n == 0 ? EVIDENCE_E_GONE : r;
}

/* TIDs are reused late. A thread that starts and ends between two rounds under the TID of another is taken
 * for that one, which affects only its samples. */
int evidence_follow_threads(int proc_fd, pid_t pid, Touches *touches, pid_t **tids, size_t *capacity,
                            size_t *ret_n)
{
    int r = list_threads(proc_fd, tids, capacity, ret_n);
    size_t t = 0;

    if (r != 0)
        return r;
    for (size_t i = 0; i < touches->n_threads;) {
        pid_t tid = touches->threads[i].key.tid;

        while (t < *ret_n && (*tids)[t] < tid)
            t++;
        if (t < *ret_n && (*tids)[t] == tid)
            i++;
        else
            (void)touches_remove_thread(touches, tid);
    }
    for (size_t i = 0; i < *ret_n; i++) {
        if (touches_thread(touches, (*tids)[i]))
            continue;
        r = add_thread(proc_fd, pid, (*tids)[i], touches);
        if (r < 0 && r != -E2BIG)
            return r;
    }
    return 0;
}
