/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sets of threads that share memory: a thread, its buddy or the thread it shares most with, that one's, and
 * so on (P14).
 *
 * Sixteen threads that share everything become one set gradually. After a round or two most have a buddy, but
 * not all are tied together, and five of them may look like a set that fits a node. A true set shares
 * everything within; five of sixteen, a third. So a set is believed if it has not changed for a round in
 * which it shared three quarters within. */

#include "world/touches.h"

#include "base/util.h"

/* To be closed, a set must share this many times as much within as beyond; to stay closed, as much is enough. */
#define CLOSED 3

/* A buddy with which a thread shares less than this part of what it shares with some other thread does not
 * count: a choice of ours. In a set of sixteen all are alike. */
#define TIED 8U

/* When all places are taken, the partner with the least weight makes room and leaves its weight to the new one. So a
 * thread that shares much is soon above the others (Metwally, Agrawal, El Abbadi: space saving, 2005). */
void touches_add_partner(TouchThread *thread, const TouchThread *other, uint32_t weight)
{
    TouchOwner *place = &thread->partners[0];

    *(other->set == thread->set ? &thread->within_now : &thread->beyond_now) += weight;
    for (size_t i = 0; i < TOUCHES_PARTNERS; i++) {
        TouchOwner *partner = &thread->partners[i];

        if (partner->tid == other->key.tid) {
            partner->weight += weight;
            return;
        }
        if (partner->weight < place->weight)
            place = partner;
    }
    *place = (TouchOwner){other->key.tid, place->weight + weight};
}

void touches_forget_partner(Touches *touches, pid_t tid)
{
    for (size_t i = 0; i < touches->n_threads; i++) {
        TouchThread *thread = &touches->threads[i];

        if (thread->set == tid)
            thread->set = thread->key.tid;
        for (size_t k = 0; k < TOUCHES_PARTNERS; k++)
            if (thread->partners[k].tid == tid)
                thread->partners[k] = (TouchOwner){0};
    }
}

static void fold_thread(TouchThread *thread)
{
    thread->within = (3 * thread->within + thread->within_now) / 4;
    thread->beyond = (3 * thread->beyond + thread->beyond_now) / 4;
    thread->within_now = thread->beyond_now = 0;
    for (size_t i = 0; i < TOUCHES_PARTNERS; i++) {
        thread->partners[i].weight = thread->partners[i].weight * 3 / 4;
        if (thread->partners[i].weight == 0)
            thread->partners[i] = (TouchOwner){0};
    }
}

/* The buddy of a thread, if it shares enough with it compared with any other; else the earlier thread it shares most
 * with; NULL: too little with each. All threads of a program meet in a block or two, which would tie the first of each
 * set to an earlier thread and make all one set. So a block counts less, the more threads use it. */
static const TouchThread *tied_to(Touches *touches, const TouchThread *thread)
{
    const TouchOwner *best = NULL;
    uint32_t most = 0;

    for (size_t i = 0; i < TOUCHES_PARTNERS; i++) {
        const TouchOwner *partner = &thread->partners[i];

        most = MAX(most, partner->weight);
        if (partner->tid == 0 || partner->tid >= thread->key.tid)
            continue;
        if (!best || partner->weight > best->weight)
            best = partner;
    }
    for (size_t i = 0; i < TOUCHES_PARTNERS && thread->buddy.buddy.tid != 0; i++)
        if (thread->partners[i].tid == thread->buddy.buddy.tid && thread->partners[i].weight >= most / TIED)
            best = &thread->partners[i];
    return best && best->weight >= most / TIED ? touches_thread(touches, best->tid) : NULL;
}

/* A thread is tied to one before it, so one walk is enough. */
static void find_sets(Touches *touches)
{
    for (size_t i = 0; i < touches->n_threads; i++) {
        TouchThread *thread = &touches->threads[i];
        const TouchThread *buddy;
        pid_t set;

        fold_thread(thread);
        buddy = tied_to(touches, thread);
        set = buddy ? buddy->set : thread->key.tid;
        if (set != thread->set)
            thread->within = thread->beyond = 0;
        thread->set = set;
        thread->tied = buddy ? buddy->key : (TaskKey){0};
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
    for (size_t i = 0; i < touches->n_threads; i++) {
        TouchThread *thread = &touches->threads[i];
        bool same = thread->n_now == thread->set_size;

        thread->closed = thread->set_within > 0 &&
                         thread->set_within >= (same && thread->closed ? 1 : CLOSED) * thread->set_beyond;
        thread->set_size = thread->n_now;
    }
}

const TouchThread *touches_set(const Touches *touches, pid_t tid, TouchSet *ret)
{
    const TouchThread *thread = touches_thread((Touches *)touches, tid), *first;

    first = thread ? touches_thread((Touches *)touches, thread->set) : NULL;
    if (!first || first->set != first->key.tid)
        return NULL;
    *ret = first->closed                                ? TOUCH_SET_CLOSED
           : first->set_within + first->set_beyond == 0 ? TOUCH_SET_NEW
                                                        : TOUCH_SET_OPEN;
    return first;
}
