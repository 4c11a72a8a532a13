/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kernel's NUMA scanning (P8, P9), and the pages that follow its hinting faults (P13). Restated from the
 * description of task_numa_work() and of "sched/numa: Complete scanning of partial and inactive VMAs" (f169c62ff7,
 * 2023).
 *
 * One running thread of a process scans at a time, 256 MB per turn. In the first two passes it marks every region,
 * later only those whose filter of threads that faulted there has its bit. The filter forgets after four to eight scan
 * delays. So a region is skipped if no thread that uses it happens to scan, and the longer that lasts, the less is
 * known of the region. With forced completion, one skipped region is marked at the end of each turn, and a pass ends
 * only when no region is left.
 *
 * Left out: in the kernel marked pages fault in the order of accesses; here they are spread evenly over a region. */

#include "sim/model/engine.h"

#define SCAN_PAGES      65536U /* 256 MB */
#define SCAN_DELAY_NSEC NSEC_PER_SEC
#define FORGET_DELAYS   4U

/* A thread's bit in a filter of 64; as in the kernel, two threads may share one. */
static uint64_t filter_bit(uint32_t thread)
{
    return 1ULL << ((thread * 0x9e3779b1U) >> 26);
}

typedef struct Scan {
    Engine *e;
    Family *family;
    uint64_t bit; /* bit of the scanning thread */
    uint64_t budget;
    bool skipped; /* a region was skipped that the scanning thread is not known to use */
} Scan;

static void forget(const Engine *e, const Family *family, Region *region)
{
    if (!region->known) {
        region->known = true;
        region->start_seq = family->seq;
        region->previous_seq = family->seq - 1;
        region->next_reset_nsec = e->now_nsec + FORGET_DELAYS * SCAN_DELAY_NSEC;
    }
    if (e->now_nsec >= region->next_reset_nsec) {
        region->next_reset_nsec = e->now_nsec + FORGET_DELAYS * SCAN_DELAY_NSEC;
        region->active[1] = region->active[0];
        region->active[0] = 0;
    }
}

static bool is_used(const Scan *scan, const Region *region)
{
    return scan->family->seq - region->start_seq < 2 ||
           ((region->active[0] | region->active[1]) & scan->bit) || region->offset > 0;
}

/* Marks as much of a region as the budget allows. */
static void mark(const Scan *scan, uint64_t *budget, Region *region)
{
    uint64_t n = MIN(region->n_pages - region->offset, *budget);

    region->n_marked = MIN(region->n_marked + n, region->n_pages);
    region->offset += n;
    *budget -= n;
    scan->e->tallies[scan->family->workload].count[SIM_METRIC_SCANS]++;
    if (region->offset < region->n_pages)
        return;
    region->offset = 0;
    region->previous_seq = scan->family->seq;
    scan->family->n_completed++;
}

static void mark_all(Scan *scan)
{
    for (uint32_t i = 0;; i++) {
        int32_t index = memory_region_at(scan->e, scan->family, i);
        Region *region;

        if (index < 0)
            return;
        region = &scan->e->regions[index];
        if (!region->touched)
            continue;
        forget(scan->e, scan->family, region);
        if (region->previous_seq == scan->family->seq)
            continue;
        if (!is_used(scan, region)) {
            scan->skipped = true;
            scan->e->tallies[scan->family->workload].count[SIM_METRIC_SKIPS]++;
            continue;
        }
        if (scan->budget == 0)
            return;
        mark(scan, &scan->budget, region);
    }
}

/* Marks one region that was skipped. */
static void force_one(Scan *scan)
{
    for (uint32_t i = 0;; i++) {
        int32_t index = memory_region_at(scan->e, scan->family, i);
        Region *region;
        uint64_t all = UINT64_MAX;

        if (index < 0)
            return;
        region = &scan->e->regions[index];
        if (!region->touched || region->previous_seq == scan->family->seq)
            continue;
        mark(scan, &all, region);
        return;
    }
}

