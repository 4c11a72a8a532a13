/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When the cpuset of a process becomes narrower, the kernel cuts the masks of its threads, including ours.
 * The result matches nothing in the journal and would be taken for the user's choice forever. The World knows
 * the cpuset, so when it changes, what the kernel made of our masks is journalled as ours, too.
 *
 * Here, exceptionally, the line comes after the change, because the change is not ours. If the daemon is
 * killed between the two, those threads stay as they are. */

#include "act/internal.h"

static bool is_cut(const JournalProcess *entry, CpuMask mask)
{
    for (uint32_t i = 0; i < entry->n_cut; i++)
        if (entry->cut[i] == mask)
            return true;
    return false;
}

/* Journals what the cpuset leaves of every mask of the process. What an earlier cpuset left is not cut further: the
 * kernel cuts the mask that was given, and the number of masks would double with each cpuset. */
static int note_cut(Act *act, const Process *process, JournalProcess *entry)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();
    JournalChange change = {
        .process = {.pid = entry->pid, .start_ticks = entry->start_ticks},
        .ours = true,
        .mask = set,
    };
    uint32_t n = entry->n_applied;
    int r = set ? 0 : -ENOMEM;

    for (uint32_t i = 0; r == 0 && i < n; i++) {
        uint32_t before = entry->n_applied;

        if (is_cut(entry, entry->applied[i]))
            continue;
        if (hwloc_bitmap_and(set, entry->applied[i], process->cpuset) < 0)
            return -ENOMEM;
        if (!hwloc_bitmap_iszero(set))
            r = journal_note_change(act->journal, &change);
        if (r == 0 && entry->n_applied > before)
            r = journal_add_mask(&entry->cut, &entry->n_cut, entry->applied[before]);
    }
    return r;
}

static int follow_process(Act *act, const Process *process, JournalProcess *entry)
{
    int r;

    if (entry->released_ticks > 0 || (entry->cpuset && hwloc_bitmap_isequal(entry->cpuset, process->cpuset)))
        return 0;
    r = note_cut(act, process, entry);
    if (r < 0)
        return r;
    entry->cpuset = intern_mask(act->journal->pool, process->cpuset);
    return entry->cpuset ? 0 : -ENOMEM;
}

int act_follow_cpusets(Act *act, const World *world)
{
    size_t at = 0;

    /* Both are in ascending order of PID. */
    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *process = &world->processes[i];
        JournalProcess *entry;
        int r;

        if (process->gone || !process->cpuset)
            continue;
        while (at < act->journal->n_processes && act->journal->processes[at].pid < process->pid)
            at++;
        if (at == act->journal->n_processes || act->journal->processes[at].pid != process->pid)
            continue;
        entry = journal_process(act->journal, process->pid, process->start_ticks);
        r = entry ? follow_process(act, process, entry) : 0;
        if (r == -ENOMEM) /* other failures are retried at the next tick */
            return r;
    }
    return 0;
}
