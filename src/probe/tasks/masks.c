/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Affinity masks, and the eligibility of threads.
 *
 *     mask of a thread we did not change       eligibility
 *     all of its cpuset                        free
 *     the same but for CPUs that were offline  free, before Linux 6.2
 *     the home of its group (or its parent's),
 *     possibly plus one lent CPU               free: started under a mask of ours
 *     narrower than its cpuset otherwise       foreign
 *
 *     mask of a thread we changed              eligibility
 *     what we gave it                          as before
 *     what the kernel made of it, because
 *     a CPU or the cpuset changed              as before
 *     anything else                            re-pinned, and its process is yielded
 *
 * A thread whose change the kernel refused is denied until its cpuset changes, and for no longer than a pause, which
 * doubles while changes are refused.
 *
 * Isolated CPUs (isolcpus=) are in every cpuset but in no mask, so they are left out of the comparison. */

#include "base/parse.h"
#include "base/root.h"
#include "base/time.h"
#include "kernel/taskstat.h"
#include "probe/probe-internal.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* After a refused change the threads of a process are left alone for this long; after each refusal that follows, for
 * twice as long. A cpuset that has changed back is waited for only briefly, and a daemon without the right to change
 * a process tries, and warns, once in an hour. */
#define DENIED_FIRST_USEC (10 * USEC_PER_SEC)
#define DENIED_MAX_USEC   (3600 * USEC_PER_SEC)

static_assert(MASK_BYTES * 8 == PARSE_CPU_MAX + 1, "the buffer holds every CPU number");

TaskClass probe_task_class(uint32_t scheduling_policy)
{
    switch (scheduling_policy) {
    case SCHED_OTHER:
    case SCHED_BATCH:
        return TASK_CLASS_NORMAL;
    case SCHED_FIFO:
    case SCHED_RR:
        return TASK_CLASS_REALTIME;
    case SCHED_IDLE:
        return TASK_CLASS_IDLE;
    case 7: /* SCHED_EXT, not in the C library's header */
        return TASK_CLASS_EXT;
    default: /* 6 is SCHED_DEADLINE. Future classes are not touched either */
        return TASK_CLASS_DEADLINE;
    }
}

void probe_masks_forget(Probe *probe)
{
    probe->mask_last_bytes = 0;
    probe->mask_last_interned = NULL;
}

/* Interns probe->mask cut to online CPUs. */
static int intern_cut(Probe *probe, World *world, CpuMask *ret)
{
    if (hwloc_bitmap_intersects(probe->mask, probe->online) &&
        hwloc_bitmap_and(probe->mask, probe->mask, probe->online) < 0)
        return -ENOMEM;
    *ret = intern_mask(world->pool, probe->mask);
    return *ret ? 0 : -ENOMEM;
}

static int read_live(Probe *probe, World *world, pid_t tid, CpuMask *ret)
{
    unsigned long *words = probe->mask_words;
    /* The raw call returns how much it filled in; the C library's clears 8 KiB each time. */
    long n = syscall(SYS_sched_getaffinity, tid, MASK_BYTES, words);
    int r;

    if (n <= 0)
        return n == 0 ? -EINVAL : -errno;
    /* Many threads in a row have the same mask: recognise it before it is turned into a bitmap. */
    if (probe->mask_last_bytes == (size_t)n && memcmp(words, probe->mask_last, (size_t)n) == 0) {
        *ret = probe->mask_last_interned;
        return 0;
    }

    if (hwloc_bitmap_from_ulongs(probe->mask, (unsigned)((size_t)n / sizeof(*words)), words) < 0)
        return -ENOMEM;
    r = intern_cut(probe, world, ret);
    if (r < 0)
        return r;
    memcpy(probe->mask_last, words, (size_t)n);
    probe->mask_last_bytes = (size_t)n;
    probe->mask_last_interned = *ret;
    return 0;
}

static int read_captured(Probe *probe, World *world, pid_t pid, pid_t tid, CpuMask *ret)
{
    TaskStatus status;
    char path[64];
    ssize_t n;
    int r;

    (void)snprintf(path, sizeof(path), "%d/task/%d/status", (int)pid, (int)tid);
    n = root_read(probe->proc_fd, path, probe->status_text, sizeof(probe->status_text));
    probe->statistics.n_reads++;
    if (n < 0)
        return (int)n;
    r = taskstat_parse_status(probe->status_text, &status);
    if (r == 0)
        r = parse_list(status.cpus_allowed, PARSE_CPU_MAX, probe->mask);
    if (r == 0 && hwloc_bitmap_iszero(probe->mask))
        r = -EINVAL;
    if (r == 0)
        return intern_cut(probe, world, ret);
    if (r != -ENOMEM)
        probe->statistics.n_unparsable++;
    return r;
}

int probe_mask_read(Probe *probe, World *world, const Process *process, pid_t tid, CpuMask *ret)
{
    return probe->options.live ? read_live(probe, world, tid, ret)
                               : read_captured(probe, world, process->pid, tid, ret);
}

static bool is_home_and_one(hwloc_const_bitmap_t home, CpuMask mask)
{
    return !hwloc_bitmap_iszero(home) && hwloc_bitmap_isincluded(home, mask) &&
           hwloc_bitmap_weight(mask) - hwloc_bitmap_weight(home) <= 1;
}

/* Whether threads of this process have home nodes. */
static bool lives_apart(const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n);

    for (size_t i = first; i < first + n; i++)
        if (!world->tasks[i].gone && world->tasks[i].home_node.i >= 0)
            return true;
    return false;
}

