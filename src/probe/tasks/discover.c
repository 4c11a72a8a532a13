/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One pass over /proc. Most processes are not managed, so the pass avoids reading them:
 *
 *     not seen before, or PID reused   read, asked about
 *     seen once                        reread; asked about if its identity changed: it may have been met between
 *                                      fork and exec
 *     decision IGNORE                  one in eight reread (of kernel threads one in 64, when /proc is listed);
 *                                      asked about if its identity changed
 *     decision LATER                   reread and asked about
 *     in the World                     stat of up to 128 read (CPU time, memory, number of threads); threads
 *                                      listed if their number differs; names of one in eight reread
 *
 * Listing threads only if their number differs misses nothing: the next sample notices a thread that ended.
 * It saves most of the pass for a process of ten thousand threads, where listing takes milliseconds. /proc
 * itself is listed when /proc/loadavg shows that something has started, and in every sixteenth pass.
 *
 * A process whose command line or environment does not arrive is left out. Once reported to hang it counts as
 * LATER: a look at it costs no more than at others, and it is asked about as soon as its file can be read.
 *
 * A process that no policy wants any more stays in the World, without workload, until no mask of ours is left
 * on it. */

#include "base/time.h"
#include "probe/probe-internal.h"

#include <stdio.h>
#include <string.h>

static bool is_gone_state(const ProcStat *stat)
{
    return procstat_has_ended(stat) && stat->num_threads <= 1;
}

/* A process is first met right after fork(2), and may take this long to call exec(2) and become another program. */
#define FRESH_USEC 3000000U

/* Processes that are never asked about (I2). */
static bool is_out_of_reach(const Probe *probe, const Subject *subject)
{
    return subject->pid == probe->options.self || (subject->stat.flags & PROCSTAT_FLAG_KTHREAD) ||
           is_gone_state(&subject->stat);
}

/* CPU time used since the reading before, permille of one CPU; 0 when there was none. */
static uint32_t cpu_permille(const Probe *probe, const SeenProcess *old, const ProcStat *stat,
                             uint64_t now_usec)
{
    uint64_t ticks = stat->utime_ticks + stat->stime_ticks, interval_usec;

    if (!old || old->start_ticks != stat->start_ticks || old->read_usec == 0 || now_usec <= old->read_usec ||
        ticks < old->cpu_ticks)
        return 0;
    interval_usec = now_usec - old->read_usec;
    return (uint32_t)MIN((ticks - old->cpu_ticks) * (probe->tick_nsec / NSEC_PER_USEC) * 1000 / interval_usec,
                         UINT32_MAX);
}

static void note_numbers(SeenProcess *seen, const ProcStat *stat, uint64_t now_usec)
{
    seen->start_ticks = stat->start_ticks;
    seen->n_threads = stat->num_threads;
    seen->cpu_ticks = stat->utime_ticks + stat->stime_ticks;
    seen->read_usec = now_usec;
}

static void refresh_numbers(const Probe *probe, Process *process, const ProcStat *stat, uint32_t permille)
{
    process->parent = stat->ppid;
    process->rss_bytes = stat->rss_pages * probe->page_bytes;
    process->n_threads = stat->num_threads;
    process->cpu_permille = permille;
}

static size_t count_threads(const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n), alive = 0;

    for (size_t i = first; i < first + n; i++)
        alive += !world->tasks[i].gone;
    return alive;
}

static bool changed_by_us(const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n);

    for (size_t i = first; i < first + n; i++)
        if (!world->tasks[i].gone && world->tasks[i].original)
            return true;
    return false;
}

