/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where the kernel puts a newborn thread (P5): from the widest domain that balances forks down to a CPU. The
 * thread stays on the parent's node as long as the imbalance between nodes is allowed.
 *
 * Example: two nodes of 40 idle CPUs, 5 allowed (an eighth), 16 threads forked on node 0. The first three
 * stay, because up to two more idle CPUs on the other node never count. From a difference of three on it
 * counts: 0001010111010101, eight and eight. With the old rule, a quarter, the first ten stay whatever the
 * difference, and six go. Threads asleep since birth are not seen, so all 16 stay. */

#include "base/parse.h"
#include "sim/model/engine.h"
#include "topo/imbalance.h"

/* node_reclaim_distance: wider domains do not balance forks. */
#define FORK_DISTANCE_MAX 30U

/* The rules differ only where a node is one LLC: there the new rule allows an eighth of the node, the old one
 * a quarter. */
uint32_t fork_allowed(const Engine *e, const TopologyDomain *domain)
{
    const Topology *topology = e->topology;
    uint32_t n_llcs = 0, first_span = 0;

    for (uint32_t i = 0; i < e->n_shards; i++)
        n_llcs += e->shards[i].node == e->shards[0].node;
    if (e->kernel->imbalance == SIM_IMBALANCE_NEW || n_llcs > 1)
        return domain->imb_numa_nr;
    for (uint32_t i = topology->n_domains; i > 0; i--)
        if (topology->domains[i - 1].numa)
            first_span = topology->domains[i - 1].span;
    return imbalance_scaled(MAX(topology->domains[0].span / 4, 1U), domain->span, first_span);
}

uint32_t fork_adjust(const Engine *e, uint32_t imbalance, uint32_t n_running, uint32_t allowed)
{
    if (e->kernel->imbalance == SIM_IMBALANCE_OLD)
        return n_running <= allowed ? 0 : imbalance;
    return imbalance_adjust(imbalance, n_running, allowed);
}

static uint32_t n_usable(const Thread *thread, const Span *span)
{
    uint32_t n = 0;

    if (thread->allowed_all)
        return span->n_cpus;
    for (uint32_t i = 0; i < span->n_cpus; i++)
        n += thread_may_run(thread, span->cpus[i]);
    return n;
}

/* Whether a span is the better place: it has more idle CPUs or, if neither has any, fewer threads per CPU. */
static bool is_idler(const Span *a, const Span *b)
{
    if (a->n_idle != b->n_idle)
        return a->n_idle > b->n_idle;
    return a->n_idle == 0 && (uint64_t)a->n_runnable * b->n_cpus < (uint64_t)b->n_runnable * a->n_cpus;
}

/* The best node for the thread within a domain around `local`. */
static uint32_t choose_node(const Engine *e, const Thread *thread, uint32_t local,
                            const TopologyDomain *domain)
{
    const Span *here = &e->nodes[local];
    bool usable = n_usable(thread, here) > 0;
    uint32_t best = local, imbalance, allowed;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        const Span *node = &e->nodes[i];

        if (i == local || n_usable(thread, node) == 0 ||
            topology_distance(e->topology, (NodeIx){(int32_t)local}, (NodeIx){(int32_t)i}) > domain->distance)
            continue;
        if ((best == local && !usable) || is_idler(node, &e->nodes[best]))
            best = i;
    }
    if (best == local || !usable)
        return best;
    if (here->n_idle == 0 || e->nodes[best].n_idle == 0)
        return best;
    imbalance = e->nodes[best].n_idle - here->n_idle;
    allowed = fork_allowed(e, domain);
    allowed = MIN(allowed, n_usable(thread, here));
    return fork_adjust(e, imbalance, here->n_runnable + 1, allowed) == 0 ? local : best;
}

/* The shard of a node for the thread: the parent's unless another one is better. */
static uint32_t choose_shard(const Engine *e, const Thread *thread, uint32_t node, uint32_t parent)
{
    int32_t best = e->cpus[parent].node == (int32_t)node ? e->cpus[parent].shard : ENGINE_NONE;

    if (best >= 0 && n_usable(thread, &e->shards[best]) == 0)
        best = ENGINE_NONE;
    for (uint32_t i = 0; i < e->n_shards; i++) {
        if (e->shards[i].node != (int32_t)node || n_usable(thread, &e->shards[i]) == 0)
            continue;
        if (best < 0 || is_idler(&e->shards[i], &e->shards[best]))
            best = (int32_t)i;
    }
    return (uint32_t)MAX(best, 0);
}

