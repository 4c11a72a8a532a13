/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures where the memory of the processes to be placed lies, which of it they share, and how much the
 * nodes have free.
 *
 * Threads set aside (probe/tasks/aside.h) read numa_maps and maps: these may be megabytes and take seconds,
 * and the process can hang its reader. Only sums come back. A late reading is asked for again at the next
 * discovery; if nothing is known of the process yet, at the next tick, because its first home waits for it.
 *
 * A reading takes a dozen system calls (directory, stat, file) and two more for each page of text. Readings
 * are spaced by their cost, and one discovery makes a few milliseconds of them, in turn. Where no memory is
 * wanted there is no system call at all. */

#include "probe/memory/residency.h"

#include "base/root.h"
#include "base/scan.h"
#include "base/time.h"
#include "kernel/node-memory.h"
#include "kernel/psi.h"
#include "kernel/sched-numa.h"
#include "kernel/shared-maps.h"
#include "probe/memory/numa-maps.h"
#include "probe/probe-internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* CPU time of the readings of one discovery; the last one may exceed it. Once a second that is half a percent, which
 * only a crowd of new processes uses. The ticks in between, which continue with the crowd, have a fifth of it each. */
#define PASS_NSEC     (NSEC_PER_SEC / 200)
#define CATCH_UP_NSEC (PASS_NSEC / 5)

/* A reading that takes longer is fetched at the next discovery, and so are all after waits of BUDGET_USEC. Both are
 * less than for command lines: a reading takes long because it is large, not because something is wrong. */
#define WAIT_USEC   5000U
#define BUDGET_USEC 20000U
/* A reading of 100 GiB in small pages takes ten seconds. */
#define GIVE_UP_USEC (30 * USEC_PER_SEC)

/* Threads asked for the kernel's groups, and groups kept, at most. */
#define KERNEL_GROUPS_THREADS   16U
#define KERNEL_GROUPS_MAX       8U
#define KERNEL_GROUPS_TEXT_SIZE 160U
static_assert(KERNEL_GROUPS_TEXT_SIZE >= KERNEL_GROUPS_MAX * sizeof(" ngid:2147483647"), "all groups fit");

typedef struct Reading {
    uint64_t cost_nsec; /* CPU time it took */
    union {
        NumaMaps nodes;
        SharedMaps shared;
    };
} Reading;

/* A Reading and a terminator. */
#define TEXT_SIZE (sizeof(Reading) + 1)

uint64_t residency_wait_usec(uint64_t age_usec, uint64_t cost_usec, double roots)
{
    double wait = sqrt((double)cost_usec) * roots * RESIDENCY_SHARE;

    if (age_usec < RESIDENCY_OLD_USEC)
        return MAX(MAX(age_usec, RESIDENCY_YOUNG_USEC), cost_usec * RESIDENCY_YOUNG_SHARE);
    /* At most a day, so that nothing overflows. */
    return MAX(RESIDENCY_OLD_USEC, (uint64_t)MIN(wait, 86400.0 * USEC_PER_SEC));
}

/* The readings of one discovery. */
typedef struct Pass {
    Probe *probe;
    World *world;
    double roots;   /* as in residency_wait_usec(), over all processes of which something is wanted */
    unsigned wants; /* of all processes together */
    bool first;     /* only processes that were never measured */
    uint64_t spent_nsec;
    size_t n_late;
} Pass;

static double root(const SeenProcess *seen)
{
    return sqrt((double)seen->memory_cost_usec);
}

/* Forgets what is not in `kept`. This allocates nothing, so it cannot fail. */
static void forget(const World *world, Process *process, unsigned kept)
{
    if (!(kept & PROBE_MEMORY_NODES))
        (void)world_set_process_memory(world, process, NULL, 0);
    if (!(kept & PROBE_MEMORY_SHARED))
        process->shared = NULL;
}

