/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Life of a Probe, and detection of what the machine offers. The work is in discover.c (slow) and sample.c (fast). */

#include "probe/probe.h"

#include "base/parse.h"
#include "base/root.h"
#include "base/time.h"
#include "kernel/psi.h"
#include "kernel/taskstat.h"
#include "probe/probe-internal.h"

#include <string.h>
#include <sys/resource.h>

/* Shortest window that an unprivileged process may request. Only whether a trigger works matters here. */
#define TRIGGER_TRY_STALL_USEC  500000U
#define TRIGGER_TRY_WINDOW_USEC 2000000U

static bool detect_task_schedstat(int root_fd)
{
    uint64_t run, wait;
    char text[TASKSTAT_SCHEDSTAT_SIZE];

    /* A kernel booted without scheduler accounting prints "0 0 0" for every task. */
    if (root_read(root_fd, "proc/self/schedstat", text, sizeof(text)) < 0 &&
        root_read(root_fd, "proc/1/schedstat", text, sizeof(text)) < 0)
        return false;
    return taskstat_parse_schedstat(text, &run, &wait) && (run > 0 || wait > 0);
}

static bool detect_numa(int root_fd)
{
    CLEANUP_BITMAP hwloc_bitmap_t nodes = hwloc_bitmap_alloc();

    return nodes && root_read_list(root_fd, "sys/devices/system/node/online", nodes) == 0 &&
           hwloc_bitmap_weight(nodes) > 1;
}

static void detect(Probe *probe)
{
    ProbeFeatures *features = &probe->features;
    int root_fd = probe->options.root_fd, fd;
    Psi psi;

    if (cpu_loads_read(&probe->cpus, 0) == 0 && probe->cpus.schedstat.n_cpus > 0) {
        features->schedstat = true;
        features->schedstat_version = probe->cpus.schedstat.version;
    }
    probe->cpus.n_tracks = 0; /* this was no measurement */
    features->task_schedstat = detect_task_schedstat(root_fd);
    features->psi = psi_read(root_fd, "proc/pressure/cpu", &psi) == 0;
    fd = features->psi && probe->options.live
             ? psi_trigger(root_fd, "proc/pressure/cpu", TRIGGER_TRY_STALL_USEC, TRIGGER_TRY_WINDOW_USEC)
             : -ENOENT;
    features->psi_trigger = fd >= 0;
    close_p(&fd);
    features->numa = detect_numa(root_fd);
    features->cgroup = cgroup_layout(root_fd);
    features->cpuset_v1 = cpusets_v1(root_fd);
}

static uint32_t descriptor_limit(const ProbeOptions *options)
{
    uint64_t reserve = (uint64_t)PROBE_DESCRIPTORS_RESERVE + options->descriptors_reserved;
    struct rlimit limit;

    if (options->max_kept_open > 0)
        return options->max_kept_open;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= reserve)
        return 0;
    return (uint32_t)MIN(limit.rlim_cur - reserve, UINT32_MAX);
}

static int allocate(Probe *probe)
{
    hwloc_bitmap_t *bitmaps[] = {
        &probe->reserved,  &probe->online, &probe->isolated, &probe->known_online,       &probe->been_away,
        &probe->known_own, &probe->mask,   &probe->scratch,  &probe->known_memory_nodes,
    };

    for (size_t i = 0; i < ARRAY_SIZE(bitmaps); i++) {
        *bitmaps[i] = hwloc_bitmap_alloc();
        if (!*bitmaps[i])
            return -ENOMEM;
    }
    probe->mask_words = calloc(1, MASK_BYTES);
    probe->mask_last = calloc(1, MASK_BYTES);
    if (!probe->mask_words || !probe->mask_last)
        return -ENOMEM;
    if (probe->options.reserved && hwloc_bitmap_copy(probe->reserved, probe->options.reserved) < 0)
        return -ENOMEM;
    probe->options.reserved = NULL; /* belongs to the caller */
    return 0;
}

static int open_proc(Probe *probe)
{
    probe->proc = root_open_directory(probe->options.root_fd, "proc");
    if (!probe->proc)
        return -errno;
    probe->proc_fd = dirfd(probe->proc); /* the stream owns it */
    return 0;
}

