/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The life of a thread. It runs bursts. The pauses between them end by a timer, or when another thread wakes it.
 *
 * Wake relations are circles: a pair, or all threads of a process. The first half of a circle sends a message after
 * each burst. The second half receives: it runs a burst for each message, and sleeps when there is none. A sender of a
 * pair waits until its message has been processed. A sender of a group goes on with the next receiver, and waits only
 * while the socket of the current receiver is full. Senders end when they have done their work, receivers when no
 * sender is left. */

#include "sim/model/engine.h"

/* Messages that fill a receiver's socket, so that senders must wait, and the number at which they go on. A
 * Unix socket has net.core.wmem_default, 212992 bytes. A message of 100 bytes, as hackbench sends, is
 * accounted as 768. Writers are woken when three quarters are free. */
#define MESSAGES_MAX 277U
#define MESSAGES_LOW (MESSAGES_MAX / 4)

typedef struct Circle {
    uint32_t first; /* thread */
    uint32_t n, n_senders;
} Circle;

/* Returns the circle of a thread. n_senders 0: it has none. */
static Circle circle_of(const Engine *e, uint32_t index)
{
    const Thread *thread = &e->threads[index];
    const SimWorkload *w = engine_workload(e, thread);
    const Family *family = &e->families[thread->process];
    uint32_t place = index - family->first;
    uint32_t size = w->wake == SIM_WAKE_PAIR ? 2 : w->wake == SIM_WAKE_GROUP ? w->n_threads : 1;
    uint32_t start = place - place % size, n = MIN(size, w->n_threads - start);

    return (Circle){.first = family->first + start, .n = n, .n_senders = n / 2};
}

static bool is_receiver(const Circle *circle, uint32_t index)
{
    return circle->n_senders > 0 && index - circle->first >= circle->n_senders;
}

/*
 * Running
 */

static void start_burst(Engine *e, Thread *thread)
{
    const SimWorkload *w = engine_workload(e, thread);
    uint64_t burst = random_time(&thread->random, &w->burst);

    thread->burst = burst == 0 ? thread->life_left : MIN(burst, thread->life_left);
    thread->work_left = thread->burst;
}

/* Time to refill caches after a move. A thread cannot lose cache that it has not filled. */
static uint64_t refill_nsec(const Engine *e, const Thread *thread)
{
    const Cpu *from, *to = &e->cpus[thread->cpu];

    if (thread->warm_cpu < 0 || thread->warm_cpu == thread->cpu)
        return 0;
    from = &e->cpus[thread->warm_cpu];
    if (from->core == to->core)
        return 0;
    return from->shard == to->shard ? MIN(e->constants->refill_llc_nsec, thread->warm_nsec)
                                    : MIN(e->constants->refill_nsec, thread->warm_llc_nsec);
}

/* The thread's warm cache is now where it runs. */
static void move_warmth(Engine *e, Thread *thread)
{
    const Cpu *from, *to = &e->cpus[thread->cpu];

    if (thread->warm_cpu >= 0) {
        from = &e->cpus[thread->warm_cpu];
        if (from->shard != to->shard)
            thread->warm_llc_nsec = 0;
        if (from->core != to->core)
            thread->warm_nsec = 0;
    }
    thread->warm_cpu = thread->cpu;
}

void thread_dispatched(Engine *e, uint32_t index, bool switched)
{
    Thread *thread = &e->threads[index];

    if (switched)
        thread->debt_nsec += e->constants->switch_nsec;
    thread->debt_nsec += refill_nsec(e, thread);
    move_warmth(e, thread);
}

/*
 * Sleeping and waking
 */

static void sleep_now(Engine *e, uint32_t index)
{
    cpu_dequeue(e, index);
    e->threads[index].state = THREAD_STATE_ASLEEP;
    e->threads[index].slept_nsec = e->now_nsec;
}

/* Gives at most one slice of credit, however long the thread slept. */
static void give_credit(const Engine *e, Thread *thread)
{
    int64_t slice = (int64_t)(e->constants->slice_usec * NSEC_PER_USEC);
    uint64_t slept = e->now_nsec - thread->slept_nsec;

    if (slept >= (uint64_t)(2 * slice))
        thread->vruntime = MIN(thread->vruntime, -slice);
    else
        thread->vruntime -= (int64_t)slept;
    thread->vruntime = CLAMP(thread->vruntime, -slice, slice);
}