/* An AsideReader that leaves a Reading. Runs in a thread of its own, or here. */
static ssize_t read_file(int dir_fd, const char *file, char *buf, size_t size)
{
    uint64_t begin_nsec = time_thread_cpu_nsec();
    Reading reading = {0};
    int r = strcmp(file, "maps") == 0 ? shared_maps_read(dir_fd, &reading.shared)
                                      : numa_maps_read(dir_fd, &reading.nodes);

    assert(size > sizeof(reading));

    if (r < 0)
        return r;
    reading.cost_nsec = time_thread_cpu_nsec() - begin_nsec;
    memcpy(buf, &reading, sizeof(reading));
    buf[sizeof(reading)] = '\0';
    return (ssize_t)sizeof(reading);
}

/* Leaves a Reading in memory_text. Returns 0; -EAGAIN: not yet; -errno. */
static int read_maps(Probe *probe, const Subject *subject, const Process *process, const SeenProcess *seen,
                     const char *file)
{
    const AsideKey key = {
        .file = file,
        .identity = seen->identity,
        .start_ticks = seen->start_ticks,
        .pid = seen->pid,
        .uid = process->uid,
        .group = subject_hash(process->cgroup),
    };
    ssize_t n = probe->memory_aside
                    ? aside_read(probe->memory_aside, subject->facts_fd, &key, probe->memory_text)
                    : read_file(subject->facts_fd, file, probe->memory_text, TEXT_SIZE);

    probe->statistics.n_reads++;
    return n < 0 ? (int)n : 0;
}

/* A late answer says where the memory was when it was asked for: it may have moved, or its process, since then. */
static int take_nodes(const Pass *pass, Process *process, const SeenProcess *seen, uint64_t *cost_nsec)
{
    const Reading *reading = (const Reading *)(const void *)pass->probe->memory_text;
    const Topology *topology = pass->world->topology;
    uint64_t *bytes = pass->probe->node_bytes;
    int r;

    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        uint32_t os = topology->nodes[i].os_index;

        bytes[i] = os < NUMA_MAPS_NODES_MAX ? reading->nodes.bytes[os] : 0;
    }
    *cost_nsec += reading->cost_nsec;
    r = world_set_process_memory(pass->world, process, bytes, seen->memory_asked_usec);
    if (r == 0)
        process->bound_bytes = reading->nodes.bound_bytes;
    return r;
}

/* Inserts a group in order, unless it is there or there are KERNEL_GROUPS_MAX. */
static void add(pid_t *groups, size_t *n, pid_t group)
{
    size_t at = LOWER_BOUND(i, *n, groups[i] < group);

    if ((at < *n && groups[at] == group) || *n == KERNEL_GROUPS_MAX)
        return;
    memmove(&groups[at + 1], &groups[at], (*n - at) * sizeof(*groups));
    groups[at] = group;
    ++*n;
}

static bool read_group(Probe *probe, const Subject *subject, pid_t tid, pid_t *ret)
{
    char path[40];

    (void)snprintf(path, sizeof(path), "task/%d/status", tid);
    probe->statistics.n_reads++;
    return root_read(subject->fd, path, probe->status_text, sizeof(probe->status_text)) > 0 &&
           sched_numa_parse_status(probe->status_text, ret) == 0;
}

/* Which threads work together, as the kernel found out from faults on the same pages (Ngid, P12). That is
 * better evidence than common mappings, which may lie idle, but exists only while the kernel's balancing is
 * on. Some 10 us for each thread, and no lock of the process. Sleeping threads have no faults, so of many
 * threads those that ran are asked. Writes words for Process.shared, each with a blank before it:
 * " ngid:711". Returns its CPU time in nanoseconds. */
