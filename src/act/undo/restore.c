/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A restore goes the way the masks went: first the threads of journalled processes, then the processes born of these,
 * which inherited a mask unrecorded (act/undo/lineage.h). Both go in passes until one finds nothing: a thread that
 * still has our mask can hand it on.
 *
 * A chain of processes, each of which forks its successor and exits, keeps our mask until one is caught between two of
 * our system calls. With fifty runnable tasks per CPU it is not their speed that makes this hard but our turn: they
 * mostly wait, and so does the daemon. At the highest priority a pass over a thousand processes takes milliseconds
 * instead of seconds, and few of them run meanwhile. The restore keeps it until its end.
 *
 * Only a mask that is exactly one of ours is replaced. A thread that its user pinned meanwhile keeps its mask. A
 * thread born under our mask gets its process's original, although its creator may have had another. */

#include "act/internal.h"
#include "act/undo/lineage.h"
#include "base/time.h"

#include <sys/resource.h>
#include <time.h>

/* A chain of processes shorter-lived than a round escapes one round with some probability p, and all of these
 * with p to this power. */
#define QUIET_ROUNDS 4U

/* Between two looks. */
#define MOMENT_MIN_USEC 2000U
#define MOMENT_MAX_USEC USEC_PER_SEC

/* A task seen inside fork(2) so often in a row may be a later one with its ID, or be in another such call. */
#define INSIDE_MAX 64U

/* A second try, unless the first took so long: both take 330 s at most. */
#define RESTORE_TRIES 2U
#define AGAIN_USEC    (30U * USEC_PER_SEC)

/* Before each pass; a sweep over a thousand processes takes a millisecond. */
#define SWEEPS_MAX 64U
#define SWEEPS_MIN 2U

int restore_failed(Restore *restore, int r)
{
    if (r == ACT_E_GONE) {
        restore->vanished = true;
        return 0;
    }
    if (r > 0)
        r = r == ACT_E_REFUSED ? -EPERM : -EAGAIN;
    if (restore->error == 0)
        restore->error = r;
    return r;
}

int restore_begin(Act *act, const World *world, Restore *ret)
{
    Restore restore = {
        .act = act, .world = world, .have = hwloc_bitmap_alloc(), .begin_usec = time_now_usec()};

    if (!restore.have)
        return -ENOMEM;
    act_refresh(act);
    for (size_t i = 0; i < act->journal->n_processes; i++)
        act->journal->processes[i].selected = act->journal->processes[i].stuck = false;
    /* Cannot fail for the caller itself; -1 is a priority like any other. Without the right to raise it, all
     * takes longer. */
    restore.nice_before = getpriority(PRIO_PROCESS, 0);
    (void)setpriority(PRIO_PROCESS, 0, ACT_RESTORE_NICE);
    *ret = restore;
    return 0;
}

int restore_suspect(Restore *restore, TaskKey task)
{
    Act *act = restore->act;
    ActFork fork = {0};

    if (act->ops->may_fork(act->context, task, &fork) != 0 || fork.state == ACT_FORK_NO)
        return 0;
    return APPEND(act->suspects, act->suspects_capacity, act->n_suspects,
                  (ActSuspect){.task = task, .until_ticks = fork.ticks + fork.most_ticks});
}

/* Whether a suspect has left the call it may have been in: it sleeps, has ended, or has used more CPU time
 * than any such call. If not `patient`, uninterruptible sleep elsewhere counts, too. */
static bool is_cleared(const Act *act, ActSuspect *entry, bool patient)
{
    ActFork fork = {0};

    if (act->ops->waits_in_fork(act->context, entry->task) && ++entry->n_inside < INSIDE_MAX)
        return false;
    entry->n_inside = 0;
    return act->ops->may_fork(act->context, entry->task, &fork) != 0 || fork.state == ACT_FORK_NO ||
           fork.ticks >= entry->until_ticks || (fork.state == ACT_FORK_BLOCKED && !patient);
}

/* Returns whether one was dropped. */
static bool clear_suspects(Act *act, bool patient)
{
    size_t n = 0, n_before = act->n_suspects;

    for (size_t i = 0; i < n_before; i++)
        if (!is_cleared(act, &act->suspects[i], patient))
            act->suspects[n++] = act->suspects[i];
    act->n_suspects = n;
    return n < n_before;
}

