/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The text form of a World: one table per kind of line, used to write and to read.
 *
 *     format version=1
 *     topology ... (see topo/topology-text.c)
 *     world now_usec=5000000 tick=50 interval_usec=100000 ...
 *     load cpu=0 online=yes usable=yes wait_known=yes busy_permille=1000 ...
 *     memory node=0 free_bytes=1073741824
 *     workload name="jvm" policy=0 ...
 *     group id=1 workload=0 key="" home=0-1 home_nodes=0 ...
 *     process pid=100 comm="java" cgroup="/a\x20b" workload=0 group=0 ...
 *     task pid=100 tid=101 comm="worker" class=normal hands=free allowed=0-1 ...
 *     lease cpu=2 pid=100 tid=101 start_ticks=7 group_id=1 ...
 *
 * Reading accepts the kinds in this order only, and entries in the order in which the World keeps them. So
 * every reference points to an earlier line, and nothing must be sorted. */

#include "base/parse.h"
#include "base/record/record.h"
#include "topo/topology-text.h"
#include "world/world.h"

#define TEXT_VERSION 1U

const char *const world_class_names[] = {
    [TASK_CLASS_NORMAL] = "normal",     [TASK_CLASS_IDLE] = "idle", [TASK_CLASS_REALTIME] = "realtime",
    [TASK_CLASS_DEADLINE] = "deadline", [TASK_CLASS_EXT] = "ext",   [TASK_CLASS_MAX] = NULL,
};

const char *const world_hands_names[] = {
    [TASK_HANDS_FREE] = "free",       [TASK_HANDS_FOREIGN] = "foreign", [TASK_HANDS_REPINNED] = "repinned",
    [TASK_HANDS_PER_CPU] = "per-cpu", [TASK_HANDS_CLASS] = "class",     [TASK_HANDS_DENIED] = "denied",
    [TASK_HANDS_UNKNOWN] = "unknown", [TASK_HANDS_MAX] = NULL,
};

static const RecordField format_fields[] = {
    {"version", RECORD_U32, 0, true},
};

static const RecordField world_fields[] = {
    {"now_usec", RECORD_U64, offsetof(World, now_usec), true},
    {"tick", RECORD_U64, offsetof(World, tick)},
    {"interval_usec", RECORD_U64, offsetof(World, interval_usec)},
    {"action_cost_usec", RECORD_U64, offsetof(World, action_cost_usec)},
    {"idle_permille", RECORD_U32, offsetof(World, idle_permille)},
    {"own_permille", RECORD_U32, offsetof(World, own_permille)},
    {"partial", RECORD_BOOL, offsetof(World, partial)},
    {"cross_node_level_milli", RECORD_U64, offsetof(World, cross_node.level)},
    {"cross_node_updated_usec", RECORD_U64, offsetof(World, cross_node.updated_usec)},
    {"kernel_balances", RECORD_BOOL, offsetof(World, kernel_balances)},
    {"use_hidden", RECORD_BOOL, offsetof(World, use_hidden)},
    {"memory_pressure_permille", RECORD_U32, offsetof(World, memory_pressure_permille)},
    {"next_group_id", RECORD_U64, offsetof(World, next_group_id), true},
};

typedef struct LoadRow {
    CpuIx cpu;
    CpuLoad load;
} LoadRow;

