/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the daemon's scan of memory would do with evidence W, for processes whose policy says Evidence=write:
 * plan/scan/scan.h chooses ranges, which are protected; whoever writes there next faults, and is a sample; at the next
 * window the samples are judged by plan/memory/blocks.h, and what is to move is moved. The plan_ parts are those of the
 * daemon, unchanged.
 *
 * All memory is in huge pages, so a block has one sample per round, of memory that several threads share from one
 * drawn among those that run. Only ranges of the scan are protected, while clear_refs(5) protects everything at
 * once. Which block is where is kept here: a region of the model knows sums only. */

#include "sim/agent/agent.h"

#include "plan/group.h"
#include "plan/scan/converge.h"

#include <string.h>

#define BLOCK_PAGES  512U
#define BLOCK_BYTES  TOUCHES_BLOCK_BYTES
#define PAGE_BYTES   4096U
#define REGION_SHIFT 40U /* starts of regions lie so far apart */

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
 * What is known of a process
 */

void agent_scan_done(AgentScan *scan)
{
    if (!scan)
        return;
    regions_done(&scan->regions);
    scan_window_done(&scan->window);
    touches_done(&scan->touches);
    blocks_done(&scan->blocks);
    free(scan->first_block);
    free(scan->nodes);
    free(scan->marked);
    free(scan);
}

/* The block that a range or a sample begins in. */
static uint64_t block_at(const AgentScan *scan, uint64_t address)
{
    return scan->first_block[region_of(address)] +
           (address & ((UINT64_C(1) << REGION_SHIFT) - 1)) / BLOCK_BYTES;
}

/* Blocks of a region that was touched: those of the first node come first. */
static void place_blocks(const Engine *e, AgentScan *scan, uint32_t k, int32_t region)
{
    const uint32_t *pages = memory_pages(e, region);
    uint64_t n = n_blocks_of(e, region), before = 0;
    uint32_t node = 0;

    for (uint64_t i = 0; i < n; i++) {
        while (node + 1 < e->n_nodes && i * BLOCK_PAGES >= before + pages[node])
            before += pages[node++];
        scan->nodes[scan->first_block[k] + i] = (NodeIx){(int32_t)node};
    }
}

/* Regions appear when they are touched for the first time. */
static int find_regions(const Engine *e, AgentScan *scan, const Family *family)
{
    MemoryRegions now = {0};
    int32_t index;
    int r = 0;

    for (uint32_t k = 0; r == 0 && (index = memory_region_at(e, family, k)) >= 0; k++) {
        const MemoryRegion region = {
            .start = region_address(k),
            .end = region_address(k) + e->regions[index].n_pages * PAGE_BYTES,
            .kind = REGION_KIND_ANON,
            .readable = true,
            .writable = true,
            .resident_bytes = REGION_RESIDENT_UNKNOWN,
        };

        if (!e->regions[index].touched)
            continue;
        if (!regions_find(&scan->regions, region.start) || family->phase != scan->phase)
            place_blocks(e, scan, k, index);
        r = regions_add(&now, &region);
    }
    scan->phase = family->phase;
    regions_inherit(&now, &scan->regions);
    regions_done(&scan->regions);
    scan->regions = now;
    return r;
}