/* Puts names and cpuset into the World's entry. */
static int fill_process(Probe *probe, World *world, const Subject *subject, SeenProcess *seen,
                        Process *process)
{
    CpuMask cpuset;
    int r = probe_cpuset(probe, world, subject->cgroup.cpuset, &cpuset);

    if (r < 0)
        return r;
    if (!seen->cpuset_path || strcmp(seen->cpuset_path, subject->cgroup.cpuset) != 0) {
        char *path = strdup(subject->cgroup.cpuset);

        if (!path)
            return -ENOMEM;
        free(seen->cpuset_path);
        seen->cpuset_path = path;
    }
    seen->cpuset_changed |= process->cpuset && process->cpuset != cpuset;

    (void)probe_cpuset_put(probe, world, process, cpuset);
    process->comm = intern_string(world->pool, subject->stat.comm);
    process->cgroup = intern_string(world->pool, subject->cgroup.main);
    process->unit = *subject->unit.unit ? intern_string(world->pool, subject->unit.unit) : NULL;
    process->slice = *subject->unit.slice ? intern_string(world->pool, subject->unit.slice) : NULL;
    if (!process->comm || !process->cgroup || (*subject->unit.unit && !process->unit) ||
        (*subject->unit.slice && !process->slice))
        return -ENOMEM;
    return 0;
}

/* A process of a captured tree may start only later by the clock of this machine. */
static uint64_t started_usec(const Probe *probe, const ProcStat *stat, uint64_t now_usec)
{
    uint64_t now = probe->boot_nsec / probe->tick_nsec, age = now - MIN(stat->start_ticks, now);

    return now_usec - MIN(age * (probe->tick_nsec / NSEC_PER_USEC), now_usec);
}

/* Adds a process to the World. Returns its index, -EEXIST while an older process with its PID is there, or -ENOMEM. */
static int add_process(Probe *probe, World *world, const Subject *subject, SeenProcess *seen,
                       uint64_t now_usec)
{
    Process process = {
        .pid = subject->pid,
        .start_ticks = subject->stat.start_ticks,
        .started_usec = started_usec(probe, &subject->stat, now_usec),
        .first_seen_usec = now_usec,
        .uid = subject->uid,
        .workload = WORKLOAD_NONE,
        .group = GROUP_NONE,
    };
    int r = fill_process(probe, world, subject, seen, &process);

    if (r < 0)
        return r;
    refresh_numbers(probe, &process, &subject->stat, subject->cpu_permille);
    return world_add_process(world, &process);
}

/* Carries out TAKE. Returns 0, or -ENOMEM. */
static int take(Probe *probe, World *world, const Subject *subject, SeenProcess *seen, size_t policy,
                uint64_t now_usec)
{
    Process *process = world_process(world, subject->pid);

    if (!process) {
        int at;

        if (world->n_tasks >= probe->options.max_tasks) {
            probe->statistics.n_over_limit += subject->stat.num_threads;
            return 0;
        }
        at = add_process(probe, world, subject, seen, now_usec);
        if (at < 0)
            return at;
        process = &world->processes[at];
        probe->statistics.n_taken++;
    } else if (process->gone) {
        return 0; /* the next pass finds its place empty */
    }
    return probe->callbacks.assign(probe->callbacks.userdata, world, process, policy);
}

static bool is_refused(const Probe *probe, const Subject *subject)
{
    return probe->callbacks.refuses &&
           probe->callbacks.refuses(probe->callbacks.userdata, subject->pid, subject->stat.start_ticks);
}

/* Decides anew. Returns 0, or -errno when the process could not be read or memory ran out. */
static int ask(Probe *probe, World *world, Subject *subject, SeenProcess *seen, uint64_t now_usec)
{
    ProbeDecision decision = PROBE_DECISION_IGNORE;
    Process *process;
    size_t policy = 0;
    int r = 0;

    /* A refused process leaves the World, and is asked about each time from then on. */
    if (!is_refused(probe, subject))
        r = subject_decide(probe, subject, &decision, &policy);
    else if (!world_process(world, subject->pid))
        decision = PROBE_DECISION_LATER;
    if (r < 0)
        return r;
    seen->hangs = false;
    seen->decision = (uint8_t)decision;
    if (decision == PROBE_DECISION_TAKE)
        return take(probe, world, subject, seen, policy, now_usec);

    process = world_process(world, subject->pid);
    if (process) {
        process->workload = WORKLOAD_NONE;
        process->group = GROUP_NONE;
    }
    return 0;
}

