/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Run queues, and the time that threads spend in them. dispatch.c chooses from them. */

#include "sim/model/engine.h"

#define IDLE_MEAN_MAX (2 * ENGINE_HOT_NSEC) /* P2 */

/* Work done in `nsec`, rounded down. As time_of() of dispatch.c rounds up, the time that it computes for some
 * work is always enough for that work here. */
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
    thread->work_nsec += work;
    e->tallies[thread->workload].work_nsec += work;
    memory_used(e, thread, (uint32_t)cpu->node, work, nsec - debt);
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

/* Index of a thread in the queue: that of the first entry that it does not run before. */
static size_t place_of(const Engine *e, const Cpu *cpu, uint32_t thread)
{
    return LOWER_BOUND(i, cpu->n_queued, runs_before(e, thread, cpu->queue[i]));
}

void cpu_queue_insert(Engine *e, Cpu *cpu, uint32_t thread)
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

void cpu_queue_remove(Engine *e, Cpu *cpu, uint32_t thread)
{
    size_t at = place_of(e, cpu, thread);

    assert(at < cpu->n_queued && cpu->queue[at] == thread);
    cpu->n_queued--;
    for (size_t i = at; i < cpu->n_queued; i++)
        cpu->queue[i] = cpu->queue[i + 1];
    e->threads[thread].wait_nsec += e->now_nsec - e->threads[thread].queued_nsec;
}

/* Updates a span for a change in the number of runnable threads of one of its CPUs. */
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
        return; /* it was never idle: it looked for work and found some */
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
    cpu_queue_insert(e, cpu, thread);
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
        cpu_queue_remove(e, cpu, index);
    }
    if (before == 1)
        cpu->idle_since_nsec = e->now_nsec;
    thread->vruntime -= cpu->min_vruntime;
    runnable_changed(e, (uint32_t)thread->cpu, before, before - 1);
    cpu_touch(e, (uint32_t)thread->cpu);
}

void cpu_note_move(Engine *e, Thread *thread, uint32_t from, uint32_t to, MoveCause cause)
{
    static const SimMetric levels[TOPOLOGY_LEVEL_MAX] = {
        [TOPOLOGY_LEVEL_SAME] = SIM_METRIC_MOVES_SMT,      [TOPOLOGY_LEVEL_SMT] = SIM_METRIC_MOVES_SMT,
        [TOPOLOGY_LEVEL_LLC] = SIM_METRIC_MOVES_LLC,       [TOPOLOGY_LEVEL_NODE] = SIM_METRIC_MOVES_NODE,
        [TOPOLOGY_LEVEL_MACHINE] = SIM_METRIC_MOVES_CROSS,
    };
    static const SimMetric causes[] = {
        [MOVE_CAUSE_WAKE] = SIM_METRIC_MOVES_CROSS_WAKE,
        [MOVE_CAUSE_PULL] = SIM_METRIC_MOVES_CROSS_PULL,
        [MOVE_CAUSE_DAEMON] = SIM_METRIC_MOVES_CROSS_DAEMON,
    };
    int64_t *count = e->tallies[thread->workload].count;
    TopologyLevel level = topology_level(e->topology, (CpuIx){(int32_t)from}, (CpuIx){(int32_t)to});

    thread->recent_cpu = (int32_t)from;
    if (cause == MOVE_CAUSE_SCENARIO)
        return;
    count[SIM_METRIC_MOVES]++;
    count[levels[level]]++;
    if (level != TOPOLOGY_LEVEL_MACHINE)
        return;
    count[causes[cause]]++;
    if (engine_counts_late(e))
        count[SIM_METRIC_MOVES_CROSS_LATE]++;
}

void cpu_move(Engine *e, uint32_t index, uint32_t to, MoveCause cause)
{
    Thread *thread = &e->threads[index];
    uint32_t from = (uint32_t)thread->cpu;

    if (from == to)
        return;
    cpu_dequeue(e, index);
    cpu_enqueue(e, to, index);
    cpu_note_move(e, thread, from, to, cause);
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
