/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/diagnose/pins.h"

#include "base/parse.h"
#include "base/root.h"
#include "base/util.h"
#include "kernel/procstat.h"
#include "kernel/taskstat.h"
#include "probe/tasks/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any chain of processes; parents may change while they are followed. */
#define ANCESTORS_MAX 256U

static int read_mask(int root_fd, pid_t pid, pid_t tid, char *text, const char **ret)
{
    char path[64];
    TaskStatus status;
    ssize_t n;
    int r;

    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/status", (int)pid, (int)tid);
    n = root_read(root_fd, path, text, TASKSTAT_STATUS_SIZE);
    if (n < 0)
        return (int)n;
    r = taskstat_parse_status(text, &status);
    *ret = status.cpus_allowed;
    return r;
}

static pid_t climb(int root_fd, pid_t pid, const char *mask, char *text, ProcStat *stat)
{
    int r = procstat_read_task(root_fd, pid, 0, stat);

    for (unsigned i = 0; r == 0 && i < ANCESTORS_MAX && stat->ppid > 1; i++) {
        const char *above = NULL;
        ProcStat parent;

        if (read_mask(root_fd, stat->ppid, stat->ppid, text, &above) < 0 || strcmp(above, mask) != 0 ||
            procstat_read_task(root_fd, stat->ppid, 0, &parent) < 0)
            break;
        pid = stat->ppid;
        *stat = parent;
    }
    return r < 0 ? r : pid;
}

pid_t pins_origin(pid_t pid, pid_t tid, char **ret_comm)
{
    CLEANUP_FREE char *text = malloc(2 * TASKSTAT_STATUS_SIZE);
    CLEANUP_CLOSE int root_fd = root_open("/");
    const char *mask = NULL, *own = NULL;
    ProcStat stat;
    pid_t origin;
    int r;

    if (!text)
        return -ENOMEM;
    if (root_fd < 0)
        return root_fd;
    r = read_mask(root_fd, pid, tid, text, &mask);
    if (r == 0 && tid != pid)
        r = read_mask(root_fd, pid, pid, text + TASKSTAT_STATUS_SIZE, &own);
    if (r < 0)
        return r;
    if (own && strcmp(own, mask) != 0)
        return 0;
    origin = climb(root_fd, pid, mask, text + TASKSTAT_STATUS_SIZE, &stat);
    if (origin < 0)
        return origin;
    *ret_comm = strdup(stat.comm);
    return *ret_comm ? origin : -ENOMEM;
}

/* For cgroup v2. On version 1 the paths differ, and the group itself is reported. */
static ssize_t read_cpus(int root_fd, const char *cgroup, char *text, size_t size)
{
    CLEANUP_FREE char *path = format_text(CGROUP_ROOT "%s/cpuset.cpus.effective", cgroup);

    return path ? root_read(root_fd, path, text, size) : -ENOMEM;
}

char *pins_cpuset_origin(int root_fd, const char *cgroup)
{
    CLEANUP_FREE char *texts = malloc(2 * TASKSTAT_STATUS_SIZE), *at = strdup(cgroup);
    char *slash;

    if (!texts || !at)
        return NULL;
    cgroup_leave_threaded(root_fd, CGROUP_ROOT, at);
    /* The controller may not be enabled this far down. */
    while (read_cpus(root_fd, at, texts, TASKSTAT_STATUS_SIZE) < 0) {
        slash = strrchr(at, '/');
        if (!slash || slash == at)
            return strdup(cgroup);
        *slash = '\0';
    }
    while ((slash = strrchr(at, '/')) && slash[1]) {
        char *above = texts + TASKSTAT_STATUS_SIZE, *end = slash + (slash == at), cut = *end;

        *end = '\0';
        if (read_cpus(root_fd, at, above, TASKSTAT_STATUS_SIZE) < 0 || strcmp(above, texts) != 0) {
            *end = cut;
            break;
        }
    }
    return TAKE_PTR(at);
}
