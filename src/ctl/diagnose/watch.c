/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/diagnose/watch.h"

#include "base/root.h"
#include "base/time.h"
#include "kernel/procstat.h"
#include "plan/group.h"

#include <string.h>
#include <time.h>

#define TICK_USEC (100 * USEC_PER_MSEC)
/* Until the busiest threads are known. */
#define PROGRESS_TICKS  5U
#define DISCOVERY_TICKS 10U
#define CATCH_UP_TICKS  100U
/* Threads whose CPU is read in one tick. */
#define STATS_PER_TICK 1024U
#define MAX_TASKS      100000U
/* Without a target, processes with at least this much memory or CPU time. */
#define HOST_BYTES    (64ULL << 20)
#define HOST_PERMILLE 50U

static_assert(sizeof(TaskKey) == 2 * sizeof(pid_t) + sizeof(uint64_t),
              "the hash is over bytes that are all set");

static const char policy_text[] = "[Match]\nComm=*\n[Workload]\nAct=observe\nMinAgeSec=0\nGroupBy=process\n"
                                  "[Placement]\nMode=auto\n";

/* Which processes */

static bool is_below(const char *path, const char *above)
{
    size_t n = strlen(above);

    return !strncmp(path, above, n) && (path[n] == '\0' || path[n] == '/');
}

/* Whether it is in this unit or slice, at any level, or in or below this control group. */
static bool is_unit(const ProbeSubject *subject, const char *unit)
{
    size_t n = strlen(unit);

    if (!subject->cgroup)
        return false;
    if (unit[0] == '/')
        return is_below(subject->cgroup, unit);
    for (const char *at = subject->cgroup; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (!strncmp(at, unit, n) && (at[n] == '\0' || at[n] == '/'))
            return true;
    }
    return false;
}

static ProbeDecision decide(void *userdata, const ProbeSubject *subject, size_t *ret_policy)
{
    Watch *w = userdata;

    *ret_policy = 0;
    if (w->target->pid > 0 && subject->pid != w->target->pid)
        return PROBE_DECISION_IGNORE;
    if (w->target->unit && !is_unit(subject, w->target->unit))
        return PROBE_DECISION_IGNORE;
    w->met = true;
    if (w->target->pid > 0 || w->target->unit || subject->rss_bytes >= HOST_BYTES ||
        subject->cpu_permille >= HOST_PERMILLE)
        return PROBE_DECISION_TAKE;
    return PROBE_DECISION_LATER;
}

static int assign(void *userdata, World *world, Process *process, size_t policy)
{
    Watch *w = userdata;

    return group_assign(world, w->policies, process, policy);
}

static unsigned wants_memory(void *userdata, const World *world, const Process *process)
{
    return world->topology->n_nodes > 1 ? PROBE_MEMORY_NODES : 0;
}

/* Start and end */

void watch_done(Watch *w)
{
    Track *track, *next;

    HASH_ITER (hh, w->tracks, track, next) {
        HASH_DEL(w->tracks, track);
        free(track);
    }
    progress_free(w->progress);
    would_done(&w->would);
    probe_free(w->probe);
    world_free(w->world);
    policy_set_free(w->policies);
    topology_unref(w->topology);
    free(w->busy);
    close_p(&w->root_fd);
}

static int make_policies(PolicySet **ret)
{
    CLEANUP(conf_report_done) ConfReport report = {0};
    Policy *policy = NULL;
    int r =
        policy_parse("diagnose", policy_text, sizeof(policy_text) - 1, "diagnose", NULL, &policy, &report);

    if (r < 0)
        return r;
    r = policy_set_new(&policy, 1, ret);
    policy_free(policy);
    return r;
}

