/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What processor counters would show of threads (plan/scan/stall.h). Misses are those of the time spent
 * waiting, as many at once as the workload overlaps, or the cache lines of its traffic if these are more.
 * Switches, cold caches and faults take cycles and do no work. */

#include "sim/agent/agent.h"

static uint64_t scale(uint64_t value, uint64_t by, uint64_t of)
{
    return value / of * by + value % of * by / of;
}

/* Adds the counts of a thread for this much work and run time. */
static void add(const Engine *e, const SimWorkload *w, uint64_t work_nsec, uint64_t run_nsec,
                StallCounts *ret)
{
    uint64_t waits = scale(work_nsec, w->memory_permille, 1000);
    uint64_t misses = waits / MAX(e->constants->local_latency_nsec, 1U) * w->miss_overlap;
    uint64_t lines = scale(work_nsec, w->bandwidth / STALL_LINE_BYTES, NSEC_PER_SEC);

    ret->run_usec += run_nsec / NSEC_PER_USEC;
    ret->cycles += scale(run_nsec, e->constants->cycles_per_usec, NSEC_PER_USEC);
    ret->instructions += scale(scale(work_nsec - waits, e->constants->cycles_per_usec, NSEC_PER_USEC),
                               e->constants->ipc_permille, 1000);
    ret->misses += MAX(misses, lines) + 1;
}

static StallCounts read_counts(Engine *e, const AgentCount *count)
{
    StallCounts counts = {0};

    for (size_t i = 0; i < count->n; i++) {
        const Thread *thread = &e->threads[count->threads[i]];

        if (thread->cpu >= 0)
            cpu_account(e, (uint32_t)thread->cpu);
        add(e, engine_workload(e, thread), thread->work_nsec - count->work_nsec[i],
            thread->run_nsec - count->run_nsec[i], &counts);
    }
    return counts;
}

void agent_counted(Engine *e, Agent *agent)
{
    size_t n = 0;

    for (size_t i = 0; i < agent->n_counts; i++) {
        const AgentCount *count = &agent->counts[i];
        Process *process = world_process(agent->world, count->pid);
        StallCounts counts = read_counts(e, count);

        if (process && !process->gone &&
            !stall_counted(agent->world, process, &counts, agent->world->now_usec - count->begun_usec))
            agent->counts[n++] = *count;
    }
    agent->n_counts = n;
}

static void begin(Engine *e, Agent *agent, const Process *process, const pid_t *tids, size_t n)
{
    AgentCount *count = &agent->counts[agent->n_counts++];

    *count = (AgentCount){.pid = process->pid, .begun_usec = agent->world->now_usec, .n = n};
    for (size_t i = 0; i < n; i++) {
        const Task *task = world_task_by_tid(agent->world, process->pid, tids[i]);
        const Thread *thread = &e->threads[task->reader];

        count->threads[i] = task->reader;
        count->work_nsec[i] = thread->work_nsec;
        count->run_nsec[i] = thread->run_nsec;
    }
}

int agent_count(Engine *e, Agent *agent)
{
    StallChoice choice = {0};
    pid_t tids[STALL_THREADS];
    const Process *process;
    size_t n;

    if (!e->constants->counters || e->n_nodes < 2)
        return 0;
    for (size_t i = 0; i < agent->n_counts; i++)
        choice.n_open += (uint32_t)agent->counts[i].n;
    while ((process = stall_next(agent->world, e->variant->policies, &choice, tids, &n))) {
        if (!GROW(agent->counts, agent->counts_capacity, agent->n_counts + 1))
            return -ENOMEM;
        begin(e, agent, process, tids, n);
    }
    return 0;
}
