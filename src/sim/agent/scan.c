/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Samples of write evidence (Evidence=write). All memory is protected. The first thread to touch a block
 * faults, and is a sample of the round.
 *
 * All memory is in huge pages, so a block has one sample per round. If several threads share the memory, the
 * sample is of a random one of those that run. The nodes of blocks are kept here, because a region of the
 * model has only sums. */

#include "sim/agent/agent.h"

#define BLOCK_PAGES  512U
#define BLOCK_BYTES  TOUCHES_BLOCK_BYTES
#define REGION_SHIFT 40U /* distance between starts of regions */

static uint64_t region_address(uint32_t k)
{
    return (uint64_t)(k + 1) << REGION_SHIFT;
}

static uint32_t region_of(uint64_t address)
{
    return (uint32_t)(address >> REGION_SHIFT) - 1;
}

static uint32_t n_blocks_of(const Engine *e, int32_t region)
{
    return (uint32_t)((e->regions[region].n_pages + BLOCK_PAGES - 1) / BLOCK_PAGES);
}

/*
 * What is known about a process
 */

AgentScan *agent_scan_free(AgentScan *scan)
{
    if (!scan)
        return NULL;
    memory_watch_done(&scan->watch);
    regions_done(&scan->regions);
    touches_done(&scan->touches);
    free(scan->first_block);
    free(scan->at_page);
    free(scan->nodes);
    free(scan->whole);
    free(scan->marked);
    free(scan);
    return NULL;
}

/* The block in which a range or a sample begins. */
static uint64_t block_at(const AgentScan *scan, uint64_t address)
{
    return scan->first_block[region_of(address)] +
           (address & ((UINT64_C(1) << REGION_SHIFT) - 1)) / BLOCK_BYTES;
}

/* The node of block `i` if blocks lie in the order of nodes, `pages[k]` pages on node k. */
static uint32_t node_in_order(const uint32_t *pages, uint32_t n_nodes, uint64_t i)
{
    uint64_t before = 0;
    uint32_t node = 0;

    while (node + 1 < n_nodes && i * BLOCK_PAGES >= before + pages[node])
        before += pages[node++];
    return node;
}

/* The node of block `i` if the nodes with pages take turns. */
static uint32_t node_in_turns(const uint32_t *pages, uint32_t n_nodes, uint64_t i)
{
    uint32_t n = 0, node = 0;

    for (uint32_t k = 0; k < n_nodes; k++)
        n += pages[k] > 0;
    i %= MAX(n, 1U);
    while (node + 1 < n_nodes && (pages[node] == 0 || i-- > 0))
        node++;
    return node;
}

static void place_blocks(const Engine *e, AgentScan *scan, const Family *family, uint32_t k, int32_t region)
{
    bool in_turns = e->spec->workloads[family->workload].touch == SIM_TOUCH_INTERLEAVE;
    const uint32_t *pages = memory_pages(e, region);
    uint64_t n = n_blocks_of(e, region);

    for (uint64_t i = 0; i < n; i++) {
        scan->nodes[scan->first_block[k] + i].i =
            (int32_t)(in_turns ? node_in_turns : node_in_order)(pages, e->n_nodes, i);
        scan->whole[scan->first_block[k] + i] = false;
    }
}

void agent_scan_place(const Engine *e, AgentScan *scan, const Family *family)
{
    int32_t index;

    for (uint32_t k = 0; (index = memory_region_at(e, family, k)) >= 0; k++)
        if (e->regions[index].touched)
            place_blocks(e, scan, family, k, index);
}

/* Finds regions, which appear at first touch. */
static int find_regions(const Engine *e, AgentScan *scan, const Family *family)
{
    MemoryRegions now = {0};
    int32_t index;
    int r = 0;

    for (uint32_t k = 0; r == 0 && (index = memory_region_at(e, family, k)) >= 0; k++) {
        const MemoryRegion region = {
            .start = region_address(k),
            .end = region_address(k) + e->regions[index].n_pages * ENGINE_PAGE_BYTES,
            .kind = REGION_KIND_ANON,
            .readable = true,
            .writable = true,
            .resident_bytes = REGION_RESIDENT_UNKNOWN,
        };

        if (!e->regions[index].touched)
            continue;
        if (!regions_find(&scan->regions, region.start) || family->phase != scan->phase)
            place_blocks(e, scan, family, k, index);
        r = regions_add(&now, &region);
    }
    scan->phase = family->phase;
    regions_inherit(&now, &scan->regions);
    regions_done(&scan->regions);
    scan->regions = now;
    return r;
}

