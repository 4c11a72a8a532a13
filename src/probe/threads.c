/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The threads of one process: those listed in its task directory are merged with those in the World. A number that was
 * given to another thread since is found because the first one is seen to be gone: its descriptor says so, and where
 * none is kept open, a rolling re-read of start times does. */

#include "base/root.h"
#include "base/scan.h"
#include "probe/probe-internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PF_NO_SETAFFINITY 0x04000000U /* the kernel refuses to change the mask: <linux/sched.h> */

static int compare_pids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

    return x < y ? -1 : x > y;
}

/* A file name that is a number; 0: it is not one. */
static pid_t parse_number(const char *name)
{
    uint64_t v;

    return scan_u64(&name, &v) && !*name && v <= INT32_MAX ? (pid_t)v : 0;
}

int probe_list_numbers(DIR *dir, pid_t **array, size_t *capacity, size_t *ret_n)
{
    const struct dirent *entry;
    bool sorted = true;
    size_t n = 0;

    for (;;) {
        pid_t v;

        errno = 0;
        entry = readdir(dir);
        if (!entry)
            break;
        v = parse_number(entry->d_name);
        if (v == 0)
            continue;
        if (!util_grow((void **)array, capacity, n + 1, sizeof(**array)))
            return -ENOMEM;
        (*array)[n] = v;
        sorted = sorted && (n == 0 || (*array)[n - 1] < v);
        n++;
    }
    /* The task directory of a process that ends while it is read: what was listed is still good. */
    if (errno > 0 && errno != ENOENT && errno != ESRCH)
        return -errno;

    /* The kernel lists processes in order, and threads in the order of their birth. */
    if (!sorted)
        qsort(*array, n, sizeof(**array), compare_pids);
    *ret_n = n;
    return 0;
}

void probe_process_gone(World *world, Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n);

    for (size_t i = first; i < first + n; i++)
        world->tasks[i].gone = true;
    process->gone = true;
}

/* Reads what is needed of a new thread; everything but its loads. */
static int read_thread(Probe *probe, World *world, size_t process, const Subject *subject, pid_t tid,
                       Task *ret)
{
    ProcStat stat = subject->stat; /* but for CPU times, it is that of the first thread */
    char path[32];
    int r = 0;

    if (tid != subject->pid) {
        (void)snprintf(path, sizeof(path), "task/%d/stat", (int)tid);
        r = subject_read_stat(probe, subject->fd, path, &stat);
    }
    if (r < 0)
        return r;

    *ret = (Task){
        .tid = tid,
        .process = {(int32_t)process},
        .start_ticks = stat.start_ticks,
        .task_class = (uint8_t)probe_task_class(stat.policy),
        .fresh = true,
        .last_cpu =
            (uint32_t)stat.processor < world->topology->cpu_limit ? (CpuIx){stat.processor} : CPU_NONE,
        .lease = -1,
    };
    memcpy(ret->comm, stat.comm, sizeof(ret->comm));

    r = probe_mask_read(probe, world, &world->processes[process], tid, &ret->allowed);
    if (r < 0)
        return r;
    ret->hands = (uint8_t)(stat.flags & PF_NO_SETAFFINITY
                               ? TASK_HANDS_PER_CPU
                               : probe_mask_judge(probe, world, &world->processes[process], ret));
    return 0;
}

/* Adds one thread to the World, with a reader. 0 also when it is skipped: gone again, or it does not parse. */
static int add_thread(Probe *probe, World *world, size_t process, const Subject *subject, pid_t tid)
{
    Reader *reader;
    Task task;
    int r, fd;

    if (world->n_tasks >= probe->options.max_tasks) {
        probe->statistics.n_over_limit++;
        return 0;
    }
    r = read_thread(probe, world, process, subject, tid, &task);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        probe->statistics.n_gone += probe_error_is_gone(r);
        return 0;
    }

    r = readers_take(&probe->readers, &task.reader);
    if (r < 0)
        return r;
    reader = &probe->readers.slots[task.reader];
    reader->hands_before = task.hands;
    if (probe->readers.n_open < probe->readers.max_open) {
        fd = probe_task_open(probe, subject->pid, tid);
        if (fd >= 0 && !readers_keep(&probe->readers, reader, fd))
            close_p(&fd);
    }
    r = world_add_task(world, &task);
    return r == -ENOMEM ? r
                        : 0; /* -EEXIST: its number was another's until just now; the next pass takes it in */
}