static const RecordField load_fields[] = {
    {"cpu", RECORD_INDEX, offsetof(LoadRow, cpu), true},
    {"online", RECORD_BOOL, offsetof(LoadRow, load.online)},
    {"usable", RECORD_BOOL, offsetof(LoadRow, load.usable)},
    {"wait_known", RECORD_BOOL, offsetof(LoadRow, load.wait_known)},
    {"busy_permille", RECORD_U16, offsetof(LoadRow, load.busy_permille)},
    {"busy_before_permille", RECORD_U16, offsetof(LoadRow, load.busy_before_permille)},
    {"wait_permille", RECORD_U16, offsetof(LoadRow, load.wait_permille)},
    {"wait_before_permille", RECORD_U16, offsetof(LoadRow, load.wait_before_permille)},
    {"idle_since_usec", RECORD_U64, offsetof(LoadRow, load.idle_since_usec)},
    {"idle_ewma_usec", RECORD_U32, offsetof(LoadRow, load.idle_ewma_usec)},
    {"cooldown_until_usec", RECORD_U64, offsetof(LoadRow, load.cooldown_until_usec)},
    {"cooldown_ticks", RECORD_U32, offsetof(LoadRow, load.cooldown_ticks)},
};

/* Only written for nodes of which something is known. */
typedef struct MemoryRow {
    NodeIx node;
    NodeLoad load;
} MemoryRow;

static const RecordField memory_fields[] = {
    {"node", RECORD_INDEX, offsetof(MemoryRow, node), true},
    {"free_known", RECORD_BOOL, offsetof(MemoryRow, load.free_known)},
    {"free_bytes", RECORD_U64, offsetof(MemoryRow, load.free_bytes)},
    {"others_permille", RECORD_U32, offsetof(MemoryRow, load.others_permille)},
};

static const RecordField workload_fields[] = {
    {"name", RECORD_STRING, offsetof(Workload, name), true},
    {"policy", RECORD_U32, offsetof(Workload, policy)},
    {"paused", RECORD_BOOL, offsetof(Workload, paused)},
    {"cross_node_level_milli", RECORD_U64, offsetof(Workload, cross_node.level)},
    {"cross_node_updated_usec", RECORD_U64, offsetof(Workload, cross_node.updated_usec)},
    {"n_processes", RECORD_U32, offsetof(Workload, n_processes)},
    {"n_tasks", RECORD_U32, offsetof(Workload, n_tasks)},
    {"run_permille", RECORD_U32, offsetof(Workload, run_permille)},
    {"wait_permille", RECORD_U32, offsetof(Workload, wait_permille)},
    {"n_lends", RECORD_U64, offsetof(Workload, n_lends)},
    {"n_recalls", RECORD_U64, offsetof(Workload, n_recalls)},
    {"memory_orders", RECORD_U64, offsetof(Workload, memory.n_orders)},
    {"moved_bytes", RECORD_U64, offsetof(Workload, memory.moved_bytes)},
    {"refused_bytes", RECORD_U64, offsetof(Workload, memory.refused_bytes)},
    {"blocked_usec", RECORD_U64, offsetof(Workload, memory.blocked_usec)},
};

