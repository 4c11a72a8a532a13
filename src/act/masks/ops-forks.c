/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What can be told from outside about tasks that are being born: a mask is copied in fork(2), before its task has a
 * number. */

#include "act/masks/ops-affinity.h"
#include "base/parse.h"
#include "base/root.h"
#include "base/time.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* More CPU time than fork(2) uses: a fixed part, and page tables, of which some 45 MB of memory are a hundredth of a
 * second (measured: 22 ms for a GiB). Half of that is reckoned with. */
#define FORK_TICKS          2U
#define FORK_BYTES_PER_TICK (20ULL << 20)

int affinity_birth_mark(void *context, ActBirthMark *ret)
{
    char text[256];
    const char *last;
    ssize_t n = root_read(affinity_root(context), "proc/loadavg", text, sizeof(text));
    long hz = sysconf(_SC_CLK_TCK);
    int32_t number;

    if (n < 0)
        return (int)n;
    last = strrchr(text, ' ');
    text[strcspn(text, "\n")] = '\0';
    if (!last || parse_i32(last, &number) < 0 || number < 0)
        return -EBADMSG;
    if (hz <= 0)
        return -EOPNOTSUPP;

    ret->ticks = time_boot_nsec() / (NSEC_PER_SEC / (uint64_t)hz);
    ret->last = number;
    return 0;
}

/* Where a thread waits in fork(2), by the kernel's names of its functions, is known only for some of the places. */
bool affinity_waits_in_fork(void *context, TaskKey task)
{
    static const char *const places[] = {
        "dup_mm",         "dup_fd",        "copy_process",       "copy_page_range",
        "anon_vma_clone", "anon_vma_fork", "cgroup_css_set_fork"};
    char path[64], text[128];

    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/wchan", task.pid, task.tid);
    if (root_read(affinity_root(context), path, text, sizeof(text)) <= 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (strncmp(text, places[i], strlen(places[i])) == 0)
            return true;
    return false;
}

static ActForkState fork_state(void *context, TaskKey task, const ProcStat *stat)
{
    /* Who exits does not fork any more, and may wait for the same locks. */
    if (stat->flags & PROCSTAT_FLAG_EXITING)
        return ACT_FORK_NO;
    if (stat->state == 'D')
        return affinity_waits_in_fork(context, task) ? ACT_FORK_INSIDE : ACT_FORK_BLOCKED;
    return stat->state == 'R' ? ACT_FORK_RUNNING : ACT_FORK_NO;
}

int affinity_may_fork(void *context, TaskKey task, ActFork *ret)
{
    ProcStat stat = {0};
    int r = affinity_read_stat(affinity_root(context), task.pid, task.tid, &stat);

    if (r == 0 && stat.start_ticks != task.start_ticks)
        r = ACT_E_GONE;
    if (r != 0)
        return r;
    *ret = (ActFork){
        .state = fork_state(context, task, &stat),
        .ticks = stat.utime_ticks + stat.stime_ticks,
        .most_ticks = FORK_TICKS + stat.rss_pages / (FORK_BYTES_PER_TICK / (uint64_t)sysconf(_SC_PAGESIZE)),
    };
    return 0;
}
