/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The arrays of a World. They are kept sorted, so a look-up is a binary search and the text form needs no sorting.
 *
 * Why not hash tables: every tick a plan walks all tasks of a process, then those of the next; and a hash handle alone
 * (56 bytes) would be much of what a thread may cost. The price is a memmove for an entry that arrives out of order.
 * Sensing meets processes and threads in ascending order, so nearly every entry is appended. */

#include "world/world.h"

#include "world/load.h"

#include <string.h>

/* With ten thousand threads each must take far less than 400 bytes, everything included. */
static_assert(sizeof(Task) <= 160, "Task has grown");

int world_new(Topology *topology, World **ret)
{
    CLEANUP(world_free_p) World *world = calloc(1, sizeof(*world));

    if (!world)
        return -ENOMEM;
    world->pool = intern_pool_new();
    world->cpus = calloc(MAX(topology->cpu_limit, 1U), sizeof(*world->cpus));
    world->nodes = calloc(MAX(topology->n_nodes, 1U), sizeof(*world->nodes));
    if (!world->pool || !world->cpus || !world->nodes)
        return -ENOMEM;

    world->topology = topology_ref(topology);
    world->next_group_id = 1;
    world->idle_permille = LOAD_IDLE_PERMILLE;
    *ret = TAKE_PTR(world);
    return 0;
}

World *world_free(World *world)
{
    if (!world)
        return NULL;
    for (size_t i = 0; i < world->n_processes; i++)
        free(world->processes[i].node_bytes);
    for (size_t i = 0; i < world->n_tasks; i++)
        free(world->tasks[i].use);
    free(world->cpus);
    free(world->nodes);
    free(world->workloads);
    free(world->groups);
    free(world->processes);
    free(world->tasks);
    free(world->leases);
    intern_pool_free(world->pool);
    topology_unref(world->topology);
    free(world);
    return NULL;
}

/* Searches: the index of the first entry not below the key. New entries mostly belong at the end. Looking
 * there first makes adding in order linear. */

static size_t process_place(const World *world, pid_t pid)
{
    size_t n = world->n_processes;

    if (n > 0 && world->processes[n - 1].pid < pid)
        return n;
    return LOWER_BOUND(i, n, world->processes[i].pid < pid);
}

/* Processes ascend by pid, so the index of its process orders a task as well as its pid would. */
static bool task_below(const Task *task, ProcessIx process, pid_t tid)
{
    return task->process.i != process.i ? task->process.i < process.i : task->tid < tid;
}

static size_t task_place(const World *world, ProcessIx process, pid_t tid)
{
    size_t n = world->n_tasks;

    if (n > 0 && task_below(&world->tasks[n - 1], process, tid))
        return n;
    return LOWER_BOUND(i, n, task_below(&world->tasks[i], process, tid));
}

static size_t lease_place(const World *world, CpuIx cpu)
{
    size_t i = world->n_leases;

    /* At most one per CPU, and few: a linear search is enough. */
    for (; i > 0 && world->leases[i - 1].cpu.i >= cpu.i; i--)
        ;
    return i;
}

int world_add_process(World *world, const Process *value)
{
    size_t at = process_place(world, value->pid);
    bool last = at == world->n_processes;

    if (!last && world->processes[at].pid == value->pid)
        return -EEXIST;
    if (!INSERT(world->processes, world->processes_capacity, world->n_processes, at))
        return -ENOMEM;

    /* The tasks of later processes are the tail of the array. */
    if (!last)
        for (size_t i = task_place(world, (ProcessIx){(int32_t)at}, 0); i < world->n_tasks; i++)
            world->tasks[i].process.i++;

    world->processes[at] = *value;
    world->processes[at].node_bytes = NULL;
    world->processes[at].node_bytes_usec = 0;
    world->processes[at].bound_bytes = world->processes[at].grown_bytes = 0;
    return (int)at;
}

uint64_t world_sum_nodes(const World *world, const uint64_t *amounts)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; amounts && i < world->topology->n_nodes; i++)
        sum += amounts[i];
    return sum;
}

void world_forget_counts(Process *process)
{
    process->stall_usec = process->stall_due_usec = 0;
    process->traffic_mb = process->stall_permille = process->ipc_permille = 0;
    process->gather = (MemoryGather){0};
}

