/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which processes are sampled to find which thread uses which memory, by which evidence, and what follows. The threads
 * of a crew make the rounds and signal news through a descriptor. Slow ticks decide for which processes sampling
 * starts or stops; so do ticks in which homes changed, or a process was met that is to be sampled at once
 * (memory_watch_begins_early()).
 *
 *     slow tick --> which to sample --> crew --> rounds --> news --> World, requests
 *         ^                                                  |
 *         `---- more threads could be given a node ----------'
 *
 * A process is sampled if it has several nodes to live on, so that its threads have a choice, or is likely to get them
 * all, or is to get its first home and its memory lies on several. If the home is one node, all memory goes there,
 * whichever thread uses it; it is sampled only if its threads press on that node, unless they share what they use.
 *
 * Sampling changes a process (its pages are protected), so it is done only where changes are permitted (I11). */

#include "daemon/manager/evidence.h"
#include "base/time.h"
#include "numaplace/messages.h"
#include "plan/group.h"
#include "world/load.h"

#include <string.h>
#include <sys/epoll.h>

/* A process that could not be sampled by one kind of evidence is tried again after this. */
#define AGAIN_USEC (60 * USEC_PER_SEC)

/* Unless much of MaxCPU= is saved (pace_has_savings()), rounds get one part in this many of it, and ticks the rest. */
#define COST_PART 2U

EvidenceWatch *manager_evidence_find(const Manager *manager, pid_t pid)
{
    const ManagerEvidence *evidence = manager->evidence;

    for (size_t i = 0; evidence && i < evidence->n_watches; i++)
        if (evidence->watches[i]->subject.pid == pid)
            return evidence->watches[i];
    return NULL;
}

EvidenceKind manager_evidence_wanted(const Policy *policy)
{
    /* In the order of PolicyEvidence. */
    static const EvidenceKind kinds[] = {EVIDENCE_MAX, EVIDENCE_WRITE, EVIDENCE_KERNEL, EVIDENCE_RESIDENCY};

    static_assert(ARRAY_SIZE(kinds) == POLICY_EVIDENCE_MAX && POLICY_EVIDENCE_MAX == EVIDENCE_MAX + 1,
                  "Evidence= names every kind");
    return kinds[policy->evidence];
}

/*
 * Which processes to sample
 */

/* The evidence to sample a process by, once that is worth it (memory_watch_is_asked()); EVIDENCE_RESIDENCY:
 * none. Under Evidence=auto, a process with which write faults have failed is sampled by the kernel's
 * evidence, where that works. */
static EvidenceKind kind_of(const Manager *manager, const Process *process)
{
    const EvidenceMachine *machine = &manager->evidence->machine;
    const Policy *policy = group_policy(manager->world, manager->policies, process->workload);
    EvidenceKind kind;

    if (!memory_watch_wanted(manager->world, policy, process))
        return EVIDENCE_RESIDENCY;
    kind = evidence_choose(machine, manager_evidence_wanted(policy));
    return kind == EVIDENCE_WRITE && process->write_fails && policy->evidence == POLICY_EVIDENCE_AUTO &&
                   machine->abilities[EVIDENCE_KERNEL].works
               ? EVIDENCE_KERNEL
               : kind;
}

/* The same for now: EVIDENCE_RESIDENCY while sampling is not worth it. */
static EvidenceKind kind_for(const Manager *manager, const Process *process)
{
    const Policy *policy = group_policy(manager->world, manager->policies, process->workload);

    return memory_watch_is_asked(manager->world, policy, process) ? kind_of(manager, process)
                                                                  : EVIDENCE_RESIDENCY;
}

static EvidenceWatch *watch_new(TaskKey subject, EvidenceKind kind, const World *world)
{
    EvidenceWatch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return NULL;
    watch->subject = subject;
    watch->kind = kind;
    if (memory_watch_init(&watch->use, world->topology->n_nodes, world->now_usec) == 0)
        return watch;
    free(watch);
    return NULL;
}

static EvidenceWatch *watch_free(EvidenceWatch *watch)
{
    memory_watch_done(&watch->use);
    free(watch->asked);
    free(watch);
    return NULL;
}

/* Stops sampling a process. `goes_on`: another kind will sample it; until that says more, what is known of
 * its threads is kept. */
static void drop(Manager *manager, size_t index, bool goes_on)
{
    ManagerEvidence *evidence = manager->evidence;
    EvidenceWatch *watch = evidence->watches[index];
    Process *process = world_process(manager->world, watch->subject.pid);

    (void)evidence_crew_drop(evidence->crew, watch->subject.pid);
    if (process && process->start_ticks == watch->subject.start_ticks && !goes_on)
        memory_watch_forget(manager->world, process);
    (void)watch_free(watch);
    evidence->watches[index] = evidence->watches[--evidence->n_watches];
}

/* Stops sampling processes that have exited, that are no longer to be sampled, or by another kind of evidence, and
 * those that could not be sampled and may be tried again (AGAIN_USEC). */
static void drop_some(Manager *manager)
{
    const ManagerEvidence *evidence = manager->evidence;

    for (size_t i = evidence->n_watches; i > 0; i--) {
        const EvidenceWatch *watch = evidence->watches[i - 1];
        const Process *process = world_process(manager->world, watch->subject.pid);
        bool tired =
            watch->report.outcome != 0 && manager->world->now_usec > watch->use.since_usec + AGAIN_USEC;
        bool same = process && process->start_ticks == watch->subject.start_ticks;
        EvidenceKind kind = same ? kind_for(manager, process) : EVIDENCE_RESIDENCY;

        if (tired || kind != watch->kind)
            drop(manager, i - 1, !tired && kind != EVIDENCE_RESIDENCY);
    }
}

static int add(Manager *manager, Process *process, EvidenceKind kind)
{
    ManagerEvidence *evidence = manager->evidence;
    const TaskKey subject = {.pid = process->pid, .start_ticks = process->start_ticks};
    const Policy *policy = group_policy(manager->world, manager->policies, process->workload);
    const EvidenceSubject about = {
        .kind = kind,
        .pid = process->pid,
        .parent = process->parent,
        .start_ticks = process->start_ticks,
        .uid = process->uid,
        .insist = policy->evidence != POLICY_EVIDENCE_AUTO,
    };
    EvidenceWatch *watch;
    int r;

    if (evidence->n_watches == EVIDENCE_CREW_MAX) {
        evidence->n_left_out++;
        process->use_hidden = true;
        return 0;
    }
    watch = watch_new(subject, kind, manager->world);
    if (!watch)
        return -ENOMEM;
    r = evidence_crew_add(evidence->crew, &about);
    if (r < 0) {
        (void)watch_free(watch);
        evidence->n_left_out++;
        return r == -ENOMEM ? r : 0;
    }
    evidence->watches[evidence->n_watches++] = watch;
    return 0;
}

static int add_some(Manager *manager)
{
    const World *world = manager->world;

    manager->evidence->n_left_out = 0;
    for (size_t i = 0; i < world->n_processes; i++) {
        Process *process = &world->processes[i];
        EvidenceKind kind = kind_for(manager, process);
        int r;

        process->use_hidden = process->write_fails;
        if (kind == EVIDENCE_RESIDENCY || manager_evidence_find(manager, process->pid))
            continue;
        r = add(manager, process, kind);
        if (r < 0)
            return r;
    }
    return 0;
}

/*
 * What the crew is told
 */

/* The period that MaxCPU= demands: 0 while much of it is saved, else that in which all rounds together use their
 * part of it. */
static uint64_t budget_usec(const Manager *manager, const EvidenceWatch *watch)
{
    uint64_t cost = watch->report.n_rounds > 0 ? watch->report.cost_usec / watch->report.n_rounds : 0;
    uint32_t permille = manager->pace.settings.max_cpu_permille;

    if (permille == 0 || pace_has_savings(&manager->pace))
        return 0;
    return cost * manager->evidence->n_watches * 1000 * COST_PART / permille;
}

uint64_t manager_evidence_period_usec(const Manager *manager, const EvidenceWatch *watch)
{
    return MAX(scan_pace_usec(&watch->use.pace), budget_usec(manager, watch));
}

/* The CPU time of a process, which limits the cost of a round. That of its threads is known sooner than its
 * own. That of a process just met is unknown, and taken to be one CPU. */
static uint32_t cpu_permille(const World *world, const Process *process)
{
    size_t n, first = world_process_tasks(world, process, &n);
    bool any = false, known = false;
    uint32_t sum = 0;

    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];

        sum += task->gone ? 0 : MAX(task->run_permille, task->run_ewma_permille);
        any |= !task->gone;
        known |= !task->gone && !task->fresh;
    }
    return MAX(MAX(sum, process->cpu_permille), any && !known ? LOAD_FULL_PERMILLE : 0U);
}

void manager_evidence_tell(const Manager *manager, const EvidenceWatch *watch, const Process *process)
{
    const EvidenceNow now = {
        .period_usec = manager_evidence_period_usec(manager, watch),
        .cpu_permille = cpu_permille(manager->world, process),
        .moving = process->memory.to != NULL,
    };

    (void)evidence_crew_tell(manager->evidence->crew, watch->subject.pid, &now);
}

/* After a plan; `homes`: the plan included homes. */
static void tell_all(Manager *manager, bool homes)
{
    World *world = manager->world;

    for (size_t i = 0; i < manager->evidence->n_watches; i++) {
        EvidenceWatch *watch = manager->evidence->watches[i];
        Process *process = world_process(world, watch->subject.pid);
        const Policy *policy = group_policy(world, manager->policies, process->workload);

        if (homes)
            memory_watch_planned(&watch->use, world, process, policy);
        process->use_awaited = evidence_locates(watch->kind) && watch->report.outcome == 0 &&
                               follow_awaits_use(world, policy, process, &watch->use);
        manager_evidence_tell(manager, watch, process);
    }
}

/* Also between slow ticks: what a thread touched before it began to work hides which thread uses it. */
static int note_busy(Manager *manager)
{
    int r = 0;

    for (size_t i = 0; i < manager->evidence->n_watches && r == 0; i++) {
        EvidenceWatch *watch = manager->evidence->watches[i];
        const Process *process = world_process(manager->world, watch->subject.pid);
        uint64_t period = scan_pace_usec(&watch->use.pace);

        if (!process || process->start_ticks != watch->subject.start_ticks)
            continue;
        r = memory_watch_note_busy(&watch->use, manager->world, process);
        if (scan_pace_usec(&watch->use.pace) != period)
            manager_evidence_tell(manager, watch, process);
    }
    return r;
}

/* Charges rounds to MaxCPU=, as ticks are. */
static void pay(Manager *manager)
{
    uint64_t cost = evidence_crew_cost_usec(manager->evidence->crew);

    pace_pay(&manager->pace, (cost - manager->evidence->paid_usec) * NSEC_PER_USEC);
    manager->evidence->paid_usec = cost;
}

/*
 * Ticks
 */

/* Logs policies that name a kind of evidence that does not work here. */
static void tell_missing(Manager *manager)
{
    for (size_t i = 0; i < manager->policies->n_policies; i++) {
        const Policy *policy = manager->policies->policies[i];
        EvidenceKind wanted = manager_evidence_wanted(policy);

        if (policy->mode == POLICY_MODE_NONE || wanted == EVIDENCE_MAX ||
            manager->evidence->machine.abilities[wanted].works)
            continue;
        log_notice(manager->log, NUMAPLACE_MESSAGE_MISSING_FEATURE,
                   "policy %s asks for Evidence=%s: %s; using residency instead", policy->name,
                   policy_evidence_names[policy->evidence],
                   manager->evidence->machine.abilities[wanted].why_not);
    }
}

void manager_evidence_foresee(Manager *manager)
{
    const World *world = manager->world;

    if (!manager->evidence || !manager->evidence->crew)
        return;
    for (size_t i = 0; i < world->n_processes; i++) {
        Process *process = &world->processes[i];
        const Policy *policy = group_policy(world, manager->policies, process->workload);

        if (!manager_evidence_find(manager, process->pid))
            process->use_awaited = manager->evidence->n_watches < EVIDENCE_CREW_MAX &&
                                   follow_awaits_use(world, policy, process, NULL) &&
                                   evidence_locates(kind_of(manager, process));
    }
}

/* Whether a process is to be sampled before the next slow tick. */
static bool is_early(const Manager *manager)
{
    const World *world = manager->world;

    for (size_t i = 0; i < world->n_processes && manager->evidence->n_watches < EVIDENCE_CREW_MAX; i++) {
        const Process *process = &world->processes[i];

        if (memory_watch_begins_early(world, group_policy(world, manager->policies, process->workload),
                                      process) &&
            evidence_locates(kind_of(manager, process)) && !manager_evidence_find(manager, process->pid))
            return true;
    }
    return false;
}

int manager_evidence_ticked(Manager *manager, bool slow)
{
    ManagerEvidence *evidence = manager->evidence;
    int r;

    if (!evidence || !evidence->crew)
        return 0;
    if (!slow && !is_early(manager))
        return note_busy(manager);
    pay(manager);
    if (manager->world->kernel_balances != evidence->machine.kernel_balances) {
        evidence_detect_switched(manager->root_fd, &evidence->machine);
        tell_missing(manager);
    }
    drop_some(manager);
    r = add_some(manager);
    if (r == 0)
        r = note_busy(manager);
    if (r < 0)
        return r;
    tell_all(manager, slow);
    /* Also takes in processes that were in a round when there was news, or whose threads have new home nodes. */
    return manager_evidence_take_in(manager);
}

/*
 * Start and stop
 */

static int start(Manager *manager)
{
    ManagerEvidence *evidence = manager->evidence;
    int r =
        evidence_crew_new(&evidence->machine, manager->root_fd, manager->world->topology, &evidence->crew);

    if (r < 0)
        return r;
    evidence->paid_usec = 0;
    return sd_event_add_io(manager->event, &evidence->source, evidence_crew_fd(evidence->crew), EPOLLIN,
                           manager_evidence_on_news, manager);
}

static int detect(Manager *manager)
{
    ManagerEvidence *evidence = manager->evidence;

    if (!evidence)
        evidence = manager->evidence = calloc(1, sizeof(*evidence));
    if (!evidence)
        return -ENOMEM;
    evidence_detect(manager->root_fd, true, &evidence->machine);
    manager->world->kernel_balances = evidence->machine.kernel_balances;
    return 0;
}

void manager_evidence_start(Manager *manager)
{
    const Topology *topology = manager->world->topology;
    int r;

    /* With --once, nothing runs for long enough to sample. */
    manager->world->use_hidden = manager->options.once;
    if (!manager->event || manager->mode != MANAGER_MODE_ACTIVE || manager->options.once ||
        topology->n_nodes < 2 || !manager_has_memory(manager, topology) ||
        strcmp(manager->options.root, "/") != 0 || (manager->evidence && manager->evidence->crew))
        return;
    r = detect(manager);
    if (r == 0)
        r = start(manager);
    manager->world->use_hidden =
        r < 0 || !evidence_locates(evidence_choose(&manager->evidence->machine, EVIDENCE_MAX));
    if (r == 0) {
        tell_missing(manager);
        return;
    }
    manager_evidence_stop(manager);
    log_warning(manager->log, NUMAPLACE_MESSAGE_MISSING_FEATURE,
                "cannot find out which thread uses which memory: %s; using residency instead", strerror(-r));
}

void manager_evidence_reloaded(Manager *manager)
{
    if (manager->evidence && manager->evidence->crew)
        tell_missing(manager);
}

void manager_evidence_stop(Manager *manager)
{
    ManagerEvidence *evidence = manager->evidence;

    if (!evidence)
        return;
    while (evidence->crew && evidence->n_watches > 0)
        drop(manager, evidence->n_watches - 1, false);
    evidence->source = sd_event_source_disable_unref(evidence->source);
    evidence->crew = evidence_crew_free(evidence->crew);
}

void manager_evidence_free(Manager *manager)
{
    manager_evidence_stop(manager);
    if (!manager->evidence)
        return;
    plan_done(&manager->evidence->plan);
    free(manager->evidence);
    manager->evidence = NULL;
}
