/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kernel's load balancing (P7) and stealing (P2), by the number of runnable threads.
 *
 * A CPU that goes idle looks for work at once, if its mean idle time makes that worthwhile: in its LLC, its
 * node, and the nodes around it. In addition, every level of every span is balanced periodically. The
 * interval is one millisecond per CPU of the span, and sixteen times as long without an idle CPU. Waiting
 * threads are moved, but at first neither those that have just run nor away from their memory; after a few
 * failures these rules are dropped. If no thread waits, a running one is pushed after some more failures.
 *
 * Between nodes, an allowed difference (P5) is no imbalance. A node is left out if all threads waiting there
 * are pinned elsewhere, where the kernel leaves out one CPU after the other. Levels of nodes have single
 * nodes as their groups. The kernel's overlapping groups, and its rotation of an odd thread among equally
 * loaded CPUs, are left out. */

#include "sim/model/engine.h"

#define BUSY_FACTOR       16U
#define IMBALANCE_PERCENT 117U
#define NICE_TRIES_LLC    1U
#define NICE_TRIES_NUMA   2U
#define MOVES_MAX         32U /* sysctl_sched_nr_migrate: most threads examined, and moved, per attempt */
#define STEAL_COST_NSEC   10000U
#define NSEC_PER_MSEC     1000000ULL

/* The rules of one balancing attempt. */
typedef struct Pull {
    Span *from;
    uint32_t n_failed;
    uint32_t nice_tries;
    bool cross; /* between nodes */
    bool by_heat;
    bool idle; /* periodic balancing for an idle CPU */
} Pull;

static bool may_move(const Engine *e, const Pull *pull, uint32_t index, uint32_t to)
{
    const Thread *thread = &e->threads[index];

    if (!thread_may_run(thread, to))
        return false;
    if (pull->n_failed > pull->nice_tries || !pull->by_heat || e->cpus[thread->cpu].core == e->cpus[to].core)
        return true;
    if (pull->cross && e->kernel->numa_balancing) {
        PreferVerdict verdict = prefer_verdict(e, thread, to, pull->idle);

        if (verdict != PREFER_UNKNOWN)
            return verdict == PREFER_GO;
    }
    return e->now_nsec - thread->ran_nsec >= ENGINE_HOT_NSEC || thread->run_nsec == 0;
}

/* Finds a thread that may move, on the CPU of the span with the most waiting threads that has one. */
static bool find_waiting(const Engine *e, const Pull *pull, uint32_t to, uint32_t *ret_thread)
{
    size_t most = 0;

    for (uint32_t i = 0; i < pull->from->n_cpus; i++) {
        const Cpu *cpu = &e->cpus[pull->from->cpus[i]];

        if (cpu->n_queued <= most || pull->from->cpus[i] == to || cpu_n_runnable(cpu) < 2)
            continue;
        for (size_t k = cpu->n_queued; k > 0 && k + MOVES_MAX > cpu->n_queued; k--)
            if (may_move(e, pull, cpu->queue[k - 1], to)) {
                most = cpu->n_queued;
                *ret_thread = cpu->queue[k - 1];
                break;
            }
    }
    return most > 0;
}

static bool pull_one(Engine *e, const Pull *pull, uint32_t to)
{
    uint32_t thread;

    if (pull->from->n_crowded == 0 || !find_waiting(e, pull, to, &thread))
        return false;
    cpu_move(e, thread, to, MOVE_CAUSE_PULL);
    return true;
}

/* How many threads `from` has too many compared with `to`, both in one node. */
static uint32_t surplus_near(const Span *from, const Span *to)
{
    uint64_t high = (uint64_t)from->n_runnable * to->n_cpus, low = (uint64_t)to->n_runnable * from->n_cpus;
    uint32_t n = high > low ? (uint32_t)((high - low) / (from->n_cpus + to->n_cpus)) : 0;

    if (to->n_idle == 0 && high * 100 <= low * IMBALANCE_PERCENT)
        return 0;
    return n;
}

