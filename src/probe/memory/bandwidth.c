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
#include <sys/stat.h>

#define RESCTRL "sys/fs/resctrl"
/* Caches that a CPU may list. */
#define CACHES_MAX 8U

void bandwidth_done(Bandwidth *bandwidth)
{
    free(bandwidth->domains);
    *bandwidth = (Bandwidth){0};
}

/* Reads a file that holds one number and nothing else; resctrl writes words where it has none. */
static bool read_number(int root_fd, const char *path, uint64_t *ret)
{
    char text[32];
    const char *p = text;

    return root_read(root_fd, path, text, sizeof(text)) > 0 && scan_u64(&p, ret) &&
           (*p == '\n' || *p == '\0');
}

/* The domains */

/* The id of the level 3 cache of a CPU, by which resctrl counts. */
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

static int add_cache(Bandwidth *bandwidth, uint32_t cache, uint32_t llc)
{
    size_t at = LOWER_BOUND(i, bandwidth->n, bandwidth->domains[i].cache < cache);

    if (at < bandwidth->n && bandwidth->domains[at].cache == cache)
        return 0;
    if (!INSERT(bandwidth->domains, bandwidth->capacity, bandwidth->n, at))
        return -ENOMEM;
    bandwidth->domains[at] = (BandwidthDomain){.cache = cache, .llc = llc};
    return 0;
}

bool bandwidth_mounted(int root_fd)
{
    return root_has(root_fd, RESCTRL "/mon_data");
}

int bandwidth_find(int root_fd, const Topology *topology, Bandwidth *ret)
{
    CLEANUP(bandwidth_done) Bandwidth bandwidth = {0};
    int r = 0;

    if (!bandwidth_mounted(root_fd))
        return -ENOENT;
    for (uint32_t i = 0; r == 0 && i < topology->n_llcs; i++) {
        int cpu = hwloc_bitmap_first(topology->llcs[i].cpus);
        uint32_t cache;

        /* One CPU of each last-level cache is enough. */
        if (cpu >= 0 && cache_of(root_fd, (uint32_t)cpu, &cache))
            r = add_cache(&bandwidth, cache, i);
    }
    if (r < 0)
        return r;
    if (bandwidth.n == 0)
        return -ENOENT;
    *ret = bandwidth;
    bandwidth = (Bandwidth){0};
    return 0;
}

/* The counters */

/* Adds the group in the directory `group`; a group without a number for this domain is not counted. */
static void add_group(int root_fd, const char *group, BandwidthDomain *domain)
{
    char path[512];
    uint64_t total, local;

    (void)snprintf(path, sizeof(path), RESCTRL "/%s/mon_data/mon_L3_%02" PRIu32 "/mbm_total_bytes", group,
                   domain->cache);
    if (!read_number(root_fd, path, &total))
        return;
    (void)snprintf(path, sizeof(path), RESCTRL "/%s/mon_data/mon_L3_%02" PRIu32 "/mbm_local_bytes", group,
                   domain->cache);
    domain->total_bytes += total;
    domain->n_groups++;
    if (read_number(root_fd, path, &local)) {
        domain->local_bytes += local;
        domain->n_local++;
    }
}

/* There are also files, and directories that are no groups. */
static bool is_group(int fd, const char *name)
{
    struct stat st;

    return name[0] != '.' && strcmp(name, "info") != 0 && strcmp(name, "mon_data") != 0 &&
           strcmp(name, "mon_groups") != 0 && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(st.st_mode);
}

/* Reads the default group, whose tasks are in no other group. Returns whether it has a number for any domain;
 * other groups are read only for domains for which it has one. */
static bool read_root_group(int root_fd, Bandwidth *bandwidth)
{
    bool any = false;

    for (size_t i = 0; i < bandwidth->n; i++) {
        BandwidthDomain *domain = &bandwidth->domains[i];

        domain->n_groups = domain->n_local = 0;
        domain->total_bytes = domain->local_bytes = 0;
        add_group(root_fd, ".", domain);
        any |= domain->n_groups > 0;
    }
    return any;
}

int bandwidth_count(int root_fd, Bandwidth *bandwidth, size_t most_groups)
{
    CLEANUP(closedir_p) DIR *dir = root_open_directory(root_fd, RESCTRL);
    size_t n = 1;
    bool any;

    if (!dir)
        return -errno;
    any = read_root_group(root_fd, bandwidth);
    for (const struct dirent *entry; any && n <= most_groups && (entry = readdir(dir));) {
        if (!is_group(dirfd(dir), entry->d_name) || ++n > most_groups)
            continue;
        for (size_t i = 0; i < bandwidth->n; i++)
            if (bandwidth->domains[i].n_groups > 0)
                add_group(root_fd, entry->d_name, &bandwidth->domains[i]);
    }
    return !any ? -ENOENT : n > most_groups ? -E2BIG : 0;
}

static uint64_t per_second(uint64_t bytes, uint64_t usec)
{
    return (uint64_t)((double)bytes * USEC_PER_SEC / (double)MAX(usec, 1U));
}

int bandwidth_rate(const Bandwidth *before, const Bandwidth *after, uint64_t usec, Bandwidth *ret)
{
    ret->n = 0;
    if (!GROW(ret->domains, ret->capacity, MAX(after->n, 1U)))
        return -ENOMEM;
    for (size_t i = 0; i < after->n; i++) {
        BandwidthDomain domain = after->domains[i];
        size_t at = LOWER_BOUND(k, before->n, before->domains[k].cache < domain.cache);
        const BandwidthDomain *then = at < before->n ? &before->domains[at] : NULL;

        if (domain.n_groups == 0 || !then || then->cache != domain.cache ||
            then->n_groups != domain.n_groups || then->n_local != domain.n_local ||
            then->total_bytes > domain.total_bytes || then->local_bytes > domain.local_bytes)
            continue;
        domain.total_bytes = per_second(domain.total_bytes - then->total_bytes, usec);
        domain.local_bytes = per_second(domain.local_bytes - then->local_bytes, usec);
        ret->domains[ret->n++] = domain;
    }
    return 0;
}

/* By node */

bool bandwidth_of_node(const Bandwidth *rate, const Topology *topology, uint32_t node, uint64_t *ret_bytes)
{
    uint64_t sum = 0;
    bool any = false;

    for (uint32_t i = 0; i < topology->n_llcs; i++) {
        const BandwidthDomain *domain = NULL;

        if (!hwloc_bitmap_isset(topology->llcs[i].nodes, node))
            continue;
        for (size_t k = 0; !domain && k < rate->n; k++)
            domain = rate->domains[k].llc == i ? &rate->domains[k] : NULL;
        if (!domain || hwloc_bitmap_weight(topology->llcs[i].nodes) > 1)
            return false;
        sum += domain->total_bytes;
        any = true;
    }
    *ret_bytes = sum;
    return any;
}