static void wake(Engine *e, uint32_t index, int32_t waker)
{
    Thread *thread = &e->threads[index];
    bool sync = waker >= 0 && engine_workload(e, thread)->wake_sync;
    uint32_t from = (uint32_t)thread->cpu, to = wake_select(e, index, waker, sync);

    give_credit(e, thread);
    if (waker >= 0 && e->cpus[waker].shard != e->cpus[to].shard)
        thread->debt_nsec += e->constants->wake_remote_nsec;
    start_burst(e, thread);
    cpu_enqueue(e, to, index);
    if (to != from)
        cpu_note_move(e, thread, from, to, MOVE_CAUSE_WAKE);
}

void thread_timer(Engine *e, uint32_t index)
{
    Circle circle = circle_of(e, index);

    /* The timer fires on the CPU where the thread fell asleep. */
    e->actor = (uint32_t)e->threads[index].cpu;
    if (e->threads[index].state == THREAD_STATE_ASLEEP &&
        (!is_receiver(&circle, index) || e->threads[index].n_messages > 0))
        wake(e, index, ENGINE_NONE);
}

/*
 * Circles
 */

static void ends(Engine *e, uint32_t index)
{
    Thread *thread = &e->threads[index];
    Tally *tally = &e->tallies[thread->workload];

    if (thread->state == THREAD_STATE_RUNNING)
        cpu_dequeue(e, index);
    heap_set(&e->heap, e->item_thread + index, HEAP_NEVER);
    thread->state = THREAD_STATE_ENDED;
    if (e->faults)
        memory_forget(e, thread);
    e->families[thread->process].n_alive--;
    e->n_alive--;
    tally->n_alive--;
    tally->ended_nsec = e->now_nsec;
}

/* The receiver of a sender's next message. There always is one, because receivers do not end before their senders. */
static uint32_t next_receiver(const Engine *e, const Circle *circle, uint32_t sender)
{
    uint32_t n = circle->n - circle->n_senders;

    return circle->first + circle->n_senders + (e->threads[sender].n_sent + sender - circle->first) % n;
}

/* Puts the sender to sleep until the receiver has room. */
static void wait_for(Engine *e, uint32_t sender, uint32_t receiver)
{
    Thread *target = &e->threads[receiver];

    e->threads[sender].next_sender = ENGINE_NONE;
    if (target->first_sender < 0)
        target->first_sender = (int32_t)sender;
    else
        e->threads[target->last_sender].next_sender = (int32_t)sender;
    target->last_sender = (int32_t)sender;
    sleep_now(e, sender);
}

/* Charges the transfer of a message's cache lines from the other thread's cache. Within an LLC that is part
 * of the burst. */
static void pay_message(Engine *e, Thread *sender, Thread *receiver)
{
    const Cpu *from = &e->cpus[sender->cpu], *to = &e->cpus[receiver->cpu];
    uint64_t pace = e->latency[(size_t)from->node * e->n_nodes + (size_t)to->node], nsec;

    if (from->shard == to->shard)
        return;
    nsec = e->constants->message_lines * (e->constants->local_latency_nsec * pace >> ENGINE_PACE_BITS);
    sender->debt_nsec += nsec;
    receiver->debt_nsec += nsec;
}

static void pause_sender(Engine *e, uint32_t index, const Circle *circle)
{
    bool pair = engine_workload(e, &e->threads[index])->wake == SIM_WAKE_PAIR;
    uint32_t to = next_receiver(e, circle, index);
    Thread *target = &e->threads[to];

    e->threads[index].n_sent++;
    target->n_messages++;
    if (target->state == THREAD_STATE_ASLEEP)
        wake(e, to, e->threads[index].cpu);
    if (target->state != THREAD_STATE_UNBORN)
        pay_message(e, &e->threads[index], target);
    if (pair || target->n_messages > MESSAGES_MAX)
        wait_for(e, index, to);
    else
        start_burst(e, &e->threads[index]);
}

/* Whether a sender is left. */
static bool has_senders(const Engine *e, const Circle *circle)
{
    const Thread *first = &e->threads[circle->first];

    return engine_workload(e, first)->wake == SIM_WAKE_PAIR ? first->state != THREAD_STATE_ENDED
                                                            : e->families[first->process].n_senders > 0;
}

static bool is_done(const Thread *receiver)
{
    return receiver->state == THREAD_STATE_ASLEEP && receiver->n_messages == 0;
}

