/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Batch systems mount the cpuset file system at /dev/cpuset and administer their jobs' cpusets with
 * libcpuset; so does this. It only changes cpusets. They are read from their files (fence/place.c), because
 * the library takes no root directory and tells fewer errors apart.
 *
 * A struct cpuset of cpuset_alloc() has no attributes, and cpuset_modify() writes those set since:
 * cpu_exclusive, memory_migrate and the like stay the batch system's. When the kernel refuses, as it does for
 * CPUs that a cpuset below has or that are offline, the library writes all attributes back as it read them a
 * moment before. A change made by somebody else in that moment is lost, which nothing here can prevent.
 *
 * The library caches what it knows of the machine without a lock. libcpuset_begin() makes it find out
 * everything; after that, threads only read. */

#include "act/fence/libcpuset.h"

#include "base/util.h"

#include <bitmask.h>
#include <cpuset.h>
#include <errno.h>
#include <sys/stat.h>

static void cpuset_free_p(struct cpuset **cpuset)
{
    cpuset_free(*cpuset);
}

static void bitmask_free_p(struct bitmask **mask)
{
    if (*mask)
        bitmask_free(*mask);
}

bool libcpuset_is_built(void)
{
    return true;
}

int libcpuset_begin(int root_fd)
{
    CLEANUP(cpuset_free_p) struct cpuset *all = NULL;
    struct stat ours, theirs;

    if (fstatat(root_fd, "dev/cpuset", &ours, 0) < 0 || stat("/dev/cpuset", &theirs) < 0)
        return -errno;
    if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
        return -EXDEV;
    all = cpuset_alloc();
    if (!all)
        return -ENOMEM;
    return cpuset_query(all, "/") < 0 ? -errno : 0;
}

int libcpuset_set(const char *path, hwloc_const_bitmap_t set, bool memory)
{
    int n_bits = memory ? cpuset_mems_nbits() : cpuset_cpus_nbits(), last = hwloc_bitmap_last(set);
    CLEANUP(bitmask_free_p) struct bitmask *mask = bitmask_alloc((unsigned)n_bits);
    CLEANUP(cpuset_free_p) struct cpuset *change = cpuset_alloc();

    if (!mask || !change)
        return -ENOMEM;
    /* For an empty set the library would write nothing and report success. */
    if (hwloc_bitmap_iszero(set))
        return -ENOSPC;
    /* As the kernel answers for CPUs beyond its masks. */
    if (last < 0 || last >= n_bits)
        return -EINVAL;
    for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i))
        (void)bitmask_setbit(mask, (unsigned)i);
    if ((memory ? cpuset_setmems(change, mask) : cpuset_setcpus(change, mask)) < 0)
        return -ENOMEM;
    return cpuset_modify(path, change) < 0 ? -errno : 0;
}
