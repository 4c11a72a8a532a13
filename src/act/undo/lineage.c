/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A mask set by sched_setaffinity(2) is inherited by every thread and process born under it, also by those
 * that no policy matches. These must get back what their ancestor had; a process that its user pinned to the
 * same CPUs must not. The kernel does not say where a mask comes from, so it is inferred. The mask must be
 * exactly one that a journal entry got from us, the process must be born while the entry was under ours, and
 * one of these must hold, tried in this order:
 *
 *   ancestor   The entry is an ancestor, through living parents.
 *   none       A living parent that does not adopt orphans made the process. If the chain of such parents
 *              ends without an entry, no ancestor was ours, and the mask is the user's. An innocent process
 *              looks like this, even one of the same session.
 *   group,     The chain ends at an orphan, whose real parent has ended. The orphan is in the entry's
 *   session    process group or session; or the leader of its session, always an ancestor, is the entry or
 *              descends from it.
 *   place      Nothing else is left of a daemon. It is in the same cgroups as the entry is or was. If these are the
 *              roots, which hold everything, it must also be in a session whose leader has ended, as after
 *              fork, setsid, fork, or belong to a group that a policy has placed.
 *
 *      entry(100)---fork--->200---setsid, fork--->201         201: parent 1, session 200, and 200 has ended
 *          |                 +-- exit                              found by place, or in the journal (births.c)
 *          +-----fork--->300---fork--->301---taskset           301: found by ancestor: a limit, see below
 *      shell(90)---fork--->400---taskset                       400: parent 90 lives, is older than the entry: innocent
 *
 * Orphans are adopted by the first process of a PID namespace, and by subreapers. The kernel does not show
 * these, so one is inferred from a child whose session is neither its own nor its parent's: sessions are
 * inherited or begun, never joined.
 *
 * Evidence fades as parents end. So a process born with a mask of ours is judged in the first tick that sees
 * it, and the verdict is in the journal (births.c).
 *
 * What this does badly. Three kinds of processes pinned by hand to exactly the home are widened when
 * numaplace stops: a child of a managed process; a daemon so pinned in a managed process's session or cgroup
 * whose parent ended within a tick; and one pinned there after its parents had ended. Three kinds of children
 * keep our mask: one that calls setsid and whose parent ends, all within a tick and in the root cgroups; one
 * whose parents end while no daemon runs, after its cgroup was renamed or it was moved, if the entry has ended,
 * too; and an orphan below a subreaper of its own session. A process that the first process started itself, in
 * the session or cgroup of a managed process, looks like an adopted orphan; services of a service manager are
 * not there. Connectors and performance events would report every fork, but need capabilities, or a buffer per
 * CPU that overflows in the very fork storms it is for; and they say nothing of times without a daemon. */

#include "act/undo/lineage.h"

#include "base/parse.h"

#define GENERATIONS_MAX 64U /* ancestors examined; bounds a loop that a racing list could contain */

/* Whether a thread has its mask from an entry. */
typedef struct Question {
    Act *act;
    const Lineage *lineage;
    TaskKey task;
    hwloc_const_bitmap_t mask; /* NULL: any */
    bool stranger;             /* found out: no ancestor can be ours */
    bool vanished;             /* a process that was asked about ended meanwhile */
    ActProcess known;          /* the last one read, without a list */
} Question;

/* How often to ask again when parents end meanwhile. */
#define TRIES_MAX 4U

enum {
    REAPER_UNKNOWN,
    REAPER_NO,
    REAPER_YES
};

int lineage_init(Act *act, Lineage *ret)
{
    CLEANUP(lineage_done) Lineage lineage = {0};
    int r = act->ops->list_processes(act->context, &lineage.processes, &lineage.n);

    if (r != 0)
        return r < 0 ? r : -EAGAIN;
    lineage.reapers = calloc(lineage.n + 1, sizeof(*lineage.reapers));
    if (!lineage.reapers)
        return -ENOMEM;
    *ret = lineage;
    lineage = (Lineage){0};
    return 0;
}

void lineage_done(Lineage *lineage)
{
    free(lineage->processes);
    free(lineage->reapers);
    *lineage = (Lineage){0};
}