/* Most processes have one thread, and its number is theirs; the next pass sees that there are more. */
static int list_threads(Probe *probe, const Subject *subject)
{
    DIR *dir;
    int fd, r;

    if (subject->stat.num_threads == 1) {
        if (!GROW(probe->tids, probe->tids_capacity, 1))
            return -ENOMEM;
        probe->tids[0] = subject->pid;
        probe->n_tids = 1;
        return 0;
    }
    fd = openat(subject->fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    dir = fdopendir(fd);
    if (!dir) {
        r = -errno;
        close_p(&fd);
        return r;
    }
    r = probe_list_numbers(dir, &probe->tids, &probe->tids_capacity, &probe->n_tids);
    (void)closedir(dir);
    return r;
}

/* Marks the threads in the World that are not listed any more, and leaves in probe->tids those that are not in the
 * World yet. */
static void match_threads(Probe *probe, World *world, size_t process)
{
    size_t n, first = world_process_tasks(world, &world->processes[process], &n), n_new = 0, t = 0;

    for (size_t i = 0; i < n; i++) {
        Task *task = &world->tasks[first + i];

        while (t < probe->n_tids && probe->tids[t] < task->tid)
            probe->tids[n_new++] = probe->tids[t++];
        if (t < probe->n_tids && probe->tids[t] == task->tid) {
            t++;
        } else if (!task->gone) {
            task->gone = true;
            probe->statistics.n_gone++;
        }
    }
    while (t < probe->n_tids)
        probe->tids[n_new++] = probe->tids[t++];
    probe->n_tids = n_new;
}

int probe_threads_refresh(Probe *probe, World *world, size_t process, const Subject *subject)
{
    int r = list_threads(probe, subject);

    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        if (probe_error_is_gone(r))
            probe_process_gone(world, &world->processes[process]);
        return 0;
    }

    match_threads(probe, world, process);
    for (size_t i = 0; i < probe->n_tids && r == 0; i++)
        r = add_thread(probe, world, process, subject, probe->tids[i]);
    return r;
}

/* Reads a thread's stat again: whether it is still the same one, and what may change, its name. */
static void validate(Probe *probe, World *world, Task *task)
{
    ProcStat stat;
    int r = subject_look_up_stat(probe, world->processes[task->process.i].pid, task->tid, &stat);

    if (probe_error_is_gone(r) || (r == 0 && stat.start_ticks != task->start_ticks)) {
        task->gone = true;
        probe->statistics.n_gone++;
    } else if (r < 0) {
        probe_task_failed(&probe->readers.slots[task->reader], task);
    } else {
        memcpy(task->comm, stat.comm, sizeof(task->comm));
    }
}

void probe_threads_validate(Probe *probe, World *world)
{
    size_t n = MIN((world->n_tasks + DISCOVER_ROLL - 1) / DISCOVER_ROLL, (size_t)THREADS_PER_PASS);

    for (size_t i = 0; i < n; i++) {
        Task *task = &world->tasks[(probe->thread_cursor + i) % world->n_tasks];

        /* That of a first thread is its process's, which every pass reads. */
        if (!task->gone && task->tid != world->processes[task->process.i].pid)
            validate(probe, world, task);
    }
    probe->thread_cursor = world->n_tasks > 0 ? (probe->thread_cursor + n) % world->n_tasks : 0;
}