int watch_init(Watch *w)
{
    ProbeCallbacks callbacks = {
        .decide = decide, .assign = assign, .wants_memory = wants_memory, .userdata = w};
    ProbeOptions options = {.live = true, .aside = true, .self = getpid(), .max_tasks = MAX_TASKS};
    int r;

    w->root_fd = root_open("/");
    if (w->root_fd < 0)
        return w->root_fd;
    if (!probe_has_own_proc(w->root_fd))
        return -EREMOTE;
    options.root_fd = w->root_fd;
    w->busy = calloc(w->topology->cpu_limit, sizeof(*w->busy));
    if (!w->busy)
        return -ENOMEM;
    r = make_policies(&w->policies);
    if (r == 0)
        r = world_new(w->topology, &w->world);
    if (r == 0)
        r = group_sync_workloads(w->world, w->policies);
    if (r == 0)
        r = probe_new(&options, &callbacks, &w->probe);
    return r;
}

/* Observation */

Track *watch_track(Watch *w, TaskKey key)
{
    Track *track = NULL;

    HASH_FIND(hh, w->tracks, &key, sizeof(key), track);
    if (track)
        return track;
    track = calloc(1, sizeof(*track) + w->topology->n_nodes * sizeof(*track->seen));
    if (!track)
        return NULL;
    track->key = key;
    HASH_ADD(hh, w->tracks, key, sizeof(track->key), track);
    if (!track->hh.tbl) {
        free(track);
        return NULL;
    }
    return track;
}

/* Where a thread runs now; the daemon reads that only for threads that wait. */
static const TopologyCpu *where(const Watch *w, const Process *process, const Task *task)
{
    ProcStat stat;

    return procstat_read_task(w->root_fd, process->pid, task->tid, &stat) < 0
               ? NULL
               : topology_cpu(w->topology, (CpuIx){stat.processor});
}

/* Samples where running threads run, in turn if there are very many. */
static void look_where(Watch *w, uint64_t usec)
{
    size_t n_left = STATS_PER_TICK, i;

    for (i = 0; i < w->world->n_tasks && n_left > 0; i++) {
        const Task *task = &w->world->tasks[(w->cursor + i) % w->world->n_tasks];
        const TopologyCpu *cpu;
        Track *track;

        if (task->gone || task->fresh || task->run_permille == 0)
            continue;
        n_left--;
        cpu = where(w, &w->world->processes[task->process.i], task);
        track = cpu ? watch_track(w, world_task_key(w->world, task)) : NULL;
        if (track)
            track->seen[cpu->node.i] += task->run_permille * usec;
    }
    w->cursor = n_left == 0 ? w->cursor + i : 0;
}

static int add_tick(Watch *w)
{
    uint64_t usec = w->world->interval_usec;

    w->usec += usec;
    for (uint32_t cpu = 0; cpu < w->topology->cpu_limit; cpu++)
        w->busy[cpu] += w->world->cpus[cpu].busy_permille * usec;
    for (size_t i = 0; i < w->world->n_tasks; i++) {
        const Task *task = &w->world->tasks[i];
        Track *track;

        if (task->gone || task->fresh || task->run_permille + task->wait_permille == 0)
            continue;
        track = watch_track(w, world_task_key(w->world, task));
        if (!track)
            return -ENOMEM;
        track->run += task->run_permille * usec;
        track->wait += task->wait_permille * usec;
    }
    look_where(w, usec);
    return 0;
}

uint64_t watch_located(const Watch *w, const Track *track, uint32_t node)
{
    uint64_t seen = 0;

    for (uint32_t i = 0; i < w->topology->n_nodes; i++)
        seen += track->seen[i];
    return seen > 0 ? (uint64_t)((double)track->run * (double)track->seen[node] / (double)seen) : 0;
}

/* Sets the load of other processes on each node. It is known better here than in the World, which takes
 * longer to be sure. */
static void set_others(Watch *w)
{
    const Track *track, *next;
    uint64_t sum;

    for (uint32_t i = 0; w->usec > 0 && i < w->topology->n_nodes; i++) {
        sum = 0;
        for (uint32_t cpu = 0; cpu < w->topology->cpu_limit; cpu++)
            if (w->topology->cpus[cpu].present && w->topology->cpus[cpu].node.i == (int32_t)i)
                sum += w->busy[cpu];
        HASH_ITER (hh, w->tracks, track, next)
            sum -= MIN(sum, watch_located(w, track, i));
        w->world->nodes[i].others_permille = (uint32_t)(sum / w->usec);
    }
}

