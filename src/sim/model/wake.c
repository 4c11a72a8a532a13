/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where the kernel wakes a thread (P4), as far as run queues decide it. The first choice is between the
 * waker's CPU and the thread's previous one (wake_wide, wake_affine). Then an idle CPU is searched in the LLC
 * of that place (select_idle_sibling).
 *
 * Load is the number of runnable threads, where the kernel has decaying averages. The utilisation of an LLC,
 * which bounds the search, is the share of its CPUs that are busy now. Clusters below the LLC and asymmetric
 * capacities are left out. */

#include "sim/model/engine.h"

/* node_reclaim_distance: wider domains do not pull wakees (P3, P4). */
#define AFFINE_DISTANCE_MAX 30U

#define FLIPS_DECAY_NSEC NSEC_PER_SEC

/* wake_affine's margin: imbalance_pct of the domains in question, 117, with the part above 100 halved. */
#define AFFINE_PERCENT 108U

/* Whether the waker and the wakee each wake so many different threads that no place is near all of them. */
static bool is_wide(const Engine *e, const Thread *waker, const Thread *wakee)
{
    uint64_t master = MAX(waker->n_flips, wakee->n_flips), slave = MIN(waker->n_flips, wakee->n_flips);
    uint64_t llc = e->shards[e->cpus[waker->cpu].shard].n_cpus;

    return slave >= llc && master >= slave * llc;
}

static void record_wakee(const Engine *e, Thread *waker, uint32_t wakee)
{
    if (e->now_nsec >= waker->flips_nsec + FLIPS_DECAY_NSEC) {
        waker->n_flips /= 2;
        waker->flips_nsec = e->now_nsec;
    }
    if (waker->wakee != (int32_t)wakee) {
        waker->wakee = (int32_t)wakee;
        waker->n_flips++;
    }
}

static bool shares_cache(const Engine *e, uint32_t a, uint32_t b)
{
    return e->cpus[a].shard == e->cpus[b].shard;
}

/* Chooses the waker's CPU or the thread's previous one. A runnable thread is a load of 1. */
static uint32_t affine(const Engine *e, uint32_t waker, uint32_t previous, bool sync)
{
    uint64_t here, there;

    if (cpu_seems_idle(e, waker) && shares_cache(e, waker, previous))
        return cpu_seems_idle(e, previous) ? previous : waker;
    if (sync && cpu_n_runnable(&e->cpus[waker]) == 1)
        return waker;
    if (cpu_seems_idle(e, previous))
        return previous;

    here = cpu_n_runnable(&e->cpus[waker]) + 1 - (sync ? 1 : 0);
    there = cpu_n_runnable(&e->cpus[previous]);
    return here * 100 < there * AFFINE_PERCENT + (sync ? 1 : 0) ? waker : previous;
}

uint32_t wake_n_scan(uint32_t n_cpus, uint32_t n_busy)
{
    uint64_t used = (uint64_t)n_busy * 1000 / MAX(n_cpus, 1U);
    uint64_t cut = used * used * 13689 / 10000; /* 1.17^2 * used^2, in millionths */

    return cut >= 1000000 ? 0 : (uint32_t)(n_cpus * (1000000 - cut) / 1000000);
}

/* Searches the LLC of `target` from the next CPU on. ENGINE_NONE: no idle CPU found. */
static int32_t idle_in_llc(const Engine *e, const Thread *thread, uint32_t target)
{
    const Span *llc = &e->shards[e->cpus[target].shard];
    bool cores = llc->n_idle_cores > 0 && e->cores[e->cpus[target].core].n_cpus > 1;
    uint32_t n = cores ? llc->n_cpus : wake_n_scan(llc->n_cpus, llc->n_cpus - llc->n_idle), at = 0;
    int32_t idle = ENGINE_NONE;

    assert(llc->n_cpus > 0);
    if (llc->n_idle == 0 && e->kernel->idle_claim)
        return ENGINE_NONE;
    while (at < llc->n_cpus && llc->cpus[at] != target)
        at++;
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t cpu = llc->cpus[(at + i) % llc->n_cpus];

        if (!cpu_seems_idle(e, cpu) || !thread_may_run(thread, cpu))
            continue;
        if (!cores || cpu_seems_idle_core(e, cpu))
            return (int32_t)cpu;
        if (idle < 0)
            idle = (int32_t)cpu;
    }
    return idle;
}

static int32_t idle_sibling(const Engine *e, const Thread *thread, uint32_t cpu)
{
    const Span *core = &e->cores[e->cpus[cpu].core];

    for (uint32_t i = 0; i < core->n_cpus; i++)
        if (core->cpus[i] != cpu && cpu_seems_idle(e, core->cpus[i]) && thread_may_run(thread, core->cpus[i]))
            return (int32_t)core->cpus[i];
    return ENGINE_NONE;
}

/* Returns an idle CPU near `target`, or `target` itself. */
static uint32_t near_target(const Engine *e, const Thread *thread, uint32_t previous, uint32_t target)
{
    int32_t recent = thread->recent_cpu, found;

    if (thread_may_run(thread, target) && cpu_seems_idle(e, target))
        return target;
    if (previous != target && shares_cache(e, previous, target) && thread_may_run(thread, previous) &&
        cpu_seems_idle(e, previous))
        return previous;
    if (recent >= 0 && (uint32_t)recent != previous && (uint32_t)recent != target &&
        shares_cache(e, (uint32_t)recent, target) && thread_may_run(thread, (uint32_t)recent) &&
        cpu_seems_idle(e, (uint32_t)recent))
        return (uint32_t)recent;
    if (e->shards[e->cpus[target].shard].n_idle_cores == 0 && shares_cache(e, previous, target)) {
        found = idle_sibling(e, thread, previous);
        if (found >= 0)
            return (uint32_t)found;
    }
    found = idle_in_llc(e, thread, target);
    return found >= 0 ? (uint32_t)found : target;
}

/* For a thread whose mask was narrowed while it slept: a CPU of the mask on its node, else any. */
static uint32_t fallback(const Engine *e, const Thread *thread)
{
    const Span *node = &e->nodes[e->cpus[thread->cpu].node];

    for (uint32_t i = 0; i < node->n_cpus; i++)
        if (thread_may_run(thread, node->cpus[i]))
            return node->cpus[i];
    return (uint32_t)hwloc_bitmap_first(thread->allowed);
}

uint32_t wake_select(Engine *e, uint32_t index, int32_t waker, bool sync)
{
    Thread *thread = &e->threads[index];
    uint32_t previous = (uint32_t)thread->cpu, target;

    if (!thread_may_run(thread, previous))
        previous = fallback(e, thread);
    target = previous;
    if (waker >= 0 && e->cpus[waker].current >= 0) {
        Thread *by = &e->threads[e->cpus[waker].current];
        NodeIx here = {e->cpus[waker].node}, there = {e->cpus[previous].node};

        record_wakee(e, by, index);
        if (e->kernel->wake_affine && !is_wide(e, by, thread) && thread_may_run(thread, (uint32_t)waker) &&
            topology_distance(e->topology, here, there) <= AFFINE_DISTANCE_MAX)
            target = affine(e, (uint32_t)waker, previous, sync);
    }
    return near_target(e, thread, previous, target);
}
