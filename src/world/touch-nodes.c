/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where threads run, by their samples. A sample says where the thread ran at that moment; Task.last_cpu is
 * read at another time. */

#include "world/touches.h"

/* Finds the majority by the vote of R. S. Boyer and J S. Moore (1981): samples of two nodes cancel out. */
void touches_note_node(const Touches *touches, TouchThread *thread, size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++) {
        NodeIx node = touches->samples[i].cpu_node;

        thread->wanders |= node.i < 0 || (thread->seen && thread->round_node.i != node.i);
        thread->seen = true;
        if (thread->round_lead == 0)
            thread->round_node = node;
        if (thread->round_node.i == node.i)
            thread->round_lead++;
        else
            thread->round_lead--;
    }
}

void touches_fold_node(const Touches *touches, TouchThread *thread)
{
    NodeIx node = thread->wanders ? NODE_NONE : thread->round_node;

    if (!thread->seen)
        return;
    if (node.i != thread->node.i || node.i < 0) {
        thread->node_rounds = 0;
        thread->node_since = touches->n_rounds;
    }
    thread->node = node;
    thread->node_rounds += node.i >= 0 && thread->node_rounds < UINT16_MAX;
    thread->main_node = thread->round_lead > 0 ? thread->round_node : NODE_NONE;
    thread->round_lead = 0;
    thread->seen = thread->wanders = false;
}

void touches_tell_node(const TouchThread *thread, TaskStay *stay, uint64_t now_usec)
{
    if (stay->node.i != thread->node.i || stay->since != thread->node_since)
        stay->usec = now_usec;
    stay->node = thread->node;
    stay->since = thread->node_since;
    stay->rounds = (uint16_t)thread->node_rounds;
}