/* As lineage_find(). If a process that could tell ended meanwhile, another pass looks again. */
static JournalProcess *find_from(Restore *restore, const Lineage *lineage, const ActProcess *process,
                                 TaskKey task, hwloc_const_bitmap_t mask)
{
    LineageVerdict verdict;
    JournalProcess *from = lineage_judge(restore->act, lineage, process, task, mask, &verdict);

    restore->vanished |= !from && verdict == LINEAGE_VANISHED;
    return from;
}

/* Enters a process that inherited its mask, and selects it, so that its later children have an ancestor in
 * the journal. If it cannot be recorded, that is forgone. Returns the entry, or NULL. */
static JournalProcess *enter_child(Restore *restore, const ActProcess *process, TaskKey task,
                                   const JournalProcess *from, hwloc_const_bitmap_t mask)
{
    Act *act = restore->act;
    JournalProcess *entry = journal_process(act->journal, process->pid, process->start_ticks);

    if (!entry)
        (void)lineage_adopt(act, process, task, from, mask);
    entry = journal_process(act->journal, process->pid, process->start_ticks);
    if (entry)
        entry->selected = true;
    return entry;
}

/* A program that is gone may have restored the thread a moment ago, while that was inside fork(2). */
static void suspect_later(Restore *restore, TaskKey task)
{
    if (restore->act->inherited && restore->n_rounds <= 1 && restore_suspect(restore, task) < 0)
        (void)restore_failed(restore, -ENOMEM);
}

/* Restores the threads of an unjournalled process that can have their mask from an entry. Returns whether any
 * was restored. */
static bool restore_child(Restore *restore, const Lineage *lineage, const ActProcess *process)
{
    Act *act = restore->act;
    CLEANUP_FREE TaskKey *threads = NULL;
    bool changed = false;
    size_t n = 0;
    int r = act->ops->list_threads(act->context, process->pid, process->start_ticks, &threads, &n);

    if (r != 0)
        (void)restore_failed(restore, r);
    for (size_t i = 0; i < n; i++) {
        JournalProcess *from, *entry;
        size_t before = restore->n_restored;

        r = act->ops->get_mask(act->context, threads[i], restore->have);
        restore->vanished |= r == ACT_E_GONE;
        if (r != 0)
            continue;
        from = find_from(restore, lineage, process, threads[i], restore->have);
        entry = from ? enter_child(restore, process, threads[i], from, restore->have) : NULL;
        if (entry) {
            (void)restore_process(restore, entry);
            return restore->n_restored > before;
        }
        if (from)
            changed |= restore_thread(restore, from, threads[i]) > 0;
        else
            suspect_later(restore, threads[i]);
    }
    return changed;
}

static bool is_member(const Restore *restore, const ActProcess *process)
{
    const Process *known = act_known(restore->world, process->pid, process->start_ticks);

    return known && !known->gone && known->group.i >= 0;
}

/* Whether not to look for a process among children: it is restored as far as it is to be, or will be with
 * another one. An heir whose source has ended is not: nothing else would restore it. */
static bool is_settled(const Restore *restore, const ActProcess *process)
{
    const Act *act = restore->act;
    const JournalProcess *entry = journal_process(act->journal, process->pid, process->start_ticks);
    ActProcess from;

    if (!entry)
        return false;
    if (entry->selected || entry->released_ticks > 0 || entry->from_pid == 0 || is_member(restore, process))
        return true;
    return act->ops->read_process(act->context, entry->from_pid, &from) == 0 &&
           from.start_ticks == entry->from_ticks && !from.ended;
}

/* Stops at the time limit; the rest counts as changed. */
static bool restore_children_pass(Restore *restore, const Lineage *lineage)
{
    bool changed = false;

    for (size_t i = 0; i < lineage->n; i++) {
        const ActProcess *process = &lineage->processes[i];

        if (time_now_usec() >= restore->begin_usec + ACT_RESTORE_USEC)
            return true;
        if (is_settled(restore, process) || !find_from(restore, lineage, process, (TaskKey){0}, NULL))
            continue;
        /* A managed child without an entry, such as one not judged yet, keeps its mask but is entered: its
         * ancestors are about to get their own masks back, and its later children descend from it alone. */
        if (is_member(restore, process))
            (void)lineage_adopt_process(restore->act, lineage, process, restore->have);
        else
            changed |= restore_child(restore, lineage, process);
    }
    return changed;
}

