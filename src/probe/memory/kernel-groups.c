/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Who works together, as the kernel found out from faults on the same pages: better than who maps the same memory,
 * since a mapping may lie idle. It is there only while the kernel's balancing is on. Some 10 us for each thread, and
 * no lock of the process. Sleepers have no faults: of many threads those that ran are asked. */

#include "base/root.h"
#include "base/time.h"
#include "kernel/sched-numa.h"
#include "probe/probe-internal.h"

#include <stdio.h>
#include <string.h>

static_assert(KERNEL_GROUPS_TEXT_SIZE >= KERNEL_GROUPS_MAX * sizeof(" ngid:2147483647"), "all groups fit");

/* Inserts a group where it belongs, unless it is there. */
static void add(pid_t *groups, size_t *n, pid_t group)
{
    size_t at = 0;

    while (at < *n && groups[at] < group)
        at++;
    if ((at < *n && groups[at] == group) || *n == KERNEL_GROUPS_MAX)
        return;
    memmove(&groups[at + 1], &groups[at], (*n - at) * sizeof(*groups));
    groups[at] = group;
    ++*n;
}

static bool read_group(Probe *probe, const Subject *subject, pid_t tid, pid_t *ret)
{
    char path[40];

    (void)snprintf(path, sizeof(path), "task/%d/status", tid);
    probe->statistics.n_reads++;
    return root_read(subject->fd, path, probe->status_text, sizeof(probe->status_text)) > 0 &&
           sched_numa_parse_status(probe->status_text, ret) == 0;
}

uint64_t probe_kernel_groups(Probe *probe, const World *world, const Process *process, const Subject *subject,
                             char *buf)
{
    uint64_t begin = time_thread_cpu_nsec();
    size_t n_tasks, first = world_process_tasks(world, process, &n_tasks), n = 0, n_asked = 0, len = 0;
    pid_t groups[KERNEL_GROUPS_MAX + 1], group;

    for (size_t i = first; i < first + n_tasks && n_asked < KERNEL_GROUPS_THREADS; i++) {
        const Task *task = &world->tasks[i];

        if (task->gone || (n_tasks > KERNEL_GROUPS_THREADS && task->run_ewma_permille == 0))
            continue;
        n_asked++;
        if (read_group(probe, subject, task->tid, &group) && group > 0)
            add(groups, &n, group);
    }
    *buf = '\0';
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(buf + len, KERNEL_GROUPS_TEXT_SIZE - len, " ngid:%d", (int)groups[i]);
    return time_thread_cpu_nsec() - begin;
}
