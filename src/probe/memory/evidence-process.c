/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A process whose memory is examined, and its threads. */

#include "base/root.h"
#include "probe/memory/evidence.h"
#include "probe/probe-internal.h"

#include <fcntl.h>
#include <stdio.h>

int evidence_look(const EvidenceTarget *target, int proc_fd, uint64_t *ret_rss_pages)
{
    ProcStat stat;
    int r = procstat_read(proc_fd, "stat", &stat);

    if (r < 0)
        return probe_error_is_gone(r) ? EVIDENCE_E_GONE : r;
    if (stat.start_ticks != target->start_ticks || probe_has_ended(&stat))
        return EVIDENCE_E_GONE;
    *ret_rss_pages = stat.rss_pages;
    return 0;
}

int evidence_open_process(const EvidenceTarget *target)
{
    CLEANUP_CLOSE int fd = -1;
    uint64_t rss;
    char path[32];
    int r;

    (void)snprintf(path, sizeof(path), "proc/%d", target->pid);
    fd = openat(target->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return probe_error_is_gone(-errno) ? -ESRCH : -errno;
    r = evidence_look(target, fd, &rss);
    if (r != 0)
        return r < 0 ? r : -ESRCH;
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
