/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The start of a walk: checks that it is the right process, finds what there is to examine and how much must
 * stay free, and moves small processes in one call. */

#include "act/mover/walk-internal.h"
#include "base/parse.h"
#include "kernel/page-maps.h"
#include "kernel/procstat.h"

#include <stdio.h>

/* Mappings up to this size are examined page by page. */
#define THOROUGH_BYTES (8U * WALK_BLOCK_BYTES)

#define ZONEINFO_MAX ((size_t)4 << 20)

static int read_process_file(Walk *w, const char *name, size_t max, char **ret)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%d/%s", w->memory_pid, name);
    return w->node->ops->read_file(w->node->context, path, max, ret);
}

static MoverOutcome read_guard(Walk *w)
{
    CLEANUP_FREE char *text = NULL;
    uint64_t high_pages = 0;
    int r = w->node->ops->read_file(w->node->context, "proc/zoneinfo", ZONEINFO_MAX, &text);

    if (r == 0)
        r = mover_zoneinfo_parse(text, w->node->os_index, &high_pages);
    if (r < 0)
        return walk_fail(w, r);
    w->guard = (MoverGuard){
        .high_bytes = high_pages * w->node->page_bytes,
        .headroom_percent = w->order->headroom_percent,
        .reserve_bytes = w->order->reserve_bytes,
        .spend_cache = w->order->spend_cache,
    };
    return MOVER_DONE;
}

/* Counts memory that cannot be moved. One of the walks of a request counts it: if `sent`, the only one that
 * comes to it; otherwise, and for lines that do not parse, the first. */
static void refuse(Walk *w, MoverReason reason, uint64_t bytes)
{
    if (w->part == 0 || (w->order->sent && reason != MOVER_REASON_FOREIGN))
        w->account.refused_bytes[reason] += bytes;
}

/* Adds part of a mapping as a region, or counts it as refused. */
static int add_region(Walk *w, const PageMapping *mapping, uint64_t start, uint64_t end)
{
    static const MoverReason reasons[] = {
        [PAGE_KIND_FILE] = MOVER_REASON_FILE,
        [PAGE_KIND_HUGETLB] = MOVER_REASON_HUGETLB,
        [PAGE_KIND_DEVICE] = MOVER_REASON_DEVICE,
    };

    if (mapping->kind != PAGE_KIND_ANON && mapping->kind != PAGE_KIND_SHMEM) {
        refuse(w, reasons[mapping->kind], end - start);
        w->hugetlb = w->hugetlb || mapping->kind == PAGE_KIND_HUGETLB;
        return 0;
    }
    if (end - start > w->node->vast_bytes) {
        refuse(w, MOVER_REASON_VAST, end - start);
        return 0;
    }
    return APPEND(w->regions, w->regions_capacity, w->n_regions,
                  (WalkRegion){.start = start, .end = end, .thorough = end - start <= THOROUGH_BYTES});
}

/* Cuts a mapping to the requested ranges; *range is the first range that may overlap it. */
static int add_mapping(Walk *w, const PageMapping *mapping, size_t *range)
{
    const MoverOrder *order = w->order;
    uint64_t mask = ~(w->node->page_bytes - 1);

    if (!mapping->accessible)
        return 0;
    if (order->n_ranges == 0)
        return add_region(w, mapping, mapping->start, mapping->end);
    while (*range < order->n_ranges && order->ranges[*range].end <= mapping->start)
        (*range)++;
    for (size_t i = *range; i < order->n_ranges && order->ranges[i].start < mapping->end; i++) {
        uint64_t last = (order->ranges[i].end - 1) | ~mask; /* cannot overflow */
        uint64_t start = MAX(order->ranges[i].start & mask, mapping->start);
        bool elsewhere = order->sent && order->ranges[i].to.i != w->node->node.i;
        int r = elsewhere ? 0 : add_region(w, mapping, start, MIN(last, mapping->end - 1) + 1);

        if (r < 0)
            return r;
    }
    return 0;
}

/* State of reading maps line by line. The file may have a hundred megabytes, with names as long as a path can
 * be, and every walk of a request reads it; a mapping that can be moved takes 24 bytes. */
typedef struct Reading {
    Walk *w;
    PageMounts mounts;
    size_t range; /* the first that may overlap the next mapping */
} Reading;

static void reading_done(Reading *reading)
{
    page_mounts_done(&reading->mounts);
}

static int add_mount_line(void *userdata, const char *line)
{
    Reading *reading = userdata;

    return page_mounts_parse(line, &reading->mounts);
}

static int add_mapping_line(void *userdata, const char *line)
{
    Reading *reading = userdata;
    Walk *w = reading->w;
    PageMapping mapping;
    int r = page_maps_next(&line, &reading->mounts, &mapping);

    if (r < 0)
        refuse(w, MOVER_REASON_FOREIGN, w->node->page_bytes);
    return r > 0 ? add_mapping(w, &mapping, &reading->range) : 0;
}

