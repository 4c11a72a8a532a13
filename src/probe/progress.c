/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe/progress.h"

#include "base/time.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct Count {
    int cycles_fd, instructions_fd; /* the cycles lead the group: all count at the same time, or none does */
    int misses_fd;                  /* -1: misses are not counted */
} Count;

struct Progress {
    Count counts[PROGRESS_THREADS_MAX];
    size_t n;
};

static int open_event(uint32_t type, uint64_t config, pid_t tid, int leader_fd)
{
    struct perf_event_attr attr = {
        .type = type,
        .size = sizeof(attr),
        .config = config,
        .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    long fd = syscall(SYS_perf_event_open, &attr, tid, -1, leader_fd, PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
}

static void close_count(Count *count)
{
    close_p(&count->misses_fd);
    close_p(&count->instructions_fd);
    close_p(&count->cycles_fd);
}

static int open_count(const ProgressEvents *events, pid_t tid, Count *ret)
{
    ret->cycles_fd = open_event(events->type, events->cycles, tid, -1);
    if (ret->cycles_fd < 0)
        return ret->cycles_fd;
    ret->instructions_fd = open_event(events->type, events->instructions, tid, ret->cycles_fd);
    if (ret->instructions_fd < 0) {
        (void)close(ret->cycles_fd);
        return ret->instructions_fd;
    }
    ret->misses_fd = open_event(events->type, events->misses, tid, ret->cycles_fd);
    /* For lack of a descriptor; all else says that misses cannot be counted. */
    if (ret->misses_fd == -EMFILE || ret->misses_fd == -ENFILE) {
        int r = ret->misses_fd;

        close_count(ret);
        return r;
    }
    if (ret->misses_fd < 0)
        ret->misses_fd = -1;
    return 0;
}

int progress_begin(const ProgressEvents *events, const pid_t *tids, size_t n_tids, Progress **ret)
{
    static const ProgressEvents hardware = {
        .type = PERF_TYPE_HARDWARE,
        .instructions = PERF_COUNT_HW_INSTRUCTIONS,
        .cycles = PERF_COUNT_HW_CPU_CYCLES,
        .misses = PERF_COUNT_HW_CACHE_MISSES,
    };
    CLEANUP(progress_free_p) Progress *progress = calloc(1, sizeof(*progress));
    int r = -ESRCH;

    if (!progress)
        return -ENOMEM;
    for (size_t i = 0; i < MIN(n_tids, PROGRESS_THREADS_MAX); i++) {
        int q = open_count(events ? events : &hardware, tids[i], &progress->counts[progress->n]);

        progress->n += q == 0;
        r = q == -ESRCH ? r : q;
        /* Other errors are the same for all threads. */
        if (q < 0 && q != -ESRCH)
            break;
    }
    if (progress->n == 0)
        return r;
    *ret = TAKE_PTR(progress);
    return 0;
}

ProgressCounts progress_read(const Progress *progress)
{
    ProgressCounts sum = {.misses_known = true};

    for (size_t i = 0; i < progress->n; i++) {
        const Count *count = &progress->counts[i];
        struct {
            uint64_t n, run_nsec, cycles, instructions, misses;
        } values = {0};
        size_t size = count->misses_fd >= 0 ? sizeof(values) : offsetof(typeof(values), misses);

        if (read(count->cycles_fd, &values, size) != (ssize_t)size || values.n != size / sizeof(uint64_t) - 2)
            continue;
        sum.cycles += values.cycles;
        sum.instructions += values.instructions;
        sum.misses += values.misses;
        sum.run_usec += values.run_nsec / NSEC_PER_USEC;
        sum.misses_known &= count->misses_fd >= 0;
        sum.n_threads++;
    }
    return sum;
}

const char *progress_explain(int error)
{
    switch (error) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
    case ENOSYS:
        return "no hardware counters are available";
    case EACCES:
    case EPERM:
        return "counting is not permitted (kernel.perf_event_paranoid, or a container)";
    case ESRCH:
        return "none of its threads ran, or those that ran have exited";
    default:
        return strerror(error);
    }
}

Progress *progress_free(Progress *progress)
{
    if (!progress)
        return NULL;
    for (size_t i = 0; i < progress->n; i++)
        close_count(&progress->counts[i]);
    free(progress);
    return NULL;
}