/* The same for one node of a home: children of a thread with that home node start with this mask. */
static bool is_node_and_one(Probe *probe, const World *world, CpuMask cpuset, const Group *group,
                            CpuMask mask)
{
    for (int i = hwloc_bitmap_first(group->home_nodes); i >= 0; i = hwloc_bitmap_next(group->home_nodes, i))
        if (hwloc_bitmap_and(probe->scratch, world->topology->nodes[i].cpus, cpuset) == 0 &&
            is_home_and_one(probe->scratch, mask))
            return true;
    return false;
}

static bool is_home(Probe *probe, const World *world, const Process *process, CpuMask mask)
{
    return process->group.i >= 0 && world->groups[process->group.i].home &&
           hwloc_bitmap_and(probe->scratch, world->groups[process->group.i].home, process->cpuset) == 0 &&
           !hwloc_bitmap_iszero(probe->scratch) && hwloc_bitmap_isequal(probe->scratch, mask);
}

/* Whether `mask` is one that we give to threads of this process: its home, or a node of that, cut to the
 * cpuset, and at most one more CPU. */
static bool is_given(Probe *probe, const World *world, const Process *process, CpuMask cpuset, CpuMask mask)
{
    const Group *group = process->group.i >= 0 ? &world->groups[process->group.i] : NULL;

    if (!group || !group->home || hwloc_bitmap_and(probe->scratch, group->home, cpuset) < 0)
        return false;
    return is_home_and_one(probe->scratch, mask) ||
           (lives_apart(world, process) && is_node_and_one(probe, world, cpuset, group, mask));
}

static bool forgets_masks(Probe *probe)
{
    if (probe->mask_memory == PROBE_MASK_MEMORY_UNKNOWN)
        probe->mask_memory =
            cpusets_forget_masks(probe->options.root_fd) ? PROBE_MASK_MEMORY_NONE : PROBE_MASK_MEMORY_KEPT;
    return probe->mask_memory == PROBE_MASK_MEMORY_NONE;
}

/* Whether `mask` is all of `cpus` except CPUs that were offline. Where a kernel forgets masks, one set meanwhile
 * lacks these for ever, even one we gave back. A mask that excludes them on purpose cannot be told apart. */
static bool is_all_but_away(Probe *probe, hwloc_bitmap_t cpus, CpuMask mask)
{
    if (hwloc_bitmap_iszero(probe->been_away) || !forgets_masks(probe))
        return false;
    return hwloc_bitmap_andnot(cpus, cpus, probe->been_away) == 0 && !hwloc_bitmap_iszero(cpus) &&
           hwloc_bitmap_isincluded(cpus, mask);
}

