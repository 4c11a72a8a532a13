/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A walk through the memory of the one process of a machine in memory, to its node 1. */

#include "mover-machine.h"

#include "act/mover/walk.h"

#define HEAP UINT64_C(0x7f0000000000)

typedef struct WalkFixture {
    Machine machine;
    MoverGate gate;
    WalkNode node;
    WalkHost host;
    MoverOrder order;
    hwloc_bitmap_t accept; /* node 1 */
    Walk *walk;
    unsigned n_go_on, stop_after; /* 0: never */
    uint64_t paused_usec;
    MoverOutcome outcome;
    int error;
    MoverAccount account;
} WalkFixture;

/* cmocka's set-up and tear-down. */
int walk_setup(void **state);
int walk_teardown(void **state);

/* Carries the order, or a part of it, out. */
MoverOutcome walk_run(WalkFixture *f);
MoverOutcome walk_run_part(WalkFixture *f, uint32_t part, uint32_t n_parts);
/* Lets the node forget what it learned. */
void walk_reset_node(WalkFixture *f);

size_t walk_pages(const WalkFixture *f, uint64_t bytes);
/* Bytes that were refused, for whatever reason. */
uint64_t walk_refused(const WalkFixture *f);