/* A file for which there was no descriptor would seem to be missing for as long as this Probe lives. What detect()
 * opened is closed again, so one that is free now was free then. */
static int check_descriptors(const Probe *probe)
{
    CLEANUP_CLOSE int spare = root_open_file(probe->options.root_fd, ".");
    const int fds[] = {probe->cpus.stat_fd,
                       probe->cpus.schedstat_fd,
                       probe->loadavg_fd,
                       probe->online_fd,
                       probe->isolated_fd,
                       probe->memory_nodes_fd,
                       spare};

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        if (fds[i] == -EMFILE || fds[i] == -ENFILE)
            return fds[i];
    return 0;
}

bool probe_has_own_proc(int root_fd)
{
    char text[16];
    ssize_t n = readlinkat(root_fd, "proc/self", text, sizeof(text) - 1);
    int32_t pid;

    if (n <= 0)
        return false;
    text[n] = '\0';
    return parse_i32(text, &pid) == 0 && pid == getpid();
}

int probe_new(const ProbeOptions *options, const ProbeCallbacks *callbacks, Probe **ret)
{
    CLEANUP(probe_free_p) Probe *probe = calloc(1, sizeof(*probe));
    long hz = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    int r;

    if (!probe)
        return -ENOMEM;
    probe->options = *options;
    probe->callbacks = *callbacks;
    probe->cpus.stat_fd = probe->cpus.schedstat_fd = probe->loadavg_fd = -1;
    probe->online_fd = probe->isolated_fd = probe->memory_nodes_fd = probe->own_cgroup_fd = -1;
    probe->balances_fd = probe->pressure_fd = -1;
    for (size_t i = 0; i < NODE_FILES; i++)
        probe->node_fds[i] = -1;
    probe->course.subject.fd = -1;
    stat_files_init(&probe->stat_files);
    probe->page_bytes = (uint64_t)(page > 0 ? page : 4096);
    probe->tick_nsec = NSEC_PER_SEC / (uint64_t)(hz > 0 ? hz : 100);
    probe->readers.max_open = descriptor_limit(options);
    /* In a captured tree a deleted file could still be read through its descriptor. */
    probe->stat_files.transient = probe->readers.max_open == 0 || !options->live;

    r = allocate(probe);
    if (r == 0)
        r = open_proc(probe);
    if (r == 0)
        r = cpu_loads_init(&probe->cpus, options->root_fd);
    if (r < 0)
        return r;

    probe->loadavg_fd = root_open_file(options->root_fd, "proc/loadavg");
    probe->online_fd = root_open_file(options->root_fd, "sys/devices/system/cpu/online");
    probe->isolated_fd = root_open_file(options->root_fd, "sys/devices/system/cpu/isolated");
    probe->memory_nodes_fd = root_open_file(options->root_fd, "sys/devices/system/node/has_memory");
    detect(probe);
    r = check_descriptors(probe);
    if (r < 0)
        return r;
    (void)probe_topology_changed(probe); /* makes the present state the known one */
    probe->online_read = false;
    *ret = TAKE_PTR(probe);
    return 0;
}

Probe *probe_free(Probe *probe)
{
    if (!probe)
        return NULL;
    readers_done(&probe->readers);
    stat_files_done(&probe->stat_files);
    cpu_loads_done(&probe->cpus);
    seen_done(&probe->seen);
    seen_done(&probe->seen_next);
    probe_cpusets_done(probe);
    hwloc_bitmap_free(probe->reserved);
    hwloc_bitmap_free(probe->online);
    hwloc_bitmap_free(probe->isolated);
    hwloc_bitmap_free(probe->known_online);
    hwloc_bitmap_free(probe->been_away);
    hwloc_bitmap_free(probe->known_own);
    hwloc_bitmap_free(probe->known_memory_nodes);
    hwloc_bitmap_free(probe->mask);
    hwloc_bitmap_free(probe->scratch);
    free(probe->mask_words);
    free(probe->mask_last);
    free(probe->pids);
    free(probe->born);
    free(probe->tids);
    free(probe->cpu_wait_nsec);
    free(probe->cpu_wait_known);
    free(probe->group_lends);
    free(probe->command_line);
    free(probe->environment);
    probe_memory_done(probe);
    probe_course_done(&probe->course);
    probe->aside = aside_free(probe->aside);
    close_p(&probe->loadavg_fd);
    close_p(&probe->online_fd);
    close_p(&probe->isolated_fd);
    close_p(&probe->memory_nodes_fd);
    if (probe->proc)
        (void)closedir(probe->proc);
    free(probe);
    return NULL;
}

