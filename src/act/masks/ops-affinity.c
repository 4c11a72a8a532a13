/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* sched_setaffinity(2) takes a bare task number, and numbers are reused. There is no such call for a pidfd,
 * so the start time is read before and after: the first read keeps the change from hitting a successor, and
 * the second tells whether one slipped in between. In that gap of some microseconds the kernel would have to
 * allocate every other free number before it reuses this one.
 *
 * The system calls are made directly, because the C library's cpu_set_t ends at 1024 CPUs. */

#include "act/act.h"
#include "act/fence/place.h"
#include "act/place.h"
#include "base/parse.h"
#include "base/root.h"
#include "base/scan.h"
#include "base/time.h"
#include "kernel/procstat.h"

#include <fcntl.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* About twenty entries. */
#define WALK_BYTES 512U
/* About five hundred threads. */
#define WALK_THREADS_BYTES 16384U

/* A path for each of a dozen hierarchies, or 65,536 supplementary groups. */
#define PLACE_TEXT_MAX (1U << 20)

/* More CPU time than fork(2) uses, in ticks of a hundredth of a second: a fixed part, and what it copies. A child with
 * our mask that a longer call yields is not looked for. Measured on a machine of two CPUs:
 *
 *     memory                                      in one tick, of memory   of page tables
 *     1 GiB without gaps                                         450 MB             1 MB
 *     30,000 mappings of a page, a page apart                     20 MB
 *     16,384 pages, 2 MB apart                             4 to   19 MB      4 to  19 MB
 *     30,000 mappings of a page, 2 MB apart                2 to   13 MB      2 to  13 MB
 *
 * So resident memory tells enough of pages and mappings without large gaps, and page tables of all others. */
#define FORK_TICKS                2U
#define FORK_BYTES_PER_TICK       (20ULL << 20)
#define FORK_TABLE_BYTES_PER_TICK (1ULL << 20)

#define MASK_WORD_BITS (8U * sizeof(unsigned long))
#define MASK_WORDS     ((PARSE_CPU_MAX + 1U) / MASK_WORD_BITS)

/* The descriptor in the context: where /proc and /sys are. */
static int affinity_root(const void *context)
{
    return *(const int *)context;
}

/* Maps the errno of a task's system call or file to GONE, REFUSED or RETRY. */
static ActResult affinity_result(int error)
{
    switch (error) {
    case ESRCH:
    case ENOENT:
        return ACT_E_GONE;
    case EAGAIN:
    case EBUSY:
    case EINTR:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return ACT_E_RETRY;
    default: /* EPERM, EACCES, EINVAL, and whatever a system call filter may return */
        return ACT_E_REFUSED;
    }
}

/* As procstat_read_task(). Returns 0 or an ActResult. */
static int affinity_read_stat(int root_fd, pid_t pid, pid_t tid, ProcStat *ret)
{
    int r = procstat_read_task(root_fd, pid, tid, ret);

    if (r == -EINVAL)
        return ACT_E_RETRY;
    return r < 0 ? (int)affinity_result(-r) : 0;
}

static int check_identity(int root_fd, TaskKey task)
{
    ProcStat stat;
    int r = affinity_read_stat(root_fd, task.pid, task.tid, &stat);

    if (r != 0)
        return r;
    return stat.start_ticks == task.start_ticks ? 0 : ACT_E_GONE;
}

static int affinity_get_online(void *context, hwloc_bitmap_t ret)
{
    return root_read_list(affinity_root(context), "sys/devices/system/cpu/online", ret);
}

static int affinity_get_isolated(void *context, hwloc_bitmap_t ret)
{
    return root_read_list(affinity_root(context), "sys/devices/system/cpu/isolated", ret);
}

static int affinity_get_cpuset(void *context, pid_t tid, hwloc_bitmap_t ret)
{
    return fence_cpuset(affinity_root(context), tid, ret);
}

static int raw_get(pid_t tid, hwloc_bitmap_t ret)
{
    unsigned long words[MASK_WORDS] = {0};
    long n = syscall(SYS_sched_getaffinity, tid, sizeof(words), words);

    if (n < 0)
        return affinity_result(errno);
    return hwloc_bitmap_from_ulongs(ret, (unsigned)((size_t)n / sizeof(words[0])), words) < 0 ? -ENOMEM : 0;
}

