/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The fast tick. For each thread it makes one pread() on an open descriptor, parses two numbers and folds in
 * a load; it allocates nothing. probe.h lists what is not read every time. Quiet threads of a group that has
 * lent a CPU are watched all the same, or the owner's return would be noticed a slow tick late. The last CPU
 * needs stat, at six times the cost.
 *
 * Without /proc/schedstat the wait for a CPU is the sum over the threads last seen on it. That misses threads
 * that are not managed, so it counts as known only for a CPU with a managed one. */

#include "base/root.h"
#include "base/time.h"
#include "kernel/taskstat.h"
#include "probe/probe-internal.h"
#include "world/load.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

void probe_task_failed(Reader *reader, Task *task)
{
    if (task->hands == TASK_HANDS_UNKNOWN)
        return;
    reader->hands_before = task->hands;
    task->hands = TASK_HANDS_UNKNOWN;
}

static void task_ok(Reader *reader, Task *task)
{
    if (task->hands == TASK_HANDS_UNKNOWN && !reader->mask_failed)
        task->hands = reader->hands_before;
}

void probe_task_set_hands(Reader *reader, Task *task, TaskHands hands)
{
    if (hands == TASK_HANDS_UNKNOWN)
        probe_task_failed(reader, task);
    else if (task->hands == TASK_HANDS_UNKNOWN)
        reader->hands_before = (uint8_t)hands;
    else
        task->hands = (uint8_t)hands;
}

void probe_thread_validate(Probe *probe, const World *world, Task *task)
{
    ProcStat stat;
    int r = subject_look_up_stat(probe, world->processes[task->process.i].pid, task->tid, &stat);

    if (probe_error_is_gone(r) || (r == 0 && stat.start_ticks != task->start_ticks)) {
        task->gone = true;
        probe->statistics.n_gone++;
    } else if (r < 0) {
        probe_task_failed(&probe->readers.slots[task->reader], task);
    } else {
        memcpy(task->comm, stat.comm, sizeof(task->comm));
    }
}

int probe_task_open(const Probe *probe, pid_t pid, pid_t tid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%d/task/%d/%s", (int)pid, (int)tid,
                   probe->features.task_schedstat ? "schedstat" : "stat");
    return root_open_file(probe->proc_fd, path);
}

/* Without schedstat: run time in steps of 10 ms, and no wait. */
static bool parse_stat(const Probe *probe, const char *text, uint64_t *ret_run_nsec, uint64_t *ret_wait_nsec)
{
    ProcStat stat;

    if (procstat_parse(text, &stat) < 0)
        return false;
    *ret_run_nsec = (stat.utime_ticks + stat.stime_ticks) * probe->tick_nsec;
    *ret_wait_nsec = 0;
    return true;
}

/* Reads a thread that has no open descriptor, and keeps the new one if there is room. */
static ssize_t read_unkept(Probe *probe, const World *world, const Task *task, Reader *reader, char *text,
                           size_t size)
{
    CLEANUP_CLOSE int fd = probe_task_open(probe, world->processes[task->process.i].pid, task->tid);
    ssize_t n;

    if (fd < 0)
        return fd;
    n = pread(fd, text, size, 0);
    if (n < 0)
        return -errno;
    if (readers_keep(&probe->readers, reader, fd))
        (void)TAKE_FD(fd);
    return n;
}

static void task_gone(Probe *probe, Reader *reader, Task *task)
{
    readers_close(&probe->readers, reader);
    task->gone = true;
    probe->statistics.n_gone++;
}

static void fold(Reader *reader, Task *task, uint64_t run_nsec, uint64_t wait_nsec, uint64_t now_usec)
{
    uint64_t run = run_nsec - reader->run_nsec, wait = wait_nsec - reader->wait_nsec;

    if (__builtin_expect(
            reader->read_usec == 0 || run_nsec < reader->run_nsec || wait_nsec < reader->wait_nsec, 0)) {
        /* The first reading, or (without an open descriptor) the counters of another thread under a reused
         * TID, which the next discovery will sort out. */
        if (reader->read_usec > 0)
            probe_task_failed(reader, task);
    } else {
        load_task(task, run, wait, (now_usec - reader->read_usec) * NSEC_PER_USEC);
        task->fresh = false;
        task_ok(reader, task);
        if (run > 0)
            reader->n_still = 0;
        else if (++reader->n_still == READER_QUIET_SAMPLES)
            task->run_ewma_permille = task->wait_ewma_permille = 0;
    }
    reader->run_nsec = run_nsec;
    reader->wait_nsec = wait_nsec;
    reader->read_usec = now_usec;
}