static const RecordField group_fields[] = {
    {"id", RECORD_U64, offsetof(Group, id), true},
    {"workload", RECORD_INDEX, offsetof(Group, workload), true},
    {"key", RECORD_STRING, offsetof(Group, key), true},
    {"home", RECORD_MASK, offsetof(Group, home)},
    {"home_nodes", RECORD_MASK, offsetof(Group, home_nodes)},
    {"wish_nodes", RECORD_MASK, offsetof(Group, wish_nodes)},
    {"first_seen_usec", RECORD_U64, offsetof(Group, first_seen_usec)},
    {"last_home_usec", RECORD_U64, offsetof(Group, last_home_usec)},
    {"apart_usec", RECORD_U64, offsetof(Group, apart_usec)},
    {"pool_until_usec", RECORD_U64, offsetof(Group, pool_until_usec)},
    {"pool_next_usec", RECORD_U64, offsetof(Group, pool_next_usec)},
    {"pool_before_permille", RECORD_U32, offsetof(Group, pool_before_permille)},
    {"pool_others_permille", RECORD_U32, offsetof(Group, pool_others_permille)},
    {"pool_progress", RECORD_U64, offsetof(Group, pool_progress)},
    {"roams", RECORD_BOOL, offsetof(Group, roams)},
    {"before_nodes", RECORD_MASK, offsetof(Group, before_nodes)},
    {"before_wait_permille", RECORD_U32, offsetof(Group, before_wait_permille)},
    {"before_others_permille", RECORD_U32, offsetof(Group, before_others_permille)},
    {"before_demand_permille", RECORD_U32, offsetof(Group, before_demand_permille)},
    {"guessed", RECORD_BOOL, offsetof(Group, guessed)},
    {"judge_usec", RECORD_U64, offsetof(Group, judge_usec)},
    {"n_changes", RECORD_U32, offsetof(Group, n_changes)},
    {"changes_since_usec", RECORD_U64, offsetof(Group, changes_since_usec)},
    {"frozen_until_usec", RECORD_U64, offsetof(Group, frozen_until_usec)},
    {"converged", RECORD_BOOL, offsetof(Group, converged)},
    {"n_tasks", RECORD_U32, offsetof(Group, n_tasks)},
    {"run_permille", RECORD_U32, offsetof(Group, run_permille)},
    {"wait_permille", RECORD_U32, offsetof(Group, wait_permille)},
    {"want_permille", RECORD_U32, offsetof(Group, want_permille)},
    {"before_permille", RECORD_U32, offsetof(Group, before_permille)},
    {"demand_permille", RECORD_U32, offsetof(Group, demand_permille)},
    {"n_leases", RECORD_U32, offsetof(Group, n_leases)},
    {"memory_orders", RECORD_U64, offsetof(Group, memory.n_orders)},
    {"moved_bytes", RECORD_U64, offsetof(Group, memory.moved_bytes)},
    {"refused_bytes", RECORD_U64, offsetof(Group, memory.refused_bytes)},
    {"blocked_usec", RECORD_U64, offsetof(Group, memory.blocked_usec)},
    {"n_vetoes", RECORD_U32, offsetof(Group, n_vetoes)},
    {"backoff_ticks", RECORD_U32, offsetof(Group, backoff_ticks)},
    {"backoff_until_tick", RECORD_U64, offsetof(Group, backoff_until_tick)},
    {"gone", RECORD_BOOL, offsetof(Group, gone)},
};

/* The list of a process does not store its length: it has one number for each node. */
typedef struct ProcessRow {
    Process process;
    RecordNumbers node_bytes;
} ProcessRow;