static int raw_set(pid_t tid, hwloc_const_bitmap_t mask)
{
    unsigned long words[MASK_WORDS];

    /* The kernel ignores bits beyond its CPUs, so an infinite mask needs no care. */
    if (hwloc_bitmap_to_ulongs(mask, MASK_WORDS, words) < 0)
        return -ENOMEM;
    return syscall(SYS_sched_setaffinity, tid, sizeof(words), words) < 0 ? (int)affinity_result(errno) : 0;
}

static int affinity_get_mask(void *context, TaskKey task, hwloc_bitmap_t ret)
{
    int r = raw_get(task.tid, ret);

    /* One look at the start time is enough if it comes last: the task with this number also had it before. */
    return r != 0 ? r : check_identity(affinity_root(context), task);
}

/* Whether the thread got less than `mask`, apart from offline CPUs. */
static int check_cut(void *context, pid_t tid, hwloc_const_bitmap_t mask)
{
    CLEANUP_BITMAP hwloc_bitmap_t have = hwloc_bitmap_alloc(), online = hwloc_bitmap_alloc();
    int r = have && online ? raw_get(tid, have) : -ENOMEM;

    if (r != 0 || hwloc_bitmap_isincluded(mask, have))
        return r;
    r = affinity_get_online(context, online);
    if (r < 0)
        return r;
    if (hwloc_bitmap_and(online, online, mask) < 0)
        return -ENOMEM;
    return hwloc_bitmap_isincluded(online, have) ? 0 : ACT_E_CUT;
}

static int affinity_set_mask(void *context, TaskKey task, hwloc_const_bitmap_t via, hwloc_const_bitmap_t mask)
{
    int r = check_identity(affinity_root(context), task), cut;

    if (r != 0)
        return r;
    if (via) {
        r = raw_set(task.tid, via);
        if (r != 0)
            return r;
    }
    r = raw_set(task.tid, mask);
    if (r != 0)
        return r;

    cut = check_cut(context, task.tid, mask);
    r = check_identity(affinity_root(context), task);
    return r != 0 ? r : cut;
}

/* Finds the next entry whose name is a task number. 1; 0 at the end; -errno. */
static int next_number(DIR *dir, pid_t *ret)
{
    struct dirent *entry;

    for (;;) {
        errno = 0;
        entry = readdir(dir);
        if (!entry)
            return -errno;
        if (scan_pid(entry->d_name, ret))
            return 1;
    }
}

static int affinity_list_threads(void *context, pid_t pid, uint64_t start_ticks, TaskKey **ret, size_t *ret_n)
{
    int root_fd = affinity_root(context), r;
    CLEANUP(closedir_p) DIR *dir = NULL;
    CLEANUP_FREE TaskKey *keys = NULL;
    size_t n = 0, capacity = 0;
    char path[64];
    pid_t tid = 0;

    r = check_identity(root_fd, (TaskKey){.pid = pid, .tid = pid, .start_ticks = start_ticks});
    if (r != 0)
        return r;
    (void)snprintf(path, sizeof(path), "proc/%d/task", pid);
    dir = root_open_directory(root_fd, path);
    if (!dir)
        return affinity_result(errno);

    while ((r = next_number(dir, &tid)) > 0) {
        ProcStat stat;

        r = affinity_read_stat(root_fd, pid, tid, &stat);
        if (r == ACT_E_GONE)
            continue;
        if (r != 0)
            return r;
        if (stat.flags & PROCSTAT_FLAG_NO_SETAFFINITY)
            continue;
        if (APPEND(keys, capacity, n, (TaskKey){.pid = pid, .tid = tid, .start_ticks = stat.start_ticks}) < 0)
            return -ENOMEM;
    }
    if (r < 0)
        return affinity_result(-r);

    *ret = TAKE_PTR(keys);
    *ret_n = n;
    return 0;
}

/* Handles one thread met on a walk. Returns 0, or the reason why it cannot be read. */
static int walk_thread(int root_fd, pid_t tid, hwloc_bitmap_t have, const ActThreadWalk *walk)
{
    ProcStat stat = {0};
    int r = raw_get(tid, have);

    if (r == 0 && !walk->wants(walk->userdata, have))
        return 0;
    if (r == 0)
        r = affinity_read_stat(root_fd, walk->pid, tid, &stat);
    if (r == 0 && !(stat.flags & PROCSTAT_FLAG_NO_SETAFFINITY))
        walk->visit(walk->userdata, (TaskKey){.pid = walk->pid, .tid = tid, .start_ticks = stat.start_ticks});
    return r == ACT_E_GONE ? 0 : r;
}

