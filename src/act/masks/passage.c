/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A thread whose mask gains an idle CPU stays where it is; it may be long before the kernel's balancer moves it. So
 * the thread is first narrowed to that CPU, which moves it at once, and then widened. There are some microseconds
 * between the two calls (more if the daemon is preempted there). A fork or clone in between copies the narrow mask;
 * with a program that forks 5,000 times a second, this happens in about one of twenty lends. Such a child would be
 * stuck on one CPU and would look pinned by its user.
 *
 *   narrow {cpu}        wide again               next tick, 20 ms later or more
 *   ----+-------------------+----------------------------+------------------->
 *   "narrow last=L" first   "settled"                    tasks L+1..M are looked at: "checked"
 *
 * PIDs are allocated in ascending order, so every task created since then has a number after the last one allocated
 * before. The check waits for two clock ticks, because a child copies the mask some time before it gets its number.
 * The check is cheap: a dead number costs one failed open, and a busy machine allocates some hundred numbers between
 * two ticks of the daemon.
 *
 * After a crash in between, the journal lines tell the next process what to look for; see act_mask_ours(). Where a
 * container fakes /proc/loadavg, the wrong numbers are checked, and such a child keeps its single CPU. */

#include "act/masks/passage.h"
#include "base/parse.h"

#include "act/undo/lineage.h"

#define NUMBERS_MAX    4096 /* checked at a time; those created during the forced migration come first */
#define FIRST_AGAIN    300  /* the kernel's RESERVED_PIDS: where numbers continue after the largest */
#define SETTLING_TICKS 2U

int passage_begin(Act *act, const ActProcess *process, TaskKey task, CpuIx cpu, JournalPassage *ret)
{
    JournalPassage passage = {
        .pid = process->pid,
        .tid = task.tid,
        .start_ticks = process->start_ticks,
        .born_ticks = task.start_ticks,
        .cpu = cpu,
    };
    int r = act->ops->birth_mark(act->context, &passage.before);

    if (r == 0)
        *ret = passage;
    return r;
}

static bool is_single(hwloc_const_bitmap_t mask, CpuIx cpu)
{
    return hwloc_bitmap_weight(mask) == 1 && hwloc_bitmap_first(mask) == cpu.i;
}

static bool is_narrow(Act *act, TaskKey task, CpuIx cpu)
{
    CLEANUP_BITMAP hwloc_bitmap_t have = hwloc_bitmap_alloc();

    return have && act->ops->get_mask(act->context, task, have) == 0 && is_single(have, cpu);
}

void passage_end(Act *act, TaskKey task, CpuIx cpu)
{
    Journal *journal = act->journal;

    if (!is_narrow(act, task, cpu) && journal_note_settled(journal) < 0 && journal->n_passages > 0)
        journal->passages[journal->n_passages - 1].settled = true;
}

/* Gives the child what it would have inherited a moment later: the present mask of the thread, if that is
 * ours; else the original. */
static int widen(Act *act, const JournalPassage *passage, const JournalProcess *entry, TaskKey child,
                 hwloc_bitmap_t scratch)
{
    TaskKey parent = {.pid = passage->pid, .tid = passage->tid, .start_ticks = passage->born_ticks};

    if (act->ops->get_mask(act->context, parent, scratch) == 0 && act_mask_ours(act, entry, parent, scratch))
        return act_set_mask(act, child, NULL, scratch);
    return act_set_original(act, child, entry->original);
}

static void check_number(Act *act, pid_t number, hwloc_bitmap_t have, hwloc_bitmap_t scratch)
{
    const Lineage ask = {0};
    ActProcess born;
    TaskKey task;

    if (act->ops->read_process(act->context, number, &born) != 0)
        return;
    task = (TaskKey){.pid = number, .tid = number, .start_ticks = born.start_ticks};
    if (act->ops->get_mask(act->context, task, have) != 0 || hwloc_bitmap_weight(have) != 1)
        return;

    for (size_t i = 0; i < act->journal->n_passages; i++) {
        const JournalPassage *passage = &act->journal->passages[i];
        const JournalProcess *entry = journal_process(act->journal, passage->pid, passage->start_ticks);
        TaskKey thread = {.pid = passage->pid, .tid = number, .start_ticks = born.start_ticks};

        if (!entry || passage->tid == number || !is_single(have, passage->cpu) ||
            task.start_ticks + 1 < passage->before.ticks)
            continue;
        if (act->ops->get_mask(act->context, thread, scratch) == 0 ||
            lineage_find(act, &ask, &born, task, have)) {
            (void)widen(act, passage, entry, task, scratch);
            return;
        }
    }
}

/* Numbers as int64_t: that of a damaged journal may be the largest pid_t. Returns how many were too many. */
static uint64_t check_numbers(Act *act, int64_t first, int64_t last, hwloc_bitmap_t have,
                              hwloc_bitmap_t scratch)
{
    for (int64_t number = first; number <= last && number - first < NUMBERS_MAX; number++)
        check_number(act, (pid_t)number, have, scratch);
    return (uint64_t)MAX(last - first + 1 - NUMBERS_MAX, 0);
}

static void check_since(Act *act, pid_t last, pid_t now, hwloc_bitmap_t have, hwloc_bitmap_t scratch)
{
    int64_t first = (int64_t)last + 1;

    if (now < last) { /* wrapped around; most numbers up to that do not exist */
        (void)check_numbers(act, first, INT32_MAX, have, scratch);
        first = FIRST_AGAIN;
    }
    act->statistics.n_unchecked += check_numbers(act, first, now, have, scratch);
}

/* Everything has been checked. Only threads that are still narrow stay on the list. */
static void finish_check(Act *act, ActBirthMark now)
{
    Journal *journal = act->journal;

    for (size_t i = 0; i < journal->n_passages; i++) {
        JournalPassage *passage = &journal->passages[i];
        TaskKey task = {.pid = passage->pid, .tid = passage->tid, .start_ticks = passage->born_ticks};

        passage->before = now;
        if (!passage->settled)
            passage->settled = !is_narrow(act, task, passage->cpu);
    }
    if (journal_note_checked(journal) < 0)
        journal_drop_settled(journal);
}

void passage_check(Act *act)
{
    const Journal *journal = act->journal;
    CLEANUP_BITMAP hwloc_bitmap_t have = NULL, scratch = NULL;
    ActBirthMark now;

    if (journal->n_passages == 0 || act->ops->birth_mark(act->context, &now) != 0 ||
        now.ticks < journal->passages[journal->n_passages - 1].before.ticks + SETTLING_TICKS)
        return;

    have = hwloc_bitmap_alloc();
    scratch = hwloc_bitmap_alloc();
    if (have && scratch) {
        check_since(act, journal->passages[0].before.last, now.last, have, scratch);
        finish_check(act, now);
    }
}
