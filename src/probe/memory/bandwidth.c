/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe/memory/bandwidth.h"

#include "base/root.h"
#include "base/scan.h"
#include "base/time.h"
#include "base/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RESCTRL "sys/fs/resctrl"
/* Levels of cache that a CPU may have. */
#define CACHES_MAX 8U

void bandwidth_done(Bandwidth *bandwidth)
{
    for (size_t i = 0; i < bandwidth->n; i++)
        hwloc_bitmap_free(bandwidth->domains[i].nodes);
    free(bandwidth->domains);
    *bandwidth = (Bandwidth){0};
}

/* A file that holds one number and nothing else: resctrl writes words where it has none. */
static bool read_number(int root_fd, const char *path, uint64_t *ret)
{
    char text[32];
    const char *p = text;

    return root_read(root_fd, path, text, sizeof(text)) > 0 && scan_u64(&p, ret) &&
           (*p == '\n' || *p == '\0');
}

/* The domains */

/* The id of the cache of level 3 of a CPU: resctrl counts by that. */
static bool cache_of(int root_fd, uint32_t cpu, uint32_t *ret)
{
    for (uint32_t i = 0; i < CACHES_MAX; i++) {
        char path[96];
        uint64_t level, id;

        (void)snprintf(path, sizeof(path),
                       "sys/devices/system/cpu/cpu%" PRIu32 "/cache/index%" PRIu32 "/level", cpu, i);
        if (!read_number(root_fd, path, &level))
            break;
        (void)snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%" PRIu32 "/cache/index%" PRIu32 "/id",
                       cpu, i);
        if (level != 3 || !read_number(root_fd, path, &id) || id > UINT32_MAX)
            continue;
        *ret = (uint32_t)id;
        return true;
    }
    return false;
}

static int add_cpu(Bandwidth *bandwidth, uint32_t cache, NodeIx node)
{
    size_t at = LOWER_BOUND(i, bandwidth->n, bandwidth->domains[i].cache < cache);

    if (at == bandwidth->n || bandwidth->domains[at].cache != cache) {
        if (!GROW(bandwidth->domains, bandwidth->capacity, bandwidth->n + 1))
            return -ENOMEM;
        memmove(&bandwidth->domains[at + 1], &bandwidth->domains[at],
                (bandwidth->n - at) * sizeof(*bandwidth->domains));
        bandwidth->domains[at] = (BandwidthDomain){.cache = cache, .nodes = hwloc_bitmap_alloc()};
        bandwidth->n++;
        if (!bandwidth->domains[at].nodes)
            return -ENOMEM;
    }
    return hwloc_bitmap_set(bandwidth->domains[at].nodes, (unsigned)node.i) < 0 ? -ENOMEM : 0;
}

/* One CPU of each last-level cache is asked. */
static int find_domains(int root_fd, const Topology *topology, Bandwidth *bandwidth)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < topology->n_llcs; i++) {
        int cpu = hwloc_bitmap_first(topology->llcs[i].cpus);
        const TopologyCpu *entry = cpu >= 0 ? topology_cpu(topology, (CpuIx){cpu}) : NULL;
        uint32_t cache;

        if (entry && cache_of(root_fd, (uint32_t)cpu, &cache))
            for (int n = hwloc_bitmap_first(topology->llcs[i].nodes); r == 0 && n >= 0;
                 n = hwloc_bitmap_next(topology->llcs[i].nodes, n))
                r = add_cpu(bandwidth, cache, (NodeIx){n});
    }
    return r;
}

/* The counters */

/* Of a group, whose directory is `group`; false: it has none for this domain. */
static bool add_group(int root_fd, const char *group, BandwidthDomain *domain)
{
    char path[512];
    uint64_t total, local;

    (void)snprintf(path, sizeof(path), RESCTRL "/%s/mon_data/mon_L3_%02" PRIu32 "/mbm_total_bytes", group,
                   domain->cache);
    if (!read_number(root_fd, path, &total))
        return false;
    (void)snprintf(path, sizeof(path), RESCTRL "/%s/mon_data/mon_L3_%02" PRIu32 "/mbm_local_bytes", group,
                   domain->cache);
    domain->total_bytes += total;
    domain->n_groups++;
    if (read_number(root_fd, path, &local)) {
        domain->local_bytes += local;
        domain->n_local++;
    }
    return true;
}

/* Directories that are no groups. */
static bool is_group(const char *name)
{
    return name[0] != '.' && strcmp(name, "info") != 0 && strcmp(name, "mon_data") != 0 &&
           strcmp(name, "mon_groups") != 0;
}

/* Those without a number in the group of all that are in no other are dropped. */
static void read_root_group(int root_fd, Bandwidth *bandwidth)
{
    size_t n = 0;

    for (size_t i = 0; i < bandwidth->n; i++) {
        BandwidthDomain domain = bandwidth->domains[i];

        if (add_group(root_fd, ".", &domain))
            bandwidth->domains[n++] = domain;
        else
            hwloc_bitmap_free(domain.nodes);
    }
    bandwidth->n = n;
}

static int read_groups(int root_fd, Bandwidth *bandwidth)
{
    int fd = openat(root_fd, RESCTRL, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (fd < 0)
        return -errno;
    if (!dir) {
        (void)close(fd);
        return -ENOMEM;
    }
    read_root_group(root_fd, bandwidth);
    for (const struct dirent *entry; (entry = readdir(dir));)
        for (size_t i = 0; is_group(entry->d_name) && i < bandwidth->n; i++)
            (void)add_group(root_fd, entry->d_name, &bandwidth->domains[i]);
    (void)closedir(dir);
    return bandwidth->n > 0 ? 0 : -ENOENT;
}

int bandwidth_read(int root_fd, const Topology *topology, Bandwidth *ret)
{
    CLEANUP(bandwidth_done) Bandwidth bandwidth = {0};
    int r;

    /* Mostly it is not mounted, and then nothing else is read. */
    if (faccessat(root_fd, RESCTRL "/mon_data", F_OK, 0) < 0)
        return -ENOENT;
    r = find_domains(root_fd, topology, &bandwidth);
    if (r == 0)
        r = read_groups(root_fd, &bandwidth);
    if (r < 0)
        return r;
    *ret = bandwidth;
    bandwidth = (Bandwidth){0};
    return 0;
}

static uint64_t per_second(uint64_t bytes, uint64_t usec)
{
    return (uint64_t)((double)bytes * USEC_PER_SEC / (double)MAX(usec, 1U));
}

void bandwidth_rate(Bandwidth *bandwidth, const Bandwidth *before, uint64_t usec)
{
    size_t n = 0;

    for (size_t i = 0; i < bandwidth->n; i++) {
        BandwidthDomain domain = bandwidth->domains[i];
        size_t at = LOWER_BOUND(k, before->n, before->domains[k].cache < domain.cache);
        const BandwidthDomain *then = at < before->n ? &before->domains[at] : NULL;

        if (!then || then->cache != domain.cache || then->n_groups != domain.n_groups ||
            then->n_local != domain.n_local || then->total_bytes > domain.total_bytes ||
            then->local_bytes > domain.local_bytes) {
            hwloc_bitmap_free(domain.nodes);
            continue;
        }
        domain.total_bytes = per_second(domain.total_bytes - then->total_bytes, usec);
        domain.local_bytes = per_second(domain.local_bytes - then->local_bytes, usec);
        bandwidth->domains[n++] = domain;
    }
    bandwidth->n = n;
}