/* Reads one buffer at a time and uses all of it, because the kernel knows where the next one begins only as
 * long as nobody seeks. */
static int walk_on(int root_fd, hwloc_bitmap_t have, ActThreadWalk *walk)
{
    alignas(struct dirent64) char buf[WALK_THREADS_BYTES];
    size_t n_met = 0;
    int r = 0;

    while (r == 0 && (walk->n_max == 0 || n_met < walk->n_max)) {
        long n = syscall(SYS_getdents64, walk->fd, buf, sizeof(buf));

        if (n <= 0) {
            walk->more = false;
            return n == 0 || errno == ENOENT ? 0 : affinity_result(errno);
        }
        for (long at = 0; at < n && r == 0;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(buf + at);
            pid_t tid = 0;

            if (scan_pid(entry->d_name, &tid))
                r = walk_thread(root_fd, tid, have, walk);
            n_met++;
            at += entry->d_reclen;
        }
    }
    return r;
}

static int walk_begin(int root_fd, ActThreadWalk *walk)
{
    char path[64];
    int r = check_identity(root_fd,
                           (TaskKey){.pid = walk->pid, .tid = walk->pid, .start_ticks = walk->start_ticks});

    if (r != 0)
        return r;
    (void)snprintf(path, sizeof(path), "proc/%d/task", walk->pid);
    walk->fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return walk->fd < 0 ? (int)affinity_result(errno) : 0;
}

/* The mask is read first, as in affinity_walk(). */
static int affinity_walk_threads(void *context, ActThreadWalk *walk)
{
    int root_fd = affinity_root(context);
    CLEANUP_BITMAP hwloc_bitmap_t have = hwloc_bitmap_alloc();
    int r = have ? 0 : -ENOMEM;

    walk->more = false;
    if (r == 0 && walk->fd < 0)
        r = walk_begin(root_fd, walk);
    if (r == 0) {
        walk->more = true;
        r = walk_on(root_fd, have, walk);
    }
    if (r != 0 || !walk->more) {
        walk->more = false;
        close_p(&walk->fd);
        walk->fd = -1;
    }
    return r;
}

/* An exiting process creates no more children, and where hundreds of tasks share a CPU, exiting may take seconds. */
static ActProcess from_stat(pid_t pid, const ProcStat *stat)
{
    bool ended = stat->state == 'Z' || stat->state == 'X' || (stat->flags & PROCSTAT_FLAG_EXITING) != 0;

    /* The first thread may end before the others. */
    return (ActProcess){
        .pid = pid,
        .parent = stat->ppid,
        .pgrp = stat->pgrp,
        .session = stat->session,
        .start_ticks = stat->start_ticks,
        .cpu = stat->processor,
        .ended = ended && stat->num_threads <= 1,
    };
}

