/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* After a round:
 *
 *     threads --> World (Task.use)
 *     blocks touched --> filters of the regions --> window of the scan: what to ask about besides
 *     blocks --> judged --> orders, if nothing of the last judgement is left and none is under way
 *
 * This is in the event loop and the target is not touched: where blocks lie and what they are part of was found by the
 * thread that made the round. */

#include "daemon/evidence-watch.h"

#include "plan/converge.h"

#include <string.h>

/* From here on a thread counts as busy: it begins or ends to work when its average crosses this. */
#define BUSY_PERMILLE 500U

EvidenceWatch *evidence_watch_new(TaskKey subject, EvidenceKind kind, bool insist, uint32_t n_nodes,
                                  uint64_t now_usec)
{
    EvidenceWatch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return NULL;
    watch->subject = subject;
    watch->kind = kind;
    watch->insist = insist;
    watch->since_usec = now_usec;
    if (sorting_init(&watch->sorting, n_nodes) < 0) {
        free(watch);
        return NULL;
    }
    return watch;
}

EvidenceWatch *evidence_watch_free(EvidenceWatch *watch)
{
    if (!watch)
        return NULL;
    sorting_done(&watch->sorting);
    scan_window_done(&watch->window);
    free(watch->busy);
    free(watch->busy_now);
    free(watch->asked);
    free(watch);
    return NULL;
}

/*
 * Threads
 */

int evidence_watch_note_busy(EvidenceWatch *watch, const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n);

    watch->n_busy_now = 0;
    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];

        if (task->gone || task->fresh || task->run_ewma_permille < BUSY_PERMILLE)
            continue;
        if (!GROW(watch->busy_now, watch->busy_now_capacity, watch->n_busy_now + 1))
            return -ENOMEM;
        watch->busy_now[watch->n_busy_now++] = task->tid;
    }
    return 0;
}

/* Whose work has begun or ended is seen anew. */
static void forget_changed(EvidenceWatch *watch, Touches *touches)
{
    size_t before = 0, now = 0;

    while (before < watch->n_busy || now < watch->n_busy_now) {
        pid_t a = before < watch->n_busy ? watch->busy[before] : INT32_MAX;
        pid_t b = now < watch->n_busy_now ? watch->busy_now[now] : INT32_MAX;

        if (a != b)
            (void)touches_forget_thread(touches, MIN(a, b));
        before += a <= b;
        now += b <= a;
    }
}

static int follow_busy(EvidenceWatch *watch, Touches *touches)
{
    if (!GROW(watch->busy, watch->busy_capacity, watch->n_busy_now + 1))
        return -ENOMEM;
    forget_changed(watch, touches);
    if (watch->n_busy_now > 0)
        memcpy(watch->busy, watch->busy_now, watch->n_busy_now * sizeof(*watch->busy));
    watch->n_busy = watch->n_busy_now;
    return 0;
}

/*
 * Memory
 */

static void note_accesses(const Touches *touches, MemoryRegions *regions)
{
    for (size_t i = 0; i < touches->n_blocks; i++) {
        const TouchBlock *block = &touches->blocks[i];

        for (size_t k = 0; block->last_round == touches->n_rounds && k < TOUCHES_OWNERS; k++)
            if (block->owners[k].tid)
                scan_note_access(regions, block->address, block->owners[k].tid);
    }
}

static int compare_ranges(const void *va, const void *vb)
{
    const EvidenceRange *a = va, *b = vb;

    return (a->start > b->start) - (a->start < b->start);
}

/* Which memory that nobody touched is asked about next: the window of the scan (P8, P9, P16). */
static int scan(const EvidenceWatchLook *look, EvidenceSession *session)
{
    EvidenceWatch *watch = look->watch;
    const Touches *touches = evidence_touches(session);
    MemoryRegions *regions = evidence_regions(session);
    ScanRules rules = {.window_bytes = look->policy->scan_size_bytes,
                       .force_complete = look->policy->force_complete};
    NodeIx node;
    int r;

    if (look->policy->scan_feedback)
        rules.window_bytes =
            converge_window_bytes(rules.window_bytes, MIN(converge_touches(touches, &node),
                                                          converge_apart(look->world, look->process)));
    note_accesses(touches, regions);
    r = scan_step(&watch->scan, regions, &rules, look->now_usec, &watch->window);
    if (r < 0 || !GROW(watch->asked, watch->asked_capacity, watch->window.n_ranges + 1))
        return -ENOMEM;
    for (size_t i = 0; i < watch->window.n_ranges; i++)
        watch->asked[i] = (EvidenceRange){watch->window.ranges[i].start, watch->window.ranges[i].end};
    qsort(watch->asked, watch->window.n_ranges, sizeof(*watch->asked), compare_ranges);
    return evidence_ask(session, watch->asked, watch->window.n_ranges);
}

static int sort(const EvidenceWatchLook *look, EvidenceSession *session)
{
    Sorting *sorting = &look->watch->sorting;
    const SortingLook what = {look->world, look->process, look->policy, evidence_touches(session),
                              evidence_regions(session)};

    if (look->process->memory.to || sorting->n_moves > 0)
        return 0;
    return sorting_judge(sorting, &what);
}

int evidence_watch_look(void *userdata, const EvidenceReport *report, EvidenceSession *session)
{
    EvidenceWatchLook *look = userdata;
    EvidenceWatch *watch = look->watch;
    Touches *touches = session ? evidence_touches(session) : NULL;
    int r;

    watch->report = *report;
    if (!touches || touches->n_rounds == watch->n_counted)
        return 0;
    watch->n_counted = touches->n_rounds;
    watch->summary = touches_summary(touches);
    look->news = true;
    r = touches_tell(touches, look->world, look->world->now_usec);
    if (r == 0)
        r = follow_busy(watch, touches);
    if (r == 0 && watch->kind == EVIDENCE_WRITE)
        r = sort(look, session);
    if (r == 0 && watch->kind == EVIDENCE_WRITE)
        r = scan(look, session);
    return r;
}
