/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Placing a process of a hundred thousand threads takes seconds, in which other processes would wait for a tick and
 * clients for an answer. So each tick does as much as it has time for. The rest is not recorded here: the World knows
 * which threads have the wrong mask, so the next plan has the same action again, or another one if that is right by
 * then. A stop, a release or a crash in between finds in the journal exactly what was done so far.
 *
 * The threads come from the World and not from the task directory, because listing that takes longer than a tick, and
 * the next discovery brings the threads created in the meantime. Large processes share a slice, so that one that
 * creates threads as fast as they are placed does not delay the others. A thread that fails is not the first to be
 * tried the next time.
 *
 * Example: 25,000 threads, 70 us each. A slice of 30 ms handles 430 of them, so placing all takes 58 ticks, six
 * seconds at FastTickSec=100ms. */

#include "act/masks/slice.h"

#include "base/time.h"

#include <stdlib.h>

bool slice_is_large(const Act *act, const World *world, const PlanAction *action)
{
    const Process *process;
    size_t n;

    if (!act->slice.on || action->subject.tid != 0 || !plan_kind_traits(action->kind)->masks)
        return false;
    process = act_known(world, action->subject.pid, action->subject.start_ticks);
    if (!process)
        return false;
    (void)world_process_tasks(world, process, &n);
    return n > ACT_SLICE_LARGE || (n > 0 && process->n_threads > ACT_SLICE_LARGE);
}

void slice_begin(Act *act, const World *world, const Plan *plan)
{
    ActSlice *slice = &act->slice;

    slice->on = true;
    slice->unfinished = false;
    slice->until_usec = MAX(world->now_usec + ACT_SLICE_TICK_USEC, time_now_usec() + ACT_SLICE_USEC);
    slice->n_threads = slice->n_large = slice->n_parts = 0;
    for (size_t i = 0; i < plan->n_actions; i++)
        slice->n_large += slice_is_large(act, world, &plan->actions[i]);
}

static int compare_parts(const void *a, const void *b)
{
    const PlanPart *x = a, *y = b;

    if (x->action != y->action)
        return x->action < y->action ? -1 : 1;
    return (x->task.tid > y->task.tid) - (x->task.tid < y->task.tid);
}

void slice_end(Act *act)
{
    ActSlice *slice = &act->slice;

    slice->on = false;
    if (slice->n_parts > 0)
        qsort(slice->parts, slice->n_parts, sizeof(*slice->parts), compare_parts);
    act->statistics.n_slices += slice->unfinished;
    act->statistics.slice_threads_max = MAX(act->statistics.slice_threads_max, (uint64_t)slice->n_threads);
}

void slice_leave(Act *act)
{
    act->slice.unfinished = true;
}

bool slice_spent(Act *act)
{
    return act->slice.on &&
           (act->slice.n_threads >= ACT_SLICE_THREADS || time_now_usec() >= act->slice.until_usec);
}

/* Whether the action is for this thread; see home_covers() of plan/commit.c for homes. */
static bool is_meant(const PlanAction *action, const Task *task)
{
    if (task->gone)
        return false;
    if (plan_kind_traits(action->kind)->puts_back)
        return task->original;
    return task->lease < 0 && ((task->allowed == action->from && action->from != action->to) ||
                               (task->allowed == action->to && !task->original));
}

/* What this action may use of the rest of the slice: an equal share for it and each large action after it. */
typedef struct Share {
    size_t n_threads; /* limit of slice->n_threads */
    uint64_t until_usec;
} Share;

static Share take_share(ActSlice *slice)
{
    size_t n_left = ACT_SLICE_THREADS - MIN(slice->n_threads, (size_t)ACT_SLICE_THREADS);
    size_t n = MAX(slice->n_large, (size_t)1);
    uint64_t now = time_now_usec();

    slice->n_large = n - 1;
    return (Share){
        .n_threads = slice->n_threads + (n_left + n - 1) / n,
        .until_usec = now + (slice->until_usec - MIN(now, slice->until_usec)) / n,
    };
}

/* Returns where to begin: after the last task of the previous slice, if that was of this process. */
static size_t first_of(const ActSlice *slice, const PlanAction *action, const Task *tasks, size_t n)
{
    size_t first = 0;

    if (slice->last.pid != action->subject.pid)
        return 0;
    while (first < n && tasks[first].tid <= slice->last.tid)
        first++;
    return first % n;
}

int slice_note(Act *act, size_t index, TaskKey task, int outcome)
{
    ActSlice *slice = &act->slice;

    return APPEND(slice->parts, slice->parts_capacity, slice->n_parts,
                  (PlanPart){.action = index, .task = task, .outcome = (PlanOutcome)outcome});
}

int slice_threads(Act *act, const SliceThreads *threads, size_t *n)
{
    ActSlice *slice = &act->slice;
    const TaskKey *subject = &threads->action->subject;
    const Process *process = act_known(threads->world, subject->pid, subject->start_ticks);
    Share share = take_share(slice);
    size_t n_tasks, at = world_process_tasks(threads->world, process, &n_tasks);
    const Task *tasks = &threads->world->tasks[at];
    size_t first = first_of(slice, threads->action, tasks, n_tasks);
    bool began = false;

    for (size_t i = 0; i < n_tasks; i++) {
        const Task *task = &tasks[(first + i) % n_tasks];
        TaskKey key = {.pid = process->pid, .tid = task->tid, .start_ticks = task->start_ticks};
        int r;

        if (!is_meant(threads->action, task))
            continue;
        /* At least one thread, however short the share; otherwise a slow machine would never get anything done. */
        if (slice->n_threads >= share.n_threads || (began && time_now_usec() >= share.until_usec)) {
            slice_leave(act);
            return 1;
        }
        began = true;
        slice->n_threads++;
        r = threads->step(threads->userdata, key);
        if (r < 0)
            return r;
        n[r]++;
        r = slice_note(act, threads->index, key, r);
        if (r < 0)
            return r;
        slice->last = key;
    }
    return 0;
}

const PlanPart *act_parts(const Act *act, size_t *ret_n)
{
    *ret_n = act->slice.n_parts;
    return act->slice.parts;
}

bool act_unfinished(const Act *act)
{
    return act->slice.unfinished;
}