static void sample_task(Probe *probe, const World *world, Task *task, Reader *reader)
{
    char text[PROCSTAT_TEXT_SIZE];
    size_t size = probe->features.task_schedstat ? TASKSTAT_SCHEDSTAT_SIZE : sizeof(text) - 1;
    uint64_t run, wait;
    ssize_t n;

    if (reader->fd >= 0) {
        n = pread(reader->fd, text, size, 0);
        if (n < 0)
            n = -errno;
    } else {
        n = read_unkept(probe, world, task, reader, text, size);
    }
    probe->statistics.n_reads++;

    if (__builtin_expect(n <= 0, 0)) {
        if (n < 0 && probe_error_is_gone((int)n))
            task_gone(probe, reader, task);
        else
            probe_task_failed(reader, task);
        return;
    }
    text[n] = '\0';
    if (__builtin_expect(probe->features.task_schedstat ? !taskstat_parse_schedstat(text, &run, &wait)
                                                        : !parse_stat(probe, text, &run, &wait),
                         0)) {
        probe->statistics.n_unparsable++;
        probe_task_failed(reader, task);
        return;
    }
    fold(reader, task, run, wait, world->now_usec);
}

/* Finds groups with a CPU that is lent: their sleeping threads are watched for waking up. */
static int find_lenders(Probe *probe, const World *world)
{
    if (!GROW(probe->group_lends, probe->group_lends_capacity, world->n_groups))
        return -ENOMEM;
    for (size_t g = 0; g < world->n_groups; g++) {
        probe->group_lends[g] = 0;
        for (size_t i = 0; i < world->n_leases && !probe->group_lends[g] && world->groups[g].home; i++)
            probe->group_lends[g] =
                (uint8_t)hwloc_bitmap_isset(world->groups[g].home, (unsigned)world->leases[i].cpu.i);
    }
    return 0;
}

static bool is_lender(const Probe *probe, const World *world, const Task *task)
{
    GroupIx group = world->processes[task->process.i].group;

    return group.i >= 0 && probe->group_lends[group.i];
}

/* Samples quiet threads of lending groups, continuing where the last tick stopped. Returns how many. */
static size_t watch_lenders(Probe *probe, World *world)
{
    size_t n_watched = 0, i = 0;

    for (; i < world->n_tasks && n_watched < SAMPLE_QUIET_PER_TICK; i++) {
        Task *task = &world->tasks[(probe->quiet_cursor + i) % world->n_tasks];
        Reader *reader = &probe->readers.slots[task->reader];

        if (task->gone || reader->n_still < READER_QUIET_SAMPLES || reader->read_usec == world->now_usec ||
            !is_lender(probe, world, task))
            continue;
        sample_task(probe, world, task, reader);
        n_watched++;
    }
    probe->quiet_cursor = world->n_tasks > 0 ? (probe->quiet_cursor + i) % world->n_tasks : 0;
    return n_watched;
}

/* Samples a task and takes its cost from *left, the samples that the tick still has time for. Returns whether
 * nothing is left. */
static bool take_sample(Probe *probe, const World *world, Task *task, Reader *reader, size_t *left)
{
    size_t cost = reader->fd >= 0 ? 1 : SAMPLE_UNKEPT;

    sample_task(probe, world, task, reader);
    *left -= MIN(cost, *left);
    return *left == 0;
}

/* Samples busy threads, continuing where the last tick stopped if there were too many. Returns how many are quiet. */
static size_t sample_working(Probe *probe, World *world, size_t *left)
{
    size_t n = world->n_tasks, n_quiet = 0, first = n > 0 ? probe->sample_cursor % n : 0;
    bool full = false;

    for (size_t i = 0; i < n; i++) {
        Task *task = &world->tasks[(first + i) % n];
        Reader *reader = &probe->readers.slots[task->reader];

        if (task->gone)
            continue;
        if (reader->n_still >= READER_QUIET_SAMPLES) {
            n_quiet++;
        } else if (!full && take_sample(probe, world, task, reader, left)) {
            full = true;
            probe->sample_cursor = first + i + 1;
        }
    }
    if (!full)
        probe->sample_cursor = 0;
    return n_quiet;
}