int agent_scan_new(Engine *e, const Family *family, AgentScan **ret)
{
    AgentScan *scan = calloc(1, sizeof(*scan));
    uint64_t n_blocks = 0;
    uint32_t n = 0;

    if (!scan)
        return -ENOMEM;
    touches_init(&scan->touches, e->n_nodes);
    while (memory_region_at(e, family, n) >= 0)
        n++;
    scan->first_block = calloc((size_t)n + 1, sizeof(*scan->first_block));
    scan->at_page = calloc((size_t)n + 1, sizeof(*scan->at_page));
    for (uint32_t k = 0; scan->first_block && scan->at_page && k < n; k++) {
        scan->first_block[k] = n_blocks;
        scan->at_page[k] =
            random_below(&e->random_scan, n_blocks_of(e, memory_region_at(e, family, k))) * BLOCK_PAGES;
        n_blocks += n_blocks_of(e, memory_region_at(e, family, k));
    }
    scan->nodes = calloc(n_blocks + 1, sizeof(*scan->nodes));
    scan->whole = calloc(n_blocks + 1, sizeof(*scan->whole));
    scan->marked = calloc(n_blocks + 1, sizeof(*scan->marked));
    if (!scan->first_block || !scan->at_page || !scan->nodes || !scan->whole || !scan->marked ||
        memory_watch_init(&scan->watch, e->n_nodes, e->agent->world->now_usec) < 0) {
        (void)agent_scan_free(scan);
        return -ENOMEM;
    }
    *ret = scan;
    return 0;
}

static int find_threads(const Engine *e, AgentScan *scan, const Family *family, pid_t pid)
{
    for (; scan->n_threads < family->n_forked; scan->n_threads++) {
        const TaskKey key = {pid, agent_tid(e, family->first + scan->n_threads), agent_start_ticks(family)};
        int r = touches_add_thread(&scan->touches, key);

        if (r < 0 && r != -E2BIG)
            return r;
    }
    return 0;
}

/*
 * Samples
 */

/* The thread that touches a block first: a random running thread that shares the memory; of private memory,
 * its own thread. */
static Thread *first_user(Engine *e, const Family *family, Thread *thread, int32_t region)
{
    bool shared = e->regions[region].shared;
    uint32_t n = 1;

    for (uint32_t i = family->first; shared && i < family->first + family->n_forked; i++)
        if (&e->threads[i] != thread && e->threads[i].state == THREAD_STATE_RUNNING &&
            memory_shared_region(e, &e->threads[i]) == region && random_below(&e->random_scan, ++n) == 0)
            thread = &e->threads[i];
    return thread;
}

static void take_sample(Engine *e, AgentScan *scan, Thread *thread, uint64_t address)
{
    const Touch touch = {
        .address = address,
        .tid = agent_tid(e, engine_index(e, thread)),
        .cpu_node = {e->cpus[thread->cpu].node},
    };

    if (touches_add(&scan->touches, &touch) < 0)
        e->error = -ENOMEM;
    thread->debt_nsec += e->constants->hint_fault_nsec;
    e->tallies[thread->workload].count[SIM_METRIC_HINT_FAULTS]++;
}

void agent_accessed(Engine *e, Thread *thread, int32_t region, uint64_t n_accesses)
{
    const Family *family = &e->families[thread->process];
    AgentScan *scan = e->agent->families[thread->process].scan;
    uint64_t n, at, left;
    uint32_t k;

    if (!scan || scan->n_marked == 0 || n_accesses == 0)
        return;
    k = (uint32_t)(region - memory_region_at(e, family, 0));
    n = n_blocks_of(e, region);
    /* Accesses go round the region page by page, so a few of them reach few blocks. */
    at = scan->at_page[k] / BLOCK_PAGES;
    left = MIN((scan->at_page[k] % BLOCK_PAGES + n_accesses - 1) / BLOCK_PAGES + 1, n);
    scan->at_page[k] = (scan->at_page[k] + n_accesses) % (n * BLOCK_PAGES);
    for (; left > 0; left--, at = (at + 1) % n) {
        bool *marked = &scan->marked[scan->first_block[k] + at];

        if (!*marked)
            continue;
        *marked = false;
        scan->n_marked--;
        take_sample(e, scan, first_user(e, family, thread, region), region_address(k) + at * BLOCK_BYTES);
    }
}

