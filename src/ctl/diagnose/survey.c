/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The daemon's own senses and plans (probe, plan/would.h) with one policy that observes, for some seconds. What plans
 * do not need and a verdict does is added up beside it: on which node each thread was seen to run, tick by tick, and
 * what the CPUs that a process may use had to spare. */

#include "ctl/diagnose/survey.h"

#include "base/parse.h"
#include "base/root.h"
#include "base/time.h"
#include "kernel/procstat.h"
#include "plan/group.h"
#include "plan/home/sharing.h"
#include "plan/would.h"
#include "probe/memory/numa-maps.h"
#include "probe/probe.h"

#include <string.h>
#include <time.h>
#include <uthash.h>

#define TICK_USEC       (100 * USEC_PER_MSEC)
#define DISCOVERY_TICKS 10U
#define CATCH_UP_TICKS  100U
/* Threads looked at in one tick. */
#define STATS_PER_TICK 1024U
#define MAX_TASKS      100000U
/* Of a host, those are looked at that may be worth it. */
#define HOST_BYTES     (64ULL << 20)
#define HOST_PERMILLE  50U
#define NUMA_MAPS_LINE 4096U

static const char policy_text[] = "[Match]\nComm=*\n[Workload]\nAct=observe\nMinAgeSec=0\nGroupBy=process\n"
                                  "[Placement]\nMode=auto\n";

/* What one thread ran and waited, in permille x microseconds. */
typedef struct Track {
    TaskKey key; /* zeroed before it is filled: the hash is over its bytes */
    UT_hash_handle hh;
    uint64_t run, wait;
    uint64_t seen[]; /* [n_nodes]: of `run`, while it was looked where */
} Track;

typedef struct Watch {
    const SurveyTarget *target;
    int root_fd;
    Topology *topology;
    PolicySet *policies;
    World *world;
    Probe *probe;
    Would would;
    Track *tracks;
    uint64_t *busy; /* [cpu_limit] permille x microseconds */
    uint64_t usec;  /* of which the sums are */
    size_t cursor;
    bool met; /* the target */
} Watch;

/* Whom to look at */

static bool is_below(const char *path, const char *above)
{
    size_t n = strlen(above);

    return !strncmp(path, above, n) && (path[n] == '\0' || path[n] == '/');
}

/* A unit or slice it is in, at any level; or a control group it is in or below. */
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

/* Beginning and end */

static void watch_done(Watch *w)
{
    Track *track, *next;

    HASH_ITER (hh, w->tracks, track, next) {
        HASH_DEL(w->tracks, track);
        free(track);
    }
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

static int watch_init(Watch *w)
{
    ProbeCallbacks callbacks = {
        .decide = decide, .assign = assign, .wants_memory = wants_memory, .userdata = w};
    ProbeOptions options = {.live = true, .aside = true, .self = getpid(), .max_tasks = MAX_TASKS};
    int r;

    w->root_fd = root_open("/");
    if (w->root_fd < 0)
        return w->root_fd;
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

/* Looking */

static Track *track_of(Watch *w, TaskKey key)
{
    Track *track = NULL;
    TaskKey zeroed;

    memset(&zeroed, 0, sizeof(zeroed));
    zeroed.pid = key.pid;
    zeroed.tid = key.tid;
    zeroed.start_ticks = key.start_ticks;
    HASH_FIND(hh, w->tracks, &zeroed, sizeof(zeroed), track);
    if (track)
        return track;
    track = calloc(1, sizeof(*track) + w->topology->n_nodes * sizeof(*track->seen));
    if (!track)
        return NULL;
    track->key = zeroed;
    HASH_ADD(hh, w->tracks, key, sizeof(track->key), track);
    if (!track->hh.tbl) {
        free(track);
        return NULL;
    }
    return track;
}

/* Where a thread runs now; the daemon asks that only of those that wait. */
static const TopologyCpu *where(const Watch *w, const Process *process, const Task *task)
{
    char path[64], text[PROCSTAT_TEXT_SIZE];
    ProcStat stat;

    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/stat", (int)process->pid, (int)task->tid);
    if (root_read(w->root_fd, path, text, sizeof(text)) < 0 || procstat_parse(text, &stat) < 0)
        return NULL;
    return topology_cpu(w->topology, (CpuIx){stat.processor});
}

/* Where those run that do, in turn if they are very many. */
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
        track = cpu ? track_of(w, world_task_key(w->world, task)) : NULL;
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
        track = track_of(w, world_task_key(w->world, task));
        if (!track)
            return -ENOMEM;
        track->run += task->run_permille * usec;
        track->wait += task->wait_permille * usec;
    }
    look_where(w, usec);
    return 0;
}