int world_set_process_memory(const World *world, Process *process, const uint64_t *bytes,
                             uint64_t measured_usec)
{
    size_t n = world->topology->n_nodes;
    uint64_t before = UINT64_MAX, after;

    assert(!bytes || measured_usec > 0);

    if (!bytes) {
        process->bound_bytes = process->grown_bytes = 0;
        free(process->node_bytes);
        process->node_bytes = NULL;
        process->node_bytes_usec = 0;
        return 0;
    }
    if (!process->node_bytes) {
        process->node_bytes = calloc(MAX(n, (size_t)1), sizeof(*process->node_bytes));
        if (!process->node_bytes)
            return -ENOMEM;
    } else {
        before = world_sum_nodes(world, process->node_bytes);
    }
    for (size_t i = 0; i < n; i++)
        process->node_bytes[i] = MIN(bytes[i], WORLD_MEMORY_MAX);
    process->node_bytes_usec = measured_usec;
    after = world_sum_nodes(world, process->node_bytes);
    process->grown_bytes = after - MIN(before, after);
    return 0;
}

int world_add_task(World *world, const Task *value)
{
    size_t at = task_place(world, value->process, value->tid);

    assert(value->process.i >= 0 && (size_t)value->process.i < world->n_processes);

    if (at < world->n_tasks && world->tasks[at].process.i == value->process.i &&
        world->tasks[at].tid == value->tid)
        return -EEXIST;
    if (!INSERT(world->tasks, world->tasks_capacity, world->n_tasks, at))
        return -ENOMEM;

    world->tasks[at] = *value;
    world->tasks[at].lease = -1;
    world->tasks[at].home_node = NODE_NONE;
    world->tasks[at].use = NULL;
    return (int)at;
}

int world_set_task_use(const World *world, Task *task, const uint64_t *pages, uint32_t private_permille,
                       TaskKey buddy, uint64_t measured_usec)
{
    size_t n = world->topology->n_nodes;

    assert(!pages || (measured_usec > 0 && private_permille <= 1000));

    if (!pages) {
        free(task->use);
        task->use = NULL;
        return 0;
    }
    if (!task->use) {
        task->use = malloc(sizeof(*task->use) + n * sizeof(task->use->pages[0]));
        if (!task->use)
            return -ENOMEM;
        task->use->stay = (TaskStay){.node = NODE_NONE, .usec = measured_usec};
    }
    task->use->measured_usec = measured_usec;
    task->use->private_permille = (uint16_t)private_permille;
    task->use->buddy = buddy;
    for (size_t i = 0; i < n; i++)
        task->use->pages[i] = MIN(pages[i], WORLD_PAGES_MAX);
    return 0;
}

int world_add_group(World *world, WorkloadIx workload, const char *key)
{
    const char *interned = intern_string(world->pool, key);

    assert(workload.i >= 0 && (size_t)workload.i < world->n_workloads);

    if (!interned || !GROW(world->groups, world->groups_capacity, world->n_groups + 1))
        return -ENOMEM;
    world->groups[world->n_groups] = (Group){
        .id = world->next_group_id++,
        .workload = workload,
        .key = interned,
        .first_seen_usec = world->now_usec,
    };
    return (int)world->n_groups++;
}

int world_add_workload(World *world, const char *name, uint32_t policy)
{
    const char *interned = intern_string(world->pool, name);

    if (!interned)
        return -ENOMEM;
    if (world_workload_by_name(world, interned))
        return -EEXIST;
    if (!GROW(world->workloads, world->workloads_capacity, world->n_workloads + 1))
        return -ENOMEM;
    world->workloads[world->n_workloads] = (Workload){.name = interned, .policy = policy};
    return (int)world->n_workloads++;
}

/* Updates the lease indices of the borrowers from index `from` on. */
static void renumber_leases(World *world, size_t from)
{
    for (size_t i = from; i < world->n_leases; i++) {
        Task *task = world_task(world, world->leases[i].task);

        if (task)
            task->lease = (int32_t)i;
    }
}

int world_add_lease(World *world, const Lease *value)
{
    size_t at = lease_place(world, value->cpu);
    const Task *task = world_task(world, value->task);

    if (!task)
        return -ESRCH;
    if (task->lease >= 0 || (at < world->n_leases && world->leases[at].cpu.i == value->cpu.i))
        return -EEXIST;
    if (!INSERT(world->leases, world->leases_capacity, world->n_leases, at))
        return -ENOMEM;

    world->leases[at] = *value;
    renumber_leases(world, at);
    return (int)at;
}

void world_remove_lease(World *world, size_t index)
{
    Task *task;

    assert(index < world->n_leases);

    task = world_task(world, world->leases[index].task);
    if (task)
        task->lease = -1;
    world->n_leases--;
    memmove(world->leases + index, world->leases + index + 1,
            (world->n_leases - index) * sizeof(*world->leases));
    renumber_leases(world, index);
}

Process *world_process(const World *world, pid_t pid)
{
    size_t at = process_place(world, pid);

    return at < world->n_processes && world->processes[at].pid == pid ? &world->processes[at] : NULL;
}

