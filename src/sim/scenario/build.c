/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Builds the machine and the processes of a run from a scenario and a seed. */

#include "base/parse.h"
#include "sim/model/engine.h"

#include <string.h>

#define NSEC_PER_MSEC 1000000ULL

/* Purposes of random numbers. */
enum {
    PURPOSE_BURST = 1,
    PURPOSE_PLACE,
    PURPOSE_NOISE,
    PURPOSE_SCAN,
    PURPOSE_ARRIVAL,
};

/*
 * Machine
 */

/* Shards are pairs of an LLC and a node. */
static int32_t shard_of(Engine *e, const TopologyCpu *cpu, int32_t *llcs)
{
    for (uint32_t i = 0; i < e->n_shards; i++)
        if (llcs[i] == cpu->llc.i && e->shards[i].node == cpu->node.i)
            return (int32_t)i;
    llcs[e->n_shards] = cpu->llc.i;
    e->shards[e->n_shards].node = cpu->node.i;
    return (int32_t)e->n_shards++;
}

static int build_cpus(Engine *e)
{
    const Topology *topology = e->topology;
    CLEANUP_FREE int32_t *llcs = calloc(topology->n_cpus, sizeof(*llcs));

    if (!llcs)
        return -ENOMEM;
    for (uint32_t i = 0; i < topology->cpu_limit; i++) {
        const TopologyCpu *from = &topology->cpus[i];
        Cpu *cpu = &e->cpus[i];

        cpu->current = cpu->last_ran = ENGINE_NONE;
        if (!from->present)
            continue;
        cpu->present = true;
        cpu->node = from->node.i;
        cpu->core = from->core.i;
        cpu->shard = shard_of(e, from, llcs);
        cpu->busy_since_nsec = UINT64_MAX;
        cpu->idle_mean_nsec = 2 * ENGINE_HOT_NSEC; /* what the kernel starts with */
        cpu->idling = true;
        e->shards[cpu->shard].n_cpus++;
        e->cores[cpu->core].n_cpus++;
        e->cores[cpu->core].node = cpu->node;
        e->nodes[cpu->node].n_cpus++;
        e->nodes[cpu->node].node = cpu->node;
    }
    return 0;
}

/* Gives each of `n` spans its part of the list; n_cpus is counted again while the lists are filled. */
static void divide(Span *spans, uint32_t n, uint32_t *list)
{
    for (uint32_t i = 0; i < n; i++) {
        spans[i].cpus = list;
        list += spans[i].n_cpus;
        spans[i].n_cpus = 0;
    }
}

static void join(Span *span, uint32_t cpu)
{
    span->cpus[span->n_cpus++] = cpu;
    span->n_idle = span->n_cpus;
}

static void build_spans(Engine *e)
{
    uint32_t n = e->topology->n_cpus;

    divide(e->cores, e->n_cores, e->cpu_lists);
    divide(e->shards, e->n_shards, e->cpu_lists + n);
    divide(e->nodes, e->n_nodes, e->cpu_lists + (size_t)2 * n);
    for (uint32_t i = 0; i < e->topology->cpu_limit; i++) {
        const Cpu *cpu = &e->cpus[i];

        if (!cpu->present)
            continue;
        if (e->cores[cpu->core].n_cpus == 0) {
            e->shards[cpu->shard].n_idle_cores++;
            e->nodes[cpu->node].n_idle_cores++;
        }
        join(&e->cores[cpu->core], i);
        join(&e->shards[cpu->shard], i);
        join(&e->nodes[cpu->node], i);
    }
}

static void add_balance(Engine *e, uint32_t span, int32_t level, uint32_t weight)
{
    e->balances[e->n_balances++] = (Balance){
        .span = (int32_t)span,
        .level = level,
        .interval_nsec = MAX(weight, 1U) * NSEC_PER_MSEC,
        .factor = 1,
    };
}

static int build_balances(Engine *e)
{
    e->balances =
        calloc(e->n_shards + (size_t)e->n_nodes * (e->topology->n_domains + 1), sizeof(*e->balances));
    if (!e->balances)
        return -ENOMEM;
    if (!e->kernel->balance)
        return 0;
    for (uint32_t i = 0; i < e->n_shards; i++)
        add_balance(e, i, -1, e->shards[i].n_cpus);
    for (uint32_t i = 0; i < e->n_nodes; i++) {
        if (e->nodes[i].n_cpus == 0)
            continue;
        add_balance(e, i, 0, e->nodes[i].n_cpus);
        for (uint32_t k = 1; k < e->topology->n_domains; k++)
            if (e->topology->domains[k].numa)
                add_balance(e, i, (int32_t)k, e->topology->domains[k].span);
    }
    return 0;
}

