/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Read for every thread in every tick, so the parser walks the text once and copies only the name. */

#include "kernel/procstat.h"

#include "base/root.h"
#include "base/scan.h"
#include "base/util.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The numbers after the state letter, as numbered in proc(5). */
enum {
    FIELD_PPID = 4,
    FIELD_PGRP = 5,
    FIELD_SESSION = 6,
    FIELD_FLAGS = 9,
    FIELD_UTIME = 14,
    FIELD_STIME = 15,
    FIELD_NUM_THREADS = 20,
    FIELD_START = 22,
    FIELD_RSS = 24,
    FIELD_PROCESSOR = 39,
    FIELD_POLICY = 41,
    FIELD_MAX,
};

/* Reads a blank and one number. Signed fields (tpgid, priority, nice) may be negative; they are returned in
 * two's complement. */
static int scan_number(const char **p, uint64_t *ret)
{
    bool negative;
    uint64_t v;

    if (!scan_word(p, " "))
        return -EINVAL;
    negative = scan_word(p, "-");
    if (!scan_u64(p, &v))
        return -EINVAL;
    *ret = negative ? 0 - v : v;
    return 0;
}

/* Stores a number in its field; -EINVAL if it does not fit. */
static int store_number(ProcStat *stat, unsigned field, uint64_t v)
{
    switch (field) {
    case FIELD_PPID:
    case FIELD_PGRP:
    case FIELD_SESSION:
        /* An exiting task shows -1 as its group and session. */
        if ((int64_t)v < -1 || (int64_t)v > INT_MAX)
            return -EINVAL;
        *(field == FIELD_PPID   ? &stat->ppid
          : field == FIELD_PGRP ? &stat->pgrp
                                : &stat->session) = (pid_t)(int64_t)v;
        return 0;
    case FIELD_FLAGS:
        stat->flags = (uint32_t)v;
        return v > UINT32_MAX ? -EINVAL : 0;
    case FIELD_UTIME:
        stat->utime_ticks = v;
        return 0;
    case FIELD_STIME:
        stat->stime_ticks = v;
        return 0;
    case FIELD_NUM_THREADS:
        stat->num_threads = (uint32_t)v;
        return v > UINT32_MAX ? -EINVAL : 0;
    case FIELD_START:
        stat->start_ticks = v;
        return 0;
    case FIELD_RSS:
        stat->rss_pages = v;
        return 0;
    case FIELD_PROCESSOR:
        stat->processor = (int32_t)v;
        return v > INT32_MAX ? -EINVAL : 0;
    case FIELD_POLICY:
        stat->policy = (uint32_t)v;
        return v > UINT32_MAX ? -EINVAL : 0;
    default:
        return 0;
    }
}

static int scan_head(const char *text, const char *open, const char *close, ProcStat *ret)
{
    size_t len = (size_t)(close - open - 1);
    uint64_t pid;

    if (!scan_u64(&text, &pid) || pid > INT_MAX || text[0] != ' ' || text + 1 != open)
        return -EINVAL;

    ret->pid = (pid_t)pid;
    len = MIN(len, sizeof(ret->comm) - 1);
    memcpy(ret->comm, open + 1, len);
    ret->comm[len] = '\0';
    return 0;
}

int procstat_parse(const char *text, ProcStat *ret)
{
    const char *open = strchr(text, '('), *close = strrchr(text, ')'), *s;
    ProcStat stat = {0};

    if (!open || !close || close < open || scan_head(text, open, close, &stat) < 0)
        return -EINVAL;
    if (close[1] != ' ' || !isalpha((unsigned char)close[2]))
        return -EINVAL;
    stat.state = close[2];

    s = close + 3;
    for (unsigned field = FIELD_PPID; field < FIELD_MAX; field++) {
        uint64_t v = 0;

        if (scan_number(&s, &v) < 0 || store_number(&stat, field, v) < 0)
            return -EINVAL;
    }

    *ret = stat;
    return 0;
}

int procstat_read(int dir_fd, const char *path, ProcStat *ret)
{
    char text[PROCSTAT_TEXT_SIZE];
    ssize_t n = root_read(dir_fd, path, text, sizeof(text));

    if (n <= 0)
        return n < 0 ? (int)n : -ESRCH;
    return procstat_parse(text, ret);
}

int procstat_open_living(int process_fd, ProcStat *ret)
{
    CLEANUP(closedir_p) DIR *dir = root_open_directory(process_fd, "task");
    const struct dirent *entry;
    pid_t tid;

    if (!dir)
        return -errno;
    while ((entry = readdir(dir))) {
        CLEANUP_CLOSE int fd = -1;
        int r;

        if (!scan_pid(entry->d_name, &tid))
            continue;
        fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? -errno : procstat_read(fd, "stat", ret);
        if (r == -EMFILE || r == -ENFILE)
            return r; /* says nothing about the thread */
        if (r == 0 && !procstat_has_ended(ret))
            return TAKE_FD(fd);
    }
    return -ESRCH;
}

int procstat_read_task(int root_fd, pid_t pid, pid_t tid, ProcStat *ret)
{
    char path[64];

    if (tid > 0)
        (void)snprintf(path, sizeof(path), "proc/%d/task/%d/stat", (int)pid, (int)tid);
    else
        (void)snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
    return procstat_read(root_fd, path, ret);
}
