/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Carries out one action after another: look, journal, change.
 *
 * Between the decision and this moment, the task may have exited, its user may have pinned it, or its process may have
 * started threads. So the mask of every thread is read again and replaced only if it is the mask that the plan
 * expected (`from`) or one that the journal says is ours. A process gets its home in passes over its threads: a thread
 * created during a pass may inherit the old mask from a creator not yet reached, and the next pass finds it.
 *
 * The kernel cuts the requested mask by the thread's cpuset. If the cpuset became narrower since the plan was made,
 * the result would be a mask that is not in the journal and looks like a user's. So it is taken back, and the action
 * counts as refused. */

#include "act/masks/execute.h"
#include "act/masks/passage.h"
#include "act/masks/pins.h"
#include "act/masks/slice.h"
#include "act/undo/lineage.h"
#include "act/undo/search.h"

int execute_outcome(int r)
{
    if (r < 0)
        return r == -ENOMEM ? -ENOMEM : PLAN_OUTCOME_RETRY;
    switch ((ActResult)r) {
    case ACT_E_GONE:
        return PLAN_OUTCOME_GONE;
    case ACT_E_REFUSED:
    case ACT_E_CUT:
    case ACT_E_CORRUPT:
        return PLAN_OUTCOME_REFUSED;
    case ACT_E_RETRY:
        return PLAN_OUTCOME_RETRY;
    }
    return PLAN_OUTCOME_DONE;
}

/* Whether the mask has all online CPUs of `cpus`, and there are any. Isolated CPUs do not count: no mask has
 * them unless somebody asked for them. */
static bool has_all(Work *work, hwloc_const_bitmap_t cpus, hwloc_const_bitmap_t mask)
{
    return hwloc_bitmap_and(work->scratch, cpus, work->act->online) == 0 &&
           hwloc_bitmap_andnot(work->scratch, work->scratch, work->act->isolated) == 0 &&
           !hwloc_bitmap_iszero(work->scratch) && hwloc_bitmap_isincluded(work->scratch, mask);
}

/* Whether the mask is all that the process may use. */
static bool is_whole(Work *work, hwloc_const_bitmap_t mask)
{
    const Process *process = act_known(work->world, work->process.pid, work->process.start_ticks);

    return has_all(work, work->act->online, mask) ||
           (process && process->cpuset && has_all(work, process->cpuset, mask));
}

/* The same, by the present cpuset of the thread. It may have become narrower since the World was read, and
 * may be the thread's own; what it leaves is not the user's choice. */
static bool is_whole_now(Work *work, TaskKey task, hwloc_const_bitmap_t mask)
{
    Act *act = work->act;

    return !fences_hold(act->fences, work->process.pid) &&
           act->ops->get_cpuset(act->context, task.tid, act->cpuset) == 0 && has_all(work, act->cpuset, mask);
}

/* Whether the mask is what a kernel before 6.2 made of all CPUs, when that was put back while some CPUs were
 * offline or coming back. That is not the user's choice, even when they are online again. */
static bool was_left(Work *work, hwloc_const_bitmap_t mask)
{
    const JournalProcess *entry =
        journal_process(work->act->journal, work->process.pid, work->process.start_ticks);

    return entry && entry->left && has_all(work, entry->left, mask);
}

/* Takes back a change that half worked, if the thread still has part of what it was given. */
static void take_back(Work *work, TaskKey task, JournalOriginal before)
{
    hwloc_bitmap_t now = work->scratch;

    if (work->act->ops->get_mask(work->act->context, task, now) == 0 &&
        hwloc_bitmap_isincluded(now, work->action->to))
        (void)act_set_original(work->act, task, before);
}

/* A process that is given masks again passes them on to its children, and is no longer an heir. */
static void note_home(const Work *work)
{
    int32_t workload = work->action->workload.i;
    Journal *journal = work->act->journal;
    JournalProcess *entry =
        journal ? journal_process(journal, work->process.pid, work->process.start_ticks) : NULL;

    if (entry) {
        entry->roams = entry->searched = false;
        entry->from_pid = 0;
        if (workload >= 0 && work->world && (size_t)workload < work->world->n_workloads)
            entry->workload = intern_string(journal->pool, work->world->workloads[workload].name);
    }
}