/* Pace of an access, linear in the distance. */
static int build_latency(Engine *e)
{
    const SimModel *c = e->constants;
    size_t n = e->n_nodes;

    e->latency = calloc(n * n, sizeof(*e->latency));
    e->contention = calloc(n, sizeof(*e->contention));
    e->traffic = calloc(n, sizeof(*e->traffic));
    e->traffic_nsec = calloc(n, sizeof(*e->traffic_nsec));
    if (!e->latency || !e->contention || !e->traffic || !e->traffic_nsec)
        return -ENOMEM;
    for (size_t i = 0; i < n * n; i++) {
        uint64_t distance = MAX(e->topology->distances[i], 10U), local = MAX(c->local_latency_nsec, 1U);
        uint64_t more = MAX(c->remote_latency_nsec, local) - local;

        e->latency[i] = (uint32_t)MIN(ENGINE_PACE * (local * 10 + more * (distance - 10)) / (local * 10),
                                      (uint64_t)64 * ENGINE_PACE);
    }
    for (size_t i = 0; i < n; i++)
        e->contention[i] = ENGINE_PACE;
    return 0;
}

static int build_machine(Engine *e)
{
    const Topology *topology = e->topology;
    int r;

    e->n_nodes = topology->n_nodes;
    e->n_cores = topology->n_cores;
    e->cpus = calloc(topology->cpu_limit, sizeof(*e->cpus));
    e->resched = calloc(topology->cpu_limit, sizeof(*e->resched));
    e->nodes = calloc(e->n_nodes, sizeof(*e->nodes));
    e->cores = calloc(e->n_cores, sizeof(*e->cores));
    e->shards = calloc(topology->n_cpus, sizeof(*e->shards));
    e->cpu_lists = calloc((size_t)3 * topology->n_cpus, sizeof(*e->cpu_lists));
    e->pool = intern_pool_new();
    if (!e->cpus || !e->resched || !e->nodes || !e->cores || !e->shards || !e->cpu_lists || !e->pool)
        return -ENOMEM;
    e->all = intern_mask(e->pool, topology->all_cpus);
    if (!e->all)
        return -ENOMEM;
    r = build_cpus(e);
    if (r < 0)
        return r;
    build_spans(e);
    r = build_balances(e);
    return r < 0 ? r : build_latency(e);
}

/*
 * Processes
 */

static bool runs(const Engine *e, size_t workload)
{
    return e->variant->workloads[workload];
}

static uint64_t pages_of(uint64_t bytes)
{
    return MIN((bytes + ENGINE_PAGE_BYTES - 1) / ENGINE_PAGE_BYTES, (uint64_t)1 << 30);
}

/* Limit of Engine.pages, which has a number per region and node. */
#define PAGES_MAX (64U << 20)

static int refuse(const char *text, char **ret_error)
{
    *ret_error = strdup(text);
    return -EINVAL;
}

/* Number of pieces of memory that threads of a process share. */
static uint32_t n_shared(const SimWorkload *w)
{
    if (w->shared_bytes == 0)
        return 0;
    return w->shared_by > 0 ? (w->n_threads + w->shared_by - 1) / w->shared_by : 1;
}

static int count_all(Engine *e, char **ret_error)
{
    uint64_t families = 0, threads = 0, regions = 0;

    for (size_t i = 0; i < e->spec->n_workloads; i++) {
        const SimWorkload *w = &e->spec->workloads[i];

        if (!runs(e, i))
            continue;
        families += w->n_processes;
        threads += (uint64_t)w->n_processes * w->n_threads;
        regions += (uint64_t)w->n_processes * (n_shared(w) + (w->private_bytes > 0 ? w->n_threads : 0));
        e->any_bandwidth |= w->bandwidth > 0 && w->memory_permille > 0;
    }
    if (threads > SIM_THREADS_MAX)
        return refuse("expected fewer threads", ret_error);
    if (regions > PAGES_MAX / e->n_nodes ||
        (e->kernel->numa_balancing && threads > PAGES_MAX / (4 * e->n_nodes)))
        return refuse("expected fewer threads or regions of memory, or fewer nodes", ret_error);
    e->families = calloc(MAX(families, (uint64_t)1), sizeof(*e->families));
    e->threads = calloc(MAX(threads, (uint64_t)1), sizeof(*e->threads));
    e->regions = calloc(MAX(regions, (uint64_t)1), sizeof(*e->regions));
    e->pages = calloc(MAX(regions, (uint64_t)1) * e->n_nodes, sizeof(*e->pages));
    if (!e->families || !e->threads || !e->regions || !e->pages)
        return -ENOMEM;
    if (!e->kernel->numa_balancing)
        return 0;
    e->faults = calloc(MAX(threads, (uint64_t)1) * 2 * e->n_nodes, sizeof(*e->faults));
    e->family_faults = calloc(MAX(families, (uint64_t)1) * (e->n_nodes + 1), sizeof(*e->family_faults));
    return e->faults && e->family_faults ? 0 : -ENOMEM;
}

