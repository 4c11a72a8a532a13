/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A mask set by sched_setaffinity(2) is inherited by every thread and process born under it, also by those that are never
 * looked at because no policy matches them. They must get back what their ancestor had. The kernel does not say where a
 * mask comes from, so it is concluded: the mask is exactly one that we gave, the process was born while we gave it, and it
 * descends from the process that got it, or is of its process group or session.
 *
 * What this does badly. A daemon that started from a managed process, left its session and lost its parent is not found:
 * nothing ties it to us any more. And somebody who starts a program in a managed session with, by chance, exactly the mask
 * of that session's home has it widened when numaplace stops. */

#include "act/lineage.h"

#define GENERATIONS_MAX 64U /* of ancestors looked at; bounds a loop that a racing list could contain */

int lineage_init(Act *act, Lineage *ret)
{
    Lineage lineage = {0};
    int r = act->ops->list_processes(act->context, &lineage.processes, &lineage.n);

    if (r != 0)
        return r < 0 ? r : -EAGAIN;
    *ret = lineage;
    return 0;
}

void lineage_done(Lineage *lineage)
{
    free(lineage->processes);
    *lineage = (Lineage){0};
}

static bool find_parent(Act *act, const Lineage *lineage, pid_t pid, ActProcess *ret)
{
    size_t low = 0, high = lineage->n;

    if (lineage->n == 0)
        return act->ops->read_process(act->context, pid, ret) == 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (lineage->processes[middle].pid == pid) {
            *ret = lineage->processes[middle];
            return true;
        }
        if (lineage->processes[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* Whether one born then can have inherited from the process: not before it, nor after it got its own mask back. */
static bool born_under(const JournalProcess *process, uint64_t born_ticks)
{
    return process->start_ticks <= born_ticks &&
           (process->released_ticks == 0 || born_ticks <= process->released_ticks);
}

static JournalProcess *find_ancestor(Act *act, const Lineage *lineage, const ActProcess *process,
                                     TaskKey task, hwloc_const_bitmap_t mask)
{
    ActProcess child = *process, parent;

    for (unsigned i = 0; i < GENERATIONS_MAX && child.parent > 0; i++) {
        JournalProcess *entry;

        if (!find_parent(act, lineage, child.parent, &parent))
            return NULL;
        entry = journal_process(act->journal, parent.pid, parent.start_ticks);
        if (entry && (!lineage->selected || entry->selected) && born_under(entry, child.start_ticks) &&
            (!mask || act_mask_ours(act, entry, task, mask)))
            return entry;
        child = parent;
    }
    return NULL;
}

static JournalProcess *find_relative(Act *act, const Lineage *lineage, const ActProcess *process,
                                     TaskKey task, hwloc_const_bitmap_t mask, bool by_group)
{
    pid_t number = by_group ? process->pgrp : process->session;

    /* Who is of no session we can see has 0 there, and one that is exiting -1. */
    if (number <= 0)
        return NULL;
    for (size_t i = 0; i < act->journal->n_processes; i++) {
        JournalProcess *entry = &act->journal->processes[i];

        if ((by_group ? entry->pgrp : entry->session) == number && (!lineage->selected || entry->selected) &&
            born_under(entry, process->start_ticks) && (!mask || act_mask_ours(act, entry, task, mask)))
            return entry;
    }
    return NULL;
}

JournalProcess *lineage_find(Act *act, const Lineage *lineage, const ActProcess *process, TaskKey task,
                             hwloc_const_bitmap_t mask)
{
    JournalProcess *found = find_ancestor(act, lineage, process, task, mask);

    if (!found)
        found = find_relative(act, lineage, process, task, mask, true);
    return found ? found : find_relative(act, lineage, process, task, mask, false);
}

static int adopt(Act *act, const ActProcess *process, TaskKey task, const JournalProcess *from,
                 hwloc_const_bitmap_t mask)
{
    JournalChange change = {
        .process = *process,
        .task = task,
        .original = journal_original(act->journal, from, task),
        .mask = mask,
    };

    return journal_note_change(act->journal, &change);
}

int lineage_entry(Act *act, const ActProcess *process, TaskKey task, hwloc_const_bitmap_t mask,
                  JournalProcess **ret)
{
    const Lineage ask = {0};
    JournalProcess *entry = journal_process(act->journal, process->pid, process->start_ticks), *from;
    int r;

    if (!entry && !hwloc_bitmap_isincluded(act->online, mask)) {
        from = lineage_find(act, &ask, process, task, mask);
        if (from) {
            r = adopt(act, process, task, from, mask);
            if (r < 0)
                return r;
            entry = journal_process(act->journal, process->pid, process->start_ticks);
        }
    }
    *ret = entry;
    return 0;
}

/* A process that was born of a journalled one: its threads that carry the mask, if any, make it an entry. */
static int adopt_process(Act *act, const Lineage *lineage, const ActProcess *process, hwloc_bitmap_t have)
{
    CLEANUP_FREE TaskKey *threads = NULL;
    size_t n = 0;
    int r = act->ops->list_threads(act->context, process->pid, process->start_ticks, &threads, &n);

    for (size_t i = 0; r == 0 && i < n; i++) {
        JournalProcess *from;

        if (act->ops->get_mask(act->context, threads[i], have) != 0)
            continue;
        from = lineage_find(act, lineage, process, threads[i], have);
        if (from)
            r = adopt(act, process, threads[i], from, have);
    }
    return MIN(r, 0);
}

int lineage_adopt_all(Act *act, const Lineage *lineage)
{
    hwloc_bitmap_t have = hwloc_bitmap_alloc();
    int r = have ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < lineage->n; i++) {
        const ActProcess *process = &lineage->processes[i];

        if (!journal_process(act->journal, process->pid, process->start_ticks) &&
            lineage_find(act, lineage, process, (TaskKey){0}, NULL))
            r = adopt_process(act, lineage, process, have);
    }
    hwloc_bitmap_free(have);
    return r;
}
