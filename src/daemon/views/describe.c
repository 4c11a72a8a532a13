/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The order of the keys is the order in numaplace-json(5), and so the order in the JSON. */

#include "daemon/views/describe.h"

#include "base/parse.h"
#include "daemon/views/objects.h"
#include "numaplace/bus.h"

static uint64_t since(uint64_t now_usec, uint64_t then_usec)
{
    return then_usec && now_usec > then_usec ? now_usec - then_usec : 0;
}

static uint64_t until(uint64_t now_usec, uint64_t then_usec)
{
    return then_usec > now_usec ? then_usec - now_usec : 0;
}

static void topology_nodes(Dict *dict, const Topology *topology)
{
    dict_list_begin(dict, "nodes");
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        const TopologyNode *node = &topology->nodes[i];

        dict_begin(dict);
        dict_u32(dict, "node", node->os_index);
        dict_cpus(dict, "cpus", node->cpus);
        dict_u32(dict, "n_cpus", node->n_cpus);
        dict_u64(dict, "memory_bytes", node->memory_bytes);
        dict_u64(dict, "bandwidth_bytes_per_sec", node->bandwidth_mb * 1000000ULL);
        dict_end(dict);
    }
    dict_list_end(dict, "nodes");
}

static void topology_llcs(Dict *dict, const Topology *topology)
{
    dict_list_begin(dict, "llcs");
    for (uint32_t i = 0; i < topology->n_llcs; i++) {
        dict_begin(dict);
        dict_cpus(dict, "cpus", topology->llcs[i].cpus);
        dict_nodes(dict, "nodes", topology, topology->llcs[i].nodes);
        dict_end(dict);
    }
    dict_list_end(dict, "llcs");
}

static void topology_domains(Dict *dict, const Topology *topology)
{
    dict_list_begin(dict, "domains");
    for (uint32_t i = 0; i < topology->n_domains; i++) {
        const TopologyDomain *domain = &topology->domains[i];

        dict_begin(dict);
        dict_bool(dict, "numa", domain->numa);
        dict_u32(dict, "distance", domain->distance);
        dict_u32(dict, "span", domain->span);
        dict_u32(dict, "imb_numa_nr", domain->imb_numa_nr);
        dict_end(dict);
    }
    dict_list_end(dict, "domains");
}

void describe_topology(Dict *dict, Manager *manager)
{
    const Topology *topology = manager->world->topology;
    CLEANUP_FREE char *text = topology_format(topology);

    dict_check(dict, text ? 0 : -ENOMEM);
    dict_begin(dict);
    dict_string(dict, "origin", topology_origin_names[topology->origin]);
    dict_string(dict, "source", topology->source);
    dict_u32(dict, "rehearsal", topology->rehearsal);
    dict_bool(dict, "restricted", topology->restricted);
    dict_bool(dict, "distances_known", topology->distances_known);
    dict_cpus(dict, "cpus", topology->all_cpus);
    dict_u32(dict, "n_cpus", topology->n_cpus);
    dict_u32(dict, "n_nodes", topology->n_nodes);
    dict_u32(dict, "n_llcs", topology->n_llcs);
    dict_u32(dict, "n_cores", topology->n_cores);
    topology_nodes(dict, topology);
    dict_numbers(dict, "distances", topology->distances, (size_t)topology->n_nodes * topology->n_nodes);
    topology_llcs(dict, topology);
    topology_domains(dict, topology);
    dict_text(dict, "text", text);
    dict_end(dict);
}

static const Lease *lease_of_cpu(const World *world, int32_t cpu)
{
    for (size_t i = 0; i < world->n_leases; i++)
        if (world->leases[i].cpu.i == cpu)
            return &world->leases[i];
    return NULL;
}

