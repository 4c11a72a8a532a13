/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A mask is inherited, so a chain of processes, each of which forks its successor and exits, keeps it as long
 * as nobody catches one of them between two system calls of ours. On a machine with fifty runnable tasks per
 * CPU it is not their speed that makes this hard but our turn: they mostly wait, and so do we. With the
 * highest priority a pass over a thousand processes takes milliseconds in place of seconds, and few of them
 * run meanwhile. This lasts as long as the putting back does; ticks have no need for it, since the kernel
 * favours a task that mostly sleeps. */

#include "act/act.h"

#include <errno.h>
#include <sys/resource.h>

#define RESTORE_TRIES 16U

/* The highest of a normal task: a real-time class could lock up a machine with one CPU. */
#define RESTORE_NICE (-20)

int act_restore_persistently(Act *act, pid_t pid, size_t *ret_restored, size_t *ret_left)
{
    size_t restored = 0, n = 0, left = 0;
    /* It cannot fail for the caller itself; -1 is a priority like any other. */
    int nice_before = getpriority(PRIO_PROCESS, 0), r = -EAGAIN;

    (void)setpriority(PRIO_PROCESS, 0, RESTORE_NICE); /* without the right to, it takes longer */
    for (unsigned i = 0; r == -EAGAIN && i < RESTORE_TRIES; i++, restored += n)
        r = act_restore(act, pid, &n, &left);
    (void)setpriority(PRIO_PROCESS, 0, nice_before);
    *ret_restored = restored;
    *ret_left = left;
    return r;
}
