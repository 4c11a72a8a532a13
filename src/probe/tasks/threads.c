/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The threads of one process: those listed in its task directory are merged with those in the World. For a large
 * process this takes many passes (ThreadCourse), each of which lists, or reads, as many as a tick has time for; other
 * large processes wait. A thread that starts or ends meanwhile is seen the next time, because then the numbers differ.
 *
 * A reused TID is found because the former thread is seen to be gone: by its descriptor or, where none is kept open,
 * by a rolling reread of start times. */

#include "base/root.h"
#include "base/scan.h"
#include "base/time.h"
#include "probe/probe-internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static int compare_pids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

    return x < y ? -1 : x > y;
}

/* Lists up to `max` more. 1: there may be more of them; 0: that was all; or -errno. */
static int list_some(DIR *dir, pid_t **array, size_t *capacity, size_t *n_listed, size_t max)
{
    const struct dirent *entry;
    size_t n = *n_listed, end = max < SIZE_MAX - n ? n + max : SIZE_MAX;

    for (;;) {
        pid_t v;

        if (n >= end) {
            *n_listed = n;
            return 1;
        }
        errno = 0;
        entry = readdir(dir);
        if (!entry)
            break;
        if (!scan_pid(entry->d_name, &v))
            continue;
        if (!util_grow((void **)array, capacity, n + 1, sizeof(**array)))
            return -ENOMEM;
        (*array)[n++] = v;
    }
    /* The process may end while its task directory is read: what was listed is still good. */
    if (errno > 0 && errno != ENOENT && errno != ESRCH)
        return -errno;
    *n_listed = n;
    return 0;
}

/* The kernel lists processes in order, but threads in order of creation. */
static void sort_numbers(pid_t *array, size_t n)
{
    bool sorted = true;

    for (size_t i = 1; i < n && sorted; i++)
        sorted = array[i - 1] < array[i];
    if (!sorted)
        qsort(array, n, sizeof(*array), compare_pids);
}

int probe_list_numbers(DIR *dir, pid_t **array, size_t *capacity, size_t *ret_n)
{
    size_t n = 0;
    int r = list_some(dir, array, capacity, &n, SIZE_MAX);

    if (r < 0)
        return r;
    sort_numbers(*array, n);
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

/* Reads what is needed of a new thread, except its loads. */
static int read_thread(Probe *probe, World *world, size_t process, const Subject *subject, pid_t tid,
                       Task *ret)
{
    ProcStat stat = subject->stat; /* except for CPU times, it is that of the first thread */
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
    ret->hands = (uint8_t)(stat.flags & PROCSTAT_FLAG_NO_SETAFFINITY
                               ? TASK_HANDS_PER_CPU
                               : probe_mask_judge(probe, world, &world->processes[process], ret));
    return 0;
}

/* Whether no more threads of this process are added: there is no room, or it has as much as it leaves to others. */
static bool is_over_limit(const Probe *probe, const World *world, const Process *process)
{
    size_t n, n_others;

    (void)world_process_tasks(world, process, &n);
    n_others = world->n_tasks - n;
    return n_others >= probe->options.max_tasks || n >= (probe->options.max_tasks - n_others + 1) / 2;
}

/* Adds one thread to the World, with a reader. 0 also when it is skipped: over the limit, gone again, or
 * unparsable. */
static int add_thread(Probe *probe, World *world, size_t process, const Subject *subject, pid_t tid)
{
    Reader *reader;
    Task task;
    int r, fd;

    if (is_over_limit(probe, world, &world->processes[process])) {
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
                        : 0; /* -EEXIST: the TID was another thread's until just now; the next pass adds it */
}

/* Most processes have one thread, with their own number. If there are more by now, the next pass sees that. */
static int list_threads(Probe *probe, const Subject *subject)
{
    CLEANUP(closedir_p) DIR *dir = NULL;

    if (subject->stat.num_threads == 1) {
        if (!GROW(probe->tids, probe->tids_capacity, 1))
            return -ENOMEM;
        probe->tids[0] = subject->pid;
        probe->n_tids = 1;
        return 0;
    }
    dir = root_open_directory(subject->fd, "task");
    if (!dir)
        return probe_note_error(probe, -errno);
    return probe_list_numbers(dir, &probe->tids, &probe->tids_capacity, &probe->n_tids);
}

/* Whether a thread that was not listed has ended. If the one where a listing was to go on ends, the kernel counts its
 * way from the first thread instead, and so leaves out as many others as have ended meanwhile. */
static bool has_left(const Subject *subject, pid_t tid)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "task/%d", (int)tid);
    return !root_has(subject->fd, path);
}

/* Marks threads in the World gone that are not listed any more, and leaves in `tids` those that are not in
 * the World yet. Returns the number of the latter. */
static size_t match_threads(Probe *probe, World *world, size_t process, const Subject *subject, pid_t *tids,
                            size_t n_tids)
{
    size_t n, first = world_process_tasks(world, &world->processes[process], &n), n_new = 0, t = 0;

    for (size_t i = 0; i < n; i++) {
        Task *task = &world->tasks[first + i];

        while (t < n_tids && tids[t] < task->tid)
            tids[n_new++] = tids[t++];
        if (t < n_tids && tids[t] == task->tid) {
            t++;
        } else if (!task->gone && has_left(subject, task->tid)) {
            task->gone = true;
            probe->statistics.n_gone++;
        }
    }
    while (t < n_tids)
        tids[n_new++] = tids[t++];
    return n_new;
}

