/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Restores the threads of one process, in passes until one finds nothing: a thread with our mask can hand it on. */

#include "act/internal.h"
#include "base/parse.h"

/* Whether it still shows the mask in restore->have: its cpuset leaves neither some of ours nor all of the original. */
static bool shows_the_same(Restore *restore, TaskKey task)
{
    CLEANUP_BITMAP hwloc_bitmap_t now = hwloc_bitmap_alloc();

    return now && restore->act->ops->get_mask(restore->act->context, task, now) == 0 &&
           hwloc_bitmap_isequal(now, restore->have);
}

/* If a thread of the entry's own process fails, only this entry stays. A child has its mask from a process that may
 * have ended or been released, and whose entry would then be dropped: for it the whole journal stays. */
static int thread_failed(Restore *restore, JournalProcess *entry, TaskKey task, int r)
{
    int error = restore->error;

    r = restore_failed(restore, r);
    if (r == 0 || r == -ENOMEM || task.pid != entry->pid || entry->released_ticks > 0)
        return r;
    restore->error = error;
    entry->stuck = true;
    if (restore->stuck_error == 0)
        restore->stuck_error = r;
    return r;
}

/* The original may be what the cpuset leaves of ours, or look like ours while CPUs are offline. Then it is set as the
 * thread's own, and not counted. In the latter case, children born from then on look the same, so only processes in the
 * journal are treated like that, and no fork is waited for. */
int restore_thread(Restore *restore, JournalProcess *entry, TaskKey task)
{
    Act *act = restore->act;
    JournalOriginal original = journal_original(act->journal, entry, task);
    int r = act->ops->get_mask(act->context, task, restore->have);
    bool same, hidden;

    if (r != 0)
        return thread_failed(restore, entry, task, r);
    same = act_mask_same(act, restore->have, original.mask);
    hidden = same && task.pid == entry->pid && act_mask_may_hide(act, entry, original, restore->have);
    if (same && !hidden && !act_mask_is_cut(act, entry, task, restore->have))
        return restore->late && restore_suspect(restore, task) < 0 ? restore_failed(restore, -ENOMEM) : 0;
    /* It sleeps, and all CPUs of the original and of a mask of ours are offline: which it has cannot be seen, nor the
     * original be set. */
    if (same && hwloc_bitmap_iszero(restore->have))
        return thread_failed(restore, entry, task, ACT_E_RETRY);
    if (!same && !act_mask_ours(act, entry, task, restore->have)) {
        restore->n_left++;
        return 0;
    }
    r = act_set_original(act, task, original);
    if (r != 0)
        return thread_failed(restore, entry, task, r);
    if (restore->again && shows_the_same(restore, task))
        return 0;
    restore->n_restored += !same;
    if (restore->later || hidden)
        return 1;
    return restore_suspect(restore, task) < 0 ? restore_failed(restore, -ENOMEM) : 1;
}

/* Notes what the kernel made of all CPUs in a thread just restored. CPUs offline a moment ago may be missing:
 * a CPU is listed as online before it is in the cpusets that cut masks. */
static void note_left(Restore *restore, JournalProcess *entry, TaskKey task)
{
    Act *act = restore->act;

    if (act->ops->get_mask(act->context, task, restore->have) == 0 &&
        (!entry->left || hwloc_bitmap_and(restore->have, restore->have, entry->left) == 0))
        entry->left = intern_mask(act->journal->pool, restore->have);
}

/* Whether some threads had another original mask than the process. */
static bool has_own_originals(const Journal *journal, const JournalProcess *entry)
{
    size_t at = LOWER_BOUND(i, journal->n_threads, journal->threads[i].pid < entry->pid);

    return at < journal->n_threads && journal->threads[at].pid == entry->pid;
}

/* Whether to look at a thread with this mask. Of very many, most have the common original again, and need no
 * look unless a cpuset could leave that of a mask given. */
static bool walk_wants(void *userdata, hwloc_const_bitmap_t mask)
{
    const RestoreWalk *pass = userdata;
    Act *act = pass->restore->act;

    return pass->own_originals || pass->restore->late || act_mask_may_be_cut(pass->entry, mask) ||
           !act_mask_same(act, pass->entry->original.mask, mask);
}

static void walk_visit(void *userdata, TaskKey task)
{
    RestoreWalk *pass = userdata;
    Restore *restore = pass->restore;
    int r = restore_thread(restore, pass->entry, task);

    if (r < 0)
        pass->error = r;
    if (r > 0 && journal_original(restore->act->journal, pass->entry, task).whole)
        note_left(restore, pass->entry, task);
    pass->changed |= r > 0;
}

int restore_walk(Restore *restore, JournalProcess *entry, RestoreWalk *pass)
{
    Act *act = restore->act;
    int r;

    pass->restore = restore;
    pass->entry = entry;
    pass->own_originals = has_own_originals(act->journal, entry);
    pass->walk.wants = walk_wants;
    pass->walk.visit = walk_visit;
    pass->walk.userdata = pass;
    r = act->ops->walk_threads(act->context, &pass->walk);
    if (r != 0)
        return restore_failed(restore, r);
    return pass->error < 0 ? pass->error : pass->changed;
}

/* One pass over the threads of one journalled process. As restore_thread(); the last failure wins. */
static int restore_process_pass(Restore *restore, JournalProcess *entry)
{
    RestoreWalk pass = {.walk = {.pid = entry->pid, .start_ticks = entry->start_ticks, .fd = -1}};

    return restore_walk(restore, entry, &pass);
}

int restore_process(Restore *restore, JournalProcess *entry)
{
    CpuMask before = entry->left;
    size_t n_left;
    int r;

    entry->left = NULL;
    restore->late = restore->act->inherited && !restore->later;
    r = restore_process_pass(restore, entry);
    restore->late = false;
    if (!entry->left)
        entry->left = before;
    n_left = restore->n_left;
    entry->selected = true;
    restore->again = true;
    for (unsigned pass = 1; r > 0 && pass < ACT_PASSES_MAX; pass++)
        r = restore_process_pass(restore, entry);
    restore->again = false;
    /* Those left alone are counted by the first pass. A later one would also count those that got all CPUs of
     * a smaller cpuset. */
    restore->n_left = n_left;
    return r > 0 ? restore_failed(restore, -EAGAIN) : r;
}

int restore_threads(Act *act, const World *world, JournalProcess *entry)
{
    Restore restore = {.act = act, .world = world, .have = hwloc_bitmap_alloc(), .later = true};
    int r = restore.have ? restore_process(&restore, entry) : -ENOMEM;

    entry->selected = false;
    act->statistics.n_left += restore.n_left;
    hwloc_bitmap_free(restore.have);
    return r == 0 && restore.n_restored == 0 && restore.n_left > 0 ? 1 : r;
}