/* Passes look at everything, threads included, but take milliseconds between listing a process and setting
 * its mask. They never meet a chain alive in which each process forks the next and exits. So sweeps come
 * first: they look at first threads only, and set a mask as soon as they see it. */

typedef struct Sweep {
    Restore *restore;
    GivenMasks given;          /* the masks of selected entries */
    hwloc_const_bitmap_t have; /* the mask of the process about to be visited */
    bool changed;
} Sweep;

static bool sweep_wants(void *userdata, hwloc_const_bitmap_t mask)
{
    Sweep *sweep = userdata;

    sweep->have = mask;
    return act_given_has(sweep->restore->act, &sweep->given, mask);
}

static void sweep_visit(void *userdata, const ActProcess *process)
{
    Sweep *sweep = userdata;
    Restore *restore = sweep->restore;
    const Lineage ask = {.selected = true};
    TaskKey task = {.pid = process->pid, .tid = process->pid, .start_ticks = process->start_ticks};
    JournalProcess *from, *entry;

    if (is_settled(restore, process))
        return;
    from = find_from(restore, &ask, process, task, sweep->have);
    if (from && is_member(restore, process)) {
        (void)lineage_adopt_process(restore->act, &ask, process, restore->have);
        return;
    }
    if (!from || restore_thread(restore, from, task) <= 0)
        return;
    sweep->changed = true;
    entry = enter_child(restore, process, task, from, restore->have);
    if (entry)
        (void)restore_process(restore, entry); /* its other threads */
}

/* A quiet pass or sweep means that nothing is left, unless processes were gone before they could be read:
 * each may have handed its mask to a child not listed yet. Then it takes several in a row. */
static bool is_over(unsigned n_quiet, bool vanished)
{
    return n_quiet >= QUIET_ROUNDS || (n_quiet > 0 && !vanished);
}

/* A successor has a higher PID than its parent, so it is still ahead of the sweep, except when PIDs wrap
 * around. The next sweep meets it. */
static bool sweeps_are_over(unsigned n_quiet, bool vanished)
{
    return n_quiet >= SWEEPS_MIN && is_over(n_quiet, vanished);
}

/* Does what it can; the following pass finds out what that was. */
static int restore_sweeps(Restore *restore)
{
    Sweep sweep = {.restore = restore};
    ActWalk walk = {.wants = sweep_wants,
                    .visit = sweep_visit,
                    .userdata = &sweep,
                    .until_usec = restore->begin_usec + ACT_RESTORE_USEC};
    unsigned n_quiet = 0;
    int r = act_given_gather(restore->act, true, &sweep.given);

    for (unsigned i = 0;
         r == 0 && i < SWEEPS_MAX && !sweeps_are_over(n_quiet, walk.n_gone > 0 || restore->vanished); i++) {
        sweep.changed = restore->vanished = false;
        r = restore->act->ops->walk(restore->act->context, &walk);
        n_quiet = sweep.changed ? 0 : n_quiet + 1;
    }
    act_given_done(&sweep.given);
    return r < 0 ? restore_failed(restore, r) : 0;
}

/* Nothing reports that a call has ended in another process, so this looks again after a moment. Looking takes
 * only a quarter of the time: the task waited for may need this very CPU, or wait for one that does, and our
 * priority would keep it off. */
static uint64_t moment(uint64_t round_usec)
{
    return CLAMP(3 * round_usec, MOMENT_MIN_USEC, MOMENT_MAX_USEC);
}

static void wait_a_moment(Restore *restore, uint64_t usec)
{
    const struct timespec time = time_spec(usec);

    if (usec > 0)
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    restore->now_usec = time_now_usec();
}