static uint64_t read_groups(Probe *probe, const World *world, const Process *process, const Subject *subject,
                            char *buf)
{
    uint64_t begin = time_thread_cpu_nsec();
    size_t n_tasks, first = world_process_tasks(world, process, &n_tasks), n = 0, n_asked = 0, len = 0;
    pid_t groups[KERNEL_GROUPS_MAX + 1], group;

    for (size_t i = first; i < first + n_tasks && n_asked < KERNEL_GROUPS_THREADS; i++) {
        const Task *task = &world->tasks[i];

        if (task->gone || (n_tasks > KERNEL_GROUPS_THREADS && task->run_ewma_permille == 0))
            continue;
        n_asked++;
        if (read_group(probe, subject, task->tid, &group) && group > 0)
            add(groups, &n, group);
    }
    *buf = '\0';
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(buf + len, KERNEL_GROUPS_TEXT_SIZE - len, " ngid:%d", (int)groups[i]);
    return time_thread_cpu_nsec() - begin;
}

static int take_shared(const Pass *pass, Process *process, const Subject *subject, uint64_t *cost_nsec)
{
    const Reading *reading = (const Reading *)(const void *)pass->probe->memory_text;
    char text[SHARED_MAPS_TEXT_SIZE + KERNEL_GROUPS_TEXT_SIZE];

    *cost_nsec += reading->cost_nsec;
    process->shared = NULL;
    (void)shared_maps_format(&reading->shared, PROCESS_SHARED_MUCH, text);
    if (pass->world->kernel_balances)
        *cost_nsec += read_groups(pass->probe, pass->world, process, subject, text + strlen(text));
    if (*text == '\0')
        return 0;
    process->shared = intern_string(pass->world->pool, text + (*text == ' '));
    return process->shared ? 0 : -ENOMEM;
}

static int read_wanted(const Pass *pass, Process *process, const SeenProcess *seen, unsigned wants,
                       uint64_t *cost_nsec)
{
    CLEANUP(subject_close) Subject subject = {.fd = -1};
    int r = subject_open(pass->probe, process->pid, &subject);

    if (r == 0 && subject.stat.start_ticks != process->start_ticks)
        r = -ESRCH;
    if (r == 0 && wants & PROBE_MEMORY_NODES) {
        r = read_maps(pass->probe, &subject, process, seen, "numa_maps");
        if (r == 0)
            r = take_nodes(pass, process, seen, cost_nsec);
    }
    if (r == 0 && wants & PROBE_MEMORY_SHARED) {
        r = read_maps(pass->probe, &subject, process, seen, "maps");
        if (r == 0)
            r = take_shared(pass, process, &subject, cost_nsec);
    }
    return r;
}

/* Notes a reading that is late. What is known of where the memory lies is kept until it is too old; not until the next
 * discovery, which may be longer after this one. */
static void come_back(Pass *pass, Process *process, const SeenProcess *seen)
{
    pass->n_late++;
    pass->probe->statistics.n_put_off++;
    if (pass->world->now_usec > seen->memory_asked_usec + RESIDENCY_OLD_USEC)
        forget(pass->world, process, PROBE_MEMORY_SHARED);
}

/* Sets when to measure again. */
static void space(Pass *pass, const Process *process, SeenProcess *seen, uint64_t cost_nsec)
{
    uint64_t now = pass->world->now_usec;

    pass->spent_nsec += cost_nsec;
    pass->probe->statistics.memory_cpu_nsec += cost_nsec;
    pass->probe->statistics.n_memory_reads++;

    pass->roots -= root(seen);
    seen->memory_cost_usec = (uint32_t)CLAMP(cost_nsec / NSEC_PER_USEC, 1U, UINT32_MAX);
    pass->roots += root(seen);
    seen->memory_due_usec =
        now + residency_wait_usec(now - process->first_seen_usec, seen->memory_cost_usec, pass->roots);
}

/* Where memory lies that cannot be read is not known (I10): the process is gone, or we may not read it.
 * The shared memory stays as it was, or the process would be taken out of its group. */