static int32_t add_region(Engine *e, uint64_t bytes, bool shared)
{
    e->regions[e->n_regions] =
        (Region){.n_pages = pages_of(bytes), .shared = shared, .last_node = ENGINE_NONE};
    return (int32_t)e->n_regions++;
}

static void add_threads(Engine *e, const SimWorkload *w, size_t workload, uint32_t family, CpuMask own)
{
    Random bursts = random_split(e->seed, PURPOSE_BURST);

    for (uint32_t i = 0; i < w->n_threads; i++, e->n_threads++)
        e->threads[e->n_threads] = (Thread){
            .workload = (uint32_t)workload,
            .process = family,
            .cpu = ENGINE_NONE,
            .allowed = own,
            .own = own,
            .allowed_all = own == e->all,
            .random = random_split(bursts.state, e->n_threads),
            .life_left = w->work_usec > 0 ? w->work_usec * NSEC_PER_USEC : UINT64_MAX,
            .first_sender = ENGINE_NONE,
            .last_sender = ENGINE_NONE,
            .next_sender = ENGINE_NONE,
            .recent_cpu = ENGINE_NONE,
            .wakee = ENGINE_NONE,
            .warm_cpu = ENGINE_NONE,
        };
}

/* A random CPU on which the launcher may start. */
static int32_t launcher_cpu(Engine *e, const SimWorkload *w, CpuMask own)
{
    bool confined = w->start_cpus && hwloc_bitmap_intersects(w->start_cpus, own);
    uint32_t n = 0;
    int32_t chosen = ENGINE_NONE;

    for (int cpu = hwloc_bitmap_first(own); cpu >= 0; cpu = hwloc_bitmap_next(own, cpu))
        if ((!confined || hwloc_bitmap_isset(w->start_cpus, (unsigned)cpu)) &&
            random_below(&e->random_place, ++n) == 0)
            chosen = cpu;
    return chosen;
}

static void add_family(Engine *e, const SimWorkload *w, size_t workload, CpuMask cpuset, CpuMask pin,
                       uint64_t start_nsec)
{
    CpuMask own = w->affinity_usec > 0 ? cpuset : pin;
    Family *family = &e->families[e->n_families];

    *family = (Family){
        .workload = (uint32_t)workload,
        .first = e->n_threads,
        .launcher_cpu = launcher_cpu(e, w, own),
        .start_nsec = start_nsec,
        .seen_nsec = start_nsec,
        .shared_first = ENGINE_NONE,
        .private_first = ENGINE_NONE,
        .n_alive = w->n_threads,
        .n_senders = w->n_threads / 2,
        .n_shared = n_shared(w),
        .rss_pages = n_shared(w) * pages_of(w->shared_bytes) + w->n_threads * pages_of(w->private_bytes),
        .cpuset = cpuset,
        .pin = w->affinity_usec > 0 ? pin : NULL,
    };
    if (family->n_shared > 0)
        family->shared_first = (int32_t)e->n_regions;
    for (uint32_t i = 0; i < family->n_shared; i++)
        (void)add_region(e, w->shared_bytes, true);
    if (w->private_bytes > 0) {
        family->private_first = (int32_t)e->n_regions;
        for (uint32_t i = 0; i < w->n_threads; i++)
            (void)add_region(e, w->private_bytes, false);
    }
    add_threads(e, w, workload, e->n_families++, own);
}

static CpuMask cut(Engine *e, CpuMask mask, hwloc_const_bitmap_t by)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = by ? hwloc_bitmap_alloc() : NULL;

    if (!by)
        return mask;
    return set && hwloc_bitmap_and(set, mask, by) == 0 ? intern_mask(e->pool, set) : NULL;
}

