/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The state of the whole program in one dictionary: settings, findings, actions and costs. One function for
 * each part, in the order of numaplace-json(5). */

#include "daemon/views/describe.h"

#include "base/time.h"

#include <stdio.h>

static const char *const cgroup_names[] = {"none", "v1", "hybrid", "v2"};
static_assert(ARRAY_SIZE(cgroup_names) == PROBE_CGROUP_MAX, "a cgroup layout has no name");

/* Resident memory of this process: the second number of statm, in pages. 0 if it cannot be read. */
static uint64_t rss_bytes(void)
{
    unsigned long long size, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (!f)
        return 0;
    if (fscanf(f, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    (void)fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint32_t search_ppm(const ManagerStatistics *statistics)
{
    uint64_t plan_usec = statistics->plan_cpu_nsec / NSEC_PER_USEC;

    return statistics->managed_cpu_usec
               ? (uint32_t)MIN(plan_usec * 1000000 / statistics->managed_cpu_usec, (uint64_t)UINT32_MAX)
               : 0;
}

static void status_pacing(Dict *dict, const Manager *manager)
{
    const World *world = manager->world;
    uint64_t now = time_now_usec();

    dict_u64(dict, "uptime_usec", now - manager->started_usec);
    dict_u64(dict, "tick", world->tick);
    dict_u64(dict, "time_usec", now);
    dict_bool(dict, "watches", manager->pace.settings.watches);
    dict_bool(dict, "pressed", manager->plan.pressed);
    dict_bool(dict, "partial", world->partial);
    dict_u64(dict, "fast_tick_usec", pace_fast_usec(&manager->pace));
    dict_u64(dict, "slow_tick_usec", pace_slow_usec(&manager->pace));
    dict_u64(dict, "tick_lately_usec", pace_lately_usec(&manager->pace));
    dict_u64(dict, "fast_tick_setting_usec", manager->config->fast_tick_usec);
    dict_u64(dict, "slow_tick_setting_usec", manager->config->slow_tick_usec);
    dict_u32(dict, "stretch_permille", manager->pace.stretch_permille);
    dict_u64(dict, "tick_late_usec", manager->statistics.tick_late_usec);
    dict_u64(dict, "tick_late_max_usec", manager->statistics.tick_late_max_usec);
    dict_u64(dict, "tick_cpu_usec", manager->statistics.tick_cpu_usec);
    dict_u64(dict, "tick_cpu_max_usec", manager->statistics.tick_cpu_max_usec);
    dict_bool(dict, "unfinished", manager->unfinished || probe_unfinished(manager->probe));
}

/* Counts threads of managed processes that are left as somebody else pinned them. */
static uint32_t count_pinned(const World *world)
{
    uint32_t n = 0;

    for (size_t i = 0; i < world->n_tasks; i++) {
        const Task *task = &world->tasks[i];

        n += !task->gone && (task->hands == TASK_HANDS_FOREIGN || task->hands == TASK_HANDS_REPINNED);
    }
    return n;
}

static void status_counts(Dict *dict, const Manager *manager)
{
    const World *world = manager->world;

    dict_u32(dict, "policies", (uint32_t)manager->policies->n_policies);
    dict_u32(dict, "workloads", (uint32_t)world->n_workloads);
    dict_u32(dict, "groups", (uint32_t)world->n_groups);
    dict_u32(dict, "processes", (uint32_t)world->n_processes);
    dict_u32(dict, "tasks", (uint32_t)world->n_tasks);
    dict_u32(dict, "pinned", count_pinned(world));
    dict_u32(dict, "leases", (uint32_t)world->n_leases);
    dict_u32(dict, "assigned", (uint32_t)assignments_count(manager->assigned));
    dict_u64(dict, "assigned_refused", assignments_refused(manager->assigned));
    dict_u32(dict, "overloaded", manager->plan.n_overloaded);
    dict_u32(dict, "idle", manager->plan.n_idle);
}

static void status_features(Dict *dict, const ProbeFeatures *features)
{
    dict_bool(dict, "schedstat", features->schedstat);
    dict_u32(dict, "schedstat_version", features->schedstat_version);
    dict_bool(dict, "task_schedstat", features->task_schedstat);
    dict_bool(dict, "psi", features->psi);
    dict_bool(dict, "psi_trigger", features->psi_trigger);
    dict_bool(dict, "numa", features->numa);
    dict_string(dict, "cgroup", cgroup_names[features->cgroup]);
    dict_bool(dict, "cpuset_v1", features->cpuset_v1 != CPUSETS_V1_NONE);
}

static void status_cost(Dict *dict, const Manager *manager)
{
    const ManagerStatistics *statistics = &manager->statistics;

    dict_u64(dict, "cpu_usec", time_thread_cpu_nsec() / NSEC_PER_USEC);
    dict_u64(dict, "probe_cpu_usec", statistics->probe_cpu_nsec / NSEC_PER_USEC);
    dict_u64(dict, "plan_cpu_usec", statistics->plan_cpu_nsec / NSEC_PER_USEC);
    dict_u64(dict, "act_cpu_usec", statistics->act_cpu_nsec / NSEC_PER_USEC);
    dict_u64(dict, "managed_cpu_usec", statistics->managed_cpu_usec);
    dict_u32(dict, "cpu_permille", pace_cost_permille(&manager->pace));
    dict_u32(dict, "max_cpu_permille", manager->pace.settings.max_cpu_permille);
    dict_u32(dict, "search_ppm", search_ppm(statistics));
    dict_u64(dict, "action_cost_usec", act_cost_usec(manager->act));
    dict_u64(dict, "rss_bytes", rss_bytes());
}

static void status_actions(Dict *dict, const Manager *manager)
{
    const ManagerStatistics *statistics = &manager->statistics;
    const char *outcomes[PLAN_OUTCOME_MAX], *reasons[PLAN_REASON_MAX];

    for (int i = 0; i < PLAN_OUTCOME_MAX; i++)
        outcomes[i] = plan_outcome_name((PlanOutcome)i);
    for (int i = 0; i < PLAN_REASON_MAX; i++)
        reasons[i] = plan_reason_name((PlanReason)i);
    dict_u64(dict, "lends", statistics->n_done[PLAN_KIND_LEND]);
    dict_u64(dict, "recalls", statistics->n_done[PLAN_KIND_RECALL]);
    dict_u64(dict, "pushes", statistics->n_done[PLAN_KIND_PUSH]);
    dict_u64(dict, "homes", statistics->n_done[PLAN_KIND_SET_HOME]);
    dict_u64(dict, "releases", statistics->n_done[PLAN_KIND_RELEASE]);
    dict_u64(dict, "memory_orders", statistics->n_done[PLAN_KIND_MOVE_PAGES]);
    dict_counters(dict, "outcomes", statistics->n_outcome, PLAN_OUTCOME_MAX, outcomes);
    dict_counters(dict, "refused", statistics->n_refused, PLAN_REASON_MAX, reasons);
    dict_u64(dict, "slices", act_statistics(manager->act)->n_slices);
    dict_u64(dict, "slice_threads_max", act_statistics(manager->act)->slice_threads_max);
    dict_u64(dict, "births_unchecked", act_statistics(manager->act)->n_unchecked);
    dict_u64(dict, "moves", moves_last(manager->moves));
    dict_u64(dict, "reloads", statistics->n_reloads);
    dict_u64(dict, "reload_failures", statistics->n_reload_failures);
    dict_u64(dict, "topology_reloads", statistics->n_topology_reloads);
    dict_u64(dict, "foreign_restores", statistics->n_foreign_restores + act_statistics(manager->act)->n_left);
    dict_u64(dict, "log_suppressed", manager->log->suppressed);
}

static void status_probe(Dict *dict, const Probe *probe)
{
    const ProbeStatistics *statistics = probe_statistics(probe);

    dict_u64(dict, "reads", statistics->n_reads);
    dict_u64(dict, "gone", statistics->n_gone);
    dict_u64(dict, "unparsable", statistics->n_unparsable);
    dict_u64(dict, "reads_put_off", statistics->n_put_off);
    dict_u64(dict, "reads_hanging", probe_n_hanging(probe));
    dict_u64(dict, "unreadable", statistics->n_unreadable);
    dict_u64(dict, "over_limit", statistics->n_over_limit);
    dict_u64(dict, "kept_open", statistics->n_kept_open);
    dict_u64(dict, "quiet", statistics->n_quiet);
    dict_u64(dict, "memory_reads", statistics->n_memory_reads);
    dict_u64(dict, "memory_cpu_usec", statistics->memory_cpu_nsec / NSEC_PER_USEC);
}

void describe_status(Dict *dict, Manager *manager)
{
    const Topology *topology = manager->world->topology;
    const BusServerStatistics *bus = manager->bus ? bus_server_statistics(manager->bus) : NULL;

    dict_begin(dict);
    dict_string(dict, "version", NUMAPLACE_VERSION);
    dict_i32(dict, "pid", getpid());
    dict_string(dict, "state", manager->paused ? "paused" : "running");
    dict_string(dict, "mode", manager_mode_name(manager->mode));
    dict_u32(dict, "rehearsal", topology->rehearsal);
    dict_string(dict, "origin", topology_origin_names[topology->origin]);
    dict_u32(dict, "nodes", topology->n_nodes);
    dict_u32(dict, "cpus", topology->n_cpus);
    status_pacing(dict, manager);
    status_counts(dict, manager);
    status_features(dict, probe_features(manager->probe));
    describe_host(dict, manager);
    status_cost(dict, manager);
    status_actions(dict, manager);
    dict_bool(dict, "system_bus", manager->system_bus && bus_system_ready(manager->system_bus));
    dict_u32(dict, "clients", bus ? bus->n_clients : 0);
    dict_u32(dict, "clients_max", bus ? bus->clients_max : 0);
    dict_u64(dict, "clients_refused", bus ? bus->n_refused : 0);
    dict_u64(dict, "clients_disconnected", bus ? bus->n_disconnected : 0);
    status_probe(dict, manager->probe);
    describe_free_memory(dict, manager->world);
    describe_mover(dict, manager);
    describe_evidence(dict, manager);
    describe_neighbours(dict, manager);
    dict_u32(dict, "left_threads", (uint32_t)MIN(manager->leftover.n_threads, (size_t)UINT32_MAX));
    dict_u32(dict, "left_cgroups", (uint32_t)MIN(manager->leftover.n_cgroups, (size_t)UINT32_MAX));
    dict_bool(dict, "left_kept", manager->leftover.kept);
    dict_string(dict, "config", manager->config->path);
    dict_string(dict, "runtime_directory", manager->options.runtime_directory);
    dict_strings(dict, "policy_directories", manager->options.policy_directories);
    dict_end(dict);
}
