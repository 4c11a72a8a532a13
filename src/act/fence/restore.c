/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Restoring every fence at the end of the program. Only the journal says what there is, since this may be the
 * program after a crash. Everything is asked for, then all of it is waited for. */

#include "act/fence/internal.h"
#include "base/time.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* For the answers, and for the files after them. */
#define RESTORE_USEC (3U * USEC_PER_SEC)
#define MOMENT_USEC  5000U

/* For a cgroup that is renamed just before the write; a choice of ours. */
#define ASK_TRIES 64U

typedef enum Progress {
    PROGRESS_TO_DO,
    PROGRESS_ASKED,
    PROGRESS_LETTER, /* restored in effect, the literal original asked for, which may be refused */
    PROGRESS_DONE,
    PROGRESS_FAILED,
} Progress;

/* An entry of the journal. */
typedef struct Item {
    Progress progress;
    bool gone;  /* the cgroup was removed */
    bool left;  /* some cgroup below it may not be restored */
    char *path; /* where it is now */
} Item;

static const char *name_of(const JournalFence *entry, const Item *item)
{
    return entry->kind == ACT_FENCE_UNIT ? entry->name : item->path;
}

/* TO_DO: renamed or removed meanwhile. */
static Progress restore_try(const Fences *fences, const JournalFence *entry, Item *item)
{
    const FenceMeans *means = &fences->means[entry->memory][entry->kind];
    char path[PATH_MAX];
    int now, r = fence_where(fences->root_fd, entry->kind, entry->path, entry->inode, path);

    item->gone = r == -ENOENT;
    if (r < 0)
        return item->gone ? PROGRESS_DONE : r == -EAGAIN ? PROGRESS_TO_DO : PROGRESS_FAILED;
    free(item->path);
    item->path = strdup(path);
    if (!item->path)
        return PROGRESS_FAILED;
    now = fence_read_now(fences, entry->kind, path, entry->memory, fences->scratch);
    /* Somebody else's set stays. The original is asked for even if it is there, because a service manager may
     * still be about to write ours. A unit that does not run cannot be read, but keeps its property. */
    if (now == 0 && !fence_is_ours(fences, entry, fences->scratch) &&
        !fence_is_back(fences, entry->memory, entry->before, fences->scratch))
        return PROGRESS_DONE;
    r = means->ops->set(means->context, name_of(entry, item),
                        now == -ENOENT ? entry->before
                                       : fence_way_down(fences, entry->memory, entry->before));
    if ((r == -ENOENT || r == -ENODEV) && entry->inode != 0)
        return PROGRESS_TO_DO;
    if (r < 0)
        return r == -ENOENT || r == -ENODEV ? PROGRESS_DONE : PROGRESS_FAILED;
    return PROGRESS_ASKED;
}

static Progress restore_ask(const Fences *fences, const JournalFence *entry, Item *item)
{
    Progress progress = PROGRESS_TO_DO;

    for (unsigned i = 0; progress == PROGRESS_TO_DO && i < ASK_TRIES; i++)
        progress = restore_try(fences, entry, item);
    return progress == PROGRESS_TO_DO ? PROGRESS_FAILED : progress;
}

static Progress restore_check(const Fences *fences, const JournalFence *entry, Item *item)
{
    const FenceMeans *means = &fences->means[entry->memory][entry->kind];
    const char *name = name_of(entry, item);
    int r = fence_result(fences, entry->kind, name, entry->memory);

    if (r == -EINPROGRESS)
        return item->progress;
    if (item->progress == PROGRESS_LETTER || r == -ENOENT)
        return PROGRESS_DONE;
    if (r < 0)
        return fence_is_lost(r) ? restore_ask(fences, entry, item) : PROGRESS_FAILED;
    r = fence_read_now(fences, entry->kind, item->path, entry->memory, fences->scratch);
    if (r == 0 && !fence_is_back(fences, entry->memory, entry->before, fences->scratch))
        return PROGRESS_ASKED;
    if (!hwloc_bitmap_iszero(entry->before))
        return PROGRESS_DONE;
    return means->ops->set(means->context, name, entry->before) == 0 ? PROGRESS_LETTER : PROGRESS_DONE;
}

