/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A process can set a memory policy only for itself. The policy survives execve(2) and is inherited, which is
 * why there is a launcher.
 *
 * With MPOL_F_RELATIVE_NODES bit i stands for the i-th node that the cpuset allows, and the kernel counts
 * again whenever the cpuset changes. Example: nodes 0, 2 and 3 are allowed, 2 and 3 wanted: bits 1 and 2. */

#include "launch/launch.h"

#include "base/util.h"

#include <errno.h>
#include <numaif.h>
#include <sched.h>

/* linux/mempolicy.h defines it, but cannot be included together with numaif.h, which declares the calls. */
#ifndef MPOL_F_RELATIVE_NODES
#define MPOL_F_RELATIVE_NODES (1 << 14)
#endif

/* CONFIG_NODES_SHIFT is at most 10. */
#define NODES_MAX 1024U
#define LONG_BITS (8 * sizeof(unsigned long))
#define WORDS     (NODES_MAX / LONG_BITS)

static bool has_bit(const unsigned long *words, unsigned i)
{
    return words[i / LONG_BITS] >> i % LONG_BITS & 1;
}

int launch_stripe(hwloc_const_bitmap_t nodes)
{
    unsigned long allowed[WORDS] = {0}, wanted[WORDS] = {0};
    unsigned rank = 0, n = 0;

    /* A kernel without NUMA has one node, and lacks this call. */
    if (get_mempolicy(NULL, allowed, NODES_MAX, NULL, MPOL_F_MEMS_ALLOWED) < 0)
        return errno == ENOSYS ? 0 : -errno;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        if (!has_bit(allowed, i))
            continue;
        if (hwloc_bitmap_isset(nodes, i)) {
            wanted[rank / LONG_BITS] |= 1UL << rank % LONG_BITS;
            n++;
        }
        rank++;
    }
    if (n < 2)
        return 0;
    /* The kernel uses one bit fewer than the count it is given. */
    return set_mempolicy(MPOL_INTERLEAVE | MPOL_F_RELATIVE_NODES, wanted, NODES_MAX + 1) < 0 ? -errno : 1;
}

static void cpu_set_free_p(cpu_set_t **set)
{
    CPU_FREE(*set);
}

/* Fills `set` with those of `cpus` that this thread may use now. Returns their number or -errno. */
static int cut(hwloc_const_bitmap_t cpus, cpu_set_t *set, size_t size, unsigned limit)
{
    if (sched_getaffinity(0, size, set) < 0)
        return -errno;
    for (unsigned i = 0; i < limit; i++)
        if (!hwloc_bitmap_isset(cpus, i))
            CPU_CLR_S(i, size, set);
    return CPU_COUNT_S(size, set);
}

int launch_bind(hwloc_const_bitmap_t cpus)
{
    /* The kernel refuses a set smaller than its own, and does not tell how large that is. */
    for (unsigned limit = 1024; limit <= 1U << 17; limit *= 2) {
        CLEANUP(cpu_set_free_p) cpu_set_t *set = CPU_ALLOC(limit);
        size_t size = CPU_ALLOC_SIZE(limit);
        int n;

        if (!set)
            return -ENOMEM;
        CPU_ZERO_S(size, set);
        n = cut(cpus, set, size, limit);
        if (n == -EINVAL)
            continue;
        if (n <= 0)
            return n < 0 ? n : -ERANGE;
        return sched_setaffinity(0, size, set) < 0 ? -errno : 0;
    }
    return -EINVAL;
}
