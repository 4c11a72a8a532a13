/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/stall.h"

#include "base/time.h"
#include "plan/scan/stall.h"

#include <string.h>
#include <unistd.h>

/* Tries the counters on this thread. Returns 0, or why they cannot be used: -errno. */
static int try_self(Counting *counting)
{
    const pid_t self = gettid();
    int r = counting ? counting_begin(counting, (TaskKey){.pid = self}, &self, 1, 0) : -ENOMEM;

    if (r == 0)
        counting_end(counting, 0);
    return r;
}

void manager_stall_start(Manager *manager)
{
    ManagerStall *stall = manager->stall;
    int r;

    if (!manager->event || manager->options.once || manager->world->topology->n_nodes < 2 ||
        strcmp(manager->options.root, "/") != 0 || (stall && stall->counting))
        return;
    if (!stall)
        stall = manager->stall = calloc(1, sizeof(*stall));
    if (!stall)
        return; /* works without counting */
    stall->counting = counting_new(manager->options.counters);
    stall->why = NULL;
    r = try_self(stall->counting);
    if (r < 0) {
        stall->why = progress_explain(-r);
        manager_stall_stop(manager);
    }
}

void manager_stall_stop(Manager *manager)
{
    if (manager->stall)
        manager->stall->counting = counting_free(manager->stall->counting);
}

void manager_stall_free(Manager *manager)
{
    manager_stall_stop(manager);
    free(manager->stall);
    manager->stall = NULL;
}

/* Returns whether counting this process is over. */
static bool take_in(Manager *manager, const CountingNews *news)
{
    Process *process = world_process(manager->world, news->subject.pid);
    const ProgressCounts *counts = &news->counts;
    uint64_t now = manager->world->now_usec;

    return !process || process->gone || process->start_ticks != news->subject.start_ticks ||
           stall_counted(manager->world, process,
                         &(StallCounts){.instructions = counts->instructions,
                                        .cycles = counts->cycles,
                                        .misses = counts->misses,
                                        .run_usec = counts->run_usec},
                         now - MIN(news->begun_usec, now));
}

void manager_stall_take_in(Manager *manager)
{
    ManagerStall *stall = manager->stall;
    uint64_t start = time_thread_cpu_nsec();
    CountingNews news;
    size_t i = 0;

    if (!stall || !stall->counting)
        return;
    while (counting_look(stall->counting, i, &news))
        if (take_in(manager, &news))
            counting_end(stall->counting, i);
        else
            i++;
    stall->cpu_nsec += time_thread_cpu_nsec() - start;
}

void manager_stall_begin(Manager *manager)
{
    ManagerStall *stall = manager->stall;
    StallChoice choice = {0};
    pid_t tids[STALL_THREADS];
    const Process *process;
    uint64_t start = time_thread_cpu_nsec(), spent_nsec;
    size_t n;

    if (!stall || !stall->counting)
        return;
    choice.n_open = counting_n_threads(stall->counting);
    while ((process = stall_next(manager->world, manager->policies, &choice, tids, &n))) {
        TaskKey subject = {.pid = process->pid, .start_ticks = process->start_ticks};
        int r = counting_begin(stall->counting, subject, tids, n, manager->world->now_usec);

        stall->n_counted += r == 0;
        /* A process that has gone (-ESRCH) is no failure. Others can fail where try_self() did not: for want
         * of rights, or of descriptors. */
        if (r != -ESRCH)
            stall->why = r < 0 ? progress_explain(-r) : NULL;
    }
    spent_nsec = time_thread_cpu_nsec() - start;
    stall->cpu_nsec += spent_nsec;
    pace_pay(&manager->pace, spent_nsec);
}