/* What a failed read means. A process that is gone, or was not known before, is forgotten (1), so that the
 * next pass asks. One in the World stays as it is until it can be read, and is then asked about if it was to be now. */
static int give_up(Probe *probe, int r, const Process *process, const SeenProcess *old, SeenProcess *seen)
{
    (void)probe_note_error(probe, r);
    if (r == -ENOMEM)
        return r;
    if (probe->ask_all)
        seen->identity = 0;
    return probe_error_is_gone(r) || !process || !old ? 1 : 0;
}

/* The first thread has the name of its process. */
static void name_first_thread(World *world, const Process *process, const char *comm)
{
    Task *task = world_task_by_tid(world, process->pid, process->pid);

    if (task)
        (void)snprintf(task->comm, sizeof(task->comm), "%s", comm);
}

/* A process whose files hang, or whose user has too many reads that hang, is neither placed nor forgotten. A
 * hang is reported once. */
static void note_hanging(Probe *probe, const Subject *subject, SeenProcess *seen, int r)
{
    seen->decision = PROBE_DECISION_LATER;
    seen->identity = subject->identity;
    probe->statistics.n_unreadable++;
    if (r == -ETIMEDOUT && !seen->hangs)
        subject_tell_hanging(probe, subject);
    seen->hangs |= r == -ETIMEDOUT;
}

static int refresh_cpuset(Probe *probe, World *world, Process *process, SeenProcess *seen)
{
    CpuMask cpuset;
    int r = probe_cpuset(probe, world, seen->cpuset_path, &cpuset);

    if (r == 0)
        seen->cpuset_changed |= probe_cpuset_put(probe, world, process, cpuset);
    return r;
}

/* Whether what was decided about a process holds, because its first thread has ended. Only other threads show what it
 * is then, and these may end, or be in cgroups of their own. */
static bool is_kept(const Probe *probe, const Subject *subject, const Process *process,
                    const SeenProcess *old)
{
    return procstat_has_ended(&subject->stat) && process->workload.i >= 0 &&
           old->decision == PROBE_DECISION_TAKE && !is_refused(probe, subject);
}

/* The rest of a look, after the names. Returns 0 or -ENOMEM. */
static int look_at_threads(Probe *probe, World *world, Process *process, const Subject *subject)
{
    refresh_numbers(probe, process, &subject->stat, subject->cpu_permille);
    if (subject->stat.num_threads == count_threads(world, process))
        return 0;
    return probe_threads_refresh(probe, world, (size_t)(process - world->processes), subject);
}

