/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* After a round:
 *
 *     threads --> World (Task.use)
 *     blocks touched --> filters of the regions --> window of the scan: what to ask about besides
 *     blocks --> judged --> requests, if nothing of the last judgement is left and none is under way; also when
 *                           threads have got other nodes
 *
 * This runs in the event loop and does not touch the target: the thread that made the round found where blocks lie and
 * what they are part of. */

#include "daemon/evidence-watch.h"

#include "plan/home/thread-homes.h"
#include "plan/scan/converge.h"

#include <string.h>

/* From here on a thread counts as busy, until it wants no more than the second. Waiting counts: who has to wait for
 * those that move his memory has not ended to work. */
#define BUSY_PERMILLE 500U
#define IDLE_PERMILLE 250U

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

/* Of one process. */
static bool is_same(const TaskKey *a, const TaskKey *b)
{
    return a->tid == b->tid && a->start_ticks == b->start_ticks;
}

static bool is_busy(const Task *task, bool was_busy)
{
    uint32_t wants = (uint32_t)task->run_ewma_permille + task->wait_ewma_permille;

    return !task->gone && !task->fresh && wants >= (was_busy ? IDLE_PERMILLE : BUSY_PERMILLE);
}

int evidence_watch_note_busy(EvidenceWatch *watch, const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n), before = 0, n_now = 0;
    bool changed = false;

    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];
        const TaskKey key = world_task_key(world, task);

        while (before < watch->n_busy && watch->busy[before].tid < task->tid)
            before++;
        if (!is_busy(task, before < watch->n_busy && is_same(&watch->busy[before], &key)))
            continue;
        if (!GROW(watch->busy_now, watch->busy_now_capacity, n_now + 1))
            return -ENOMEM;
        changed |= n_now >= watch->n_busy_now || !is_same(&watch->busy_now[n_now], &key);
        watch->busy_now[n_now++] = key;
    }
    if (changed || n_now != watch->n_busy_now)
        scan_pace_restart(&watch->pace);
    watch->n_busy_now = n_now;
    return 0;
}

/* Whose work has begun or ended is seen anew. */
static void forget_changed(EvidenceWatch *watch, Touches *touches)
{
    size_t before = 0, now = 0;

    while (before < watch->n_busy || now < watch->n_busy_now) {
        pid_t a = before < watch->n_busy ? watch->busy[before].tid : INT32_MAX;
        pid_t b = now < watch->n_busy_now ? watch->busy_now[now].tid : INT32_MAX;

        if (a != b || !is_same(&watch->busy[before], &watch->busy_now[now]))
            (void)touches_forget_thread(touches, MIN(a, b));
        before += a <= b;
        now += b <= a;
    }
}

int evidence_watch_follow_busy(EvidenceWatch *watch, Touches *touches)
{
    if (!GROW(watch->busy, watch->busy_capacity, watch->n_busy_now + 1))
        return -ENOMEM;
    if (watch->followed)
        forget_changed(watch, touches);
    watch->followed = true;
    if (watch->n_busy_now > 0)
        memcpy(watch->busy, watch->busy_now, watch->n_busy_now * sizeof(*watch->busy));
    watch->n_busy = watch->n_busy_now;
    return 0;
}

bool evidence_watch_has_news(const EvidenceWatch *watch, const World *world, const Process *process,
                             const Policy *policy)
{
    return watch->n_counted >= TOUCHES_ROUNDS_MIN &&
           thread_homes_n_known(world, policy, process) > watch->n_told;
}

void evidence_watch_told(EvidenceWatch *watch, const World *world, const Process *process,
                         const Policy *policy)
{
    watch->n_told = thread_homes_n_known(world, policy, process);
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
    look->watch->homes = thread_homes_digest(look->world, look->process);
    return sorting_judge(sorting, &what);
}

/*
 * Pacing
 */

static ScanPeriodRange range_of(const Policy *policy, const Process *process)
{
    const ScanPeriodLimits limits = {policy->scan_min_usec, policy->scan_max_usec, policy->scan_size_bytes};

    return scan_period_range(&limits, process->rss_bytes, NULL);
}

/* What moves because of what was seen is something to be learnt, too. */
static int set_pace(const EvidenceWatchLook *look, const Touches *touches, bool counted)
{
    const EvidenceRound *last = &look->watch->report.last;
    ScanPaceRound round = {
        .range = range_of(look->policy, look->process),
        .strength = converge_use(look->world, look->process, touches),
    };
    int r = counted ? scan_pace_read(touches, &round) : 0;

    round.cost_usec = counted ? MAX(last->target_usec, last->cost_usec) : 0;
    round.learning |= look->process->memory.to || look->watch->sorting.n_moves > 0;
    if (r == 0)
        scan_pace_round(&look->watch->pace, &round);
    return r;
}

void evidence_watch_note_moved(EvidenceWatch *watch, const World *world, const Process *process,
                               const Policy *policy)
{
    const Group *group = &world->groups[process->group.i];
    ScanPeriodRange range = range_of(policy, process);

    scan_pace_moved(&watch->pace, &range, scan_pace_moved_usec(group));
}

/* Whether there was a round for which all was protected; one after a round that was held back shows a part only. */
static bool is_whole(const EvidenceWatch *watch, const EvidenceReport *report)
{
    return report->n_rounds > watch->n_rounds && watch->report.last.held == EVIDENCE_HELD_NOT;
}

/* Between rounds. */
static int look_between(const EvidenceWatchLook *look, EvidenceSession *session, bool whole)
{
    EvidenceWatch *watch = look->watch;
    const Touches *touches = evidence_touches(session);

    if (whole)
        return set_pace(look, touches, false);
    if (watch->kind == EVIDENCE_WRITE && touches->n_rounds > 0 &&
        watch->homes != thread_homes_digest(look->world, look->process))
        return sort(look, session);
    return 0;
}

int evidence_watch_look(void *userdata, const EvidenceReport *report, EvidenceSession *session)
{
    EvidenceWatchLook *look = userdata;
    EvidenceWatch *watch = look->watch;
    Touches *touches = session ? evidence_touches(session) : NULL;
    bool whole = is_whole(watch, report);
    int r;

    watch->report = *report;
    watch->n_rounds = report->n_rounds;
    if (!touches)
        return 0;
    if (touches->n_rounds == watch->n_counted)
        return look_between(look, session, whole);
    watch->n_counted = touches->n_rounds;
    watch->summary = touches_summary(touches);
    look->news = true;
    r = touches_tell(touches, look->world, look->world->now_usec);
    if (r == 0)
        r = evidence_watch_follow_busy(watch, touches);
    if (r == 0 && watch->kind == EVIDENCE_WRITE)
        r = sort(look, session);
    if (r == 0 && watch->kind == EVIDENCE_WRITE)
        r = scan(look, session);
    if (r == 0 && whole)
        r = set_pace(look, touches, true);
    return r;
}
