/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Turns what watch.h has seen of each process into the facts of a verdict. */

#include "ctl/diagnose/survey.h"

#include "base/lines.h"
#include "base/parse.h"
#include "base/time.h"
#include "ctl/diagnose/watch.h"
#include "probe/memory/numa-maps.h"

#include <string.h>

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
    bandwidth_done(&survey->bandwidth);
    topology_unref(survey->topology);
    *survey = (Survey){0};
}

typedef struct Bound {
    const DiagnoseFacts *facts;
    uint64_t bytes;
} Bound;

/* Whether most of a process runs on nodes that are not in `list`, which the kernel wrote. */
static bool runs_elsewhere(const DiagnoseFacts *facts, const char *list)
{
    CLEANUP_BITMAP hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    char text[64]; /* the kernel writes a policy in as much */
    size_t n = strcspn(list, " ");
    uint64_t there = 0;

    if (!nodes || n >= sizeof(text))
        return false;
    memcpy(text, list, n);
    text[n] = '\0';
    if (parse_list(text, NUMA_MAPS_NODES_MAX, nodes) < 0)
        return false;
    for (uint32_t i = 0; i < facts->topology->n_nodes; i++)
        if (hwloc_bitmap_isset(nodes, facts->topology->nodes[i].os_index))
            there += facts->run_node[i];
    return there * 2 < facts->run;
}

/* A line that does not parse is skipped. */
static int add_bound(void *userdata, const char *line)
{
    Bound *bound = userdata;
    NumaMapsLine maps;
    const char *list;

    if (numa_maps_parse(line, &maps) < 0 || !maps.bound || strncmp(maps.words, "bind", 4) != 0)
        return 0;
    list = strchr(maps.words, ':');
    if (list && runs_elsewhere(bound->facts, list + 1))
        bound->bytes += (maps.shared ? maps.pages : maps.anon) * maps.page_bytes;
    return 0;
}

uint64_t survey_bound_bytes(int root_fd, pid_t pid, const DiagnoseFacts *facts)
{
    Bound bound = {.facts = facts};
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%d/numa_maps", (int)pid);
    (void)lines_read(root_fd, path, add_bound, &bound);
    return bound.bytes;
}

static uint64_t idle_of(const Watch *w, hwloc_const_bitmap_t cpus)
{
    uint64_t sum = 0;

    for (uint32_t cpu = 0; w->usec > 0 && cpu < w->topology->cpu_limit; cpu++)
        if (w->topology->cpus[cpu].present && w->world->cpus[cpu].usable && hwloc_bitmap_isset(cpus, cpu))
            sum += 1000 - MIN(w->busy[cpu] / w->usec, 1000U);
    return sum;
}

/* Weighs each thread by its run and waiting time. Collects the masks of threads that have any, or of all if
 * none has. */
static int sum_threads(Watch *w, const Process *process, SurveyFinding *ret)
{
    size_t n, first = world_process_tasks(w->world, process, &n);
    uint64_t pinned = 0, all = 0, heaviest = 0;

    for (size_t i = first; i < first + n; i++) {
        const Task *task = &w->world->tasks[i];
        const Track *track = task->gone ? NULL : watch_track(w, world_task_key(w->world, task));
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

/* Includes threads that have ended meanwhile. */
static void sum_tracks(const Watch *w, const Process *process, SurveyFinding *ret)
{
    const Track *track, *next;
    uint64_t usec = MAX(w->usec, 1U);

    HASH_ITER (hh, w->tracks, track, next) {
        uint64_t most = 0;

        if (track->key.pid != process->pid)
            continue;
        for (uint32_t i = 0; i < w->topology->n_nodes; i++) {
            uint64_t here = watch_located(w, track, i);

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

/* Where it would be placed, or the first reason why not. */
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
        ret->refusal = plan_rule_text(PLAN_RULE_ROAMS);
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
    ret->facts.topology = w->topology;
    ret->facts.run_node = ret->run_node;
    ret->facts.bound_bytes = ret->node_bytes ? survey_bound_bytes(w->root_fd, process->pid, &ret->facts) : 0;
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

/* Alarms first, then by possible gain, then by size. */
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
    if (w->progress)
        ret->progress = progress_read(w->progress);
    ret->progress_error = w->progress_error;
    ret->usec = w->usec;
    ret->kernel_balances = w->world->kernel_balances;
    ret->idle_permille = idle_of(w, w->topology->all_cpus);
    return 0;
}

static CtlExit fail_missing(const SurveyTarget *target)
{
    if (target->pid > 0)
        return ctl_fail(CTL_EXIT_NOT_FOUND, "there is no process %d, or it cannot be placed",
                        (int)target->pid);
    if (target->unit)
        return ctl_fail(CTL_EXIT_NOT_FOUND, "there is no process in %s", target->unit);
    return CTL_EXIT_OK;
}

/* Observes, and meanwhile counts memory traffic if the machine reports it. */
static int look(Watch *w, uint32_t seconds, Bandwidth *ret)
{
    CLEANUP(bandwidth_done) Bandwidth before = {0}, after = {0};
    uint64_t since = time_now_usec();
    int counted = bandwidth_find(w->root_fd, w->topology, &before), r;

    if (counted == 0)
        counted = bandwidth_count(w->root_fd, &before, SIZE_MAX);
    r = counted == -ENOMEM ? counted : watch_look(w, seconds);
    if (r < 0 || counted < 0)
        return r;
    r = bandwidth_find(w->root_fd, w->topology, &after);
    if (r == 0)
        r = bandwidth_count(w->root_fd, &after, SIZE_MAX);
    if (r == 0)
        r = bandwidth_rate(&before, &after, time_now_usec() - since, ret);
    return r == -ENOMEM ? r : 0;
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
        r = look(&w, seconds, &ret->bandwidth);
    if (r == 0)
        r = collect(&w, ret);
    if (r == -EREMOTE)
        code = ctl_fail(CTL_EXIT_FAILURE,
                        "/proc shows another PID namespace, or nothing: expected this process's "
                        "own, as after mount -t proc proc /proc");
    else if (r < 0)
        code = r == -ENOMEM ? ctl_fail_oom()
                            : ctl_fail(CTL_EXIT_FAILURE, "cannot read processes: %s", strerror(-r));
    else if (ret->n_findings == 0)
        code = fail_missing(target);
    watch_done(&w);
    return code;
}
