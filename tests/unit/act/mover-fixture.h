/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A mover with its threads, on a machine in memory whose calls can be made to hang. */

#include "mover-machine.h"

#define HEAP UINT64_C(0x7f0000000000)

typedef struct MoverFixture {
    Machine machine;
    Topology *topology;
    Mover *mover;
    hwloc_bitmap_t to; /* node 1 */
    MoverOrder order;
} MoverFixture;

/* For cmocka set-ups: `synthetic` describes a topology of four nodes. */
int mover_setup(void **state, const char *synthetic);
int mover_teardown(void **state);

/* Submits the migration request, and returns its id. */
uint64_t mover_order(MoverFixture *f);
bool mover_readable(const MoverFixture *f);
/* Waits for the next result. */
MoverResult mover_await(MoverFixture *f);

/* Makes moves hang, or lets them go on. */
void mover_set_hanging(MoverFixture *f, bool hanging);
/* Waits until `n` threads hang. */
void mover_await_hanging(MoverFixture *f, unsigned n);
/* Makes moves hang, submits the request, and waits until `n` threads hang. Returns its id. */
uint64_t mover_order_hanging(MoverFixture *f, unsigned n);
/* Waits until threads that hung have ended. The last thing they do to the machine is under its lock. */
void mover_await_no_threads(MoverFixture *f);

/* Asserts that a small request, submitted while `n_hanging` threads hang in a large one, ends before the large one. */
void mover_try_turns(MoverFixture *f, unsigned n_hanging);

/* Asserts that `n` hanging threads are given up after a time, that others take over, and that the first ones
 * do no harm when they come back. */
void mover_try_hanging(MoverFixture *f, unsigned n);