static int read_process_lines(Walk *w, const char *name, LinesAdd add, Reading *reading)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%d/%s", w->memory_pid, name);
    return w->node->ops->read_lines(w->node->context, path, add, reading);
}

static MoverOutcome read_regions(Walk *w)
{
    CLEANUP(reading_done) Reading reading = {.w = w, .mounts = {.internal = w->node->memory_device}};
    int r = read_process_lines(w, "mountinfo", add_mount_line, &reading);

    /* Without it, files on a tmpfs count as files. */
    if (r == -ENOMEM)
        return walk_fail(w, r);
    r = read_process_lines(w, "maps", add_mapping_line, &reading);
    if (r == -ENOMEM)
        return walk_fail(w, r);
    if (r < 0)
        return r == -ENOENT ? MOVER_GONE : walk_judge(w, r == -EACCES ? -EPERM : r);
    return w->node->ops->is_alive(w->node->context, w->process_fd) ? MOVER_DONE : MOVER_GONE;
}

/*
 * Small processes
 */

/* Whether one call can query all memory that may be there, and one can move all the process has, including
 * programs and libraries. */
static bool is_small(Walk *w)
{
    CLEANUP_FREE char *text = NULL;
    uint64_t bytes = 0;
    ProcStat stat;

    if (w->order->n_ranges > 0 || w->n_parts > 1 || w->order->shared || w->hugetlb)
        return false;
    for (size_t i = 0; i < w->n_regions; i++)
        bytes += w->regions[i].end - w->regions[i].start;
    return bytes <= w->node->capacity * w->node->page_bytes &&
           read_process_file(w, "stat", PROCSTAT_TEXT_SIZE, &text) == 0 && procstat_parse(text, &stat) == 0 &&
           stat.rss_pages <= w->node->pages_limit;
}

/* Queries all pages, keeps those that are elsewhere, and collects their nodes. */
static MoverOutcome find_misplaced(Walk *w, hwloc_bitmap_t from_os, size_t *ret_n)
{
    WalkNode *node = w->node;
    MoverOutcome outcome;
    size_t n = 0;

    for (size_t i = 0; i < w->n_regions; i++)
        for (uint64_t at = w->regions[i].start; at < w->regions[i].end; at += node->page_bytes)
            walk_put_page(node, &n, at, 0);
    outcome = walk_ask(w, 0, n, node->status);
    if (outcome != MOVER_DONE)
        return outcome;
    for (size_t i = 0; i < n; i++)
        if (walk_misplaced(w, node->status[i]) && hwloc_bitmap_set(from_os, (unsigned)node->status[i]) < 0)
            return walk_fail(w, -ENOMEM);
    *ret_n = walk_keep_misplaced(w, n);
    return MOVER_DONE;
}

/* Moves a small process with one migrate_pages(2), which includes pages it touches in the meantime and file
 * pages that only it maps. The walk that follows moves what is left, or counts it as refused. */
static MoverOutcome migrate_small(Walk *w)
{
    CLEANUP_BITMAP hwloc_bitmap_t from_os = hwloc_bitmap_alloc();
    WalkNode *node = w->node;
    size_t n = 0, some = 0, n_left = 0;
    MoverOutcome outcome = from_os ? find_misplaced(w, from_os, &n) : walk_fail(w, -ENOMEM);
    uint64_t began;
    long r;

    if (outcome != MOVER_DONE || n == 0)
        return outcome;
    outcome = walk_admit(w, n, node->page_bytes, &some);
    if (outcome == MOVER_NO_ROOM)
        return MOVER_DONE;
    if (outcome != MOVER_DONE)
        return outcome;
    if (some < n) {
        walk_leave(w);
        walk_return(w, some * node->page_bytes);
        return MOVER_DONE;
    }
    began = node->ops->now_usec(node->context);
    r = node->ops->migrate_pages(node->context, w->memory_pid, from_os, node->os_index);
    walk_count_call(w, node->ops->now_usec(node->context) - began);
    walk_leave(w);
    if (!node->ops->is_alive(node->context, w->process_fd))
        return MOVER_GONE;
    if (r < 0) {
        walk_return(w, n * node->page_bytes);
        return MOVER_DONE;
    }
    outcome = walk_ask(w, 0, n, node->status);
    for (size_t i = 0; i < n && outcome == MOVER_DONE; i++)
        n_left += walk_misplaced(w, node->status[i]);
    if (outcome == MOVER_DONE)
        w->account.moved_bytes += (n - n_left) * node->page_bytes;
    return outcome;
}

MoverOutcome walk_begin(Walk *w)
{
    MoverOutcome outcome;

    w->process_fd =
        w->node->ops->open_process(w->node->context, w->order->pid, w->order->start_ticks, &w->memory_pid);
    if (w->process_fd < 0)
        return w->process_fd == -ESRCH ? MOVER_GONE : walk_fail(w, w->process_fd);
    outcome = read_guard(w);
    if (outcome == MOVER_DONE)
        outcome = read_regions(w);
    if (outcome != MOVER_DONE || !is_small(w))
        return outcome;
    w->small = true;
    return migrate_small(w);
}
