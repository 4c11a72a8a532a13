/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whether a process has a mask from us or from its user is told best when it is born: the longer one waits, the fewer
 * of those lived who bore it. So each discovery hands over the processes that have begun since the last one, and those
 * that were born with a mask of ours are judged then (act/undo/lineage.c):
 *
 *     inherited    entered in the journal as any other: put back when we stop, also when its ancestors have ended and
 *                  it has left their session; and an heir, put back when the one it has the mask from is released
 *     a user's     a "stranger": left alone, also when those who bore it have ended
 *     neither      looked at again by the next discoveries: its parents may be in the middle of becoming a daemon
 *
 * Most newcomers cost one system call, since their mask is not ours. What begins and ends between two looks is not
 * seen. Of a chain of such processes, whoever lives at a discovery, or while masks are put back, is judged by what
 * ties it then. */

#include "act/undo/lineage.h"

/* Who bears a daemon ends within milliseconds, or seconds where hundreds wait for a CPU. So one is looked at again
 * after 1, 2, 4, ... discoveries, which costs next to nothing for those of whom nothing is ever found out. */
#define LOOKS_MAX (1U << 16)

typedef enum Birth {
    BIRTH_DECIDED,
    BIRTH_UNDECIDED,
} Birth;

/* One that has begun. A Birth, or -errno of the journal. */
static int follow_birth(Act *act, const GivenMasks *given, TaskKey task, hwloc_bitmap_t have)
{
    const Lineage ask = {0};
    const JournalProcess *from;
    ActProcess process;
    LineageVerdict verdict;

    if (journal_process(act->journal, task.pid, task.start_ticks) ||
        act->ops->get_mask(act->context, task, have) != 0 || !act_given_has(act, given, have) ||
        hwloc_bitmap_isincluded(act->online, have) ||
        act->ops->read_process(act->context, task.pid, &process) != 0 ||
        process.start_ticks != task.start_ticks)
        return BIRTH_DECIDED;
    from = lineage_judge(act, &ask, &process, task, have, &verdict);
    if (from)
        return lineage_adopt(act, &process, task, from, have);
    return verdict == LINEAGE_STRANGER ? journal_note_stranger(act->journal, process.pid, process.start_ticks)
                                       : BIRTH_UNDECIDED;
}

/* Keeps one for the next time. 0 or -ENOMEM. */
static int put_off(Act *act, ActUndecided who)
{
    if (who.n_looks >= LOOKS_MAX || act->n_undecided >= ACT_UNDECIDED_MAX)
        return 0;
    return APPEND(act->undecided, act->undecided_capacity, act->n_undecided, who);
}

static bool is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0; /* 0, too */
}

/* What is -errno of the journal is tried again as well. 0 or -ENOMEM. */
static int follow(Act *act, const GivenMasks *given, ActUndecided who, hwloc_bitmap_t have)
{
    int r = is_power_of_two(who.n_looks) ? follow_birth(act, given, who.task, have) : BIRTH_UNDECIDED;

    who.n_looks++;
    return r == -ENOMEM ? r : r == BIRTH_DECIDED ? 0 : put_off(act, who);
}

int act_follow_births(Act *act, const TaskKey *processes, size_t n)
{
    CLEANUP(act_given_done) GivenMasks given = {0};
    CLEANUP_BITMAP hwloc_bitmap_t have = NULL;
    size_t n_again = act->n_undecided;
    int r;

    if (!act->journal || act->journal->n_processes == 0 || n + n_again == 0) {
        act->n_undecided = 0;
        return 0;
    }
    have = hwloc_bitmap_alloc();
    act_refresh(act);
    r = have ? act_given_gather(act, false, &given) : -ENOMEM;
    act->n_undecided = 0; /* what is kept moves up */
    for (size_t i = 0; r == 0 && i < n_again; i++)
        r = follow(act, &given, act->undecided[i], have);
    for (size_t i = 0; r == 0 && i < n; i++) {
        TaskKey task = processes[i];

        task.tid = task.pid;
        r = follow(act, &given, (ActUndecided){.task = task}, have);
    }
    return r;
}
