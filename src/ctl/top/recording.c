/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A record holds the World of each plan, which is nearly all that the daemon reports. What it lacks, such as
 * the daemon's cost, is not shown. */

#include "ctl/top/recording.h"

#include "base/parse.h"
#include "base/scan.h"
#include "ctl/view.h"
#include "plan/would.h"

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
        if (cpu->state != TOP_CPU_ABSENT)
            s->nodes[cpu->node].busy_permille += MIN(world->cpus[i].busy_permille, 1000U);
        for (size_t k = 0; k < world->n_leases; k++)
            if (world->leases[k].cpu.i == (int32_t)i)
                cpu->state = TOP_CPU_LENT;
    }
    return s->cpus;
}

/* Leases and home nodes of its groups, the nodes in operating-system numbers. */
static bool take_homes(TopWorkload *w, const World *world, WorkloadIx workload)
{
    CLEANUP_BITMAP hwloc_bitmap_t numbers = hwloc_bitmap_alloc();
    CLEANUP_FREE char *text = NULL;

    for (size_t i = 0; numbers && i < world->n_groups; i++) {
        const Group *group = &world->groups[i];

        if (group->workload.i != workload.i || group->gone)
            continue;
        w->leases += group->n_leases;
        if (topology_add_node_numbers(world->topology, w->observed ? group->wish_nodes : group->home_nodes,
                                      numbers) < 0)
            return false;
    }
    text = numbers ? format_list(numbers, PARSE_CPU_MAX) : NULL;
    if (!text)
        return false;
    top_copy_set(w->nodes, sizeof(w->nodes), text);
    return true;
}

static void take_memory(TopWorkload *w, const World *world, WorkloadIx workload)
{
    uint64_t most = 0;

    for (uint32_t n = 0; n < world->topology->n_nodes; n++) {
        uint64_t here = 0;

        for (size_t i = 0; i < world->n_processes; i++)
            if (world->processes[i].workload.i == workload.i && world->processes[i].node_bytes)
                here += world->processes[i].node_bytes[n];
        most = MAX(most, here);
        w->bytes += here;
    }
    w->together_permille = w->bytes > 0 ? (uint32_t)((double)most * 1000 / (double)w->bytes) : 0;
    for (size_t i = 0; i < world->n_processes; i++)
        if (world->processes[i].workload.i == workload.i && world->processes[i].memory.to)
            w->moving_bytes += world->processes[i].memory.todo_bytes;
}

static bool take_workloads(TopSnapshot *s, const World *world, const PolicySet *policies,
                           const PlanLimits *limits)
{
    s->workloads = calloc(MAX(world->n_workloads, 1U), sizeof(*s->workloads));
    for (size_t i = 0; s->workloads && i < world->n_workloads; i++) {
        const Workload *workload = &world->workloads[i];
        const Policy *policy = policies->policies[workload->policy];
        TopWorkload *w = &s->workloads[s->n_workloads++];

        top_copy(w->name, sizeof(w->name), workload->name);
        top_copy(w->mode, sizeof(w->mode), policy_mode_names[policy->mode]);
        w->observed = would_observes(world, policies, limits, (WorkloadIx){(int32_t)i});
        w->paused = workload->paused;
        w->run_permille = workload->run_permille;
        w->wait_permille = workload->wait_permille;
        w->processes = workload->n_processes;
        w->tasks = workload->n_tasks;
        s->n_lends += workload->n_lends;
        s->moved_bytes += workload->memory.moved_bytes;
        if (!take_homes(w, world, (WorkloadIx){(int32_t)i}))
            return false;
        take_memory(w, world, (WorkloadIx){(int32_t)i});
    }
    return s->workloads;
}

/* The first line of a plan. */
static void take_head(TopSnapshot *s, const char *line, uint64_t *ret_usec)
{
    uint64_t tick, overloaded, idle;

    if (!scan_word(&line, "plan tick=") || !scan_u64(&line, &tick) || !scan_word(&line, " now=") ||
        !scan_u64(&line, ret_usec))
        return;
    line += strcspn(line, " \n");
    if ((scan_word(&line, " pressed=yes") || scan_word(&line, " pressed=no")) &&
        scan_word(&line, " overloaded=") && scan_u64(&line, &overloaded) && scan_word(&line, " idle=") &&
        scan_u64(&line, &idle)) {
        s->n_overloaded = (uint32_t)MIN(overloaded, (uint64_t)s->n_cpus);
        s->n_idle = (uint32_t)MIN(idle, (uint64_t)s->n_cpus);
    }
}

