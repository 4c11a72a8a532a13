/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* move_pages(2) and migrate_pages(2) take a bare PID, and PIDs are reused, so a pidfd is held. If it shows the process
 * alive before and after a call, the call was about that process: a PID is not reused while its process lives. A thread
 * has no pidfd before Linux 6.9, so the directory of a thread in /proc is held instead.
 *
 * migrate_pages(2) also moves pages that others map if the caller has CAP_SYS_NICE, which a daemon that places threads
 * has. The C library of every process would then follow whichever small process moved last, and memory would leave the
 * target's cpuset. So the thread drops that capability for the call. */

#include "act/mover/ops.h"

#include "base/parse.h"
#include "base/root.h"
#include "base/time.h"
#include "kernel/procstat.h"

#include <linux/capability.h>
#include <numa.h>
#include <numaif.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define WORD_BITS (8U * sizeof(unsigned long))

/* libnuma passes masks as long as the kernel's own node masks: at most 1024 bits, or four times that if their
 * size is unknown. */
#define MASK_WORDS (4096U / WORD_BITS + 1U)
#define CPU_WORDS  ((PARSE_CPU_MAX + 1U) / WORD_BITS)

static int ops_read_file(void *context, const char *path, size_t max, char **ret)
{
    size_t len;

    return root_read_alloc(*(const int *)context, path, max, ret, &len);
}

static int ops_read_lines(void *context, const char *path, LinesAdd add, void *userdata)
{
    return lines_read(*(const int *)context, path, add, userdata);
}

static bool ops_is_alive(void *context, int process_fd)
{
    struct pollfd pfd = {.fd = process_fd, .events = POLLIN};
    ProcStat stat;

    /* A directory is always ready. */
    return poll(&pfd, 1, 0) == 0 ||
           (procstat_read(process_fd, "stat", &stat) == 0 && !procstat_has_ended(&stat));
}

static int open_other_thread(int root_fd, pid_t pid, pid_t *ret_tid)
{
    CLEANUP_CLOSE int process_fd = -1;
    char path[32];
    ProcStat stat;
    int fd;

    (void)snprintf(path, sizeof(path), "proc/%d", (int)pid);
    process_fd = root_open_file(root_fd, path);
    fd = process_fd < 0 ? process_fd : procstat_open_living(process_fd, &stat);
    if (fd < 0)
        return fd == -ENOENT ? -ESRCH : fd;
    *ret_tid = stat.pid;
    return fd;
}

/* The start time is read while the descriptor is held. If the process is alive after that, it is the start
 * time of this process. */
static int ops_open_process(void *context, pid_t pid, uint64_t start_ticks, pid_t *ret_memory_pid)
{
    CLEANUP_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0), thread_fd = -1;
    pid_t memory_pid = pid;
    ProcStat stat;
    int r;

    if (fd < 0)
        return errno == EINVAL || errno == ENOENT ? -ESRCH : -errno; /* now the number of a thread */
    r = procstat_read_task(*(const int *)context, pid, 0, &stat);
    if (r < 0)
        return r == -ENOENT ? -ESRCH : r;
    if (stat.start_ticks == start_ticks && procstat_has_ended(&stat)) {
        thread_fd = open_other_thread(*(const int *)context, pid, &memory_pid);
        if (thread_fd < 0)
            return thread_fd;
    }
    if (stat.start_ticks != start_ticks || !ops_is_alive(context, fd))
        return -ESRCH;
    *ret_memory_pid = memory_pid;
    return thread_fd >= 0 ? TAKE_FD(thread_fd) : TAKE_FD(fd);
}

static long ops_move_pages(void *context, pid_t pid, size_t n, void **pages, const int *nodes, int *status,
                           bool shared)
{
    long r = numa_move_pages(pid, n, pages, nodes, status, shared ? MPOL_MF_MOVE_ALL : MPOL_MF_MOVE);

    return r < 0 ? -errno : r;
}

/* Gets or sets the capabilities of the calling thread only, without the C library's wrapper. */
static int swap_capabilities(struct __user_cap_data_struct data[2], bool set)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

    return syscall(set ? SYS_capset : SYS_capget, &header, data) < 0 ? -errno : 0;
}

static long migrate(pid_t pid, hwloc_const_bitmap_t from_os, uint32_t to_os)
{
    unsigned long from_words[MASK_WORDS], to_words[MASK_WORDS] = {0};
    /* Not numa_allocate_nodemask(), which ends the process when out of memory. */
    struct bitmask from = {.size = MASK_WORDS * WORD_BITS, .maskp = from_words};
    struct bitmask to = {.size = MASK_WORDS * WORD_BITS, .maskp = to_words};
    long r;

    if ((unsigned)numa_num_possible_nodes() >= from.size || to_os >= from.size)
        return -E2BIG;
    if (hwloc_bitmap_to_ulongs(from_os, MASK_WORDS, from_words) < 0)
        return -ENOMEM;
    to_words[to_os / WORD_BITS] = 1UL << (to_os % WORD_BITS);
    r = numa_migrate_pages(pid, &from, &to);
    return r < 0 ? -errno : r;
}

static long ops_migrate_pages(void *context, pid_t pid, hwloc_const_bitmap_t from_os, uint32_t to_os)
{
    struct __user_cap_data_struct before[2], without[2];
    long r = swap_capabilities(before, false);

    if (r < 0)
        return r;
    without[0] = before[0];
    without[1] = before[1];
    without[CAP_TO_INDEX(CAP_SYS_NICE)].effective &= ~CAP_TO_MASK(CAP_SYS_NICE);
    r = swap_capabilities(without, true);
    if (r < 0)
        return r;
    r = migrate(pid, from_os, to_os);
    /* Permitted capabilities may always be made effective again. */
    (void)swap_capabilities(before, true);
    return r;
}

static int ops_set_cpus(void *context, hwloc_const_bitmap_t cpus)
{
    unsigned long words[CPU_WORDS];

    if (hwloc_bitmap_to_ulongs(cpus, CPU_WORDS, words) < 0)
        return -ENOMEM;
    return syscall(SYS_sched_setaffinity, 0, sizeof(words), words) < 0 ? -errno : 0;
}

static int ops_set_nice(void *context, int nice)
{
    return setpriority(PRIO_PROCESS, (id_t)gettid(), nice) < 0 ? -errno : 0;
}

static int ops_memory_device(void *context, uint64_t *ret)
{
    CLEANUP_CLOSE int fd = memfd_create("numaplace", MFD_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    *ret = st.st_dev;
    return 0;
}

static uint64_t ops_now_usec(void *context)
{
    return time_now_usec();
}

const MoverOps mover_ops_kernel = {
    .open_process = ops_open_process,
    .is_alive = ops_is_alive,
    .read_file = ops_read_file,
    .read_lines = ops_read_lines,
    .move_pages = ops_move_pages,
    .migrate_pages = ops_migrate_pages,
    .set_cpus = ops_set_cpus,
    .set_nice = ops_set_nice,
    .memory_device = ops_memory_device,
    .now_usec = ops_now_usec,
};