/* The CPU of a shard for the thread: the first of an idle core, else an idle one, else the one with the
 * fewest threads. */
static uint32_t choose_cpu(const Engine *e, const Thread *thread, const Span *shard)
{
    uint32_t best = UINT32_MAX, best_rank = UINT32_MAX;

    for (uint32_t i = 0; i < shard->n_cpus; i++) {
        uint32_t cpu = shard->cpus[i], rank;

        if (!thread_may_run(thread, cpu))
            continue;
        rank = cpu_seems_idle(e, cpu) ? (cpu_seems_idle_core(e, cpu) ? 0 : 1)
                                      : 1 + cpu_n_runnable(&e->cpus[cpu]);
        if (rank < best_rank) {
            best = cpu;
            best_rank = rank;
        }
    }
    return best;
}

/* Where a newborn thread of a process starts. */
static uint32_t select_cpu(Engine *e, uint32_t index, uint32_t parent)
{
    const Thread *thread = &e->threads[index];
    uint32_t node = (uint32_t)e->cpus[parent].node;

    for (uint32_t i = e->topology->n_domains; i > 0; i--) {
        const TopologyDomain *domain = &e->topology->domains[i - 1];

        if (domain->numa && domain->distance <= FORK_DISTANCE_MAX)
            node = choose_node(e, thread, node, domain);
    }
    if (n_usable(thread, &e->nodes[node]) == 0)
        node = (uint32_t)e->cpus[hwloc_bitmap_first(thread->allowed)].node;
    return choose_cpu(e, thread, &e->shards[choose_shard(e, thread, node, parent)]);
}

/*
 * Launchers
 */

/* A random CPU of a mask, an idle one if possible. */
static uint32_t random_cpu(Engine *e, CpuMask mask)
{
    uint32_t n_idle = 0, n = 0, idle = 0, any = 0;

    for (int i = hwloc_bitmap_first(mask); i >= 0; i = hwloc_bitmap_next(mask, i)) {
        uint32_t cpu = (uint32_t)i;

        if (random_below(&e->random_place, ++n) == 0)
            any = cpu;
        if (cpu_n_runnable(&e->cpus[cpu]) == 0 && random_below(&e->random_place, ++n_idle) == 0)
            idle = cpu;
    }
    return n_idle > 0 ? idle : any;
}

/* CPUs on which the thread may be born: those of StartNodes= that it may use or, without any, all that it may use. */
static CpuMask birth_mask(Engine *e, const Thread *thread, const SimWorkload *w)
{
    CpuMask mask = thread->allowed;
    CLEANUP_BITMAP hwloc_bitmap_t both = NULL;

    if (!w->start_cpus || !hwloc_bitmap_intersects(w->start_cpus, mask))
        return mask;
    both = hwloc_bitmap_alloc();
    mask = both && hwloc_bitmap_and(both, w->start_cpus, mask) == 0 ? intern_mask(e->pool, both) : NULL;
    if (!mask)
        e->error = -ENOMEM;
    return mask ? mask : thread->allowed;
}

static uint32_t birth_cpu(Engine *e, uint32_t index, const Family *family)
{
    const SimWorkload *w = &e->spec->workloads[family->workload];
    Thread *thread = &e->threads[index];
    CpuMask allowed = thread->allowed, mask = birth_mask(e, thread, w);
    bool all = thread->allowed_all;
    uint32_t cpu;

    if (w->shuffled)
        return random_cpu(e, mask);
    thread->allowed = mask;
    thread->allowed_all = all && mask == allowed;
    cpu = select_cpu(e, index, (uint32_t)family->launcher_cpu);
    thread->allowed = allowed;
    thread->allowed_all = all;
    return cpu;
}

/* Whether the thread at this index in its process leaves the node of its memory; these are spread evenly. */
static bool is_displaced(const SimWorkload *w, uint64_t place)
{
    return (place + 1) * w->displaced_permille / 1000 != place * w->displaced_permille / 1000;
}

