/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Putting every fence back, at the end of the program: the journal alone says what there is, since this may be the
 * program that comes after a crash. Everything is asked for first, then all of it is waited for. */

#include "act/fence/internal.h"
#include "base/time.h"

#include <time.h>

/* For the answers, and for the files after them. */
#define RESTORE_USEC (3U * USEC_PER_SEC)
#define MOMENT_USEC  5000U

typedef enum Progress {
    PROGRESS_TO_DO,
    PROGRESS_ASKED,
    PROGRESS_LETTER, /* it is back in effect, and asked to be so to the letter, which may be refused */
    PROGRESS_DONE,
    PROGRESS_FAILED,
} Progress;

static Progress restore_ask(const Fences *fences, const JournalFence *entry)
{
    const FenceMeans *means = &fences->means[entry->memory][entry->kind];
    int now = fence_read_now(fences, entry->kind, entry->path, entry->memory, fences->scratch), r;

    if (fence_is_another(fences->root_fd, entry))
        return PROGRESS_DONE;
    /* Somebody else's. As it was before, it may still be about to change: a service manager writes after it has
     * answered. What does not run cannot be asked; but a unit still has its property then. */
    if (now == 0 && !fence_is_ours(fences, entry, fences->scratch) &&
        !fence_is_back(fences, entry->memory, entry->before, fences->scratch))
        return PROGRESS_DONE;
    r = means->ops->set(means->context, entry->name,
                        now == -ENOENT ? entry->before
                                       : fence_way_down(fences, entry->memory, entry->before));
    if (r < 0)
        return r == -ENOENT || r == -ENODEV ? PROGRESS_DONE : PROGRESS_FAILED;
    return PROGRESS_ASKED;
}

static Progress restore_check(const Fences *fences, const JournalFence *entry, Progress now)
{
    const FenceMeans *means = &fences->means[entry->memory][entry->kind];
    int r = fence_result(fences, entry->kind, entry->name, entry->memory);

    if (r == -EINPROGRESS)
        return now;
    if (now == PROGRESS_LETTER || r == -ENOENT)
        return PROGRESS_DONE;
    if (r < 0)
        return PROGRESS_FAILED;
    r = fence_read_now(fences, entry->kind, entry->path, entry->memory, fences->scratch);
    if (r == 0 && !fence_is_back(fences, entry->memory, entry->before, fences->scratch))
        return PROGRESS_ASKED;
    if (!hwloc_bitmap_iszero(entry->before))
        return PROGRESS_DONE;
    return means->ops->set(means->context, entry->name, entry->before) == 0 ? PROGRESS_LETTER : PROGRESS_DONE;
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

/* What was made below them while they were up. */
static void release_below(Fences *fences, const Progress *progress)
{
    const Journal *journal = fences->journal;

    for (size_t i = 0; i < journal->n_fences; i++)
        if (progress[i] == PROGRESS_DONE && !fence_is_another(fences->root_fd, &journal->fences[i]))
            fence_release_below(fences, &journal->fences[i]);
    wait_all(fences);
}

/* Asks for everything, then waits for all of it. Returns how many are not known to be back. */
static size_t restore_all(Fences *fences, Progress *progress)
{
    const Journal *journal = fences->journal;
    uint64_t end = time_now_usec() + RESTORE_USEC;
    const struct timespec moment = {.tv_nsec = MOMENT_USEC * NSEC_PER_USEC};
    size_t n_open;

    for (size_t i = 0; i < journal->n_fences; i++)
        progress[i] = restore_ask(fences, &journal->fences[i]);
    wait_all(fences);
    do {
        n_open = 0;
        for (size_t i = 0; i < journal->n_fences; i++) {
            if (is_open(progress[i]))
                progress[i] = restore_check(fences, &journal->fences[i], progress[i]);
            n_open += is_open(progress[i]);
        }
        if (n_open > 0)
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    } while (n_open > 0 && time_now_usec() < end);

    for (size_t i = 0; i < journal->n_fences; i++)
        n_open += progress[i] == PROGRESS_FAILED;
    return n_open;
}

int fences_restore(Fences *fences)
{
    Journal *journal = fences->journal;
    CLEANUP_FREE Progress *progress = calloc(journal->n_fences + 1, sizeof(*progress));
    size_t n_left;

    if (!progress)
        return -ENOMEM;
    /* What somebody else has set meanwhile is seen now, or never. */
    fences_sense(fences);
    fence_read_online(fences);
    n_left = restore_all(fences, progress);
    for (size_t i = fences->n_fences; i-- > 0;) {
        Fence *fence = fences->fences[i];

        fence->state = FENCE_DOWN;
        fence->stale = true;
        fence->n_members = 0;
    }
    release_below(fences, progress);
    /* From the end, since one that is noted is replaced by the last. */
    for (size_t i = journal->n_fences; i-- > 0;)
        if (progress[i] == PROGRESS_DONE) {
            fence_tidy(fences, &journal->fences[i]);
            (void)journal_note_unfenced(journal, journal->fences[i].name, journal->fences[i].memory);
        }
    return n_left > 0 ? -EAGAIN : 0;
}