void describe_cpus(Dict *dict, Manager *manager)
{
    const World *world = manager->world;

    dict_list_begin(dict, NULL);
    for (uint32_t i = 0; i < world->topology->cpu_limit; i++) {
        const TopologyCpu *entry = topology_cpu(world->topology, (CpuIx){(int32_t)i});
        const CpuLoad *load = &world->cpus[i];
        const Lease *lease = entry ? lease_of_cpu(world, (int32_t)i) : NULL;

        if (!entry)
            continue;
        dict_begin(dict);
        dict_u32(dict, "cpu", i);
        dict_node_of(dict, "node", world->topology, (CpuIx){(int32_t)i});
        dict_u32(dict, "llc", (uint32_t)entry->llc.i);
        dict_u32(dict, "core", (uint32_t)entry->core.i);
        dict_bool(dict, "online", load->online);
        dict_bool(dict, "usable", load->usable);
        dict_u32(dict, "busy_permille", load->busy_permille);
        dict_u32(dict, "wait_permille", load->wait_permille);
        dict_bool(dict, "wait_known", load->wait_known);
        dict_u64(dict, "idle_usec", since(world->now_usec, load->idle_since_usec));
        dict_i32(dict, "lent_pid", lease ? lease->task.pid : 0);
        dict_i32(dict, "lent_tid", lease ? lease->task.tid : 0);
        dict_u64(dict, "cooldown_left_usec", until(world->now_usec, load->cooldown_until_usec));
        dict_end(dict);
    }
    dict_list_end(dict, NULL);
}

void describe_cpu_loads(Dict *dict, Manager *manager)
{
    enum {
        CPU,
        NODE,
        LLC,
        ONLINE,
        IDLE,
        LENT,
        BUSY,
        WAIT,
        N_COLUMNS
    };
    const World *world = manager->world;
    const size_t limit = world->topology->cpu_limit;
    CLEANUP_FREE uint32_t *numbers = calloc(MAX(limit, (size_t)1) * N_COLUMNS, sizeof(*numbers));
    size_t n = 0;

    dict_check(dict, numbers ? 0 : -ENOMEM);
    if (!numbers)
        return;
    for (uint32_t i = 0; i < limit; i++) {
        const TopologyCpu *entry = topology_cpu(world->topology, (CpuIx){(int32_t)i});
        const CpuLoad *load = &world->cpus[i];
        uint32_t *at = numbers + n;

        if (!entry)
            continue;
        at[CPU * limit] = i;
        at[NODE * limit] = entry->node.i >= 0 ? world->topology->nodes[entry->node.i].os_index : UINT32_MAX;
        at[LLC * limit] = (uint32_t)entry->llc.i;
        at[ONLINE * limit] = load->online;
        at[IDLE * limit] = since(world->now_usec, load->idle_since_usec) > 0;
        at[LENT * limit] = lease_of_cpu(world, (int32_t)i) != NULL;
        at[BUSY * limit] = load->busy_permille;
        at[WAIT * limit] = load->wait_permille;
        n++;
    }
    dict_begin(dict);
    dict_numbers(dict, "cpu", numbers + CPU * limit, n);
    dict_numbers(dict, "node", numbers + NODE * limit, n);
    dict_numbers(dict, "llc", numbers + LLC * limit, n);
    dict_numbers(dict, "online", numbers + ONLINE * limit, n);
    dict_numbers(dict, "idle", numbers + IDLE * limit, n);
    dict_numbers(dict, "lent", numbers + LENT * limit, n);
    dict_numbers(dict, "busy_permille", numbers + BUSY * limit, n);
    dict_numbers(dict, "wait_permille", numbers + WAIT * limit, n);
    dict_end(dict);
}

/* The homes of all groups of a workload together and their number of leases; the number of groups, under another key
 * where the list of them has this one. */
static void workload_groups(Dict *dict, const Manager *manager, WorkloadIx workload, bool with_list)
{
    CLEANUP_BITMAP hwloc_bitmap_t home = manager_object_homes(manager, workload, NULL, false);
    CLEANUP_BITMAP hwloc_bitmap_t nodes = manager_object_homes(manager, workload, NULL, true);
    uint32_t n_groups = 0, n_leases = 0;

    dict_check(dict, home && nodes ? 0 : -ENOMEM);
    for (size_t i = 0; i < manager->world->n_groups; i++) {
        const Group *group = &manager->world->groups[i];

        if (group->workload.i != workload.i || group->gone)
            continue;
        n_groups++;
        n_leases += group->n_leases;
    }
    if (with_list)
        dict_u32(dict, "n_groups", n_groups);
    else
        dict_u32(dict, "groups", n_groups);
    dict_u32(dict, "leases", n_leases);
    dict_cpus(dict, "home", home);
    dict_cpus(dict, "home_nodes", nodes);
    describe_would_of_workload(dict, manager, workload);
    describe_memory(dict, manager, workload, GROUP_NONE);
}