static const RecordField process_fields[] = {
    {"pid", RECORD_INDEX, offsetof(ProcessRow, process.pid), true},
    {"parent", RECORD_INDEX, offsetof(ProcessRow, process.parent)},
    {"start_ticks", RECORD_U64, offsetof(ProcessRow, process.start_ticks)},
    {"started_usec", RECORD_U64, offsetof(ProcessRow, process.started_usec)},
    {"first_seen_usec", RECORD_U64, offsetof(ProcessRow, process.first_seen_usec)},
    {"uid", RECORD_U32, offsetof(ProcessRow, process.uid)},
    {"comm", RECORD_STRING, offsetof(ProcessRow, process.comm), true},
    {"cgroup", RECORD_STRING, offsetof(ProcessRow, process.cgroup), true},
    {"unit", RECORD_STRING, offsetof(ProcessRow, process.unit)},
    {"slice", RECORD_STRING, offsetof(ProcessRow, process.slice)},
    {"shared", RECORD_STRING, offsetof(ProcessRow, process.shared)},
    {"cpuset", RECORD_MASK, offsetof(ProcessRow, process.cpuset)},
    {"rss_bytes", RECORD_U64, offsetof(ProcessRow, process.rss_bytes)},
    {"node_bytes", RECORD_NUMBERS64, offsetof(ProcessRow, node_bytes)},
    {"node_bytes_usec", RECORD_U64, offsetof(ProcessRow, process.node_bytes_usec)},
    {"bound_bytes", RECORD_U64, offsetof(ProcessRow, process.bound_bytes)},
    {"grown_bytes", RECORD_U64, offsetof(ProcessRow, process.grown_bytes)},
    {"stall_permille", RECORD_U16, offsetof(ProcessRow, process.stall_permille)},
    {"ipc_permille", RECORD_U16, offsetof(ProcessRow, process.ipc_permille)},
    {"traffic_mb", RECORD_U32, offsetof(ProcessRow, process.traffic_mb)},
    {"stall_usec", RECORD_U64, offsetof(ProcessRow, process.stall_usec)},
    {"stall_due_usec", RECORD_U64, offsetof(ProcessRow, process.stall_due_usec)},
    {"gather_nodes", RECORD_MASK, offsetof(ProcessRow, process.gather.nodes)},
    {"gather_cpuset", RECORD_MASK, offsetof(ProcessRow, process.gather.cpuset)},
    {"gather_progress", RECORD_U32, offsetof(ProcessRow, process.gather.progress)},
    {"gather_begun_usec", RECORD_U64, offsetof(ProcessRow, process.gather.begun_usec)},
    {"gather_since_usec", RECORD_U64, offsetof(ProcessRow, process.gather.since_usec)},
    {"gather_until_usec", RECORD_U64, offsetof(ProcessRow, process.gather.until_usec)},
    {"gather_slower", RECORD_BOOL, offsetof(ProcessRow, process.gather.slower)},
    {"gather_trial", RECORD_BOOL, offsetof(ProcessRow, process.gather.trial)},
    {"moving_to", RECORD_MASK, offsetof(ProcessRow, process.memory.to)},
    {"todo_bytes", RECORD_U64, offsetof(ProcessRow, process.memory.todo_bytes)},
    {"moved_to", RECORD_MASK, offsetof(ProcessRow, process.memory.last)},
    {"striped", RECORD_BOOL, offsetof(ProcessRow, process.memory.stripe)},
    {"moved_from", RECORD_MASK, offsetof(ProcessRow, process.memory.before)},
    {"moved_since_usec", RECORD_U64, offsetof(ProcessRow, process.memory.since_usec)},
    {"moved_over_usec", RECORD_U64, offsetof(ProcessRow, process.memory.over_usec)},
    {"moved_until_usec", RECORD_U64, offsetof(ProcessRow, process.memory.until_usec)},
    {"stuck_bytes", RECORD_U64, offsetof(ProcessRow, process.memory.stuck_bytes)},
    {"n_vain", RECORD_U32, offsetof(ProcessRow, process.memory.n_vain)},
    {"moving_by_use", RECORD_BOOL, offsetof(ProcessRow, process.memory.by_use)},
    {"memory_awaited", RECORD_BOOL, offsetof(ProcessRow, process.memory_awaited)},
    {"use_awaited", RECORD_BOOL, offsetof(ProcessRow, process.use_awaited)},
    {"write_fails", RECORD_BOOL, offsetof(ProcessRow, process.write_fails)},
    {"use_hidden", RECORD_BOOL, offsetof(ProcessRow, process.use_hidden)},
    {"n_threads", RECORD_U32, offsetof(ProcessRow, process.n_threads)},
    {"cpu_permille", RECORD_U32, offsetof(ProcessRow, process.cpu_permille)},
    {"workload", RECORD_INDEX, offsetof(ProcessRow, process.workload)},
    {"group", RECORD_INDEX, offsetof(ProcessRow, process.group)},
    {"gone", RECORD_BOOL, offsetof(ProcessRow, process.gone)},
    {"yielded", RECORD_BOOL, offsetof(ProcessRow, process.yielded)},
    {"assigned", RECORD_BOOL, offsetof(ProcessRow, process.assigned)},
};

/* A task names its process by pid, not by index. The lease lines say which task has which lease. */
typedef struct TaskRow {
    pid_t pid;
    Task task;
    uint64_t use_usec; /* this and all below: from its TaskUse, which has no fixed size */
    uint16_t use_private_permille;
    TaskKey buddy;
    TaskStay stay;
    RecordNumbers pages;
} TaskRow;

