/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the kernel learns about threads from hinting faults (P10, P11): the node each prefers, and how often
 * its memory is scanned. Restated from the description of task_numa_placement(), task_numa_migrate(),
 * update_task_scan_period() and migrate_degrades_locality() of Linux 6.1 (kernel/sched/fair.c).
 *
 * Faults are counted by node. After a pass over a process's memory, a thread's new faults are added to half
 * of its previous ones. It prefers the node with the most faults: its own or, if it shares memory, those of
 * all threads of its process. It then moves there: to an idle CPU if that leaves only an allowed imbalance
 * (P5), or in exchange with a thread there if both together gain. A thread without faults is left alone.
 *
 * Example: two threads alone on two nodes without an idle CPU, all faults of each on the other's node. By the
 * exchange each gains 1000 permille, more than the 30 that count as noise.
 *
 * Left out: groups of several processes, and the longer scan period of such groups; active nodes, and moves
 * to nodes other than the preferred one; that memory without CPUs counts for the nearest node with some; and
 * that a move is tried at faults, not at scans. */

#include "sim/model/engine.h"

#include "plan/scan/period.h"

#define SCALE      1000 /* weights are in permille */
#define WEIGHT_MIN 30   /* less is noise (SMALLIMP) */

static const ScanPeriodLimits limits = {
    .min_usec = 1000000, .max_usec = 60000000, .window_bytes = (uint64_t)256 << 20};

static int share(const uint64_t *faults, uint64_t sum, uint32_t node)
{
    return sum > 0 ? (int)(faults[node] * SCALE / sum) : 0;
}

/* Permille of the thread's faults that are on a node, and of those of its process. */
static int own_weight(const Engine *e, const Thread *thread, uint32_t node)
{
    return share(engine_faults(e, engine_index(e, thread)), thread->preference.n_faults, node);
}

static int family_weight(const Engine *e, const Thread *thread, uint32_t node)
{
    const uint64_t *all = engine_family_faults(e, thread->process);

    return share(all, all[e->n_nodes], node);
}

static int weight(const Engine *e, const Thread *thread, uint32_t node)
{
    return thread->preference.shares ? family_weight(e, thread, node) : own_weight(e, thread, node);
}

void prefer_faulted(Engine *e, Thread *thread, bool shared, uint32_t node, uint32_t to, uint64_t n)
{
    Preference *preference = &thread->preference;
    uint64_t *fresh = engine_faults(e, engine_index(e, thread)) + e->n_nodes;

    fresh[to] += n;
    preference->faulted = true;
    preference->shares |= shared;
    *(shared ? &preference->n_shared : &preference->n_private) += n;
    *(node == (uint32_t)e->cpus[thread->cpu].node ? &preference->n_local : &preference->n_remote) += n;
}

/* Unlike the daemon, the kernel treats a pass with only remote private faults as if it had seen nothing. */
static void adapt_period(const Engine *e, Thread *thread)
{
    Preference *p = &thread->preference;
    const ScanPeriodRange range =
        scan_period_range(&limits, e->families[thread->process].rss_pages * ENGINE_PAGE_BYTES);
    const ScanPeriodSeen seen = {.local = p->n_local,
                                 .remote = p->n_remote,
                                 .private_faults = p->n_private,
                                 .shared_faults = p->n_shared};

    if (p->period_usec == 0)
        p->period_usec = range.min_usec;
    if (p->n_local + p->n_shared == 0) {
        p->period_usec = MIN(2 * p->period_usec, range.max_usec);
        return;
    }
    p->period_usec = scan_period_adapt(&range, p->period_usec, &seen);
    p->n_local = p->n_remote = p->n_private = p->n_shared = 0;
}

/* Recomputes faults and preferred node after a pass. */
static void place(Engine *e, Thread *thread)
{
    uint64_t *faults = engine_faults(e, engine_index(e, thread)), *fresh = faults + e->n_nodes;
    uint64_t *all = engine_family_faults(e, thread->process), most = 0;
    const uint64_t *known = thread->preference.shares ? all : faults;

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
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (known[i] > most && e->nodes[i].n_cpus > 0) {
            most = known[i];
            thread->preference.node = (int32_t)i + 1;
        }
}

/* Moving to the preferred node */

static const TopologyDomain *domain_of(const Engine *e, uint32_t a, uint32_t b)
{
    uint32_t distance = topology_distance(e->topology, (NodeIx){(int32_t)a}, (NodeIx){(int32_t)b});

    for (uint32_t i = 0; i < e->topology->n_domains; i++)
        if (e->topology->domains[i].numa && distance <= e->topology->domains[i].distance)
            return &e->topology->domains[i];
    return NULL;
}

/* Whether the thread may move. To a node with idle CPUs: if only an allowed imbalance remains. To another: if
 * the load there is then no higher than that here is now. */
static bool may_join(const Engine *e, const Span *from, const Span *to)
{
    const TopologyDomain *domain = domain_of(e, (uint32_t)from->node, (uint32_t)to->node);
    uint32_t here = from->n_runnable - 1, there = to->n_runnable + 1;

    if (to->n_idle > 0)
        return domain && fork_adjust(e, there - MIN(here, there), there, fork_allowed(e, domain)) == 0;
    return (uint64_t)there * from->n_cpus <= (uint64_t)from->n_runnable * to->n_cpus;
}

