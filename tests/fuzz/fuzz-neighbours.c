/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What other programs and the kernel report about themselves. Each NUL begins the next of these files. */

#include "fuzz.h"
#include "probe/neighbours.h"
#include "root.h"

static const char *const files[] = {
    "run/numad.pid",
    "proc/1/comm",
    "run/tuned/tuned.pid",
    "proc/2/comm",
    "proc/sys/kernel/numa_balancing",
    "sys/kernel/sched_ext/state",
    "sys/kernel/sched_ext/root/ops",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/nohz_full",
    "sys/devices/system/cpu/online",
    "sys/fs/cgroup/cpuset.cpus.effective",
    "var/lib/kubelet/cpu_manager_state",
    "sys/kernel/debug/sched/llc_balancing/enabled",
    "sys/kernel/debug/sched/llc_balancing/aggr_tolerance",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Neighbours neighbours;

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
        size_t len = nul ? (size_t)(nul - data) : size;

        fuzz_root_write(files[i], data, len);
        data += nul ? len + 1 : len;
        size -= nul ? len + 1 : len;
    }
    if (neighbours_read(fuzz_root(), &neighbours) != 0)
        return 0;
    for (NeighbourKind i = 0; i < NEIGHBOUR_MAX; i++) {
        const char *detail = neighbours.of[i].detail;

        if (!memchr(detail, '\0', NEIGHBOUR_DETAIL_SIZE) || (!neighbours.of[i].present && detail[0]))
            abort();
    }
    return 0;
}