static const RecordField task_fields[] = {
    {"pid", RECORD_INDEX, offsetof(TaskRow, pid), true},
    {"tid", RECORD_INDEX, offsetof(TaskRow, task.tid), true},
    {"start_ticks", RECORD_U64, offsetof(TaskRow, task.start_ticks)},
    {"comm", RECORD_CHARS, offsetof(TaskRow, task.comm), false, WORLD_COMM_SIZE},
    {"class", RECORD_ENUM8, offsetof(TaskRow, task.task_class), false, 0, world_class_names},
    {"hands", RECORD_ENUM8, offsetof(TaskRow, task.hands), false, 0, world_hands_names},
    {"gone", RECORD_BOOL, offsetof(TaskRow, task.gone)},
    {"fresh", RECORD_BOOL, offsetof(TaskRow, task.fresh)},
    {"last_cpu", RECORD_INDEX, offsetof(TaskRow, task.last_cpu)},
    {"run_permille", RECORD_U16, offsetof(TaskRow, task.run_permille)},
    {"wait_permille", RECORD_U16, offsetof(TaskRow, task.wait_permille)},
    {"run_before_permille", RECORD_U16, offsetof(TaskRow, task.run_before_permille)},
    {"wait_before_permille", RECORD_U16, offsetof(TaskRow, task.wait_before_permille)},
    {"run_ewma_permille", RECORD_U16, offsetof(TaskRow, task.run_ewma_permille)},
    {"wait_ewma_permille", RECORD_U16, offsetof(TaskRow, task.wait_ewma_permille)},
    {"allowed", RECORD_MASK, offsetof(TaskRow, task.allowed)},
    {"original", RECORD_MASK, offsetof(TaskRow, task.original)},
    {"last_move_usec", RECORD_U64, offsetof(TaskRow, task.last_move_usec)},
    {"home_node", RECORD_INDEX, offsetof(TaskRow, task.home_node)},
    {"use_pages", RECORD_NUMBERS64, offsetof(TaskRow, pages)},
    {"use_usec", RECORD_U64, offsetof(TaskRow, use_usec)},
    {"use_private_permille", RECORD_U16, offsetof(TaskRow, use_private_permille)},
    {"buddy", RECORD_INDEX, offsetof(TaskRow, buddy.tid)},
    {"buddy_start_ticks", RECORD_U64, offsetof(TaskRow, buddy.start_ticks)},
    {"use_node", RECORD_INDEX, offsetof(TaskRow, stay.node)},
    {"use_node_rounds", RECORD_U16, offsetof(TaskRow, stay.rounds)},
    {"use_node_since", RECORD_U32, offsetof(TaskRow, stay.since)},
    {"use_node_usec", RECORD_U64, offsetof(TaskRow, stay.usec)},
};

static const RecordField lease_fields[] = {
    {"cpu", RECORD_INDEX, offsetof(Lease, cpu), true},
    {"pid", RECORD_INDEX, offsetof(Lease, task.pid), true},
    {"tid", RECORD_INDEX, offsetof(Lease, task.tid), true},
    {"start_ticks", RECORD_U64, offsetof(Lease, task.start_ticks)},
    {"group_id", RECORD_U64, offsetof(Lease, group_id), true},
    {"cross_node", RECORD_BOOL, offsetof(Lease, cross_node)},
    {"since_usec", RECORD_U64, offsetof(Lease, since_usec)},
    {"until_usec", RECORD_U64, offsetof(Lease, until_usec)},
    {"since_tick", RECORD_U64, offsetof(Lease, since_tick)},
};

#define WRITE(out, kind, fields, object) record_write(out, kind, fields, ARRAY_SIZE(fields), object)
#define READ(reader, fields, object)     record_read(reader, fields, ARRAY_SIZE(fields), object)

