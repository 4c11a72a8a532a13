/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How an access is priced.
 *
 * For every line of guest memory the directory keeps a version, the CPU that wrote it last, and whether that CPU's
 * copy is newer than memory. A store by another CPU raises the version. Caches hold (line, version), so copies
 * elsewhere become stale without a search for them. In order:
 *
 *   1. the CPU's own cache has the line, and this is a load or the CPU owns it dirty:  free
 *   2. another CPU's cache has it dirty:      0.6 local behind the same LLC, local behind another one of the node,
 *                                             1.1 the latency between the nodes otherwise
 *   3. the CPU's LLC has it:                  llclat
 *   4. memory:                                the latency to its node, and its queue
 *      the next line of a stream costs only seq of 3 and 4, and its queue
 *   5. a store to a clean line that its last writer also holds costs as 2: that copy must be invalidated
 *
 * Example, two nodes, local 450 ns, remote 900 ns: CPU 0 (node 0) stores to a line of node 0: 450. It loads it: 0. CPU
 * 2 (node 1) loads it: 990, from CPU 0's cache. From now on both load it for free. CPU 0 stores again: 0, as no other
 * CPU has written it. CPU 2 loads: 990, its version is old.
 *
 * A dirty line that leaves its CPU's cache and the LLC takes a line of its memory's bandwidth, but no CPU waits for
 * it.
 *
 * Each CPU has a TLB of 2048 entries, like the data TLB of Zen 2 and later. A miss costs a walk. The plugin does not
 * know the size of a page. Addresses that agree in their lower 21 bits are taken to be in a 2 MB page, which is wrong
 * for one of 512 small pages. An entry has the virtual and the physical page, so address spaces need no number.
 *
 * What this does badly: except for streams nothing overlaps, so it prices dependent accesses. Stores that invalidate
 * clean copies elsewhere are free. Versions have 16 bits, so a copy that misses exactly 65536 stores of others seems
 * current. */

#include "model.h"

#include "bandwidth.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A dirty line comes faster from a neighbour's cache than from memory, but slower from a cache of another
 * node, as two-socket servers show (54 and 209 ns where memory takes 90 and 190). Between the caches of a
 * node it goes through the memory controller, and takes as long as memory does. */
#define LINE_LLC_PERMILLE    600U
#define LINE_LOCAL_PERMILLE  1000U
#define LINE_REMOTE_PERMILLE 1100U

/* Streams that a CPU's prefetcher follows: 16 on Intel's, one in each direction of 32 pages on others. */
#define STREAMS 16U
/* Consecutive lines that make a stream. A walk in random order, which touches neighbours by chance, must not
 * count: in a page of 64 lines a fourth of the lines come soon after the one before, but only one of 64 as
 * the third in a row. */
#define STREAM_MIN 3U

#define TLB_SETS       1024U
#define TLB_WAYS       2U
#define PAGE_SHIFT     12
#define BIG_PAGE_SHIFT 21

#define DIRTY         1U
#define OWNER_SHIFT   8
#define OWNER_MASK    0xffU
#define VERSION_SHIFT CACHE_VERSION_BITS

typedef struct ModelStream {
    uint64_t line; /* the latest */
    uint32_t length;
} ModelStream;

typedef struct ModelCpu {
    ModelCounters counters;
    Cache cache;
    unsigned node;
    unsigned llc; /* of all nodes together */
    unsigned next_stream;
    ModelStream streams[STREAMS];
    uint64_t tlb[TLB_SETS][TLB_WAYS];
} ModelCpu;

typedef struct ModelNode {
    uint64_t end_line; /* the first line of the next node */
    Bandwidth bandwidth;
} ModelNode;