/* Gives `task`, whose mask is work->have, the mask of the action. Returns a PlanOutcome or -ENOMEM. */
static int change(Work *work, TaskKey task, bool ours, const JournalPassage *passage)
{
    Act *act = work->act;
    JournalChange change = {
        .process = work->process,
        .task = task,
        .ours = ours,
        .original = {.mask = work->have,
                     .whole = !ours && (is_whole(work, work->have) || was_left(work, work->have) ||
                                        is_whole_now(work, task, work->have))},
        .mask = work->action->to,
        .passage = passage,
    };
    CLEANUP_BITMAP hwloc_bitmap_t via = NULL;
    int r;

    if (!act->ops->changes)
        return PLAN_OUTCOME_SKIPPED;
    /* It sleeps, and all its CPUs are offline: what it has cannot be recorded. */
    if (!ours && hwloc_bitmap_iszero(work->have))
        return PLAN_OUTCOME_RETRY;
    if (passage) {
        via = hwloc_bitmap_alloc();
        if (!via || hwloc_bitmap_only(via, (unsigned)passage->cpu.i) < 0)
            return -ENOMEM;
    }

    r = pins_note_change(act, work->world, &change);
    if (r < 0)
        return r == -ENOMEM ? r : PLAN_OUTCOME_UNJOURNALLED;
    note_home(work);
    r = act_set_mask(act, task, via, work->action->to);
    if (r == ACT_E_CUT || (r != 0 && r != ACT_E_GONE && via))
        take_back(work, task, change.original);
    if (passage)
        passage_end(act, task, passage->cpu);
    return execute_outcome(r);
}

/* Checks a process that already has the mask it should get, although the journal does not say, or not for
 * certain, that the daemon gave it. A process that came into a fence from outside shows the home as its mask,
 * whatever its user chose. So the fence is taken down first, and the mask read again. Returns 0, or a
 * PlanOutcome: RETRY if that takes a while or the mask is another one. */
static int look_without_fence(Work *work, TaskKey task)
{
    Act *act = work->act;
    int r;

    if (!fences_hold(act->fences, work->process.pid))
        return 0;
    if (!fences_admit(act->fences, work->process.pid, NULL))
        return PLAN_OUTCOME_RETRY;
    r = act->ops->get_mask(act->context, task, work->have);
    if (r != 0)
        return execute_outcome(r);
    return act_mask_same(act, work->have, work->action->to) ? 0 : PLAN_OUTCOME_RETRY;
}

/* Enters a process that does have that mask: a member with few ties left to its ancestors, or one whose user chose the
 * mask (pins.c). Returns 0, -errno, or PLAN_OUTCOME_RETRY if processes that would tell are exiting. */
static int enter_member(Work *work, TaskKey task)
{
    const Lineage ask = {.member = true};
    LineageVerdict verdict = LINEAGE_UNTOLD;
    const JournalProcess *from =
        journal_process(work->act->journal, work->process.pid, work->process.start_ticks)
            ? NULL
            : lineage_judge(work->act, &ask, &work->process, task, work->have, &verdict);

    if (from)
        return lineage_adopt(work->act, &work->process, task, from, work->have);
    if (verdict == LINEAGE_VANISHED)
        return PLAN_OUTCOME_RETRY;
    return pins_note(work->act, work->world, &work->process, task, work->have);
}

/* Enters such a process as enter_member() does. *ret is unchanged if there is nothing to enter. */
static int enter_as_is(Work *work, TaskKey task, JournalProcess **ret)
{
    const PlanAction *action = work->action;
    int r;

    if (action->kind != PLAN_KIND_SET_HOME || !act_mask_same(work->act, work->have, action->to) ||
        is_whole(work, work->have) || hwloc_bitmap_iszero(work->have))
        return 0;
    r = look_without_fence(work, task);
    if (r == 0)
        r = enter_member(work, task);
    if (r == 0)
        *ret = journal_process(work->act->journal, work->process.pid, work->process.start_ticks);
    return r;
}

/* Whether the process is an heir only by its session or cgroup, while a fence makes its mask meaningless. */
static bool is_doubtful(Work *work, TaskKey task, const JournalProcess *entry)
{
    const Lineage ask = {.near = true};

    return entry->from_pid != 0 && entry->released_ticks == 0 && work->action->kind == PLAN_KIND_SET_HOME &&
           fences_hold(work->act->fences, work->process.pid) &&
           act_mask_same(work->act, work->have, work->action->to) &&
           !lineage_find(work->act, &ask, &work->process, task, work->have);
}

int execute_look_up(Work *work, TaskKey task, bool *ret_ours)
{
    JournalProcess *entry = NULL;
    int r;

    *ret_ours = false;
    if (!work->act->journal)
        return 0;
    r = lineage_entry(work->act, &work->process, task, work->have, &entry);
    if (r == 0 && (!entry || entry->released_ticks > 0))
        r = enter_as_is(work, task, &entry);
    else if (r == 0 && is_doubtful(work, task, entry))
        r = look_without_fence(work, task);
    if (r < 0)
        return r == -ENOMEM ? r : PLAN_OUTCOME_UNJOURNALLED;
    if (r > 0)
        return r;
    *ret_ours = entry && entry->released_ticks == 0 && act_mask_ours(work->act, entry, task, work->have);
    return 0;
}

