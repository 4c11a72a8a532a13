/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A record holds the World of each plan, which is nearly all that the daemon says of itself; what it does not hold, as
 * what the daemon cost, is not shown. */

#include "ctl/top/recording.h"

#include "base/parse.h"
#include "base/root.h"
#include "plan/transcript.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define INTERVAL_USEC 1000000U

/* From a World */

static bool take_nodes(TopSnapshot *s, const World *world)
{
    s->n_nodes = world->topology->n_nodes;
    s->nodes = calloc(MAX(s->n_nodes, 1U), sizeof(*s->nodes));
    for (uint32_t i = 0; s->nodes && i < s->n_nodes; i++) {
        const TopologyNode *node = &world->topology->nodes[i];

        s->nodes[i] = (TopNode){
            .number = node->os_index,
            .n_cpus = node->n_cpus,
            .memory_bytes = node->memory_bytes,
            .free_bytes = world->nodes[i].free_bytes,
            .free_known = world->nodes[i].free_known,
        };
    }
    return s->nodes;
}

static TopCpuState state_of(const CpuLoad *load)
{
    if (!load->online)
        return TOP_CPU_ABSENT;
    if (load->idle_since_usec > 0)
        return TOP_CPU_IDLE;
    return load->wait_permille >= TOP_OVERLOADED_PERMILLE ? TOP_CPU_OVERLOADED : TOP_CPU_BUSY;
}

static void count_cpu(TopSnapshot *s, const TopCpu *cpu)
{
    s->n_idle += cpu->state == TOP_CPU_IDLE;
    s->n_overloaded += cpu->state == TOP_CPU_OVERLOADED;
    if (cpu->state != TOP_CPU_ABSENT)
        s->nodes[cpu->node].busy_permille += cpu->percent * 10U;
}

static bool take_cpus(TopSnapshot *s, const World *world)
{
    s->cpus = calloc(MAX(world->topology->n_cpus, 1U), sizeof(*s->cpus));
    for (uint32_t i = 0; s->cpus && i < world->topology->cpu_limit; i++) {
        const TopologyCpu *entry = topology_cpu(world->topology, (CpuIx){(int32_t)i});
        TopCpu *cpu = &s->cpus[s->n_cpus];

        if (!entry || s->n_cpus == world->topology->n_cpus)
            continue;
        s->n_cpus++;
        cpu->state = (uint8_t)state_of(&world->cpus[i]);
        cpu->percent = (uint8_t)(MIN(world->cpus[i].busy_permille, 1000U) / 10);
        cpu->node = (uint16_t)MAX(entry->node.i, 0);
        cpu->llc = (uint16_t)entry->llc.i;
        count_cpu(s, cpu);
        for (size_t k = 0; k < world->n_leases; k++)
            if (world->leases[k].cpu.i == (int32_t)i)
                cpu->state = TOP_CPU_LENT;
    }
    return s->cpus;
}

/* The nodes of its groups, as the operating system numbers them. */
static bool take_homes(TopWorkload *w, const World *world, WorkloadIx workload)
{
    CLEANUP_BITMAP hwloc_bitmap_t numbers = hwloc_bitmap_alloc();
    CLEANUP_FREE char *text = NULL;

    for (size_t i = 0; numbers && i < world->n_groups; i++) {
        const Group *group = &world->groups[i];
        CpuMask nodes = w->observed ? group->wish_nodes : group->home_nodes;

        if (group->workload.i != workload.i || group->gone)
            continue;
        w->leases += group->n_leases;
        for (int n = nodes ? hwloc_bitmap_first(nodes) : -1; n >= 0; n = hwloc_bitmap_next(nodes, n))
            if (hwloc_bitmap_set(numbers, world->topology->nodes[n].os_index) < 0)
                return false;
    }
    text = numbers ? format_list(numbers, PARSE_CPU_MAX) : NULL;
    if (!text)
        return false;
    (void)snprintf(w->nodes, sizeof(w->nodes), "%s", text);
    return true;
}

static void take_memory(TopWorkload *w, const World *world, WorkloadIx workload)
{
    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *process = &world->processes[i];

        if (process->workload.i != workload.i || process->gone)
            continue;
        w->moving_bytes += process->memory.to ? process->memory.todo_bytes : 0;
        for (uint32_t n = 0; process->node_bytes && n < world->topology->n_nodes; n++)
            w->bytes += process->node_bytes[n];
    }
}

static bool take_workloads(TopSnapshot *s, const World *world, const PolicySet *policies)
{
    s->workloads = calloc(MAX(world->n_workloads, 1U), sizeof(*s->workloads));
    for (size_t i = 0; s->workloads && i < world->n_workloads; i++) {
        const Workload *workload = &world->workloads[i];
        const Policy *policy = policies->policies[workload->policy];
        TopWorkload *w = &s->workloads[s->n_workloads++];

        (void)snprintf(w->name, sizeof(w->name), "%s", workload->name);
        (void)snprintf(w->mode, sizeof(w->mode), "%s", policy_mode_names[policy->mode]);
        w->observed = policy->act == POLICY_ACT_OBSERVE;
        w->paused = workload->paused;
        w->run_permille = workload->run_permille;
        w->wait_permille = workload->wait_permille;
        w->processes = workload->n_processes;
        w->tasks = workload->n_tasks;
        s->n_lends += workload->n_lends;
        s->n_recalls += workload->n_recalls;
        s->moved_bytes += workload->memory.moved_bytes;
        if (!take_homes(w, world, (WorkloadIx){(int32_t)i}))
            return false;
        take_memory(w, world, (WorkloadIx){(int32_t)i});
    }
    return s->workloads;
}