static void workload_keys(Dict *dict, const Manager *manager, const Workload *workload)
{
    const Policy *policy = manager->policies->policies[workload->policy];

    dict_string(dict, "name", workload->name);
    dict_string(dict, "description", policy->description);
    dict_string(dict, "path", policy->n_files > 0 ? policy->files[0] : NULL);
    dict_string(dict, "mode", policy_mode_names[policy->mode]);
    dict_string(dict, "act", policy_act_names[policy->act]);
    dict_string(dict, "group_by", policy_group_by_names[policy->group_by]);
    dict_bool(dict, "steal", policy->steal);
    dict_string(dict, "scope", policy_scope_names[policy->scope]);
    dict_bool(dict, "paused", workload->paused);
    dict_u32(dict, "processes", workload->n_processes);
    dict_u32(dict, "tasks", workload->n_tasks);
    dict_u32(dict, "run_permille", workload->run_permille);
    dict_u32(dict, "wait_permille", workload->wait_permille);
    dict_u64(dict, "lends", workload->n_lends);
    dict_u64(dict, "recalls", workload->n_recalls);
}

void describe_workloads(Dict *dict, Manager *manager)
{
    const World *world = manager->world;

    dict_list_begin(dict, NULL);
    for (size_t i = 0; i < world->n_workloads; i++) {
        dict_begin(dict);
        workload_keys(dict, manager, &world->workloads[i]);
        workload_groups(dict, manager, (WorkloadIx){(int32_t)i}, false);
        dict_end(dict);
    }
    dict_list_end(dict, NULL);
}

static void list_groups(Dict *dict, const Manager *manager, const char *key, WorkloadIx workload)
{
    const World *world = manager->world;

    dict_list_begin(dict, key);
    for (size_t i = 0, n = 0; i < world->n_groups && n < NUMAPLACE_BUS_PAGE_MAX; i++) {
        const Group *group = &world->groups[i];

        if (group->workload.i != workload.i || group->gone)
            continue;
        n++;
        dict_begin(dict);
        dict_u64(dict, "id", group->id);
        dict_string(dict, "key", group->key);
        dict_cpus(dict, "home", group->home);
        dict_nodes(dict, "home_nodes", world->topology, group->home_nodes);
        describe_would_of_group(dict, manager, group);
        describe_gain(dict, manager, group->id);
        describe_memory(dict, manager, workload, (GroupIx){(int32_t)i});
        dict_u32(dict, "tasks", group->n_tasks);
        dict_u32(dict, "run_permille", group->run_permille);
        dict_u32(dict, "wait_permille", group->wait_permille);
        dict_u32(dict, "leases", group->n_leases);
        dict_u64(dict, "age_usec", since(world->now_usec, group->first_seen_usec));
        dict_u64(dict, "home_age_usec", group->home ? since(world->now_usec, group->last_home_usec) : 0);
        dict_bool(dict, "roams", group->roams);
        describe_means(dict, manager, group->id);
        dict_u32(dict, "demand_permille", group->demand_permille);
        dict_u64(dict, "frozen_usec", until(world->now_usec, group->frozen_until_usec));
        dict_bool(dict, "converged", group->converged);
        dict_u32(dict, "vetoes", group->n_vetoes);
        dict_u32(dict, "backoff_ticks", group->backoff_ticks);
        dict_u64(dict, "backoff_left_ticks", until(world->tick, group->backoff_until_tick));
        dict_end(dict);
    }
    dict_list_end(dict, key);
}

