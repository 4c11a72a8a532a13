/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Each of the two files alone is wrong about busy CPUs. /proc/schedstat counts nanoseconds, but adds the time
 * of a running task only when it leaves the CPU: a lone spinning task makes its CPU look idle for seconds,
 * and then busy for all of them at once. /proc/stat is right within one step of 10 ms. So the nanoseconds
 * count, but are clamped to within one step of /proc/stat:
 *
 *     tick of 100 ms            /proc/stat    schedstat    busy
 *     short bursts              40 +- 10      37.2         37.2 ms
 *     lone spinner              100 +- 10     0            90 ms
 *     its last slice ends       0 +- 10       900          10 ms
 *
 * With hundreds of CPUs both files are large (schedstat repeats its domain lines for every CPU), and there is
 * no smaller source. The daemon measures the cost and ticks more slowly. */

#include "probe/cpu/cpu-load.h"

#include "base/root.h"
#include "base/time.h"
#include "base/util.h"

#define TEXT_START ((size_t)8192)
#define TEXT_MAX   ((size_t)16 << 20) /* 8192 CPUs with four domain lines of 300 characters each, rounded up */

int cpu_loads_init(CpuLoads *loads, int root_fd)
{
    long hz = sysconf(_SC_CLK_TCK);

    *loads = (CpuLoads){
        .stat_fd = root_open_file(root_fd, "proc/stat"),
        .schedstat_fd = root_open_file(root_fd, "proc/schedstat"),
        .tick_nsec = NSEC_PER_SEC / (uint64_t)(hz > 0 ? hz : 100),
    };
    return loads->stat_fd < 0 && loads->schedstat_fd < 0 ? loads->stat_fd : 0;
}

void cpu_loads_done(CpuLoads *loads)
{
    close_p(&loads->stat_fd);
    close_p(&loads->schedstat_fd);
    cpu_times_done(&loads->times);
    schedstat_done(&loads->schedstat);
    free(loads->text);
    free(loads->tracks);
    *loads = (CpuLoads){.stat_fd = -1, .schedstat_fd = -1};
}

/* Reads a whole file, which is kept open, into loads->text. A `single` record is not read again to find its end. */
static int read_text(CpuLoads *loads, int fd, bool single)
{
    size_t len = 0;

    if (fd < 0)
        return fd;
    for (;;) {
        ssize_t n;

        if (len + 1 >= loads->text_capacity) {
            if (loads->text_capacity >= TEXT_MAX)
                return -EFBIG;
            if (!GROW(loads->text, loads->text_capacity, MAX(TEXT_START, loads->text_capacity + 1)))
                return -ENOMEM;
        }
        n = TEMP_FAILURE_RETRY(pread(fd, loads->text + len, loads->text_capacity - len - 1, (off_t)len));
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
        if (single && len + 1 < loads->text_capacity)
            break;
    }
    loads->text[len] = '\0';
    return 0;
}

/* The track of a CPU, created on demand; NULL when out of memory. */
static CpuTrack *track(CpuLoads *loads, uint32_t cpu)
{
    if (!GROW(loads->tracks, loads->tracks_capacity, (size_t)cpu + 1))
        return NULL;
    while (loads->n_tracks <= cpu)
        loads->tracks[loads->n_tracks++] = (CpuTrack){0};
    return &loads->tracks[cpu];
}

static int read_stat(CpuLoads *loads, uint64_t now_nsec)
{
    int r = read_text(loads, loads->stat_fd, true);

    if (r == 0)
        r = cpu_times_parse(loads->text, &loads->times);
    if (r < 0)
        return r;

    for (size_t i = 0; i < loads->times.n_cpus; i++) {
        const CpuTime *time = &loads->times.cpus[i];
        CpuTrack *t = track(loads, time->cpu);

        if (!t)
            return -ENOMEM;
        t->busy_delta_nsec = cpu_busy_update(&t->busy, now_nsec, time->idle_ticks, loads->tick_nsec);
        t->measured = t->stat_nsec > 0;
        t->stat_nsec = now_nsec;
    }
    return 0;
}

/* Folds the counters of this reading into the track, which has those of the reading before. */
static void fold_schedstat(CpuTrack *t, const SchedstatCpu *cpu, uint64_t now_nsec, uint64_t tick_nsec)
{
    bool counted = t->schedstat_nsec > 0 && cpu->run_nsec >= t->run_nsec && cpu->wait_nsec >= t->wait_nsec;

    if (counted) {
        uint64_t run = cpu->run_nsec - t->run_nsec, busy = t->busy_delta_nsec;

        t->wait_delta_nsec = cpu->wait_nsec - t->wait_nsec;
        t->wait_measured = true;
        if (t->measured)
            t->busy_delta_nsec = CLAMP(run, busy > tick_nsec ? busy - tick_nsec : 0, busy + tick_nsec);
        else if (t->stat_nsec == 0)
            t->busy_delta_nsec = run;
        t->measured = t->measured || t->stat_nsec == 0;
    }
    t->run_nsec = cpu->run_nsec;
    t->wait_nsec = cpu->wait_nsec;
    t->schedstat_nsec = now_nsec;
}

static int read_schedstat(CpuLoads *loads, uint64_t now_nsec)
{
    int r = read_text(loads, loads->schedstat_fd, false);

    if (r == 0)
        r = schedstat_parse(loads->text, &loads->schedstat);
    if (r < 0)
        return r;

    for (size_t i = 0; i < loads->schedstat.n_cpus; i++) {
        CpuTrack *t = track(loads, loads->schedstat.cpus[i].cpu);

        if (!t)
            return -ENOMEM;
        fold_schedstat(t, &loads->schedstat.cpus[i], now_nsec, loads->tick_nsec);
    }
    return 0;
}

/* A CPU that was missing from the file (offline) starts anew when it is back. */
static void forget_absent(CpuLoads *loads, uint64_t now_nsec)
{
    for (size_t i = 0; i < loads->n_tracks; i++) {
        CpuTrack *t = &loads->tracks[i];

        if (t->stat_nsec != now_nsec) {
            t->stat_nsec = 0;
            t->busy.valid = false;
        }
    }
}

static void forget_absent_schedstat(CpuLoads *loads, uint64_t now_nsec)
{
    for (size_t i = 0; i < loads->n_tracks; i++)
        if (loads->tracks[i].schedstat_nsec != now_nsec)
            loads->tracks[i].schedstat_nsec = 0;
}

int cpu_loads_read(CpuLoads *loads, uint64_t now_nsec)
{
    int r, s;

    for (size_t i = 0; i < loads->n_tracks; i++)
        loads->tracks[i].measured = loads->tracks[i].wait_measured = false;

    r = read_stat(loads, now_nsec);
    if (r == -ENOMEM)
        return r;
    forget_absent(loads, now_nsec);

    s = read_schedstat(loads, now_nsec);
    if (s == -ENOMEM)
        return s;
    forget_absent_schedstat(loads, now_nsec);
    return s == 0 ? 0 : r;
}