static void end_pass(Engine *e, Family *family)
{
    Tally *tally = &e->tallies[family->workload];
    uint32_t n = 0;
    int32_t index;

    for (uint32_t i = 0; (index = memory_region_at(e, family, i)) >= 0; i++)
        n += e->regions[index].touched;
    tally->n_passes++;
    tally->coverage_sum += n > 0 ? (uint64_t)family->n_completed * 1000 / n : 0;
    family->n_completed = 0;
    family->seq++;
}

/* Returns a random running thread of the process; ENGINE_NONE: none runs. Brings the accounts of all running
 * threads up to date, so that faults on memory marked before have been counted. */
static int32_t choose_scanner(Engine *e, const Family *family)
{
    int32_t scanner = ENGINE_NONE;
    uint32_t n = 0;

    for (uint32_t i = family->first; i < family->first + family->n_forked; i++) {
        if (e->threads[i].state != THREAD_STATE_RUNNING)
            continue;
        cpu_account(e, (uint32_t)e->threads[i].cpu);
        cpu_touch(e, (uint32_t)e->threads[i].cpu);
        if (random_below(&e->random_scan, ++n) == 0)
            scanner = (int32_t)i;
    }
    return scanner;
}

void scan_event(Engine *e, uint32_t index)
{
    Family *family = &e->families[index];
    Scan scan = {.e = e, .family = family, .budget = SCAN_PAGES};
    int32_t scanner = choose_scanner(e, family);

    if (family->n_alive == 0)
        return;
    if (scanner >= 0) {
        prefer_scanned(e, family);
        scan.bit = filter_bit((uint32_t)scanner);
        mark_all(&scan);
        if (scan.budget > 0) {
            if (scan.skipped && e->kernel->force_complete)
                force_one(&scan);
            else
                end_pass(e, family);
        }
    }
    heap_set(&e->heap, e->item_scan + index, e->now_nsec + prefer_period_nsec(e, family, scanner));
}

/*
 * Faults
 */

static void take_pages(Engine *e, Thread *thread, uint32_t *pages, uint32_t from, uint32_t to, uint64_t n)
{
    pages[from] -= (uint32_t)n;
    pages[to] += (uint32_t)n;
    thread->debt_nsec += n * e->constants->page_move_nsec;
    e->tallies[thread->workload].count[SIM_METRIC_PAGES_MOVED] += (int64_t)n;
}

void scan_accessed(Engine *e, Thread *thread, int32_t index, uint32_t node, uint64_t n_accesses)
{
    Region *region = &e->regions[index];
    uint32_t *pages = memory_pages(e, index);
    uint64_t marked = region->n_marked, n, here, rest = 0;
    bool twice, moves;

    if (marked == 0)
        return;
    n = n_accesses >= region->n_pages ? marked
                                      : (n_accesses * marked + region->n_pages - 1) / region->n_pages;
    n = MIN(n, marked);
    if (n == 0)
        return;
    region->n_marked -= n;
    region->active[0] |= filter_bit(engine_index(e, thread));
    thread->debt_nsec += n * e->constants->hint_fault_nsec;
    e->tallies[thread->workload].count[SIM_METRIC_HINT_FAULTS] += (int64_t)n;

    /* Shared memory moves only to a node that faulted twice in a row. */
    twice = !region->shared || region->last_node == (int32_t)node;
    region->last_node = (int32_t)node;
    moves = twice && e->topology->nodes[node].memory_bytes > 0;
    here = pages[node];
    for (uint32_t i = 0; i < e->n_nodes; i++)
        rest += pages[i];
    /* Exactly `n` pages, in proportion to where they were before any moved. */
    for (uint32_t i = 0; i < e->n_nodes; i++) {
        uint64_t some = i == node ? here : pages[i], part = rest > 0 ? MIN(n * some / rest, some) : 0;

        rest -= some;
        n -= part;
        if (part == 0)
            continue;
        prefer_faulted(e, thread, region->shared, i, moves ? node : i, part);
        if (moves && i != node)
            take_pages(e, thread, pages, i, node, part);
    }
}