static int scan_new(const Engine *e, const Family *family, AgentScan **ret)
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
    for (uint32_t k = 0; scan->first_block && k < n; k++) {
        scan->first_block[k] = n_blocks;
        n_blocks += n_blocks_of(e, memory_region_at(e, family, k));
    }
    scan->nodes = calloc(n_blocks + 1, sizeof(*scan->nodes));
    scan->marked = calloc(n_blocks + 1, sizeof(*scan->marked));
    if (!scan->first_block || !scan->nodes || !scan->marked || blocks_init(&scan->blocks, e->n_nodes) < 0) {
        agent_scan_done(scan);
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

/* Who is the first to come by: one of the running threads of the process; for what is its own, the thread itself. */
static Thread *first_user(Engine *e, const Family *family, Thread *thread, bool shared)
{
    uint32_t n = 1;

    for (uint32_t i = family->first; shared && i < family->first + family->n_forked; i++)
        if (&e->threads[i] != thread && e->threads[i].state == THREAD_STATE_RUNNING &&
            random_below(&e->random_scan, ++n) == 0)
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
    scan_note_access(&scan->regions, address, touch.tid);
    thread->debt_nsec += e->constants->hint_fault_nsec;
    e->tallies[thread->workload].count[SIM_METRIC_HINT_FAULTS]++;
}

void agent_accessed(Engine *e, Thread *thread, int32_t region, uint64_t n_accesses)
{
    const Family *family = &e->families[thread->process];
    AgentScan *scan = e->agent->families[thread->process].scan;
    uint32_t k, n, at;
    uint64_t left;

    if (!scan || scan->n_marked == 0 || n_accesses == 0)
        return;
    k = region == family->shared ? 0 : (uint32_t)(region - family->private_first) + (family->shared >= 0);
    n = n_blocks_of(e, region);
    /* Accesses go round the region in the course of time; so few come to few blocks. */
    at = (uint32_t)(e->now_nsec / NSEC_PER_USEC % n);
    left = MIN(MAX(n_accesses / BLOCK_PAGES, 1U), (uint64_t)n);
    for (; left > 0; left--, at = (at + 1) % n) {
        bool *marked = &scan->marked[scan->first_block[k] + at];

        if (!*marked)
            continue;
        *marked = false;
        scan->n_marked--;
        take_sample(e, scan, first_user(e, family, thread, region == family->shared),
                    region_address(k) + (uint64_t)at * BLOCK_BYTES);
    }
}

/*
 * Windows
 */

static void mark(AgentScan *scan, const ScanRange *range)
{
    uint64_t first = block_at(scan, range->start), last = block_at(scan, range->end - 1);

    for (uint64_t i = first; i <= last; i++) {
        scan->n_marked += !scan->marked[i];
        scan->marked[i] = true;
    }
}

/* Whoever used the block last waits for it. */
static void move_block(Engine *e, AgentScan *scan, const Family *family, uint64_t address, NodeIx to)
{
    uint32_t k = region_of(address);
    int32_t index = memory_region_at(e, family, k);
    uint32_t *pages = memory_pages(e, index);
    NodeIx *node = &scan->nodes[block_at(scan, address)];
    uint64_t before = (address - region_address(k)) / PAGE_BYTES;
    uint32_t n = (uint32_t)MIN(MIN(e->regions[index].n_pages - before, (uint64_t)BLOCK_PAGES),
                               (uint64_t)pages[node->i]);

    pages[node->i] -= n;
    pages[to.i] += n;
    *node = to;
    e->tallies[family->workload].count[SIM_METRIC_PAGES_MOVED] += n;
    for (size_t i = 0; i < scan->touches.n_samples; i++) {
        const Touch *touch = &scan->touches.samples[i];

        if (touch->address != address)
            continue;
        e->threads[family->first + (uint32_t)(touch->tid - agent_tid(e, family->first))].debt_nsec +=
            n * e->constants->page_move_nsec;
        return;
    }
}

static int judge(Engine *e, AgentScan *scan, const Family *family, const Policy *policy)
{
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    const BlocksRules rules = {.two_stage = policy->two_stage, .to_nodes = nodes};
    int r = nodes ? touches_gather(&scan->touches) : -ENOMEM;

    for (uint32_t i = 0; nodes && i < e->n_nodes; i++)
        if (e->topology->nodes[i].memory_bytes > 0)
            hwloc_bitmap_set(nodes, i);
    for (size_t i = 0; i < scan->touches.n_blocks; i++)
        scan->touches.blocks[i].node = scan->nodes[block_at(scan, scan->touches.blocks[i].address)];
    if (r == 0)
        r = blocks_judge(&scan->blocks, &scan->touches, &scan->regions, &rules);
    for (size_t i = 0; r == 0 && i < scan->blocks.n_moves; i++) {
        const BlocksRange *move = &scan->blocks.moves[i];

        for (uint64_t address = move->start; address < move->end; address += BLOCK_BYTES)
            move_block(e, scan, family, address, move->to);
    }
    hwloc_bitmap_free(nodes);
    return r;
}

static void count_window(Engine *e, const AgentScan *scan, const Family *family)
{
    Tally *tally = &e->tallies[family->workload];

    tally->count[SIM_METRIC_SCANS] += (int64_t)scan->window.n_ranges;
    tally->count[SIM_METRIC_SKIPS] += scan->window.n[SCAN_REASON_PID_INACTIVE];
    if (!scan->window.ended)
        return;
    tally->n_passes++;
    tally->coverage_sum += scan_coverage_permille(&scan->scan);
}

/* Brings the accounts of its threads up to date, so that what was protected before has faulted; how fast they are is
 * found anew when memory has moved. */
static void catch_up(Engine *e, const Family *family)
{
    for (uint32_t i = family->first; i < family->first + family->n_forked; i++) {
        if (e->threads[i].state != THREAD_STATE_RUNNING)
            continue;
        cpu_account(e, (uint32_t)e->threads[i].cpu);
        cpu_touch(e, (uint32_t)e->threads[i].cpu);
    }
}

/* A window is a round here, though it shows a part of the memory only. */
static int set_pace(const Agent *agent, AgentScan *scan, const Family *family, const Policy *policy,
                    pid_t pid, bool counted)
{
    const ScanPeriodLimits limits = {policy->scan_min_usec, policy->scan_max_usec, policy->scan_size_bytes};
    const Process *process = world_process(agent->world, pid);
    ScanPaceRound round = {
        .range = scan_period_range(&limits, family->rss_pages * PAGE_BYTES, NULL),
        .strength = converge_use(agent->world, process, &scan->touches),
    };
    int r = counted ? scan_pace_read(&scan->touches, &round) : 0;

    if (process->group.i >= 0)
        scan_pace_moved(&scan->pace, &round.range,
                        scan_pace_moved_usec(&agent->world->groups[process->group.i]));
    round.learning |= scan->blocks.n_moves > 0;
    if (r == 0)
        scan_pace_round(&scan->pace, &round);
    return r;
}

static int look(Engine *e, const Agent *agent, AgentScan *scan, const Family *family, const Policy *policy,
                pid_t pid)
{
    uint64_t now_usec = agent->world->now_usec;
    ScanRules rules = {.window_bytes = policy->scan_size_bytes, .force_complete = policy->force_complete};
    NodeIx node;
    bool counted;
    int r;

    catch_up(e, family);
    r = judge(e, scan, family, policy);
    if (r < 0)
        return r;
    counted = touches_fold(&scan->touches);
    if ((counted && touches_tell(&scan->touches, agent->world, now_usec) < 0) ||
        set_pace(agent, scan, family, policy, pid, counted) < 0)
        return -ENOMEM;
    if (policy->scan_feedback)
        rules.window_bytes = converge_window_bytes(
            policy->scan_size_bytes, MIN(converge_touches(&scan->touches, &node),
                                         converge_apart(agent->world, world_process(agent->world, pid))));
    r = scan_step(&scan->scan, &scan->regions, &rules, now_usec, &scan->window);
    if (r < 0)
        return r;
    for (size_t i = 0; i < scan->window.n_ranges; i++)
        mark(scan, &scan->window.ranges[i]);
    count_window(e, scan, family);
    e->tallies[family->workload].count[SIM_METRIC_SCAN_WINDOW] = (int64_t)(rules.window_bytes >> 20);
    scan->looked_usec = now_usec;
    return 0;
}

/* The policy under which a process is looked at by its faults, or NULL. The kernel's own scan would see its moves as
 * its own. */
static const Policy *policy_of(const Engine *e, const Agent *agent, pid_t pid)
{
    const Process *process = world_process(agent->world, pid);
    const Policy *policy = process && !process->gone
                               ? group_policy(agent->world, e->variant->policies, process->workload)
                               : NULL;

    return policy && policy->follow && policy->evidence == POLICY_EVIDENCE_WRITE && !e->kernel->numa_balancing
               ? policy
               : NULL;
}

int agent_scan(Engine *e, Agent *agent)
{
    uint64_t now = agent->world->now_usec;

    for (uint32_t i = 0; i < e->n_families; i++) {
        const Family *family = &e->families[i];
        AgentFamily *seen = &agent->families[i];
        const Policy *policy = policy_of(e, agent, agent_pid(e, i));
        int r = 0;

        if (!policy || family->n_alive == 0)
            continue;
        world_process(agent->world, agent_pid(e, i))->use_awaited = true;
        if (!seen->scan)
            r = scan_new(e, family, &seen->scan);
        if (r < 0)
            return r;
        if (now < seen->scan->looked_usec + scan_pace_usec(&seen->scan->pace))
            continue;
        r = find_regions(e, seen->scan, family);
        if (r == 0)
            r = find_threads(e, seen->scan, family, agent_pid(e, i));
        if (r == 0 && seen->scan->regions.n > 0)
            r = look(e, agent, seen->scan, family, policy, agent_pid(e, i));
        if (r < 0)
            return r;
    }
    return 0;
}