/* One pass. 1: nothing is left; 0: that is not certain; or -errno. */
static int restore_pass(Restore *restore)
{
    CLEANUP(lineage_done) Lineage lineage = {0};
    int r = lineage_init(restore->act, &lineage);

    if (r < 0)
        return r;
    lineage.selected = true;
    restore->vanished = false;
    restore->n_quiet = restore_children_pass(restore, &lineage) ? 0 : restore->n_quiet + 1;
    return is_over(restore->n_quiet, restore->vanished);
}

/* Why no more rounds are made, or 0. */
static int give_up(const Restore *restore)
{
    if (restore->n_rounds < ACT_PASSES_MAX)
        return 0;
    if (restore->act->n_suspects == 0 && restore->n_passes >= ACT_PASSES_MAX)
        return -EAGAIN;
    if (restore->now_usec < restore->progress_usec + restore->act->settle_usec &&
        restore->now_usec < restore->begin_usec + ACT_RESTORE_USEC)
        return 0;
    return restore->act->n_suspects > 0 ? -ETIMEDOUT : -EAGAIN;
}

/* While waiting for suspects, ever fewer rounds make a pass: the first, second, fourth, eighth and so on. A
 * pass reads a file of each process, which may take seconds (ActOps.waits_in_fork). */
static bool passes_now(unsigned n_rounds)
{
    return (n_rounds & (n_rounds - 1)) == 0;
}

/* A round is sweeps and a pass. The restore is over when a round that began without suspects finds nothing: a
 * call that ends during a round may yield a child behind it. */
int restore_children_step(Restore *restore, uint64_t *ret_moment_usec)
{
    size_t n_restored = restore->n_restored;
    bool settled, cleared;
    uint64_t before;
    int r;

    before = time_now_usec();
    if (restore->n_rounds++ == 0) {
        restore->begin_usec = restore->begin_usec > 0 ? restore->begin_usec : before;
        restore->progress_usec = before;
    }
    cleared = clear_suspects(restore->act, before < restore->progress_usec + restore->act->stuck_usec);
    settled = restore->act->n_suspects == 0;
    r = restore_sweeps(restore);
    if (r == 0 && (settled || passes_now(restore->n_rounds))) {
        restore->n_passes += settled;
        r = restore_pass(restore);
    }
    if (r < 0)
        return restore_failed(restore, r);
    restore->now_usec = time_now_usec();
    if (r > 0 && settled && restore->act->n_suspects == 0)
        return 0;
    if (cleared || restore->n_restored > n_restored)
        restore->progress_usec = restore->now_usec;
    r = give_up(restore);
    if (r < 0)
        return restore_failed(restore, r);
    *ret_moment_usec = restore->n_restored > n_restored ? 0 : moment(restore->now_usec - before);
    return 1;
}

static int restore_children(Restore *restore)
{
    uint64_t usec;
    int r;

    while ((r = restore_children_step(restore, &usec)) > 0)
        wait_a_moment(restore, usec);
    return r;
}

/* Records that selected processes have their own masks again. Failing to do so is no failure to restore: at
 * worst the next start looks at them again. */
static void note_released(Restore *restore)
{
    Journal *journal = restore->act->journal;
    ActBirthMark now = {.ticks = UINT64_MAX};

    (void)restore->act->ops->birth_mark(restore->act->context, &now);
    for (size_t i = 0; i < journal->n_processes; i++) {
        JournalProcess *entry = &journal->processes[i];

        if (entry->selected && !entry->stuck && entry->released_ticks == 0)
            (void)journal_note_released(journal, entry, now.ticks);
    }
}

bool restore_is_heir(const Restore *restore, const JournalProcess *entry)
{
    const JournalProcess *from;
    ActProcess process = {.pid = entry->pid, .start_ticks = entry->start_ticks};

    if (entry->selected || entry->from_pid == 0 || entry->released_ticks > 0 || is_member(restore, &process))
        return false;
    from = journal_process(restore->act->journal, entry->from_pid, entry->from_ticks);
    return from && from->selected;
}

/* Restores heirs of restored processes, and heirs of these. */
static void restore_heirs(Restore *restore)
{
    const Journal *journal = restore->act->journal;
    bool found = true;

    for (unsigned i = 0; found && i < ACT_PASSES_MAX; i++) {
        found = false;
        for (size_t k = 0; k < journal->n_processes; k++)
            if (restore_is_heir(restore, &journal->processes[k])) {
                (void)restore_process(restore, &journal->processes[k]);
                found = true;
            }
    }
}