TaskHands probe_mask_judge(Probe *probe, World *world, const Process *process, const Task *task)
{
    const Process *parent = world_process(world, process->parent);

    if (task->task_class == TASK_CLASS_DEADLINE)
        return TASK_HANDS_CLASS;
    if (task->original)
        return (TaskHands)task->hands;

    if (hwloc_bitmap_andnot(probe->scratch, process->cpuset, probe->isolated) < 0)
        return TASK_HANDS_UNKNOWN;
    if (hwloc_bitmap_isincluded(probe->scratch, task->allowed) ||
        is_all_but_away(probe, probe->scratch, task->allowed))
        return TASK_HANDS_FREE;
    if (is_given(probe, world, process, process->cpuset, task->allowed) ||
        (parent && is_given(probe, world, parent, process->cpuset, task->allowed)))
        return TASK_HANDS_FREE;
    return TASK_HANDS_FOREIGN;
}

/* What was refused while the cpuset changed may be allowed now, and a mask that looked narrow may be all there is. */
static void judge_again(Probe *probe, World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n);

    for (size_t i = first; i < first + n; i++) {
        Task *task = &world->tasks[i];

        if (task->gone || (task->hands != TASK_HANDS_DENIED && task->hands != TASK_HANDS_FOREIGN))
            continue;
        if (!task->original)
            probe_task_set_hands(&probe->readers.slots[task->reader], task,
                                 probe_mask_judge(probe, world, process, task));
        else if (task->hands == TASK_HANDS_DENIED)
            task->hands = TASK_HANDS_FREE;
    }
}

bool probe_cpuset_put(Probe *probe, World *world, Process *process, CpuMask cpuset)
{
    bool known = process->cpuset != NULL, other = cpuset != process->cpuset;

    process->cpuset = cpuset;
    if (known && other)
        judge_again(probe, world, process);
    return other;
}

static bool has_denied(const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n);

    for (size_t i = first; i < first + n; i++)
        if (!world->tasks[i].gone && world->tasks[i].hands == TASK_HANDS_DENIED)
            return true;
    return false;
}

/* A cpuset that was narrowed and widened again between two discoveries is not seen to change, and other causes of a
 * refusal cannot be seen at all. So a refusal counts for a time only. */
static void end_denial(Probe *probe, World *world, const Process *process, SeenProcess *seen)
{
    uint64_t now = world->now_usec;
    bool denied = has_denied(world, process);

    if (denied && !seen->denied) {
        bool again = now < seen->denied_until_usec + seen->denied_pause_usec;

        seen->denied_pause_usec =
            again ? MIN(2 * seen->denied_pause_usec, DENIED_MAX_USEC) : DENIED_FIRST_USEC;
        seen->denied_until_usec = now + seen->denied_pause_usec;
    } else if (denied && now >= seen->denied_until_usec) {
        judge_again(probe, world, process);
        denied = false;
    }
    seen->denied = denied;
}

static void end_denials(Probe *probe, World *world)
{
    size_t hint = 0;

    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *process = &world->processes[i];
        SeenProcess *seen = process->gone ? NULL : seen_find(&probe->seen, process->pid, &hint);

        if (seen)
            end_denial(probe, world, process, seen);
    }
}

/* Whether a given mask is still the one we know, although it is shown without a CPU. sched_getaffinity(2)
 * leaves out a CPU on its way offline before the list of online CPUs does; /proc shows the mask as it was set. */
static bool is_uncut(Probe *probe, World *world, const Process *process, const Task *task, CpuMask before)
{
    CpuMask set;

    return probe->options.live && read_captured(probe, world, process->pid, task->tid, &set) == 0 &&
           set == before;
}

/* Whether the cpuset changed in this pass or the one before, or its CPUs went offline or came back. Masks and
 * cpusets are not read at the same time, so a cpuset that does not explain a mask is reread. */
static bool cpuset_moved(Probe *probe, World *world, Process *process, SeenProcess *seen)
{
    if (!seen->cpuset_changed && probe_cpuset_again(probe, world, process) != 0)
        seen->cpuset_changed = true;
    return seen->cpuset_changed || seen->cpuset_moving;
}

/* Whether the kernel may have changed the mask we gave. Where it forgets masks, a mask of the whole cpuset
 * counts as its work. Somebody who widens a mask by hand then sees it narrowed again, which is the lesser evil. */