static int build_workload(Engine *e, size_t index, char **ret_error)
{
    const SimWorkload *w = &e->spec->workloads[index];
    Random arrival = random_split(e->seed, PURPOSE_ARRIVAL + index);
    uint64_t start = w->start_usec * NSEC_PER_USEC;
    CpuMask cpuset = cut(e, e->all, w->cpuset), own = cpuset ? cut(e, cpuset, w->affinity) : NULL;

    if (!own)
        return -ENOMEM;
    if (hwloc_bitmap_iszero(own))
        return format_error(ret_error, -EINVAL, "workload %s: its threads may not use any CPU", w->name);
    e->tallies[index].n_alive = w->n_processes * w->n_threads;
    for (uint32_t i = 0; i < w->n_processes; i++) {
        add_family(e, w, index, cpuset, own, start);
        start += random_time(&arrival, &w->arrival);
    }
    return 0;
}

static int build_tallies(Engine *e)
{
    size_t n = e->spec->n_workloads;

    e->tallies = calloc(MAX(n, (size_t)1), sizeof(*e->tallies));
    e->used = calloc(MAX(n, (size_t)1) * e->n_nodes, sizeof(*e->used));
    if (!e->tallies || !e->used)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        e->tallies[i].forked = calloc(e->n_nodes, sizeof(*e->tallies[i].forked));
        e->tallies[i].late_nsec = calloc(e->n_nodes, sizeof(*e->tallies[i].late_nsec));
        if (!e->tallies[i].forked || !e->tallies[i].late_nsec)
            return -ENOMEM;
    }
    return 0;
}

/*
 * Events
 */

static int build_heap(Engine *e)
{
    uint32_t n = e->topology->cpu_limit;
    int r;

    e->item_thread = n;
    e->item_family = e->item_thread + e->n_threads;
    e->item_balance = e->item_family + e->n_families;
    e->item_scan = e->item_balance + e->n_balances;
    e->item_memory = e->item_scan + e->n_families;
    e->item_tick = e->item_memory + 1;
    r = heap_init(&e->heap, e->item_tick + 1);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < e->n_families; i++) {
        heap_set(&e->heap, e->item_family + i, e->families[i].start_nsec);
        if (e->kernel->numa_balancing && e->families[i].rss_pages > 0)
            heap_set(&e->heap, e->item_scan + i, e->families[i].start_nsec + NSEC_PER_SEC);
    }
    /* Spans are balanced at different times. */
    for (uint32_t i = 0; i < e->n_balances; i++)
        heap_set(&e->heap, e->item_balance + i,
                 1 + e->balances[i].interval_nsec * random_below(&e->random_place, 1000) / 1000);
    if (e->any_bandwidth)
        heap_set(&e->heap, e->item_memory, 0);
    heap_set(&e->heap, e->item_tick, e->constants->fast_tick_usec * NSEC_PER_USEC);
    return 0;
}

int build_engine(Engine *e, char **ret_error)
{
    int r;

    e->random_place = random_split(e->seed, PURPOSE_PLACE);
    e->random_noise = random_split(e->seed, PURPOSE_NOISE);
    e->random_scan = random_split(e->seed, PURPOSE_SCAN);
    e->end_nsec = e->spec->duration_usec * NSEC_PER_USEC;
    e->settle_nsec = e->spec->settle_usec * NSEC_PER_USEC;
    r = build_machine(e);
    if (r == 0)
        r = build_tallies(e);
    if (r == 0)
        r = count_all(e, ret_error);
    for (size_t i = 0; r == 0 && i < e->spec->n_workloads; i++)
        if (runs(e, i))
            r = build_workload(e, i, ret_error);
    e->n_alive = e->n_threads;
    return r < 0 ? r : build_heap(e);
}

void build_done(Engine *e)
{
    for (uint32_t i = 0; e->cpus && i < e->topology->cpu_limit; i++)
        free(e->cpus[i].queue);
    for (size_t i = 0; e->tallies && i < e->spec->n_workloads; i++) {
        free(e->tallies[i].forked);
        free(e->tallies[i].late_nsec);
    }
    heap_done(&e->heap);
    (void)intern_pool_free(e->pool);
    free(e->cpus);
    free(e->resched);
    free(e->nodes);
    free(e->cores);
    free(e->shards);
    free(e->cpu_lists);
    free(e->balances);
    free(e->latency);
    free(e->contention);
    free(e->traffic);
    free(e->traffic_nsec);
    free(e->families);
    free(e->threads);
    free(e->regions);
    free(e->pages);
    free(e->faults);
    free(e->family_faults);
    free(e->tallies);
    free(e->used);
}
