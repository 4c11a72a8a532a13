/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which CPUs can be used now: hotplug, isolation, reservation, cpusets. The Topology of a World does not
 * change; the owner of the World loads a new one when probe_topology_changed() returns true. */

#include "base/root.h"
#include "probe/probe-internal.h"

#include <stdio.h>
#include <string.h>
#include <uthash.h>

/* Cpusets whose files stay open. */
#define CPUSETS_KEPT 64U

struct CpusetCache {
    UT_hash_handle hh;
    CpuMask mask; /* as read in this pass; NULL: not yet */
    int fd;       /* file it is read from; -1: not kept open */
    bool idle;    /* not used in this pass */
    char path[];
};

/* An offline CPU keeps its cool-down and nothing else. */
static void reset_load(CpuLoad *cpu)
{
    *cpu = (CpuLoad){
        .cooldown_until_usec = cpu->cooldown_until_usec,
        .cooldown_ticks = cpu->cooldown_ticks,
    };
}

int probe_cpus_refresh(Probe *probe, World *world)
{
    hwloc_bitmap_t online = probe->scratch;
    int r;

    /* Read just now, by the probe_topology_changed() of this pass. */
    if (probe->online_read)
        r = hwloc_bitmap_copy(online, probe->known_online) < 0 ? -ENOMEM : 0;
    else
        r = root_pread_list(probe->online_fd, online);
    probe->online_read = false;
    if (r == -ENOMEM)
        return r;
    /* Without the file (a kernel without hotplug) all CPUs are online. */
    if (r < 0 && hwloc_bitmap_copy(online, world->topology->all_cpus) < 0)
        return -ENOMEM;
    if (hwloc_bitmap_copy(probe->online, online) < 0)
        return -ENOMEM;

    /* Missing before Linux 4.2, and nearly always empty. */
    r = root_pread_list(probe->isolated_fd, probe->isolated);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        hwloc_bitmap_zero(probe->isolated);

    for (uint32_t i = 0; i < world->topology->cpu_limit; i++) {
        CpuLoad *cpu = &world->cpus[i];
        bool is_online =
            topology_cpu(world->topology, (CpuIx){(int32_t)i}) && hwloc_bitmap_isset(probe->online, i);

        if (cpu->online && !is_online)
            reset_load(cpu);
        cpu->online = is_online;
        cpu->usable =
            is_online && !hwloc_bitmap_isset(probe->isolated, i) && !hwloc_bitmap_isset(probe->reserved, i);
    }
    return 0;
}

static int open_cgroup(const Probe *probe, pid_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%d/cgroup", (int)pid);
    return root_open_file(probe->proc_fd, path);
}

static int read_cgroup(Probe *probe, int fd, CgroupPaths *ret)
{
    ssize_t n = fd < 0 ? fd : root_pread(fd, probe->cgroup_text, sizeof(probe->cgroup_text));

    return n < 0 ? (int)n : cgroup_parse(probe->cgroup_text, ret);
}

/* The entry of a cpuset, created on demand; NULL when out of memory. */
static CpusetCache *find_cpuset(Probe *probe, const char *path)
{
    CpusetCache *e = NULL;
    size_t len = strlen(path);

    HASH_FIND(hh, probe->cpusets, path, len, e);
    if (!e) {
        e = calloc(1, sizeof(*e) + len + 1);
        if (!e)
            return NULL;
        e->fd = -1;
        memcpy(e->path, path, len);
        HASH_ADD_KEYPTR(hh, probe->cpusets, e->path, len, e);
        if (!e->hh.tbl) {
            free(e);
            return NULL;
        }
    }
    e->idle = false;
    return e;
}

/* Reads the CPUs of a cpuset. A captured tree keeps no file open, because a deleted file could still be read. */
static int read_kept(Probe *probe, CpusetCache *e, hwloc_bitmap_t ret)
{
    bool keep = probe->options.live && (e->fd >= 0 || probe->n_cpusets_kept < CPUSETS_KEPT);
    int r;

    probe->n_cpusets_kept -= e->fd >= 0;
    r = cgroup_cpuset(probe->options.root_fd, (ProbeCgroupLayout)probe->features.cgroup,
                      probe->features.cpuset_v1, e->path, keep ? &e->fd : NULL, ret);
    probe->n_cpusets_kept += e->fd >= 0;
    return r;
}

/* The CPUs that this process's own cpuset allows; unchanged when they cannot be read. */
static void read_own(Probe *probe, hwloc_bitmap_t ret)
{
    CpusetCache *e;
    CgroupPaths paths;

    if (probe->options.self <= 0)
        return;
    if (probe->own_cgroup_fd < 0)
        probe->own_cgroup_fd = open_cgroup(probe, probe->options.self);
    if (read_cgroup(probe, probe->own_cgroup_fd, &paths) < 0)
        return;
    e = find_cpuset(probe, paths.cpuset);
    if (e)
        (void)read_kept(probe, e, ret);
}

