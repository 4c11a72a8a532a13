/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What follows from the rounds of the crew. Findings go into the World. Memory that should move is requested
 * at once and not at the next tick, because a process runs at half its speed until then. A process has one
 * request at a time. */

#include "base/time.h"
#include "daemon/manager/evidence.h"
#include "plan/group.h"

#include <string.h>

static int fail(Manager *manager, int r)
{
    log_error(manager->log, NULL, "stopping: %s", strerror(-r));
    return sd_event_exit(manager->event, r);
}

/* The index of the plan's migration request for the process, or SIZE_MAX. */
static size_t find_action(const Plan *plan, pid_t pid)
{
    for (size_t i = 0; i < plan->n_actions; i++)
        if (plan->actions[i].subject.pid == pid)
            return i;
    return SIZE_MAX;
}

static int carry_out(Manager *manager, const PlanUse *uses, size_t n)
{
    const PlanLimits limits = {.slow_tick = false};
    Plan *plan = &manager->evidence->plan;
    int r = plan_follow_use(manager->world, manager->policies, &limits, uses, n, plan);

    if (r == 0)
        r = recorder_add(manager->recorder, &(TranscriptEntry){.world = manager->world,
                                                               .policies = manager->policies,
                                                               .limits = &limits,
                                                               .by_use = true,
                                                               .uses = uses,
                                                               .n_uses = n,
                                                               .plan = plan});
    if (r == 0)
        r = manager_remember_refusals(manager, plan);
    if (r == 0 && plan->n_actions > 0)
        r = manager_carry_out(manager, plan);
    for (size_t i = 0; i < n && r == 0; i++) {
        EvidenceWatch *watch = manager_evidence_find(manager, uses[i].subject.pid);
        const Process *process = world_process(manager->world, uses[i].subject.pid);
        size_t action = find_action(plan, uses[i].subject.pid);

        if (action != SIZE_MAX && manager->outcomes[action] == PLAN_OUTCOME_DONE)
            r = sorting_taken(&watch->use.sorting, manager->world->now_usec);
        else
            sorting_refused(&watch->use.sorting);
        if (process)
            manager_evidence_tell(manager, watch, process);
    }
    return r;
}

/* Makes the migration requests that are ready: one for a process at a time. */
static int give_orders(Manager *manager)
{
    const ManagerEvidence *evidence = manager->evidence;
    PlanUse uses[EVIDENCE_CREW_MAX];
    size_t n = 0;

    for (size_t i = 0; i < evidence->n_watches; i++) {
        EvidenceWatch *watch = evidence->watches[i];
        const Process *process = world_process(manager->world, watch->subject.pid);

        if (process && process->start_ticks == watch->subject.start_ticks && !process->memory.to &&
            sorting_next(&watch->use.sorting, process, &uses[n]))
            n++;
    }
    if (n == 0)
        return 0;
    /* Tick soon, to see whether the requests still hold. */
    pace_wake(&manager->pace);
    manager_arm(manager);
    return carry_out(manager, uses, n);
}

/* When more is known of which thread uses what, homes are planned at once and not in the next slow tick. While rounds
 * are made at full pace, so are fast ticks: they see which threads begin and stop working. */
static void wake(Manager *manager, const MemoryWatchLook *look)
{
    uint64_t now = time_now_usec();

    if (pace_may_discover(&manager->pace, now) &&
        memory_watch_has_news(look->watch, look->world, look->process, look->policy))
        pace_now(&manager->pace, now);
    else if (scan_pace_usec(&look->watch->pace) <= SCAN_PACE_FIRST_USEC)
        pace_wake(&manager->pace);
    else
        return;
    manager_arm(manager);
}

static int compare_ranges(const void *va, const void *vb)
{
    const EvidenceRange *a = va, *b = vb;

    return (a->start > b->start) - (a->start < b->start);
}