static int tick(Watch *w, bool slow, bool counts, bool plans)
{
    const PlanLimits limits = {.slow_tick = true, .cross_node_moves_per_sec = UINT32_MAX};
    uint64_t now = time_now_usec();
    int r = 0;

    if (slow)
        r = probe_discover(w->probe, w->world, now);
    while (r == 0 && probe_unfinished(w->probe))
        r = probe_go_on(w->probe, w->world);
    if (r == 0)
        r = probe_sample(w->probe, w->world, now);
    if (r == 0 && counts)
        r = add_tick(w);
    if (r == 0 && slow && plans)
        set_others(w);
    if (r == 0 && slow && plans)
        r = would_compute(&w->would, w->world, w->policies, &limits);
    return r;
}

static void say_progress(uint32_t left)
{
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, left > 0 ? "\robserving for another %u s " : "\r\033[K", left);
}

static void sleep_until(uint64_t usec)
{
    struct timespec at = time_spec(usec);

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

static bool any_awaited(const Watch *w)
{
    for (size_t i = 0; i < w->world->n_processes; i++)
        if (!w->world->processes[i].gone && w->world->processes[i].memory_awaited)
            return true;
    return false;
}

static int by_run(const void *a, const void *b)
{
    const Track *x = *(Track *const *)a, *y = *(Track *const *)b;

    return x->run != y->run ? (x->run > y->run ? -1 : 1) : x->key.tid < y->key.tid ? -1 : 1;
}

/* Counts progress of the target's threads that have run most so far. Retried until one has run. */
static int begin_progress(Watch *w)
{
    size_t n = 0, n_all = HASH_COUNT(w->tracks);
    CLEANUP_FREE Track **tracks = calloc(n_all + 1, sizeof(Track *));
    pid_t tids[PROGRESS_THREADS_MAX];
    Track *track, *next;

    if (!tracks)
        return -ENOMEM;
    HASH_ITER (hh, w->tracks, track, next)
        if (track->key.pid == w->target->pid && track->run > 0)
            tracks[n++] = track;
    qsort(tracks, n, sizeof(Track *), by_run);
    n = MIN(n, PROGRESS_THREADS_MAX);
    for (size_t i = 0; i < n; i++)
        tids[i] = tracks[i]->key.tid;
    w->progress_error = -progress_begin(NULL, tids, n, &w->progress);
    return 0;
}

int watch_look(Watch *w, uint32_t seconds)
{
    uint32_t n = (uint32_t)(seconds * USEC_PER_SEC / TICK_USEC);
    uint64_t next = time_now_usec();
    int r = 0;

    for (uint32_t i = 0; r == 0 && i <= n; i++) {
        if (i % DISCOVERY_TICKS == 0)
            say_progress((n - i) / DISCOVERY_TICKS);
        /* The first two ticks find the threads and their CPU time so far. */
        r = tick(w, i % DISCOVERY_TICKS == 0, i > 1, i >= n / 2);
        if (r == 0 && i == 0 && w->target->pid > 0 && !w->met)
            break;
        if (r == 0 && i >= PROGRESS_TICKS && w->target->pid > 0 && !w->progress &&
            (i == PROGRESS_TICKS || w->progress_error == ESRCH))
            r = begin_progress(w);
        /* After a long tick the next ones do not follow at once. */
        next = MAX(next + TICK_USEC, time_now_usec() + TICK_USEC / 2);
        sleep_until(next);
    }
    /* The memory of very many processes is read little by little. */
    for (uint32_t i = 0; r == 0 && i < CATCH_UP_TICKS && any_awaited(w); i++) {
        r = tick(w, i % DISCOVERY_TICKS == 0, false, i % DISCOVERY_TICKS == 0);
        sleep_until(time_now_usec() + TICK_USEC / 2);
    }
    say_progress(0);
    return r;
}