/* The index of a process in the list, or its length. */
static size_t find_index(const Lineage *lineage, pid_t pid)
{
    size_t at = LOWER_BOUND(i, lineage->n, lineage->processes[i].pid < pid);

    return at < lineage->n && lineage->processes[at].pid == pid ? at : lineage->n;
}

/* Without a list each process costs system calls, and the one asked about may fork meanwhile. So PID 1, the
 * parent of orphans, is not read, and the last one is not read twice. */
static bool find_process(Question *q, pid_t pid, ActProcess *ret)
{
    size_t at;

    if (q->lineage->n == 0) {
        if (pid == 1)
            q->known = (ActProcess){.pid = 1};
        else if (q->known.pid != pid && q->act->ops->read_process(q->act->context, pid, &q->known) != 0) {
            q->known = (ActProcess){0};
            return false;
        }
        *ret = q->known;
        return true;
    }
    at = find_index(q->lineage, pid);
    if (at < q->lineage->n)
        *ret = q->lineage->processes[at];
    return at < q->lineage->n;
}

/* Whether a task born then can have inherited from the process: not before that got our mask, nor after it
 * got its own back. A child copies the mask before its start time is taken. */
static bool born_under(const JournalProcess *process, uint64_t born_ticks)
{
    return MAX(process->start_ticks, process->since_ticks) <= born_ticks &&
           (process->released_ticks == 0 || born_ticks <= process->released_ticks);
}

static bool may_have(const Question *q, const JournalProcess *entry, uint64_t born_ticks)
{
    return (!q->lineage->selected || entry->selected) && born_under(entry, born_ticks) &&
           (!q->mask || act_mask_ours(q->act, entry, q->task, q->mask));
}

static JournalProcess *find_ancestor(Question *q, const ActProcess *process)
{
    ActProcess child = *process, parent;

    for (unsigned i = 0; i < GENERATIONS_MAX && child.parent > 0; i++) {
        JournalProcess *entry;

        if (!find_process(q, child.parent, &parent) ||
            journal_is_stranger(q->act->journal, parent.pid, parent.start_ticks))
            return NULL;
        entry = journal_process(q->act->journal, parent.pid, parent.start_ticks);
        if (entry && may_have(q, entry, child.start_ticks))
            return entry;
        child = parent;
    }
    return NULL;
}

/* Whether a process is the first of a PID namespace. */
static bool is_first(const Question *q, pid_t pid)
{
    size_t at = find_index(q->lineage, pid);
    uint8_t *known = at < q->lineage->n ? &q->lineage->reapers[at] : NULL;
    bool first;

    if (known && *known != REAPER_UNKNOWN)
        return *known == REAPER_YES;
    first = pid == 1 || q->act->ops->is_first(q->act->context, pid);
    if (known)
        *known = first ? REAPER_YES : REAPER_NO;
    return first;
}

/* Whether `parent` may have adopted the child. */
static bool may_be_adopted(const Question *q, const ActProcess *child, const ActProcess *parent)
{
    return (child->session != child->pid && child->session != parent->session) || is_first(q, parent->pid);
}

/* Climbs to the orphan that a process is or descends from. False: the parents that made it live, up to the
 * first process or a known stranger. */
static bool find_orphan(Question *q, const ActProcess *process, ActProcess *ret)
{
    ActProcess child = *process, parent;

    for (unsigned i = 0; i < GENERATIONS_MAX; i++) {
        /* A child whose parent is missing, has ended or is ending is about to be adopted. A task that reuses the
         * parent's PID is not its parent. An ending process has lost its group and session; its children have not. */
        if (child.parent <= 0 || !find_process(q, child.parent, &parent) || parent.ended ||
            parent.session < 0 || parent.start_ticks > child.start_ticks ||
            may_be_adopted(q, &child, &parent)) {
            *ret = child;
            return true;
        }
        q->stranger = journal_is_stranger(q->act->journal, parent.pid, parent.start_ticks);
        if (q->stranger)
            return false;
        child = parent;
    }
    return false;
}

/* Whether a group or session of this number is the entry's, and no later one: its leader, if alive, is not
 * younger than the entry. */
static bool is_same(Question *q, const JournalProcess *entry, pid_t number)
{
    ActProcess leader;

    return !find_process(q, number, &leader) ||
           leader.start_ticks <= MAX(entry->start_ticks, entry->since_ticks);
}