/*
 * Rounds
 */

/* Brings the accounts of the family's threads up to date, so that memory protected before has faulted. */
static void catch_up(Engine *e, const Family *family)
{
    for (uint32_t i = family->first; i < family->first + family->n_forked; i++)
        if (e->threads[i].state == THREAD_STATE_RUNNING)
            cpu_account(e, (uint32_t)e->threads[i].cpu);
}

int agent_scan_round(Engine *e, AgentScan *scan, const Family *family, pid_t pid)
{
    int r = find_regions(e, scan, family);

    if (r == 0)
        r = find_threads(e, scan, family, pid);
    if (r < 0)
        return r;
    catch_up(e, family);
    r = touches_gather(&scan->touches);
    for (size_t i = 0; i < scan->touches.n_blocks; i++)
        scan->touches.blocks[i].node = agent_scan_node(scan, scan->touches.blocks[i].address);
    if (r == 0)
        (void)touches_fold(&scan->touches);
    return r;
}

static void protect(const Engine *e, AgentScan *scan, const Family *family)
{
    int32_t index;

    for (uint32_t k = 0; (index = memory_region_at(e, family, k)) >= 0; k++)
        for (uint32_t i = 0; e->regions[index].touched && i < n_blocks_of(e, index); i++) {
            bool *marked = &scan->marked[scan->first_block[k] + i];

            scan->n_marked += !*marked;
            *marked = true;
        }
}

void agent_scan_mark(Engine *e, AgentScan *scan, Family *family)
{
    const ScanWindow *window = &scan->watch.window;
    Tally *tally = &e->tallies[family->workload];

    protect(e, scan, family);
    tally->count[SIM_METRIC_SCANS] += (int64_t)window->n_ranges;
    tally->count[SIM_METRIC_SKIPS] += window->n[SCAN_REASON_PID_INACTIVE];
    family->window_bytes = scan->watch.window_bytes;
    if (!window->ended)
        return;
    tally->n_passes++;
    tally->coverage_sum += scan_coverage_permille(&scan->watch.scan);
}

/*
 * Blocks that move
 */

NodeIx agent_scan_node(const AgentScan *scan, uint64_t address)
{
    return regions_find(&scan->regions, address) ? scan->nodes[block_at(scan, address)] : NODE_NONE;
}

static uint32_t block_pages(const Engine *e, int32_t region, uint64_t block)
{
    return (uint32_t)MIN(e->regions[region].n_pages - block * BLOCK_PAGES, (uint64_t)BLOCK_PAGES);
}

/* Pages of the region on a node that do not belong to whole blocks. */
static uint32_t loose_pages(const Engine *e, const AgentScan *scan, uint32_t k, int32_t region, uint32_t node)
{
    uint32_t n = memory_pages(e, region)[node];

    for (uint64_t i = 0; i < n_blocks_of(e, region); i++) {
        uint64_t at = scan->first_block[k] + i;

        if (scan->whole[at] && scan->nodes[at].i == (int32_t)node)
            n -= MIN(n, block_pages(e, region, i));
    }
    return n;
}

static uint32_t take_pages(const Engine *e, int32_t region, uint32_t node, NodeIx to, uint32_t n)
{
    memory_pages(e, region)[node] -= n;
    memory_pages(e, region)[to.i] += n;
    return (int32_t)node == to.i ? 0 : n;
}

/* If the pages of a block are interleaved, most are not on the node where the block was seen; they move too. */
uint32_t agent_scan_move(Engine *e, AgentScan *scan, const Family *family, uint64_t address, NodeIx to)
{
    uint32_t k = region_of(address);
    int32_t index = memory_region_at(e, family, k);
    uint64_t at = block_at(scan, address);
    uint32_t n = block_pages(e, index, at - scan->first_block[k]), first = (uint32_t)scan->nodes[at].i,
             moved = 0;
    uint32_t left = n;

    if (scan->whole[at]) {
        uint32_t there = MIN(n, memory_pages(e, index)[first]);

        moved = take_pages(e, index, first, to, there);
        left = 0;
    }
    for (uint32_t i = 0; i < e->n_nodes && left > 0; i++) {
        uint32_t node = (first + i) % e->n_nodes, loose = MIN(loose_pages(e, scan, k, index, node), left);

        moved += take_pages(e, index, node, to, loose);
        left -= loose;
    }
    scan->nodes[at] = to;
    scan->whole[at] = true;
    return moved;
}