/* Reads a process in full. Returns 0, 1 when it is to be forgotten, or -ENOMEM. */
static int look(Probe *probe, World *world, pid_t pid, const SeenProcess *old, SeenProcess *seen,
                uint64_t now_usec)
{
    Process *process = world_process(world, pid);
    CLEANUP(subject_close) Subject subject = {.fd = -1};
    bool same, other;
    int r = subject_open(probe, pid, &subject);

    if (r < 0)
        return give_up(probe, r, process, old, seen);
    same = old && old->start_ticks == subject.stat.start_ticks;
    if (process && process->start_ticks != subject.stat.start_ticks)
        return 1; /* PID reused: the next pass meets the new process */
    subject.cpu_permille = cpu_permille(probe, old, &subject.stat, now_usec);
    note_numbers(seen, &subject.stat, now_usec);
    if (!same)
        seen->met_usec = probe->n_passes > 1 ? now_usec : 0; /* older than the probe: it has called exec(2) */
    seen->fresh = !same || now_usec < seen->met_usec + FRESH_USEC;

    if (is_out_of_reach(probe, &subject)) {
        seen->decision = PROBE_DECISION_IGNORE;
        seen->out_of_reach = true;
        return process ? 1 : 0;
    }
    seen->out_of_reach = false;
    if (process && same && is_kept(probe, &subject, process, old)) {
        r = refresh_cpuset(probe, world, process, seen);
        return r < 0 ? r : look_at_threads(probe, world, process, &subject);
    }
    r = subject_read_identity(probe, &subject, probe->options.wants);
    if (r < 0)
        return give_up(probe, r, process, old, seen);
    if (!same || probe->ask_all || old->identity != subject.identity ||
        old->decision == PROBE_DECISION_LATER || (old->decision == PROBE_DECISION_TAKE && !process) ||
        /* During exec(2) it already has its new name, but no command line yet. */
        (old->fresh && old->met_usec > 0))
        r = ask(probe, world, &subject, seen, now_usec);
    if (r == -EAGAIN && process) {
        seen->identity = 0; /* asked again at its next turn */
        return 0;
    }
    if (r == -ETIMEDOUT || r == -EDQUOT) {
        note_hanging(probe, &subject, seen, r);
        return 0;
    }
    if (r < 0)
        return give_up(probe, r, process, old, seen);
    other = !same || old->identity != subject.identity;
    if (other)
        seen->memory_due_usec = seen->memory_asked_usec = seen->memory_cost_usec = 0; /* other memory */
    seen->identity = subject.identity;

    process = world_process(world, pid);
    if (!process || process->gone)
        return 0;
    if (other)
        world_forget_counts(process);
    r = fill_process(probe, world, &subject, seen, process);
    if (r < 0)
        return r;
    name_first_thread(world, process, subject.stat.comm);
    return look_at_threads(probe, world, process, &subject);
}

/* The short look at a process in the World. Returns 0; 1: it needs the full one. The kernel sums up the CPU
 * times of all threads for stat, 8 ms for 25,000. So those of very large processes are left to the full look,
 * and the first thread's stat gives the rest. */
static int glance(Probe *probe, World *world, Process *process, SeenProcess *seen, uint64_t now_usec)
{
    bool large = process->n_threads > probe_batch(probe) / THREADS_BATCH_SHARE;
    ProcStat stat;

    if (large && probe_unfinished(probe))
        return 0;
    if (subject_look_up_stat(probe, process->pid, large ? process->pid : 0, &stat) < 0 ||
        stat.start_ticks != process->start_ticks || strcmp(stat.comm, process->comm) != 0 ||
        procstat_has_ended(&stat) || /* also if others go on: stat does not show their memory */
        stat.num_threads != count_threads(world, process))
        return 1;
    refresh_numbers(probe, process, &stat,
                    large ? process->cpu_permille : cpu_permille(probe, seen, &stat, now_usec));
    if (!large)
        note_numbers(seen, &stat, now_usec);
    return 0;
}

/* Whether it is reread although nothing shows that it has changed. */
static bool is_turn(const Probe *probe, pid_t pid, const SeenProcess *old)
{
    if (old && old->out_of_reach)
        return probe->listed && (uint64_t)pid % OUT_OF_REACH_ROLL == probe->n_lists % OUT_OF_REACH_ROLL;
    return (uint64_t)pid % DISCOVER_ROLL == probe->n_passes % DISCOVER_ROLL;
}