int execute_look(Work *work, TaskKey task, bool *ret_ours)
{
    int r = work->act->ops->get_mask(work->act->context, task, work->have);

    *ret_ours = false;
    return r != 0 ? execute_outcome(r) : execute_look_up(work, task, ret_ours);
}

/* Whether the World has a lease of the thread, so that its mask is its home and one more CPU. */
static bool has_lease(const Work *work, TaskKey task)
{
    for (size_t i = 0; i < work->world->n_leases; i++) {
        const TaskKey *key = &work->world->leases[i].task;

        if (key->pid == task.pid && key->tid == task.tid && key->start_ticks == task.start_ticks)
            return hwloc_bitmap_isincluded(work->action->to, work->have);
    }
    return false;
}

static int set_home_thread(void *userdata, TaskKey task)
{
    Work *work = userdata;
    Act *act = work->act;
    bool ours;
    int r = execute_look(work, task, &ours);

    if (r != 0)
        return r;
    if (act_mask_same(act, work->have, work->action->to)) {
        note_home(work);
        return PLAN_OUTCOME_DONE;
    }
    if (ours && has_lease(work, task))
        return PLAN_OUTCOME_DONE;
    if (!ours && !act_mask_same(act, work->have, work->action->from))
        return PLAN_OUTCOME_FOREIGN;

    r = change(work, task, ours, NULL);
    work->n_changed += r == PLAN_OUTCOME_DONE;
    return r;
}

/* Makes one pass. Returns 0, -errno, or an ActResult such as ACT_E_GONE if the threads cannot be listed. */
static int set_home_pass(Work *work, Tally *ret)
{
    CLEANUP_FREE TaskKey *threads = NULL;
    Tally tally = {0};
    size_t n = 0;
    int r = work->act->ops->list_threads(work->act->context, work->process.pid, work->process.start_ticks,
                                         &threads, &n);

    if (r != 0)
        return r;
    work->n_changed = 0;
    work->act->slice.n_parts = work->n_parts;
    for (size_t i = 0; i < n; i++) {
        r = set_home_thread(work, threads[i]);
        if (r == PLAN_OUTCOME_DONE && slice_note(work->act, work->index, threads[i], r) < 0)
            return -ENOMEM;
        if (r < 0)
            return r;
        tally.n[r]++;
    }
    *ret = tally;
    return 0;
}

/* Returns the outcome of a process from those of its threads. Transient failures come first, so that they are
 * retried. */
static PlanOutcome tally_outcome(const Tally *tally)
{
    static const PlanOutcome order[] = {
        PLAN_OUTCOME_UNJOURNALLED, PLAN_OUTCOME_RETRY,   PLAN_OUTCOME_SKIPPED,
        PLAN_OUTCOME_DONE,         PLAN_OUTCOME_REFUSED, PLAN_OUTCOME_FOREIGN,
    };

    for (size_t i = 0; i < ARRAY_SIZE(order); i++)
        if (tally->n[order[i]] > 0)
            return order[i];
    return PLAN_OUTCOME_GONE;
}

int execute_by_threads(Work *work, int (*step)(void *userdata, TaskKey task))
{
    const SliceThreads threads = {
        .world = work->world, .action = work->action, .index = work->index, .step = step, .userdata = work};
    Tally tally = {0};
    int r;

    if (!work->act->ops->changes)
        return PLAN_OUTCOME_SKIPPED;
    if (work->process.start_ticks != work->action->subject.start_ticks)
        return PLAN_OUTCOME_GONE;
    r = slice_threads(work->act, &threads, tally.n);
    if (work->action->kind == PLAN_KIND_RELEASE)
        work->act->statistics.n_left += tally.n[PLAN_OUTCOME_FOREIGN];
    if (r < 0)
        return r;
    return r > 0 ? PLAN_OUTCOME_PARTLY : (int)tally_outcome(&tally);
}

static int set_home_passes(Work *work)
{
    Tally tally = {0};

    for (unsigned i = 0; i < ACT_PASSES_MAX; i++) {
        int r = set_home_pass(work, &tally);

        if (r != 0)
            return execute_outcome(r);
        if (work->n_changed == 0 || tally.n[PLAN_OUTCOME_UNJOURNALLED] > 0)
            return tally_outcome(&tally);
    }
    return PLAN_OUTCOME_RETRY;
}