static void dump_machine(const World *world, FILE *out)
{
    const Topology *topology = world->topology;
    uint32_t version = TEXT_VERSION;

    WRITE(out, "format", format_fields, &version);
    topology_write(topology, out);
    WRITE(out, "world", world_fields, world);
    for (uint32_t i = 0; i < topology->cpu_limit; i++) {
        LoadRow row = {.cpu = {(int32_t)i}, .load = world->cpus[i]};

        if (topology->cpus[i].present)
            WRITE(out, "load", load_fields, &row);
    }
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        MemoryRow row = {.node = {(int32_t)i}, .load = world->nodes[i]};

        if (row.load.free_known || row.load.others_permille > 0)
            WRITE(out, "memory", memory_fields, &row);
    }
}

static int dump_all(FILE *out, const void *object)
{
    const World *world = object;

    dump_machine(world, out);
    for (size_t i = 0; i < world->n_workloads; i++)
        WRITE(out, "workload", workload_fields, &world->workloads[i]);
    for (size_t i = 0; i < world->n_groups; i++)
        WRITE(out, "group", group_fields, &world->groups[i]);
    for (size_t i = 0; i < world->n_processes; i++) {
        ProcessRow row = {.process = world->processes[i]};

        row.node_bytes.values = row.process.node_bytes;
        row.node_bytes.n = row.process.node_bytes ? world->topology->n_nodes : 0;
        WRITE(out, "process", process_fields, &row);
    }
    for (size_t i = 0; i < world->n_tasks; i++) {
        TaskRow row = {.task = world->tasks[i], .stay = {.node = NODE_NONE}};

        row.pid = world->processes[row.task.process.i].pid;
        if (row.task.use) {
            row.use_usec = row.task.use->measured_usec;
            row.use_private_permille = row.task.use->private_permille;
            row.buddy = row.task.use->buddy;
            row.stay = row.task.use->stay;
            row.pages.values = row.task.use->pages;
            row.pages.n = world->topology->n_nodes;
        }
        WRITE(out, "task", task_fields, &row);
    }
    for (size_t i = 0; i < world->n_leases; i++)
        WRITE(out, "lease", lease_fields, &world->leases[i]);
    return 0;
}

char *world_dump(const World *world)
{
    return format_printed(dump_all, world, NULL);
}

/* Reading. Each of these takes one line and appends one entry. */

static int load_cpu_line(RecordReader *reader, World *world)
{
    LoadRow row = {.cpu = CPU_NONE};
    int r = READ(reader, load_fields, &row);

    if (r < 0)
        return r;
    if (!topology_cpu(world->topology, row.cpu))
        return record_expected(reader, "cpu= a CPU of the topology");
    world->cpus[row.cpu.i] = row.load;
    return 0;
}

static int load_memory_line(RecordReader *reader, World *world)
{
    MemoryRow row = {.node = NODE_NONE};
    int r = READ(reader, memory_fields, &row);

    if (r < 0)
        return r;
    if (row.node.i < 0 || row.node.i >= (int32_t)world->topology->n_nodes)
        return record_expected(reader, "node= one of the %u nodes of the topology", world->topology->n_nodes);
    world->nodes[row.node.i] = row.load;
    return 0;
}

static int load_workload_line(RecordReader *reader, World *world)
{
    Workload row = {0};
    int r = READ(reader, workload_fields, &row);

    if (r < 0)
        return r;
    if (!row.name || world->n_workloads == WORLD_TEXT_WORKLOADS_MAX)
        return record_expected(reader, "at most %u workloads, with a name", WORLD_TEXT_WORKLOADS_MAX);
    r = world_add_workload(world, row.name, row.policy);
    if (r == -EEXIST)
        return record_expected(reader, "each name= only once");
    if (r < 0)
        return r;
    world->workloads[r] = row;
    return 0;
}