static bool is_kernels(Probe *probe, World *world, Process *process, SeenProcess *seen, CpuMask now)
{
    if (forgets_masks(probe) && (now == process->cpuset || is_home(probe, world, process, now)))
        return true;
    if (cpuset_moved(probe, world, process, seen))
        return true;
    /* A cpuset of ours reaches its new value in more than one step, and masks follow it. */
    return forgets_masks(probe) && seen->cpuset_path && probe_cpuset_leaves(probe, seen->cpuset_path, now);
}

static void mask_changed(Probe *probe, World *world, Process *process, SeenProcess *seen, Task *task,
                         CpuMask now)
{
    Reader *reader = &probe->readers.slots[task->reader];
    CpuMask before = task->allowed;

    task->allowed = now;
    if (!task->original) {
        probe_task_set_hands(reader, task, probe_mask_judge(probe, world, process, task));
    } else if (!is_kernels(probe, world, process, seen, now) &&
               !is_uncut(probe, world, process, task, before)) {
        /* It may be the mask of another thread, under a reused TID. */
        probe_thread_validate(probe, world, task);
        if (task->gone)
            return;
        probe_task_set_hands(reader, task, TASK_HANDS_REPINNED);
        process->yielded = true;
    }
}

/* The class of a thread may change too; reading it is as cheap as reading the mask. */
static void refresh_class(Probe *probe, World *world, const Process *process, Task *task)
{
    int policy = probe->options.live ? sched_getscheduler(task->tid) : -1;
    Reader *reader = &probe->readers.slots[task->reader];
    TaskClass class;

    if (policy < 0)
        return;
    class = probe_task_class((uint32_t)policy & ~(uint32_t)SCHED_RESET_ON_FORK);
    if (class == (TaskClass)task->task_class)
        return;
    task->task_class = (uint8_t) class;
    if (task->hands == TASK_HANDS_CLASS)
        task->hands = TASK_HANDS_FREE; /* judged below by its mask */
    probe_task_set_hands(reader, task, probe_mask_judge(probe, world, process, task));
}

static int refresh_task(Probe *probe, World *world, Process *process, SeenProcess *seen, Task *task)
{
    Reader *reader = &probe->readers.slots[task->reader];
    CpuMask now = task->allowed;
    int r = probe_mask_read(probe, world, process, task->tid, &now);

    if (r == -ENOMEM)
        return r;
    if (probe_error_is_gone(r)) {
        task->gone = true;
        probe->statistics.n_gone++;
    } else if (r < 0) {
        reader->mask_failed = true;
        probe_task_failed(reader, task);
    } else {
        reader->mask_failed = false;
        refresh_class(probe, world, process, task);
        if (now != task->allowed)
            mask_changed(probe, world, process, seen, task, now);
    }
    return 0;
}

/* Number of tasks, from `first` on and wrapping around, that include as many tasks changed by us as one pass reads. */
static size_t span_of_ours(const Probe *probe, const World *world, size_t first)
{
    size_t n = 0, i = 0;

    for (; i < world->n_tasks && n < probe_batch(probe); i++)
        n += world->tasks[(first + i) % world->n_tasks].original != NULL;
    return i;
}

int probe_masks_refresh(Probe *probe, World *world)
{
    size_t n = world->n_tasks, first, first_ours, n_ours, hint = 0;
    SeenProcess *seen = NULL;

    if (n == 0)
        return 0;
    end_denials(probe, world);
    first = probe->mask_cursor % n;
    probe->mask_cursor = first + MASKS_PER_PASS;
    first_ours = probe->ours_cursor % n;
    n_ours = span_of_ours(probe, world, first_ours);
    probe->ours_cursor = first_ours + n_ours;

    for (size_t i = 0; i < n; i++) {
        Task *task = &world->tasks[i];
        Process *process = &world->processes[task->process.i];
        bool in_slice = (i + n - first) % n < MASKS_PER_PASS;
        bool in_ours = task->original && (i + n - first_ours) % n < n_ours;
        int r;

        if (task->gone || (!in_ours && !in_slice) || task->hands == TASK_HANDS_PER_CPU)
            continue;
        if (!seen || seen->pid != process->pid)
            seen = seen_find(&probe->seen, process->pid, &hint);
        if (!seen)
            continue;
        r = refresh_task(probe, world, process, seen, task);
        if (r < 0)
            return r;
    }
    return 0;
}
