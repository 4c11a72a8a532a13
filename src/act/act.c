/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "act/act.h"

#include "act/internal.h"
#include "act/undo/lineage.h"
#include "act/undo/search.h"
#include "base/time.h"

#define MEASURE_ROUNDS 16U

int act_new(const ActOps *ops, void *context, int root_fd, const char *journal_path, Act **ret,
            char **ret_error)
{
    CLEANUP(act_free_p) Act *act = NULL;
    int r = 0;

    *ret_error = NULL;
    if (ops->changes && !journal_path)
        return -EINVAL;
    act = calloc(1, sizeof(*act));
    if (!act)
        return -ENOMEM;
    act->ops = ops;
    act->settle_usec = ACT_SETTLE_USEC;
    act->stuck_usec = ACT_STUCK_USEC;
    act->root_fd = root_fd;
    act->context = context ? context : &act->root_fd;
    act->all = hwloc_bitmap_alloc_full();
    act->online = hwloc_bitmap_alloc_full();
    act->isolated = hwloc_bitmap_alloc();
    act->scratch = hwloc_bitmap_alloc();
    act->cpuset = hwloc_bitmap_alloc();
    if (!act->all || !act->online || !act->isolated || !act->scratch || !act->cpuset)
        return -ENOMEM;

    if (ops->changes) {
        r = journal_open(journal_path, root_fd, &act->journal, ret_error);
        if (r < 0)
            return r;
        act->inherited = act->journal->n_processes > 0;
        act->fences = fences_new(act->journal, root_fd);
        if (!act->fences)
            return -ENOMEM;
    }
    *ret = TAKE_PTR(act);
    return r;
}

Act *act_free(Act *act)
{
    if (!act)
        return NULL;
    search_free(act->search);
    free(act->slice.parts);
    fences_free(act->fences);
    journal_free(act->journal);
    free(act->undecided);
    free(act->suspects);
    hwloc_bitmap_free(act->all);
    hwloc_bitmap_free(act->online);
    hwloc_bitmap_free(act->isolated);
    hwloc_bitmap_free(act->scratch);
    hwloc_bitmap_free(act->cpuset);
    free(act);
    return NULL;
}

bool act_kept(const Act *act)
{
    return act->journal && act->journal->kept;
}

int act_note_kept(Act *act, bool kept)
{
    return act->journal ? journal_note_kept(act->journal, kept) : 0;
}

void act_set_orders(Act *act, Orders *orders)
{
    act->orders = orders;
}

int act_compact(Act *act)
{
    CLEANUP(lineage_done) Lineage lineage = {0};
    int r;

    if (!journal_bloated(act->journal))
        return 0;
    r = lineage_init(act, &lineage);
    if (r == 0)
        r = lineage_adopt_all(act, &lineage);
    if (r == 0)
        r = journal_compact(act->journal, lineage.processes, lineage.n);
    if (r < 0) { /* not in every tick, but once as much has accumulated again */
        act->journal->n_kept = act->journal->n_processes;
        act->journal->n_lines = 0;
    }
    return r;
}

Fences *act_fences(const Act *act)
{
    return act->fences;
}

static int measure(Act *act)
{
    CLEANUP_BITMAP hwloc_bitmap_t have = hwloc_bitmap_alloc();
    TaskKey self = {.pid = getpid(), .tid = gettid()};
    uint64_t start;
    ActProcess me;
    int r = have ? act->ops->read_process(act->context, self.tid, &me) : -ENOMEM;

    if (r != 0)
        return r;
    self.start_ticks = me.start_ticks;
    r = act->ops->get_mask(act->context, self, have);
    if (r != 0)
        return r;

    act_refresh(act);
    start = time_now_usec();
    for (unsigned i = 0; r == 0 && i < MEASURE_ROUNDS; i++)
        r = act->ops->set_mask(act->context, self, NULL,
                               hwloc_bitmap_isincluded(act->online, have) ? act->all : have);
    if (r == 0)
        act->measured_usec = MAX((time_now_usec() - start) / MEASURE_ROUNDS, 1U);
    return r;
}

int act_measure(Act *act)
{
    int r = act->ops->changes ? measure(act) : 0;

    return r > 0 ? -EPERM : r;
}

uint64_t act_cost_usec(const Act *act)
{
    if (act->statistics.n_set_mask == 0)
        return act->measured_usec;
    return MAX(act->statistics.cost_usec / act->statistics.n_set_mask, 1U);
}

const ActStatistics *act_statistics(const Act *act)
{
    return &act->statistics;
}
