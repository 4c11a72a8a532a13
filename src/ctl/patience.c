/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One thread of the daemon ticks and answers. While it undoes changes during a fork storm, it is healthy but
 * may answer nobody for a minute; a stopped or hung daemon never answers. A Ping cannot tell the two apart,
 * because the same thread would answer it. CPU time can: a daemon that works uses some. */

#include "ctl/patience.h"

#include "base/root.h"
#include "base/util.h"

void patience_begin(Patience *patience, uint64_t now_usec)
{
    *patience = (Patience){.begin_usec = now_usec, .progress_usec = now_usec};
}

uint64_t patience_look(Patience *patience, uint64_t now_usec, const ProcStat *stat)
{
    uint64_t ticks = stat ? stat->utime_ticks + stat->stime_ticks : 0;

    if (stat && patience->seen && ticks != patience->cpu_ticks)
        patience->progress_usec = now_usec;
    if (stat) {
        patience->seen = true;
        patience->cpu_ticks = ticks;
    }
    if (now_usec >= patience->begin_usec + PATIENCE_MAX_USEC ||
        now_usec >= patience->progress_usec + PATIENCE_SILENCE_USEC)
        return 0;
    return MIN(PATIENCE_LOOK_USEC, patience->progress_usec + PATIENCE_SILENCE_USEC - now_usec);
}

int patience_read(pid_t pid, ProcStat *ret)
{
    CLEANUP_CLOSE int root_fd = pid > 0 ? root_open("/") : -ESRCH;

    return root_fd < 0 ? root_fd : procstat_read_task(root_fd, pid, pid, ret);
}