/* The least loaded CPU, preferably on an idle core. */
static int32_t find_cpu(const Engine *e, const Thread *thread, const Span *to)
{
    uint32_t least = UINT32_MAX;
    int32_t found = ENGINE_NONE;

    for (uint32_t i = 0; i < to->n_cpus; i++) {
        const Cpu *cpu = &e->cpus[to->cpus[i]];
        uint32_t n = 2 * cpu_n_runnable(cpu) + (e->cores[cpu->core].n_runnable > 0);

        if (n < least && thread_may_run(thread, to->cpus[i])) {
            least = n;
            found = (int32_t)to->cpus[i];
        }
    }
    return found;
}

/* The gain of both threads together if they are exchanged. */
static int gain_of_both(const Engine *e, const Thread *thread, const Thread *other, uint32_t here,
                        uint32_t there)
{
    bool shares = thread->preference.shares, other_shares = other->preference.shares;
    bool together = thread->process == other->process && shares && other_shares;
    int gain;

    if (together || !shares)
        gain = own_weight(e, thread, there) - own_weight(e, thread, here);
    else
        gain = family_weight(e, thread, there) - family_weight(e, thread, here);
    if (shares && other_shares && !together)
        gain += family_weight(e, other, here) - family_weight(e, other, there);
    else
        gain += own_weight(e, other, here) - own_weight(e, other, there);
    if (together)
        gain -= gain / 16;
    if (other->preference.node == (int32_t)there + 1)
        gain -= gain / 16;
    if (other->preference.node == (int32_t)here + 1)
        gain += gain / 8;
    return gain;
}

/* Finds the thread to exchange with. On a node with idle CPUs it must be of another process, and one of the
 * two must share memory. */
static int32_t find_partner(const Engine *e, const Thread *thread, const Span *from, const Span *to,
                            int *ret_gain)
{
    int32_t found = ENGINE_NONE;

    *ret_gain = WEIGHT_MIN - 1;
    for (uint32_t i = 0; i < to->n_cpus; i++) {
        int32_t current = e->cpus[to->cpus[i]].current;
        const Thread *other = current >= 0 ? &e->threads[current] : NULL;
        int gain;

        if (!other || !thread_may_run(thread, to->cpus[i]) || !thread_may_run(other, (uint32_t)thread->cpu) ||
            (to->n_idle > 0 && (other->process == thread->process ||
                                (!other->preference.shares && !thread->preference.shares))))
            continue;
        gain = gain_of_both(e, thread, other, (uint32_t)from->node, (uint32_t)to->node);
        if (gain > *ret_gain) {
            *ret_gain = gain;
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
    int gain, both;

    if (thread->preference.node == 0 || thread->preference.node == from->node + 1)
        return;
    to = &e->nodes[thread->preference.node - 1];
    gain = weight(e, thread, (uint32_t)to->node) - weight(e, thread, (uint32_t)from->node);
    cpu = may_join(e, from, to) ? find_cpu(e, thread, to) : ENGINE_NONE;
    other = cpu >= 0 && to->n_idle > 0 ? ENGINE_NONE : find_partner(e, thread, from, to, &both);
    if (other >= 0 && (cpu < 0 || both >= gain)) {
        uint32_t here = (uint32_t)thread->cpu, there = (uint32_t)e->threads[other].cpu;

        cpu_move(e, (uint32_t)other, here, MOVE_CAUSE_PULL);
        cpu_move(e, index, there, MOVE_CAUSE_PULL);
    } else if (cpu >= 0)
        cpu_move(e, index, (uint32_t)cpu, MOVE_CAUSE_PULL);
}

void prefer_scanned(Engine *e, const Family *family)
{
    for (uint32_t i = family->first; i < family->first + family->n_forked; i++) {
        Thread *thread = &e->threads[i];

        if (!thread->preference.faulted)
            continue;
        if (thread->preference.seq != family->seq) {
            thread->preference.seq = family->seq;
            place(e, thread);
        }
        if (thread->state != THREAD_STATE_RUNNING)
            continue;
        thread->preference.faulted = false;
        go(e, i);
    }
}

uint64_t prefer_period_nsec(const Engine *e, const Family *family, int32_t scanner)
{
    const ScanPeriodRange range = scan_period_range(&limits, family->rss_pages * ENGINE_PAGE_BYTES);
    uint64_t usec = scanner >= 0 ? e->threads[scanner].preference.period_usec : 0;

    return (usec > 0 ? usec : range.min_usec) * 1000;
}

/* Being pulled away */

/* Whether another thread on its CPU is not on its preferred node, and might go instead. */
static bool others_might(const Engine *e, const Cpu *cpu)
{
    for (size_t i = 0; i < cpu->n_queued; i++)
        if (e->threads[cpu->queue[i]].preference.node != cpu->node + 1)
            return true;
    return cpu->current >= 0 && e->threads[cpu->current].preference.node != cpu->node + 1;
}

PreferVerdict prefer_verdict(const Engine *e, const Thread *thread, uint32_t to_cpu, bool idle)
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
    if (idle)
        return PREFER_UNKNOWN;
    here = weight(e, thread, (uint32_t)cpu->node);
    there = weight(e, thread, (uint32_t)to);
    return there < here ? PREFER_STAY : PREFER_GO;
}