static void put_action(TopSnapshot *s, const char *line, size_t len, uint64_t at_usec)
{
    uint64_t ago = s->realtime_usec - MIN(at_usec, s->realtime_usec);
    char text[TOP_MOVE_SIZE * 2];

    memmove(s->moves[1], s->moves[0], sizeof(s->moves) - sizeof(s->moves[0]));
    (void)snprintf(text, sizeof(text), "%7.1f s  %.*s",
                   (double)(s->uptime_usec - MIN(ago, s->uptime_usec)) / 1e6, (int)MIN(len, sizeof(text)),
                   line);
    top_copy_line(s->moves[0], sizeof(s->moves[0]), text);
}

/* The actions in the plans, newest first, each after its time in the record. */
static void take_actions(TopSnapshot *s)
{
    uint64_t at_usec = s->realtime_usec;

    for (const char *line = s->plan, *end; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        take_head(s, line, &at_usec);
        if (memmem(line, (size_t)(end - line), " rule=", strlen(" rule=")))
            put_action(s, line, (size_t)(end - line), at_usec);
    }
}

TopSnapshot *top_snapshot_of_world(const World *world, const PolicySet *policies, const PlanLimits *limits,
                                   const TopSnapshot *before, char *plan)
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
    s->rehearsal = world->topology->rehearsal;
    s->n_leases = (uint32_t)world->n_leases;
    if (!take_nodes(s, world) || !take_cpus(s, world) || !take_workloads(s, world, policies, limits))
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

static int add(TopRecording *recording, TopSnapshot *snapshot)
{
    int r = snapshot ? APPEND(recording->snapshots, recording->capacity, recording->n, snapshot) : -ENOMEM;

    if (r < 0)
        (void)top_snapshot_free(snapshot);
    return r;
}

static int read_all(TranscriptReader *reader, TopRecording *recording)
{
    CLEANUP(view_text_done) ViewText plans = {0}; /* concatenated */
    uint64_t last_usec = 0;
    PlanLimits limits;

    for (;;) {
        const TopSnapshot *before = recording->n > 0 ? recording->snapshots[recording->n - 1] : NULL;
        CLEANUP(world_free_p) World *world = NULL;
        CLEANUP_FREE char *plan = NULL;
        int r = transcript_next_world(reader, &world, &limits, &plan);

        if (r <= 0)
            return r;
        view_text_add(&plans, "%s", plan);
        if (plans.failed)
            return -ENOMEM;
        /* If the clock goes back, another record begins. */
        if (before && world->now_usec >= last_usec && world->now_usec - last_usec < INTERVAL_USEC &&
            reader->at < reader->end)
            continue;
        last_usec = world->now_usec;
        r = add(recording, top_snapshot_of_world(world, reader->policies, &limits, before, plans.text));
        plans = (ViewText){0};
        if (r < 0)
            return r;
    }
}

CtlExit top_recording_read(const char *path, TopRecording *ret)
{
    CLEANUP(transcript_reader_done) TranscriptReader reader = {0};
    CLEANUP(top_recording_done) TopRecording recording = {0};
    CLEANUP_FREE char *text = NULL;
    size_t len = 0;
    CtlExit code = ctl_read_file(path, TRANSCRIPT_MAX, &text, &len);
    int r;

    if (code != CTL_EXIT_OK)
        return code;
    reader = transcript_reader(text, len);
    r = read_all(&reader, &recording);
    if (r == -EINVAL)
        return ctl_fail(CTL_EXIT_FAILURE, "%s: %s", path, reader.error);
    if (r < 0)
        return ctl_fail_oom();
    if (recording.n == 0)
        return ctl_fail(CTL_EXIT_FAILURE, "%s: expected a recording of at least one plan", path);
    *ret = recording;
    recording = (TopRecording){0};
    return CTL_EXIT_OK;
}
