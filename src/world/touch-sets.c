/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sets of threads that share memory: each thread's buddy, that one's buddy, and so on (P14).
 *
 * Sixteen threads that share all become one set by and by: after a round or two most have a buddy, but not all are tied
 * together, and five of them may look like a set that fits a node. Of a true set all that is shared is shared within;
 * of five of sixteen, a third. So a set is believed when it has stayed the same for a round, and three quarters of what
 * it shared in that were within. */

#include "world/touches.h"

/* So much more than with others a set shares within. */
#define CLOSED 3

/* A buddy comes before the thread. */
static void find_sets(Touches *touches)
{
    for (size_t i = 0; i < touches->n_threads; i++) {
        TouchThread *thread = &touches->threads[i];
        const TouchThread *buddy = touches_thread(touches, thread->buddy.buddy.tid);
        pid_t set = buddy && buddy < thread ? buddy->set : thread->key.tid;

        if (set != thread->set)
            thread->within = thread->beyond = 0;
        thread->set = set;
        thread->n_now = 0;
        touches_thread(touches, set)->n_now++;
    }
}

void touches_fold_sets(Touches *touches)
{
    find_sets(touches);
    for (size_t i = 0; i < touches->n_threads; i++) {
        TouchThread *thread = &touches->threads[i], *first = touches_thread(touches, thread->set);

        if (first == thread)
            thread->set_within = thread->set_beyond = 0;
        if (first->n_now != first->set_size)
            thread->within = thread->beyond = 0;
        first->set_within += thread->within;
        first->set_beyond += thread->beyond;
    }
    for (size_t i = 0; i < touches->n_threads; i++)
        touches->threads[i].set_size = touches->threads[i].n_now;
}

const TouchThread *touches_set(const Touches *touches, pid_t tid, TouchSet *ret)
{
    const TouchThread *thread = touches_thread((Touches *)touches, tid), *first;

    first = thread ? touches_thread((Touches *)touches, thread->set) : NULL;
    if (!first || first->set != first->key.tid)
        return NULL;
    *ret = first->set_within + first->set_beyond == 0        ? TOUCH_SET_NEW
           : first->set_within >= CLOSED * first->set_beyond ? TOUCH_SET_CLOSED
                                                             : TOUCH_SET_OPEN;
    return first;
}