/* Handles one process of the listing and fills in its new entry. Returns 0, 1: forget it; -ENOMEM. */
static int visit(Probe *probe, World *world, pid_t pid, const SeenProcess *old, SeenProcess *seen,
                 uint64_t now_usec)
{
    size_t share = 1 + world->n_processes / GLANCES_PER_PASS;
    bool turn = is_turn(probe, pid, old);
    Process *process = world_process(world, pid);
    int r = 1;

    if (process && process->gone)
        return 1;
    if (process && seen->cpuset_path && seen->decision != PROBE_DECISION_LATER && !turn && !probe->ask_all) {
        r = refresh_cpuset(probe, world, process, seen);
        if (r == 0 && (uint64_t)pid % share == probe->n_passes % share)
            r = glance(probe, world, process, seen, now_usec);
    }
    if (!process && old && old->decision == PROBE_DECISION_IGNORE && !old->fresh && !turn &&
        (!probe->ask_all || old->out_of_reach))
        return 0;
    if (r != 1)
        return r;

    /* At the limit a process is counted, but not reread each time. */
    if (!process && old && old->decision == PROBE_DECISION_TAKE && !turn &&
        world->n_tasks >= probe->options.max_tasks) {
        probe->statistics.n_over_limit += old->n_threads;
        return 0;
    }
    return look(probe, world, pid, old, seen, now_usec);
}

/* After its visit: marks a process gone that is to leave the World. */
static void settle(World *world, pid_t pid, const SeenProcess *seen)
{
    Process *process = world_process(world, pid);

    if (process && !process->gone &&
        (!seen || (seen->decision != PROBE_DECISION_TAKE && !changed_by_us(world, process))))
        probe_process_gone(world, process);
}

/* Records a process that is met for the first time, or whose PID was reused. */
static int note_born(Probe *probe, const SeenProcess *old, uint64_t old_start_ticks, const SeenProcess *seen)
{
    if (seen->out_of_reach || (old && old_start_ticks == seen->start_ticks))
        return 0;
    return APPEND(probe->born, probe->born_capacity, probe->n_born,
                  (TaskKey){.pid = seen->pid, .start_ticks = seen->start_ticks});
}

const TaskKey *probe_born(const Probe *probe, size_t *ret_n)
{
    *ret_n = probe->n_born;
    return probe->born;
}

static int visit_all(Probe *probe, World *world, uint64_t now_usec)
{
    SeenTable before;
    size_t hint = 0;

    probe->n_born = 0;
    seen_clear(&probe->seen_next);
    for (size_t i = 0; i < probe->n_pids; i++) {
        pid_t pid = probe->pids[i];
        SeenProcess *old = seen_find(&probe->seen, pid, &hint);
        SeenProcess seen = old ? *old : (SeenProcess){.pid = pid};
        uint64_t start_ticks = seen.start_ticks;
        int r;

        if (old)
            old->cpuset_path = NULL; /* the new entry owns it now */
        seen.fresh = false;
        if (probe->masks_read) {
            seen.cpuset_moving = seen.cpuset_changed;
            seen.cpuset_changed = false;
        }
        r = visit(probe, world, pid, old, &seen, now_usec);
        settle(world, pid, r == 0 ? &seen : NULL);
        if (r == 0)
            r = note_born(probe, old, start_ticks, &seen);
        if (r == 0)
            r = seen_append(&probe->seen_next, &seen);
        if (r != 0)
            free(seen.cpuset_path);
        if (r < 0)
            return r;
    }

    seen_clear(&probe->seen);
    before = probe->seen;
    probe->seen = probe->seen_next;
    probe->seen_next = before;
    return 0;
}

/* Marks processes of the World gone that are not in the listing; both ascend. */
static void drop_unlisted(Probe *probe, World *world)
{
    size_t at = 0;

    for (size_t i = 0; i < world->n_processes; i++) {
        Process *process = &world->processes[i];

        while (at < probe->n_pids && probe->pids[at] < process->pid)
            at++;
        if (!process->gone && (at == probe->n_pids || probe->pids[at] != process->pid))
            probe_process_gone(world, process);
    }
}

static int compact(Probe *probe, World *world)
{
    readers_begin(&probe->readers);
    for (size_t i = 0; i < world->n_tasks; i++)
        if (!world->tasks[i].gone)
            readers_mark(&probe->readers, world->tasks[i].reader);
    readers_sweep(&probe->readers);
    probe->statistics.n_kept_open = probe->readers.n_open;

    probe_masks_forget(probe);
    probe_cpusets_forget(probe);
    return world_compact(world);
}

