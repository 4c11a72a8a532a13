/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A mover, with its threads, on a machine in memory whose calls can be made to hang. */

#include "mover-machine.h"

#define HEAP UINT64_C(0x7f0000000000)

typedef struct MoverFixture {
    Machine machine;
    Topology *topology;
    Mover *mover;
    hwloc_bitmap_t to; /* node 1 */
    MoverOrder order;
} MoverFixture;

/* For cmocka: with the topology of that description, of four nodes. */
int mover_setup(void **state, const char *synthetic);
int mover_teardown(void **state);

/* Gives the order, and returns its number. */
uint64_t mover_order(MoverFixture *f);
bool mover_readable(const MoverFixture *f);
/* The next result, when there is one. */
MoverResult mover_await(MoverFixture *f);

/* Lets moves hang, or go on. */
void mover_set_hanging(MoverFixture *f, bool hanging);
/* Waits until so many threads hang. */
void mover_await_hanging(MoverFixture *f, unsigned n);
/* Gives the order, lets its moves hang, and waits until so many do. Returns its number. */
uint64_t mover_order_hanging(MoverFixture *f, unsigned n);
/* Waits for what hung and came back to go. Its last words to the machine were under the lock. */
void mover_await_no_threads(MoverFixture *f);

/* Asserts that a small order, given while so many threads hang in a large one, is over before that. */
void mover_try_turns(MoverFixture *f, unsigned n_hanging);

/* Asserts that `n` threads that hang are given up after a time, that others take over, and that the first ones do no
 * harm when they come back. */
void mover_try_hanging(MoverFixture *f, unsigned n);
