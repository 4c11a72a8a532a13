/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whether a process has its mask from the daemon or from its user is easiest to tell right after it starts,
 * because parents exit as time goes by. So each discovery passes on the processes started since the last one,
 * and those that started with a mask of ours are judged then (act/undo/lineage.c):
 *
 *     inherited    entered in the journal as any other: put back when the daemon stops, even if its ancestors have
 *                  exited and it has left their session. It is also an heir: put back when the process it has
 *                  the mask from is released
 *     a user's     a "stranger": left alone, even when its parents have exited
 *     neither      looked at again at later discoveries: its parents may be about to turn it into a daemon
 *
 * Most new processes cost one system call, because their mask is not ours. A process that starts and exits
 * between two discoveries is not seen. In a chain of such processes, the one alive at a discovery, or while
 * masks are put back, is judged by the relations it has then. */

#include "act/undo/lineage.h"

/* The parent of a daemon exits within milliseconds, or seconds where hundreds of tasks wait for a CPU. So an
 * undecided process is looked at again after 1, 2, 4, ... discoveries, which costs next to nothing for those
 * that stay undecided. */
#define LOOKS_MAX (1U << 16)

typedef enum Birth {
    BIRTH_DECIDED,
    BIRTH_UNDECIDED,
} Birth;

/* Judges a process that has started. Returns a Birth, or -errno of the journal. */
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

/* Keeps a process for the next time. 0 or -ENOMEM. */
static int put_off(Act *act, ActUndecided who)
{
    if (who.n_looks >= LOOKS_MAX || act->n_undecided >= ACT_UNDECIDED_MAX)
        return 0;
    return APPEND(act->undecided, act->undecided_capacity, act->n_undecided, who);
}

static bool is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0; /* also for 0 */
}

/* Judges a process, or keeps it, also after a failure of the journal. 0 or -ENOMEM. */
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
    act->n_undecided = 0; /* kept entries move up */
    for (size_t i = 0; r == 0 && i < n_again; i++)
        r = follow(act, &given, act->undecided[i], have);
    for (size_t i = 0; r == 0 && i < n; i++) {
        TaskKey task = processes[i];

        task.tid = task.pid;
        r = follow(act, &given, (ActUndecided){.task = task}, have);
    }
    return r;
}