static void pause_receiver(Engine *e, uint32_t index, const Circle *circle)
{
    Thread *thread = &e->threads[index];
    int32_t sender = thread->first_sender;
    bool pair = engine_workload(e, thread)->wake == SIM_WAKE_PAIR;

    thread->n_messages--;
    while (sender >= 0 && (pair || thread->n_messages <= MESSAGES_LOW)) {
        thread->first_sender = e->threads[sender].next_sender;
        wake(e, (uint32_t)sender, thread->cpu);
        if (pair)
            pay_message(e, thread, &e->threads[sender]);
        sender = thread->first_sender;
    }
    if (thread->n_messages > 0)
        start_burst(e, thread);
    else
        sleep_now(e, index);
    if (is_done(thread) && !has_senders(e, circle))
        ends(e, index);
}

/* Ends a thread that has done all its work, and with the last sender the receivers that have nothing left to do. */
static void retire(Engine *e, uint32_t index, const Circle *circle)
{
    ends(e, index);
    if (circle->n_senders == 0)
        return;
    e->families[e->threads[index].process].n_senders--;
    if (has_senders(e, circle))
        return;
    for (uint32_t i = circle->first + circle->n_senders; i < circle->first + circle->n; i++)
        if (is_done(&e->threads[i]))
            ends(e, i);
}

static void pause_alone(Engine *e, uint32_t index)
{
    Thread *thread = &e->threads[index];
    const SimWorkload *w = engine_workload(e, thread);
    uint64_t pause = w->wake == SIM_WAKE_NONE ? random_time(&thread->random, &w->sleep) : 0;

    if (pause == 0) {
        start_burst(e, thread);
        return;
    }
    sleep_now(e, index);
    heap_set(&e->heap, e->item_thread + index, e->now_nsec + pause);
}

void thread_burst_done(Engine *e, uint32_t index)
{
    Thread *thread = &e->threads[index];
    Circle circle = circle_of(e, index);
    bool receives = is_receiver(&circle, index);

    e->tallies[thread->workload].count[SIM_METRIC_OPS]++;
    if (thread->life_left != UINT64_MAX && !receives)
        thread->life_left -= thread->burst;
    if (thread->life_left == 0)
        retire(e, index, &circle);
    else if (receives)
        pause_receiver(e, index, &circle);
    else if (circle.n_senders > 0)
        pause_sender(e, index, &circle);
    else
        pause_alone(e, index);
}

void thread_born(Engine *e, uint32_t index, uint32_t cpu)
{
    Thread *thread = &e->threads[index];
    const SimWorkload *w = engine_workload(e, thread);
    Circle circle = circle_of(e, index);

    thread->cpu = (int32_t)cpu;
    thread->preference.seq = e->families[thread->process].seq;
    thread->state = THREAD_STATE_ASLEEP;
    thread->slept_nsec = e->now_nsec;
    if (is_receiver(&circle, index) && thread->n_messages == 0 && !has_senders(e, &circle)) {
        ends(e, index);
        return;
    }
    if (w->asleep_usec > 0) {
        uint64_t when = e->families[thread->process].start_nsec + w->asleep_usec * NSEC_PER_USEC;

        heap_set(&e->heap, e->item_thread + index, MAX(when, e->now_nsec));
        return;
    }
    if (is_receiver(&circle, index) && thread->n_messages == 0)
        return;
    thread->vruntime = (int64_t)(e->constants->slice_usec * NSEC_PER_USEC);
    start_burst(e, thread);
    cpu_enqueue(e, cpu, index);
}

/*
 * Masks
 */

/* The CPU of the mask to which the kernel moves a thread; round robin. */
static int32_t any_cpu(Engine *e, CpuMask mask)
{
    int n = hwloc_bitmap_weight(mask), at = -1;

    for (uint32_t i = n > 0 ? 1 + e->rotor++ % (uint32_t)n : 0; i > 0; i--)
        at = hwloc_bitmap_next(mask, at);
    return at;
}

void thread_set_mask(Engine *e, uint32_t index, CpuMask mask, int32_t via)
{
    Thread *thread = &e->threads[index];
    int32_t to;

    thread->allowed = mask;
    thread->allowed_all = hwloc_bitmap_isincluded(e->topology->all_cpus, mask);
    if (thread->state != THREAD_STATE_QUEUED && thread->state != THREAD_STATE_RUNNING)
        return;
    if (via < 0 && thread_may_run(thread, (uint32_t)thread->cpu))
        return;
    to = via >= 0 ? via : any_cpu(e, mask);
    if (to >= 0 && topology_cpu(e->topology, (CpuIx){to}))
        cpu_move(e, index, (uint32_t)to, MOVE_CAUSE_DAEMON);
}
