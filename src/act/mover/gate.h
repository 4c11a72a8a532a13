/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the threads that move to one node share: its rate (P20), and the room on it (P19), of which none may count on
 * what another one is just filling. All functions may be called by several threads at a time, and wait for none. */

#include "act/mover/pace.h"

#include <pthread.h>

/* One thread's. All zero: neither in line nor moving. */
typedef struct MoverPass {
    uint64_t wanted_bytes;         /* it is in line for; 0: it is not */
    uint64_t under_way_bytes;      /* it is moving */
    uint64_t arrived_bytes;        /* the gate's, when it looked at the room */
    struct MoverPass *prev, *next; /* in line */
} MoverPass;

typedef struct MoverGate {
    pthread_mutex_t lock; /* over all of this, and the passes */
    Bucket bucket;
    MoverPass *line; /* first come, first served */
    uint64_t under_way_bytes;
    uint64_t arrived_bytes; /* all that was under way and is not any more */
} MoverGate;

void mover_gate_init(MoverGate *gate);
void mover_gate_done(MoverGate *gate);

/* Takes `bytes` (above 0, at most the burst) at a rate of so many a second. Returns 0; or how long to wait, in line,
 * before the same is asked again. */
uint64_t mover_gate_take(MoverGate *gate, MoverPass *pass, uint64_t rate_bytes, uint64_t bytes,
                         uint64_t now_usec);
/* Leaves the line without having taken. */
void mover_gate_forgo(MoverGate *gate, MoverPass *pass);
/* Puts back what was taken and not used. */
void mover_gate_return(MoverGate *gate, uint64_t bytes);

/* To be called before the room is looked at, */
void mover_gate_look(MoverGate *gate, MoverPass *pass);
/* and after: how many of `n` pages of `bytes` each may be moved into the `room_bytes` seen. They are under way now. */
size_t mover_gate_enter(MoverGate *gate, MoverPass *pass, uint64_t room_bytes, size_t n, uint64_t bytes);
/* They are not any more, wherever they are; also by somebody else for a thread that does not come back. Does nothing
 * the second time. */
void mover_gate_leave(MoverGate *gate, MoverPass *pass);