static int ask(EvidenceWatch *watch, EvidenceSession *session)
{
    const ScanWindow *window = &watch->use.window;

    if (!GROW(watch->asked, watch->asked_capacity, window->n_ranges + 1))
        return -ENOMEM;
    for (size_t i = 0; i < window->n_ranges; i++)
        watch->asked[i] = (EvidenceRange){window->ranges[i].start, window->ranges[i].end};
    qsort(watch->asked, window->n_ranges, sizeof(*watch->asked), compare_ranges);
    return evidence_ask(session, watch->asked, window->n_ranges);
}

typedef struct News {
    EvidenceWatch *watch;
    MemoryWatchLook look;
} News;

/* Called by evidence_crew_look(). A round after one that was held back shows only a part. The event loop runs this
 * and does not touch the target: the thread of the round has found where blocks lie and what they are part of. */
static int take(void *userdata, const EvidenceReport *report, EvidenceSession *session)
{
    News *news = userdata;
    EvidenceWatch *watch = news->watch;
    MemoryWatchLook *look = &news->look;
    int r;

    look->whole = report->n_rounds > watch->report.n_rounds && watch->report.last.held == EVIDENCE_HELD_NOT;
    look->cost_usec = MAX(report->last.target_usec, report->last.cost_usec);
    watch->report = *report;
    if (watch->kind == EVIDENCE_WRITE && (report->outcome != 0 || report->n_rounds > 0))
        look->process->write_fails = look->process->use_hidden =
            report->outcome != 0 && report->outcome != EVIDENCE_E_GONE;
    if (!session)
        return 0;
    look->touches = evidence_touches(session);
    look->regions = evidence_regions(session);
    r = memory_watch_look(look);
    return r == 0 && look->window ? ask(watch, session) : r;
}

static int take_in_one(Manager *manager, EvidenceWatch *watch)
{
    News news = {.watch = watch,
                 .look = {.watch = &watch->use,
                          .world = manager->world,
                          .process = world_process(manager->world, watch->subject.pid),
                          .now_usec = time_now_usec()}};
    MemoryWatchLook *look = &news.look;
    uint64_t period = scan_pace_usec(&watch->use.pace);

    if (!look->process || look->process->gone || look->process->workload.i < 0 ||
        look->process->start_ticks != watch->subject.start_ticks)
        return 0;
    look->policy = group_policy(manager->world, manager->policies, look->process->workload);
    if (!look->policy)
        return 0;
    if (evidence_crew_look(manager->evidence->crew, look->process->pid, take, &news) == -ENOMEM)
        return -ENOMEM;
    if (look->news)
        wake(manager, look);
    if (scan_pace_usec(&watch->use.pace) != period)
        manager_evidence_tell(manager, watch, look->process);
    return 0;
}

static int take_in(Manager *manager)
{
    int r = 0;

    for (size_t i = 0; i < manager->evidence->n_watches && r == 0; i++)
        r = take_in_one(manager, manager->evidence->watches[i]);
    return r;
}

int manager_evidence_take_in(Manager *manager)
{
    uint64_t begin = time_thread_cpu_nsec();
    int r = take_in(manager);

    if (r == 0)
        r = give_orders(manager);
    manager->evidence->take_in_nsec += time_thread_cpu_nsec() - begin;
    return r;
}

int manager_evidence_on_news(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    Manager *manager = userdata;
    uint64_t begin = time_thread_cpu_nsec();
    int r;

    evidence_crew_clear(manager->evidence->crew);
    r = manager_evidence_take_in(manager);
    pace_pay(&manager->pace, time_thread_cpu_nsec() - begin);
    return r < 0 ? fail(manager, r) : 0;
}

void manager_evidence_order_over(Manager *manager, TaskKey subject, FollowEnd end)
{
    EvidenceWatch *watch = manager_evidence_find(manager, subject.pid);
    const Process *process = world_process(manager->world, subject.pid);
    int r;

    if (!watch || !process || process->start_ticks != subject.start_ticks)
        return;
    sorting_over(&watch->use.sorting, end);
    /* What was seen meanwhile, and what is left, goes with the next request, as soon as it is known where it lies. */
    if (process->memory.until_usec <= process->memory.over_usec)
        scan_pace_restart(&watch->use.pace);
    r = give_orders(manager);
    manager_evidence_tell(manager, watch, process);
    if (r < 0)
        (void)fail(manager, r);
}
