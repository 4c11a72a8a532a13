/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory, as far as it slows threads down. A thread waits for memory for a share m of its time at full speed.
 * That share is stretched by the location of the pages:
 *
 *     time per work = (1 - m) + m * sum over nodes of  share of accesses * latency / local latency * contention
 *
 * Contention follows the load of the controllers: every millisecond a node's contention is multiplied by
 * traffic / bandwidth, and is never below 1. Example: ten threads of 13 GB/s that only wait for one node of
 * 104 GB/s get 1.25, and the node delivers 104 GB/s. A controller's bandwidth counts only for the time that
 * its users ran, which is the sum of their run times, at most the whole millisecond. If none ran, the
 * contention stays. Otherwise a thread that shares its CPU with one that uses no bandwidth would begin each
 * slice with more bandwidth than the controller has.
 *
 * Accesses are spread evenly over a region's pages. First touch costs nothing. */

#include "sim/model/engine.h"

#include <string.h>

#define EPOCH_NSEC     1000000ULL
#define CONTENTION_MAX (1024U << ENGINE_PACE_BITS) /* no more threads than that run on one node */

uint32_t *memory_pages(const Engine *e, int32_t region)
{
    return e->pages + (size_t)region * e->n_nodes;
}

int32_t memory_region_at(const Engine *e, const Family *family, uint32_t i)
{
    if (i < family->n_shared)
        return family->shared_first + (int32_t)i;
    i -= family->n_shared;
    return family->private_first >= 0 && i < e->spec->workloads[family->workload].n_threads
               ? family->private_first + (int32_t)i
               : ENGINE_NONE;
}

/* The thread's own region, or ENGINE_NONE. */
static int32_t own_region(const Engine *e, const Thread *thread)
{
    const Family *family = &e->families[thread->process];

    return family->private_first < 0
               ? ENGINE_NONE
               : family->private_first + (int32_t)(engine_index(e, thread) - family->first);
}

int32_t memory_shared_region(const Engine *e, const Thread *thread)
{
    const Family *family = &e->families[thread->process];
    uint32_t by = engine_workload(e, thread)->shared_by;

    if (family->n_shared == 0)
        return ENGINE_NONE;
    return family->shared_first + (by > 0 ? (int32_t)((engine_index(e, thread) - family->first) / by) : 0);
}

/* Spreads all pages of a region evenly over the nodes with memory. False: no node is known to have any. */
static bool interleave_pages(Engine *e, int32_t index)
{
    uint64_t n_pages = e->regions[index].n_pages;
    uint32_t *pages = memory_pages(e, index), n = 0, k = 0;

    for (uint32_t i = 0; i < e->n_nodes; i++)
        n += e->topology->nodes[i].memory_bytes > 0;
    for (uint32_t i = 0; i < e->n_nodes && n > 0; i++) {
        bool has = e->topology->nodes[i].memory_bytes > 0;

        pages[i] = has ? (uint32_t)(n_pages / n + (k < n_pages % n)) : 0;
        k += has;
    }
    return n > 0;
}

static void touch(Engine *e, int32_t index, uint32_t node, bool interleave)
{
    if (index < 0 || e->regions[index].touched)
        return;
    e->regions[index].touched = true;
    if (!interleave || !interleave_pages(e, index))
        memory_pages(e, index)[node] = (uint32_t)e->regions[index].n_pages;
}

void memory_scatter(Engine *e, const Family *family)
{
    int32_t index;

    for (uint32_t i = 0; (index = memory_region_at(e, family, i)) >= 0; i++) {
        e->regions[index].n_marked = 0;
        if (e->regions[index].touched)
            (void)interleave_pages(e, index);
    }
}

void memory_touch(Engine *e, uint32_t index, uint32_t node)
{
    const Thread *thread = &e->threads[index];
    const SimWorkload *w = engine_workload(e, thread);
    const Family *family = &e->families[thread->process];
    bool interleave = w->touch == SIM_TOUCH_INTERLEAVE;

    if (w->touch != SIM_TOUCH_PROCESS) {
        if (index == family->first || (w->shared_by > 0 && (index - family->first) % w->shared_by == 0))
            touch(e, memory_shared_region(e, thread), node, interleave);
        touch(e, own_region(e, thread), node, interleave);
    } else if (index == family->first) {
        for (uint32_t i = 0; memory_region_at(e, family, i) >= 0; i++)
            touch(e, memory_region_at(e, family, i), node, false);
    }
}

/* Returns the mean pace of an access to a region, weighted by `permille` of the accesses. */
static uint64_t region_pace(const Engine *e, int32_t region, uint32_t node, uint64_t permille, bool contended)
{
    const uint32_t *pages = memory_pages(e, region), *latency = e->latency + (size_t)node * e->n_nodes;
    uint64_t n = e->regions[region].n_pages, sum = 0;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        uint64_t pace = latency[i];

        if (pages[i] == 0)
            continue;
        if (contended)
            pace = pace * e->contention[i] >> ENGINE_PACE_BITS;
        sum += pages[i] * pace / n;
    }
    return sum * permille / 1000;
}

