/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Releases a process: its threads are put back at once, or slice by slice if there are very many. In a tick,
 * the search for children that inherited a mask is left to later ticks (act/undo/search.c). */

#include "act/masks/execute.h"
#include "act/masks/slice.h"
#include "base/time.h"

/* A group that comes to need all nodes is released while it works, as part of placing it. The search for its
 * children is delayed by this much (act/undo/search.c). */
#define SEARCH_USEC (2U * USEC_PER_SEC)

static int release_thread(void *userdata, TaskKey task)
{
    Work *work = userdata;
    Act *act = work->act;
    JournalProcess *entry;
    bool ours;
    int r = execute_look(work, task, &ours);

    if (r != 0)
        return r;
    if (!ours)
        return PLAN_OUTCOME_FOREIGN;
    entry = journal_process(act->journal, work->process.pid, work->process.start_ticks);
    return execute_outcome(act_set_original(act, task, journal_original(act->journal, entry, task)));
}

/* Enters the process in the journal: one that inherited its mask and never had an action is not there yet. */
static int enter_process(Work *work)
{
    Act *act = work->act;
    CLEANUP_FREE TaskKey *threads = NULL;
    size_t n = 0;
    int r = act->ops->list_threads(act->context, work->process.pid, work->process.start_ticks, &threads, &n);

    for (size_t i = 0; r == 0 && i < n; i++) {
        bool ours;

        if (act->ops->get_mask(act->context, threads[i], work->have) == 0)
            r = execute_look_up(work, threads[i], &ours);
    }
    return MIN(r, 0);
}

bool release_roams(const PlanAction *action)
{
    return action->kind == PLAN_KIND_RELEASE && action->rule == PLAN_RULE_ROAMS && action->subject.tid == 0;
}

/* Returns 0, -errno, or 1: nothing was put back, because all of it is as somebody else pinned it. */
static int restore_all_of(Work *work, JournalProcess *entry)
{
    size_t restored = work->restore.n_restored, left = work->restore.n_left;
    int r = restore_process(&work->restore, entry);

    return r == 0 && work->restore.n_restored == restored && work->restore.n_left > left ? 1 : r;
}

/* The children of such a process are searched for later. */
static void let_roam(Work *work, JournalProcess *entry)
{
    entry->roams = true;
    if (work->act->search_usec == 0)
        work->act->search_usec = work->world->now_usec + SEARCH_USEC;
}

/* The last slice leaves threads that were not in the World to the search. */
static int release_by_threads(Work *work)
{
    int r = execute_by_threads(work, release_thread);
    JournalProcess *entry = journal_process(work->act->journal, work->process.pid, work->process.start_ticks);

    if (r != PLAN_OUTCOME_PARTLY && r != PLAN_OUTCOME_GONE && r >= 0 && entry)
        let_roam(work, entry);
    return r;
}

int release_action(Work *work)
{
    JournalProcess *entry;
    int r;

    if (!work->act->ops->changes)
        return PLAN_OUTCOME_SKIPPED;
    if (slice_is_large(work->act, work->world, work->action))
        return release_by_threads(work);
    if (work->action->subject.tid != 0)
        return release_thread(work, work->action->subject);
    if (work->process.start_ticks != work->action->subject.start_ticks)
        return PLAN_OUTCOME_GONE;

    r = enter_process(work);
    if (r < 0)
        return execute_outcome(r);
    entry = journal_process(work->act->journal, work->process.pid, work->process.start_ticks);
    if (entry && (work->act->slice.on || release_roams(work->action))) {
        r = restore_threads(work->act, work->world, entry);
        if (r >= 0)
            let_roam(work, entry);
    } else {
        r = entry ? restore_all_of(work, entry) : 0;
    }
    if (r > 0)
        return PLAN_OUTCOME_FOREIGN;
    return r == -EPERM ? PLAN_OUTCOME_REFUSED : execute_outcome(r);
}
