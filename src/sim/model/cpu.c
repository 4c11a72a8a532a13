/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Fair run queues. Each CPU lets the thread with the least virtual run time run for a slice, and longer while nobody
 * who waits has run less. A thread that wakes is given at most one slice of credit, one that is born begins a slice
 * behind. The one that runs is never displaced before its slice is over: so do Linux from 6.6 on (run to parity) and
 * before it with the large sched_wakeup_granularity that stealing was measured with.
 *
 * A CPU with one thread has an event only at the end of that thread's burst, and none at all when the burst has no
 * end. */

#include "sim/model/engine.h"

#define IDLE_MEAN_MAX (2 * ENGINE_HOT_NSEC) /* P2 */

static uint64_t slice_nsec(const Engine *e)
{
    return e->constants->slice_usec * NSEC_PER_USEC;
}

/* Time that work takes, rounded up. */
static uint64_t time_of(uint64_t work, uint32_t pace)
{
    return (work >> ENGINE_PACE_BITS) * pace +
           (((work & (ENGINE_PACE - 1)) * pace + ENGINE_PACE - 1) >> ENGINE_PACE_BITS);
}

/* Work that is done in a time, rounded down: never less than what time_of() asked that time for. */
static uint64_t work_of(uint64_t nsec, uint32_t pace)
{
    return ((nsec / pace) << ENGINE_PACE_BITS) + (((nsec % pace) << ENGINE_PACE_BITS) / pace);
}

void cpu_touch(Engine *e, uint32_t cpu)
{
    if (e->cpus[cpu].resched)
        return;
    e->cpus[cpu].resched = true;
    e->resched[(e->resched_first + e->n_resched++) % e->topology->cpu_limit] = cpu;
}

static void account_running(Engine *e, Cpu *cpu, uint64_t nsec)
{
    Thread *thread = &e->threads[cpu->current];
    uint64_t debt = MIN(thread->debt_nsec, nsec), work;

    cpu->busy_nsec += nsec;
    e->used[(size_t)cpu->node * e->spec->n_workloads + thread->workload] += nsec;
    if (engine_counts_late(e))
        e->tallies[thread->workload].late_nsec[cpu->node] += nsec;
    thread->run_nsec += nsec;
    thread->vruntime += (int64_t)nsec;
    thread->warm_nsec += nsec;
    thread->warm_llc_nsec += nsec;
    thread->ran_nsec = e->now_nsec;
    thread->debt_nsec -= debt;
    if (nsec == debt)
        return;
    work = MIN(work_of(nsec - debt, cpu->pace), thread->work_left);
    if (thread->work_left != UINT64_MAX)
        thread->work_left -= work;
    e->tallies[thread->workload].work_nsec += work;
    memory_used(e, thread, (uint32_t)cpu->node, work);
}

void cpu_account(Engine *e, uint32_t index)
{
    Cpu *cpu = &e->cpus[index];
    uint64_t nsec = e->now_nsec - cpu->since_nsec;
    int64_t least;

    if (nsec == 0)
        return;
    cpu->since_nsec = e->now_nsec;
    cpu->wait_nsec += cpu->n_queued * nsec;
    if (cpu->current < 0)
        return;
    account_running(e, cpu, nsec);
    least = e->threads[cpu->current].vruntime;
    if (cpu->n_queued > 0)
        least = MIN(least, e->threads[cpu->queue[cpu->n_queued - 1]].vruntime);
    cpu->min_vruntime = MAX(cpu->min_vruntime, least);
}

/*
 * Queues
 */

static bool runs_before(const Engine *e, uint32_t a, uint32_t b)
{
    return e->threads[a].vruntime != e->threads[b].vruntime ? e->threads[a].vruntime < e->threads[b].vruntime
                                                            : a < b;
}

/* Place of a thread in the queue: of the first that runs before it. */
static size_t place_of(const Engine *e, const Cpu *cpu, uint32_t thread)
{
    return LOWER_BOUND(i, cpu->n_queued, runs_before(e, thread, cpu->queue[i]));
}

static void queue_insert(Engine *e, Cpu *cpu, uint32_t thread)
{
    size_t at;

    if (!GROW(cpu->queue, cpu->queue_capacity, cpu->n_queued + 1)) {
        e->error = -ENOMEM;
        return;
    }
    at = place_of(e, cpu, thread);
    for (size_t i = cpu->n_queued++; i > at; i--)
        cpu->queue[i] = cpu->queue[i - 1];
    cpu->queue[at] = thread;
    e->threads[thread].state = THREAD_STATE_QUEUED;
    e->threads[thread].queued_nsec = e->now_nsec;
}

