/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What hinting faults tell the kernel of threads (P10, P11): on which node each wants to be, and how often its memory
 * is looked at. Restated from the description of task_numa_placement(), task_numa_migrate(), update_task_scan_period()
 * and migrate_degrades_locality() of Linux 6.1 (kernel/sched/fair.c).
 *
 * Faults are counted by node. When a pass over the memory of its process is over, those of a thread are added to half
 * of what there was before, and the node with most of them is the one it prefers: those of all its threads if it shares
 * memory with them. It then goes there, to an idle CPU where that leaves no imbalance but what is allowed (P5), or in
 * exchange with a thread that is worth less there. Until its first faults nothing is known of a thread.
 *
 * Example: two threads, one fault of ten on its own node each. Exchanged, both gain 800 permille, which is more than
 * the 30 that count as noise.
 *
 * Left out: groups of several processes, active nodes, distances between nodes that are not the preferred one, and
 * that a move is tried at faults, not at scans. */

#include "sim/model/engine.h"

#include "plan/scan/period.h"

#define PAGE_BYTES 4096U
#define SCALE      1000 /* weights are in permille */
#define WEIGHT_MIN 30   /* less is noise (SMALLIMP) */

static const ScanPeriodLimits limits = {
    .min_usec = 1000000, .max_usec = 60000000, .window_bytes = (uint64_t)256 << 20};

static uint64_t *faults_of(const Engine *e, uint32_t thread)
{
    return &e->faults[(size_t)thread * 2 * e->n_nodes];
}

static uint64_t *family_faults(const Engine *e, uint32_t family)
{
    return &e->family_faults[(size_t)family * (e->n_nodes + 1)];
}

/* Of its process's threads when they share memory, or its own; behind them is the sum. */
static const uint64_t *known_faults(const Engine *e, const Thread *thread, uint64_t *ret_sum)
{
    const uint64_t *own = faults_of(e, engine_index(e, thread)), *all = family_faults(e, thread->process);

    if (e->families[thread->process].shared >= 0 && thread->preference.shares) {
        *ret_sum = all[e->n_nodes];
        return all;
    }
    *ret_sum = thread->preference.n_faults;
    return own;
}

/* Permille of its faults on a node. */
static int weight(const Engine *e, const Thread *thread, uint32_t node)
{
    uint64_t sum;
    const uint64_t *faults = known_faults(e, thread, &sum);

    return sum > 0 ? (int)(faults[node] * SCALE / sum) : 0;
}

void prefer_faulted(Engine *e, Thread *thread, bool shared, uint32_t node, uint32_t to, uint64_t n)
{
    Preference *preference = &thread->preference;
    uint64_t *fresh = faults_of(e, engine_index(e, thread)) + e->n_nodes;

    fresh[to] += n;
    preference->shares |= shared;
    *(shared ? &preference->n_shared : &preference->n_private) += n;
    *(node == (uint32_t)e->cpus[thread->cpu].node ? &preference->n_local : &preference->n_remote) += n;
}

static void adapt_period(const Engine *e, Thread *thread)
{
    Preference *p = &thread->preference;
    const ScanPeriodRange range =
        scan_period_range(&limits, e->families[thread->process].rss_pages * PAGE_BYTES);
    const ScanPeriodSeen seen = {.local = p->n_local,
                                 .remote = p->n_remote,
                                 .private_faults = p->n_private,
                                 .shared_faults = p->n_shared};

    p->period_usec = scan_period_adapt(&range, p->period_usec > 0 ? p->period_usec : range.start_usec, &seen);
    p->n_local = p->n_remote = p->n_private = p->n_shared = 0;
}

/* A pass is over: what is known, anew. */
static void place(Engine *e, Thread *thread)
{
    uint64_t *faults = faults_of(e, engine_index(e, thread)), *fresh = faults + e->n_nodes;
    uint64_t *all = family_faults(e, thread->process), most = 0, sum;
    const uint64_t *known;

    thread->preference.n_faults = 0;
    for (uint32_t i = 0; i < e->n_nodes; i++) {
        uint64_t before = faults[i];

        faults[i] = before / 2 + fresh[i];
        fresh[i] = 0;
        all[i] += faults[i] - before;
        all[e->n_nodes] += faults[i] - before;
        thread->preference.n_faults += faults[i];
    }
    adapt_period(e, thread);
    known = known_faults(e, thread, &sum);
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (known[i] > most && e->nodes[i].n_cpus > 0) {
            most = known[i];
            thread->preference.node = (int32_t)i + 1;
        }
}

/* Going there */

static const TopologyDomain *domain_of(const Engine *e, uint32_t a, uint32_t b)
{
    uint32_t distance = topology_distance(e->topology, (NodeIx){(int32_t)a}, (NodeIx){(int32_t)b});

    for (uint32_t i = 0; i < e->topology->n_domains; i++)
        if (e->topology->domains[i].numa && distance <= e->topology->domains[i].distance)
            return &e->topology->domains[i];
    return NULL;
}

