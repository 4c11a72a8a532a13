/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A process whose memory is looked at, and its threads. */

#include "base/root.h"
#include "probe/memory/evidence.h"
#include "probe/probe-internal.h"

#include <fcntl.h>
#include <stdio.h>

int evidence_look(const EvidenceTarget *target, int proc_fd, uint64_t *ret_rss_pages)
{
    char text[PROCSTAT_TEXT_SIZE];
    ProcStat stat;
    ssize_t n = root_read(proc_fd, "stat", text, sizeof(text));

    if (n < 0)
        return probe_error_is_gone((int)n) ? EVIDENCE_E_GONE : (int)n;
    if (procstat_parse(text, &stat) < 0)
        return -EINVAL;
    if (stat.start_ticks != target->start_ticks || stat.state == 'Z' || stat.state == 'X')
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
    char path[32], text[PROCSTAT_TEXT_SIZE];
    ProcStat stat;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "task/%d/stat", tid);
    n = root_read(proc_fd, path, text, sizeof(text));
    if (n < 0)
        return probe_error_is_gone((int)n) ? 0 : (int)n;
    if (procstat_parse(text, &stat) < 0)
        return 0;
    return touches_add_thread(touches, (TaskKey){pid, tid, stat.start_ticks});
}

static int list_threads(int proc_fd, pid_t **tids, size_t *capacity, size_t *ret_n)
{
    int fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
    DIR *dir;

    if (fd < 0)
        return probe_error_is_gone(-errno) ? EVIDENCE_E_GONE : -errno;
    dir = fdopendir(fd);
    if (!dir) {
        r = -errno;
        (void)close(fd);
        return r;
    }
    r = probe_list_numbers(dir, tids, capacity, ret_n);
    (void)closedir(dir);
    return r == 0 && *ret_n == 0 ? EVIDENCE_E_GONE : r;
}

/* Numbers of threads are used again late, so one that is born and ends between two rounds under the number of
 * another is taken for that: it counts for its samples only. */
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