/* Whether the last listing is still good: no PID was given out since, and this pass reads every process of
 * the World, which shows those that ended. A process restored with its old PID moves no counter. */
static bool is_still_listed(const Probe *probe, const World *world, pid_t last_pid)
{
    return last_pid > 0 && last_pid == probe->last_pid && world->n_processes < GLANCES_PER_PASS &&
           probe->n_passes % LIST_ROLL != 0;
}

static int list_processes(Probe *probe, const World *world)
{
    pid_t last_pid;
    int r;

    /* Reading it before the listing is early enough: a process that starts in between is taken for new once more. */
    if (!probe->glanced)
        probe_glance(probe);
    probe->glanced = false;
    last_pid = probe->glance.last_pid;
    probe->listed = !is_still_listed(probe, world, last_pid);
    if (!probe->listed)
        return 0;
    probe->n_lists++;
    probe->last_pid = 0; /* in case the listing fails halfway */
    rewinddir(probe->proc);
    r = probe_list_numbers(probe->proc, &probe->pids, &probe->pids_capacity, &probe->n_pids);
    if (r == 0)
        probe->last_pid = last_pid;
    return r;
}

static void quiet_begin(Probe *probe, const World *world)
{
    /* Continues with the tasks before, if they were not all sampled yet. */
    if (probe->quiet_due == 0)
        probe->quiet_at = 0;
    probe->quiet_due = world->n_tasks;
}

static int discover(Probe *probe, World *world, bool all, uint64_t now_usec)
{
    int r;

    world->now_usec = now_usec;
    probe->boot_nsec = time_boot_nsec();
    probe->n_passes++;
    probe->statistics.n_over_limit = probe->statistics.n_unreadable = probe->statistics.n_no_descriptors = 0;
    if (probe->aside)
        aside_refill(probe->aside);
    probe_masks_forget(probe);
    probe_cpusets_begin(probe);
    stat_files_begin(&probe->stat_files);

    r = list_processes(probe, world);
    if (r == 0)
        r = probe_cpus_refresh(probe, world);
    if (r == 0)
        r = visit_all(probe, world, now_usec);
    if (r < 0)
        return r;

    drop_unlisted(probe, world);
    if (all) {
        probe_threads_validate(probe, world);
        r = probe_masks_refresh(probe, world);
    }
    probe->masks_read = all && r == 0;
    if (r == 0)
        r = compact(probe, world);
    if (r == 0)
        r = probe_memory_refresh(probe, world);
    if (r < 0)
        return r;

    probe->ask_all = false;
    if (all)
        quiet_begin(probe, world);
    probe->discovered = true;
    return 0;
}

int probe_discover(Probe *probe, World *world, uint64_t now_usec)
{
    return discover(probe, world, true, now_usec);
}

int probe_find_newcomers(Probe *probe, World *world, uint64_t now_usec)
{
    return discover(probe, world, false, now_usec);
}

int probe_look(Probe *probe, pid_t pid, unsigned wants,
               int (*look_at)(void *userdata, const ProbeSubject *subject), void *userdata)
{
    CLEANUP(subject_close) Subject subject = {.fd = -1};
    ProbeSubject facts;
    int r = subject_open(probe, pid, &subject);

    if (r == 0 && is_out_of_reach(probe, &subject))
        return PROBE_E_OUT_OF_REACH;
    if (r == 0)
        r = subject_read_identity(probe, &subject, wants);
    if (r == 0)
        r = subject_read_facts(probe, &subject, wants, &facts);
    if (r == -EAGAIN || r == -ETIMEDOUT || r == -EDQUOT)
        return r == -EAGAIN ? PROBE_E_AWAITED : r == -ETIMEDOUT ? PROBE_E_HANGS : PROBE_E_CROWDED;
    if (r < 0)
        return probe_error_is_gone(r) ? -ESRCH : r;
    return look_at(userdata, &facts);
}