/* Samples quiet threads, once after each discovery, as far as `left` goes. Returns how many. */
static size_t sample_quiet(Probe *probe, World *world, size_t left)
{
    size_t n = world->n_tasks, n_sampled = 0;

    for (; probe->quiet_due > 0 && left > 0 && n > 0; probe->quiet_due--) {
        Task *task = &world->tasks[probe->quiet_at++ % n];
        Reader *reader = &probe->readers.slots[task->reader];

        if (task->gone || reader->n_still < READER_QUIET_SAMPLES || reader->read_usec == world->now_usec)
            continue;
        (void)take_sample(probe, world, task, reader, &left);
        n_sampled++;
    }
    return n_sampled;
}

static int sample_tasks(Probe *probe, World *world)
{
    size_t left = probe_batch(probe), n_quiet = sample_working(probe, world, &left);
    int r;

    n_quiet -= sample_quiet(probe, world, left);
    probe->statistics.n_quiet = n_quiet;
    probe->statistics.n_kept_open = probe->readers.n_open;

    if (n_quiet == 0 || world->n_leases == 0)
        return 0;
    r = find_lenders(probe, world);
    if (r < 0)
        return r;
    probe->statistics.n_quiet -= watch_lenders(probe, world);
    return 0;
}

static void read_last_cpu(Probe *probe, const World *world, Task *task)
{
    ProcStat stat;
    int r = subject_look_up_stat(probe, world->processes[task->process.i].pid, task->tid, &stat);

    if (probe_error_is_gone(r) || (r == 0 && stat.start_ticks != task->start_ticks))
        task_gone(probe, &probe->readers.slots[task->reader], task);
    else if (r < 0)
        probe_task_failed(&probe->readers.slots[task->reader], task);
    else if ((uint32_t)stat.processor < world->topology->cpu_limit)
        task->last_cpu = (CpuIx){stat.processor};
}

/* Whether it matters where threads wait. While all CPUs are busy and none is lent, none can be lent or
 * recalled. A CPU must be idle for two ticks before it is lent, so the first of them is soon enough. */
static bool needs_last_cpus(const Probe *probe, const World *world)
{
    uint64_t busy_nsec = world->interval_usec * SAMPLE_BUSY_PERMILLE; /* a permille of 1 us is 1 ns */

    if (world->n_leases > 0 || !probe->features.schedstat || world->partial)
        return true;
    for (uint32_t i = 0; i < MIN(world->topology->cpu_limit, (uint32_t)probe->cpus.n_tracks); i++) {
        const CpuTrack *track = &probe->cpus.tracks[i];

        if (world->cpus[i].online && (!track->measured || track->busy_delta_nsec < busy_nsec))
            return true;
    }
    return false;
}

static void sample_last_cpus(Probe *probe, World *world)
{
    size_t budget = SAMPLE_STATS_PER_TICK + world->topology->n_cpus, i = 0;

    if (!needs_last_cpus(probe, world))
        return;
    for (size_t l = 0; l < world->n_leases; l++) {
        Task *task = world_task(world, world->leases[l].task);

        if (task && !task->gone) {
            read_last_cpu(probe, world, task);
            budget -= budget > 0;
        }
    }
    for (; i < world->n_tasks && budget > 0; i++) {
        Task *task = &world->tasks[(probe->stat_cursor + i) % world->n_tasks];

        if (task->gone || task->lease >= 0 || task->wait_permille < SAMPLE_WAIT_PERMILLE)
            continue;
        read_last_cpu(probe, world, task);
        budget--;
    }
    probe->stat_cursor = world->n_tasks > 0 ? (probe->stat_cursor + i) % world->n_tasks : 0;
}

/* Reads the last CPU of threads that run, to know how much of their memory is local. */
static void sample_runners(Probe *probe, World *world)
{
    size_t budget = SAMPLE_STATS_PER_TICK + world->topology->n_cpus, i = 0;

    for (; i < world->n_tasks && budget > 0; i++) {
        Task *task = &world->tasks[(probe->runner_cursor + i) % world->n_tasks];

        if (task->gone || task->fresh || task->lease >= 0 || task->run_permille < SAMPLE_WAIT_PERMILLE)
            continue;
        read_last_cpu(probe, world, task);
        budget--;
    }
    probe->runner_cursor = world->n_tasks > 0 ? (probe->runner_cursor + i) % world->n_tasks : 0;
}

