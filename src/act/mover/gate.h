/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the threads that move to one node share: their rate limits (P20) and the room on it (P19), where no thread may
 * count on room that another one is filling. All functions may be called by several threads at a time; none blocks. */

#include "act/mover/pace.h"

#include <pthread.h>

/* The state of one thread. All zero: neither in line nor moving. */
typedef struct MoverPass {
    uint64_t wanted_bytes;         /* in line for this much; 0: not in line */
    uint64_t under_way_bytes;      /* being moved */
    uint64_t arrived_bytes;        /* the gate's, when the thread last read the room */
    struct MoverPass *prev, *next; /* in line */
} MoverPass;

typedef struct MoverGate {
    pthread_mutex_t lock; /* guards all of this, and the passes */
    Bucket bucket;
    MoverPass *line; /* first come, first served */
    uint64_t under_way_bytes;
    uint64_t arrived_bytes; /* total that was under way and no longer is */
    uint64_t rate_bytes;    /* of one made by mover_gate_own() */
    struct MoverGate *own;  /* the first of these, and of each the next */
} MoverGate;

void mover_gate_init(MoverGate *gate);
void mover_gate_done(MoverGate *gate);

/* Returns what limits the requests of this rate (above 0) among themselves: a gate that lasts as long as `gate`, or,
 * when out of memory, `gate` itself. One bucket for several rates would let the lowest have what the highest leaves. */
MoverGate *mover_gate_own(MoverGate *gate, uint64_t rate_bytes);

/* Takes `bytes` (above 0, at most the burst) at a rate in bytes per second. Returns 0, or how long to wait,
 * in line, before calling again with the same arguments. */
uint64_t mover_gate_take(MoverGate *gate, MoverPass *pass, uint64_t rate_bytes, uint64_t bytes,
                         uint64_t now_usec);
/* Leaves the line without taking anything. */
void mover_gate_forgo(MoverGate *gate, MoverPass *pass);
/* Puts back what was taken and not used. */
void mover_gate_return(MoverGate *gate, uint64_t bytes);

/* To be called before the room is read; */
void mover_gate_look(MoverGate *gate, MoverPass *pass);
/* to be called after: returns how many of `n` pages of `bytes` each may be moved into the `room_bytes` read.
 * They now count as under way. */
size_t mover_gate_enter(MoverGate *gate, MoverPass *pass, uint64_t room_bytes, size_t n, uint64_t bytes);
/* Ends the move: its pages no longer count as under way, whether or not they were moved. Another thread may
 * call it for one that hangs. A second call does nothing. */
void mover_gate_leave(MoverGate *gate, MoverPass *pass);