static int load_group_line(RecordReader *reader, World *world)
{
    Group row = {0};
    uint64_t last = world->n_groups ? world->groups[world->n_groups - 1].id : 0;
    int r = READ(reader, group_fields, &row);

    if (r < 0)
        return r;
    if (!row.key || world->n_groups == WORLD_TEXT_ENTRIES_MAX)
        return record_expected(reader, "at most %u groups, with a key", WORLD_TEXT_ENTRIES_MAX);
    if (row.id <= last)
        return record_expected(reader, "groups in ascending order of id=");
    if (row.workload.i < 0 || (size_t)row.workload.i >= world->n_workloads)
        return record_expected(reader, "workload= one of the %zu workloads listed above", world->n_workloads);
    return APPEND(world->groups, world->groups_capacity, world->n_groups, row);
}

/* Adds a process whose line was parsed. */
static int load_process(RecordReader *reader, World *world, const ProcessRow *row)
{
    const Process *process = &row->process;
    pid_t last = world->n_processes ? world->processes[world->n_processes - 1].pid : 0;
    size_t n = row->node_bytes.n;
    int at, r;

    if (!process->comm || !process->cgroup || world->n_processes == WORLD_TEXT_ENTRIES_MAX)
        return record_expected(reader, "at most %u processes, with comm and cgroup", WORLD_TEXT_ENTRIES_MAX);
    if (process->pid <= last)
        return record_expected(reader, "processes in ascending order of pid=");
    if (process->workload.i >= (int64_t)world->n_workloads || process->group.i >= (int64_t)world->n_groups)
        return record_expected(reader, "workload= and group= of earlier lines, or -1");
    if ((n > 0) != (process->node_bytes_usec > 0) || (n > 0 && n != world->topology->n_nodes))
        return record_expected(reader, "node_bytes= of %u numbers with node_bytes_usec=, or neither",
                               world->topology->n_nodes);
    at = world_add_process(world, process);
    if (at < 0 || n == 0)
        return MIN(at, 0);
    r = world_set_process_memory(world, &world->processes[at], row->node_bytes.values,
                                 process->node_bytes_usec);
    world->processes[at].grown_bytes = process->grown_bytes;
    world->processes[at].bound_bytes = process->bound_bytes;
    return r;
}

static int load_process_line(RecordReader *reader, World *world)
{
    ProcessRow row = {.process = {.workload = WORKLOAD_NONE, .group = GROUP_NONE}};
    int r = READ(reader, process_fields, &row);

    if (r == 0)
        r = load_process(reader, world, &row);
    record_numbers_done(&row.node_bytes);
    return r;
}

/* Adds a task whose line was parsed. */
static int load_task(RecordReader *reader, World *world, TaskRow *row)
{
    const Task *last = world->n_tasks ? &world->tasks[world->n_tasks - 1] : NULL;
    const Process *process = world_process(world, row->pid);
    size_t n = row->pages.n;
    int at, r;

    if (world->n_tasks == WORLD_TEXT_ENTRIES_MAX)
        return record_expected(reader, "at most %u tasks", WORLD_TEXT_ENTRIES_MAX);
    if (!process)
        return record_expected(reader, "pid= a process of an earlier line");
    row->task.process.i = (int32_t)(process - world->processes);
    if (row->task.tid <= 0 ||
        (last && (row->task.process.i < last->process.i ||
                  (row->task.process.i == last->process.i && row->task.tid <= last->tid))))
        return record_expected(reader, "tasks in ascending order of pid= and tid=");
    if ((n > 0) != (row->use_usec > 0) || (n > 0 && n != world->topology->n_nodes) ||
        row->use_private_permille > 1000)
        return record_expected(reader, "use_pages= of %u numbers with use_usec=, or neither",
                               world->topology->n_nodes);
    row->buddy.pid = row->buddy.tid > 0 ? row->pid : 0;
    at = world_add_task(world, &row->task);
    if (at < 0)
        return at;
    world->tasks[at].home_node = row->task.home_node;
    if (n == 0)
        return 0;
    r = world_set_task_use(world, &world->tasks[at], row->pages.values, row->use_private_permille, row->buddy,
                           row->use_usec);
    if (r == 0)
        world->tasks[at].use->stay = row->stay;
    return r;
}