static bool is_open(Progress progress)
{
    return progress == PROGRESS_ASKED || progress == PROGRESS_LETTER;
}

static void wait_all(const Fences *fences)
{
    for (int memory = false; memory <= true; memory++)
        for (size_t kind = 0; kind < ACT_FENCE_MAX; kind++) {
            const FenceMeans *means = &fences->means[memory][kind];

            if (means->ops && means->ops->wait)
                means->ops->wait(means->context, RESTORE_USEC);
        }
}

/* Restores cgroups made below fences while these were up. Nodes are written aside, one level per round.
 * Returns the number of fences below which something may be left. */
static size_t release_below(Fences *fences, Item *items)
{
    const Journal *journal = fences->journal;
    uint64_t end = time_now_usec() + RESTORE_USEC;
    size_t n_left = 1;

    for (unsigned round = 0; round < FENCE_DEPTH_MAX && n_left > 0 && time_now_usec() < end; round++) {
        n_left = 0;
        for (size_t i = 0; i < journal->n_fences; i++) {
            items[i].left = items[i].progress == PROGRESS_DONE && !items[i].gone &&
                            fence_release_below(fences, &journal->fences[i], items[i].path) > 0;
            n_left += items[i].left;
        }
        wait_all(fences);
    }
    return n_left;
}

/* Asks for everything, then waits for all of it. Returns how many are not known to be restored. */
static size_t restore_all(Fences *fences, Item *items)
{
    const Journal *journal = fences->journal;
    uint64_t end = time_now_usec() + RESTORE_USEC;
    const struct timespec moment = {.tv_nsec = MOMENT_USEC * NSEC_PER_USEC};
    size_t n_open;

    for (size_t i = 0; i < journal->n_fences; i++)
        items[i].progress = restore_ask(fences, &journal->fences[i], &items[i]);
    wait_all(fences);
    do {
        n_open = 0;
        for (size_t i = 0; i < journal->n_fences; i++) {
            if (is_open(items[i].progress))
                items[i].progress = restore_check(fences, &journal->fences[i], &items[i]);
            n_open += is_open(items[i].progress);
        }
        if (n_open > 0)
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    } while (n_open > 0 && time_now_usec() < end);

    for (size_t i = 0; i < journal->n_fences; i++)
        n_open += items[i].progress == PROGRESS_FAILED;
    return n_open;
}

static int restore_items(Fences *fences, Item *items)
{
    Journal *journal = fences->journal;
    size_t n_left = restore_all(fences, items);

    for (size_t i = fences->n_fences; i-- > 0;) {
        Fence *fence = fences->fences[i];

        fence->state = FENCE_DOWN;
        fence->stale = true;
        fence->n_members = 0;
    }
    n_left += release_below(fences, items);
    /* From the end, since the last entry replaces one that is removed. */
    for (size_t i = journal->n_fences; i-- > 0;)
        if (items[i].progress == PROGRESS_DONE && !items[i].left) {
            fence_tidy(fences, &journal->fences[i]);
            (void)journal_note_unfenced(journal, journal->fences[i].name, journal->fences[i].memory);
        }
    return n_left > 0 ? -EAGAIN : 0;
}

int fences_restore(Fences *fences)
{
    CLEANUP_FREE Item *items = NULL;
    size_t n;
    int r;

    /* The last chance to see what somebody else has set meanwhile. */
    fences_sense(fences);
    fence_read_online(fences);
    n = fences->journal->n_fences;
    items = calloc(n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    r = restore_items(fences, items);
    for (size_t i = 0; i < n; i++)
        free(items[i].path);
    return r;
}
