/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A user may have pinned a thread to exactly the CPUs of its home. Nothing needs to be done to that thread,
 * but it must be in the journal: otherwise its mask would look like one of ours when everything is put back,
 * and would be widened.
 *
 * The two cases are told apart once, before any thread of the process gets that mask from the daemon. From
 * then on, a thread with that mask may have inherited it. The lines of all such threads precede the line of
 * the mask, in one write, so that no crash can come in between.
 *
 *     process pid=100 ... original=0-7       thread 100 had all CPUs
 *     thread pid=100 ... tid=102 original=0-3
 *     mask pid=100 ... mask=0-3              from here on 0-3 is ours, except for thread 102
 *
 * The candidates come from the last look at the threads (World), and the mask of each is read again. Most
 * processes have none, and reading all threads of a process with ten thousand takes a tenth of a second. What
 * this does badly: a thread that is pinned to the home after that look is taken for ours, and so are children
 * of a thread that is pinned so. */

#include "act/masks/pins.h"

/* What is found in the process that is given a mask. */
typedef struct Found {
    TaskKey *own; /* threads that have the mask already */
    size_t n_own, capacity;
    TaskKey other; /* a thread with another mask; tid 0: none yet */
    hwloc_bitmap_t mask;
} Found;

static void found_done(Found *found)
{
    free(found->own);
    hwloc_bitmap_free(found->mask);
}

static int look_at(Act *act, TaskKey task, hwloc_const_bitmap_t mask, hwloc_bitmap_t have, Found *found)
{
    if (act->ops->get_mask(act->context, task, have) != 0)
        return 0;
    if (!act_mask_same(act, have, mask)) {
        found->other = task;
        return hwloc_bitmap_copy(found->mask, have) < 0 ? -ENOMEM : 0;
    }
    return APPEND(found->own, found->capacity, found->n_own, task);
}

/* Finds all threads except `besides` that have `mask`, and the first one that has another mask. */
static int look(Act *act, const World *world, const ActProcess *process, TaskKey besides,
                hwloc_const_bitmap_t mask, Found *found)
{
    const Process *known = act_known(world, process->pid, process->start_ticks);
    CLEANUP_BITMAP hwloc_bitmap_t have = hwloc_bitmap_alloc();
    size_t n = 0, first = known ? world_process_tasks(world, known, &n) : 0;
    int r = 0;

    found->mask = hwloc_bitmap_alloc();
    if (!have || !found->mask)
        r = -ENOMEM;
    for (size_t i = first; r == 0 && i < first + n; i++) {
        const Task *task = &world->tasks[i];
        TaskKey key = {.pid = process->pid, .tid = task->tid, .start_ticks = task->start_ticks};
        bool same = task->allowed && act_mask_same(act, task->allowed, mask);

        if (!task->gone && task->tid != besides.tid && (same || found->other.tid == 0))
            r = look_at(act, key, mask, have, found);
    }
    return r;
}

/* Whether the mask is all that the process may use, and so not the user's choice. */
static bool is_whole(Act *act, const World *world, const ActProcess *process, hwloc_const_bitmap_t mask)
{
    const Process *known = act_known(world, process->pid, process->start_ticks);

    return hwloc_bitmap_isincluded(act->online, mask) ||
           (known && known->cpuset && hwloc_bitmap_isincluded(known->cpuset, mask));
}

int pins_note_change(Act *act, const World *world, JournalChange *change)
{
    const JournalProcess *entry =
        journal_process(act->journal, change->process.pid, change->process.start_ticks);
    CLEANUP(found_done) Found found = {.other = {.tid = -1}}; /* not wanted */
    int r = 0;

    if ((!entry || entry->released_ticks > 0 || !journal_is_applied(entry, change->mask)) &&
        !is_whole(act, world, &change->process, change->mask))
        r = look(act, world, &change->process, change->task, change->mask, &found);
    if (r < 0)
        return r;
    change->own = found.own;
    change->n_own = found.n_own;
    r = act_note_change(act, change);
    change->own = NULL;
    change->n_own = 0;
    return r;
}

/* The entry of the process describes its other threads, if any, because later threads inherit from those. */
int pins_note(Act *act, const World *world, const ActProcess *process, TaskKey task,
              hwloc_const_bitmap_t mask)
{
    CLEANUP(found_done) Found found = {0};
    JournalChange change = {.process = *process, .task = task, .original = {.mask = mask}, .mask = mask};
    int r = look(act, world, process, task, mask, &found);

    if (r == 0 && !GROW(found.own, found.capacity, found.n_own + 1))
        r = -ENOMEM;
    if (r < 0)
        return r;
    found.own[found.n_own++] = task;
    if (found.other.tid > 0) {
        change.task = found.other;
        change.original =
            (JournalOriginal){.mask = found.mask, .whole = is_whole(act, world, process, found.mask)};
    }
    change.own = found.own;
    change.n_own = found.other.tid > 0 ? found.n_own : 0;
    return act_note_change(act, &change);
}
