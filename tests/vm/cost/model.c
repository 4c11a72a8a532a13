/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How an access is priced.
 *
 * For every line of guest memory the directory keeps a version, the CPU that wrote it last, and whether that CPU's copy
 * is newer than memory. A store by another CPU raises the version. Caches hold (line, version), so copies elsewhere
 * become stale without being searched for. In order:
 *
 *   1. the CPU's own cache has the line, and this is a load or the CPU owns it dirty:  free
 *   2. another CPU's cache has it dirty:      0.6 local on the same node, 1.1 the latency between the nodes otherwise
 *   3. the node's LLC has it:                 llclat
 *   4. memory:                                the latency to its node, and its queue
 *   5. a store to a line held clean, which its last writer still holds too, costs as 2: that copy has to go
 *
 * Example, two nodes, local 450 ns, remote 900 ns: CPU 0 (node 0) stores to a line of node 0: 450. It loads it: 0. CPU 2
 * (node 1) loads it: 990, from CPU 0's cache. Both may load it now for nothing. CPU 0 stores again: 0, as nobody else
 * had written it. CPU 2 loads: 990, its version is old.
 *
 * What this does badly: nothing overlaps, so it prices dependent accesses, not streams that a prefetcher would run
 * ahead of; a line evicted dirty is written back for nothing; stores that invalidate clean copies elsewhere are free;
 * versions have 16 bits, so a copy that sleeps through exactly 65536 stores of others seems fresh; races between CPUs
 * may lose an update of the directory, which costs one miss more or less. */

#include "model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A dirty line comes faster from a neighbour's cache than from memory, but slower from a cache of another node: what
 * two-socket servers show (54 and 209 ns where memory takes 90 and 190). */
#define LINE_LOCAL_PERMILLE  600U
#define LINE_REMOTE_PERMILLE 1100U

/* CPUs pay at intervals, so their clocks drift apart by up to a quantum each way. A CPU that is behind must not wait for
 * one that is ahead while there is bandwidth left. */
#define QUEUE_SLACK_QUANTA 2U

#define DIRTY         1U
#define OWNER_SHIFT   8
#define OWNER_MASK    0xffU
#define VERSION_SHIFT 16

typedef struct ModelCpu {
    ModelCounters counters;
    Cache cache;
    unsigned node;
} __attribute__((aligned(128)))
ModelCpu; /* each CPU is a thread of the host: no shared lines, nor pairs of them */

typedef struct ModelNode {
    uint64_t free_nsec; /* when its memory can begin the next line */
    uint64_t end_line;  /* the first line of the next node */
    Cache llc;
} __attribute__((aligned(128))) ModelNode;

struct Model {
    ModelCpu cpus[COST_CPUS_MAX];
    ModelNode nodes[COST_NODES_MAX];
    unsigned n_nodes;
    bool has_llc;
    uint64_t n_lines;
    uint32_t *directory;
    uint64_t memory_nsec[COST_NODES_MAX][COST_NODES_MAX];
    uint64_t line_nsec[COST_NODES_MAX][COST_NODES_MAX];
    uint64_t llc_nsec;
    uint64_t service_nsec;
    uint64_t slack_nsec;
};

static int init_caches(Model *m, const Config *c)
{
    int r;

    for (unsigned i = 0; i < c->n_cpus; i++) {
        r = cache_init(&m->cpus[i].cache, c->cache_kib * 1024ULL / ADDRESS_LINE_BYTES);
        if (r < 0)
            return r;
    }
    m->has_llc = c->llc_kib > 0;
    for (unsigned i = 0; m->has_llc && i < c->n_nodes; i++) {
        r = cache_init(&m->nodes[i].llc, c->llc_kib * 1024ULL / ADDRESS_LINE_BYTES);
        if (r < 0)
            return r;
    }
    return 0;
}

static void init_prices(Model *m, const Config *c)
{
    for (unsigned i = 0; i < c->n_nodes; i++) {
        for (unsigned j = 0; j < c->n_nodes; j++) {
            uint64_t nsec = config_latency_nsec(c, c->distance[i][j]);

            m->memory_nsec[i][j] = nsec;
            m->line_nsec[i][j] = nsec * (i == j ? LINE_LOCAL_PERMILLE : LINE_REMOTE_PERMILLE) / 1000;
        }
    }
    m->llc_nsec = (uint64_t)c->llc_nsec * c->scale_permille / 1000;
    /* 64 bytes at MB/s are 64000 / MB/s nanoseconds. */
    if (c->bandwidth_mbs > 0)
        m->service_nsec = ADDRESS_LINE_BYTES * (uint64_t)c->scale_permille / c->bandwidth_mbs;
    m->slack_nsec = QUEUE_SLACK_QUANTA * c->quantum_usec * 1000ULL;
}

static void init_nodes(Model *m, const Config *c)
{
    uint64_t line = 0;

    m->n_nodes = c->n_nodes;
    for (unsigned i = 0; i < c->n_nodes; i++) {
        line += (c->node_mib[i] << 20) >> ADDRESS_LINE_SHIFT;
        m->nodes[i].end_line = line;
    }
    for (unsigned i = 0; i < c->n_cpus; i++)
        m->cpus[i].node = c->cpu_node[i];
}