static void queue_remove(Engine *e, Cpu *cpu, uint32_t thread)
{
    size_t at = place_of(e, cpu, thread);

    assert(at < cpu->n_queued && cpu->queue[at] == thread);
    cpu->n_queued--;
    for (size_t i = at; i < cpu->n_queued; i++)
        cpu->queue[i] = cpu->queue[i + 1];
    e->threads[thread].wait_nsec += e->now_nsec - e->threads[thread].queued_nsec;
}

/* Follows the number of runnable threads of a CPU in what it is part of; SMT siblings become faster or slower. */
static void span_changed(Span *span, uint32_t before, uint32_t after)
{
    span->n_runnable = span->n_runnable + after - before;
    span->n_idle = span->n_idle + (after == 0) - (before == 0);
    span->n_crowded = span->n_crowded + (after > 1) - (before > 1);
}

static void core_changed(Span *span, bool idle)
{
    if (idle)
        span->n_idle_cores++;
    else
        span->n_idle_cores--;
}

static void runnable_changed(Engine *e, uint32_t index, uint32_t before, uint32_t after)
{
    const Cpu *cpu = &e->cpus[index];
    Span *core = &e->cores[cpu->core];
    bool idle_before = core->n_runnable == 0, idle_after;

    span_changed(core, before, after);
    span_changed(&e->shards[cpu->shard], before, after);
    span_changed(&e->nodes[cpu->node], before, after);
    e->n_crowded = e->n_crowded + (after > 1) - (before > 1);
    idle_after = core->n_runnable == 0;
    if (idle_before != idle_after) {
        core_changed(&e->shards[cpu->shard], idle_after);
        core_changed(&e->nodes[cpu->node], idle_after);
    }
    if ((before == 0) != (after == 0))
        for (uint32_t i = 0; i < core->n_cpus; i++)
            cpu_touch(e, core->cpus[i]);
}

static void leaves_idle(const Engine *e, Cpu *cpu)
{
    uint64_t spell = e->now_nsec - cpu->idle_since_nsec;

    cpu->idling = false;
    if (spell == 0 && cpu->last_ran >= 0)
        return; /* it was not idle, but looked for work and found some */
    cpu->busy_since_nsec = e->now_nsec;
    cpu->busy_by = e->actor;
    if (spell >= cpu->idle_mean_nsec)
        cpu->idle_mean_nsec = MIN(cpu->idle_mean_nsec + (spell - cpu->idle_mean_nsec) / 8, IDLE_MEAN_MAX);
    else
        cpu->idle_mean_nsec -= (cpu->idle_mean_nsec - spell) / 8;
}

void cpu_enqueue(Engine *e, uint32_t index, uint32_t thread)
{
    Cpu *cpu = &e->cpus[index];
    uint32_t before = cpu_n_runnable(cpu);

    cpu_account(e, index);
    if (before == 0)
        leaves_idle(e, cpu);
    e->threads[thread].vruntime += cpu->min_vruntime;
    e->threads[thread].cpu = (int32_t)index;
    queue_insert(e, cpu, thread);
    runnable_changed(e, index, before, cpu_n_runnable(cpu));
    cpu_touch(e, index);
}

void cpu_dequeue(Engine *e, uint32_t index)
{
    Thread *thread = &e->threads[index];
    Cpu *cpu = &e->cpus[thread->cpu];
    uint32_t before = cpu_n_runnable(cpu);

    cpu_account(e, (uint32_t)thread->cpu);
    if (thread->state == THREAD_STATE_RUNNING) {
        cpu->last_ran = cpu->current;
        cpu->current = ENGINE_NONE;
    } else {
        queue_remove(e, cpu, index);
    }
    if (before == 1)
        cpu->idle_since_nsec = e->now_nsec;
    thread->vruntime -= cpu->min_vruntime;
    runnable_changed(e, (uint32_t)thread->cpu, before, before - 1);
    cpu_touch(e, (uint32_t)thread->cpu);
}

void cpu_move(Engine *e, uint32_t index, uint32_t to, MoveCause cause)
{
    Thread *thread = &e->threads[index];
    uint32_t from = (uint32_t)thread->cpu;

    if (from == to)
        return;
    cpu_dequeue(e, index);
    cpu_enqueue(e, to, index);
    thread_note_move(e, thread, from, to, cause);
}

bool cpu_seems_idle(const Engine *e, uint32_t index)
{
    const Cpu *cpu = &e->cpus[index];

    return cpu_n_runnable(cpu) == 0 ||
           (!e->kernel->idle_claim && cpu->busy_since_nsec == e->now_nsec && cpu->busy_by != e->actor);
}

