/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counts what a dead daemon has left, for one that may not restore it. It looks where a restore does
 * (restore.c), at threads in the journal and at those that can have inherited a mask from them, but in one
 * pass: tasks born meanwhile are not counted. */

#include "act/internal.h"
#include "act/undo/lineage.h"

typedef struct Count {
    Act *act;
    hwloc_bitmap_t have;
    size_t n_threads;
} Count;

/* Whether the mask is ours, and not the thread's original. */
static bool carries(Act *act, const JournalProcess *entry, TaskKey task, hwloc_const_bitmap_t have)
{
    return !act_mask_same(act, have, journal_original(act->journal, entry, task).mask) &&
           act_mask_ours(act, entry, task, have);
}

/* Of one process, in the journal (`entry`) or perhaps born of one that is. Unreadable threads are not counted. */
static void count_threads(Count *count, const Lineage *lineage, const ActProcess *process,
                          const JournalProcess *entry)
{
    Act *act = count->act;
    CLEANUP_FREE TaskKey *threads = NULL;
    size_t n = 0;

    if (act->ops->list_threads(act->context, process->pid, process->start_ticks, &threads, &n) != 0)
        return;
    for (size_t i = 0; i < n; i++) {
        const JournalProcess *from = entry;

        if (act->ops->get_mask(act->context, threads[i], count->have) != 0)
            continue;
        if (!from)
            from = lineage_find(act, lineage, process, threads[i], count->have);
        count->n_threads += from && carries(act, from, threads[i], count->have);
    }
}

static void count_process(Count *count, const Lineage *lineage, const ActProcess *process)
{
    const JournalProcess *entry = journal_process(count->act->journal, process->pid, process->start_ticks);

    if (entry && entry->released_ticks > 0)
        return;
    if (entry || lineage_find(count->act, lineage, process, (TaskKey){0}, NULL))
        count_threads(count, lineage, process, entry);
}

static int count_all(Act *act, size_t *ret_threads)
{
    CLEANUP(lineage_done) Lineage lineage = {0};
    CLEANUP_BITMAP hwloc_bitmap_t have = hwloc_bitmap_alloc();
    Count count = {.act = act, .have = have};
    int r = have ? lineage_init(act, &lineage) : -ENOMEM;

    if (r < 0)
        return r;
    act_refresh(act);
    for (size_t i = 0; i < lineage.n; i++)
        count_process(&count, &lineage, &lineage.processes[i]);
    *ret_threads = count.n_threads;
    return 0;
}

int act_leftover(const ActOps *ops, void *context, int root_fd, const char *journal_path, ActLeftover *ret,
                 char **ret_error)
{
    CLEANUP(act_free_p) Act *act = NULL;
    size_t n_threads = 0;
    int r;

    assert(!ops->changes);
    r = act_new(ops, context, root_fd, NULL, &act, ret_error);

    if (r == 0)
        r = journal_open_reading(journal_path, root_fd, &act->journal, ret_error);
    if (r == 0 && act->journal->n_processes > 0)
        r = count_all(act, &n_threads);
    if (r < 0 && r != -ENOENT)
        return r;
    *ret = (ActLeftover){.n_threads = n_threads};
    if (r == 0) {
        ret->n_cgroups = act->journal->n_fences;
        ret->kept = act->journal->kept;
    }
    return 0;
}

int act_count_journal(int root_fd, const char *journal_path, size_t *ret, char **ret_error)
{
    CLEANUP(journal_free_p) Journal *journal = NULL;
    int r = journal_open_reading(journal_path, root_fd, &journal, ret_error);

    if (r == 0)
        *ret = journal->n_processes + journal->n_fences;
    return r;
}
