/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Putting back goes the way the masks went: first the threads of the processes in the journal, then the processes born of
 * these, which inherited a mask without being written down (act/lineage.h). Both in passes, until one finds nothing: as long
 * as one thread still has our mask, it can hand it on.
 *
 * Only a mask that is exactly one of ours is replaced. A thread that its user pinned meanwhile keeps what it has. A thread
 * that began its life under our mask gets its process's original, although its creator may have had another one. */

#include "act/internal.h"
#include "act/lineage.h"

/* Remembers the first failure and returns it as -errno. That a task exited is none. */
static int failed(Restore *restore, int r)
{
    if (r == ACT_E_GONE)
        return 0;
    if (r > 0)
        r = r == ACT_E_REFUSED ? -EPERM : -EAGAIN;
    if (restore->error == 0)
        restore->error = r;
    return r;
}

int restore_begin(Act *act, const World *world, Restore *ret)
{
    Restore restore = {.act = act, .world = world, .have = hwloc_bitmap_alloc()};

    if (!restore.have)
        return -ENOMEM;
    act_refresh(act);
    for (size_t i = 0; i < act->journal->n_processes; i++)
        act->journal->processes[i].selected = false;
    *ret = restore;
    return 0;
}

/* Gives one thread back what `entry` says, if its mask is ours. 1: it did; 0: nothing to do; -errno. */
static int restore_thread(Restore *restore, const JournalProcess *entry, TaskKey task)
{
    Act *act = restore->act;
    JournalOriginal original = journal_original(act->journal, entry, task);
    int r = act->ops->get_mask(act->context, task, restore->have);

    if (r != 0)
        return failed(restore, r);
    if (act_mask_same(act, restore->have, original.mask))
        return 0;
    if (!act_mask_ours(act, entry, task, restore->have)) {
        restore->n_left++;
        return 0;
    }
    r = act_set_original(act, task, original);
    if (r != 0)
        return failed(restore, r);
    restore->n_restored++;
    return 1;
}

/* One pass over the threads of one process in the journal. As restore_thread(); the last failure wins. */
static int restore_process_pass(Restore *restore, const JournalProcess *entry)
{
    Act *act = restore->act;
    CLEANUP_FREE TaskKey *threads = NULL;
    bool changed = false;
    int error = 0, r;
    size_t n = 0;

    r = act->ops->list_threads(act->context, entry->pid, entry->start_ticks, &threads, &n);
    if (r != 0)
        return failed(restore, r);
    for (size_t i = 0; i < n; i++) {
        r = restore_thread(restore, entry, threads[i]);
        if (r < 0)
            error = r;
        changed |= r > 0;
    }
    return error < 0 ? error : changed;
}

int restore_process(Restore *restore, JournalProcess *entry)
{
    int r = restore_process_pass(restore, entry);
    size_t n_left = restore->n_left;

    entry->selected = true;
    for (unsigned pass = 1; r > 0 && pass < ACT_PASSES_MAX; pass++)
        r = restore_process_pass(restore, entry);
    /* Who is left was left by the first pass; a later one would count those, too, that got all of a smaller cpuset. */
    restore->n_left = n_left;
    return r > 0 ? failed(restore, -EAGAIN) : r;
}

/* A process that is not in the journal: every thread with a mask it can have from one that is. Returns whether one was
 * put back. */
static bool restore_child(Restore *restore, const Lineage *lineage, const ActProcess *process)
{
    Act *act = restore->act;
    CLEANUP_FREE TaskKey *threads = NULL;
    bool changed = false;
    size_t n = 0;
    int r = act->ops->list_threads(act->context, process->pid, process->start_ticks, &threads, &n);

    if (r != 0)
        (void)failed(restore, r);
    for (size_t i = 0; i < n; i++) {
        const JournalProcess *entry;

        if (act->ops->get_mask(act->context, threads[i], restore->have) != 0)
            continue;
        entry = lineage_find(act, lineage, process, threads[i], restore->have);
        if (entry)
            changed |= restore_thread(restore, entry, threads[i]) > 0;
    }
    return changed;
}

static bool is_member(const Restore *restore, const ActProcess *process)
{
    const Process *known = restore->world ? act_world_process(restore->world, process->pid) : NULL;

    return known && known->start_ticks == process->start_ticks && !known->gone && known->group.i >= 0;
}

static bool restore_children_pass(Restore *restore, const Lineage *lineage)
{
    const Journal *journal = restore->act->journal;
    bool changed = false;

    for (size_t i = 0; i < lineage->n; i++) {
        const ActProcess *process = &lineage->processes[i];

        if (!journal_process(journal, process->pid, process->start_ticks) && !is_member(restore, process) &&
            lineage_find(restore->act, lineage, process, (TaskKey){0}, NULL))
            changed |= restore_child(restore, lineage, process);
    }
    return changed;
}

static int restore_children(Restore *restore)
{
    for (unsigned pass = 0; pass < ACT_PASSES_MAX; pass++) {
        CLEANUP(lineage_done) Lineage lineage = {0};
        int r = lineage_init(restore->act, &lineage);

        if (r < 0)
            return failed(restore, r);
        lineage.selected = true;
        if (!restore_children_pass(restore, &lineage))
            return 0;
    }
    return failed(restore, -EAGAIN);
}

/* Notes that the selected processes have their own masks again. A failure to write that down is no failure to put back: at
 * worst the next start looks at them once more. */
static void note_released(Restore *restore)
{
    Journal *journal = restore->act->journal;
    ActBirthMark now = {.ticks = UINT64_MAX};

    (void)restore->act->ops->birth_mark(restore->act->context, &now);
    for (size_t i = 0; i < journal->n_processes; i++)
        if (journal->processes[i].selected && journal->processes[i].released_ticks == 0 &&
            journal_note_released(journal, &journal->processes[i], now.ticks) < 0)
            restore->act->statistics.n_journal_failures++;
}

int restore_finish(Restore *restore)
{
    int r = restore->act->journal->n_processes > 0 ? restore_children(restore) : 0;

    if (restore->error == 0)
        note_released(restore);
    hwloc_bitmap_free(restore->have);
    restore->have = NULL;
    return r;
}

static int restore_journalled(Act *act, pid_t pid, Restore *ret)
{
    Journal *journal = act->journal;
    int r = restore_begin(act, NULL, ret);

    if (r < 0)
        return r;
    for (size_t i = journal_first(journal, pid); i < journal->n_processes; i++) {
        if (pid > 0 && journal->processes[i].pid != pid)
            break;
        /* Released ones are selected, too: what is left of their children is put back now. */
        journal->processes[i].selected = true;
        if (journal->processes[i].released_ticks == 0)
            (void)restore_process(ret, &journal->processes[i]);
    }
    (void)restore_finish(ret);
    return ret->error;
}

int act_restore(Act *act, pid_t pid, size_t *ret_restored, size_t *ret_left)
{
    Restore restore = {0};
    int r = 0;

    if (act->journal)
        r = restore_journalled(act, pid, &restore);
    if (r == 0 && pid == 0 && act->journal)
        (void)journal_compact(act->journal, NULL, 0); /* nothing is under our masks any more */
    if (ret_restored)
        *ret_restored = restore.n_restored;
    if (ret_left)
        *ret_left = restore.n_left;
    return r;
}