const ProbeFeatures *probe_features(const Probe *probe)
{
    return &probe->features;
}

const ProbeStatistics *probe_statistics(const Probe *probe)
{
    return &probe->statistics;
}

size_t probe_n_hanging(const Probe *probe)
{
    return (probe->aside ? aside_n_hanging(probe->aside) : 0) +
           (probe->memory_aside ? aside_n_hanging(probe->memory_aside) : 0);
}

void probe_set_wants(Probe *probe, unsigned wants)
{
    probe->options.wants = wants;
    probe->ask_all = true;
}

/* "0.20 0.18 0.12 1/80 11206": runnable threads, of how many, and the PID or TID given out last. */
static bool read_loadavg(const Probe *probe, uint32_t *ret_running, pid_t *ret_last)
{
    uint32_t number;
    char text[128], *running, *last;

    if (probe->loadavg_fd < 0 || root_pread(probe->loadavg_fd, text, sizeof(text)) < 0)
        return false;
    text[strcspn(text, "\n")] = '\0';
    last = strrchr(text, ' ');
    if (!last)
        return false;
    *last++ = '\0';
    running = strrchr(text, ' ');
    if (!running)
        return false;
    running[strcspn(running, "/")] = '\0';
    if (parse_u32(running + 1, ret_running) < 0 || parse_u32(last, &number) < 0 || number > INT32_MAX)
        return false;
    *ret_last = (pid_t)number;
    return true;
}

void probe_glance(Probe *probe)
{
    ProbeGlance glance = {0};

    if (!read_loadavg(probe, &glance.n_running, &glance.last_pid))
        glance = (ProbeGlance){.n_running = UINT32_MAX};
    probe->glance = glance;
    probe->glanced = true;
}

bool probe_newcomers(const Probe *probe)
{
    return probe->glance.last_pid > 0 && probe->glance.last_pid != probe->last_pid;
}

bool probe_room(const Probe *probe, const World *world, uint32_t n_waiting)
{
    uint32_t n_online = 0;

    for (uint32_t i = 0; i < world->topology->cpu_limit; i++)
        n_online += world->cpus[i].online;
    return probe->glance.n_running < n_online + n_waiting + 1;
}

static SeenProcess *find_seen(const Probe *probe, pid_t pid)
{
    const SeenTable *seen = &probe->seen;
    size_t at = LOWER_BOUND(i, seen->n, seen->entries[i].pid < pid);

    return at < seen->n && seen->entries[at].pid == pid ? &seen->entries[at] : NULL;
}

void probe_ask_about(Probe *probe, pid_t pid)
{
    SeenProcess *seen = find_seen(probe, pid);

    if (seen) /* a process not met yet is asked about anyway */
        seen->decision = PROBE_DECISION_LATER;
}

bool probe_met(const Probe *probe, pid_t pid, uint64_t start_ticks)
{
    const SeenProcess *seen = find_seen(probe, pid);

    return seen && seen->start_ticks == start_ticks;
}

int probe_topology_adopt(Probe *probe, const Probe *before)
{
    if (hwloc_bitmap_copy(probe->known_online, before->known_online) < 0 ||
        hwloc_bitmap_copy(probe->been_away, before->been_away) < 0 ||
        hwloc_bitmap_copy(probe->known_own, before->known_own) < 0 ||
        hwloc_bitmap_copy(probe->known_memory_nodes, before->known_memory_nodes) < 0)
        return -ENOMEM;
    return 0;
}

static void adopt(Aside **aside, Aside **before)
{
    if (!*aside)
        *aside = TAKE_PTR(*before);
}

void probe_adopt_readers(Probe *probe, Probe *before)
{
    adopt(&probe->aside, &before->aside);
    adopt(&probe->memory_aside, &before->memory_aside);
}
