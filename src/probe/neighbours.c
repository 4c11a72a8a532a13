/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One small function for each neighbour: it fills in the detail and returns whether the neighbour is there.
 *
 * Searching all processes for a daemon would cost more than all the rest here. But a daemon leaves its PID in
 * /run, and a process with that PID and name is the daemon. */

#include "probe/neighbours.h"

#include "base/parse.h"
#include "base/root.h"
#include "base/util.h"
#include "kernel/cgroup/paths.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Room for lists of thousands of CPUs no two of which are adjacent. */
#define FILE_MAX (64U << 10)

typedef struct KindRow KindRow;
struct KindRow {
    const char *name, *text;
    int (*find)(int root_fd, const KindRow *row, char *detail); /* 1: there, 0: not, -errno */
    const char *path;                                           /* what `find` reads, if it needs one */
};

/* Reads a whole file without its last newline; *ret is NULL if the file cannot be read. Returns 0, or as
 * neighbours_read(). */
static int read_line(int root_fd, const char *path, char **ret)
{
    size_t len;
    int r = root_read_alloc(root_fd, path, FILE_MAX, ret, &len);

    if (r < 0) {
        *ret = NULL;
        return r == -ENOMEM || r == -EMFILE || r == -ENFILE ? r : 0;
    }
    if (len > 0 && (*ret)[len - 1] == '\n')
        (*ret)[len - 1] = '\0';
    return 0;
}

static void describe(char *detail, const char *text)
{
    if (snprintf(detail, NEIGHBOUR_DETAIL_SIZE, "%s", text) >= (int)NEIGHBOUR_DETAIL_SIZE)
        memcpy(detail + NEIGHBOUR_DETAIL_SIZE - sizeof("..."), "...", sizeof("..."));
}

/* Whether process `pid` has the name `comm` and belongs to the owner of `file`, which tells the PID; the detail
 * is that PID. Any process may take the name, and the PID of one that has ended. */
static int is_process(int root_fd, const char *file, const char *pid, const char *comm, char *detail)
{
    struct stat said, process;
    CLEANUP_FREE char *found = NULL;
    char path[64];
    uint32_t number;
    int r;

    if (parse_u32(pid, &number) < 0)
        return 0;
    (void)snprintf(path, sizeof(path), "proc/%u/comm", (unsigned)number);
    r = read_line(root_fd, path, &found);
    if (r < 0 || !found || strcmp(found, comm) != 0)
        return r;
    if (fstatat(root_fd, file, &said, 0) < 0 || fstatat(root_fd, path, &process, 0) < 0 ||
        said.st_uid != process.st_uid)
        return 0;
    (void)snprintf(detail, NEIGHBOUR_DETAIL_SIZE, "pid %u", (unsigned)number);
    return 1;
}

/* The process has the name of the neighbour. */
static int find_by_pid_file(int root_fd, const KindRow *row, char *detail)
{
    CLEANUP_FREE char *pid = NULL;
    int r = read_line(root_fd, row->path, &pid);

    return r < 0 || !pid ? r : is_process(root_fd, row->path, pid, row->name, detail);
}

/* The name of its socket contains its PID: irqbalance812.sock. */
static int find_irqbalance(int root_fd, const KindRow *row, char *detail)
{
    CLEANUP(closedir_p) DIR *dir = root_open_directory(root_fd, "run/irqbalance");
    const struct dirent *entry;
    int r = 0;

    while (r == 0 && dir && (entry = readdir(dir))) {
        char pid[16] = "";
        int end = 0;

        if (sscanf(entry->d_name, "irqbalance%15[0-9].sock%n", pid, &end) == 1 && end > 0 &&
            !entry->d_name[end])
            r = is_process(root_fd, "run/irqbalance", pid, "irqbalance", detail);
    }
    return r;
}

static int find_numa_balancing(int root_fd, const KindRow *row, char *detail)
{
    CLEANUP_FREE char *value = NULL;
    int r = read_line(root_fd, "proc/sys/kernel/numa_balancing", &value);

    if (r < 0 || !value || strcmp(value, "0") == 0)
        return r;
    describe(detail, value);
    return 1;
}

static int find_sched_ext(int root_fd, const KindRow *row, char *detail)
{
    CLEANUP_FREE char *state = NULL, *ops = NULL;
    int r = read_line(root_fd, "sys/kernel/sched_ext/state", &state);

    if (r < 0 || !state || strcmp(state, "enabled") != 0)
        return r;
    r = read_line(root_fd, "sys/kernel/sched_ext/root/ops", &ops);
    describe(detail, ops ? ops : "");
    return r < 0 ? r : 1;
}