/*
 * Large processes
 */

void probe_course_done(ThreadCourse *course)
{
    if (course->dir)
        (void)closedir(course->dir);
    close_p(&course->subject.fd);
    free(course->tids);
    *course = (ThreadCourse){.subject.fd = -1};
}

static Process *course_process(const ThreadCourse *course, World *world)
{
    Process *process = course->subject.fd >= 0 ? world_process(world, course->subject.pid) : NULL;

    return process && !process->gone && process->start_ticks == course->subject.stat.start_ticks ? process
                                                                                                 : NULL;
}

static int course_begin(ThreadCourse *course, const Subject *subject)
{
    int r = 0;

    probe_course_done(course);
    course->subject.fd = fcntl(subject->fd, F_DUPFD_CLOEXEC, 0);
    if (course->subject.fd < 0)
        return -errno;
    course->subject.pid = subject->pid;
    course->subject.stat = subject->stat;
    course->dir = root_open_directory(subject->fd, "task");
    if (!course->dir) {
        r = -errno;
        probe_course_done(course);
    }
    return r;
}

/* The step when all are listed: adds new threads. Returns 0 or -ENOMEM. */
static int course_add(Probe *probe, World *world, size_t process)
{
    ThreadCourse *course = &probe->course;
    size_t end = MIN(course->at + probe_batch(probe) / THREADS_BATCH_SHARE, course->n_tids);
    uint64_t until_usec = time_now_usec() + THREADS_STEP_USEC;

    while (course->at < end && (course->at % THREADS_CLOCK != 0 || time_now_usec() < until_usec)) {
        int r = add_thread(probe, world, process, &course->subject, course->tids[course->at++]);

        if (r < 0)
            return r;
    }
    if (course->at == course->n_tids)
        probe_course_done(course);
    return 0;
}

static int course_step(Probe *probe, World *world, size_t process)
{
    ThreadCourse *course = &probe->course;
    int r;

    if (!course->dir)
        return course_add(probe, world, process);
    r = list_some(course->dir, &course->tids, &course->tids_capacity, &course->n_tids, probe_batch(probe));
    if (r < 0)
        probe_course_done(course);
    if (r != 0)
        return r == -ENOMEM ? r : 0;
    (void)closedir(course->dir);
    course->dir = NULL;
    sort_numbers(course->tids, course->n_tids);
    course->n_tids = match_threads(probe, world, process, &course->subject, course->tids, course->n_tids);
    if (course->n_tids == 0)
        probe_course_done(course);
    return 0;
}

bool probe_unfinished(const Probe *probe)
{
    return probe->course.subject.fd >= 0;
}

int probe_go_on(Probe *probe, World *world)
{
    Process *process = course_process(&probe->course, world);

    if (process)
        return course_step(probe, world, (size_t)(process - world->processes));
    probe_course_done(&probe->course);
    return 0;
}

/* Begins a course, if none is under way. The next tick makes its first step. */
static int refresh_large(Probe *probe, World *world, size_t process, const Subject *subject)
{
    size_t n;
    int r;

    if (is_over_limit(probe, world, &world->processes[process])) {
        (void)world_process_tasks(world, &world->processes[process], &n);
        probe->statistics.n_over_limit += subject->stat.num_threads - MIN(n, subject->stat.num_threads);
        return 0;
    }
    if (course_process(&probe->course, world))
        return 0;
    r = course_begin(&probe->course, subject);
    if (probe_error_is_gone(r))
        probe_process_gone(world, &world->processes[process]);
    return r == -ENOMEM ? r : 0;
}

int probe_threads_refresh(Probe *probe, World *world, size_t process, const Subject *subject)
{
    int r;

    if (subject->stat.num_threads > probe_batch(probe) / THREADS_BATCH_SHARE)
        return refresh_large(probe, world, process, subject);
    r = list_threads(probe, subject);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        if (probe_error_is_gone(r))
            probe_process_gone(world, &world->processes[process]);
        return 0;
    }

    probe->n_tids = match_threads(probe, world, process, subject, probe->tids, probe->n_tids);
    for (size_t i = 0; i < probe->n_tids && r == 0; i++)
        r = add_thread(probe, world, process, subject, probe->tids[i]);
    return r;
}

void probe_threads_validate(Probe *probe, World *world)
{
    size_t n = MIN((world->n_tasks + DISCOVER_ROLL - 1) / DISCOVER_ROLL, (size_t)THREADS_PER_PASS);

    for (size_t i = 0; i < n; i++) {
        Task *task = &world->tasks[(probe->thread_cursor + i) % world->n_tasks];

        /* Every pass reads that of a first thread, as part of its process. */
        if (!task->gone && task->tid != world->processes[task->process.i].pid)
            probe_thread_validate(probe, world, task);
    }
    probe->thread_cursor = world->n_tasks > 0 ? (probe->thread_cursor + n) % world->n_tasks : 0;
}