int restore_finish(Restore *restore)
{
    int r;

    restore_heirs(restore);
    r = restore->act->journal->n_processes > 0 ? restore_children(restore) : 0;

    (void)setpriority(PRIO_PROCESS, 0, restore->nice_before);
    return restore_end(restore, r);
}

int restore_end(Restore *restore, int r)
{
    if (restore->error == 0)
        note_released(restore);
    hwloc_bitmap_free(restore->have);
    restore->have = NULL;
    return r;
}

int restore_result(const Restore *restore)
{
    return restore->error < 0 ? restore->error : restore->stuck_error;
}

bool restore_wants(const ActSelection *selection, const JournalProcess *entry)
{
    return !selection || selection->wants(selection->userdata, entry->pid, entry->workload);
}

static bool is_alive(Act *act, const JournalProcess *entry)
{
    ActProcess now;

    return act->ops->read_process(act->context, entry->pid, &now) == 0 &&
           now.start_ticks == entry->start_ticks;
}

/* While no daemon ran, somebody may have moved the process, or renamed its cgroup. */
static void look_where(Act *act, JournalProcess *entry)
{
    if (!is_alive(act, entry) || act->ops->get_place(act->context, entry->pid, &entry->place_now) != 0 ||
        !is_alive(act, entry))
        entry->place_now = ACT_PLACE_UNKNOWN;
}

static int restore_journalled(Act *act, const ActSelection *selection, Restore *ret)
{
    Journal *journal = act->journal;
    int r = restore_begin(act, NULL, ret);

    if (r < 0)
        return r;
    for (size_t i = 0; i < journal->n_processes; i++) {
        if (!restore_wants(selection, &journal->processes[i]))
            continue;
        /* Released ones, too: what is left of their children is restored now. */
        journal->processes[i].selected = true;
        if (act->inherited)
            look_where(act, &journal->processes[i]);
        if (journal->processes[i].released_ticks == 0)
            (void)restore_process(ret, &journal->processes[i]);
    }
    (void)restore_finish(ret);
    return ret->error;
}

/* Everything is restored, except threads of some processes. Only these stay in the journal: a user may choose a mask
 * that was ours. */
static int keep_stuck(Act *act)
{
    CLEANUP(lineage_done) Lineage lineage = {0};
    int r = lineage_init(act, &lineage);

    return r < 0 ? r : journal_compact(act->journal, lineage.processes, lineage.n);
}

int act_restore(Act *act, const ActSelection *selection, size_t *ret_restored, size_t *ret_left)
{
    Restore restore = {0};
    int r = 0, q = 0;

    /* All fences first, as they would cut restored masks. Those still wanted go up again. */
    if (act->fences)
        q = fences_restore(act->fences);
    if (act->journal)
        r = restore_journalled(act, selection, &restore);
    if (r == 0)
        r = q;
    /* Threads found meanwhile are suspects now, and stay so. */
    if (!selection && restore.n_rounds > 0)
        act->inherited = false;
    if (r == 0 && !selection && act->journal)
        r = restore.stuck_error < 0 ? keep_stuck(act) : journal_clear(act->journal);
    if (r == 0)
        r = restore.stuck_error;
    if (ret_restored)
        *ret_restored = restore.n_restored;
    if (ret_left)
        *ret_left = restore.n_left;
    return r;
}

/* Not after -ETIMEDOUT, which took long enough. */
int act_restore_persistently(Act *act, const ActSelection *selection, size_t *ret_restored, size_t *ret_left)
{
    size_t restored = 0, n = 0, left = 0;
    uint64_t until = time_now_usec() + AGAIN_USEC;
    int r = -EAGAIN;

    for (unsigned i = 0; r == -EAGAIN && i < RESTORE_TRIES && (i == 0 || time_now_usec() < until);
         i++, restored += n)
        r = act_restore(act, selection, &n, &left);
    *ret_restored = restored;
    *ret_left = left;
    return r;
}