/* Sums up the wait for each CPU over its threads. */
static int sum_wait(Probe *probe, const World *world)
{
    size_t n = world->topology->cpu_limit;

    if (!GROW(probe->cpu_wait_nsec, probe->cpu_wait_capacity, n) ||
        !GROW(probe->cpu_wait_known, probe->cpu_known_capacity, n))
        return -ENOMEM;
    memset(probe->cpu_wait_nsec, 0, n * sizeof(*probe->cpu_wait_nsec));
    memset(probe->cpu_wait_known, 0, n * sizeof(*probe->cpu_wait_known));

    for (size_t i = 0; i < world->n_tasks; i++) {
        const Task *task = &world->tasks[i];

        if (task->gone || task->fresh || task->last_cpu.i < 0 || task->hands == TASK_HANDS_UNKNOWN)
            continue;
        probe->cpu_wait_known[task->last_cpu.i] = true;
        probe->cpu_wait_nsec[task->last_cpu.i] +=
            task->wait_permille * world->interval_usec; /* usec/1000 = nsec */
    }
    return 0;
}

/* What the daemon's loop ran since the last tick, on the CPU where it is now and mostly was. That is no work
 * of the machine: otherwise a CPU on which only the loop runs would not be idle (P1). */
static uint64_t take_own(Probe *probe, unsigned *ret_cpu)
{
    uint64_t before = probe->own_nsec;

    if (!probe->options.live || getcpu(ret_cpu, NULL) < 0)
        return 0;
    probe->own_nsec = time_thread_cpu_nsec();
    return before > 0 ? probe->own_nsec - MIN(before, probe->own_nsec) : 0;
}

static int fold_cpus(Probe *probe, World *world)
{
    uint64_t interval_nsec = world->interval_usec * NSEC_PER_USEC, own_nsec;
    unsigned own_cpu = UINT_MAX;
    bool summed = false;
    int r;

    own_nsec = take_own(probe, &own_cpu);
    world->own_permille = load_permille(own_nsec, interval_nsec);

    for (uint32_t i = 0; i < MIN(world->topology->cpu_limit, (uint32_t)probe->cpus.n_tracks); i++) {
        const CpuTrack *track = &probe->cpus.tracks[i];
        uint64_t wait_nsec = track->wait_delta_nsec, busy_nsec = track->busy_delta_nsec;
        bool known = track->wait_measured;

        if (!track->measured || !world->cpus[i].online)
            continue;
        if (!known) {
            r = summed ? 0 : sum_wait(probe, world);
            if (r < 0)
                return r;
            summed = true;
            known = probe->cpu_wait_known[i];
            wait_nsec = probe->cpu_wait_nsec[i];
        }
        if (i == own_cpu)
            busy_nsec -= MIN(busy_nsec, own_nsec);
        load_cpu(&world->cpus[i], world->now_usec, busy_nsec, wait_nsec, known, interval_nsec,
                 world->idle_permille);
    }
    return 0;
}

int probe_sample(Probe *probe, World *world, uint64_t now_usec)
{
    bool looked = probe->discovered && probe->masks_read;
    int r, s;

    world->tick++;
    world->now_usec = now_usec;
    world->interval_usec =
        probe->sampled_usec > 0 && now_usec > probe->sampled_usec ? now_usec - probe->sampled_usec : 0;
    probe->sampled_usec = now_usec;

    /* First, because `now_usec` is when this began. */
    r = cpu_loads_read(&probe->cpus, now_usec * NSEC_PER_USEC);
    world->partial = r < 0;

    s = probe->discovered ? 0 : probe_memory_catch_up(probe, world); /* a discovery has done so itself */
    probe->discovered = false;
    if (s == 0)
        s = sample_tasks(probe, world);
    if (s < 0)
        return s;
    sample_last_cpus(probe, world);
    if (looked && world->topology->n_nodes > 1)
        sample_runners(probe, world);
    if (r == 0)
        r = fold_cpus(probe, world);
    world_sum(world);
    load_groups(world);
    load_nodes(world);
    return r;
}