/* The same between nodes, where some surplus may be allowed. */
static uint32_t surplus_far(const Engine *e, const Span *from, const Span *to, const TopologyDomain *domain)
{
    uint32_t allowed, n;

    if (from->n_runnable > from->n_cpus) {
        if (to->n_idle == 0)
            return surplus_near(from, to);
        return MIN(from->n_runnable - from->n_cpus, to->n_idle);
    }
    if (to->n_idle <= from->n_idle)
        return 0;
    allowed = fork_allowed(e, domain);
    n = fork_adjust(e, to->n_idle - from->n_idle, to->n_runnable + 1, allowed);
    return n / 2;
}

static bool is_in_domain(const Engine *e, uint32_t a, uint32_t b, const TopologyDomain *domain)
{
    return topology_distance(e->topology, (NodeIx){(int32_t)a}, (NodeIx){(int32_t)b}) <= domain->distance;
}

/* Whether all threads on the crowded CPUs of `from` are pinned away from `to`. The kernel leaves these CPUs
 * out and looks again (LBF_ALL_PINNED in sched_balance_rq()). */
static bool all_pinned(const Engine *e, const Span *from, uint32_t to)
{
    if (from->n_crowded == 0)
        return false;
    for (uint32_t i = 0; i < from->n_cpus; i++) {
        const Cpu *cpu = &e->cpus[from->cpus[i]];

        if (cpu_n_runnable(cpu) < 2)
            continue;
        if (cpu->current >= 0 && thread_may_run(&e->threads[cpu->current], to))
            return false;
        for (size_t k = 0; k < cpu->n_queued; k++)
            if (thread_may_run(&e->threads[cpu->queue[k]], to))
                return false;
    }
    return true;
}

/* The CPU of a span to give a thread to: one of an idle core, else an idle one, else the one with the fewest
 * threads. */
static uint32_t receiver(const Engine *e, const Span *span)
{
    uint32_t best = span->cpus[0], best_rank = UINT32_MAX;

    for (uint32_t i = 0; i < span->n_cpus; i++) {
        uint32_t cpu = span->cpus[i], n = cpu_n_runnable(&e->cpus[cpu]);
        uint32_t rank = n > 0 ? n + 1 : e->cores[e->cpus[cpu].core].n_runnable > 0;

        if (rank < best_rank) {
            best = cpu;
            best_rank = rank;
        }
    }
    return best;
}

/* The same for the threads on crowded CPUs of `from`. If all of these are pinned elsewhere, the first idle
 * CPU of the span that one of them may use (LBF_DST_PINNED in sched_balance_rq()). */
static uint32_t receiver_for(const Engine *e, const Span *from, const Span *span)
{
    uint32_t best = receiver(e, span);
    bool pinned = all_pinned(e, from, best);

    for (uint32_t i = 0; pinned && i < span->n_cpus; i++)
        if (cpu_n_runnable(&e->cpus[span->cpus[i]]) == 0 && !all_pinned(e, from, span->cpus[i]))
            return span->cpus[i];
    return best;
}

/* Whether a node has more threads than CPUs. Such a node comes before those with CPUs to spare, however
 * uneven (group_overloaded in update_sd_pick_busiest()). */
static bool is_overloaded(const Span *node)
{
    return node->n_runnable > node->n_cpus;
}

/* The node in a domain around `local` with the largest surplus, whose threads are not all pinned; NULL: none.
 * `to`: the CPU that went idle, or -1 for any CPU of `local`. */
static Span *busiest_node(const Engine *e, uint32_t local, int32_t to, const TopologyDomain *domain,
                          uint32_t *ret_n)
{
    Span *best = NULL;
    uint32_t most = 0;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        Span *node = &e->nodes[i];
        uint32_t n;

        if (i == local || node->n_runnable == 0 || !is_in_domain(e, local, i, domain))
            continue;
        n = surplus_far(e, node, &e->nodes[local], domain);
        if (n == 0 || (best && is_overloaded(best) != is_overloaded(node) ? is_overloaded(best) : n <= most))
            continue;
        if (!all_pinned(e, node, to >= 0 ? (uint32_t)to : receiver_for(e, node, &e->nodes[local]))) {
            most = n;
            best = node;
        }
    }
    *ret_n = most;
    return best;
}