struct Model {
    ModelCpu cpus[COST_CPUS_MAX];
    ModelNode nodes[COST_NODES_MAX];
    Cache llcs[COST_CPUS_MAX]; /* those with CPUs, in their order */
    unsigned n_nodes, n_llcs;
    bool has_llc;
    uint64_t n_lines;
    uint32_t *directory;
    uint64_t memory_nsec[COST_NODES_MAX][COST_NODES_MAX];
    uint64_t line_nsec[COST_NODES_MAX][COST_NODES_MAX];
    uint64_t line_llc_nsec;
    uint64_t llc_nsec;
    uint64_t walk_psec;
    uint64_t sequence_permille;
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
    for (unsigned i = 0; m->has_llc && i < m->n_llcs; i++) {
        r = cache_init(&m->llcs[i], c->llc_kib * 1024ULL / ADDRESS_LINE_BYTES);
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
    m->line_llc_nsec = config_latency_nsec(c, COST_DISTANCE_LOCAL) * LINE_LLC_PERMILLE / 1000;
    m->llc_nsec = (uint64_t)c->llc_nsec * c->scale_permille / 1000;
    m->walk_psec = (uint64_t)config_scaled_psec(c, c->walk_nsec);
    m->sequence_permille = c->sequence_permille;
}

static void init_nodes(Model *m, const Config *c)
{
    uint64_t line = 0, line_psec = 0;

    /* 64 bytes at MB/s are 64,000,000 / MB/s picoseconds; with a scale in thousandths, 64,000 times that. */
    if (c->bandwidth_mbs > 0)
        line_psec = ADDRESS_LINE_BYTES * 1000ULL * c->scale_permille / c->bandwidth_mbs;
    m->n_nodes = c->n_nodes;
    for (unsigned i = 0; i < c->n_nodes; i++) {
        line += (c->node_mib[i] << 20) >> ADDRESS_LINE_SHIFT;
        m->nodes[i].end_line = line;
        bandwidth_init(&m->nodes[i].bandwidth, line_psec, c->slice_nsec * 1000ULL);
    }
}

/* The CPUs of a node in their order, in runs of equal length, one for each LLC. */
static void init_cpus(Model *m, const Config *c)
{
    unsigned first[COST_NODES_MAX], n[COST_NODES_MAX] = {0}, at[COST_NODES_MAX] = {0};

    for (unsigned i = 0; i < c->n_cpus; i++)
        n[c->cpu_node[i]]++;
    for (unsigned i = 0; i < c->n_nodes; i++) {
        first[i] = m->n_llcs;
        m->n_llcs += n[i] > 0 ? c->n_llcs : 0;
    }
    for (unsigned i = 0; i < c->n_cpus; i++) {
        unsigned node = c->cpu_node[i];

        m->cpus[i].node = node;
        m->cpus[i].llc = first[node] + at[node]++ * c->n_llcs / n[node];
    }
}

int model_new(const Config *c, const AddressMap *map, Model **ret)
{
    Model *m = calloc(1, sizeof(*m));
    int r;

    if (!m)
        return -ENOMEM;
    init_nodes(m, c);
    init_cpus(m, c);
    init_prices(m, c);
    r = init_caches(m, c);
    if (r < 0) {
        (void)model_free(m);
        return r;
    }
    /* Only the parts for touched memory are allocated: 4 bytes for each 64 of the guest. */
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
    for (unsigned i = 0; i < COST_CPUS_MAX; i++) {
        cache_done(&m->cpus[i].cache);
        cache_done(&m->llcs[i]);
    }
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

/* The key of a line changes with its version. */
static uint64_t key_of(uint64_t line, uint32_t entry)
{
    return line << VERSION_SHIFT | entry >> VERSION_SHIFT;
}

static uint32_t owned_by(unsigned cpu)
{
    return (cpu + 1) << OWNER_SHIFT | DIRTY;
}

/* The CPU that wrote the line last, if it is another one that still holds this version; otherwise NULL. */
static const ModelCpu *other_holder(const Model *m, unsigned cpu, uint64_t line, uint32_t entry)
{
    unsigned owner = (entry >> OWNER_SHIFT) & OWNER_MASK;

    if (owner == 0 || owner == cpu + 1 || !cache_has(&m->cpus[owner - 1].cache, key_of(line, entry)))
        return NULL;
    return &m->cpus[owner - 1];
}

/* Returns nanoseconds, like charge_memory(). */
static uint64_t charge_line(Model *m, ModelCpu *cpu, const ModelCpu *holder)
{
    if (cpu->node == holder->node)
        cpu->counters.line_local++;
    else
        cpu->counters.line_remote++;
    return cpu->llc == holder->llc ? m->line_llc_nsec : m->line_nsec[cpu->node][holder->node];
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

/* True when the line was prefetched: the next of a stream. A line that follows no stream begins one in place
 * of the oldest. */
static bool follows(ModelCpu *cpu, uint64_t line)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        ModelStream *s = &cpu->streams[i];

        if (s->line + 1 == line) {
            s->line = line;
            s->length++;
            return s->length > STREAM_MIN;
        }
    }
    cpu->streams[cpu->next_stream++ % STREAMS] = (ModelStream){.line = line, .length = 1};
    return false;
}

/* Steps 2 to 4: brings the line into the CPU's cache. Returns picoseconds. */
static uint64_t fetch(Model *m, unsigned index, const ModelAccess *a, uint32_t *entry, uint64_t now_psec)
{
    ModelCpu *cpu = &m->cpus[index];
    const ModelCpu *holder = (*entry & DIRTY) ? other_holder(m, index, a->line, *entry) : NULL;
    uint64_t permille = 1000, psec, wait;
    unsigned node;

    if (follows(cpu, a->line)) {
        cpu->counters.sequential++;
        permille = m->sequence_permille;
    }
    if (holder) {
        *entry &= ~DIRTY;
        return charge_line(m, cpu, holder) * 1000;
    }
    if (m->has_llc && cache_has(&m->llcs[cpu->llc], key_of(a->line, *entry))) {
        cpu->counters.llc++;
        return m->llc_nsec * permille;
    }
    node = node_of(m, a->line);
    psec = charge_memory(m, cpu, node, a->user) * permille;
    wait = bandwidth_take(&m->nodes[node].bandwidth, index, now_psec);
    cpu->counters.queue_psec += wait;
    return psec + wait;
}

/* A line has left the cache of a CPU or its LLC. If it is dirty and in neither of its writer's caches any
 * more, it is written to memory. */
static void leave(Model *m, unsigned llc, uint64_t key, uint64_t now_psec)
{
    uint64_t line = key >> CACHE_VERSION_BITS;
    uint32_t entry;
    unsigned owner;

    if (key == CACHE_NO_KEY)
        return;
    entry = m->directory[line];
    owner = (entry >> OWNER_SHIFT) & OWNER_MASK;
    if (!(entry & DIRTY) || key_of(line, entry) != key || owner == 0 || m->cpus[owner - 1].llc != llc)
        return;
    if (cache_has(&m->cpus[owner - 1].cache, key) || (m->has_llc && cache_has(&m->llcs[llc], key)))
        return;
    m->directory[line] = entry & ~DIRTY;
    m->cpus[owner - 1].counters.written_back++;
    bandwidth_post(&m->nodes[node_of(m, line)].bandwidth, now_psec);
}

static uint64_t walk(Model *m, ModelCpu *cpu, const ModelAccess *a)
{
    uint64_t differ = a->virtual_address ^ a->physical_address, page, key, *set;
    unsigned shift = (differ & ((1ULL << BIG_PAGE_SHIFT) - 1)) == 0 ? BIG_PAGE_SHIFT : PAGE_SHIFT;

    if (m->walk_psec == 0)
        return 0;
    page = a->virtual_address >> shift;
    /* Never 0, which means no entry. */
    key = (page << 24 ^ (a->physical_address >> shift)) << 1 | 1;
    set = cpu->tlb[(page ^ (shift == BIG_PAGE_SHIFT ? TLB_SETS / 2 : 0)) % TLB_SETS];
    if (set[0] == key)
        return 0;
    if (set[1] == key) {
        set[1] = set[0];
        set[0] = key;
        return 0;
    }
    set[1] = set[0];
    set[0] = key;
    cpu->counters.walks++;
    return m->walk_psec;
}

uint64_t model_access(Model *m, unsigned index, const ModelAccess *a, uint64_t now_psec)
{
    ModelCpu *cpu = &m->cpus[index];
    uint32_t entry = m->directory[a->line];
    bool had = cache_has(&cpu->cache, key_of(a->line, entry));
    bool owned = (entry & ((1U << VERSION_SHIFT) - 1)) == owned_by(index);
    uint64_t psec = walk(m, cpu, a), gone;

    if (!had)
        psec += fetch(m, index, a, &entry, now_psec + psec);
    if (a->store && !owned) {
        const ModelCpu *holder = had ? other_holder(m, index, a->line, entry) : NULL;

        if (holder)
            psec += charge_line(m, cpu, holder) * 1000;
        entry = ((entry >> VERSION_SHIFT) + 1) << VERSION_SHIFT | owned_by(index);
    }
    m->directory[a->line] = entry;
    gone = cache_put(&cpu->cache, key_of(a->line, entry));
    leave(m, cpu->llc, gone, now_psec);
    if (m->has_llc && (!had || a->store)) {
        gone = cache_put(&m->llcs[cpu->llc], key_of(a->line, entry));
        leave(m, cpu->llc, gone, now_psec);
    }
    cpu->counters.charged_psec += psec;
    return psec;
}