static int read_one(Pass *pass, Process *process, SeenProcess *seen, unsigned wants)
{
    uint64_t cost_nsec = 0;
    int r;

    if (seen->memory_asked_usec == 0)
        seen->memory_asked_usec = pass->world->now_usec;
    r = read_wanted(pass, process, seen, wants, &cost_nsec);
    if (r == -ENOMEM)
        return -ENOMEM;
    if (r != -EAGAIN)
        seen->memory_asked_usec = 0;
    if (r == -EAGAIN) {
        come_back(pass, process, seen);
    } else if (r < 0) {
        pass->probe->statistics.n_unparsable += r == -EINVAL;
        seen->memory_due_usec = pass->world->now_usec + RESIDENCY_OLD_USEC;
        forget(pass->world, process, PROBE_MEMORY_SHARED);
    } else {
        space(pass, process, seen, cost_nsec);
    }
    process->memory_awaited = seen->memory_due_usec == 0;
    return 0;
}

/* Finds the processes of which something is wanted, and those that are due. */
static int find_due(Pass *pass, size_t *ret_n)
{
    Probe *probe = pass->probe;
    const ProbeCallbacks *callbacks = &probe->callbacks;
    size_t hint = 0, n = 0;

    probe->memory_first = false;
    for (size_t i = 0; i < pass->world->n_processes; i++) {
        Process *process = &pass->world->processes[i];
        const SeenProcess *seen = seen_find(&probe->seen, process->pid, &hint);
        unsigned wants = seen && process->workload.i >= 0
                             ? callbacks->wants_memory(callbacks->userdata, pass->world, process)
                             : 0;

        if (!pass->first)
            forget(pass->world, process, wants);
        process->memory_awaited = wants & PROBE_MEMORY_NODES && seen->memory_due_usec == 0;
        if (!wants)
            continue;
        pass->wants |= wants;
        pass->roots += root(seen);
        probe->memory_first |= seen->memory_due_usec == 0;
        if (pass->first ? seen->memory_due_usec > 0
                        : seen->memory_due_usec > pass->world->now_usec && !(wants & PROBE_MEMORY_AGAIN))
            continue;
        if (APPEND(probe->memory_due, probe->memory_due_capacity, n, (MemoryDue){(uint32_t)i, wants}) < 0)
            return -ENOMEM;
    }
    *ret_n = n;
    return 0;
}

/* Reads in turn, starting behind the process that was read last, until it has cost enough. */
static int read_due(Pass *pass, size_t n)
{
    Probe *probe = pass->probe;
    uint64_t limit_nsec = pass->first ? CATCH_UP_NSEC : PASS_NSEC;
    size_t first = 0;

    while (first < n && pass->world->processes[probe->memory_due[first].process].pid <= probe->memory_cursor)
        first++;
    for (size_t i = 0; i < n && pass->spent_nsec < limit_nsec && pass->n_late < ASIDE_THREADS; i++) {
        MemoryDue due = probe->memory_due[(first + i) % n];
        Process *process = &pass->world->processes[due.process];
        size_t hint = 0;
        int r = read_one(pass, process, seen_find(&probe->seen, process->pid, &hint), due.wants);

        if (r < 0)
            return r;
        probe->memory_cursor = process->pid;
    }
    return 0;
}

/* Reads a file of the machine and keeps it open in *fd, which is -1 at first; `fd` NULL: not kept open. Nor
 * is it in a captured tree, where a deleted file could still be read. */
static ssize_t read_kept(const Probe *probe, const char *path, int *fd, char *buf, size_t size)
{
    ssize_t n;

    if (!fd || !probe->options.live)
        return root_read(probe->options.root_fd, path, buf, size);
    if (*fd < 0)
        *fd = root_open_file(probe->options.root_fd, path);
    n = *fd < 0 ? *fd : root_pread(*fd, buf, size);
    if (n < 0) {
        close_p(fd);
        *fd = -1;
    }
    return n;
}