bool cpu_seems_idle_core(const Engine *e, uint32_t index)
{
    const Span *core = &e->cores[e->cpus[index].core];

    for (uint32_t i = 0; i < core->n_cpus; i++)
        if (!cpu_seems_idle(e, core->cpus[i]))
            return false;
    return true;
}

/*
 * Choosing
 */

static uint32_t pace_on(const Engine *e, const Cpu *cpu)
{
    const Thread *thread = &e->threads[cpu->current];
    const Span *core = &e->cores[cpu->core];
    uint64_t pace = memory_pace(e, thread, (uint32_t)cpu->node);
    uint32_t n_busy = core->n_cpus - core->n_idle;

    /* Two busy siblings do 2 * smt_permille of a core's work, and more of them no more than that. */
    if (n_busy > 1)
        pace = pace * n_busy * 500 / e->constants->smt_permille;
    return (uint32_t)CLAMP(pace, (uint64_t)ENGINE_PACE, (uint64_t)UINT32_MAX);
}

static void dispatch(Engine *e, Cpu *cpu)
{
    uint32_t index = cpu->queue[cpu->n_queued - 1];
    Thread *thread = &e->threads[index];

    queue_remove(e, cpu, index);
    cpu->current = (int32_t)index;
    cpu->slice_end_nsec = e->now_nsec + slice_nsec(e);
    thread->state = THREAD_STATE_RUNNING;
    thread_dispatched(e, index, cpu->last_ran != cpu->current);
}

static void put_back(Engine *e, Cpu *cpu)
{
    cpu->last_ran = cpu->current;
    cpu->current = ENGINE_NONE;
    queue_insert(e, cpu, (uint32_t)cpu->last_ran);
}

/* Whether the running thread makes way for the first that waits; if not, it goes on for another slice. */
static bool is_over(const Engine *e, Cpu *cpu)
{
    const Thread *first;

    if (e->now_nsec < cpu->slice_end_nsec)
        return false;
    if (cpu->n_queued > 0) {
        first = &e->threads[cpu->queue[cpu->n_queued - 1]];
        if (first->vruntime < e->threads[cpu->current].vruntime)
            return true;
        cpu->slice_end_nsec = e->now_nsec + slice_nsec(e);
    }
    return false;
}

static void goes_idle(Engine *e, Cpu *cpu, uint32_t index)
{
    if (cpu->idling)
        return;
    cpu->idling = true;
    if (!(e->kernel->balance && balance_newidle(e, index)) && e->kernel->steal)
        (void)balance_steal(e, index);
}

static void program(Engine *e, const Cpu *cpu, uint32_t index)
{
    const Thread *thread;
    uint64_t when = HEAP_NEVER;

    if (cpu->current >= 0) {
        thread = &e->threads[cpu->current];
        if (thread->work_left != UINT64_MAX)
            when = e->now_nsec + thread->debt_nsec + time_of(thread->work_left, cpu->pace);
        if (cpu->n_queued > 0)
            when = MIN(when, MAX(cpu->slice_end_nsec, e->now_nsec + 1));
    }
    heap_set(&e->heap, index, when);
}

static void choose(Engine *e, uint32_t index)
{
    Cpu *cpu = &e->cpus[index];

    cpu_account(e, index);
    if (cpu->current >= 0 && is_over(e, cpu))
        put_back(e, cpu);
    if (cpu->current < 0 && cpu->n_queued == 0)
        goes_idle(e, cpu, index);
    if (cpu->current < 0 && cpu->n_queued > 0)
        dispatch(e, cpu);
    if (cpu->current >= 0)
        cpu->pace = pace_on(e, cpu);
    program(e, cpu, index);
}

void cpu_settle(Engine *e)
{
    while (e->n_resched > 0 && !e->error) {
        uint32_t cpu = e->resched[e->resched_first];

        e->resched_first = (e->resched_first + 1) % e->topology->cpu_limit;
        e->n_resched--;
        e->cpus[cpu].resched = false;
        choose(e, cpu);
    }
}

void cpu_event(Engine *e, uint32_t index)
{
    Cpu *cpu = &e->cpus[index];
    Thread *thread;

    e->actor = index;
    cpu_account(e, index);
    cpu_touch(e, index);
    if (cpu->current < 0)
        return;
    thread = &e->threads[cpu->current];
    if (thread->work_left == 0 && thread->debt_nsec == 0)
        thread_burst_done(e, (uint32_t)cpu->current);
}
