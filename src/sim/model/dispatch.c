/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Fair run queues. Each CPU runs the thread with the least virtual run time for a slice, and for longer while no
 * waiting thread has run less. A thread that wakes gets at most one slice of credit; a newborn thread starts one slice
 * behind. The running thread is never preempted before its slice ends. Linux does so from 6.6 on (run to parity), and
 * before that with the large sched_wakeup_granularity that stealing was measured with.
 *
 * A CPU with one thread has an event only at the end of that thread's burst, and none if the burst has no end. */

#include "sim/model/engine.h"

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

static uint32_t pace_on(const Engine *e, const Cpu *cpu)
{
    const Thread *thread = &e->threads[cpu->current];
    const Span *core = &e->cores[cpu->core];
    uint64_t pace = memory_pace(e, thread, (uint32_t)cpu->node);
    uint32_t n_busy = core->n_cpus - core->n_idle;

    /* Two busy siblings do 2 * smt_permille of a core's work; more siblings do no more than two. */
    if (n_busy > 1)
        pace = pace * n_busy * 500 / e->constants->smt_permille;
    return (uint32_t)CLAMP(pace, (uint64_t)ENGINE_PACE, (uint64_t)UINT32_MAX);
}

static void dispatch(Engine *e, Cpu *cpu)
{
    uint32_t index = cpu->queue[cpu->n_queued - 1];
    Thread *thread = &e->threads[index];

    cpu_queue_remove(e, cpu, index);
    cpu->current = (int32_t)index;
    cpu->slice_end_nsec = e->now_nsec + slice_nsec(e);
    thread->state = THREAD_STATE_RUNNING;
    thread_dispatched(e, index, cpu->last_ran != cpu->current);
}

static void put_back(Engine *e, Cpu *cpu)
{
    cpu->last_ran = cpu->current;
    cpu->current = ENGINE_NONE;
    cpu_queue_insert(e, cpu, (uint32_t)cpu->last_ran);
}

/* Whether the running thread yields to the first waiting one. If not, it gets another slice. */
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

void dispatch_settle(Engine *e)
{
    while (e->n_resched > 0 && !e->error) {
        uint32_t cpu = e->resched[e->resched_first];

        e->resched_first = (e->resched_first + 1) % e->topology->cpu_limit;
        e->n_resched--;
        e->cpus[cpu].resched = false;
        choose(e, cpu);
    }
}

void dispatch_event(Engine *e, uint32_t index)
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