bool probe_topology_changed(Probe *probe)
{
    bool changed = false;

    if (hwloc_bitmap_copy(probe->scratch, probe->known_online) < 0)
        return false;
    probe->online_read = root_pread_list(probe->online_fd, probe->scratch) == 0;
    changed = !hwloc_bitmap_isequal(probe->scratch, probe->known_online);
    for (int i = hwloc_bitmap_first(probe->known_online); i >= 0;
         i = hwloc_bitmap_next(probe->known_online, i))
        if (!hwloc_bitmap_isset(probe->scratch, (unsigned)i))
            (void)hwloc_bitmap_set(probe->been_away, (unsigned)i);
    (void)hwloc_bitmap_copy(probe->known_online, probe->scratch);

    /* A node without CPUs comes and goes by its memory alone. */
    if (root_pread_list(probe->memory_nodes_fd, probe->scratch) == 0) {
        changed = changed || !hwloc_bitmap_isequal(probe->scratch, probe->known_memory_nodes);
        (void)hwloc_bitmap_copy(probe->known_memory_nodes, probe->scratch);
    }

    if (hwloc_bitmap_copy(probe->scratch, probe->known_own) < 0)
        return changed;
    read_own(probe, probe->scratch);
    changed = changed || !hwloc_bitmap_isequal(probe->scratch, probe->known_own);
    (void)hwloc_bitmap_copy(probe->known_own, probe->scratch);
    return changed;
}

/* On entry `ret` holds the CPUs of the cpuset if `r` is 0; the `bound` callback may replace them. On return
 * `ret` holds the online ones of them, or all online CPUs if there are none. 0 or -ENOMEM. */
static int cut_cpuset(Probe *probe, const char *path, int r, hwloc_bitmap_t ret)
{
    if (r == -ENOMEM)
        return r;
    if (probe->callbacks.bound && probe->callbacks.bound(probe->callbacks.userdata, path, ret))
        r = 0;
    if (r == 0 && hwloc_bitmap_intersects(ret, probe->online))
        return hwloc_bitmap_and(ret, ret, probe->online) < 0 ? -ENOMEM : 0;
    return hwloc_bitmap_copy(ret, probe->online) < 0 ? -ENOMEM : 0;
}

int probe_cpuset(Probe *probe, World *world, const char *path, CpuMask *ret)
{
    CpusetCache *e = find_cpuset(probe, path);

    if (!e)
        return -ENOMEM;
    if (!e->mask) {
        int r = cut_cpuset(probe, path, read_kept(probe, e, probe->scratch), probe->scratch);

        if (r < 0)
            return r;
        e->mask = intern_mask(world->pool, probe->scratch);
    }
    *ret = e->mask;
    return e->mask ? 0 : -ENOMEM;
}

int probe_cpuset_again(Probe *probe, World *world, Process *process)
{
    CgroupPaths paths = {.cpuset = "/"};
    CpuMask cpuset;
    int r = root_pread_list(probe->online_fd, probe->scratch);

    if (r == 0 && !hwloc_bitmap_isequal(probe->scratch, probe->online))
        return 1;
    if (probe->features.cgroup != PROBE_CGROUP_NONE) {
        CLEANUP_CLOSE int fd = open_cgroup(probe, process->pid);

        r = read_cgroup(probe, fd, &paths);
        if (r < 0)
            return r;
    }
    r = cgroup_cpuset(probe->options.root_fd, (ProbeCgroupLayout)probe->features.cgroup,
                      probe->features.cpuset_v1, paths.cpuset, NULL, probe->scratch);
    r = cut_cpuset(probe, paths.cpuset, r, probe->scratch);
    if (r < 0)
        return r;

    cpuset = intern_mask(world->pool, probe->scratch);
    if (!cpuset)
        return -ENOMEM;
    return probe_cpuset_put(probe, world, process, cpuset);
}

bool probe_cpuset_leaves(Probe *probe, const char *path, hwloc_const_bitmap_t mask)
{
    return cgroup_cpuset(probe->options.root_fd, (ProbeCgroupLayout)probe->features.cgroup,
                         probe->features.cpuset_v1, path, NULL, probe->scratch) == 0 &&
           hwloc_bitmap_and(probe->scratch, probe->scratch, probe->online) == 0 &&
           hwloc_bitmap_isequal(probe->scratch, mask);
}

static void close_cpuset(Probe *probe, CpusetCache *e)
{
    if (e->fd < 0)
        return;
    (void)close(e->fd);
    e->fd = -1;
    probe->n_cpusets_kept--;
}

static void remove_cpuset(Probe *probe, CpusetCache *e)
{
    close_cpuset(probe, e);
    HASH_DEL(probe->cpusets, e);
    free(e);
}

void probe_cpusets_forget(Probe *probe)
{
    CpusetCache *e, *next;

    HASH_ITER (hh, probe->cpusets, e, next)
        e->mask = NULL;
}

/* When a controller was switched on, a nearer file may be the right one; files are closed now and then to find it.
 * It has the same CPUs until somebody writes to it. Then masks change, and the cpuset is looked up again for them. */
void probe_cpusets_begin(Probe *probe)
{
    CpusetCache *e, *next;

    HASH_ITER (hh, probe->cpusets, e, next) {
        if (e->idle) {
            remove_cpuset(probe, e);
            continue;
        }
        e->idle = true;
        e->mask = NULL;
        if (probe->n_passes % DISCOVER_ROLL == 0)
            close_cpuset(probe, e);
    }
}

void probe_cpusets_done(Probe *probe)
{
    CpusetCache *e, *next;

    HASH_ITER (hh, probe->cpusets, e, next)
        remove_cpuset(probe, e);
    close_p(&probe->own_cgroup_fd);
}
