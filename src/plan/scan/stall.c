/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/scan/stall.h"

#include "base/time.h"
#include "plan/group.h"
#include "plan/scan/gather.h"

#define MISS_CYCLES 300U
/* Below half an instruction per cycle a thread waits for something, perhaps memory. */
#define SLOW_PERMILLE 500U

/* Like residency (probe/memory/residency.h): whenever the age has doubled, then every ten seconds; of very
 * many processes four a second. */
#define YOUNG_USEC  900000U
#define OLD_USEC    (10 * USEC_PER_SEC)
#define AMONG_USEC  (USEC_PER_SEC / 4)
#define ASLEEP_USEC USEC_PER_SEC
/* Permille of a CPU: less is not worth counting. */
#define RUNS_PERMILLE 50U

int stall_estimate(const StallCounts *counts)
{
    if (counts->cycles < STALL_CYCLES_MIN || counts->misses == 0)
        return -ENODATA;
    if (counts->instructions < counts->cycles / 1000 * SLOW_PERMILLE)
        return 1000;
    return (int)MIN(counts->misses * MISS_CYCLES / (counts->cycles / 1000), 1000U);
}

uint32_t stall_discount(uint32_t stall_permille)
{
    return 1000 - MIN(stall_permille, STALL_FULL_PERMILLE) * 1000 / STALL_FULL_PERMILLE;
}

/* By lines missed, in MB/s of run time; 0: not known. */
static uint32_t traffic_mb(const StallCounts *counts)
{
    return counts->run_usec > 0 ? (uint32_t)MIN(counts->misses * STALL_LINE_BYTES / counts->run_usec,
                                                (uint64_t)WORLD_TRAFFIC_MAX)
                                : 0;
}

static void put_off(const World *world, Process *process)
{
    uint64_t wait =
        CLAMP(world_since(world, process->first_seen_usec), (uint64_t)YOUNG_USEC, (uint64_t)OLD_USEC);

    process->stall_due_usec =
        world->now_usec + MAX(wait, world->n_processes * AMONG_USEC * (wait == OLD_USEC));
}

bool stall_counted(const World *world, Process *process, const StallCounts *counts, uint64_t usec)
{
    int r;

    if (counts->cycles < STALL_CYCLES && usec < STALL_USEC_MAX)
        return false;
    r = stall_estimate(counts);
    if (r < 0)
        return true;
    process->stall_permille = (uint16_t)(process->stall_usec > 0 ? (process->stall_permille + r) / 2 : r);
    process->traffic_mb = traffic_mb(counts);
    process->ipc_permille =
        (uint16_t)MIN(counts->instructions / (counts->cycles / 1000), (uint64_t)UINT16_MAX);
    process->stall_usec = MAX(world->now_usec - MIN(usec, world->now_usec), 1U);
    gather_counted(world, process);
    return true;
}

uint64_t stall_progress(const World *world, const Group *group, uint32_t run_permille, uint64_t since_usec)
{
    uint64_t all = 0, known = 0, sum = 0;

    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *process = &world->processes[i];

        if (process->gone || process->group.i != (int32_t)(group - world->groups))
            continue;
        all += process->cpu_permille;
        if (process->stall_usec <= since_usec)
            continue;
        known += process->cpu_permille;
        sum += (uint64_t)process->cpu_permille * process->ipc_permille;
    }
    return known > 0 && known >= all - all / 10 ? sum / known * run_permille / 1000 : 0;
}

/* Choosing */

static bool is_wanted(const World *world, const PolicySet *policies, const Process *process)
{
    const Policy *policy = group_policy(world, policies, process->workload);

    return !process->gone && !process->yielded && policy && !world->workloads[process->workload.i].paused &&
           policy->mode == POLICY_MODE_AUTO && policy->evidence == POLICY_EVIDENCE_AUTO &&
           policy_chooses_nodes(policy);
}

/* Those never counted come first, then by due time. */
static bool precedes(const Process *a, const Process *b)
{
    bool never = a->stall_usec == 0, never_b = b->stall_usec == 0;

    return never != never_b ? never : a->stall_due_usec < b->stall_due_usec;
}

/* Keeps the threads that run most, the lowest index first among equals. */
static void add_thread(const World *world, size_t index, size_t *best, size_t *n)
{
    uint32_t run = world->tasks[index].run_permille;
    size_t at = *n;

    while (at > 0 && world->tasks[best[at - 1]].run_permille < run)
        at--;
    if (at == STALL_THREADS)
        return;
    *n = MIN(*n + 1, (size_t)STALL_THREADS);
    for (size_t i = *n - 1; i > at; i--)
        best[i] = best[i - 1];
    best[at] = index;
}

/* Which threads of a new process run is not known yet. */
static size_t find_threads(const World *world, const Process *process, pid_t *tids)
{
    size_t n_tasks, first = world_process_tasks(world, process, &n_tasks), best[STALL_THREADS], n = 0;
    uint32_t runs = 0;
    bool fresh = false;

    for (size_t i = first; i < first + n_tasks; i++) {
        if (world->tasks[i].gone)
            continue;
        runs += world->tasks[i].run_permille;
        fresh |= world->tasks[i].fresh;
        add_thread(world, i, best, &n);
    }
    if (!fresh && runs < RUNS_PERMILLE)
        return 0;
    for (size_t i = 0; i < n; i++)
        tids[i] = world->tasks[best[i]].tid;
    return n;
}

/* An older process that used hardly any CPU time in the last slow tick is skipped. */
static bool may_run(const World *world, const Process *process)
{
    return process->cpu_permille >= RUNS_PERMILLE ||
           world_since(world, process->first_seen_usec) < YOUNG_USEC * 2;
}

/* Forgets old counts of processes that are no longer counted. */
static void forget(World *world, const PolicySet *policies)
{
    for (size_t i = 0; i < world->n_processes; i++) {
        Process *process = &world->processes[i];

        if (process->stall_usec == 0 || is_wanted(world, policies, process))
            continue;
        world_forget_counts(process);
    }
}

Process *stall_next(World *world, const PolicySet *policies, StallChoice *choice, pid_t *ret_tids,
                    size_t *ret_n)
{
    if (choice->n_begun == 0)
        forget(world, policies);
    while (choice->n_begun < STALL_THREADS_BY_TICK && choice->n_open + STALL_THREADS <= STALL_THREADS_MAX) {
        Process *next = NULL;

        for (size_t i = 0; i < world->n_processes; i++) {
            Process *process = &world->processes[i];

            if (process->stall_due_usec <= world->now_usec && may_run(world, process) &&
                is_wanted(world, policies, process) && (!next || precedes(process, next)))
                next = process;
        }
        if (!next)
            return NULL;
        put_off(world, next);
        *ret_n = find_threads(world, next, ret_tids);
        choice->n_open += (uint32_t)*ret_n;
        choice->n_begun += (uint32_t)MAX(*ret_n, (size_t)1); /* limits the processes tried in one tick */
        if (*ret_n > 0)
            return next;
        next->stall_due_usec = world->now_usec + ASLEEP_USEC;
    }
    return NULL;
}