/* Permille of the thread's accesses that go to shared memory; the rest go to its own. */
static uint32_t shared_share(const Engine *e, const Thread *thread)
{
    const Family *family = &e->families[thread->process];

    if (family->n_shared == 0)
        return 0;
    return family->private_first < 0 ? 1000 : engine_workload(e, thread)->shared_permille;
}

uint32_t memory_pace(const Engine *e, const Thread *thread, uint32_t node)
{
    const SimWorkload *w = engine_workload(e, thread);
    const Family *family = &e->families[thread->process];
    uint32_t shared = shared_share(e, thread);
    int32_t own = own_region(e, thread);
    uint64_t access = 0;

    if (w->memory_permille == 0 || (own < 0 && family->n_shared == 0))
        return ENGINE_PACE;
    if (shared > 0)
        access += region_pace(e, memory_shared_region(e, thread), node, shared, w->bandwidth > 0);
    if (shared < 1000 && own >= 0)
        access += region_pace(e, own, node, 1000 - shared, w->bandwidth > 0);
    return (uint32_t)(((uint64_t)ENGINE_PACE * (1000 - w->memory_permille) + access * w->memory_permille) /
                      1000);
}

static uint64_t local_permille(const Engine *e, int32_t region, uint32_t node)
{
    return memory_pages(e, region)[node] * 1000ULL / e->regions[region].n_pages;
}

static void used_region(Engine *e, Thread *thread, int32_t region, uint32_t node, uint64_t work,
                        uint64_t bytes)
{
    Tally *tally = &e->tallies[thread->workload];
    uint64_t local = work * local_permille(e, region, node) / 1000, n = e->regions[region].n_pages;
    const uint32_t *pages = memory_pages(e, region);

    tally->access_work += work;
    tally->access_local += local;
    for (uint32_t i = 0; bytes > 0 && i < e->n_nodes; i++)
        e->traffic[i] += bytes / n * pages[i] + bytes % n * pages[i] / n;
    work /= MAX(e->constants->local_latency_nsec, 1U);
    e->watch(e, thread, region, node, work);
}

/* Adds run time to the nodes whose memory the thread uses; `shared` permille of its accesses go to shared memory. */
static void note_presence(Engine *e, const Thread *thread, uint64_t shared, uint64_t nsec)
{
    int32_t own = shared < 1000 ? own_region(e, thread) : ENGINE_NONE;
    int32_t common = shared > 0 ? memory_shared_region(e, thread) : ENGINE_NONE;

    for (uint32_t i = 0; i < e->n_nodes; i++)
        if ((own >= 0 && memory_pages(e, own)[i] > 0) || (common >= 0 && memory_pages(e, common)[i] > 0))
            e->traffic_nsec[i] += nsec;
}

void memory_used(Engine *e, Thread *thread, uint32_t node, uint64_t work, uint64_t nsec)
{
    const SimWorkload *w = engine_workload(e, thread);
    uint64_t access, bytes, shared;
    int32_t own;

    if (w->memory_permille == 0)
        return;
    access = work / 1000 * w->memory_permille + work % 1000 * w->memory_permille / 1000;
    bytes = work * (w->bandwidth / 1000) / 1000000;
    shared = shared_share(e, thread);
    own = own_region(e, thread);
    if (w->bandwidth > 0)
        note_presence(e, thread, shared, nsec);
    if (shared > 0)
        used_region(e, thread, memory_shared_region(e, thread), node, access * shared / 1000,
                    bytes * shared / 1000);
    if (shared < 1000 && own >= 0)
        used_region(e, thread, own, node, access * (1000 - shared) / 1000, bytes * (1000 - shared) / 1000);
}

void memory_forget(Engine *e, const Thread *thread)
{
    uint64_t *faults = engine_faults(e, engine_index(e, thread)),
             *all = engine_family_faults(e, thread->process);

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        all[i] -= faults[i];
        all[e->n_nodes] -= faults[i];
    }
    memset(faults, 0, 2 * e->n_nodes * sizeof(*faults));
}

void memory_event(Engine *e)
{
    uint64_t capacity = e->constants->node_bandwidth / (NSEC_PER_SEC / EPOCH_NSEC);

    for (uint32_t i = 0; i < e->topology->cpu_limit; i++)
        if (e->cpus[i].present && e->cpus[i].current >= 0) {
            cpu_account(e, i);
            cpu_touch(e, i);
        }
    for (uint32_t i = 0; i < e->n_nodes; i++) {
        uint64_t given = capacity * MIN(e->traffic_nsec[i], EPOCH_NSEC) / EPOCH_NSEC;
        uint64_t permille = e->traffic[i] * 1000 / MAX(given, 1U);

        if (e->traffic_nsec[i] > 0)
            e->contention[i] = (uint32_t)CLAMP(e->contention[i] * MIN(permille, UINT32_MAX) / 1000,
                                               (uint64_t)ENGINE_PACE, (uint64_t)CONTENTION_MAX);
        e->traffic[i] = e->traffic_nsec[i] = 0;
    }
    heap_set(&e->heap, e->item_memory, e->now_nsec + EPOCH_NSEC);
}