/* Without it here and with it there: no imbalance but what is allowed, or less of one than now. */
static bool may_join(const Engine *e, const Span *from, const Span *to)
{
    const TopologyDomain *domain = domain_of(e, (uint32_t)from->node, (uint32_t)to->node);
    uint32_t here = from->n_runnable - 1, there = to->n_runnable + 1;

    if (to->n_idle > 0 && domain &&
        fork_adjust(e, there - MIN(here, there), there, fork_allowed(e, domain)) == 0)
        return true;
    return (uint64_t)there * from->n_cpus <= (uint64_t)from->n_runnable * to->n_cpus;
}

static int32_t idle_cpu(const Engine *e, const Thread *thread, const Span *to)
{
    for (uint32_t i = 0; i < to->n_cpus; i++)
        if (cpu_n_runnable(&e->cpus[to->cpus[i]]) == 0 && thread_may_run(thread, to->cpus[i]))
            return (int32_t)to->cpus[i];
    return ENGINE_NONE;
}

/* Whom to exchange a thread with that would gain so much there. */
static int32_t find_partner(const Engine *e, const Thread *thread, const Span *from, const Span *to, int gain)
{
    int best = WEIGHT_MIN - 1;
    int32_t found = ENGINE_NONE;

    for (uint32_t i = 0; i < to->n_cpus; i++) {
        int32_t current = e->cpus[to->cpus[i]].current;
        const Thread *other = current >= 0 ? &e->threads[current] : NULL;
        int both;

        if (!other || !thread_may_run(thread, to->cpus[i]) || !thread_may_run(other, (uint32_t)thread->cpu))
            continue;
        both = gain + weight(e, other, (uint32_t)from->node) - weight(e, other, (uint32_t)to->node);
        if (other->preference.node == to->node + 1)
            both -= both / 16;
        if (both > best) {
            best = both;
            found = current;
        }
    }
    return found;
}

static void go(Engine *e, uint32_t index)
{
    Thread *thread = &e->threads[index];
    const Span *from = &e->nodes[e->cpus[thread->cpu].node], *to;
    int32_t cpu, other;
    int gain;

    if (thread->preference.node == 0 || thread->preference.node == from->node + 1)
        return;
    to = &e->nodes[thread->preference.node - 1];
    gain = weight(e, thread, (uint32_t)to->node) - weight(e, thread, (uint32_t)from->node);
    cpu = may_join(e, from, to) ? idle_cpu(e, thread, to) : ENGINE_NONE;
    if (cpu >= 0) {
        cpu_move(e, index, (uint32_t)cpu, MOVE_CAUSE_PULL);
        return;
    }
    other = find_partner(e, thread, from, to, gain);
    if (other >= 0) {
        uint32_t here = (uint32_t)thread->cpu, there = (uint32_t)e->threads[other].cpu;

        cpu_move(e, (uint32_t)other, here, MOVE_CAUSE_PULL);
        cpu_move(e, index, there, MOVE_CAUSE_PULL);
    }
}

void prefer_scanned(Engine *e, const Family *family)
{
    for (uint32_t i = family->first; i < family->first + family->n_forked; i++) {
        Thread *thread = &e->threads[i];

        if (thread->state != THREAD_STATE_RUNNING)
            continue;
        if (thread->preference.seq != family->seq) {
            thread->preference.seq = family->seq;
            place(e, thread);
        }
        go(e, i);
    }
}

uint64_t prefer_period_nsec(const Engine *e, const Family *family, int32_t scanner)
{
    const ScanPeriodRange range = scan_period_range(&limits, family->rss_pages * PAGE_BYTES);
    uint64_t usec = scanner >= 0 ? e->threads[scanner].preference.period_usec : 0;

    return (usec > 0 ? usec : range.start_usec) * 1000;
}

/* Being pulled away */

/* Whether somebody on its CPU is not where he prefers to be, and might go instead. */
static bool others_might(const Engine *e, const Cpu *cpu)
{
    for (size_t i = 0; i < cpu->n_queued; i++)
        if (e->threads[cpu->queue[i]].preference.node != cpu->node + 1)
            return true;
    return cpu->current >= 0 && e->threads[cpu->current].preference.node != cpu->node + 1;
}

PreferVerdict prefer_verdict(const Engine *e, const Thread *thread, uint32_t to_cpu)
{
    const Cpu *cpu = &e->cpus[thread->cpu];
    int32_t to = e->cpus[to_cpu].node;
    int here, there;

    if (thread->preference.n_faults == 0)
        return PREFER_UNKNOWN;
    if (cpu->node + 1 == thread->preference.node)
        return others_might(e, cpu) ? PREFER_STAY : PREFER_UNKNOWN;
    if (to + 1 == thread->preference.node)
        return PREFER_GO;
    here = weight(e, thread, (uint32_t)cpu->node);
    there = weight(e, thread, (uint32_t)to);
    return there < here ? PREFER_STAY : PREFER_GO;
}