static JournalProcess *find_relative(Question *q, const ActProcess *orphan, bool by_group)
{
    const Journal *journal = q->act->journal;
    pid_t number = by_group ? orphan->pgrp : orphan->session;

    /* 0: its session is outside our PID namespace; -1: it is exiting. */
    if (number <= 0)
        return NULL;
    for (size_t i = 0; i < journal->n_processes; i++) {
        JournalProcess *entry = &journal->processes[i];

        if (((by_group ? entry->pgrp : entry->session) == number || entry->pid == number) &&
            may_have(q, entry, orphan->start_ticks) && is_same(q, entry, number))
            return entry;
    }
    return NULL;
}

/* The leader of its session, if it still exists. */
static bool find_leader(Question *q, const ActProcess *process, ActProcess *ret)
{
    return process->session > 0 && process->session != process->pid &&
           find_process(q, process->session, ret) && ret->start_ticks <= process->start_ticks;
}

/* Whether the orphan's first thread has a mask that the entry got from us. */
static bool has_mask(Question *q, const ActProcess *orphan, const JournalProcess *entry)
{
    TaskKey task = {.pid = orphan->pid, .tid = orphan->pid, .start_ticks = orphan->start_ticks};
    CLEANUP_BITMAP hwloc_bitmap_t have = hwloc_bitmap_alloc();
    int r = have ? q->act->ops->get_mask(q->act->context, task, have) : -ENOMEM;

    q->vanished |= r == ACT_E_GONE;
    return r == 0 && act_mask_ours(q->act, entry, task, have);
}

/* The weakest tie: cgroups. */
static JournalProcess *find_neighbour(Question *q, const ActProcess *orphan, const ActProcess *process)
{
    const Journal *journal = q->act->journal;
    bool left = orphan->session > 0 && orphan->session != orphan->pid;
    uint64_t place;

    if (q->act->ops->get_place(q->act->context, orphan->pid, &place) != 0) {
        q->vanished = true;
        return NULL;
    }
    if (place == ACT_PLACE_UNKNOWN || (place == ACT_PLACE_ROOT && !left && !q->lineage->member))
        return NULL;
    for (size_t i = 0; i < journal->n_processes; i++) {
        JournalProcess *entry = &journal->processes[i];

        if ((entry->place == place || entry->place_now == place) && may_have(q, entry, orphan->start_ticks) &&
            (orphan->pid == process->pid || has_mask(q, orphan, entry)))
            return entry;
    }
    return NULL;
}

/* Whether some entry can be an ancestor of the orphan. */
static bool may_descend(const Question *q, const ActProcess *orphan)
{
    const Journal *journal = q->act->journal;

    for (size_t i = 0; i < journal->n_processes; i++)
        if (may_have(q, &journal->processes[i], orphan->start_ticks))
            return true;
    return false;
}

/* Judges by the orphan that the process is or descends from, then by that of the orphan's session leader, and
 * so on. */
static JournalProcess *find_by_orphan(Question *q, const ActProcess *process)
{
    ActProcess from = *process, orphan, leader;

    for (unsigned i = 0; i < GENERATIONS_MAX && find_orphan(q, &from, &orphan); i++) {
        JournalProcess *found;

        q->stranger = !may_descend(q, &orphan);
        if (q->stranger)
            return NULL;
        /* An orphan in the journal is an ancestor of the process, and was considered. */
        if (orphan.pid != process->pid && journal_process(q->act->journal, orphan.pid, orphan.start_ticks))
            return NULL;
        found = find_relative(q, &orphan, true);
        if (!found)
            found = find_relative(q, &orphan, false);
        if (found)
            return found;
        if (!find_leader(q, &orphan, &leader))
            return find_neighbour(q, &orphan, process);
        found = find_ancestor(q, &leader);
        if (found || leader.ended)
            return found ? found : find_neighbour(q, &orphan, process);
        from = leader; /* it made the orphan, so both are ours or neither is */
    }
    return NULL;
}