/* Lines of the plans that are actions, with the time in the record before them; the newest come first. */
static void take_actions(TopSnapshot *s)
{
    uint64_t start_usec = s->realtime_usec - s->uptime_usec, at_usec = s->realtime_usec;

    for (const char *line = s->plan, *end; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        if (sscanf(line, "plan tick=%*u now=%" SCNu64 "us", &at_usec) == 1 ||
            !memmem(line, (size_t)(end - line), " rule=", strlen(" rule=")))
            continue;
        memmove(s->moves[1], s->moves[0], sizeof(s->moves) - sizeof(s->moves[0]));
        (void)snprintf(s->moves[0], sizeof(s->moves[0]), "%7.1f s  %.*s",
                       (double)(at_usec - MIN(at_usec, start_usec)) / 1e6, (int)(end - line), line);
    }
}

TopSnapshot *top_snapshot_of_world(const World *world, const PolicySet *policies, const TopSnapshot *before,
                                   char *plan)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *s = calloc(1, sizeof(*s));

    if (!s) {
        free(plan);
        return NULL;
    }
    s->recorded = true;
    s->plan = plan;
    s->realtime_usec = world->now_usec;
    if (before) {
        s->uptime_usec = before->uptime_usec + world->now_usec - MIN(world->now_usec, before->realtime_usec);
        memcpy(s->moves, before->moves, sizeof(s->moves));
    }
    s->tick_usec = world->interval_usec;
    s->rehearsal = world->topology->rehearsal;
    s->n_leases = (uint32_t)world->n_leases;
    if (!take_nodes(s, world) || !take_cpus(s, world) || !take_workloads(s, world, policies))
        return NULL;
    take_actions(s);
    return TAKE_PTR(s);
}

/* From a file */

void top_recording_done(TopRecording *recording)
{
    for (size_t i = 0; i < recording->n; i++)
        (void)top_snapshot_free(recording->snapshots[i]);
    free(recording->snapshots);
    *recording = (TopRecording){0};
}

/* Puts one behind the other; both are taken over. NULL: memory is out. */
static char *join(char *a, char *b)
{
    char *both = a ? NULL : b;

    if (a && asprintf(&both, "%s%s", a, b) < 0)
        both = NULL;
    if (a)
        free(b);
    free(a);
    return both;
}

static int add(TopRecording *recording, TopSnapshot *snapshot)
{
    if (!snapshot)
        return -ENOMEM;
    if (!GROW(recording->snapshots, recording->capacity, recording->n + 1)) {
        (void)top_snapshot_free(snapshot);
        return -ENOMEM;
    }
    recording->snapshots[recording->n++] = snapshot;
    return 0;
}

static int read_all(TranscriptReader *reader, TopRecording *recording)
{
    CLEANUP_FREE char *plans = NULL;
    uint64_t due_usec = 0;
    int r;

    for (;;) {
        CLEANUP(world_free_p) World *world = NULL;
        char *plan = NULL;

        r = transcript_next_world(reader, &world, &plan);
        if (r <= 0)
            return r;
        plans = join(plans, plan);
        if (!plans)
            return -ENOMEM;
        if (world->now_usec < due_usec && reader->at < reader->end)
            continue;
        due_usec = world->now_usec + INTERVAL_USEC;
        r = add(recording,
                top_snapshot_of_world(world, reader->policies,
                                      recording->n > 0 ? recording->snapshots[recording->n - 1] : NULL,
                                      TAKE_PTR(plans)));
        if (r < 0)
            return r;
    }
}

CtlExit top_recording_read(const char *path, TopRecording *ret)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    CLEANUP(transcript_reader_done) TranscriptReader reader = {0};
    CLEANUP(top_recording_done) TopRecording recording = {0};
    CLEANUP_FREE char *text = NULL;
    size_t len = 0;
    int r = fd < 0 ? -errno : root_read_fd(fd, TRANSCRIPT_MAX, &text, &len);

    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "%s: %s", path, strerror(-r));
    reader = transcript_reader(text, len);
    r = read_all(&reader, &recording);
    if (r == -EINVAL)
        return ctl_fail(CTL_EXIT_FAILURE, "%s: %s", path, reader.error);
    if (r < 0)
        return ctl_fail_oom();
    if (recording.n == 0)
        return ctl_fail(CTL_EXIT_FAILURE, "%s: expected a record of at least one plan", path);
    *ret = recording;
    recording = (TopRecording){0};
    return CTL_EXIT_OK;
}