/* A CPU that the thread may use on the next node with one; `cpu` if there is none. */
static uint32_t next_node_cpu(const Engine *e, const Thread *thread, uint32_t cpu)
{
    uint32_t node = (uint32_t)e->cpus[cpu].node;

    for (uint32_t i = 1; i < e->n_nodes; i++) {
        const Span *next = &e->nodes[(node + i) % e->n_nodes];

        if (next->n_cpus > 0 && n_usable(thread, next) > 0)
            return choose_cpu(e, thread, next);
    }
    return cpu;
}

static void displace(Engine *e, const Family *family)
{
    const SimWorkload *w = &e->spec->workloads[family->workload];

    for (uint32_t i = 0; i < w->n_threads; i++) {
        Thread *thread = &e->threads[family->first + i];
        uint32_t to;

        if (!is_displaced(w, i) || thread->state == THREAD_STATE_ENDED)
            continue;
        to = next_node_cpu(e, thread, (uint32_t)thread->cpu);
        if (thread->state == THREAD_STATE_ASLEEP)
            thread->cpu = (int32_t)to;
        else
            cpu_move(e, family->first + i, to, MOVE_CAUSE_SCENARIO);
    }
}

/* Begins a new phase. Up to now the threads ran at the speed of the old memory. */
static void begin_phase(Engine *e, Family *family)
{
    for (uint32_t i = family->first; i < family->first + family->n_forked; i++)
        if (e->threads[i].state == THREAD_STATE_RUNNING) {
            cpu_account(e, (uint32_t)e->threads[i].cpu);
            cpu_touch(e, (uint32_t)e->threads[i].cpu);
        }
    memory_scatter(e, family);
    family->phase = true;
}

static void pin(Engine *e, const Family *family)
{
    for (uint32_t i = family->first; i < family->first + family->n_forked; i++) {
        if (e->threads[i].state == THREAD_STATE_ENDED)
            continue;
        e->threads[i].own = family->pin;
        e->threads[i].given = false;
        thread_set_mask(e, i, family->pin, ENGINE_NONE);
    }
}

/* Makes the one change of a process that has run for some time. */
static void change(Engine *e, Family *family)
{
    if (e->spec->workloads[family->workload].phase_usec > 0)
        begin_phase(e, family);
    else if (family->pin)
        pin(e, family);
    else
        displace(e, family);
}

/* Time of that change after the start of the process; 0: never. */
static uint64_t change_usec(const SimWorkload *w)
{
    if (w->phase_usec > 0 || w->affinity_usec > 0)
        return MAX(w->phase_usec, w->affinity_usec);
    return w->displaced_permille > 0 ? w->displaced_usec : 0;
}

static void fork_one(Engine *e, uint32_t index, Family *family)
{
    const SimWorkload *w = &e->spec->workloads[family->workload];
    Thread *thread = &e->threads[index];
    uint32_t cpu;

    if (family->born) {
        thread->allowed = family->born;
        thread->allowed_all = false;
        thread->given = true;
    }
    cpu = birth_cpu(e, index, family);
    e->tallies[family->workload].forked[e->cpus[cpu].node]++;
    thread->cpu = (int32_t)cpu;
    memory_touch(e, index, (uint32_t)e->cpus[cpu].node);
    if (w->displaced_usec == 0 && is_displaced(w, family->n_forked))
        cpu = next_node_cpu(e, thread, cpu);
    family->n_forked++;
    e->n_forked++;
    thread_born(e, index, cpu);
}

void fork_event(Engine *e, uint32_t index)
{
    Family *family = &e->families[index];
    const SimWorkload *w = &e->spec->workloads[family->workload];
    bool serial = family->n_forked == 0 && w->serial_usec > 0;
    uint32_t n = serial || w->stagger_usec > 0 ? 1 : w->n_threads - family->n_forked;
    uint64_t next = HEAP_NEVER;

    e->actor = (uint32_t)family->launcher_cpu;
    if (family->n_forked == w->n_threads) {
        change(e, family);
        return;
    }
    for (uint32_t i = 0; i < n && !e->error; i++)
        fork_one(e, family->first + family->n_forked, family);
    if (family->n_forked < w->n_threads)
        next = e->now_nsec + (serial ? w->serial_usec : w->stagger_usec) * NSEC_PER_USEC;
    else if (change_usec(w) > 0)
        next = MAX(family->start_nsec + change_usec(w) * NSEC_PER_USEC, e->now_nsec);
    heap_set(&e->heap, e->item_family + index, next);
}