Task *world_task_by_tid(World *world, pid_t pid, pid_t tid)
{
    const Process *process = world_process(world, pid);
    ProcessIx ix;
    size_t at;

    if (!process)
        return NULL;
    ix.i = (int32_t)(process - world->processes);
    at = task_place(world, ix, tid);
    if (at == world->n_tasks || world->tasks[at].process.i != ix.i || world->tasks[at].tid != tid)
        return NULL;
    return &world->tasks[at];
}

Task *world_task(World *world, TaskKey key)
{
    Task *task = world_task_by_tid(world, key.pid, key.tid);

    return task && task->start_ticks == key.start_ticks ? task : NULL;
}

Group *world_group_by_id(World *world, uint64_t id)
{
    size_t at = LOWER_BOUND(i, world->n_groups, world->groups[i].id < id);

    return at < world->n_groups && world->groups[at].id == id ? &world->groups[at] : NULL;
}

Workload *world_workload_by_name(World *world, const char *name)
{
    for (size_t i = 0; i < world->n_workloads; i++)
        if (strcmp(world->workloads[i].name, name) == 0)
            return &world->workloads[i];
    return NULL;
}

WorkloadIx world_workload_index(const World *world, const Workload *workload)
{
    return workload ? (WorkloadIx){(int32_t)(workload - world->workloads)} : WORKLOAD_NONE;
}

size_t world_process_tasks(const World *world, const Process *process, size_t *ret_n)
{
    ProcessIx ix = {(int32_t)(process - world->processes)};
    size_t first = task_place(world, ix, 0);
    size_t end = task_place(world, (ProcessIx){ix.i + 1}, 0);

    *ret_n = end - first;
    return first;
}

TaskKey world_task_key(const World *world, const Task *task)
{
    return (TaskKey){
        .pid = world->processes[task->process.i].pid,
        .tid = task->tid,
        .start_ticks = task->start_ticks,
    };
}

/* Sums */

static void clear_sums(World *world)
{
    for (size_t i = 0; i < world->n_workloads; i++) {
        Workload *w = &world->workloads[i];

        w->n_processes = w->n_tasks = w->run_permille = w->wait_permille = 0;
    }
    for (size_t i = 0; i < world->n_groups; i++) {
        Group *g = &world->groups[i];

        g->n_tasks = g->run_permille = g->wait_permille = g->want_permille = g->n_leases = 0;
    }
}

void world_sum(World *world)
{
    clear_sums(world);

    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *p = &world->processes[i];

        if (!p->gone && p->workload.i >= 0)
            world->workloads[p->workload.i].n_processes++;
    }

    for (size_t i = 0; i < world->n_tasks; i++) {
        Task *t = &world->tasks[i];
        const Process *p = &world->processes[t->process.i];

        t->lease = -1;
        if (t->gone || p->gone)
            continue;
        if (p->workload.i >= 0) {
            Workload *w = &world->workloads[p->workload.i];

            w->n_tasks++;
            w->run_permille += t->run_permille;
            w->wait_permille += t->wait_permille;
        }
        if (p->group.i >= 0) {
            Group *g = &world->groups[p->group.i];

            g->n_tasks++;
            g->run_permille += t->run_permille;
            g->wait_permille += t->wait_permille;
            g->want_permille += t->run_ewma_permille + t->wait_ewma_permille;
        }
    }

    renumber_leases(world, 0);
    for (size_t i = 0; i < world->n_leases; i++) {
        Group *g = world_group_by_id(world, world->leases[i].group_id);

        if (g)
            g->n_leases++;
    }
}

void world_visit_interned(World *world, void (*string)(void *userdata, const char **s),
                          void (*mask)(void *userdata, CpuMask *mask), void *userdata)
{
    for (size_t i = 0; i < world->n_workloads; i++)
        string(userdata, &world->workloads[i].name);
    for (size_t i = 0; i < world->n_groups; i++) {
        Group *g = &world->groups[i];

        string(userdata, &g->key);
        mask(userdata, &g->home);
        mask(userdata, &g->home_nodes);
        mask(userdata, &g->before_nodes);
        mask(userdata, &g->wish_nodes);
    }
    for (size_t i = 0; i < world->n_processes; i++) {
        Process *p = &world->processes[i];

        string(userdata, &p->comm);
        string(userdata, &p->cgroup);
        string(userdata, &p->unit);
        string(userdata, &p->slice);
        string(userdata, &p->shared);
        mask(userdata, &p->cpuset);
        mask(userdata, &p->gather.nodes);
        mask(userdata, &p->gather.cpuset);
        mask(userdata, &p->memory.to);
        mask(userdata, &p->memory.last);
        mask(userdata, &p->memory.before);
    }
    /* Two passes: in each, neighbours mostly share a mask, which the pool answers without a search. */
    for (size_t i = 0; i < world->n_tasks; i++)
        mask(userdata, &world->tasks[i].allowed);
    for (size_t i = 0; i < world->n_tasks; i++)
        mask(userdata, &world->tasks[i].original);
}