static int load_task_line(RecordReader *reader, World *world)
{
    TaskRow row = {.task = {.last_cpu = CPU_NONE, .lease = -1, .home_node = NODE_NONE},
                   .stay = {.node = NODE_NONE}};
    int r = READ(reader, task_fields, &row);

    if (r == 0)
        r = load_task(reader, world, &row);
    record_numbers_done(&row.pages);
    return r;
}

static int load_lease_line(RecordReader *reader, World *world)
{
    Lease row = {.cpu = CPU_NONE};
    int32_t last = world->n_leases ? world->leases[world->n_leases - 1].cpu.i : -1;
    int r = READ(reader, lease_fields, &row);

    if (r < 0)
        return r;
    if (row.cpu.i <= last)
        return record_expected(reader, "leases in ascending order of cpu=");
    r = world_add_lease(world, &row);
    if (r == -ESRCH)
        return record_expected(reader, "pid=, tid= and start_ticks= of an earlier task line");
    if (r == -EEXIST)
        return record_expected(reader, "at most one lease for a task");
    return MIN(r, 0);
}

typedef struct Section {
    const char *kind;
    int (*load)(RecordReader *reader, World *world);
} Section;

static const Section sections[] = {
    {"load", load_cpu_line},    {"memory", load_memory_line},   {"workload", load_workload_line},
    {"group", load_group_line}, {"process", load_process_line}, {"task", load_task_line},
    {"lease", load_lease_line},
};

static int load_head(RecordReader *reader, World **ret)
{
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    uint32_t version = 0;
    int r = record_next(reader);

    if (r == 0 && !record_is(reader, "format"))
        r = record_expected(reader, "a line \"format version=%u\"", TEXT_VERSION);
    if (r == 0)
        r = READ(reader, format_fields, &version);
    if (r == 0 && version != TEXT_VERSION)
        r = record_expected(reader, "version=%u, the only one known", TEXT_VERSION);
    if (r == 0)
        r = record_next(reader);
    if (r == 0)
        r = topology_read(reader, &topology);
    if (r == 0 && !record_is(reader, "world"))
        r = record_expected(reader, "a line \"world ...\" after the topology");
    if (r < 0)
        return r;
    return world_new(topology, ret);
}

static int load_sections(RecordReader *reader, World *world)
{
    int r = record_next(reader);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sections); i++)
        while (r == 0 && record_is(reader, sections[i].kind)) {
            r = sections[i].load(reader, world);
            if (r == 0)
                r = record_next(reader);
        }
    if (r == 0 && reader->kind)
        r = record_expected(
            reader, "load, memory, workload, group, process, task, lease in this order, not \"%.40s\"",
            reader->kind);
    return r;
}

static int load_all(RecordReader *reader, World **ret)
{
    CLEANUP(world_free_p) World *world = NULL;
    CLEANUP_FREE char *what = NULL;
    int r = load_head(reader, &world);

    if (r < 0)
        return r;
    reader->pool = world->pool;
    r = READ(reader, world_fields, world);
    if (r == 0)
        r = load_sections(reader, world);
    if (r < 0)
        return r;
    if (world_check(world, &what) < 0)
        return record_expected(reader, "a consistent world before this line, but %s",
                               what ? what : "it is not");
    *ret = TAKE_PTR(world);
    return 0;
}

int world_load(const char *text, size_t len, World **ret, char **ret_error)
{
    CLEANUP(record_reader_done) RecordReader reader = {0};
    int r = record_reader_init(&reader, text, len);

    if (r == 0)
        r = load_all(&reader, ret);
    if (r == -EINVAL && ret_error)
        *ret_error = TAKE_PTR(reader.error);
    return r;
}