/*
 * On going idle
 */

static bool newidle_nodes(Engine *e, uint32_t cpu)
{
    uint32_t n;

    for (uint32_t i = 0; i < e->topology->n_domains; i++) {
        const TopologyDomain *domain = &e->topology->domains[i];
        Pull pull = {.nice_tries = NICE_TRIES_NUMA, .cross = true, .by_heat = true};

        if (!domain->numa)
            continue;
        pull.from = busiest_node(e, (uint32_t)e->cpus[cpu].node, (int32_t)cpu, domain, &n);
        if (pull.from && pull_one(e, &pull, cpu))
            return true;
    }
    return false;
}

bool balance_newidle(Engine *e, uint32_t index)
{
    const Cpu *cpu = &e->cpus[index];
    Pull pull = {.nice_tries = NICE_TRIES_LLC, .by_heat = true};

    if (e->n_crowded == 0 || cpu->idle_mean_nsec < e->constants->balance_nsec)
        return false;
    pull.from = &e->shards[cpu->shard];
    if (pull_one(e, &pull, index))
        return true;
    pull.from = &e->nodes[cpu->node];
    if (pull.from->n_crowded > e->shards[cpu->shard].n_crowded && pull_one(e, &pull, index))
        return true;
    return e->n_crowded > e->nodes[cpu->node].n_crowded && newidle_nodes(e, index);
}

bool balance_steal(Engine *e, uint32_t index)
{
    const Cpu *cpu = &e->cpus[index];
    Span *shard = &e->shards[cpu->shard];
    Pull pull = {.from = &e->cores[cpu->core]};
    uint32_t thread, n_nodes = 0, at = 0;

    for (uint32_t i = 0; i < e->n_nodes; i++)
        n_nodes += e->nodes[i].n_cpus > 0;
    if (n_nodes > e->kernel->steal_node_limit || shard->n_crowded == 0 ||
        cpu->idle_mean_nsec < STEAL_COST_NSEC)
        return false;
    if (pull_one(e, &pull, index))
        return true;
    /* The first CPU after this one that has a thread to give. */
    while (at < shard->n_cpus && shard->cpus[at] != index)
        at++;
    for (uint32_t i = 1; i < shard->n_cpus; i++) {
        Span one = {.cpus = &shard->cpus[(at + i) % shard->n_cpus], .n_cpus = 1, .n_crowded = 1};

        pull.from = &one;
        if (find_waiting(e, &pull, index, &thread)) {
            cpu_move(e, thread, index, MOVE_CAUSE_PULL);
            return true;
        }
    }
    return false;
}

/*
 * Periodically
 */

/* Pushes a running thread to an idle CPU. */
static bool push_running(Engine *e, const Span *from, uint32_t to)
{
    if (cpu_n_runnable(&e->cpus[to]) > 0)
        return false;
    for (uint32_t i = 0; i < from->n_cpus; i++) {
        const Cpu *cpu = &e->cpus[from->cpus[i]];

        if (cpu->current < 0 || cpu->core == e->cpus[to].core ||
            !thread_may_run(&e->threads[cpu->current], to))
            continue;
        cpu_move(e, (uint32_t)cpu->current, to, MOVE_CAUSE_PULL);
        return true;
    }
    return false;
}

/* Moves up to `n` threads between spans. Returns false if there was something to move and nothing was moved. */
static bool balance_spans(Engine *e, Balance *balance, Pull *pull, const Span *to, uint32_t n)
{
    uint32_t moved = 0;

    if (n == 0)
        return true;
    pull->n_failed = balance->n_failed;
    while (moved < MIN(n, MOVES_MAX) && pull_one(e, pull, receiver_for(e, pull->from, to)))
        moved++;
    if (moved > 0)
        return true;
    if (balance->n_failed <= pull->nice_tries + 2)
        return false;
    return push_running(e, pull->from, receiver(e, to));
}

