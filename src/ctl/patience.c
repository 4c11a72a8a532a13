/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The daemon has one thread that ticks and answers. When it puts back beside a storm of forks it answers nobody for
 * a minute and is well; when it is stopped, or hangs, it never answers. Asking it (Ping) cannot tell the two apart,
 * since the answer would come from the same thread. Its CPU time can: a daemon that works uses some. */

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