void describe_leases(Dict *dict, Manager *manager, const char *key, WorkloadIx workload, pid_t pid)
{
    World *world = manager->world;

    dict_list_begin(dict, key);
    for (size_t i = 0; i < world->n_leases; i++) {
        const Lease *lease = &world->leases[i];
        const Group *group = world_group_by_id(world, lease->group_id);
        const Task *task = world_task(world, lease->task);

        if (!group || group->workload.i != workload.i || (pid > 0 && lease->task.pid != pid))
            continue;
        dict_begin(dict);
        dict_i32(dict, "pid", lease->task.pid);
        dict_i32(dict, "tid", lease->task.tid);
        dict_string(dict, "comm", task ? task->comm : NULL);
        dict_u32(dict, "cpu", (uint32_t)lease->cpu.i);
        dict_node_of(dict, "node", world->topology, lease->cpu);
        dict_bool(dict, "cross_node", lease->cross_node);
        dict_u64(dict, "group", lease->group_id);
        dict_u64(dict, "age_usec", since(world->now_usec, lease->since_usec));
        dict_u64(dict, "left_usec", until(world->now_usec, lease->until_usec));
        dict_u64(dict, "since_tick", lease->since_tick);
        dict_end(dict);
    }
    dict_list_end(dict, key);
}

void describe_workload_keys(Dict *dict, Manager *manager, const Workload *workload)
{
    WorkloadIx ix = world_workload_index(manager->world, workload);

    workload_keys(dict, manager, workload);
    workload_groups(dict, manager, ix, true);
    describe_evidence_of_workload(dict, manager, ix);
    list_groups(dict, manager, "groups", ix);
    describe_leases(dict, manager, "lent", ix, 0);
}

void describe_task(Dict *dict, const Manager *manager, const Task *task)
{
    const World *world = manager->world;
    const Process *process = &world->processes[task->process.i];
    const Lease *lease = task->lease >= 0 ? &world->leases[task->lease] : NULL;

    dict_begin(dict);
    dict_i32(dict, "pid", process->pid);
    dict_i32(dict, "tid", task->tid);
    dict_string(dict, "comm", task->comm);
    dict_string(dict, "process", process->comm);
    dict_u64(dict, "start_ticks", task->start_ticks);
    dict_u32(dict, "uid", process->uid);
    dict_string(dict, "unit", process->unit);
    dict_string(dict, "cgroup", process->cgroup);
    dict_string(dict, "class", world_class_names[task->task_class]);
    dict_string(dict, "hands", world_hands_names[task->hands]);
    dict_i32(dict, "last_cpu", task->last_cpu.i);
    dict_node_of(dict, "node", world->topology, task->last_cpu);
    dict_i32(dict, "memory_node", describe_memory_node(world, process));
    describe_use(dict, manager, task);
    dict_i32(dict, "home_node",
             task->home_node.i >= 0 ? (int32_t)world->topology->nodes[task->home_node.i].os_index : -1);
    dict_u32(dict, "run_permille", task->run_permille);
    dict_u32(dict, "wait_permille", task->wait_permille);
    dict_u32(dict, "run_mean_permille", task->run_ewma_permille);
    dict_u32(dict, "wait_mean_permille", task->wait_ewma_permille);
    dict_cpus(dict, "allowed", task->allowed);
    dict_cpus(dict, "original", task->original);
    dict_i32(dict, "lent_cpu", lease ? lease->cpu.i : -1);
    dict_u64(dict, "group", process->group.i >= 0 ? world->groups[process->group.i].id : 0);
    dict_string(dict, "workload",
                process->workload.i >= 0 ? world->workloads[process->workload.i].name : NULL);
    dict_u64(dict, "last_move_usec", task->last_move_usec);
    dict_end(dict);
}

void describe_tasks(Dict *dict, Manager *manager, const Workload *workload, pid_t pid, pid_t tid,
                    uint32_t max)
{
    const World *world = manager->world;
    WorkloadIx ix = world_workload_index(manager->world, workload);
    uint32_t n = 0;

    dict_list_begin(dict, NULL);
    for (size_t i = 0; i < world->n_tasks && n < max; i++) {
        const Task *task = &world->tasks[i];
        const Process *process = &world->processes[task->process.i];

        if (process->workload.i != ix.i || task->gone || process->pid < pid ||
            (process->pid == pid && task->tid <= tid))
            continue;
        describe_task(dict, manager, task);
        n++;
    }
    dict_list_end(dict, NULL);
}