/* With a tolerance of 0 it gathers no threads. */
static int find_sched_cache(int root_fd, const KindRow *row, char *detail)
{
    CLEANUP_FREE char *enabled = NULL, *tolerance = NULL;
    int r = read_line(root_fd, "sys/kernel/debug/sched/llc_balancing/enabled", &enabled);

    if (r < 0 || !enabled || strcmp(enabled, "1") != 0)
        return r;
    r = read_line(root_fd, "sys/kernel/debug/sched/llc_balancing/aggr_tolerance", &tolerance);
    if (r < 0 || (tolerance && strcmp(tolerance, "0") == 0))
        return r;
    if (tolerance)
        (void)snprintf(detail, NEIGHBOUR_DETAIL_SIZE, "tolerance %.32s", tolerance);
    return 1;
}

/* A file with a list of CPUs. If there are none, it is empty or "(null)". */
static int find_list(int root_fd, const KindRow *row, char *detail)
{
    CLEANUP_FREE char *list = NULL;
    int r = read_line(root_fd, row->path, &list);

    if (r < 0 || !list || *list < '0' || *list > '9')
        return r;
    describe(detail, list);
    return 1;
}

/* CPUs that are online and not in the cpuset of all other processes. */
static int find_partition(int root_fd, const KindRow *row, char *detail)
{
    CLEANUP_BITMAP hwloc_bitmap_t all = hwloc_bitmap_alloc(), rest = hwloc_bitmap_alloc();
    CLEANUP_FREE char *list = NULL;
    int r = all && rest ? root_read_list(root_fd, "sys/devices/system/cpu/online", all) : -ENOMEM;

    if (r == 0)
        r = root_read_list(root_fd, CGROUP_ROOT "/cpuset.cpus.effective", rest);
    if (r < 0 || hwloc_bitmap_iszero(rest))
        return r == -ENOMEM ? r : 0;
    if (hwloc_bitmap_andnot(all, all, rest) < 0)
        return -ENOMEM;
    if (hwloc_bitmap_iszero(all))
        return 0;
    list = format_list(all, PARSE_CPU_MAX);
    if (!list)
        return -ENOMEM;
    describe(detail, list);
    return 1;
}

static int find_cpu_manager(int root_fd, const KindRow *row, char *detail)
{
    CLEANUP_FREE char *state = NULL;
    int r = read_line(root_fd, "var/lib/kubelet/cpu_manager_state", &state);

    if (r < 0 || !state || !strstr(state, "\"policyName\":\"static\""))
        return r;
    describe(detail, "static");
    return 1;
}

static const KindRow rows[] = {
    [NEIGHBOUR_NUMAD] = {"numad", "placement pauses when it is first seen", find_by_pid_file,
                         "run/numad.pid"},
    [NEIGHBOUR_NUMA_BALANCING] = {"numa-balancing",
                                  "memory still moves, to several nodes only where its use is known",
                                  find_numa_balancing},
    [NEIGHBOUR_SCHED_EXT] = {"sched-ext", "it respects homes, but may leave lent CPUs unused",
                             find_sched_ext},
    [NEIGHBOUR_SCHED_CACHE] = {"cache-aware-scheduling",
                               "it gathers threads on one cache of a home that has several",
                               find_sched_cache},
    [NEIGHBOUR_ISOLATED] = {"isolated-cpus", "never used", find_list, "sys/devices/system/cpu/isolated"},
    [NEIGHBOUR_PARTITION] = {"cpuset-partition", "used only by the processes in it", find_partition},
    [NEIGHBOUR_NOHZ_FULL] = {"nohz-full", "used like other CPUs unless also isolated", find_list,
                             "sys/devices/system/cpu/nohz_full"},
    [NEIGHBOUR_CPU_MANAGER] = {"kubelet-cpu-manager", "containers keep to the CPUs it gives them",
                               find_cpu_manager},
    [NEIGHBOUR_TUNED] = {"tuned", "what it pins is left alone", find_by_pid_file, "run/tuned/tuned.pid"},
    [NEIGHBOUR_IRQBALANCE] = {"irqbalance", "it keeps control of interrupts", find_irqbalance},
};

static_assert(ARRAY_SIZE(rows) == NEIGHBOUR_MAX, "a neighbour has no row");

int neighbours_read(int root_fd, Neighbours *ret)
{
    Neighbours found = {0};

    for (int i = 0; i < NEIGHBOUR_MAX; i++) {
        int r = rows[i].find(root_fd, &rows[i], found.of[i].detail);

        if (r < 0)
            return r;
        found.of[i].present = r > 0;
    }
    *ret = found;
    return 0;
}

const char *neighbour_name(NeighbourKind kind)
{
    return rows[kind].name;
}

const char *neighbour_text(NeighbourKind kind)
{
    return rows[kind].text;
}