static int compare_processes(const void *a, const void *b)
{
    const ActProcess *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

static int affinity_list_processes(void *context, ActProcess **ret, size_t *ret_n)
{
    int root_fd = affinity_root(context), r;
    CLEANUP(closedir_p) DIR *dir = root_open_directory(root_fd, "proc");
    CLEANUP_FREE ActProcess *processes = NULL;
    size_t n = 0, capacity = 0;
    pid_t pid = 0;

    if (!dir)
        return -errno;
    while ((r = next_number(dir, &pid)) > 0) {
        ProcStat stat = {0};

        /* A process that cannot be read cannot be judged, and so is left alone. */
        if (affinity_read_stat(root_fd, pid, 0, &stat) != 0 || (stat.flags & PROCSTAT_FLAG_KTHREAD))
            continue;
        if (APPEND(processes, capacity, n, from_stat(pid, &stat)) < 0)
            return -ENOMEM;
    }
    if (r < 0)
        return r;

    if (n > 0)
        qsort(processes, n, sizeof(*processes), compare_processes);
    *ret = TAKE_PTR(processes);
    *ret_n = n;
    return 0;
}

/* Handles one process met on a walk. */
static void walk_one(int root_fd, pid_t pid, hwloc_bitmap_t have, ActWalk *walk)
{
    ProcStat stat = {0};
    int r = raw_get(pid, have);

    if (r == 0 && !walk->wants(walk->userdata, have))
        return;
    r = r == 0 ? affinity_read_stat(root_fd, pid, 0, &stat) : r;
    walk->n_gone += r == ACT_E_GONE;
    if (r == 0 && !(stat.flags & PROCSTAT_FLAG_KTHREAD)) {
        ActProcess process = from_stat(pid, &stat);

        walk->visit(walk->userdata, &process);
    }
}

/* The mask is read first: that is one system call of less than a microsecond, where stat takes ten, and
 * nearly all processes are of no interest. The directory is read in small pieces: readdir(3) fetches a
 * thousand entries at a time, and producing these takes the kernel longer than some processes live. A
 * successor has a higher number than its parent and so is still ahead of the walk, unless the numbers wrap
 * around. Where millions of numbers are in use, one successor after another can be ahead for a long time. */
static int affinity_walk(void *context, ActWalk *walk)
{
    CLEANUP_CLOSE int fd = openat(affinity_root(context), "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_BITMAP hwloc_bitmap_t have = hwloc_bitmap_alloc();
    alignas(struct dirent64) char buf[WALK_BYTES];
    long n;

    if (fd < 0)
        return -errno;
    if (!have)
        return -ENOMEM;
    walk->n_gone = 0;
    while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
        if (walk->until_usec > 0 && time_now_usec() >= walk->until_usec)
            return -ETIMEDOUT;
        for (long at = 0; at < n;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(buf + at);
            pid_t pid = 0;

            if (scan_pid(entry->d_name, &pid))
                walk_one(affinity_root(context), pid, have, walk);
            at += entry->d_reclen;
        }
    }
    return n < 0 ? -errno : 0;
}

/* Reads it as a thread, because /proc/PID/stat also sums over all threads, which takes 0.3 us for each. */
static int affinity_read_process(void *context, pid_t pid, ActProcess *ret)
{
    ProcStat stat;
    int r = affinity_read_stat(affinity_root(context), pid, pid, &stat);

    if (r == 0)
        *ret = from_stat(pid, &stat);
    return r;
}

/* Version 1 hierarchies show an exiting task in their roots, so whether it exits is read afterwards. */
static int read_place(int root_fd, pid_t pid, pid_t tid, uint64_t *ret)
{
    CLEANUP_FREE char *text = NULL;
    uint64_t place = ACT_PLACE_UNKNOWN;
    ProcStat stat;
    size_t len;
    char path[64];
    int r;

    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/cgroup", pid, tid);
    if (root_read_alloc(root_fd, path, PLACE_TEXT_MAX, &text, &len) == 0)
        place = place_of_cgroups(text);
    r = affinity_read_stat(root_fd, pid, tid, &stat);
    if (r != 0)
        return r;
    if ((stat.flags & PROCSTAT_FLAG_EXITING) != 0)
        return ACT_E_GONE;
    *ret = place;
    return 0;
}

/* The first thread may have ended before the others. */
static int affinity_get_place(void *context, pid_t pid, uint64_t *ret)
{
    int root_fd = affinity_root(context), r = read_place(root_fd, pid, pid, ret);
    CLEANUP(closedir_p) DIR *dir = NULL;
    char path[64];
    pid_t tid = 0;

    if (r != ACT_E_GONE)
        return r;
    (void)snprintf(path, sizeof(path), "proc/%d/task", pid);
    dir = root_open_directory(root_fd, path);
    while (dir && r == ACT_E_GONE && next_number(dir, &tid) > 0)
        r = read_place(root_fd, pid, tid, ret);
    return r;
}

static bool affinity_is_first(void *context, pid_t pid)
{
    CLEANUP_FREE char *text = NULL;
    size_t len;
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%d/status", pid);
    return root_read_alloc(affinity_root(context), path, PLACE_TEXT_MAX, &text, &len) == 0 &&
           place_is_first(text);
}

/* Little can be told from outside about tasks that are being created: fork(2) copies the mask before the task
 * has a number. */

static int affinity_birth_mark(void *context, ActBirthMark *ret)
{
    char text[256];
    const char *last;
    ssize_t n = root_read(affinity_root(context), "proc/loadavg", text, sizeof(text));
    long hz = sysconf(_SC_CLK_TCK);
    int32_t number;

    if (n < 0)
        return (int)n;
    last = strrchr(text, ' ');
    text[strcspn(text, "\n")] = '\0';
    if (!last || parse_i32(last, &number) < 0 || number < 0)
        return -EBADMSG;
    if (hz <= 0)
        return -EOPNOTSUPP;

    ret->ticks = time_boot_nsec() / (NSEC_PER_SEC / (uint64_t)hz);
    ret->last = number;
    return 0;
}

/* Only some places where a thread waits in fork(2) are known, by the kernel's names of its functions. */
static bool affinity_waits_in_fork(void *context, TaskKey task)
{
    static const char *const places[] = {
        "dup_mm",         "dup_fd",        "copy_process",       "copy_page_range",
        "anon_vma_clone", "anon_vma_fork", "cgroup_css_set_fork"};
    char path[64], text[128];

    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/wchan", task.pid, task.tid);
    if (root_read(affinity_root(context), path, text, sizeof(text)) <= 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (strncmp(text, places[i], strlen(places[i])) == 0)
            return true;
    return false;
}

static ActForkState fork_state(void *context, TaskKey task, const ProcStat *stat)
{
    /* An exiting thread does not fork any more, and may wait for the same locks. */
    if (stat->flags & PROCSTAT_FLAG_EXITING)
        return ACT_FORK_NO;
    if (stat->state == 'D')
        return affinity_waits_in_fork(context, task) ? ACT_FORK_INSIDE : ACT_FORK_BLOCKED;
    return stat->state == 'R' ? ACT_FORK_RUNNING : ACT_FORK_NO;
}

/* The size of the page tables of its process; 0 if that is not known. */
static uint64_t table_bytes(void *context, TaskKey task)
{
    static const char key[] = "\nVmPTE:";
    CLEANUP_FREE char *text = NULL;
    const char *p = NULL;
    uint64_t kb = 0;
    size_t len;
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/status", task.pid, task.tid);
    if (root_read_alloc(affinity_root(context), path, PLACE_TEXT_MAX, &text, &len) == 0)
        p = strstr(text, key);
    if (!p)
        return 0;
    p += strlen(key);
    p += strspn(p, " \t");
    return scan_u64(&p, &kb) ? MIN(kb, UINT64_MAX >> 10) << 10 : 0;
}

static int affinity_may_fork(void *context, TaskKey task, ActFork *ret)
{
    ProcStat stat = {0};
    int r = affinity_read_stat(affinity_root(context), task.pid, task.tid, &stat);

    if (r == 0 && stat.start_ticks != task.start_ticks)
        r = ACT_E_GONE;
    if (r != 0)
        return r;
    *ret = (ActFork){
        .state = fork_state(context, task, &stat),
        .ticks = stat.utime_ticks + stat.stime_ticks,
        .most_ticks = FORK_TICKS + stat.rss_pages / (FORK_BYTES_PER_TICK / (uint64_t)sysconf(_SC_PAGESIZE)),
    };
    if (ret->state != ACT_FORK_NO)
        ret->most_ticks += table_bytes(context, task) / FORK_TABLE_BYTES_PER_TICK;
    return 0;
}

/* A dry run reads everything in the same way, as if it were going to act. */
#define AFFINITY_READS                                                                                       \
    .get_online = affinity_get_online, .get_isolated = affinity_get_isolated,                                \
    .get_cpuset = affinity_get_cpuset, .get_mask = affinity_get_mask, .list_threads = affinity_list_threads, \
    .walk_threads = affinity_walk_threads, .list_processes = affinity_list_processes, .walk = affinity_walk, \
    .read_process = affinity_read_process, .get_place = affinity_get_place, .is_first = affinity_is_first,   \
    .birth_mark = affinity_birth_mark, .may_fork = affinity_may_fork,                                        \
    .waits_in_fork = affinity_waits_in_fork

const ActOps act_ops_affinity = {.changes = true, .set_mask = affinity_set_mask, AFFINITY_READS};

/* Callers check ActOps.changes first; this refusal is a second safeguard. */
static int dry_run_set_mask(void *context, TaskKey task, hwloc_const_bitmap_t via, hwloc_const_bitmap_t mask)
{
    return ACT_E_REFUSED;
}

const ActOps act_ops_dry_run = {.changes = false, .set_mask = dry_run_set_mask, AFFINITY_READS};