int model_new(const Config *c, const AddressMap *map, Model **ret)
{
    Model *m = aligned_alloc(_Alignof(Model), sizeof(Model));
    int r;

    if (!m)
        return -ENOMEM;
    memset(m, 0, sizeof(*m));
    init_nodes(m, c);
    init_prices(m, c);
    r = init_caches(m, c);
    if (r < 0) {
        (void)model_free(m);
        return r;
    }
    /* Only the parts that stand for touched memory become real: 4 bytes for each 64 of the guest. */
    m->n_lines = map->n_lines;
    m->directory = mmap(NULL, m->n_lines * sizeof(*m->directory), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->directory == MAP_FAILED) {
        m->directory = NULL;
        (void)model_free(m);
        return -ENOMEM;
    }
    *ret = m;
    return 0;
}

Model *model_free(Model *m)
{
    if (!m)
        return NULL;
    for (unsigned i = 0; i < COST_CPUS_MAX; i++)
        cache_done(&m->cpus[i].cache);
    for (unsigned i = 0; i < COST_NODES_MAX; i++)
        cache_done(&m->nodes[i].llc);
    if (m->directory)
        (void)munmap(m->directory, m->n_lines * sizeof(*m->directory));
    free(m);
    return NULL;
}

ModelCounters *model_counters(Model *m, unsigned cpu)
{
    return &m->cpus[cpu].counters;
}

static unsigned node_of(const Model *m, uint64_t line)
{
    unsigned node = 0;

    while (line >= m->nodes[node].end_line)
        node++;
    return node;
}

/* Keys of a line change with its version. */
static uint64_t key_of(uint64_t line, uint32_t entry)
{
    return line << VERSION_SHIFT | entry >> VERSION_SHIFT;
}

static uint32_t owned_by(unsigned cpu)
{
    return (cpu + 1) << OWNER_SHIFT | DIRTY;
}

/* The CPU that wrote the line last, if it is another one and still holds this version, or NULL. */
static const ModelCpu *other_holder(const Model *m, unsigned cpu, uint64_t line, uint32_t entry)
{
    unsigned owner = (entry >> OWNER_SHIFT) & OWNER_MASK;

    if (owner == 0 || owner == cpu + 1 || !cache_has(&m->cpus[owner - 1].cache, line, key_of(line, entry)))
        return NULL;
    return &m->cpus[owner - 1];
}

static uint64_t charge_line(Model *m, ModelCpu *cpu, const ModelCpu *holder)
{
    if (cpu->node == holder->node)
        cpu->counters.line_local++;
    else
        cpu->counters.line_remote++;
    return m->line_nsec[cpu->node][holder->node];
}

static uint64_t charge_memory(Model *m, ModelCpu *cpu, unsigned node, bool user)
{
    ModelCounters *c = &cpu->counters;

    if (node == cpu->node)
        *(user ? &c->user_local : &c->kernel_local) += 1;
    else
        *(user ? &c->user_remote : &c->kernel_remote) += 1;
    return m->memory_nsec[cpu->node][node];
}

/* Steps 2 to 4: brings the line into the CPU's cache. Returns the price. */
static uint64_t fetch(Model *m, unsigned index, uint64_t line, uint32_t *entry, bool user,
                      int *ret_memory_node)
{
    ModelCpu *cpu = &m->cpus[index];
    const ModelCpu *holder = (*entry & DIRTY) ? other_holder(m, index, line, *entry) : NULL;

    if (holder) {
        *entry &= ~DIRTY;
        return charge_line(m, cpu, holder);
    }
    if (m->has_llc && cache_has(&m->nodes[cpu->node].llc, line, key_of(line, *entry))) {
        cpu->counters.llc++;
        return m->llc_nsec;
    }
    *ret_memory_node = (int)node_of(m, line);
    return charge_memory(m, cpu, (unsigned)*ret_memory_node, user);
}

uint64_t model_access(Model *m, unsigned index, uint64_t line, bool store, bool user, int *ret_memory_node)
{
    ModelCpu *cpu = &m->cpus[index];
    uint32_t before = __atomic_load_n(&m->directory[line], __ATOMIC_RELAXED), entry = before;
    bool had = cache_has(&cpu->cache, line, key_of(line, entry));
    bool owned = (entry & ((1U << VERSION_SHIFT) - 1)) == owned_by(index);
    uint64_t nsec = 0;

    *ret_memory_node = -1;
    if (had && (!store || owned)) {
        cache_put(&cpu->cache, line, key_of(line, entry));
        return 0;
    }
    if (!had)
        nsec = fetch(m, index, line, &entry, user, ret_memory_node);
    if (store && !owned) {
        const ModelCpu *holder = had ? other_holder(m, index, line, entry) : NULL;

        if (holder)
            nsec = charge_line(m, cpu, holder);
        entry = ((entry >> VERSION_SHIFT) + 1) << VERSION_SHIFT | owned_by(index);
    }
    if (entry != before)
        __atomic_store_n(&m->directory[line], entry, __ATOMIC_RELAXED);
    cache_put(&cpu->cache, line, key_of(line, entry));
    if (m->has_llc)
        cache_put(&m->nodes[cpu->node].llc, line, key_of(line, entry));
    cpu->counters.charged_nsec += nsec;
    return nsec;
}

uint64_t model_queue(Model *m, unsigned cpu, unsigned node, uint64_t now_nsec)
{
    uint64_t *free_at = &m->nodes[node].free_nsec, begin, wait;
    uint64_t end = __atomic_load_n(free_at, __ATOMIC_RELAXED);

    if (m->service_nsec == 0)
        return 0;
    do {
        begin = end > now_nsec ? end : now_nsec;
    } while (!__atomic_compare_exchange_n(free_at, &end, begin + m->service_nsec, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    wait = begin - now_nsec > m->slack_nsec ? begin - now_nsec - m->slack_nsec : 0;
    m->cpus[cpu].counters.queue_nsec += wait;
    m->cpus[cpu].counters.charged_nsec += wait;
    return wait;
}