/* A core with two busy siblings, while another core is idle. */
static Span *packed_core(const Engine *e, const Span *shard)
{
    if (shard->n_idle_cores == 0)
        return NULL;
    for (uint32_t i = 0; i < shard->n_cpus; i++) {
        Span *core = &e->cores[e->cpus[shard->cpus[i]].core];

        if (core->n_cpus - core->n_idle > 1)
            return core;
    }
    return NULL;
}

/* Balances the CPUs of a shard. Returns whether they were balanced; *ret_ok is set to false if they were not
 * and nothing could be moved. */
static bool balance_cpus(Engine *e, Balance *balance, Span *shard, bool *ret_ok)
{
    Pull pull = {.from = shard, .n_failed = balance->n_failed, .nice_tries = NICE_TRIES_LLC, .by_heat = true};
    uint32_t n = 0;

    while (n < MOVES_MAX && shard->n_crowded > 0) {
        uint32_t to = receiver_for(e, shard, shard), most = 0;

        for (uint32_t i = 0; i < shard->n_cpus; i++)
            most = MAX(most, cpu_n_runnable(&e->cpus[shard->cpus[i]]));
        if (most < cpu_n_runnable(&e->cpus[to]) + 2)
            break;
        *ret_ok = pull_one(e, &pull, to);
        if (!*ret_ok)
            return false;
        n++;
    }
    pull.from = packed_core(e, shard);
    if (!pull.from)
        return n == 0;
    *ret_ok =
        n > 0 || (balance->n_failed > NICE_TRIES_LLC + 2 && push_running(e, pull.from, receiver(e, shard)));
    return false;
}

/* Balances the shards of a node. */
static bool balance_shards(Engine *e, Balance *balance, bool *ret_ok)
{
    Span *low = NULL, *high = NULL;
    Pull pull = {.nice_tries = NICE_TRIES_LLC, .by_heat = true};
    uint32_t n;

    for (uint32_t i = 0; i < e->n_shards; i++) {
        Span *shard = &e->shards[i];

        if (shard->node != balance->span)
            continue;
        if (!low || (uint64_t)shard->n_runnable * low->n_cpus < (uint64_t)low->n_runnable * shard->n_cpus)
            low = shard;
        if (!high || (uint64_t)shard->n_runnable * high->n_cpus > (uint64_t)high->n_runnable * shard->n_cpus)
            high = shard;
    }
    if (!low || low == high)
        return true;
    n = surplus_near(high, low);
    pull.from = high;
    *ret_ok = balance_spans(e, balance, &pull, low, n);
    return n == 0;
}

static bool balance_nodes(Engine *e, Balance *balance, bool *ret_ok)
{
    const TopologyDomain *domain = &e->topology->domains[balance->level];
    Pull pull = {.nice_tries = NICE_TRIES_NUMA, .cross = true, .by_heat = true};
    uint32_t n;

    pull.from = busiest_node(e, balance->span, -1, domain, &n);
    if (!pull.from)
        return true;
    pull.idle = e->nodes[balance->span].n_idle > 0;
    *ret_ok = balance_spans(e, balance, &pull, &e->nodes[balance->span], n);
    return n == 0;
}

void balance_event(Engine *e, uint32_t index)
{
    Balance *balance = &e->balances[index];
    Span *local = balance->level < 0 ? &e->shards[balance->span] : &e->nodes[balance->span];
    bool ok = true, balanced = true;

    if (local->n_idle > 0 || balance->n_looks++ % BUSY_FACTOR == 0) {
        balanced = balance->level < 0    ? balance_cpus(e, balance, local, &ok)
                   : balance->level == 0 ? balance_shards(e, balance, &ok)
                                         : balance_nodes(e, balance, &ok);
        balance->n_failed = ok ? 0 : balance->n_failed + 1;
    }
    balance->factor = balanced ? 2 : 1;
    heap_set(&e->heap, e->item_balance + index, e->now_nsec + balance->interval_nsec * balance->factor);
}