static NodeLoad read_node(Probe *probe, uint32_t os_index)
{
    char path[64];
    NodeMemory memory;
    int *fd = os_index < NODE_FILES ? &probe->node_fds[os_index] : NULL;

    (void)snprintf(path, sizeof(path), "sys/devices/system/node/node%" PRIu32 "/meminfo", os_index);
    if (read_kept(probe, path, fd, probe->status_text, sizeof(probe->status_text)) < 0)
        return (NodeLoad){0};
    if (node_memory_parse(probe->status_text, &memory) < 0) {
        probe->statistics.n_unparsable++;
        return (NodeLoad){0};
    }
    return (NodeLoad){.free_bytes = MIN(node_memory_available(&memory), WORLD_MEMORY_MAX),
                      .free_known = true};
}

/* Without the file the kernel cannot balance. Bit 1 is for tiers of memory, which are not nodes to be placed on. */
#define BALANCES_NODES 1U

/* Returns `before` if the file is there but cannot be read. */
static bool read_balances(Probe *probe, bool before)
{
    char text[32];
    const char *p = text;
    uint64_t value;
    ssize_t n = read_kept(probe, "proc/sys/kernel/numa_balancing", &probe->balances_fd, text, sizeof(text));

    if (n < 0)
        return n != -ENOENT && before;
    return scan_u64(&p, &value) && (value & BALANCES_NODES) != 0;
}

static uint32_t read_pressure(Probe *probe)
{
    char text[PSI_TEXT_SIZE];
    Psi psi;

    return read_kept(probe, "proc/pressure/memory", &probe->pressure_fd, text, sizeof(text)) >= 0 &&
                   psi_parse(text, &psi) == 0
               ? psi.some.avg10_permille
               : 0;
}

void probe_memory_done(Probe *probe)
{
    for (size_t i = 0; i < NODE_FILES; i++)
        close_p(&probe->node_fds[i]);
    close_p(&probe->balances_fd);
    close_p(&probe->pressure_fd);
    free(probe->memory_text);
    free(probe->memory_due);
    free(probe->node_bytes);
    probe->memory_aside = aside_free(probe->memory_aside);
}

static int prepare(Probe *probe, const World *world)
{
    const AsideOptions options = {
        .read = read_file,
        .size = TEXT_SIZE,
        .wait_usec = WAIT_USEC,
        .budget_usec = BUDGET_USEC,
        .give_up_usec = GIVE_UP_USEC,
    };
    int r = 0;

    if (!probe->memory_text)
        probe->memory_text = malloc(options.size);
    if (!probe->memory_text || !GROW(probe->node_bytes, probe->node_bytes_capacity, world->topology->n_nodes))
        return -ENOMEM;
    if (probe->options.aside && !probe->memory_aside)
        r = aside_new(&options, &probe->memory_aside);
    if (probe->memory_aside)
        aside_refill(probe->memory_aside);
    return r;
}

int probe_memory_refresh(Probe *probe, World *world)
{
    Pass pass = {.probe = probe, .world = world};
    size_t n = 0;
    int r = 0;

    if (!probe->callbacks.wants_memory)
        return 0;
    r = find_due(&pass, &n);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < world->topology->n_nodes; i++) {
        NodeLoad memory = {0};

        if (pass.wants & PROBE_MEMORY_NODES)
            memory = read_node(probe, world->topology->nodes[i].os_index);
        world->nodes[i].free_bytes = memory.free_bytes;
        world->nodes[i].free_known = memory.free_known;
    }
    if (pass.wants != 0)
        world->kernel_balances = read_balances(probe, world->kernel_balances);
    world->memory_pressure_permille = pass.wants & PROBE_MEMORY_NODES ? read_pressure(probe) : 0;
    if (n == 0)
        return 0;
    r = prepare(probe, world);
    return r < 0 ? r : read_due(&pass, n);
}

int probe_memory_catch_up(Probe *probe, World *world)
{
    Pass pass = {.probe = probe, .world = world, .first = true};
    size_t n = 0;
    int r;

    if (!probe->memory_first)
        return 0;
    r = find_due(&pass, &n);
    return r < 0 || n == 0 ? r : read_due(&pass, n);
}
