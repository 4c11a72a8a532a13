/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe/counting.h"

typedef struct Entry {
    TaskKey subject;
    uint64_t begun_usec;
    uint32_t n_threads;
    Progress *progress;
} Entry;

struct Counting {
    const ProgressEvents *events;
    Entry *entries;
    size_t n, capacity;
    uint32_t n_threads;
};

Counting *counting_new(const ProgressEvents *events)
{
    Counting *counting = calloc(1, sizeof(*counting));

    if (counting)
        counting->events = events;
    return counting;
}

Counting *counting_free(Counting *counting)
{
    if (!counting)
        return NULL;
    while (counting->n > 0)
        counting_end(counting, counting->n - 1);
    free(counting->entries);
    free(counting);
    return NULL;
}

int counting_begin(Counting *counting, TaskKey subject, const pid_t *tids, size_t n_tids, uint64_t now_usec)
{
    CLEANUP(progress_free_p) Progress *progress = NULL;
    ProgressCounts counts;
    int r;

    if (!GROW(counting->entries, counting->capacity, counting->n + 1))
        return -ENOMEM;
    r = progress_begin(counting->events, tids, n_tids, &progress);
    if (r < 0)
        return r;
    counts = progress_read(progress);
    if (!counts.misses_known)
        return -ENOENT;
    counting->entries[counting->n++] = (Entry){.subject = subject,
                                               .begun_usec = now_usec,
                                               .n_threads = (uint32_t)n_tids,
                                               .progress = TAKE_PTR(progress)};
    counting->n_threads += (uint32_t)n_tids;
    return 0;
}

bool counting_look(const Counting *counting, size_t i, CountingNews *ret)
{
    const Entry *entry;

    if (i >= counting->n)
        return false;
    entry = &counting->entries[i];
    *ret = (CountingNews){
        .subject = entry->subject, .begun_usec = entry->begun_usec, .counts = progress_read(entry->progress)};
    return true;
}

void counting_end(Counting *counting, size_t i)
{
    assert(i < counting->n);
    counting->n_threads -= counting->entries[i].n_threads;
    progress_free(counting->entries[i].progress);
    counting->entries[i] = counting->entries[--counting->n];
}

uint32_t counting_n_threads(const Counting *counting)
{
    return counting->n_threads;
}