JournalProcess *lineage_judge(Act *act, const Lineage *lineage, const ActProcess *process, TaskKey task,
                              hwloc_const_bitmap_t mask, LineageVerdict *ret_verdict)
{
    Question question = {.act = act, .lineage = lineage, .task = task, .mask = mask, .vanished = true};
    JournalProcess *found = NULL;

    question.stranger = journal_is_stranger(act->journal, process->pid, process->start_ticks);
    /* A list would give the same answer again. */
    for (unsigned i = 0;
         !found && !question.stranger && question.vanished && i < (lineage->n > 0 ? 1 : TRIES_MAX); i++) {
        question.vanished = false;
        question.known = (ActProcess){0};
        found = find_ancestor(&question, process);
        if (!found && !lineage->near)
            found = find_by_orphan(&question, process);
    }
    *ret_verdict = question.stranger   ? LINEAGE_STRANGER
                   : question.vanished ? LINEAGE_VANISHED
                                       : LINEAGE_UNTOLD;
    return found;
}

JournalProcess *lineage_find(Act *act, const Lineage *lineage, const ActProcess *process, TaskKey task,
                             hwloc_const_bitmap_t mask)
{
    LineageVerdict verdict;

    return lineage_judge(act, lineage, process, task, mask, &verdict);
}

/* Journals each mask given of which the kernel may show `shown`, without offline CPUs: the process may have any of them
 * once these are back. */
static int note_given(Act *act, const JournalProcess *from, JournalChange *change, hwloc_const_bitmap_t shown)
{
    CpuMask *applied = from->applied; /* stays when entries move */
    uint32_t n = from->n_applied;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < n; i++)
        if (act_mask_same(act, applied[i], shown)) {
            change->mask = applied[i];
            r = act_note_change(act, change);
        }
    if (r < 0 || change->mask)
        return r;
    change->mask = shown; /* cut by a cpuset */
    return act_note_change(act, change);
}

int lineage_adopt(Act *act, const ActProcess *process, TaskKey task, const JournalProcess *from,
                  hwloc_const_bitmap_t mask)
{
    JournalChange change = {
        .process = *process,
        .task = task,
        .original = journal_original(act->journal, from, task),
        .since_ticks = MAX(process->start_ticks, 1U),
    };
    pid_t pid = from->pid;
    uint64_t start_ticks = from->start_ticks;
    const char *workload = from->workload;
    JournalProcess *entry;
    int r = note_given(act, from, &change, mask);

    if (r < 0)
        return r;
    entry = journal_process(act->journal, process->pid, process->start_ticks);
    if (entry && (pid != entry->pid || start_ticks != entry->start_ticks)) {
        entry->from_pid = pid;
        entry->from_ticks = start_ticks;
        entry->workload = workload;
    }
    return 0;
}

int lineage_entry(Act *act, const ActProcess *process, TaskKey task, hwloc_const_bitmap_t mask,
                  JournalProcess **ret)
{
    const Lineage ask = {0};
    JournalProcess *entry = journal_process(act->journal, process->pid, process->start_ticks), *from;
    int r;

    if (!entry && !hwloc_bitmap_isincluded(act->online, mask)) {
        from = lineage_find(act, &ask, process, task, mask);
        if (from) {
            r = lineage_adopt(act, process, task, from, mask);
            if (r < 0)
                return r;
            entry = journal_process(act->journal, process->pid, process->start_ticks);
        }
    }
    *ret = entry;
    return 0;
}

int lineage_adopt_process(Act *act, const Lineage *lineage, const ActProcess *process, hwloc_bitmap_t have)
{
    CLEANUP_FREE TaskKey *threads = NULL;
    size_t n = 0;
    int r = act->ops->list_threads(act->context, process->pid, process->start_ticks, &threads, &n);

    for (size_t i = 0; r == 0 && i < n; i++) {
        JournalProcess *from;

        if (act->ops->get_mask(act->context, threads[i], have) != 0)
            continue;
        from = lineage_find(act, lineage, process, threads[i], have);
        if (from)
            r = lineage_adopt(act, process, threads[i], from, have);
    }
    return MIN(r, 0);
}

int lineage_adopt_all(Act *act, const Lineage *lineage)
{
    CLEANUP_BITMAP hwloc_bitmap_t have = hwloc_bitmap_alloc();
    int r = have ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < lineage->n; i++) {
        const ActProcess *process = &lineage->processes[i];

        if (!journal_process(act->journal, process->pid, process->start_ticks) &&
            lineage_find(act, lineage, process, (TaskKey){0}, NULL))
            r = lineage_adopt_process(act, lineage, process, have);
    }
    return r;
}