/* If some threads have the mask now, though others failed, the parts say which. Else these would seem to be pinned by
 * somebody. */
static int set_home(Work *work)
{
    int r;

    if (slice_is_large(work->act, work->world, work->action))
        return execute_by_threads(work, set_home_thread);
    if (work->action->subject.tid != 0)
        return set_home_thread(work, work->action->subject);
    if (work->process.start_ticks != work->action->subject.start_ticks)
        return PLAN_OUTCOME_GONE;

    work->n_parts = work->act->slice.n_parts;
    r = set_home_passes(work);
    if (r != PLAN_OUTCOME_RETRY && r != PLAN_OUTCOME_UNJOURNALLED)
        work->act->slice.n_parts = work->n_parts;
    return r;
}

/* Begins a forced migration to the CPU of the action. Returns false where that is not possible. */
static bool enters_passage(Work *work, JournalPassage *ret)
{
    const PlanAction *action = work->action;

    return work->act->ops->changes && action->cpu.i >= 0 &&
           hwloc_bitmap_isset(action->to, (unsigned)action->cpu.i) &&
           passage_begin(work->act, &work->process, action->subject, action->cpu, ret) == 0;
}

/* The thread already has the right mask; only its CPU changes. The CPU that the plan knows may be a second old. */
static int push(Work *work)
{
    Act *act = work->act;
    const PlanAction *action = work->action;
    JournalPassage passage;
    ActProcess thread;
    bool ours;
    int r = execute_look(work, action->subject, &ours);

    if (r != 0)
        return r;
    if (!act->ops->changes)
        return PLAN_OUTCOME_SKIPPED;
    if (!ours || !act_mask_same(act, work->have, action->to))
        return PLAN_OUTCOME_FOREIGN;
    r = act->ops->read_process(act->context, action->subject.tid, &thread);
    if (r != 0)
        return execute_outcome(r);
    if (thread.cpu != action->from_cpu.i || !enters_passage(work, &passage))
        return PLAN_OUTCOME_RETRY;
    r = change(work, action->subject, true, &passage);
    return r == PLAN_OUTCOME_REFUSED ? PLAN_OUTCOME_RETRY : r; /* it has the mask it should have */
}

static int lend(Work *work)
{
    Act *act = work->act;
    const PlanAction *action = work->action;
    JournalPassage passage;
    bool ours, narrow;
    int r = execute_look(work, action->subject, &ours);

    if (r != 0)
        return r;
    if (ours && act_mask_same(act, work->have, action->to))
        return PLAN_OUTCOME_DONE;
    if (!act_mask_same(act, work->have, action->from))
        return PLAN_OUTCOME_FOREIGN;
    narrow = enters_passage(work, &passage);
    return change(work, action->subject, ours, narrow ? &passage : NULL);
}

static int recall(Work *work)
{
    Act *act = work->act;
    bool ours;
    int r = execute_look(work, work->action->subject, &ours);

    if (r != 0)
        return r;
    if (!act->ops->changes)
        return PLAN_OUTCOME_SKIPPED;
    if (!ours)
        return PLAN_OUTCOME_FOREIGN;
    if (act_mask_same(act, work->have, work->action->to))
        return PLAN_OUTCOME_DONE;
    return change(work, work->action->subject, true, NULL);
}

/* Nothing is journalled, because a page has the same content wherever it lies. */
static int move_pages_of(Work *work)
{
    if (work->process.start_ticks != work->action->subject.start_ticks)
        return PLAN_OUTCOME_GONE;
    if (!work->act->ops->changes || !work->act->orders)
        return PLAN_OUTCOME_SKIPPED;
    return orders_give(work->act->orders, work->action);
}

/* Whether no fence cuts the mask that the action is to give. */
static bool is_admitted(const Work *work)
{
    const PlanAction *action = work->action;
    const PlanKindTraits *kind = plan_kind_traits(action->kind);

    return !kind->masks ||
           fences_admit(work->act->fences, work->process.pid, kind->puts_back ? NULL : action->to);
}

/* Whether the action takes long and must wait for another slice. Those about a CPU never wait.
 * Actions carried out thread by thread have their own share. */
static bool must_wait(const Work *work)
{
    const PlanKindTraits *kind = plan_kind_traits(work->action->kind);

    return kind->masks && !kind->names_cpu && !slice_is_large(work->act, work->world, work->action) &&
           slice_spent(work->act);
}

