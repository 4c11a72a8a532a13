/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Example of the line, at 2 MB per second with an empty bucket: the first thread wants 2 MB and is told to
 * wait a second; the next wants 4 KB and is told 1.002 s. If it were let in as soon as there are 4 KB,
 * threads with small pages would keep the bucket from ever holding a huge page.
 *
 * Example of the room: two threads see 40 MiB. The first enters with 30, so the second gets 10. A third looks
 * when 20 of the 30 have arrived and sees 20; it may count on none, since 30 + 10 are under way. When those
 * are over, the 40 still count against the third thread, which may have looked before they arrived. What it
 * sees the next time it looks includes them. */

#include "act/mover/gate.h"

#include "base/util.h"

#include <stdlib.h>
#include <utlist.h>

void mover_gate_init(MoverGate *gate)
{
    *gate = (MoverGate){0};
    (void)pthread_mutex_init(&gate->lock, NULL);
}

void mover_gate_done(MoverGate *gate)
{
    MoverGate *own = gate->own;

    (void)pthread_mutex_destroy(&gate->lock);
    while (own) {
        MoverGate *next = own->own;

        (void)pthread_mutex_destroy(&own->lock);
        free(own);
        own = next;
    }
}

MoverGate *mover_gate_own(MoverGate *gate, uint64_t rate_bytes)
{
    MoverGate *own;

    (void)pthread_mutex_lock(&gate->lock);
    own = gate->own;
    while (own && own->rate_bytes != rate_bytes)
        own = own->own;
    if (!own && (own = malloc(sizeof(*own)))) {
        mover_gate_init(own);
        own->rate_bytes = rate_bytes;
        own->own = gate->own;
        gate->own = own;
    }
    (void)pthread_mutex_unlock(&gate->lock);
    return own ? own : gate;
}

static void leave_line(MoverGate *gate, MoverPass *pass)
{
    if (pass->wanted_bytes > 0)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the first is also the last, or has a next */
        DL_DELETE(gate->line, pass);
    pass->wanted_bytes = 0;
}

uint64_t mover_gate_take(MoverGate *gate, MoverPass *pass, uint64_t rate_bytes, uint64_t bytes,
                         uint64_t now_usec)
{
    uint64_t sum = bytes, wait;

    (void)pthread_mutex_lock(&gate->lock);
    if (pass->wanted_bytes == 0)
        DL_APPEND(gate->line, pass);
    pass->wanted_bytes = bytes;
    for (const MoverPass *before = gate->line; before != pass; before = before->next)
        sum += before->wanted_bytes;
    wait = mover_bucket_wait(&gate->bucket, rate_bytes, sum, now_usec);
    if (wait == 0) {
        mover_bucket_take(&gate->bucket, rate_bytes, bytes, now_usec);
        leave_line(gate, pass);
    }
    (void)pthread_mutex_unlock(&gate->lock);
    return wait;
}

void mover_gate_forgo(MoverGate *gate, MoverPass *pass)
{
    (void)pthread_mutex_lock(&gate->lock);
    leave_line(gate, pass);
    (void)pthread_mutex_unlock(&gate->lock);
}

void mover_gate_return(MoverGate *gate, uint64_t bytes)
{
    (void)pthread_mutex_lock(&gate->lock);
    mover_bucket_return(&gate->bucket, bytes);
    (void)pthread_mutex_unlock(&gate->lock);
}

void mover_gate_look(MoverGate *gate, MoverPass *pass)
{
    (void)pthread_mutex_lock(&gate->lock);
    pass->arrived_bytes = gate->arrived_bytes;
    (void)pthread_mutex_unlock(&gate->lock);
}

size_t mover_gate_enter(MoverGate *gate, MoverPass *pass, uint64_t room_bytes, size_t n, uint64_t bytes)
{
    uint64_t others;

    (void)pthread_mutex_lock(&gate->lock);
    others = gate->under_way_bytes + (gate->arrived_bytes - pass->arrived_bytes);
    n = MIN(n, (room_bytes - MIN(room_bytes, others)) / bytes);
    pass->under_way_bytes = n * bytes;
    gate->under_way_bytes += n * bytes;
    (void)pthread_mutex_unlock(&gate->lock);
    return n;
}

void mover_gate_leave(MoverGate *gate, MoverPass *pass)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->under_way_bytes -= pass->under_way_bytes;
    gate->arrived_bytes += pass->under_way_bytes;
    pass->under_way_bytes = 0;
    (void)pthread_mutex_unlock(&gate->lock);
}