/* Of what a thread ran, what that was on a node: as it was where it was looked. */
static uint64_t located(const Watch *w, const Track *track, uint32_t node)
{
    uint64_t seen = 0;

    for (uint32_t i = 0; i < w->topology->n_nodes; i++)
        seen += track->seen[i];
    return seen > 0 ? (uint64_t)((double)track->run * (double)track->seen[node] / (double)seen) : 0;
}

/* What runs on each node besides those that are looked at: known better than by the World, which takes longer to be
 * sure. */
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
            sum -= MIN(sum, located(w, track, i));
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
        (void)fprintf(stderr, left > 0 ? "\rlooking for %u s more " : "\r\033[K", left);
}

static void sleep_until(uint64_t usec)
{
    struct timespec at = {.tv_sec = (time_t)(usec / USEC_PER_SEC),
                          .tv_nsec = (long)(usec % USEC_PER_SEC * NSEC_PER_USEC)};

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

static int look(Watch *w, uint32_t seconds)
{
    uint32_t n = (uint32_t)(seconds * USEC_PER_SEC / TICK_USEC);
    uint64_t next = time_now_usec();
    int r = 0;

    for (uint32_t i = 0; r == 0 && i <= n; i++) {
        if (i % DISCOVERY_TICKS == 0)
            say_progress((n - i) / DISCOVERY_TICKS);
        /* The first two show what there is, and what it has used up to now. */
        r = tick(w, i % DISCOVERY_TICKS == 0, i > 1, i >= n / 2);
        if (r == 0 && i == 0 && w->target->pid > 0 && !w->met)
            break;
        /* One that took long is no reason for others to be short. */
        next = MAX(next + TICK_USEC, time_now_usec() + TICK_USEC / 2);
        sleep_until(next);
    }
    /* Where the memory of so many lies is read bit by bit. */
    for (uint32_t i = 0; r == 0 && i < CATCH_UP_TICKS && any_awaited(w); i++) {
        r = tick(w, i % DISCOVERY_TICKS == 0, false, i % DISCOVERY_TICKS == 0);
        sleep_until(time_now_usec() + TICK_USEC / 2);
    }
    say_progress(0);
    return r;
}

/* What was found */

static void finding_done(SurveyFinding *finding)
{
    free(finding->comm);
    free(finding->unit);
    free(finding->cgroup);
    free(finding->run_node);
    free(finding->node_bytes);
    hwloc_bitmap_free(finding->home_nodes);
    hwloc_bitmap_free(finding->allowed);
    hwloc_bitmap_free(finding->allowed_nodes);
    hwloc_bitmap_free(finding->cpuset_nodes);
}

void survey_done(Survey *survey)
{
    for (size_t i = 0; i < survey->n_findings; i++)
        finding_done(&survey->findings[i]);
    free(survey->findings);
    topology_unref(survey->topology);
    *survey = (Survey){0};
}

/* Whether most of a process runs on nodes that are not in a list of the kernel's. */
static bool runs_elsewhere(const Watch *w, const SurveyFinding *finding, const char *list)
{
    CLEANUP_BITMAP hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    char text[64];
    size_t n = strcspn(list, " ");
    uint64_t there = 0;

    if (!nodes || n >= sizeof(text))
        return false;
    memcpy(text, list, n);
    text[n] = '\0';
    if (parse_list(text, NUMA_MAPS_NODES_MAX, nodes) < 0)
        return false;
    for (uint32_t i = 0; i < w->topology->n_nodes; i++)
        if (hwloc_bitmap_isset(nodes, w->topology->nodes[i].os_index))
            there += finding->run_node[i];
    return there * 2 < finding->facts.run;
}

/* What is bound to nodes on which it hardly runs. A line is cut where it is longer: its path may be. */
static uint64_t bound_bytes(const Watch *w, const SurveyFinding *finding)
{
    char path[64], line[NUMA_MAPS_LINE];
    uint64_t sum = 0;
    FILE *in;

    (void)snprintf(path, sizeof(path), "/proc/%d/numa_maps", (int)finding->pid);
    in = fopen(path, "re");
    while (in && fgets(line, sizeof(line), in)) {
        NumaMapsLine maps;
        const char *list;

        line[strcspn(line, "\n")] = '\0';
        if (numa_maps_parse(line, &maps) < 0 || !maps.bound || strncmp(maps.words, "bind", 4) != 0)
            continue;
        list = strchr(maps.words, ':');
        if (list && runs_elsewhere(w, finding, list + 1))
            sum += (maps.shared ? maps.pages : maps.anon) * maps.page_bytes;
    }
    if (in)
        (void)fclose(in);
    return sum;
}

static uint64_t idle_of(const Watch *w, hwloc_const_bitmap_t cpus)
{
    uint64_t sum = 0;

    for (uint32_t cpu = 0; w->usec > 0 && cpu < w->topology->cpu_limit; cpu++)
        if (w->topology->cpus[cpu].present && w->world->cpus[cpu].usable && hwloc_bitmap_isset(cpus, cpu))
            sum += 1000 - MIN(w->busy[cpu] / w->usec, 1000U);
    return sum;
}

/* By what each of its threads ran and waited; the masks of those that did, or of all when none has. */
static int sum_threads(Watch *w, const Process *process, SurveyFinding *ret)
{
    size_t n, first = world_process_tasks(w->world, process, &n);
    uint64_t pinned = 0, all = 0, heaviest = 0;

    for (size_t i = first; i < first + n; i++) {
        const Task *task = &w->world->tasks[i];
        const Track *track = task->gone ? NULL : track_of(w, world_task_key(w->world, task));
        uint64_t weight;

        if (!track && !task->gone)
            return -ENOMEM;
        if (!track)
            continue;
        weight = track->run + track->wait;
        ret->n_threads++;
        all += weight;
        if (weight > 0 && task->allowed && hwloc_bitmap_or(ret->allowed, ret->allowed, task->allowed) < 0)
            return -ENOMEM;
        if (task->hands != TASK_HANDS_FOREIGN && task->hands != TASK_HANDS_REPINNED)
            continue;
        pinned += weight;
        if (weight >= heaviest) {
            heaviest = weight;
            ret->pinned_tid = task->tid;
        }
    }
    for (size_t i = first; all == 0 && i < first + n; i++)
        if (!w->world->tasks[i].gone && w->world->tasks[i].allowed &&
            hwloc_bitmap_or(ret->allowed, ret->allowed, w->world->tasks[i].allowed) < 0)
            return -ENOMEM;
    ret->facts.pinned = pinned * 2 > all;
    return 0;
}

/* Threads that have ended meanwhile count as well. */
static void sum_tracks(const Watch *w, const Process *process, SurveyFinding *ret)
{
    const Track *track, *next;
    uint64_t usec = MAX(w->usec, 1U);

    HASH_ITER (hh, w->tracks, track, next) {
        uint64_t most = 0;

        if (track->key.pid != process->pid)
            continue;
        for (uint32_t i = 0; i < w->topology->n_nodes; i++) {
            uint64_t here = located(w, track, i);

            ret->run_node[i] += here;
            most = MAX(most, here);
        }
        ret->facts.run_stays += most;
        ret->facts.wait += track->wait;
    }
    for (uint32_t i = 0; i < w->topology->n_nodes; i++) {
        ret->run_node[i] /= usec;
        ret->facts.run += ret->run_node[i];
    }
    ret->facts.run_stays /= usec;
    ret->facts.wait /= usec;
}

/* Where acting would place it, or the last reason why not. */
static int find_home(Watch *w, const Process *process, SurveyFinding *ret)
{
    const GroupIx ix = process->group;
    const Group *group = ix.i >= 0 ? &w->world->groups[ix.i] : NULL, *would;

    would = group && w->would.world ? world_group_by_id(w->would.world, group->id) : NULL;
    if (would && would->home_nodes) {
        ret->home_nodes = hwloc_bitmap_dup(would->home_nodes);
        return ret->home_nodes ? 0 : -ENOMEM;
    }
    if (would && would->roams)
        ret->refusal = "It needs all nodes: the kernel places its threads.";
    for (size_t i = 0; group && !ret->refusal && i < w->would.plan.n_refusals; i++)
        if (w->would.plan.refusals[i].group_id == group->id)
            ret->refusal = plan_reason_text(w->would.plan.refusals[i].reason);
    return 0;
}

static int copy_text(const char *text, char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? -ENOMEM : 0;
}

static int fill(Watch *w, const Process *process, SurveyFinding *ret)
{
    uint32_t n_nodes = w->topology->n_nodes;

    ret->pid = process->pid;
    ret->run_node = calloc(n_nodes, sizeof(*ret->run_node));
    ret->allowed = hwloc_bitmap_alloc();
    ret->allowed_nodes = hwloc_bitmap_alloc();
    ret->cpuset_nodes = hwloc_bitmap_alloc();
    if (!ret->run_node || !ret->allowed || !ret->allowed_nodes || !ret->cpuset_nodes ||
        copy_text(process->comm, &ret->comm) < 0 || copy_text(process->unit, &ret->unit) < 0 ||
        copy_text(process->cgroup, &ret->cgroup) < 0)
        return -ENOMEM;
    if (process->node_bytes) {
        ret->node_bytes = calloc(n_nodes, sizeof(*ret->node_bytes));
        if (!ret->node_bytes)
            return -ENOMEM;
        memcpy(ret->node_bytes, process->node_bytes, n_nodes * sizeof(*ret->node_bytes));
        for (uint32_t i = 0; i < n_nodes; i++)
            ret->bytes += ret->node_bytes[i];
    }
    if (sum_threads(w, process, ret) < 0)
        return -ENOMEM;
    sum_tracks(w, process, ret);
    /* Who let himself be read once will do so again. */
    ret->facts.bound_bytes = ret->node_bytes ? bound_bytes(w, ret) : 0;
    ret->facts.topology = w->topology;
    ret->facts.run_node = ret->run_node;
    ret->facts.node_bytes = ret->node_bytes;
    ret->facts.allowed_nodes = ret->allowed_nodes;
    ret->facts.cpuset_nodes = ret->cpuset_nodes;
    ret->facts.idle_allowed = idle_of(w, ret->allowed);
    ret->facts.idle_cpuset = process->cpuset ? idle_of(w, process->cpuset) : ret->facts.idle_allowed;
    ret->facts.idle_machine = idle_of(w, w->topology->all_cpus);
    ret->facts.confined = process->cpuset && !hwloc_bitmap_isincluded(w->topology->all_cpus, process->cpuset);
    if (topology_cpus_to_nodes(w->topology, ret->allowed, ret->allowed_nodes) < 0 ||
        topology_cpus_to_nodes(w->topology, process->cpuset ? process->cpuset : ret->allowed,
                               ret->cpuset_nodes) < 0 ||
        find_home(w, process, ret) < 0)
        return -ENOMEM;
    ret->facts.home_nodes = ret->home_nodes;
    return 0;
}

/* By what there is to gain, then by size. */
static int compare(const void *a, const void *b)
{
    const SurveyFinding *x = a, *y = b;
    uint64_t gain_x = (uint64_t)x->diagnosis.gain_most * (x->facts.run + x->facts.wait),
             gain_y = (uint64_t)y->diagnosis.gain_most * (y->facts.run + y->facts.wait);
    bool alarm_x = diagnose_is_alarm(x->diagnosis.verdict), alarm_y = diagnose_is_alarm(y->diagnosis.verdict);

    if (alarm_x != alarm_y)
        return alarm_x ? -1 : 1;
    if (gain_x != gain_y)
        return gain_x > gain_y ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

void survey_judge(Survey *survey)
{
    for (size_t i = 0; i < survey->n_findings; i++)
        diagnose(&survey->findings[i].facts, &survey->findings[i].diagnosis);
    if (survey->n_findings > 1)
        qsort(survey->findings, survey->n_findings, sizeof(*survey->findings), compare);
}

static int collect(Watch *w, Survey *ret)
{
    for (size_t i = 0; i < w->world->n_processes; i++) {
        const Process *process = &w->world->processes[i];
        SurveyFinding *finding;
        int r;

        if (process->gone || process->group.i < 0)
            continue;
        if (!GROW(ret->findings, ret->capacity, ret->n_findings + 1))
            return -ENOMEM;
        finding = &ret->findings[ret->n_findings++];
        *finding = (SurveyFinding){0};
        r = fill(w, process, finding);
        if (r < 0)
            return r;
    }
    ret->usec = w->usec;
    ret->kernel_balances = w->world->kernel_balances;
    ret->idle_permille = idle_of(w, w->topology->all_cpus);
    return 0;
}

static CtlExit fail_missing(const SurveyTarget *target)
{
    if (target->pid > 0)
        return ctl_fail(CTL_EXIT_NOT_FOUND, "no process %d, or none that can be placed", (int)target->pid);
    if (target->unit)
        return ctl_fail(CTL_EXIT_NOT_FOUND, "no process is in %s", target->unit);
    return CTL_EXIT_OK;
}

CtlExit survey_make(const SurveyTarget *target, uint32_t seconds, Survey *ret)
{
    CLEANUP_FREE char *error = NULL;
    Watch w = {.target = target, .root_fd = -1};
    const TopologyOptions whole = {.whole_machine = true};
    CtlExit code = CTL_EXIT_OK;
    int r;

    *ret = (Survey){0};
    r = topology_load(&whole, &w.topology, &error);
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "cannot read the topology: %s", error ? error : strerror(-r));
    ret->topology = topology_ref(w.topology);
    r = watch_init(&w);
    if (r == 0)
        r = look(&w, seconds);
    if (r == 0)
        r = collect(&w, ret);
    if (r < 0)
        code = r == -ENOMEM ? ctl_fail_oom()
                            : ctl_fail(CTL_EXIT_FAILURE, "cannot look at processes: %s", strerror(-r));
    else if (ret->n_findings == 0)
        code = fail_missing(target);
    watch_done(&w);
    return code;
}