static int execute_action(Work *work)
{
    Act *act = work->act;
    int r = act->ops->read_process(act->context, work->action->subject.pid, &work->process);

    if (r != 0)
        return execute_outcome(r);
    if (!is_admitted(work))
        return PLAN_OUTCOME_RETRY;
    if (must_wait(work)) {
        slice_leave(act);
        return PLAN_OUTCOME_RETRY;
    }
    switch (work->action->kind) {
    case PLAN_KIND_SET_HOME:
        return set_home(work);
    case PLAN_KIND_LEND:
        return lend(work);
    case PLAN_KIND_RECALL:
        return recall(work);
    case PLAN_KIND_PUSH:
        return push(work);
    case PLAN_KIND_RELEASE:
        return release_action(work);
    case PLAN_KIND_MOVE_PAGES:
        return move_pages_of(work);
    case PLAN_KIND_MAX:
    case PLAN_KIND_INVALID:
        break;
    }
    assert(false);
    return PLAN_OUTCOME_REFUSED;
}

static bool is_release(const Plan *plan, size_t i)
{
    return i < plan->n_actions && plan->actions[i].kind == PLAN_KIND_RELEASE &&
           plan->actions[i].subject.tid == 0 && !release_roams(&plan->actions[i]);
}

/* Releases are consecutive in a plan. The search for children, which looks at every process there is, is made
 * once for all of them. 0 or -ENOMEM. */
static int execute_releases(Work *work, const Plan *plan, size_t first, size_t end, PlanOutcome *outcomes)
{
    int r, q;

    r = restore_begin(work->act, work->world, &work->restore);
    if (r < 0)
        return r;
    for (size_t i = first; i < end && r >= 0; i++) {
        work->action = &plan->actions[i];
        r = execute_action(work);
        if (r >= 0)
            outcomes[i] = (PlanOutcome)r;
    }
    q = restore_finish(&work->restore);
    work->act->statistics.n_left += work->restore.n_left;
    for (size_t i = first; i < end && q < 0; i++)
        if (outcomes[i] == PLAN_OUTCOME_DONE)
            outcomes[i] = PLAN_OUTCOME_RETRY;
    return r == -ENOMEM || q == -ENOMEM ? -ENOMEM : 0;
}

/* Carries out either the actions that go thread by thread, or all others. 0 or -ENOMEM. */
static int execute_some(Work *work, const Plan *plan, bool large, PlanOutcome *outcomes)
{
    const Act *act = work->act;
    size_t end;
    int r = 0;

    for (size_t i = 0; i < plan->n_actions && r >= 0; i = end) {
        end = i + 1;
        work->action = &plan->actions[i];
        work->index = i;
        if (slice_is_large(act, work->world, work->action) != large)
            continue;
        if (!act->journal || act->slice.on || !is_release(plan, i)) {
            r = execute_action(work);
            if (r >= 0)
                outcomes[i] = (PlanOutcome)r;
            continue;
        }
        while (is_release(plan, end))
            end++;
        r = execute_releases(work, plan, i, end, outcomes);
    }
    return MIN(r, 0);
}

static int execute(Work *work, const Plan *plan, PlanOutcome *outcomes)
{
    Act *act = work->act;
    int r = 0;

    /* Most ticks change nothing and compare no masks. */
    if (plan->n_actions > 0 || (act->journal && act->journal->n_passages > 0))
        act_refresh(act);
    if (act->journal) {
        passage_check(act);
        r = act_follow_cpusets(act, work->world);
    }
    /* Processes with very many threads come last, so that they delay nobody. */
    for (unsigned large = 0; large < 2 && r >= 0; large++)
        r = execute_some(work, plan, large > 0, outcomes);
    if (r >= 0 && act->journal)
        r = search_step(act, work->world);
    if (act->journal)
        (void)act_compact(act);
    return MIN(r, 0);
}

int act_execute(Act *act, const World *world, const Plan *plan, PlanOutcome *outcomes)
{
    CLEANUP_BITMAP hwloc_bitmap_t have = NULL, scratch = NULL;
    Work work = {.act = act, .world = world};

    for (size_t i = 0; i < plan->n_actions; i++)
        outcomes[i] = PLAN_OUTCOME_RETRY;
    if (plan->n_actions > 0) { /* most ticks have none */
        work.have = have = hwloc_bitmap_alloc();
        work.scratch = scratch = hwloc_bitmap_alloc();
        if (!have || !scratch)
            return -ENOMEM;
    }
    return execute(&work, plan, outcomes);
}

int act_execute_slice(Act *act, const World *world, const Plan *plan, PlanOutcome *outcomes)
{
    int r;

    slice_begin(act, world, plan);
    r = act_execute(act, world, plan, outcomes);
    slice_end(act);
    return r;
}
